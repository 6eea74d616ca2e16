//! Who gets which signal, who ends when, and what happens when nothing can be recorded.

use crate::support::{Place, plain_python};
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Counts what it gets, and says so.
const COUNTS: &str = "
import os, signal, sys, time
got = {}
def count(number, frame):
    got[number] = got.get(number, 0) + 1
    print(number, got[number], flush=True)
for number in map(int, sys.argv[1:]):
    signal.signal(number, count)
print(os.getpid(), flush=True)
while not os.path.exists('stop'):
    time.sleep(0.02)
";

struct Started {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    program: u32,
}

impl Started {
    /// Starts a program that prints its number first, in a process group of its own.
    fn new(place: &Place, arguments: &[&str]) -> Self {
        let mut child = place
            .flatout(arguments)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let program = lines.next().unwrap().unwrap().trim().parse().unwrap();
        Self {
            child,
            lines,
            program,
        }
    }

    fn send(&self, signal: i32, to: i32) {
        let sent = Command::new("kill")
            .args([format!("-{signal}"), "--".into(), to.to_string()])
            .status();
        assert!(sent.unwrap().success());
    }
}

fn state(process: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let state = text.rsplit_once(") ")?.1.chars().next()?;
    (state != 'Z' && state != 'X').then_some(state)
}

/// Waits for what must come; how long it takes is the machine's affair.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_signal_arrives_once_whoever_it_was_sent_to() {
    let Some(python) = plain_python() else { return };
    let signals = [1, 2, 3, 10, 12, 13, 14, 15, 26, 27, 28, 29, libc_sigrtmin() + 3];
    let words: Vec<String> = signals.iter().map(i32::to_string).collect();
    let place = Place::new();
    let script = place.script("counts.py", COUNTS);
    let mut arguments = vec![
        "--quiet",
        "--",
        python.to_str().unwrap(),
        script.to_str().unwrap(),
    ];
    arguments.extend(words.iter().map(String::as_str));
    let mut started = Started::new(&place, &arguments);
    let own = started.child.id() as i32;
    for round in 1..=2 {
        for signal in signals {
            // To flatout alone, then to the whole group.
            for (nth, to) in [own, -own].into_iter().enumerate() {
                started.send(signal, to);
                let expected = format!("{signal} {}", 2 * (round - 1) + nth + 1);
                assert_eq!(started.lines.next().unwrap().unwrap(), expected);
            }
        }
    }
    std::fs::write(place.folder.path().join("stop"), "").unwrap();
    assert_eq!(started.lines.next().map(Result::unwrap), None);
    assert_eq!(started.child.wait().unwrap().code(), Some(0));
}

/// glibc keeps two for itself.
fn libc_sigrtmin() -> i32 {
    34
}

#[test]
fn the_program_stops_and_continues_with_flatout() {
    let place = Place::new();
    let script = "echo $$; while [ ! -e stop ]; do sleep 0.05; done";
    let mut started = Started::new(&place, &["--quiet", "--", "sh", "-c", script]);
    let (own, program) = (started.child.id(), started.program);
    let both = |stopped: bool| [own, program].iter().all(|p| (state(*p) == Some('T')) == stopped);
    for (stop, resume, to) in [(20, 18, own), (19, 18, program)] {
        started.send(stop, to as i32);
        eventually("both stop", || both(true));
        started.send(resume, to as i32);
        eventually("both go on", || both(false));
    }
    std::fs::write(place.folder.path().join("stop"), "").unwrap();
    assert_eq!(started.child.wait().unwrap().code(), Some(0));
}

fn runtime_folder(program: u32) -> PathBuf {
    let environment = std::fs::read(format!("/proc/{program}/environ")).unwrap();
    let text = String::from_utf8_lossy(&environment).into_owned();
    let values = text.split('\0').filter_map(|entry| entry.split_once('='));
    let mut paths = values.flat_map(|(_, value)| value.split(':'));
    let inside = paths.find(|path| path.contains("/flatout-")).unwrap();
    let folder = Path::new(inside).ancestors().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("flatout-")
    });
    folder.unwrap().to_owned()
}

#[test]
fn nothing_is_left_when_flatout_is_killed() {
    let place = Place::new();
    // The shell waits for a child of its own.
    let script = "echo $$; sleep 300; echo no";
    let mut started = Started::new(&place, &["--quiet", "--", "sh", "-c", script]);
    let program = started.program;
    let folder = runtime_folder(program);
    let sleeps = || {
        let tasks = std::fs::read_to_string(format!("/proc/{program}/task/{program}/children"));
        tasks.unwrap_or_default().trim().parse::<u32>().ok()
    };
    eventually("the shell has a child", || sleeps().is_some());
    let child = sleeps().unwrap();
    assert!(folder.is_dir());
    started.child.kill().unwrap();
    started.child.wait().unwrap();
    eventually("the program ends", || state(program).is_none());
    eventually("its child ends", || state(child).is_none());
    eventually("the folder goes", || !folder.exists());
}

