//! Looking at a program that runs already, and words during a run.

use crate::support::{Place, plain_python};
use std::process::{Command, Stdio};

#[test]
fn the_line_a_running_program_stands_in_is_shown() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    let script = place.script(
        "busy.py",
        "import time\ndef waits():\n    time.sleep(60)\nwaits()\n",
    );
    let mut program = Command::new(python)
        .arg(script)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args([
            "--lang",
            "en",
            "attach",
            "--seconds",
            "3",
            "--json",
            &program.id().to_string(),
        ])
        .env("FLATOUT_HOME", place.folder.path().join("home"))
        .output()
        .unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    if said.contains("no Python lines") {
        // The machine forbids it, and that was said.
        return;
    }
    assert_eq!(seen["lines"][0]["function"], "waits", "{seen}");
    assert_eq!(seen["lines"][0]["place"]["line"], 3, "{seen}");
}

#[test]
fn a_process_that_does_not_exist_cannot_be_attached_to() {
    let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["--lang", "en", "attach", "4294967295"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no process 4294967295"));
}

#[test]
fn a_process_that_may_not_be_read_is_watched_without_its_lines() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    let place = Place::new();
    // Somebody else's process: as root ours, looked at by nobody; else the first one of all.
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut own = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = if root { own.id() } else { 1 };
    let home = place.folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let binary = place.folder.path().join("flatout");
    std::fs::copy(env!("CARGO_BIN_EXE_flatout"), &binary).unwrap();
    let mut command = Command::new(&binary);
    command
        .args([
            "--lang",
            "en",
            "attach",
            "--seconds",
            "2",
            "--json",
            &pid.to_string(),
        ])
        .env("FLATOUT_HOME", &home)
        .env_remove("LD_LIBRARY_PATH");
    if root {
        use std::os::unix::fs::PermissionsExt;
        for path in [place.folder.path(), &home] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        command.gid(65534).uid(65534).current_dir(place.folder.path());
    }
    let output = command.output().unwrap();
    own.kill().unwrap();
    own.wait().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("no Python lines"), "{said}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["lines"].as_array().map_or(0, Vec::len), 0, "{seen}");
}

#[test]
fn a_run_tells_how_it_goes_when_asked_to() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    place.script(
        "train.py",
        "import time, flatout\nfor _ in range(400):\n    with flatout.phase('data'):\n        time.sleep(0.02)\n    flatout.step(samples=4)\nprint('own')\n",
    );
    let (output, _) = place.run(&python, &["--live"], &["train.py"]);
    assert_eq!(output.stdout, b"own\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.lines()
            .any(|line| line.starts_with("flatout: ") && line.contains(" steps")),
        "{said}"
    );
}
