//! `monitor`, `replay` and `runs` as a person meets them: exit codes, what goes to stdout and what to stderr.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// flatout in a folder of its own, without a GPU and without colour.
fn flatout(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
    command
        .args(arguments)
        .current_dir(home)
        .env("FLATOUT_HOME", home.join("home"))
        .env("FLATOUT_NVML_LIB", "/nonexistent/libnvidia-ml.so.1")
        .env("LANG", "C")
        .env_remove("LC_ALL")
        .env_remove("LC_MESSAGES")
        .env_remove("CUDA_VISIBLE_DEVICES");
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    flatout(home, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exit code 2, an error that names the thing, a hint, and nothing on stdout.
fn fails(home: &Path, arguments: &[&str], named: &str) {
    let output = run(home, arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert!(
        errors.contains("error: ") && errors.contains(named),
        "{arguments:?}: {errors}"
    );
    assert!(errors.contains("hint: "), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

const SHORT: [&str; 4] = ["--interval", "0.05", "--duration", "0.4"];

fn monitor<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["monitor"]
        .into_iter()
        .chain(SHORT)
        .chain(more.iter().copied())
        .collect()
}

#[test]
fn without_a_gpu_the_host_is_watched_recorded_and_judged() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), &monitor(&["--log", "log.csv"]));
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(
        out.contains("  host   ") && out.contains("Verdict after "),
        "{out}"
    );
    assert_eq!(errors.matches("no GPU: ").count(), 1, "{errors}");
    assert!(
        errors.contains("hint: ") && errors.contains("record: "),
        "{errors}"
    );
    assert!(
        fs::read_to_string(home.path().join("log.csv"))
            .unwrap()
            .lines()
            .count()
            > 2
    );

    let listed = run(home.path(), &["runs"]);
    assert!(
        text(&listed.stdout).contains("-monitor"),
        "{}",
        text(&listed.stdout)
    );
    let listed: serde_json::Value =
        serde_json::from_slice(&run(home.path(), &["runs", "--json"]).stdout).unwrap();
    assert_eq!(
        (listed["schema"].as_u64(), listed["runs"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );

    let replayed = run(home.path(), &["replay", "last"]);
    let verdict = |text: &str| text[text.find("Verdict after").unwrap()..].to_owned();
    assert_eq!(verdict(&text(&replayed.stdout)), verdict(&out));
}

#[test]
fn json_lines_are_objects_and_end_with_the_verdict() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), &monitor(&["--json", "--no-record"]));
    let out = text(&output.stdout);
    let kinds: Vec<String> = out
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(
        kinds.iter().filter(|kind| *kind == "sample").count() >= 2,
        "{kinds:?}"
    );
    assert_eq!(kinds.last().map(String::as_str), Some("verdict"));
    assert!(!home.path().join("home").exists());
    let output = run(home.path(), &monitor(&["--csv", "--no-record"]));
    assert!(text(&output.stdout).starts_with("t,unix_ms,gpu,util,"));
    assert!(text(&output.stderr).contains("Verdict after"));
}

#[test]
fn bad_input_is_named_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fails(
        home,
        &["monitor", "--interval", "0"],
        "0 s is not a valid interval",
    );
    fails(
        home,
        &["monitor", "--duration", "-1"],
        "-1 s is not a valid duration",
    );
    fails(home, &["monitor", "--gpu", "one"], "`one`");
    fails(home, &["monitor", "--gpu", "0"], "no NVIDIA driver library");
    fails(home, &["monitor", "--require-gpu"], "no NVIDIA driver library");
    fails(home, &["monitor", "--pid", "4294967295"], "no process 4294967295");
    fails(home, &monitor(&["--log", "missing/log.csv"]), "missing/log.csv");
    fails(home, &["replay", "nothing-here"], "nothing-here");
    fails(home, &["replay", "."], "not a run record");
    fails(home, &["runs", "prune"], "specify which records are old");
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    fails(
        home,
        &monitor(&["--prometheus", &address, "--no-record"]),
        "already in use",
    );
    fails(
        home,
        &monitor(&["--prometheus", "nonsense", "--no-record"]),
        "`nonsense`",
    );
    fs::write(home.join("file"), "").unwrap();
    fails(home, &monitor(&["--record", "file/record"]), "file/record");
}

#[test]
fn a_record_is_not_written_over_and_a_foreign_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert_eq!(run(home, &monitor(&["--record", "first"])).status.code(), Some(0));
    fails(
        home,
        &monitor(&["--record", "first"]),
        "`first` already contains a run record",
    );
    fs::create_dir(home.join("foreign")).unwrap();
    fs::write(home.join("foreign/run.json"), "{\"half").unwrap();
    fails(home, &["replay", "foreign"], "foreign");
    fs::write(
        home.join("foreign/run.json"),
        "{\"schema\":99,\"id\":\"\",\"name\":\"\",\"kind\":\"\",\"started_unix_ms\":0}",
    )
    .unwrap();
    fails(home, &["replay", "foreign"], "newer flatout");
}

