//! `flatout lint` and `flatout explain` as a user runs them: exit codes, what goes to stdout, and what --fix leaves behind.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const TRAIN: &str = "import torch\nfrom torch.utils.data import DataLoader\n\nmodel = torch.nn.Linear(8, 8).cuda()\nloader = DataLoader(data, batch_size=8, num_workers=2)  # pinned later\nfor epoch in range(3):\n    total = 0.0\n    for x, y in loader:\n        x = x.to('cuda')\n        loss = model(x).sum()\n        loss.backward()\n        total += loss.item()\n";

fn flatout(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(arguments)
        .current_dir(folder)
        .env("LANG", "C")
        .env_remove("LC_ALL")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), TRAIN).unwrap();
    folder
}

#[test]
fn text_output_has_location_rule_line_and_fix() {
    let folder = project();
    let output = flatout(folder.path(), &["lint", "--select", "item-in-step"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "\
train.py:12:18: item-in-step warning `loss.item()` makes the CPU wait for the GPU at every step
  12 |         total += loss.item()
     |                  ^^^^^^^^^^^
  The next step cannot be queued until the value arrives, so the GPU idles between steps.
  fix: accumulate on the GPU with `.detach()` and read the sum once per epoch [--fix --unsafe]

1 found in one file (12 lines of Python): critical: 0, warnings: 1, information: 0. --fix can fix 0, --fix --unsafe 1.
";
    assert_eq!(stdout(&output), expected);
    let chinese = stdout(&flatout(
        folder.path(),
        &["lint", "--lang", "zh-CN", "--select", "item-in-step"],
    ));
    assert!(chinese.contains("警告") && chinese.contains("修复"), "{chinese}");
}

#[test]
fn notes_that_rules_about_the_gpu_did_not_apply() {
    let folder = tempfile::tempdir().unwrap();
    let source = "import torch\nmodel = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x in torch.randn(9, 2, 4):\n    loss = model(x).sum()\n    loss.backward()\n    optimizer.step()\n    print(loss.item())\n";
    std::fs::write(folder.path().join("train.py"), source).unwrap();
    let found = stdout(&flatout(folder.path(), &["lint"]));
    assert!(found.contains("does not use CUDA"), "{found}");
    let gpu = source.replace("1)\noptimizer", "1).to(\"cuda\")\noptimizer");
    std::fs::write(folder.path().join("train.py"), gpu).unwrap();
    let found = stdout(&flatout(folder.path(), &["lint"]));
    assert!(!found.contains("does not use CUDA"), "{found}");
}

#[test]
fn formats_are_valid() {
    let folder = project();
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&flatout(folder.path(), &["lint", "--json"]))).unwrap();
    assert_eq!(json["schema"], 1);
    assert!(json["findings"].as_array().unwrap().len() > 2);
    let sarif: serde_json::Value =
        serde_json::from_str(&stdout(&flatout(folder.path(), &["lint", "--format", "sarif"]))).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "train.py"
    );
    let github = stdout(&flatout(
        folder.path(),
        &["lint", "--format", "github", "--select", "item-in-step"],
    ));
    assert!(
        github.starts_with("::warning file=train.py,line=12,col=18,title=flatout item-in-step::"),
        "{github}"
    );
}

#[test]
fn fixes_keep_a_backup_and_happen_once() {
    let folder = project();
    let path = folder.path().join("train.py");
    let diff = stdout(&flatout(folder.path(), &["lint", "--diff"]));
    assert!(
        diff.contains(
            "+loader = DataLoader(data, batch_size=8, num_workers=2, pin_memory=True)  # pinned later\n"
        ),
        "{diff}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), TRAIN);
    let output = flatout(folder.path(), &["lint", "--fix", "--unsafe"]);
    assert_eq!(output.status.code(), Some(0));
    let once = fs::read_to_string(&path).unwrap();
    assert!(once.contains("total += loss.detach()") && once.contains("# pinned later"));
    assert_eq!(
        fs::read_to_string(folder.path().join("train.py.flatout-backup")).unwrap(),
        TRAIN
    );
    flatout(folder.path(), &["lint", "--fix", "--unsafe"]);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        once,
        "a second --fix changed something"
    );
    // Nor do more rounds find anything to do.
    for _ in 0..3 {
        flatout(folder.path(), &["lint", "--fix", "--unsafe"]);
    }
    let settled = fs::read_to_string(&path).unwrap();
    flatout(folder.path(), &["lint", "--fix", "--unsafe"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), settled);
}

