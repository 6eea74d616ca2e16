//! The story on a real PyTorch program, where PyTorch is installed: `examples/slow_train.py`, run as `flatout run` runs it. Of its
//! faults only those are changed in the source that the diagnosis names, at the line that it names. Seed, batches and
//! the steps at which the loss is read stay the same, so that the comparison shows whether learning is unharmed.

use super::{ROUNDS, Story, folder};
use flatout_core::error::FileError;
use flatout_core::{Failure, Finding, Kind, Message, Result, message};
use flatout_record as record;
use flatout_report::digest::Digest;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("../../../../examples/slow_train.py");
/// The line of the program that sets how long it trains.
const SECONDS: &str = "SECONDS = 25";
/// One thread: where others use the CPUs, the threads of a step wait for each other, and that would hide the rest.
const SEED: &str = "    torch.manual_seed(0)\n";
const SEED_AND_THREAD: &str = "    torch.manual_seed(0)\n    torch.set_num_threads(1)\n";
/// Its own generator: an evaluation draws a seed for its loader, so that evaluating less often would shuffle the training data
/// differently, and the losses could not be compared.
const LOADER: &str = "shuffle=True, num_workers=0)";
const LOADER_AND_GENERATOR: &str = "shuffle=True, num_workers=0, generator=torch.Generator().manual_seed(0))";
/// Long enough for a steady part.
const DEMO_SECONDS: &str = "SECONDS = 15";

/// A change of the source, made when one of the rules names one of the lines that it replaces.
struct Edit {
    rules: &'static [&'static str],
    from: &'static str,
    to: &'static str,
    what: fn() -> Message,
}

const EDITS: &[Edit] = &[
    Edit {
        rules: &["file-read-per-sample", "file-reopened-in-getitem"],
        from: "        scale = torch.load(self.scale)\n",
        to: "        self.loaded = getattr(self, \"loaded\", None) or torch.load(self.scale)\n        scale = self.loaded\n",
        what: || message!(en: "read the file once and keep it", zh: "文件只读一次并保留"),
    },
    Edit {
        rules: &["evaluation-too-often"],
        from: "                print(f\"step {step}: loss {loss.item():.4f}, accuracy {evaluate(model, held_out):.3f}\")\n",
        to: "                print(f\"step {step}: loss {loss.item():.4f}\")\n            if step % 200 == 0:\n                print(f\"step {step}: accuracy {evaluate(model, held_out):.3f}\")\n",
        what: || message!(en: "evaluate every 200 steps instead of 20", zh: "每 200 步评估一次，而不是每 20 步"),
    },
];

