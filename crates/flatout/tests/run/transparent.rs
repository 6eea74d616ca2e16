//! The program's own behaviour: output, exit, signals, forks, sitecustomize.

use crate::support::{Place, plain_python};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The same program without and with flatout; the record's own line on stderr is silenced.
fn both(place: &Place, python: &Path, arguments: &[&str]) -> (Output, Output) {
    let alone = Command::new(python)
        .args(arguments)
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let mut with = vec!["--quiet", "--", python.to_str().unwrap()];
    with.extend(arguments);
    (alone, place.flatout(&with).output().unwrap())
}

fn same(script: &str) {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    let path = place.script("program.py", script);
    let (alone, with) = both(&place, &python, &[path.to_str().unwrap(), "--flag", "-x"]);
    assert_eq!(alone.status.code(), with.status.code());
    assert_eq!(alone.status.signal(), with.status.signal());
    assert_eq!(alone.stdout, with.stdout);
    assert_eq!(
        String::from_utf8_lossy(&alone.stderr),
        String::from_utf8_lossy(&with.stderr)
    );
}

#[test]
fn binary_output_arguments_and_exit_code() {
    same(
        "import sys, os\nos.write(1, bytes(range(256)) * 999)\nprint(sys.argv[1:], file=sys.stderr)\nsys.exit(37)",
    );
}

#[test]
fn what_a_program_can_see_of_python() {
    same(
        "import sys\nprint([p for p in sys.path[1:]])\nprint('sitecustomize' in sys.modules, 'json' in sys.modules, 'torch' in sys.modules)",
    );
}

#[test]
fn death_by_signal_is_ours_too() {
    for signal in ["SIGKILL", "SIGTERM", "SIGABRT", "SIGSEGV"] {
        same(&format!(
            "import os, signal, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nos.kill(os.getpid(), signal.{signal})"
        ));
    }
}

#[test]
fn forks_execs_and_daemons() {
    same(
        "import os\npid = os.fork()\nif pid == 0:\n    os._exit(3)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    );
    same("import os\nos.execlp('sh', 'sh', '-c', 'echo from sh; exit 5')");
    same(
        "import os, sys\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.close(1); os.close(2)\n        import time; time.sleep(0.3)\n    os._exit(0)\nos.wait()\nprint('left a daemon')",
    );
}

#[test]
fn an_uncaught_error_prints_the_same_trace() {
    same("def f():\n    raise ValueError('own')\nf()");
}

#[test]
fn profilers_and_tracers_of_the_program_work() {
    same(
        "import sys\nseen = []\ndef tracer(frame, event, arg):\n    seen.append(event)\n    return tracer\nsys.settrace(tracer)\ndef f():\n    return 1\nf()\nsys.settrace(None)\nprint(seen)",
    );
    same(
        "import cProfile\nprofile = cProfile.Profile()\nprofile.enable()\nsum(range(10))\nprofile.disable()\nprint(len(profile.getstats()))",
    );
}

#[test]
fn the_programs_own_sitecustomize_runs() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    let own = place.folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(
        own.join("sitecustomize.py"),
        "import builtins\nbuiltins.mark = __file__",
    )
    .unwrap();
    let script = "import sitecustomize\nprint(mark, sitecustomize.__file__)";
    let alone = Command::new(&python)
        .args(["-c", script])
        .env("PYTHONPATH", &own)
        .output()
        .unwrap();
    let with = place
        .flatout(&["--quiet", "--", python.to_str().unwrap(), "-c", script])
        .env("PYTHONPATH", &own)
        .output()
        .unwrap();
    assert!(!alone.stdout.is_empty());
    assert_eq!(alone.stdout, with.stdout);
}

