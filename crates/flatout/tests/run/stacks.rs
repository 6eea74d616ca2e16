//! Where a program stands, read from outside.

use crate::support::{Place, plain_python, torch_python};
use flatout_record::{Phase, RunData, StackCount};

const WAITING: &str = "
import time, flatout
def read_slowly():
    time.sleep(0.02)
for _ in range(150):
    with flatout.phase('data'):
        read_slowly()
    flatout.step()
";

fn stacks(data: &RunData) -> Vec<&StackCount> {
    data.stacks.iter().flat_map(|tick| &tick.stacks).collect()
}

fn stands_in(stack: &StackCount, function: &str) -> bool {
    stack
        .frames
        .iter()
        .any(|frame| frame.starts_with(&format!("{function} (")))
}

#[test]
fn waiting_is_charged_to_the_programs_own_line() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    place.script("train.py", WAITING);
    let (output, data) = place.run(&python, &["--quiet"], &["train.py"]);
    assert_eq!(output.status.code(), Some(0));
    let found = stacks(&data);
    let slow: u64 = found
        .iter()
        .filter(|stack| stands_in(stack, "read_slowly") && stack.phase == Some(Phase::Data))
        .map(|stack| stack.count)
        .sum();
    let all: u64 = found.iter().map(|stack| stack.count).sum();
    // Where the machine allows no tracing at all the record says so instead.
    if !found.is_empty() {
        assert!(slow * 2 > all, "{slow} of {all}: {found:?}");
        // The program is not stopped to be read, so that now and then a stack is torn; as a rule it is whole.
        let torn: u64 = found
            .iter()
            .filter(|stack| stands_in(stack, "phase") && stack.frames.len() == 1)
            .map(|stack| stack.count)
            .sum();
        assert!(torn * 10 <= all, "{torn} of {all}: {found:?}");
    } else {
        let told = data
            .events
            .iter()
            .any(|event| format!("{event:?}").contains("cannot be read"));
        assert!(told, "neither stacks nor a reason");
    }
}

#[test]
fn stacks_can_be_left_out() {
    let Some(python) = plain_python() else { return };
    let place = Place::new();
    place.script("train.py", WAITING);
    let (_, data) = place.run(&python, &["--quiet", "--no-stacks"], &["train.py"]);
    assert!(data.stacks.is_empty());
}

const WORKERS: &str = "
import time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        return torch.tensor(decode(index))
def decode(index):
    time.sleep(0.03)
    return float(index)
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for x in DataLoader(Slow(), batch_size=4, num_workers=1):
    (x.mean() * weight).sum().backward()
    optimizer.step()
";

#[test]
fn a_finding_about_batches_names_the_line_that_makes_them() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", WORKERS);
    let (output, data) = place.run(&python, &["--steps", "90"], &["train.py"]);
    let found = stacks(&data);
    if found.is_empty() {
        return;
    }
    let in_worker = found
        .iter()
        .find(|stack| stack.worker && stands_in(stack, "decode"));
    let in_worker = in_worker.expect("a worker's stack");
    assert!(
        !stands_in(in_worker, "<module>"),
        "{in_worker:?}: what it was forked from is not its own"
    );
    let line = 1 + WORKERS
        .lines()
        .position(|line| line.contains("time.sleep"))
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("train.py:{line}")), "{said}");
    let timeline = place.timelines().pop().expect("a step event by event");
    assert!(timeline.steps > 0 && !timeline.workers.is_empty(), "{timeline:?}");
    let named = |stack: usize| {
        timeline.stacks[stack]
            .iter()
            .any(|frame| frame.contains("train.py"))
    };
    assert!(
        timeline.host.iter().any(|slice| named(slice.stack)),
        "{timeline:?}"
    );
}

const REOPENS: &str = "
import os, tempfile, torch
from torch.utils.data import DataLoader, Dataset
folder = tempfile.mkdtemp()
path = os.path.join(folder, 'scale.pt')
torch.save([torch.zeros(64) for _ in range(64)], path)
class Rows(Dataset):
    def __init__(self, path):
        self.path = path
    def __len__(self):
        return 100000
    def __getitem__(self, index):
        scale = torch.load(self.path)
        return scale[0] + index
weight = torch.nn.Parameter(torch.zeros(64))
optimizer = torch.optim.SGD([weight], lr=0.1)
for x in DataLoader(Rows(path), batch_size=16):
    (x * weight).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
";

#[test]
fn findings_name_the_lint_rule_of_their_line() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", REOPENS);
    let (output, data) = place.run(&python, &["--steps", "200"], &["train.py"]);
    if stacks(&data).is_empty() {
        return;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("file-reopened-in-getitem also reports"), "{said}");
}
