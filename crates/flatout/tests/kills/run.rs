//! `flatout run`: the program ends with it, and its record can be read.

use crate::Kills;
use crate::process::{completes, killed, leftovers};
use flatout_record::Record;
use flatout_report::digest::Digest;
use std::fs;
use std::time::Duration;

/// A loop with a helper process, as a DataLoader's worker would be.
const PROGRAM: &str = "import subprocess, sys, time
helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])
for step in range(100000):
    print('Epoch %d/9: loss=0.%d' % (step, step), flush=True)
    time.sleep(0.01)
";

#[test]
fn run() {
    let mut kills = Kills::of("run");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.py"), PROGRAM).unwrap();
    let arguments = ["run", "--name", "killed", "--", "python3", "program.py"];
    // Starting takes about a second in debug builds.
    while let Some(moment) = kills.next(Duration::from_secs(3)) {
        assert!(
            killed(folder.path(), &arguments, moment),
            "the program ended by itself"
        );
        let runs = folder.path().join("home/runs");
        let names = fs::read_dir(&runs).into_iter().flatten().flatten();
        let records: Vec<_> = names.map(|entry| entry.path()).collect();
        let record = records
            .iter()
            .find(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'));
        let seen = match record {
            Some(record) => {
                // What has the name of a record is one.
                let digest = Digest::read(&Record::open(record).unwrap());
                assert_eq!(digest.info.name, "killed");
                "record readable"
            }
            None if records.is_empty() => "killed before its record began",
            None => "killed while its record began",
        };
        completes(folder.path(), &["run", "--quiet", "--", "true"]);
        assert_eq!(leftovers(folder.path()), Vec::<std::path::PathBuf>::new());
        assert_eq!(
            flatout_record::list(&runs).len(),
            1 + usize::from(record.is_some())
        );
        fs::remove_dir_all(runs).unwrap();
        kills.saw(seen);
    }
}