#[test]
fn stdin_reaches_the_program() {
    use std::io::Write;
    let place = Place::new();
    let mut child = place
        .flatout(&["--quiet", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"bytes \x00\xff through")
        .unwrap();
    assert_eq!(
        child.wait_with_output().unwrap().stdout,
        b"bytes \x00\xff through"
    );
}

#[test]
fn a_signal_to_flatout_reaches_the_program() {
    use std::io::{BufRead, BufReader};
    let place = Place::new();
    let script = "trap 'echo caught; exit 4' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = place
        .flatout(&["--quiet", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(lines.next().unwrap().unwrap(), "caught");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn a_program_that_does_not_exist_leaves_no_record() {
    let place = Place::new();
    let output = place.flatout(&["--", "no-such-program-here"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-program-here"));
    let runs = place.folder.path().join("home/runs");
    assert!(flatout_record::list(&runs).is_empty());
}

#[test]
fn a_profiler_around_the_program_changes_nothing() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    place.script(
        "program.py",
        "import json\nprint(json.dumps([1, 2]))\nraise SystemExit(3)",
    );
    let (alone, with) = both(
        &place,
        &python,
        &["-m", "cProfile", "-o", "out.prof", "program.py"],
    );
    assert_eq!(alone.stdout, with.stdout);
    assert_eq!(alone.status.code(), with.status.code());
    assert!(place.folder.path().join("out.prof").exists());
    // Coverage by tracing every line, as the coverage tools do it.
    let traced = [
        "-m",
        "trace",
        "--count",
        "--missing",
        "-C",
        "counts",
        "program.py",
    ];
    let (alone, with) = both(&place, &python, &traced);
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        String::from_utf8_lossy(&with.stdout)
    );
    assert_eq!(alone.status.code(), with.status.code());
}

/// Every line that runs is seen, as a coverage tool sees it: none of them may have a source that is gone when it looks for it.
const FOLLOWED: &str = "
import sys
names = set()
def follow(frame, event, argument):
    names.add(frame.f_code.co_filename)
    return None
sys.settrace(follow)
import flatout, torch
from torch.utils.data import DataLoader, TensorDataset
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.randn(24, 1)), batch_size=8):
    (x * weight).sum().backward()
    optimizer.step()
flatout.step()
sys.settrace(None)
print(sorted(name for name in names if name == '<flatout>' or '/flatout-' in name))
";

#[test]
fn tools_that_follow_lines_find_no_file_that_is_gone_later() {
    let Some(python) = crate::support::torch_python() else {
        return;
    };
    let place = Place::new();
    place.script("program.py", FOLLOWED);
    let (output, _) = place.run(&python, &["--quiet", "--no-stacks"], &["program.py"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "['<flatout>']\n");
}

/// A program under torch's own profiler, and one under cProfile, with steps in it.
const PROFILED: &str = "
import cProfile, torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    for (x,) in DataLoader(TensorDataset(torch.randn(320, 4)), batch_size=8):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
with torch.profiler.profile() as profiler:
    print(train())
names = [event.key for event in profiler.key_averages() if 'Optimizer.step' in event.key]
print(names)
profile = cProfile.Profile()
print(profile.runcall(train))
print(len(profile.getstats()) > 10)
";

#[test]
fn the_programs_own_profilers_see_the_program() {
    let Some(python) = crate::support::torch_python() else {
        return;
    };
    let place = Place::new();
    place.script("program.py", PROFILED);
    let alone = Command::new(&python)
        .arg("program.py")
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let (with, data) = place.run(&python, &["--profile", "--no-stacks"], &["program.py"]);
    assert!(String::from_utf8_lossy(&alone.stdout).contains("Optimizer.step"));
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        String::from_utf8_lossy(&with.stdout)
    );
    assert_eq!(data.steps.iter().map(|tick| tick.steps).sum::<u64>(), 80);
    // Two profilers cannot run at once: the program keeps its own.
    let said = String::from_utf8_lossy(&with.stderr);
    assert!(
        data.profile.is_some() || said.contains("runs its own profiler"),
        "{said}"
    );
}

/// A program that changes torch itself: its own functions are called as often as without the probe.
const PATCHES_TORCH: &str = "
import torch
from torch.utils.data import DataLoader, TensorDataset
calls = []
item, step = torch.Tensor.item, torch.optim.SGD.step
def own_item(self):
    calls.append('item')
    return item(self)
def own_step(self, closure=None):
    calls.append('step')
    return step(self, closure)
torch.Tensor.item, torch.optim.SGD.step = own_item, own_step
class Loader(DataLoader):
    def __iter__(self):
        calls.append('iter')
        return super().__iter__()
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in Loader(TensorDataset(torch.randn(24, 4)), batch_size=8):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(calls)
";

#[test]
fn does_not_disturb_a_program_that_patches_torch() {
    let Some(python) = crate::support::torch_python() else {
        return;
    };
    let place = Place::new();
    place.script("program.py", PATCHES_TORCH);
    let (alone, with) = both(&place, &python, &["program.py"]);
    assert!(!alone.stdout.is_empty());
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        String::from_utf8_lossy(&with.stdout)
    );
    let steps: u64 = place.record().steps.iter().map(|tick| tick.steps).sum();
    assert_eq!(steps, 3);
}
