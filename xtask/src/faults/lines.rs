//! Programs labelled by source line (`faults/lines`): does a cause name a line that the label names?
//!
//! The labels were written without knowledge of the rules, so they contain lines, not rule ids. A program is right when a
//! location of a cause is in its `train.py`, at most one line away from a labelled line. Where the repaired program was measured as well,
//! the promised gain is compared with the measured one, see [`super::gains`].

use super::gains::{Speeds, Tally, kept, together};
use crate::Result;
use flatout_core::{Finding, Gain, Kind, Place, Severity};
use flatout_diagnose::account::{Account, activity::Activity};
use flatout_record::Record;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Among the known programs on the CPU: those whose first cause names the line, and clean ones without a warning.
const WANTED_FIRST: f64 = 0.85;
const WANTED_QUIET: f64 = 0.95;
/// Of these, the measured gains that lie within what was promised, see [`super::gains`].
const WANTED_KEPT: f64 = 0.80;
/// How far a named line may be from a labelled one.
const TOLERANCE: u32 = 1;
/// Several programs shared the GPU while they were recorded: true, and not what the labels are about.
const IGNORED: &str = "gpu-shared";

/// What `label.toml` contains. Causes and fixes are for people.
#[derive(Clone, Debug, PartialEq)]
struct Label {
    family: String,
    needs_gpu: bool,
    /// `lines` and `lines2`: where the cost is, and what leads there.
    lines: Vec<u32>,
    /// Two faults: the repaired program has neither.
    two_faults: bool,
}

#[derive(Clone, Debug)]
struct Program {
    name: String,
    folder: PathBuf,
    held_out: bool,
    label: Label,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Device {
    Cpu,
    Gpu,
}

impl Device {
    fn record(self) -> &'static str {
        match self {
            Self::Cpu => "record",
            Self::Gpu => "record-gpu",
        }
    }

    fn speeds(self) -> &'static str {
        match self {
            Self::Cpu => "speeds-cpu.json",
            Self::Gpu => "speeds-gpu.json",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
        }
    }
}

/// One diagnosed record.
struct Verdict<'a> {
    program: &'a Program,
    clean: bool,
    causes: Vec<Finding>,
    /// The rows' time and the unexplained part, as shares of the wall time.
    account: Option<(f64, f64)>,
    /// How many times as fast the repaired program is.
    measured: Option<f64>,
}

impl Verdict<'_> {
    fn line_named(&self) -> bool {
        self.causes
            .iter()
            .any(|cause| names_a_line(cause, &self.program.label.lines))
    }

    fn line_named_first(&self) -> bool {
        let first = self.causes.first();
        first.is_some_and(|cause| names_a_line(cause, &self.program.label.lines))
    }

    /// What is promised: by the first cause, of a program with two faults by all of them.
    fn promised(&self) -> Option<Gain> {
        let mut gains = self.causes.iter().map(|cause| cause.gain);
        let first = gains.next()??;
        if self.program.label.two_faults {
            Some(together([first].into_iter().chain(gains.flatten())))
        } else {
            Some(first)
        }
    }

    fn is_right(&self) -> bool {
        if self.clean {
            self.causes.is_empty()
        } else {
            self.line_named_first()
        }
    }
}

/// Prints the totals per device and group, and fails when the known programs on the CPU fall short.
pub fn score(faults: &Path) -> Result {
    let programs = find(&faults.join("lines"))?;
    let mut short = Vec::new();
    for device in [Device::Cpu, Device::Gpu] {
        let speeds = Speeds::read(&faults.join("lines").join(device.speeds()))?;
        for held_out in [false, true] {
            let group = programs.iter().filter(|program| program.held_out == held_out);
            let verdicts: Vec<Verdict> = group
                .filter_map(|program| judge(program, device, &speeds))
                .collect();
            let totals = Totals::of(&verdicts);
            let title = if held_out { "held out" } else { "known" };
            let promises = Tally::of(
                verdicts
                    .iter()
                    .filter_map(|verdict| Some((verdict.measured?, verdict.promised()))),
            );
            println!(
                "\nlines, {}, {title}: {}; {}",
                device.name(),
                totals.line(),
                promises.line()
            );
            if held_out {
                continue;
            }
            table(&verdicts);
            broken_promises(&verdicts);
            if device == Device::Cpu && (totals.falls_short() || promises.falls_short(WANTED_KEPT)) {
                short.push(format!("lines, CPU: {}; {}", totals.line(), promises.line()));
            }
        }
    }
    if short.is_empty() {
        Ok(())
    } else {
        Err(short.join("; "))
    }
}

