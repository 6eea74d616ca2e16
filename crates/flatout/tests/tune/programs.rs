//! Searches that find something.

use crate::support::{plain_python, torch_python};
use crate::trying::{STEPS, Try, json, words};
use std::path::Path;

/// One of the programs of the benchmark, as a user would tune it, with four trials.
#[test]
fn a_program_of_the_benchmark_in_four_trials() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/tune/programs/sensors_autoencoder.py");
    let output = place.tune(
        &[
            "--max-trials",
            "4",
            "--json",
            "--knobs",
            "batch_size,fused,num_workers",
        ],
        &[python.to_str().unwrap(), program.to_str().unwrap()],
    );
    assert!(output.status.success(), "{}", words(&output));
    let found = json(&output);
    assert_eq!(found["schema"], 1);
    let trials = found["trials"].as_array().unwrap();
    assert!(trials.len() <= 4);
    assert_eq!(found["unit"], "samples/s");
    // What is faster depends on who else uses the machine; what was tried, and that it was in force, does not.
    let tried: Vec<&serde_json::Value> = trials
        .iter()
        .filter(|trial| trial["settings"]["loader.batch_size"].is_string())
        .collect();
    assert!(!tried.is_empty(), "{}", words(&output));
    // What a setting is worth was tried on some steps before a trial is spent on it.
    let variant = &trials[0]["variants"][0];
    assert_eq!(variant["setting"], "optimizer.fused=on");
    assert!(variant["own_ratio"].as_f64().unwrap() > 0.0);
    // And what other workers are worth, where the steps share the CPUs with them.
    if !Path::new("/dev/nvidiactl").exists() {
        let fed = trials[0]["fed"].as_array().unwrap();
        let with = |workers: u64| fed.iter().filter(|one| one["workers"] == workers).count();
        assert!(with(0) >= 2 && with(1) >= 2, "{fed:?}");
        assert!(fed.iter().all(|one| one["step_s"].as_f64().unwrap() > 0.0));
    }
    for trial in tried.iter().filter(|trial| trial["steps"].is_u64()) {
        let batch: f64 = trial["settings"]["loader.batch_size"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let counted = trial["samples"].as_f64().unwrap() / trial["steps"].as_f64().unwrap();
        assert!((counted / batch - 1.0).abs() < 0.2, "{counted} of {batch}");
    }
    assert!(
        found["gain"]["mean"].as_f64().unwrap() > 0.99,
        "{}",
        words(&output)
    );
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
}

/// Checkpoints of a trial go elsewhere; the program's own file stays as it was. So does its source, until `--write` asks for it.
/// The program learns next to nothing, so that no batch size is refused for its loss.
#[test]
fn nothing_of_the_users_changes_until_it_is_asked_for() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    place.script("best.pt", "precious");
    // A step takes its time whatever the batch: other programs on the machine do not hide what larger ones gain.
    let program = "import time, torch
model = torch.nn.Linear(8, 1)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
loader = torch.utils.data.DataLoader(torch.randn(100000, 8), batch_size=8, shuffle=True)
for x in loader:
    optimizer.zero_grad()
    (model(x) - 1).pow(2).mean().backward()
    optimizer.step()
    torch.save(model.state_dict(), 'best.pt')
    time.sleep(0.02)
";
    place.script("train.py", program);
    let read = |name: &str| std::fs::read_to_string(place.folder.path().join(name)).unwrap_or_default();
    let options = ["--max-trials", "2", "--knobs", "batch_size"];
    let command = [python.to_str().unwrap(), "train.py"];
    let output = place.tune(&options, &command);
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(
        (read("best.pt").as_str(), read("train.py").as_str()),
        ("precious", program)
    );
    let text = words(&output);
    let added = text.lines().find_map(|line| line.strip_prefix("+loader ="));
    let added = added.unwrap_or_else(|| panic!("no patch: {text}"));
    assert!(
        added.contains("batch_size=") && !added.contains("batch_size=8,"),
        "{text}"
    );
    let output = place.tune(&[&options[..], &["--resume", "--write"]].concat(), &command);
    assert!(output.status.success(), "{}", words(&output));
    assert!(read("train.py").contains(added), "{}", words(&output));
    assert_eq!(read("train.py.flatout-backup"), program);
    assert_eq!(read("best.pt"), "precious");
}

