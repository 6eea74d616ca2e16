//! A program that fills its disk: a small file system of its own, so that it is really full.

use crate::support::plain_python;
use crate::trying::{STEPS, Try, kept, words};
use std::path::Path;
use std::process::Output;

/// Writes a file to the end of the disk, from the step on that is given.
const FILLS: &str = "import sys, time, flatout
batch = int(sys.argv[1])
for step in range(200000):
    time.sleep(0.002 + 0.00002 * batch)
    flatout.step(samples=batch)
    if batch > 8 and step == 20:
        with open('big.bin', 'wb') as file:
            while True:
                file.write(b'0' * (1 << 20))
                file.flush()
                time.sleep(PAUSE)
";

/// `flatout tune` with this folder on a disk of 48 MB, in name spaces of its own, which end with it. `None`
/// where the kernel does not allow that and the tests may run without it.
fn on_a_small_disk(place: &Try, before: &str, name: &str) -> Option<Output> {
    let python = plain_python()?;
    let folder = place.folder.path();
    let small = folder.join("small");
    std::fs::create_dir_all(&small).unwrap();
    let mount = format!("mount -t tmpfs -o size=48m tmpfs {}", small.display());
    let tune = format!(
        "{} --lang en tune --trial-seconds 0.4 --max-trials 3 --knobs batch_size -- {} {}/{name} '{{batch_size=8}}'",
        env!("CARGO_BIN_EXE_flatout"),
        python.display(),
        small.display()
    );
    // What is there when all is over is listed from inside: the disk is gone afterwards.
    let script = format!(
        "{mount} && cd {0} && cp ../*.py . && echo precious > kept.txt && export FLATOUT_HOME={0}/home TMPDIR={0} && {before} {tune}; code=$?; \
         echo left: $(find . -name 'saved*') $(cat kept.txt); exit $code",
        small.display()
    );
    for spaces in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
        let tried = std::process::Command::new("unshare")
            .args(spaces)
            .args(["sh", "-c", &mount])
            .output();
        if tried.is_ok_and(|tried| tried.status.success()) {
            let run = std::process::Command::new("unshare")
                .args(spaces)
                .args(["sh", "-c", &script])
                .current_dir(folder)
                .env("PYTHONPATH", crate::support::package())
                .output();
            return Some(run.unwrap());
        }
    }
    flatout_testing::require("mount", "run the tests as root, or enable user namespaces", None)
}

/// Processes that were started with a file of this folder.
fn started_here(folder: &Path) -> Vec<String> {
    let named = folder.to_string_lossy().into_owned();
    let commands = std::fs::read_dir("/proc").unwrap().flatten();
    commands
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
        .filter(|command| command.contains(&named))
        .collect()
}

fn assert_nothing_left(place: &Try, text: &str) {
    assert!(text.contains("left: precious"), "{text}");
    assert_eq!(started_here(place.folder.path()), Vec::<String>::new());
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
}

/// Slowly: it is stopped before the disk is full.
#[test]
fn a_trial_that_fills_the_disk_is_stopped_and_refused() {
    let place = Try::new();
    place.script("fills.py", &FILLS.replace("PAUSE", "0.02"));
    let Some(output) = on_a_small_disk(&place, "", "fills.py") else {
        return;
    };
    let text = words(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("stopped because it was filling the disk"), "{text}");
    assert!(kept(&text), "{text}");
    assert_nothing_left(&place, &text);
}

/// At once: it meets the end of the disk itself.
#[test]
fn reports_a_full_disk_during_a_trial() {
    let place = Try::new();
    place.script("fills.py", &FILLS.replace("PAUSE", "0"));
    let Some(output) = on_a_small_disk(&place, "", "fills.py") else {
        return;
    };
    let text = words(&output);
    // Who sees it first is a race: the program, flatout, which cannot write either, or its watch over what is free.
    let said = [
        "the disk is full",
        "No space left on device",
        "it was filling the disk",
    ];
    assert!(said.iter().any(|words| text.contains(words)), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    assert_nothing_left(&place, &text);
}

/// The disk is full from the beginning: nothing can be recorded.
#[test]
fn reports_a_full_disk_at_the_start() {
    let place = Try::new();
    place.script("steps.py", STEPS);
    let Some(output) = on_a_small_disk(&place, "cat /dev/zero > full.bin 2>/dev/null;", "steps.py") else {
        return;
    };
    let text = words(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("No space left on device") && !text.contains("panicked"),
        "{text}"
    );
    assert_nothing_left(&place, &text);
}