/// Every labelled program, by name.
fn find(lines: &Path) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (folder, held_out) in [(lines.to_owned(), false), (lines.join("holdout"), true)] {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        for folder in folders {
            let Ok(text) = fs::read_to_string(folder.join("label.toml")) else {
                continue;
            };
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let label = parse(&text).map_err(|reason| format!("faults/lines/{name}: {reason}"))?;
            programs.push(Program {
                name: name.into_owned(),
                folder,
                held_out,
                label,
            });
        }
    }
    Ok(programs)
}

/// The rules that the records of a known program name as causes; for the table in `faults/README.md`.
#[cfg(test)]
pub fn rules_named(faults: &Path, name: &str) -> Result<Vec<String>> {
    let programs = find(&faults.join("lines"))?;
    let program = programs.iter().find(|program| program.name == name);
    let program = program
        .filter(|program| !program.held_out)
        .ok_or_else(|| format!("there is no known program `{name}` in faults/lines"))?;
    let speeds = Speeds::default();
    let verdicts = [Device::Cpu, Device::Gpu].map(|device| judge(program, device, &speeds));
    let causes = verdicts.into_iter().flatten().flat_map(|verdict| verdict.causes);
    Ok(causes.map(|cause| cause.rule).collect())
}

/// Lines `key = value`, the values as JSON writes them too.
fn parse(text: &str) -> Result<Label> {
    let value = |wanted: &str| -> Option<Value> {
        let mut fields = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = fields.find(|(key, _)| key.trim() == wanted)?;
        serde_json::from_str(value.trim()).ok()
    };
    let string = |key: &str| value(key).and_then(|value| value.as_str().map(str::to_owned));
    let numbers = |key: &str| -> Option<Vec<u32>> { serde_json::from_value(value(key)?).ok() };
    let family = string("family").ok_or("`family` must be a string")?;
    let mut lines = numbers("lines").ok_or("`lines` must be a list of line numbers")?;
    let second = numbers("lines2").unwrap_or_default();
    let two_faults = !second.is_empty();
    lines.extend(second);
    if lines.is_empty() != (family == "clean") {
        return Err("`lines` must be empty for clean programs, and only for these".into());
    }
    let needs_gpu = match string("needs").as_deref() {
        Some("cpu") => false,
        Some("gpu") => true,
        _ => return Err("`needs` must be \"cpu\" or \"gpu\"".into()),
    };
    Ok(Label {
        family,
        needs_gpu,
        lines,
        two_faults,
    })
}

/// Diagnoses a program's record, if it has one for this device.
fn judge<'a>(program: &'a Program, device: Device, speeds: &Speeds) -> Option<Verdict<'a>> {
    // A program that is clean on a CPU (FP32, small) need not be so on a GPU.
    if device == Device::Gpu && program.label.family == "clean" && !program.label.needs_gpu {
        return None;
    }
    let record = Record::open(&program.folder.join(device.record())).ok()?;
    let diagnosis = flatout_diagnose::diagnose(&record.load());
    let counts = |finding: &Finding| {
        finding.kind == Kind::Cause && finding.severity >= Severity::Warning && finding.rule != IGNORED
    };
    Some(Verdict {
        program,
        // On the CPU a fault that needs a GPU costs nothing.
        clean: program.label.family == "clean" || program.label.needs_gpu && device == Device::Cpu,
        causes: diagnosis.findings.into_iter().filter(counts).collect(),
        account: diagnosis.account.as_ref().map(shares),
        measured: speeds.gain(&program.name),
    })
}