/// Without a C++ compiler PyTorch cannot compile for the CPU and goes on without: the trial says so, and nothing is kept.
#[test]
fn leaves_a_model_that_cannot_be_compiled() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/tune/programs/sensors_autoencoder.py");
    let arguments = [
        "tune",
        "--trial-seconds",
        "0.4",
        "--max-trials",
        "2",
        "--knobs",
        "compile",
        "--",
        python.to_str().unwrap(),
        program.to_str().unwrap(),
    ];
    let cache = place.folder.path().join("inductor");
    let output = place
        .command(&arguments)
        .env("CXX", "/no/such/compiler")
        .env("TORCHINDUCTOR_CACHE_DIR", cache)
        .output()
        .unwrap();
    let text = words(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("could not compile it: ") && text.contains("the model is left as it was"),
        "{text}"
    );
    assert!(text.contains("Keep your settings"), "{text}");
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
}

/// Losses that are summed over the batch grow with it, and so do the steps: at this rate a batch of 8 learns (stable below
/// 1/12), and one of 16 diverges (unstable above 1/16).
#[test]
fn a_batch_that_ruins_the_training_is_refused_with_the_reason() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    place.script(
        "train.py",
        "import torch
torch.manual_seed(0)
x = torch.randn(200000, 2)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True) + 0.1 * torch.randn(200000, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.07)
for inputs, target in loader:
    loss = torch.nn.functional.mse_loss(model(inputs), target, reduction='sum')
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
",
    );
    let output = place.tune(
        &["--max-trials", "2", "--knobs", "batch_size"],
        &[python.to_str().unwrap(), "train.py"],
    );
    let text = words(&output);
    assert!(output.status.success(), "{text}");
    // On a machine that is busy with something else it may not even be tried.
    let tried = text.contains("loader.batch_size=");
    assert!(
        !tried || (text.contains("rejected:") && text.contains("loss")),
        "{text}"
    );
    assert!(text.contains("Keep your settings"), "{text}");
}

#[test]
fn supports_placeholders_resume_and_chinese() {
    let Some(python) = plain_python() else { return };
    let place = Try::new();
    place.script("steps.py", STEPS);
    let program = [python.to_str().unwrap(), "steps.py", "{batch_size=8}"];
    let output = place.tune(
        &["--max-trials", "4", "--json", "--knobs", "batch_size=8..256"],
        &program,
    );
    assert!(output.status.success(), "{}", words(&output));
    let found = json(&output);
    let batch: u64 = found["best"]["settings"]["loader.batch_size"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(batch > 8 && batch <= 256, "{}", words(&output));
    assert_eq!(found["best"]["command"][2], batch.to_string());
    // All of it is remembered: nothing is run again.
    let before = trials(place.folder.path());
    let again = place.tune(
        &["--max-trials", "4", "--resume", "--knobs", "batch_size=8..256"],
        &program,
    );
    assert!(
        again.status.success() && words(&again).contains("4 trials are known from before"),
        "{}",
        words(&again)
    );
    assert!(before > 0);
    assert_eq!(trials(place.folder.path()), before, "{}", words(&again));
    assert!(words(&again).contains("kept"), "{}", words(&again));
}

/// Folders of trials below a folder.
fn trials(folder: &Path) -> usize {
    let entries: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    if folder.file_name().is_some_and(|name| name == "trials") {
        return entries.len();
    }
    let folders = entries
        .iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| trials(&entry.path())).sum()
}

#[test]
fn a_configuration_file_is_patched_only_when_asked() {
    let Some(python) = plain_python() else { return };
    let place = Try::new();
    let read = "import re\nvalues = dict(re.findall(r'(\\w+): (\\S+)', open(sys.argv[1]).read()))\nbatch = int(values['batch_size'])\n";
    place.script("steps.py", &STEPS.replace("batch = int(sys.argv[1])\n", read));
    place.script("train.yaml", "train:\n  batch_size: 8  # small\n");
    let file = place.folder.path().join("train.yaml");
    let program = [python.to_str().unwrap(), "steps.py", "train.yaml"];
    let options = [
        "--max-trials",
        "3",
        "--config",
        "train.yaml",
        "--set",
        "train.batch_size",
    ];
    let output = place.tune(&options, &program);
    assert!(output.status.success(), "{}", words(&output));
    assert!(
        words(&output).contains("-  batch_size: 8  # small\n+  batch_size: "),
        "{}",
        words(&output)
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "train:\n  batch_size: 8  # small\n"
    );
    let output = place.tune(&[&options[..], &["--resume", "--write"]].concat(), &program);
    assert!(output.status.success(), "{}", words(&output));
    assert!(
        !std::fs::read_to_string(&file).unwrap().contains("batch_size: 8 "),
        "{}",
        words(&output)
    );
    let backup = place.folder.path().join("train.yaml.flatout-backup");
    assert!(
        std::fs::read_to_string(backup)
            .unwrap()
            .contains("batch_size: 8 ")
    );
}

