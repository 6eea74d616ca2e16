//! All mistakes of a configuration at once, from `train` and from `check`; and a log that says what happened.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/command.rs"]
mod command;

use command::flatout;
use std::path::Path;

fn run(folder: &Path, line: &str) -> (i32, String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = flatout(folder, &words);
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

const WRONG: &str = "data: data\nepochs: many\nbatch_size: 64\nmodel:\n  hiden_size: 16\n  model_type: resnext\nlr: fast\npretrain:\n  dropout: 7\n";

#[test]
fn every_mistake_has_its_line() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("c.yaml"), WRONG).unwrap();
    let (code, _, said) = run(place.path(), "train --config c.yaml");
    assert_eq!(code, 2);
    let expected = [
        "c.yaml has 5 mistakes",
        "c.yaml:2: `epochs` is `many`; expected a whole number, 1 or more",
        "c.yaml:5: unknown setting `model.hiden_size` (did you mean `hidden_size`?)",
        "c.yaml:6: `model_type` is `resnext`; expected one of auto, lstm",
        "c.yaml:7: `learning_rate` is `fast`",
        "c.yaml:9: `dropout` is `7`",
    ];
    for words in expected {
        assert!(said.contains(words), "{words} is missing in\n{said}");
    }
    let (code, out, _) = run(place.path(), "check c.yaml --lang en");
    assert_eq!(code, 1);
    for words in &expected[1..] {
        assert!(out.contains(words), "{words} is missing in\n{out}");
    }
    // A flag in the place of a mistake mends it.
    std::fs::write(place.path().join("one.yaml"), "data: data\nepochs: many\n").unwrap();
    let (_, _, said) = run(place.path(), "train --config one.yaml");
    assert!(
        said.contains("one.yaml:2: `epochs` is `many`") && !said.contains("mistakes"),
        "{said}"
    );
    let (_, _, said) = run(place.path(), "train --config one.yaml --epochs 1");
    assert!(!said.contains("epochs"), "{said}");
}

#[test]
fn a_setting_that_does_not_apply_is_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let (code, ..) = run(place.path(), "generate stocks --out made --size 4");
    assert_eq!(code, 0);
    let (code, _, said) = run(
        place.path(),
        "train --data made --validation-data other --output-dir out",
    );
    assert_eq!(code, 2);
    let reason = "`validation_data` does not apply here: sequences are split at a date";
    assert!(said.contains(reason), "{said}");
}

#[test]
fn check_refuses_exactly_what_train_refuses() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    let refused = |line: &str| {
        let (_, out, _) = run(place.path(), line);
        out.lines()
            .filter(|line| line.starts_with("fail") && line.contains("settings of `flatout train`"))
            .count()
    };
    write("nowhere.yaml", "data: nowhere\nepochs: 1\nbatch_size: 256\n");
    assert_eq!(refused("check nowhere.yaml --lang en"), 1);
    write(
        "good.yaml",
        "data: made\ngenerate: {kind: stocks, stocks: 4, days: 60}\nepochs: 1\nbatch_size: 256\n",
    );
    assert_eq!(refused("check good.yaml --lang en"), 0);
    write(
        "grid.yaml",
        "data: made\ngenerate: {kind: stocks}\nhidden_size: [16, 32]\nlr: [0.1, 0.2]\n",
    );
    assert_eq!(refused("check grid.yaml --lang en"), 0);
    // The configuration of another program has other keys.
    write(
        "theirs.yaml",
        "backbone: hrnet\nheads: 3\nwarm: 2\naugment: {blur: 1, jitter: 2}\nbatch_size: 256\n",
    );
    assert_eq!(refused("check theirs.yaml --lang en"), 0);
    write("train.py", "print('training')\n");
    assert_eq!(
        refused("check --lang en -- python train.py --config nowhere.yaml"),
        0
    );
    assert_eq!(
        refused("check --lang en -- flatout train --config nowhere.yaml"),
        1
    );
}

#[test]
fn the_log_file_has_the_events() {
    let place = tempfile::tempdir().unwrap();
    run(place.path(), "generate stocks --out data --size 4 --days 60");
    let train = "train --data data --device cpu --hidden-size 8 --sequence-length 5 --batch-size 64 --epochs 1 --threads 1";
    let (code, _, said) = run(place.path(), &format!("{train} --log-file log.txt"));
    assert_eq!(code, 0, "{said}");
    let log = std::fs::read_to_string(place.path().join("log.txt")).unwrap();
    for words in [
        "info flatout: flatout 0.",
        "--log-file log.txt",
        "reading data as Panel",
        "samples to train on",
        "phase train: lstm on cpu",
        "evaluated",
        "wrote out/last.safetensors",
        "printed train 1/1: loss",
        "ended after",
    ] {
        assert!(log.contains(words), "{words} is missing in\n{log}");
    }
    assert!(!said.contains("reading data as"), "{said}");
    let (_, _, said) = run(place.path(), &format!("{train} -v"));
    assert!(said.contains("info: reading data as Panel"), "{said}");
    // Other commands too, and failures.
    run(place.path(), "lint nothing.py --log-file lint.txt");
    let log = std::fs::read_to_string(place.path().join("lint.txt")).unwrap();
    assert!(
        log.contains("printed error:") && log.contains("failed after"),
        "{log}"
    );
}
