//! `flatout tune --write`: the configuration is as it was or whole, and no trial goes on.

use crate::Kills;
use crate::process::{completes, killed, leftovers};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const CONFIGURATION: &str = "# kept\nbatch_size: 8\nnum_workers: 0\n";

/// Reads its batch size, and needs less time per sample for larger ones.
const PROGRAM: &str = "import sys, time
text = open(sys.argv[sys.argv.index('--config') + 1]).read()
batch = int(text.split('batch_size:')[1].split()[0])
for step in range(100000):
    time.sleep(0.002 + batch * 1e-5)
    print('step %d loss %.3f' % (step, 1 / (step + 1)), flush=True)
";

#[test]
#[ignore = "tune sees no steps of this program and gives up; it needs one with torch"]
fn tune() {
    let mut kills = Kills::of("tune");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("program.py"), PROGRAM).unwrap();
    let configuration = at.join("c.yaml");
    let arguments = [
        "tune",
        "--max-trials",
        "2",
        "--trial-seconds",
        "1",
        "--budget",
        "15s",
        "--config",
        "c.yaml",
        "--write",
        "--",
        "python3",
        "program.py",
        "--config",
        "c.yaml",
    ];
    while let Some(moment) = kills.next(Duration::from_secs(5)) {
        fs::write(&configuration, CONFIGURATION).unwrap();
        let running = killed(at, &arguments, moment);
        let now = fs::read_to_string(&configuration).unwrap();
        if now == CONFIGURATION {
            kills.saw(if running {
                "configuration unchanged"
            } else {
                "ended by itself"
            });
        } else {
            assert!(
                now.starts_with("# kept\nbatch_size: ") && now.ends_with('\n'),
                "{now}"
            );
            kills.saw("configuration written");
        }
    }
    // The next search removes what was left in the records of the trials.
    fs::write(&configuration, CONFIGURATION).unwrap();
    completes(at, &arguments);
    assert_eq!(leftovers(at), Vec::<PathBuf>::new());
}