#[test]
fn advice_prints_only_what_differs() {
    let place = Try::new();
    place.script("train.yaml", "batch_size: 512\nnum_workers: 40\namp: true\n");
    let arguments = ["advise", "--gpu", "A100", "--cpus", "20", "--from", "train.yaml"];
    let output = place.command(&arguments).output().unwrap();
    let text = words(&output);
    assert!(
        output.status.success() && text.contains("40 → 8") && !text.contains("512 →"),
        "{text}"
    );
    let output = place.command(&["advise", "--gpu", "abacus"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("known GPUs:"), "{}", words(&output));
}

/// CUDA graphs need a GPU: on a CPU that mode is compiled as the default one, and the user hears of it.
#[test]
fn falls_back_from_a_gpu_mode_and_reports_it() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/tune/programs/sensors_autoencoder.py");
    let options = [
        "--max-trials",
        "1",
        "--start",
        "compile=reduce-overhead",
        "--json",
    ];
    let output = place.tune(&options, &[python.to_str().unwrap(), program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", words(&output));
    let told = json(&output)["trials"][0]["not_in_force"].to_string();
    // With a GPU it is in force there.
    let on_gpu = json(&output)["trials"][0]["not_in_force"] == serde_json::json!([]);
    assert!(on_gpu || told.contains("CUDA graphs need a GPU"), "{told}");
}

/// Neither on the screen nor in any file of the search.
#[test]
fn secrets_of_the_command_are_hidden() {
    let Some(python) = plain_python() else { return };
    let place = Try::new();
    place.script("steps.py", STEPS);
    let secret = "hunter2hunter2";
    let program = [
        python.to_str().unwrap(),
        "steps.py",
        "{batch_size=8}",
        "--api-key",
        secret,
    ];
    let output = place.tune(&["--max-trials", "2", "--knobs", "batch_size=8..64"], &program);
    assert!(output.status.success(), "{}", words(&output));
    assert!(!words(&output).contains(secret), "{}", words(&output));
    assert!(words(&output).contains("--api-key '***'"), "{}", words(&output));
    let mut folders = vec![place.folder.path().join("home")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            assert!(!entry.path().to_string_lossy().contains(secret));
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            files += 1;
            let bytes = std::fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(secret), "{}", entry.path().display());
        }
    }
    assert!(files > 3, "{files}");
}

/// A program that is done before the warm-up is, and takes its time to exit, did not fail.
#[test]
fn a_program_of_few_steps_that_exits_slowly_is_measured() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    place.script(
        "train.py",
        "import atexit, time, torch
atexit.register(time.sleep, 8)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
for step in range(9):
    optimizer.zero_grad()
    model(torch.randn(8, 8)).mean().backward()
    optimizer.step()
",
    );
    let output = place.tune(&["--max-trials", "1"], &[python.to_str().unwrap(), "train.py"]);
    assert!(output.status.success(), "{}", words(&output));
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
}

/// No setting makes a pause in every step shorter: its line is the answer.
#[test]
fn a_fault_of_the_code_is_the_answer() {
    let Some(python) = torch_python() else { return };
    let place = Try::new();
    place.script(
        "train.py",
        "import time, torch

def report(loss):
    time.sleep(0.15)

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
for step in range(100000):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 8)).mean()
    loss.backward()
    optimizer.step()
    report(loss)
",
    );
    let output = place.tune(
        &["--max-trials", "2", "--knobs", "fused"],
        &[python.to_str().unwrap(), "train.py"],
    );
    let text = words(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("No setting makes this program faster"), "{text}");
    assert!(text.contains("These need a change in the code"), "{text}");
    assert!(
        text.contains("train.py:4)") || text.contains("train.py:13)"),
        "{text}"
    );
    assert!(!text.contains("Keep your settings"), "{text}");
}
