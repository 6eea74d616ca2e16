//! `flatout lint --fix`: every file is as it was or as it should be, with a backup of what it was.

use crate::Kills;
use crate::process::{killed, leftovers, output};
use std::fs;
use std::path::{Path, PathBuf};

const FILES: usize = 40;

#[test]
fn lint_fix() {
    let mut kills = Kills::of("lint --fix");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut sources = sources();
    let fix = ["lint", "--fix", "--unsafe", "project"];
    // Those with something to fix.
    write(at, &sources);
    output(at, &fix);
    let mut index = 0..;
    sources.retain(|source| fs::read(file(at, index.next().unwrap())).unwrap() != *source);
    write(at, &sources);
    let begun = std::time::Instant::now();
    output(at, &fix);
    let longest = begun.elapsed();
    let fixed: Vec<Vec<u8>> = (0..FILES)
        .map(|index| fs::read(file(at, index)).unwrap())
        .collect();
    while let Some(moment) = kills.next(longest.mul_f64(1.1)) {
        write(at, &sources);
        killed(at, &fix, moment);
        let mut done = 0;
        for (index, fixed) in fixed.iter().enumerate() {
            let (now, before) = (fs::read(file(at, index)).unwrap(), source(&sources, index));
            if now == before {
                continue;
            }
            // Between two passes a file is whole, too.
            assert!(
                now == *fixed || is_python(&file(at, index)),
                "file {index} is half a file"
            );
            assert!(backup(at, index) == before, "file {index} has another backup");
            done += usize::from(now == *fixed);
        }
        let again = output(at, &fix);
        assert_eq!(leftovers(at), Vec::<PathBuf>::new());
        for (index, fixed) in fixed.iter().enumerate() {
            assert!(
                fs::read(file(at, index)).unwrap() == *fixed,
                "file {index} after the next start: {again:?}"
            );
            assert!(
                backup(at, index) == source(&sources, index),
                "backup {index} after the next start"
            );
        }
        kills.saw(match done {
            0 => "no file changed",
            FILES => "all files changed",
            _ => "some files changed",
        });
    }
}

fn file(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("project/file{index}.py"))
}

fn backup(folder: &Path, index: usize) -> Vec<u8> {
    fs::read(file(folder, index).with_extension("py.flatout-backup")).unwrap()
}

fn is_python(path: &Path) -> bool {
    let compile = "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')";
    let output = std::process::Command::new("python3")
        .args(["-c", compile])
        .arg(path)
        .output();
    output.unwrap().status.success()
}

fn source(sources: &[Vec<u8>], index: usize) -> Vec<u8> {
    sources[index % sources.len()].clone()
}

fn write(folder: &Path, sources: &[Vec<u8>]) {
    let _ = fs::remove_dir_all(folder.join("project"));
    fs::create_dir(folder.join("project")).unwrap();
    for index in 0..FILES {
        fs::write(file(folder, index), source(sources, index)).unwrap();
    }
}

/// The programs of the labeled faults.
fn sources() -> Vec<Vec<u8>> {
    let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults");
    let mut programs: Vec<PathBuf> = fs::read_dir(faults)
        .unwrap()
        .flatten()
        .map(|entry| entry.path().join("train.py"))
        .filter(|path| path.exists())
        .collect();
    programs.sort();
    programs
        .iter()
        .take(FILES)
        .map(|path| fs::read(path).unwrap())
        .collect()
}