fn shares(account: &Account) -> (f64, f64) {
    let rows: f64 = account.rows.iter().map(|row| row.seconds).sum();
    let unexplained = account.seconds(Activity::Unexplained);
    (rows / account.wall_s, unexplained / account.wall_s)
}

fn names_a_line(finding: &Finding, lines: &[u32]) -> bool {
    let near = |place: &Place| lines.iter().any(|line| line.abs_diff(place.line) <= TOLERANCE);
    finding
        .places
        .iter()
        .any(|place| place.file.ends_with("train.py") && near(place))
}

#[derive(Debug, Default, PartialEq)]
struct Totals {
    records: usize,
    faulty: usize,
    named: usize,
    line_named: usize,
    line_named_first: usize,
    clean: usize,
    quiet: usize,
    adds_up: usize,
    unexplained: usize,
}

impl Totals {
    fn of(verdicts: &[Verdict]) -> Self {
        let count = |keep: &dyn Fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| keep(verdict)).count();
        Self {
            records: verdicts.len(),
            faulty: count(&|verdict| !verdict.clean),
            named: count(&|verdict| !verdict.clean && !verdict.causes.is_empty()),
            line_named: count(&|verdict| !verdict.clean && verdict.line_named()),
            line_named_first: count(&|verdict| !verdict.clean && verdict.line_named_first()),
            clean: count(&|verdict| verdict.clean),
            quiet: count(&|verdict| verdict.clean && verdict.causes.is_empty()),
            adds_up: count(&|verdict| {
                verdict
                    .account
                    .is_some_and(|(rows, _)| (rows - 1.0).abs() <= 0.02)
            }),
            unexplained: count(&|verdict| verdict.account.is_some_and(|(_, rest)| rest > 0.05)),
        }
    }

    fn falls_short(&self) -> bool {
        let below = |part: usize, whole: usize, wanted: f64| (part as f64) < whole as f64 * wanted;
        below(self.line_named_first, self.faulty, WANTED_FIRST) || below(self.quiet, self.clean, WANTED_QUIET)
    }

    fn line(&self) -> String {
        let of = |part: usize, whole: usize| {
            let percent = part as f64 / whole.max(1) as f64 * 100.0;
            format!("{part}/{whole} ({percent:.0}%)")
        };
        format!(
            "{} programs; with a fault: a cause named {}, its line named {}, by the first cause {}; clean without a warning \
             {}; account within 2% of the wall time {}, more than 5% unexplained {}",
            self.records,
            of(self.named, self.faulty),
            of(self.line_named, self.faulty),
            of(self.line_named_first, self.faulty),
            of(self.quiet, self.clean),
            of(self.adds_up, self.records),
            of(self.unexplained, self.records),
        )
    }
}

/// The programs that are not right, with what was named.
fn table(verdicts: &[Verdict]) {
    let wrong: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_right()).collect();
    if wrong.is_empty() {
        return;
    }
    println!("  {:<20} {:<44} {:<16} named", "program", "family", "lines");
    for verdict in wrong {
        let label = &verdict.program.label;
        let family: String = if verdict.clean && label.family != "clean" {
            format!("(clean here) {}", label.family)
        } else {
            label.family.clone()
        };
        let family: String = family.chars().take(44).collect();
        let named: Vec<String> = verdict.causes.iter().map(described).collect();
        println!(
            "  {:<20} {family:<44} {:<16} {}",
            verdict.program.name,
            numbers(label.lines.iter().copied()),
            if named.is_empty() {
                "nothing".to_owned()
            } else {
                named.join(", ")
            }
        );
    }
}

