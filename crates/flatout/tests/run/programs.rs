//! The record of real PyTorch programs.

use crate::support::{Place, torch_python};
use flatout_record::{EventKind, Phase, RunData};
use serde_json::Value;

pub const TRAIN: &str = "
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)

class Slow(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(8), torch.randn(1)

def main():
    workers = int(sys.argv[1])
    context = sys.argv[2] if len(sys.argv) > 2 else None
    model = torch.nn.Linear(8, 1)
    train = DataLoader(Slow(), batch_size=8, shuffle=True, num_workers=workers, multiprocessing_context=context)
    held_out = DataLoader(Slow(), batch_size=16)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        model.train()
        for x, y in train:
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value = loss.item()
        model.eval()
        with torch.no_grad():
            for x, y in held_out:
                model(x)
        torch.save(model.state_dict(), 'model.pt')
    print('done')

if __name__ == '__main__':
    main()
";

pub fn fact<'a>(data: &'a RunData, key: &str, scope: Option<&str>) -> &'a Value {
    let found = data
        .facts
        .iter()
        .rev()
        .find(|fact| fact.key == key && fact.scope.as_deref() == scope);
    &found.unwrap_or_else(|| panic!("no fact {key}")).value
}

fn phase_ms(data: &RunData, phase: Phase) -> f64 {
    data.steps.iter().map(|tick| tick.phase_ms(phase)).sum()
}

pub fn steps(data: &RunData) -> u64 {
    data.steps.iter().map(|tick| tick.steps).sum()
}

#[test]
fn steps_phases_events_and_facts_of_a_small_training() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", TRAIN);
    let (output, data) = place.run(&python, &[], &["train.py", "0"]);
    assert_eq!(output.stdout, b"done\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(steps(&data), 16);
    assert_eq!(
        data.steps.iter().filter_map(|tick| tick.samples).sum::<u64>(),
        128
    );
    // 128 fetches of 2 ms each are waited for in training, 128 more in evaluation.
    assert!(
        phase_ms(&data, Phase::Data) >= 256.0,
        "{}",
        phase_ms(&data, Phase::Data)
    );
    assert!(
        phase_ms(&data, Phase::Eval) >= 256.0,
        "{}",
        phase_ms(&data, Phase::Eval)
    );
    assert!(phase_ms(&data, Phase::Checkpoint) > 0.0 && phase_ms(&data, Phase::Compute) > 0.0);
    let total: f64 = Phase::ALL.iter().map(|phase| phase_ms(&data, *phase)).sum();
    assert!(total / 1e3 <= data.info.exit.unwrap().t + 0.01);
    let count =
        |wanted: fn(&EventKind) -> bool| data.events.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Epoch { .. })), 2);
    assert_eq!(
        count(|kind| matches!(kind, EventKind::Eval { batches: Some(4), .. })),
        2
    );
    assert_eq!(
        count(|kind| matches!(kind, EventKind::Checkpoint { bytes: Some(_), .. })),
        2
    );
    assert_eq!(fact(&data, "loader.batch_size", Some("loader.0")), 8);
    assert_eq!(fact(&data, "optimizer.class", Some("optimizer.0")), "Adam");
    assert_eq!(fact(&data, "model.parameters", None), 9);
    assert_eq!(fact(&data, "device", None), "cpu");
    assert!(data.info.versions.contains_key("torch") && data.skipped.is_empty());
}

#[test]
fn reports_tensor_reads_with_their_line() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", TRAIN);
    let (_, data) = place.run(&python, &[], &["train.py", "0"]);
    let line = 1 + TRAIN
        .lines()
        .position(|line| line.contains("loss.item()"))
        .unwrap() as u32;
    let items: u64 = data
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Sync {
                what,
                place,
                count,
                device,
                ..
            } if what == "item" && place.line == line => {
                assert_eq!(device.as_deref(), Some("cpu"));
                Some(*count)
            }
            _ => None,
        })
        .sum();
    assert_eq!(items, 16);
}

