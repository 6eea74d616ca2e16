//! What a record is worth after the worst: its writer killed at any moment, its disk full.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_record::{EventKind, ExitInfo, HostSample, Record, RecordWriter, RunInfo, SCHEMA, Sample};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn recorder(folder: &Path, seconds: &str, interval: &str) -> Command {
    let here = std::env::current_exe().unwrap();
    let mut command = Command::new(here.parent().unwrap().with_file_name("examples").join("record"));
    command
        .arg(folder)
        .args([seconds, interval])
        .env("FLATOUT_NVML_LIB", here.with_file_name("libflatout_fake_nvml.so"))
        .stdout(Stdio::piped());
    command
}

#[test]
fn a_recorder_killed_at_any_moment_leaves_a_readable_record() {
    let mut samples = 0;
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let mut child = recorder(&run, "60", "0.05").spawn().unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap());
        told.read_line(&mut String::new()).unwrap();
        // At another moment of the tick each time, from at once on.
        std::thread::sleep(Duration::from_millis(round * 17));
        child.kill().unwrap();
        child.wait().unwrap();
        let data = Record::open(&run).unwrap().load();
        assert_eq!(data.info.exit, None);
        assert!(
            data.skipped.iter().all(|skipped| skipped.torn),
            "{:?}",
            data.skipped
        );
        samples += data.samples.len();
        assert!(data.samples.windows(2).all(|pair| pair[0].t < pair[1].t));
    }
    assert!(samples > 12, "{samples} samples in twelve rounds");
}

/// A file may not grow beyond this: the kernel's answer is the same as a full disk's, an error from `write`.
fn limit_file_size(command: &mut Command, bytes: u64) {
    use std::os::unix::process::CommandExt;
    // SAFETY: between fork and exec only these two system calls are made, which are allowed there.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit {
                rlim_cur: bytes,
                rlim_max: bytes,
            };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            if libc::setrlimit(libc::RLIMIT_FSIZE, &limit) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
}

#[test]
fn sampling_goes_on_when_nothing_more_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command = recorder(&run, "1.5", "0.05");
    limit_file_size(&mut command, 8 << 10);
    let mut child = command.spawn().unwrap();
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success());
    let last = told.lines().last().unwrap();
    let ticks: u64 = last.split(' ').next().unwrap().parse().unwrap();
    assert!(ticks >= 10, "{last}");
    assert!(!last.contains(" 0 lines lost"), "{last}");
    let data = Record::open(&run).unwrap().load();
    assert!(!data.samples.is_empty() && (data.samples.len() as u64) < ticks);
    assert_eq!(data.skipped, []);
    // The loss stands in the record itself, whose other files still had room.
    let lost =
        |event: &flatout_record::Event| matches!(event.kind, EventKind::Lost { lines, .. } if lines > 0);
    assert!(data.events.iter().any(lost));
    assert!(data.info.exit.is_some());
}

/// On a disk that is really full. Needs the right to mount, so it says so and passes where that is missing.
#[test]
fn a_full_disk_loses_lines_and_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        let status = Command::new("mount")
            .args(arguments)
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=128k", "flatout-test"]) {
        eprintln!("no right to mount a small disk; not tested");
        return;
    }
    let result = std::panic::catch_unwind(|| fill(folder.path()));
    let unmounted = Command::new("umount").arg(folder.path()).status().unwrap();
    assert!(unmounted.success());
    result.unwrap();
}

fn fill(disk: &Path) {
    let info = RunInfo {
        schema: SCHEMA,
        ..RunInfo::default()
    };
    let mut writer = RecordWriter::create(&disk.join("run"), info).unwrap();
    let sample = |t: f64| Sample {
        t,
        host: HostSample {
            core_util: Some((0..64).map(|core| (t * f64::from(core)).fract()).collect()),
            ..HostSample::default()
        },
        ..Sample::default()
    };
    let mut t = 0.0;
    while writer.lost().lines < 20 {
        writer.sample(&sample(t));
        t += 1.0;
        assert!(t < 1e5, "the disk never filled");
    }
    assert!(
        writer.lost().reason.contains("No space"),
        "{}",
        writer.lost().reason
    );
    // Room again (nothing else is on this disk, so the disk grows): the record goes on and says what is missing.
    let grown = Command::new("mount")
        .args(["-o", "remount,size=1m"])
        .arg(disk)
        .status()
        .unwrap();
    assert!(grown.success());
    writer.sample(&sample(t));
    writer.finish(ExitInfo {
        t,
        code: Some(0),
        signal: None,
    });
    let lost = writer.lost().lines;
    drop(writer);
    let data = Record::open(&disk.join("run")).unwrap().load();
    assert_eq!(data.skipped, []);
    assert_eq!(data.samples.last().unwrap().t, t);
    let told: u64 = data
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Lost { lines, .. } => Some(lines),
            _ => None,
        })
        .sum();
    assert_eq!(told, lost);
}