#[test]
fn replays_a_torn_record_and_reports_it() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    run(home, &monitor(&["--record", "torn"]));
    let samples = home.join("torn/samples.jsonl");
    let whole = fs::read(&samples).unwrap();
    fs::write(&samples, &whole[..whole.len() - 5]).unwrap();
    let output = run(home, &["replay", "torn"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stderr).contains("incomplete"),
        "{}",
        text(&output.stderr)
    );
    let chinese = run(home, &["replay", "torn", "--lang", "zh-CN"]);
    assert!(text(&chinese.stdout).contains("的结论") && text(&chinese.stderr).contains("不完整"));
}

#[test]
fn a_signal_ends_it_in_order_and_a_closed_pipe_quietly() {
    let home = tempfile::tempdir().unwrap();
    let mut child = flatout(
        home.path(),
        &["monitor", "--interval", "0.05", "--record", "killed"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let begun = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(25));
        fs::metadata(home.path().join("killed/samples.jsonl")).is_ok_and(|data| data.len() > 0)
    });
    assert!(begun);
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("Verdict after"));
    let info: serde_json::Value =
        serde_json::from_slice(&fs::read(home.path().join("killed/run.json")).unwrap()).unwrap();
    assert!(info["exit"]["t"].as_f64().is_some());

    child = flatout(home.path(), &["monitor", "--interval", "0.05", "--no-record"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        !text(&output.stderr).contains("panic"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn old_records_are_pruned_only_on_request() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for _ in 0..2 {
        run(home, &monitor(&[]));
    }
    let count = || fs::read_dir(home.join("home/runs")).unwrap().count();
    let shown = run(home, &["runs", "prune", "--keep", "1"]);
    assert!(
        text(&shown.stderr).contains("would delete 1 record,"),
        "{}",
        text(&shown.stderr)
    );
    assert_eq!(count(), 2);
    run(home, &["runs", "prune", "--keep", "1", "--yes"]);
    assert_eq!(count(), 1);
}

/// The stand-in driver lies beside the test, because it is a dev-dependency.
fn with_gpus(home: &Path, gpus: &str, arguments: &[&str]) -> Command {
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libflatout_fake_nvml.so");
    assert!(library.exists(), "{} is missing", library.display());
    let mut command = flatout(home, arguments);
    command
        .env("FLATOUT_NVML_LIB", library)
        .env("FLATOUT_FAKE_NVML_GPUS", gpus);
    command
}

#[test]
fn eight_gpus_are_watched_and_judged() {
    let home = tempfile::tempdir().unwrap();
    let output = with_gpus(
        home.path(),
        "8",
        &["monitor", "--interval", "0.05", "--duration", "1", "--no-record"],
    )
    .output()
    .unwrap();
    let out = text(&output.stdout);
    assert!(out.contains("GPU 7 ") && out.contains("/700W"), "{out}");
    assert!(
        out.contains("power vs limit") && out.contains("GPU         "),
        "{out}"
    );
}

#[test]
fn faults_decide_the_exit_code_only_when_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let code = |more: &[&str]| {
        let mut arguments = vec![
            "monitor",
            "--interval",
            "0.05",
            "--duration",
            "1.5",
            "--no-record",
        ];
        arguments.extend(more);
        let output = with_gpus(home.path(), "2", &arguments).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    // The second GPU of the built-in trace works a third of the time, the first all of it.
    assert_eq!(code(&["--gpu", "1"]).0, Some(0));
    assert_eq!(
        code(&["--gpu", "0", "--fail-on", "low-utilisation,hot"]).0,
        Some(0)
    );
    let (failed, errors) = code(&["--gpu", "1", "--fail-on", "low-utilization"]);
    assert_eq!(failed, Some(1));
    assert!(errors.contains("failed: GPU 1 is low-utilization"), "{errors}");
    let (wrong, errors) = code(&["--gpu", "9"]);
    assert_eq!(wrong, Some(2));
    assert!(
        errors.contains("there is no GPU 9; the driver reports 2 GPUs") && errors.contains("hint: "),
        "{errors}"
    );
}

#[test]
fn a_daemon_serves_only_prometheus() {
    let home = tempfile::tempdir().unwrap();
    let mut child = with_gpus(
        home.path(),
        "2",
        &[
            "monitor",
            "--serve-only",
            "--prometheus",
            "127.0.0.1:0",
            "--interval",
            "0.05",
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address = line
        .trim()
        .strip_prefix("serving http://")
        .and_then(|rest| rest.strip_suffix("/metrics"))
        .unwrap()
        .to_owned();
    let served = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let mut page = String::new();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let _ = stream.read_to_string(&mut page);
        page.contains("flatout_gpu_") && page.contains("gpu=\"1\"")
    });
    Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(served);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(!home.path().join("home").exists());
}