/// More loaders than the ring has places for: each takes over the place of one that is used no more.
const MANY_LOADERS: &str = "
import sys, torch
from torch.utils.data import DataLoader, TensorDataset
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
loaders = [DataLoader(TensorDataset(torch.randn(16, 1)), batch_size=4, num_workers=int(sys.argv[1])) for _ in range(40)]
import time
for loader in loaders:
    for (x,) in loader:
        (x * weight).sum().backward()
        optimizer.step()
    time.sleep(0.1)
";

#[test]
fn counts_loaders_at_one_line_once() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", MANY_LOADERS);
    let (output, data) = place.run(&python, &["--quiet", "--no-stacks"], &["train.py", "0"]);
    assert_eq!(output.status.code(), Some(0));
    let (mut taken, mut prepared) = (0, 0);
    for event in &data.events {
        match event.kind {
            EventKind::LoaderUse { batches, .. } => taken += batches,
            EventKind::Workers { batches, .. } => prepared += batches,
            _ => {}
        }
    }
    // A loader that came and went between two looks is lost; none is told more than once.
    assert!((100..=160).contains(&taken), "{taken} of 160 batches");
    assert!((100..=160).contains(&prepared), "{prepared} of 160 batches");
}

/// Evaluation as HF's Trainer does it: gradients are switched off inside the loop only, and `train()` does not come back.
const EVALUATES: &str = "
import time, torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters())
train = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8)
held_out = DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=8)
for epoch in range(2):
    model.train()
    batches = iter(train)
    # All batches are taken, but not the end (Lightning).
    for _ in range(len(train)):
        (x,) = next(batches)
        model(x).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.02)
    model.eval()
    for (x,) in held_out:
        with torch.no_grad():
            model(x)
";

#[test]
fn detects_evaluations_and_epochs() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", EVALUATES);
    let (_, data) = place.run(&python, &["--quiet"], &["train.py"]);
    assert_eq!(steps(&data), 16);
    let samples: u64 = data.steps.iter().filter_map(|tick| tick.samples).sum();
    assert_eq!(samples, 128, "what is evaluated is not trained on");
    let count =
        |wanted: fn(&EventKind) -> bool| data.events.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Epoch { .. })), 2);
    let four = |kind: &EventKind| matches!(kind, EventKind::Eval { batches: Some(4), .. });
    assert_eq!(count(four), 2);
    // 16 naps of 20 ms between a step and the next batch are the program's own.
    assert!(
        phase_ms(&data, Phase::Other) >= 300.0,
        "{}",
        phase_ms(&data, Phase::Other)
    );
}

#[test]
fn a_number_of_steps_can_be_asked_for() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", TRAIN);
    let (output, data) = place.run(&python, &["--steps", "5"], &["train.py", "0"]);
    assert_eq!((output.status.code(), steps(&data)), (Some(0), 5));
    assert_eq!(output.stdout, b"", "it did not reach its end");
}

#[test]
fn the_compiler_sees_no_difference() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("counts.py", include_str!("programs/compile_counts.py"));
    let alone = std::process::Command::new(&python)
        .arg("counts.py")
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let (with, _) = place.run(&python, &["--quiet"], &["counts.py"]);
    assert!(
        alone.status.success(),
        "{}",
        String::from_utf8_lossy(&alone.stderr)
    );
    assert!(String::from_utf8_lossy(&alone.stdout).contains("unique_graphs"));
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        String::from_utf8_lossy(&with.stdout)
    );
}

#[test]
fn counts_of_steady_loops_are_exact() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("steady.py", include_str!("programs/steady_loops.py"));
    let (output, _) = place.run(&python, &["--quiet"], &["steady.py"]);
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(said.trim(), "exact", "{errors}");
}

