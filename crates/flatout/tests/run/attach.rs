//! Looking at a program that runs already, and words during a run.

use crate::support::{Place, plain_python};
use std::process::{Command, Stdio};

#[test]
fn shows_the_line_of_a_running_program() {
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
fn prints_live_progress() {
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

/// A Python that can take the probe while it runs: `FLATOUT_TEST_PYTHON_314`, with torch.
fn attachable_python() -> std::path::PathBuf {
    let python = std::env::var_os("FLATOUT_TEST_PYTHON_314");
    python
        .expect("FLATOUT_TEST_PYTHON_314 names a Python 3.14 with torch")
        .into()
}

const TRAINING: &str = "import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 320
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(8), torch.randn(1)

torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Slow(), batch_size=8)
before = DataLoader.__iter__.__code__, type(optimizer).step.__code__
print('ready', flush=True)
while not select_stdin():
    for x, y in loader:
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
after = DataLoader.__iter__.__code__, type(optimizer).step.__code__
print('its own functions' if after == before else 'changed functions', flush=True)
";
const SELECT: &str = "import select, sys
def select_stdin():
    return select.select([sys.stdin], [], [], 0)[0]
";

/// `attach --probe` on a program, as JSON.
fn attached(place: &Place, pid: u32) -> (serde_json::Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["--lang", "en", "attach", "--probe", "--seconds", "8", "--json"])
        .arg(pid.to_string())
        .env("FLATOUT_HOME", place.folder.path().join("home"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
#[ignore = "needs a Python 3.14 with torch in FLATOUT_TEST_PYTHON_314"]
fn the_probe_is_put_into_a_running_program_and_taken_out() {
    use std::io::{BufRead, BufReader};
    let python = attachable_python();
    let place = Place::new();
    let script = place.script("train.py", &format!("{SELECT}{TRAINING}"));
    let mut program = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(program.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // Twice: the second one finds the probe of the first at rest.
    for _ in 0..2 {
        let (seen, said) = attached(&place, program.id());
        assert!(!said.contains("without the probe"), "{said}");
        assert!(seen["window"]["steps"].as_u64().unwrap() > 10, "{seen}");
        let rules: Vec<&str> = seen["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["rule"].as_str())
            .collect();
        assert!(rules.contains(&"loader-without-workers"), "{rules:?}");
    }
    drop(program.stdin.take());
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "its own functions\n");
    assert!(program.wait().unwrap().success());
}

#[test]
fn a_python_that_cannot_take_the_probe_is_watched_without_it() {
    let Some(python) = plain_python() else { return };
    let version = Command::new(&python)
        .args(["-c", "import sys; print(hasattr(sys, 'remote_exec'))"])
        .output()
        .unwrap();
    if String::from_utf8_lossy(&version.stdout).trim() == "True" {
        eprintln!("skipped: this Python can");
        return;
    }
    let place = Place::new();
    let mut program = Command::new(python)
        .args(["-c", "import time; print('ready', flush=True); time.sleep(60)"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(program.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let (_, said) = attached(&place, program.id());
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(
        said.contains("without the probe: the program runs Python 3."),
        "{said}"
    );
    // Nor does what is not a Python at all.
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let (_, said) = attached(&place, other.id());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(said.contains("is not a Python"), "{said}");
}
