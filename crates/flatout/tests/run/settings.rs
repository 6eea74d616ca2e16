//! Settings that `--apply` puts in force on real PyTorch programs.

use crate::programs::{TRAIN, fact, steps};
use crate::support::{Place, torch_python};

#[test]
fn applies_settings_and_reports_the_rest() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", TRAIN);
    let apply = "loader.num_workers=1,optimizer.fused=on,tf32=on";
    let (output, data) = place.run(&python, &["--apply", apply, "--steps", "3"], &["train.py", "0"]);
    assert_eq!(fact(&data, "loader.num_workers", Some("loader.0")), 1);
    assert_eq!(fact(&data, "optimizer.fused", Some("optimizer.0")), true);
    assert_eq!(steps(&data), 3);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("tf32=on was not applied"), "{said}");
    assert!(
        !said.contains("num_workers=1 was not") && !said.contains("fused=on was not"),
        "{said}"
    );
}

#[test]
fn reports_unusable_settings_before_the_start() {
    let place = Place::new();
    let beside = place.folder.path().join("no/such/folder/f.json");
    let beside = beside.to_str().unwrap();
    for (options, expected) in [
        (
            ["--apply", "loader.colour=red"],
            "available settings: loader.batch_size, loader.num_workers",
        ),
        (
            ["--apply", "num_workers=abc"],
            "`abc` is not a valid value for num_workers",
        ),
        (["--json", beside], "failed to write"),
    ] {
        let output = place
            .flatout(&[options[0], options[1], "--", "sh", "-c", "echo begun"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains(expected),
            "{said}"
        );
        assert!(output.stdout.is_empty());
    }
}

const FROZEN: &str = "
import gc, torch
from torch.utils.data import DataLoader, Dataset
class Counts(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.tensor([float(gc.get_freeze_count())])
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
for x in DataLoader(Counts(), batch_size=4, num_workers=1):
    model(x).mean().backward()
    optimizer.step()
print(gc.get_freeze_count() > 1000, bool(x.min() > 1000))
";

#[test]
fn the_collector_leaves_out_what_was_there_before_the_first_step() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", FROZEN);
    let (plain, _) = place.run(&python, &["--quiet"], &["train.py"]);
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "False False\n");
    let (frozen, data) = place.run(&python, &["--quiet", "--apply", "gc.freeze=on"], &["train.py"]);
    assert_eq!(String::from_utf8_lossy(&frozen.stdout), "True True\n");
    assert_eq!(fact(&data, "apply.gc.freeze", None), true);
}

const FREED: &str = "
import resource, torch
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
for step in range(30):
    if step == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(10_000_000)
    model(torch.ones(4, 1)).mean().backward()
    optimizer.step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
";

#[test]
fn memory_that_a_step_frees_stays_with_the_program() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("train.py", FREED);
    let pages = |output: &std::process::Output| {
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().parse::<u64>().unwrap_or_else(|_| panic!("{said}"))
    };
    let (plain, _) = place.run(&python, &["--quiet", "--no-stacks"], &["train.py"]);
    let (kept, data) = place.run(&python, &["--quiet", "--apply", "malloc.keep=on"], &["train.py"]);
    assert!(
        pages(&kept) * 5 < pages(&plain),
        "{} {}",
        pages(&kept),
        pages(&plain)
    );
    assert_eq!(fact(&data, "apply.malloc.keep", None), true);
    // What the rule needs is in the record.
    assert!(data.info.host.as_ref().is_some_and(|host| host.page.is_some()));
    let mut processes = data.samples.iter().flat_map(|sample| sample.processes.values());
    assert!(processes.any(|process| process.faults_s.is_some() && process.kernel_cpus.is_some()));
}

/// One that refuses large thresholds gets what it takes, and one that takes none is left as it was: trimming alone would do harm.
#[test]
fn an_older_c_library_keeps_what_it_can() {
    let Some(python) = torch_python() else { return };
    let code = "
from _flatout_apply.malloc import kept_by
for most in (1 << 30, 1 << 25, 0):
    done = []
    print(kept_by(lambda key, size: (key == -1 or size <= most) and (done.append((key, size >> 20)) or 1)), done)
";
    let output = std::process::Command::new(python)
        .args(["-c", code])
        .env("PYTHONPATH", crate::support::package())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "True [(-3, 1024), (-1, 1024)]",
            "True [(-3, 32), (-1, 1024)]",
            "False []"
        ]
    );
}

/// `Module.compile` passes over a `Sequential`; the setting does not.
#[test]
fn a_model_of_torchs_own_layers_is_compiled() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("layers.py", include_str!("programs/compiled_layers.py"));
    let cases = [
        ("compile=default", "", "graphs 1"),
        ("compile=default", "--own", "graphs 1"),
        ("tf32=on", "", "graphs 0"),
    ];
    for (apply, whose, graphs) in cases {
        let (output, _) = place.run(&python, &["--quiet", "--apply", apply], &["layers.py", whose]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains(graphs),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
