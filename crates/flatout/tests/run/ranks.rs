//! Several ranks in one run: who waits for whom, why, and what a program shows that hangs. Stragglers are planted with sleeps, which
//! take as long on a loaded machine as on an idle one.

use super::support::{Place, torch_python};
use flatout_core::Kind;
use flatout_diagnose::{Diagnosis, diagnose};
use flatout_record::{EventKind, RunData};
use std::path::Path;
use std::process::Output;

/// The last rank has the fault. Every rank sleeps 10 ms per batch, so that steps are long compared with what a busy machine adds.
const TRAIN: &str = "
import os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

fault = sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group('gloo')
slow = dist.get_rank() == dist.get_world_size() - 1

class Rows(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, index):
        time.sleep(0.00125)
        if fault == 'loader' and slow:
            time.sleep(0.005)  # loader
        return torch.ones(8), torch.ones(1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def forward(self, x):
        if fault == 'forward' and slow:
            time.sleep(0.04)  # forward
        return self.layer(x)

model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
data = Rows()
batch = 32 if fault == 'shards' and slow else 8
loader = DataLoader(data, batch_size=batch, sampler=DistributedSampler(data))
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    (model(x) - y).square().mean().backward()
    optimizer.step()
    if fault == 'save' and slow and step % 2 == 0:
        torch.save(torch.zeros(8_000_000), 'model.pt')  # save
    if step == int(sys.argv[2]):
        break
dist.barrier()
os._exit(0)
";

fn launch(place: &Place, python: &Path, ranks: u32, options: &[&str], program: &[&str]) -> (Output, RunData) {
    let ranks = ranks.to_string();
    let mut launch = vec![
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        &ranks,
    ];
    launch.extend(program);
    place.run(python, options, &launch)
}

fn trained(fault: &str, ranks: u32, steps: u32) -> Option<(RunData, Diagnosis)> {
    let python = torch_python()?;
    let place = Place::new();
    place.script("train.py", TRAIN);
    let steps = steps.to_string();
    let (output, data) = launch(&place, &python, ranks, &["--quiet"], &["train.py", fault, &steps]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(data.ranks.len() as u32, ranks - 1, "{said}");
    let diagnosis = diagnose(&data);
    splits_add_up(&data);
    Some((data, diagnosis))
}

/// Waiting and transferring are the whole of each collective.
fn splits_add_up(data: &RunData) {
    let mut seen = 0;
    for rank in data.ranks.iter().map(|(_, rank)| rank).chain([data]) {
        for event in &rank.events {
            if let EventKind::Collective {
                count,
                aligned,
                ms,
                wait_ms: Some(wait),
                transfer_ms: Some(transfer),
                ..
            } = &event.kind
                && count == aligned
            {
                seen += 1;
                assert!((wait + transfer - ms).abs() <= ms * 0.05 + 0.01, "{event:?}");
            }
        }
    }
    assert!(seen > 2, "{seen}");
}

fn line_of(comment: &str) -> u32 {
    let at = TRAIN.lines().position(|line| line.ends_with(comment)).unwrap();
    at as u32 + 1
}

/// The rule that names the slow rank, and its lines.
fn straggler(diagnosis: &Diagnosis, rank: u32, rule: &str) -> Vec<u32> {
    let ranks = diagnosis.ranks.as_ref().unwrap();
    let slow = ranks
        .slow
        .as_ref()
        .unwrap_or_else(|| panic!("no slow rank: {:?}", ranks.rows));
    assert_eq!((slow.rank, ranks.shown), (rank, rank), "{:?}", ranks.rows);
    let found = diagnosis.findings.iter().find(|finding| finding.rule == rule);
    let finding = found.unwrap_or_else(|| panic!("no {rule}: {:?}", diagnosis.findings));
    assert_eq!(finding.kind, Kind::Cause);
    finding.places.iter().map(|place| place.line).collect()
}

#[test]
fn names_a_rank_with_a_slow_loader() {
    for (ranks, steps) in [(2, 170), (4, 150)] {
        let Some((_, diagnosis)) = trained("loader", ranks, steps) else {
            return;
        };
        let lines = straggler(&diagnosis, ranks - 1, "slow-rank");
        assert!(lines.contains(&line_of("# loader")), "{lines:?}");
    }
}

#[test]
fn names_a_rank_with_a_slow_forward() {
    let Some((_, diagnosis)) = trained("forward", 2, 170) else {
        return;
    };
    let lines = straggler(&diagnosis, 1, "slow-rank");
    assert_eq!(lines[0], line_of("# forward"));
}

#[test]
fn names_a_rank_with_larger_batches() {
    let Some((_, diagnosis)) = trained("shards", 2, 170) else {
        return;
    };
    straggler(&diagnosis, 1, "unequal-shards");
}

#[test]
fn names_a_rank_that_saves() {
    let Some((_, diagnosis)) = trained("save", 2, 170) else {
        return;
    };
    let lines = straggler(&diagnosis, 1, "slow-rank");
    assert!(lines.contains(&line_of("# save")), "{lines:?}");
}

#[test]
fn names_nobody_in_a_balanced_run() {
    for (ranks, steps) in [(2, 500), (4, 400)] {
        let Some((_, diagnosis)) = trained("none", ranks, steps) else {
            return;
        };
        let found = diagnosis.ranks.as_ref().unwrap();
        assert_eq!(found.rows.len() as u32, ranks);
        assert!(found.slow.is_none(), "{found:?}");
    }
}

const HANGS: &str = "
import sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group('gloo')
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    model(torch.randn(4, 8)).mean().backward()
    optimizer.step()
if dist.get_rank() == 0:
    time.sleep(1000)  # stuck
dist.barrier()
";

#[test]
fn a_hang_shows_who_is_missing_and_ends_on_request() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", HANGS);
    let options = ["--patience", "4s", "--on-hang", "stop"];
    let (output, data) = launch(&place, &python, 2, &options, &["train.py"]);
    assert_ne!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("rank 0 is not in barrier, where rank 1 waits"),
        "{said}"
    );
    let stalled = data.events.iter().find_map(|event| match &event.kind {
        EventKind::Stalled { ranks, .. } => Some(ranks),
        _ => None,
    });
    let ranks = stalled.unwrap_or_else(|| panic!("no such event: {said}"));
    let line = HANGS.lines().position(|line| line.ends_with("# stuck")).unwrap() as u32 + 1;
    let stuck = flatout_diagnose::stall::place_of(&ranks[0]).unwrap();
    assert_eq!(stuck.line, line);
    assert_eq!(ranks[1].inside.as_ref().unwrap().op, "barrier");
    let findings = diagnose(&data).findings;
    assert_eq!(
        (findings[0].rule.as_str(), findings[0].places[0].line),
        ("stalled", line)
    );
}

#[test]
fn a_program_that_only_pauses_is_left_alone() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", &HANGS.replace("1000", "8"));
    let (output, data) = launch(&place, &python, 2, &["--patience", "3s"], &["train.py"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no progress for"), "{said}");
    assert!(!said.contains("ending the program"), "{said}");
    let rules: Vec<String> = diagnose(&data)
        .findings
        .into_iter()
        .map(|finding| finding.rule)
        .collect();
    let resumed = |event: &flatout_record::Event| matches!(event.kind, EventKind::Resumed { .. });
    // The barrier ends the pause; a program that ends with it has no step after that.
    if data.events.iter().any(resumed) {
        assert!(!rules.contains(&"stalled".to_owned()), "{rules:?}");
    }
}
