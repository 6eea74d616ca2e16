//! The checklist on projects as people have them.

use crate::trying::{Try, json, words};

/// As one team had it: mixed precision switched on in a way that the code never reads, far too many workers, the data elsewhere.
fn project() -> Try {
    let place = Try::new();
    place.script(
        "train.yaml",
        "train:\n  amp: true\n  batch_size: 256\n  num_workers: 4000\n  pin_memory: false\ndata_dir: no/such/captchas\n",
    );
    place.script(
        "train.py",
        "import torch, yaml
from torch.utils.data import DataLoader

config = yaml.safe_load(open('train.yaml'))
use_amp = config['train']['amp'] == 'bf16'
loader = DataLoader(make(config['data_dir']), batch_size=config['train']['batch_size'],
                    num_workers=config['train']['num_workers'], pin_memory=config['train']['pin_memory'])
for x, y in loader:
    with torch.autocast('cuda', enabled=use_amp):
        model(x).backward()
    optimizer.step()
",
    );
    place
}

#[test]
fn a_configuration_that_must_not_be_started() {
    let place = project();
    let output = place
        .command(&["check", "train.yaml", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let report = json(&output);
    let items = report["items"].as_array().unwrap();
    let status = |id: &str| {
        let of_id = |item: &&serde_json::Value| item["id"] == id;
        items
            .iter()
            .find(of_id)
            .map(|item| item["status"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        status("settings-read").as_deref(),
        Some("fail"),
        "{}",
        words(&output)
    );
    assert!(
        words(&output).contains("`train.amp` is `true`"),
        "{}",
        words(&output)
    );
    assert_eq!(status("workers").as_deref(), Some("fail"));
    assert_eq!(status("data").as_deref(), Some("fail"));
    assert!(status("disk").is_some() && status("gpu-free").is_some());
}

#[test]
fn a_command_is_checked_by_its_flags_its_configuration_and_its_source() {
    let place = project();
    let command = [
        "check",
        "--",
        "python",
        "train.py",
        "--config",
        "train.yaml",
        "--num-workers",
        "1",
    ];
    let output = place.command(&command).output().unwrap();
    let text = words(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("`train.amp` is `true`"), "{text}");
    // What the command says wins over the file.
    assert!(!text.contains("4000"), "{text}");
}

#[test]
fn limits_are_the_users() {
    let place = Try::new();
    std::fs::write(place.folder.path().join("data.bin"), vec![1u8; 100_000]).unwrap();
    place.script("train.yaml", "num_workers: 1\ndata: data.bin\n");
    let check = || place.command(&["check", "train.yaml"]).output().unwrap();
    place.script("flatout.toml", "[check]\ndisk-free-gib-min = 0\n");
    assert_eq!(check().status.code(), Some(0), "{}", words(&check()));
    place.script("flatout.toml", "[check]\ndisk-free-gib-min = 100000000\n");
    let output = check();
    assert!(
        output.status.code() == Some(1) && words(&output).contains("disk space"),
        "{}",
        words(&output)
    );
    place.script("flatout.toml", "[check]\ncolour = 1\n");
    assert_eq!(check().status.code(), Some(2));
}

/// A job script must not start what is not there.
#[test]
fn a_program_and_data_that_are_missing_fail() {
    let place = Try::new();
    place.script("train.yaml", "data:\n  path: no/such/folder\n");
    let output = place
        .command(&["check", "train.yaml", "--json", "--", "no-such-program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let report = json(&output);
    let failed: Vec<&str> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "fail")
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["program", "data"], "{}", words(&output));
}

#[test]
fn checks_source_values_unless_the_command_overrides_them() {
    let place = Try::new();
    place.script(
        "train.py",
        "from torch.utils.data import DataLoader
loader = DataLoader(make(), batch_size=64, shuffle=True, num_workers=4000)
",
    );
    let check = |more: &[&str]| {
        let command = [&["check", "--json", "--", "python", "train.py"], more].concat();
        let report = json(&place.command(&command).output().unwrap());
        let items = report["items"].as_array().unwrap().clone();
        let workers = items.into_iter().find(|item| item["id"] == "workers").unwrap();
        workers["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(check(&[]), "fail");
    assert_eq!(check(&["--num-workers", "1"]), "pass");
}

#[test]
fn a_neighbour_in_the_same_folder_is_not_judged() {
    let place = project();
    std::fs::create_dir(place.folder.path().join("own")).unwrap();
    place.script("own/c.yaml", "train:\n  batch_size: 64\n");
    place.script("top.py", "print(1)\n");
    for command in [&["check", "own/c.yaml"][..], &["check", "--", "sh", "top.py"]] {
        let output = place.command(command).output().unwrap();
        let text = words(&output);
        assert!(output.status.success() && !text.contains("train.amp"), "{text}");
    }
}