/// The Python of the environment, when it has PyTorch. It is asked without importing it, which takes seconds.
pub fn python() -> Option<PathBuf> {
    let has_torch = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
    ["python3", "python"]
        .into_iter()
        .map(PathBuf::from)
        .find(|python| {
            Command::new(python)
                .args(["-c", has_torch])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
}

/// The first program.
pub fn first() -> String {
    PROGRAM
        .replace(SECONDS, DEMO_SECONDS)
        .replace(SEED, SEED_AND_THREAD)
        .replace(LOADER, LOADER_AND_GENERATOR)
}

/// The program without the faults that were found in it, and what was changed.
pub fn mended(source: &str, findings: &[Finding]) -> (String, Vec<Message>) {
    let mut changed = source.to_owned();
    let mut what = Vec::new();
    for edit in EDITS {
        let named =
            |finding: &&Finding| finding.kind != Kind::Verdict && edit.rules.contains(&finding.rule.as_str());
        if let Some(finding) = findings.iter().find(named)
            && changed.contains(edit.from)
        {
            changed = changed.replace(edit.from, edit.to);
            let (rule, done) = (&finding.rule, (edit.what)());
            what.push(Message {
                en: format!("{}  [{rule}]", done.en),
                zh: format!("{}  [{rule}]", done.zh),
            });
        }
    }
    (changed, what)
}

/// A run of the program.
pub struct Ran {
    /// Its record.
    run: String,
    digest: Digest,
    /// Steps and the losses printed at them, as they were printed.
    losses: Vec<(u64, String)>,
}

/// The losses that the program printed: `step 20: loss 0.6931, …`.
fn losses(output: &str) -> Vec<(u64, String)> {
    let loss = |line: &str| {
        let (step, rest) = line.strip_prefix("step ")?.split_once(": loss ")?;
        let loss = rest.split([',', ' ']).next()?;
        Some((step.parse().ok()?, loss.to_owned()))
    };
    output.lines().filter_map(loss).collect()
}

/// Whether both runs learn the same, step by step.
fn learning(before: &[(u64, String)], after: &[(u64, String)]) -> Message {
    let both: Vec<(u64, &str, &str)> = before
        .iter()
        .filter_map(|(step, a)| {
            let (_, b) = after.iter().find(|(other, _)| other == step)?;
            Some((*step, a.as_str(), b.as_str()))
        })
        .collect();
    let count = both.len();
    let different = both.iter().filter(|(_, a, b)| a != b).count();
    match both.last() {
        None => {
            message!(en: "loss: the runs printed no step in common", zh: "loss：两次运行没有输出相同的步")
        }
        Some((step, loss, _)) if different == 0 => message!(
            en: "loss: identical at all {count} steps that both runs printed (step {step}: {loss})",
            zh: "loss：两次运行都输出的 {count} 步全部相同（第 {step} 步：{loss}）"
        ),
        Some((step, a, b)) => message!(
            en: "loss: different at {different} of {count} steps that both runs printed (step {step}: {a} \
            and {b})",
            zh: "loss：两次运行都输出的 {count} 步中有 {different} 步不同（第 {step} 步：{a} 与 {b}）"
        ),
    }
}

impl Story<'_> {
    /// The whole story; `false` when it was interrupted.
    pub fn on_pytorch(&self, python: &Path, folder: &Path) -> Result<bool> {
        self.step(
            1,
            message!(
                en: "Take a PyTorch program: windows of prices, normalized on each read, an MLP, AdamW",
                zh: "一个 PyTorch 程序：价格窗口，读取时归一化，MLP，AdamW"
            ),
        );
        let mut source = first();
        self.step(2, message!(en: "Run it unchanged", zh: "原样运行"));
        let Some(first) = self.run_program(python, folder, "before", &source)? else {
            return Ok(false);
        };
        let (run, digest) = (first.run, first.digest);
        self.step(3, message!(en: "Why is it slow?", zh: "为什么慢？"));
        self.findings(&run, &digest);
        let (mut runs, mut digests) = (vec![run], vec![digest]);
        for name in ROUNDS {
            let Some(last) = digests.last() else { break };
            let (changed, what) = mended(&source, &last.diagnosis.findings);
            if what.is_empty() {
                break;
            }
            self.step(4, message!(en: "Change the lines that flatout found and run it again", zh: "修改找到的那几行，再次运行"));
            what.iter().for_each(|change| self.line(change));
            source = changed;
            let Some(next) = self.run_program(python, folder, name, &source)? else {
                return Ok(false);
            };
            self.findings(&next.run, &next.digest);
            self.line(&learning(&first.losses, &next.losses));
            runs.push(next.run);
            digests.push(next.digest);
        }
        if runs.len() == 1 {
            self.line(&message!(
                en: "On this machine, none of the program's problems costs enough to be found, perhaps \
                because other programs use the CPUs. Try again on an idle machine, or with --built-in",
                zh: "程序中的问题在这里都不够明显，例如因为其他程序占用了 CPU。请在空闲的机器上再试，或使用 --built-in"
            ));
            return Ok(true);
        }
        self.step(
            5,
            message!(en: "Did it help, and is the loss unharmed?", zh: "有用吗？loss 有没有受影响？"),
        );
        self.compare(folder, &runs, &digests)?;
        Ok(true)
    }

    /// Runs the program under `flatout run`: its record and what is in it; `None` when it was interrupted.
    pub fn run_program(&self, python: &Path, folder: &Path, name: &str, source: &str) -> Result<Option<Ran>> {
        let script = folder.join(format!("{name}.py"));
        fs::write(&script, source).map_err(|error| FileError::writing(&script, error))?;
        let (shown, home) = (script.display(), folder.join(folder::RUNS));
        self.command(&format!(
            "FLATOUT_HOME={} flatout run --name {name} -- {} {shown}",
            home.display(),
            python.display()
        ));
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(message!(en: "failed to run {shown}: {error}", zh: "无法运行 {shown}：{error}"))
        };
        let own = std::env::current_exe().map_err(|error| failed(&error))?;
        let output = Command::new(own)
            .args(["run", "--quiet", "--name", name, "--"])
            .arg(python)
            .arg(&script)
            .env("FLATOUT_HOME", &home)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(&error))?;
        match output.status.code() {
            Some(0) => {}
            Some(130) | None => return Ok(None),
            Some(_) => {
                let errors = String::from_utf8_lossy(&output.stderr);
                return Err(failed(&errors.lines().last().unwrap_or_default()));
            }
        }
        let runs = record::list(&home.join("runs"));
        let entry = runs.iter().rev().find(|entry| entry.info.name == name);
        let entry = entry.ok_or_else(|| failed(&"no record"))?;
        let run = entry.folder.to_string_lossy().into_owned();
        let digest = Digest::read(&record::find(&run)?);
        let rate = digest
            .figure("samples_per_s")
            .map_or_else(|| "?".to_owned(), |figure| figure.unit.show(figure.mean));
        self.line(&message!(en: "{rate} samples/s", zh: "{rate} 样本/秒"));
        let losses = losses(&String::from_utf8_lossy(&output.stdout));
        Ok(Some(Ran { run, digest, losses }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Severity;

    #[test]
    fn losses_are_compared_step_by_step() {
        let before =
            losses("step 20: loss 0.6931, accuracy 0.5\nstep 40: loss 0.6900, accuracy 0.5\n123 samples/s\n");
        assert_eq!(before, [(20, "0.6931".to_owned()), (40, "0.6900".to_owned())]);
        let same = losses("step 20: loss 0.6931\nstep 40: loss 0.6900\nstep 60: loss 0.1\n");
        assert!(learning(&before, &same).en.contains("identical at all 2 steps"));
        let other = losses("step 20: loss 0.6931\nstep 40: loss 0.7\n");
        assert!(learning(&before, &other).en.contains("different at 1 of 2 steps"));
        assert!(learning(&before, &[]).en.contains("no step"));
    }

    #[test]
    fn only_faults_that_were_found_are_changed() {
        let source = first();
        assert!(source.contains(DEMO_SECONDS) && source.contains(SEED_AND_THREAD));
        assert!(source.contains(LOADER_AND_GENERATOR));
        for edit in EDITS {
            assert_eq!(source.matches(edit.from).count(), 1, "{}", edit.from);
        }
        let title = message!(en: "x", zh: "甲");
        assert_eq!(mended(&source, &[]).0, source);
        let finding = Finding::new("file-read-per-sample", Severity::Critical, title);
        let (changed, what) = mended(&source, std::slice::from_ref(&finding));
        assert_eq!(what.len(), 1);
        assert!(!changed.contains(EDITS[0].from) && changed.contains(EDITS[1].from));
        // Once is enough.
        assert_eq!(mended(&changed, &[finding]).1.len(), 0);
    }
}