/// The programs whose measured gain is not what was promised.
fn broken_promises(verdicts: &[Verdict]) {
    for verdict in verdicts {
        let Some((measured, gain)) = verdict.measured.zip(verdict.promised()) else {
            continue;
        };
        if !kept(measured, gain) {
            let rule = verdict.causes.first().map_or("", |cause| cause.rule.as_str());
            println!(
                "  {:<20} gain {measured:.2}, promised {:.2} to {:.2} by {rule}",
                verdict.program.name, gain.low, gain.high
            );
        }
    }
}

/// `slow-collate 12 40`: the rule and its lines.
fn described(finding: &Finding) -> String {
    let lines = numbers(finding.places.iter().map(|place| place.line));
    format!("{} {lines}", finding.rule).trim_end().to_owned()
}

fn numbers(lines: impl Iterator<Item = u32>) -> String {
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::message;

    const TEXT: &str = "family = \"a = b\"\nneeds = \"cpu\"\nlines = [12, 40]\nlines2 = [50]\ngain = 1.5\n";

    fn cause(file: &str, line: u32) -> Finding {
        let mut finding = Finding::new("rule", Severity::Warning, message!(en: "x", zh: "x"));
        finding.places.push(Place::new(file, line));
        finding
    }

    #[test]
    fn reads_labels() {
        let label = parse(TEXT).unwrap();
        assert_eq!((label.family.as_str(), label.needs_gpu), ("a = b", false));
        assert_eq!(label.lines, [12, 40, 50]);
        assert!(label.two_faults);
        assert!(
            parse("family = \"clean\"\nneeds = \"gpu\"\nlines = []\n")
                .unwrap()
                .needs_gpu
        );
    }

    #[test]
    fn rejects_incomplete_labels() {
        assert!(parse(&TEXT.replace("family", "kind")).is_err());
        assert!(parse(&TEXT.replace("\"cpu\"", "\"tpu\"")).is_err());
        assert!(parse(&TEXT.replace("[12, 40]", "12")).is_err());
        assert!(parse("family = \"clean\"\nneeds = \"cpu\"\nlines = [1]\n").is_err());
        assert!(parse("family = \"slow\"\nneeds = \"cpu\"\nlines = []\n").is_err());
    }

    #[test]
    fn accepts_a_line_next_to_the_labelled_one() {
        let near = |file: &str, line: u32| names_a_line(&cause(file, line), &[12, 40]);
        assert!(near("faults/lines/x/train.py", 12) && near("train.py", 11) && near("train.py", 41));
        assert!(!near("train.py", 14) && !near("model.py", 12));
    }

    #[test]
    fn counts_first_causes_and_quiet_programs() {
        let program = |text: &str| Program {
            name: "x".into(),
            folder: PathBuf::new(),
            held_out: false,
            label: parse(text).unwrap(),
        };
        let faulty = program(TEXT);
        let clean = program("family = \"clean\"\nneeds = \"cpu\"\nlines = []\n");
        let of = |program, clean, causes| Verdict {
            program,
            clean,
            causes,
            account: Some((0.99, 0.06)),
            measured: None,
        };
        let totals = Totals::of(&[
            of(&faulty, false, vec![cause("train.py", 12)]),
            of(&faulty, false, vec![cause("train.py", 99), cause("train.py", 40)]),
            of(&clean, true, vec![cause("train.py", 3)]),
            of(&clean, true, Vec::new()),
        ]);
        assert_eq!(
            (
                totals.faulty,
                totals.named,
                totals.line_named,
                totals.line_named_first
            ),
            (2, 2, 2, 1)
        );
        assert_eq!((totals.clean, totals.quiet), (2, 1));
        assert_eq!((totals.adds_up, totals.unexplained), (4, 4));
        assert!(totals.falls_short());
    }

    #[test]
    fn every_label_of_the_project_is_valid() {
        let programs = find(&crate::root().join("faults/lines")).unwrap();
        assert_eq!(programs.len(), 268);
    }
}