#[test]
fn fix_leaves_broken_linked_and_read_only_files_alone() {
    let folder = project();
    let outside = tempfile::tempdir().unwrap();
    let broken = TRAIN.to_owned() + "def f(:\n";
    fs::write(folder.path().join("broken.py"), &broken).unwrap();
    fs::write(outside.path().join("victim.py"), TRAIN).unwrap();
    std::os::unix::fs::symlink(outside.path().join("victim.py"), folder.path().join("link.py")).unwrap();
    fs::write(folder.path().join("locked.py"), TRAIN).unwrap();
    let read_only = fs::Permissions::from_mode(0o444);
    fs::set_permissions(folder.path().join("locked.py"), read_only).unwrap();
    fs::set_permissions(folder.path().join("train.py"), fs::Permissions::from_mode(0o640)).unwrap();
    let output = flatout(folder.path(), &["lint", "--fix", "--unsafe"]);
    let said = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
    for (path, text) in [
        (folder.path().join("broken.py"), broken.as_str()),
        (outside.path().join("victim.py"), TRAIN),
        (folder.path().join("locked.py"), TRAIN),
    ] {
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{}", path.display());
    }
    for words in [
        "syntax errors, not changed: 1",
        "links, not followed: 1",
        "Read-only files, not changed: 1",
    ] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    assert_ne!(fs::read_to_string(folder.path().join("train.py")).unwrap(), TRAIN);
    for name in ["train.py", "train.py.flatout-backup"] {
        let mode = fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[test]
fn reports_deep_nesting_and_lints_the_rest() {
    let folder = project();
    let brackets = "[".repeat(3_000);
    let deep = format!("o{brackets}={brackets}f(m.p(),{brackets}lr=1)\nb{brackets}={brackets}t.m()\n");
    fs::write(folder.path().join("deep.py"), deep).unwrap();
    let output = stdout(&flatout(folder.path(), &["lint"]));
    assert!(output.contains("levels deep"), "{output}");
    assert!(output.contains("train.py:12:18: item-in-step"), "{output}");
}

#[test]
fn rules_are_silenced_by_comment_and_by_settings() {
    let folder = project();
    let silenced = TRAIN.replace("loss.item()", "loss.item()  # flatout: ignore[item-in-step]");
    fs::write(folder.path().join("train.py"), silenced).unwrap();
    assert!(!stdout(&flatout(folder.path(), &["lint"])).contains("item-in-step"));
    // Ids in any case, and ids of earlier versions.
    assert!(stdout(&flatout(folder.path(), &["lint"])).contains("pageable-copies"));
    let silenced = format!("# flatout: ignore-file[Loader-Without-Pinned-Memory]\n{TRAIN}");
    fs::write(folder.path().join("train.py"), silenced).unwrap();
    assert!(!stdout(&flatout(folder.path(), &["lint"])).contains("pageable-copies"));
    fs::write(folder.path().join("train.py"), TRAIN).unwrap();
    fs::write(
        folder.path().join("flatout.toml"),
        "[lint]\nselect = [\"sync\"]\nignore = [\"item-in-step\"]\n",
    )
    .unwrap();
    let output = flatout(folder.path(), &["lint"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn reports_bad_input_and_lints_the_rest() {
    let folder = project();
    fs::write(folder.path().join("old.py"), "print 'python 2'\n").unwrap();
    fs::write(folder.path().join("latin.py"), b"# caf\xe9\nx = 1\n").unwrap();
    fs::write(folder.path().join("config.yaml"), "a: [1,\nb: {\n").unwrap();
    fs::write(folder.path().join("config.json"), b"{\"a\": \"\xe9\"}").unwrap();
    fs::write(folder.path().join("train_config.yaml"), "lr: 1\nlr: 2\n").unwrap();
    fs::write(folder.path().join("tabs.py"), "if True:\r\n\tx = 1\r\n").unwrap();
    fs::write(folder.path().join("one.py"), "import two\n").unwrap();
    fs::write(folder.path().join("two.py"), "import one\n").unwrap();
    std::os::unix::fs::symlink(".", folder.path().join("again")).unwrap();
    let output = stdout(&flatout(folder.path(), &["lint"]));
    for place in [
        "old.py:1:",
        "latin.py:1:1: source-not-parsed",
        "config.yaml:",
        "config.json:1:1: source-not-parsed",
        "train_config.yaml:2:1: config-key-twice",
        "train.py:12:18: item-in-step",
    ] {
        assert!(output.contains(place), "{place} is not in\n{output}");
    }
    // Good files among them are no finding, and none is linted twice through the link.
    assert!(
        !output.contains("tabs.py") && !output.contains("again"),
        "{output}"
    );
    let missing = flatout(folder.path(), &["lint", "nowhere"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nowhere"));
    let unknown = flatout(folder.path(), &["lint", "--select", "no-such-rule"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn explain_prints_the_page_and_the_list() {
    let folder = project();
    let page = stdout(&flatout(folder.path(), &["explain", "item-in-step"]));
    assert!(page.starts_with("# item-in-step\n") && page.contains("## When it is wrong"));
    let list = stdout(&flatout(folder.path(), &["explain", "--list"]));
    let line = |id: &str| {
        let line = list.lines().find(|line| line.starts_with(&format!("  {id} ")));
        line.unwrap_or_else(|| panic!("{id} is not listed")).to_owned()
    };
    assert!(
        line("item-in-step").contains(" source  "),
        "{}",
        line("item-in-step")
    );
    assert!(line("tf32-off").contains(" source run  "), "{}", line("tf32-off"));
    assert!(line("gpu-idle").contains(" run  ") && !line("gpu-idle").contains("source"));
    let former = stdout(&flatout(folder.path(), &["explain", "TF32-not-enabled"]));
    assert!(former.starts_with("# tf32-off\n"), "{former}");
    let unknown = flatout(folder.path(), &["explain", "item-in-loop"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("item-in-step"));
}

#[test]
fn notebooks_are_linted_with_the_numbers_of_their_cells() {
    let folder = tempfile::tempdir().unwrap();
    let (setup, training) = TRAIN.split_at(TRAIN.find("for epoch").unwrap());
    let cell = |source: &str| serde_json::json!({ "cell_type": "code", "source": source, "outputs": [], "metadata": {}, "execution_count": null });
    let notebook = serde_json::json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        { "cell_type": "markdown", "source": "# Training", "metadata": {} },
        cell(setup),
        cell("this is (not Python"),
        cell(&format!("%%flatout\n{training}")),
    ]});
    let path = folder.path().join("train.ipynb");
    fs::write(&path, notebook.to_string()).unwrap();
    fs::write(folder.path().join("broken.ipynb"), "{\"cells\": [").unwrap();
    let output = flatout(folder.path(), &["lint"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    // The magic's own line counts, as in the editor.
    let item = "train.ipynb:cell 4:8:18: item-in-step warning `loss.item()` makes the CPU wait for the GPU at every step\n  8 |         total += loss.item()\n";
    assert!(text.contains(item), "{text}");
    assert!(
        text.contains("cell 3, line 1") && text.contains("the cell is skipped"),
        "{text}"
    );
    assert!(
        text.contains("broken.ipynb") && text.contains("not a notebook"),
        "{text}"
    );
    assert!(text.contains("train.ipynb:cell 2:5:"), "{text}");
    // Nothing is edited, and nothing is promised.
    assert!(!text.contains("[--fix"), "{text}");
    let before = fs::read(&path).unwrap();
    flatout(folder.path(), &["lint", "--fix", "--unsafe"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&flatout(folder.path(), &["lint", "--json"]))).unwrap();
    let places = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| &finding["places"][0]);
    assert!(
        places
            .clone()
            .any(|place| place["cell"] == 4 && place["line"] == 8)
    );
    let github = stdout(&flatout(folder.path(), &["lint", "--format", "github"]));
    assert!(
        github.contains("file=train.ipynb,line=1,col=1") && github.contains("::cell 4, line 8: "),
        "{github}"
    );
}