#[test]
fn a_million_steps_stay_small() {
    let Some(python) = crate::support::plain_python() else {
        return;
    };
    let place = Place::new();
    place.script(
        "steps.py",
        "import flatout\nfor _ in range(1_000_000):\n    flatout.step(samples=2)\nwith flatout.phase('eval'):\n    pass\nflatout.gpu_status('end')\n",
    );
    let (output, data) = place.run(&python, &["--quiet"], &["steps.py"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(steps(&data), 1_000_000);
    assert_eq!(
        data.steps.iter().filter_map(|tick| tick.samples).sum::<u64>(),
        2_000_000
    );
    assert!(data.events.iter().any(
        |event| matches!(&event.kind, EventKind::Note { source, text } if source == "program" && text.starts_with("end:"))
    ));
    let seconds = data.info.exit.unwrap().t;
    let bytes = std::fs::read_dir(place.folder.path().join("home/runs"))
        .unwrap()
        .flatten()
        .map(|run| std::fs::metadata(run.path().join("steps.jsonl")).unwrap().len())
        .sum::<u64>();
    assert!(
        (bytes as f64) < 2000.0 * (seconds + 2.0),
        "{bytes} bytes in {seconds} s"
    );
}

#[test]
fn outside_of_a_run_the_package_is_harmless() {
    let Some(python) = crate::support::plain_python() else {
        return;
    };
    let script = "import flatout\nflatout.step()\nflatout.gpu_status('x')\nwith flatout.phase('data'):\n    pass\nprint(flatout.gpu_utilization())";
    let output = std::process::Command::new(python)
        .args(["-c", script])
        .env("PYTHONPATH", crate::support::package())
        .output()
        .unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"None\n"[..], &b"x: GPU unknown\n"[..])
    );
}

#[test]
fn a_failing_probe_does_not_affect_the_program() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    let sabotage = "import torch\nfrom _flatout_probe import clock\nclock.switch = None\n";
    place.script("train.py", &format!("{sabotage}{TRAIN}"));
    let (output, data) = place.run(&python, &["--quiet"], &["train.py", "0"]);
    assert_eq!(
        output.stdout,
        b"done\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(data.events.iter().any(
        |event| matches!(&event.kind, EventKind::Note { text, .. } if text.contains("probe turned off"))
    ));
}

const RANKS: &str = "
import torch, torch.distributed as distributed
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
torch.set_num_threads(1)
distributed.init_process_group('gloo')
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(128, 8))
for (x,) in DataLoader(data, batch_size=8, sampler=DistributedSampler(data)):
    model(x).mean().backward()
    optimizer.step()
distributed.destroy_process_group()
";

#[test]
fn each_rank_of_torchrun_has_its_folder() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", RANKS);
    let launch = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        "train.py",
    ];
    let (output, data) = place.run(&python, &["--quiet"], &launch);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(steps(&data), 8);
    assert_eq!(fact(&data, "parallel.class", None), "DistributedDataParallel");
    assert_eq!(fact(&data, "parallel.world_size", None), 2);
    let runs = flatout_record::list(&place.folder.path().join("home/runs"));
    let record = flatout_record::Record::open(&runs[0].folder).unwrap();
    let ranks = record.ranks();
    assert_eq!(ranks.len(), 1, "rank 0 is the record itself");
    assert_eq!(
        steps(&flatout_record::Record::open(&ranks[0].1).unwrap().load()),
        8
    );
}

#[test]
fn a_few_steps_are_profiled_on_request() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script(
        "train.py",
        &TRAIN.replace("range(2)", "range(6)").replace("0.002", "0.0002"),
    );
    let (output, data) = place.run(&python, &["--profile"], &["train.py", "0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.stdout, b"done\n", "{said}");
    let profile = data
        .profile
        .as_ref()
        .unwrap_or_else(|| panic!("no profile: {said}"));
    // The last step is under way when the profile ends.
    assert!(
        (4..=5).contains(&profile.steps) && !profile.cut_short,
        "{profile:?}"
    );
    assert!(
        profile
            .operators
            .iter()
            .any(|operator| operator.name.starts_with("aten::"))
    );
    assert!(profile.device.is_none() || profile.span_ms > 0.0);
    assert!(
        said.contains("operator calls per step") && !said.contains("Warning"),
        "{said}"
    );
    let (_, short) = place.run(&python, &["--profile", "--steps", "5"], &["train.py", "0"]);
    assert!(short.profile.is_none());
}