#[test]
fn the_program_goes_on_where_that_is_asked_for() {
    let place = Place::new();
    let script = "echo $$; while [ ! -e stop ]; do sleep 0.05; done; echo done > done";
    let mut started = Started::new(&place, &["--quiet", "--keep-running", "--", "sh", "-c", script]);
    started.child.kill().unwrap();
    started.child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(state(started.program).is_some());
    std::fs::write(place.folder.path().join("stop"), "").unwrap();
    eventually("it ends by itself", || place.folder.path().join("done").exists());
}

#[test]
fn the_program_runs_when_nothing_can_be_recorded() {
    let place = Place::new();
    let gone = place.folder.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let flatout = env!("CARGO_BIN_EXE_flatout");
    let from_gone = format!("cd gone && rmdir ../gone && {flatout} run -- sh -c 'echo ran; exit 3'");
    let cases: [(Command, &str); 2] = [
        (
            {
                let mut command = place.flatout(&["--", "sh", "-c", "echo ran; exit 3"]);
                command.env("FLATOUT_HOME", "/dev/null/home");
                command
            },
            "a home that is not a folder",
        ),
        (
            {
                let mut command = Command::new("sh");
                command.args(["-c", &from_gone]).current_dir(place.folder.path());
                command.env_remove("FLATOUT_HOME").env("HOME", "/dev/null/home");
                command
            },
            "a working directory that is gone",
        ),
    ];
    for (mut command, name) in cases {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n", "{name}: {said}");
        assert_eq!(output.status.code(), Some(3), "{name}: {said}");
        assert_eq!(said.matches("not recording").count(), 1, "{name}: {said}");
    }
    let quiet = place
        .flatout(&["--quiet", "--", "true"])
        .env("FLATOUT_HOME", "/dev/null/home")
        .output()
        .unwrap();
    assert_eq!(
        (quiet.status.code(), quiet.stderr.as_slice()),
        (Some(0), &b""[..])
    );
    // Settings could not be put in force: the program would not run as asked.
    let applied = place
        .flatout(&["--steps", "3", "--", "sh", "-c", "echo ran"])
        .env("FLATOUT_HOME", "/dev/null/home")
        .output()
        .unwrap();
    assert_eq!(
        (applied.status.code(), applied.stdout.as_slice()),
        (Some(2), &b""[..])
    );
}

#[test]
fn records_keep_no_secrets_and_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let secret = "SECRETARG456";
    let script = "sleep 1.5";
    let output = place
        .flatout(&["--", "sh", "-c", script, "sh", "--api-key", secret, "--lr=1"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(!String::from_utf8_lossy(&output.stderr).contains(secret));
    let info = place.record().info;
    assert_eq!(info.command[4..], ["--api-key", "***", "--lr=1"]);
    let runs = place.folder.path().join("home/runs");
    let folder = flatout_record::list(&runs)[0].folder.clone();
    let mut seen = false;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let text = std::fs::read(entry.path()).unwrap();
        let name = entry.file_name();
        assert!(!String::from_utf8_lossy(&text).contains(secret), "{name:?}");
        seen |= String::from_utf8_lossy(&text).contains("--api-key");
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name:?}");
    }
    assert!(seen);
}

#[test]
fn the_exit_code_comes_through_where_the_record_is_gone() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    for (name, spoils) in [
        ("gone.py", "shutil.rmtree(run)"),
        (
            "folder.py",
            "os.remove(os.path.join(run, 'run.json')); os.mkdir(os.path.join(run, 'run.json'))",
        ),
    ] {
        let code = format!(
            "import glob, os, shutil, sys\nfor run in glob.glob('home/runs/*'): {spoils}\nsys.exit(7)\n"
        );
        let script = place.script(name, &code);
        let arguments = [
            "--json",
            "out.json",
            "--",
            python.to_str().unwrap(),
            script.to_str().unwrap(),
        ];
        let output = place.flatout(&arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{name}: {text}");
        let trouble = text
            .lines()
            .filter(|line| line.starts_with("flatout: no summary of the record in "));
        assert_eq!(trouble.count(), 1, "{name}: {text}");
        assert!(!text.contains("panicked"), "{name}: {text}");
        let _ = std::fs::remove_dir_all(place.folder.path().join("home"));
    }
}
