//! `flatout tune --write`: the configuration is as it was or whole, no trial goes on, and what trials saved is removed.

use crate::Kills;
use crate::process::{completes, killed, leftovers, output};
use std::fs;
use std::path::{Path, PathBuf};

const CONFIGURATION: &str = "# kept\nbatch_size: 8\nnum_workers: 0\n";

/// Has a helper process, saves what it learned, and needs less time per sample for larger batches, whatever else the machine does.
const PROGRAM: &str = "import subprocess, sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
text = open(sys.argv[sys.argv.index('--config') + 1]).read()
value = lambda name: int(text.split(name + ':')[1].split()[0])
helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
data = TensorDataset(torch.randn(1024, 16), torch.randn(1024, 1))
while True:
    for x, y in DataLoader(data, batch_size=value('batch_size'), num_workers=value('num_workers')):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        torch.save(model.state_dict(), 'last.pt')
        time.sleep(0.02)
";

#[test]
fn tune() {
    let Some(python) = flatout_testing::torch_python() else {
        return;
    };
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
        "0.3",
        "--knobs",
        "batch_size",
        "--config",
        "c.yaml",
        "--write",
        "--",
        python.to_str().unwrap(),
        "program.py",
        "--config",
        "c.yaml",
    ];
    let search = || {
        clear(at);
        fs::write(&configuration, CONFIGURATION).unwrap();
        completes(at, &arguments)
    };
    let longest = search();
    let written = fs::read_to_string(&configuration).unwrap();
    assert!(is_whole(&written), "{written}");
    while let Some(moment) = kills.next(longest.mul_f64(1.1)) {
        clear(at);
        fs::write(&configuration, CONFIGURATION).unwrap();
        let running = killed(at, &arguments, moment);
        let trials = fs::read_dir(at.join("home/tune")).is_ok_and(|mut sessions| sessions.next().is_some());
        let now = fs::read_to_string(&configuration).unwrap();
        assert!(is_whole(&now), "{now}");
        if now != CONFIGURATION {
            let backup = fs::read_to_string(at.join("c.yaml.flatout-backup")).unwrap();
            assert_eq!(backup, CONFIGURATION);
        }
        assert!(
            !at.join("last.pt").exists(),
            "a trial wrote where the program does"
        );
        // The next search, of whatever program, removes what the trials saved.
        output(at, &["tune", "--", "false"]);
        assert_eq!(
            leftovers(&at.join("home")),
            Vec::<PathBuf>::new(),
            "after {moment:?}"
        );
        kills.saw(match (running, now == CONFIGURATION, trials) {
            (false, _, _) => "had ended",
            (true, false, _) => "configuration written",
            (true, true, true) => "configuration unchanged, in a trial",
            (true, true, false) => "configuration unchanged, before the first trial",
        });
    }
    search();
    assert_eq!(leftovers(at), Vec::<PathBuf>::new());
}

fn is_whole(configuration: &str) -> bool {
    let lines: Vec<&str> = configuration.lines().collect();
    lines.len() == 3
        && lines[0] == "# kept"
        && lines[1]
            .strip_prefix("batch_size: ")
            .is_some_and(|size| size.parse::<u32>().is_ok())
        && lines[2] == "num_workers: 0"
        && configuration.ends_with('\n')
}

/// Of the searches before.
fn clear(folder: &Path) {
    let _ = fs::remove_dir_all(folder.join("home"));
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains(".flatout-backup") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}
