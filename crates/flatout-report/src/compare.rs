//! Runs against the first of them: what changed, by how much, and whether that is more than noise.
//!
//! - [`change`]: one figure of two runs, as it is shown
//! - [`findings`]: each finding, before and after
//! - [`loss`]: the loss at equal samples
//! - [`text`], [`markdown`], [`html`]: the forms it is shown in
//! - [`annotations`]: what a pull request shows next to its lines

pub mod annotations;
pub mod change;
pub mod findings;
pub mod html;
pub mod loss;
pub mod markdown;
pub mod text;

use crate::digest::Digest;
use crate::digest::figures::{Figure, Unit};
pub use findings::{Fate, FindingRow};
use flatout_compare::{Change, Limit, LimitError, Ratio};
use flatout_core::{Message, message, units};
use flatout_record::Fact;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the JSON form.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub schema: u32,
    pub runs: Vec<RunName>,
    pub figures: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<loss::AtEqualSamples>,
    pub findings: Vec<FindingRow>,
    pub settings: Vec<SettingRow>,
    /// What the reader should know before believing it.
    pub notes: Vec<Message>,
    #[serde(skip)]
    different_ranks: bool,
}

#[derive(Debug, Serialize)]
pub struct RunName {
    /// `A`, `B` …
    pub letter: String,
    pub id: String,
    pub name: String,
}

/// One figure over all runs.
#[derive(Debug, Serialize)]
pub struct Row {
    pub key: &'static str,
    pub name: Message,
    pub unit: Unit,
    /// A run that did not measure it has none.
    pub values: Vec<Option<Figure>>,
    /// Against the first run; the first has none.
    pub changes: Vec<Option<Change>>,
}

#[derive(Debug, Serialize)]
pub struct SettingRow {
    pub setting: String,
    pub values: Vec<Option<String>>,
}

impl Comparison {
    pub fn of(digests: &[Digest]) -> Self {
        let runs = digests.iter().enumerate().map(|(index, digest)| RunName {
            letter: letter(index),
            id: digest.info.id.clone(),
            name: if digest.info.name.is_empty() {
                digest.info.id.clone()
            } else {
                digest.info.name.clone()
            },
        });
        Self {
            schema: SCHEMA,
            runs: runs.collect(),
            figures: figures(digests),
            loss: loss::at_equal_samples(digests),
            findings: findings::of(digests),
            settings: settings(digests),
            notes: notes(digests),
            different_ranks: digests
                .iter()
                .any(|digest| !same_ranks(digests.first(), Some(digest))),
        }
    }

    pub fn figure(&self, key: &str) -> Option<&Row> {
        self.figures.iter().find(|row| row.key == key)
    }

    /// The runs that break a limit: letter, and their throughput by that of the first.
    pub fn broken(&self, limit: Limit) -> std::result::Result<Vec<(String, Ratio)>, LimitError> {
        if self.different_ranks {
            return Err(LimitError::OtherRanks);
        }
        let measured = |key| {
            self.figure(key)
                .filter(|row| row.values.iter().all(Option::is_some))
        };
        let row = measured("samples_per_s")
            .or_else(|| measured("steps_per_s"))
            .ok_or(LimitError::NoRate)?;
        let ratios = row.changes.iter().zip(&self.runs).filter_map(|(change, run)| {
            let ratio = change.as_ref()?.ratio()?;
            limit.is_broken_by(&ratio).then(|| (run.letter.clone(), ratio))
        });
        Ok(ratios.collect())
    }
}

/// `A` to `Z`, then by number.
fn letter(index: usize) -> String {
    u8::try_from(index).ok().filter(|index| *index < 26).map_or_else(
        || (index + 1).to_string(),
        |index| char::from(b'A' + index).to_string(),
    )
}

const KEYS: [&str; 7] = [
    "samples_per_s",
    "steps_per_s",
    "step_ms",
    "data_wait_ms",
    "epoch_s",
    "gpu_busy",
    "cpu_busy",
];

/// Figures that say nothing when the batches are of another size.
const OF_A_BATCH: [&str; 3] = ["steps_per_s", "step_ms", "data_wait_ms"];

/// Figures of one rank, which show nothing of all of them together.
const OF_A_RANK: [&str; 3] = ["samples_per_s", "steps_per_s", "step_ms"];

/// Ranks that trained together, also those that this record is not of.
fn ranks(digest: &Digest) -> usize {
    let world = digest
        .facts
        .iter()
        .rfind(|fact| fact.key == "parallel.world_size");
    let world = world.and_then(|fact| usize::try_from(fact.value.as_u64()?).ok());
    digest.ranks.rows.len().max(world.unwrap_or(1)).max(1)
}

fn same_ranks(first: Option<&Digest>, second: Option<&Digest>) -> bool {
    first.map(ranks) == second.map(ranks)
}

/// Samples in a step, where both rates are known.
fn samples_a_step(digest: &Digest) -> Option<f64> {
    Some(digest.figure("samples_per_s")?.mean / digest.figure("steps_per_s")?.mean)
}

/// Whether the batches hold equally many samples, as far as is known; the last one of an epoch may be short.
fn same_batch(first: Option<&Digest>, second: Option<&Digest>) -> bool {
    let sizes = first
        .and_then(samples_a_step)
        .zip(second.and_then(samples_a_step));
    sizes.is_none_or(|(first, second)| (second / first - 1.0).abs() < 0.02)
}

fn figures(digests: &[Digest]) -> Vec<Row> {
    KEYS.iter()
        .filter_map(|key| {
            let values: Vec<Option<Figure>> =
                digests.iter().map(|digest| digest.figure(key).cloned()).collect();
            let known = values.iter().flatten().next()?.clone();
            let first = values.first().cloned().flatten();
            let changes = values
                .iter()
                .enumerate()
                .map(|(index, value)| match (index, &first, value) {
                    (1.., Some(first), Some(value)) => {
                        let mut change = change::between(first, value);
                        let (first, other) = (digests.first(), digests.get(index));
                        if OF_A_BATCH.contains(key) && !same_batch(first, other)
                            || OF_A_RANK.contains(key) && !same_ranks(first, other)
                        {
                            change.outcome = change.outcome.without_judgement();
                        }
                        Some(change)
                    }
                    _ => None,
                })
                .collect();
            Some(Row {
                key: known.key,
                name: known.name,
                unit: known.unit,
                values,
                changes,
            })
        })
        .collect()
}

/// Everything set or installed that is not the same in all runs.
fn settings(digests: &[Digest]) -> Vec<SettingRow> {
    let all: Vec<BTreeMap<String, String>> = digests.iter().map(settings_of).collect();
    let names: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let values: Vec<Option<String>> = all.iter().map(|run| run.get(name).cloned()).collect();
            let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
            differs.then(|| SettingRow {
                setting: name.clone(),
                values,
            })
        })
        .collect()
}

fn settings_of(digest: &Digest) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let training = digest.loaders.iter().find(|loader| loader.feeds_training);
    let training = training.map_or_else(|| "loader.0".to_owned(), |loader| format!("loader.{}", loader.id));
    // What was measured or computed is no setting.
    let settings_only = |fact: &&Fact| {
        ![
            "device.flops",
            "step.flops",
            "batch.measured",
            "process",
            "parallel.rank",
        ]
        .contains(&fact.key.as_str())
    };
    // That it was put in force from outside is told by the setting itself.
    let own = |fact: &&Fact| !fact.key.starts_with("apply.");
    for fact in digest.facts.iter().filter(settings_only).filter(own) {
        // Of loaders and optimizers the one that trains: its number would hide that the setting is the same.
        let name = match fact.scope.as_deref() {
            Some(scope) if scope.starts_with("loader.") && scope != training => continue,
            Some(scope) if scope.starts_with("optimizer.") && scope != "optimizer.0" => continue,
            _ => fact.key.clone(),
        };
        let value = match &fact.value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => continue,
            other => other.to_string(),
        };
        settings.insert(name, value);
    }
    if ranks(digest) > 1 {
        settings.insert("parallel.world_size".into(), ranks(digest).to_string());
    }
    for (name, version) in &digest.info.versions {
        settings.insert(format!("version of {name}"), version.clone());
    }
    if let Some(host) = &digest.info.host {
        settings.insert("usable CPUs".into(), host.cpus.count().to_string());
    }
    let gpus: Vec<&str> = digest
        .info
        .gpus
        .values()
        .filter_map(|gpu| gpu.name.as_deref())
        .collect();
    if !gpus.is_empty() {
        settings.insert("GPUs".into(), gpus.join(", "));
    }
    if !digest.info.command.is_empty() {
        settings.insert("command".into(), digest.info.command.join(" "));
    }
    settings
}

fn notes(digests: &[Digest]) -> Vec<Message> {
    let mut notes = Vec::new();
    for (index, digest) in digests.iter().enumerate() {
        let run = letter(index);
        for defect in &digest.defects {
            let (en, zh) = (&defect.say.en, &defect.say.zh);
            notes.push(Message {
                en: format!("{run}: {en}"),
                zh: format!("{run}：{zh}"),
            });
        }
        if digest.has_steps && digest.diagnosis.window.is_none() {
            notes.push(message!(
                en: "{run}: too few steady steps to measure a rate",
                zh: "{run}：稳定的步数太少，无法测出速率"
            ));
        }
    }
    if digests
        .iter()
        .any(|digest| !same_batch(digests.first(), Some(digest)))
    {
        notes.push(message!(
            en: "The batch sizes differ: compare samples per second, not steps per second or time per step.",
            zh: "batch 大小不同：每秒步数和每步时间不可比，请比较每秒样本数。"
        ));
    }
    let hosts: BTreeSet<&str> = digests
        .iter()
        .filter_map(|digest| digest.info.host.as_ref())
        .map(|host| host.name.as_str())
        .collect();
    if hosts.len() > 1 {
        notes.push(message!(
            en: "the runs come from different machines; each is measured by its own clock",
            zh: "这些运行来自不同机器；各自按自己的时钟测量"
        ));
    }
    notes.extend(scaling(digests));
    notes.extend(hardware(digests));
    notes.push(message!(
        en: "Values are means over the steady steps, time per epoch without the first epoch. Intervals come from within each run. Speed also varies from run to run: repeat both runs to \
        confirm small changes.",
        zh: "数值为稳定步的平均值，每个 epoch 的时间不含第一个 epoch。区间来自每次运行内部。机器在不同运行之间也有差异：小的变化请重复运行以确认。"
    ));
    notes
}

/// How well more ranks do compared with fewer. The rates of a run with ranks are those of one of them.
fn scaling(digests: &[Digest]) -> Vec<Message> {
    let fewest = digests.iter().enumerate().min_by_key(|(_, digest)| ranks(digest));
    let Some((least, few)) = fewest else {
        return Vec::new();
    };
    let (base, alone) = (letter(least), ranks(few));
    let rate = |digest: &Digest| digest.figure("samples_per_s").map(|figure| figure.mean);
    let one = rate(few).filter(|rate| *rate > 0.0);
    let several = digests
        .iter()
        .enumerate()
        .filter(|(_, digest)| ranks(digest) != alone);
    let notes = several.map(|(index, digest)| {
        let (run, count) = (letter(index), ranks(digest));
        let Some(efficiency) = one.and_then(|one| Some(rate(digest)? / one)) else {
            return message!(
                en: "{run} has {count} ranks, {base} has {alone}; the rates above are per rank.",
                zh: "{run} 有 {count} 个 rank，{base} 有 {alone} 个，速率均为单个 rank 的。"
            );
        };
        let times = units::significant(efficiency * count as f64 / alone as f64);
        let share = units::percent(efficiency);
        if alone == 1 {
            return message!(
                en: "{run} has {count} ranks, {base} has one; the rates above are per rank. All ranks of {run} together are {times}× as fast as {base} (scaling efficiency {share}).",
                zh: "{run} 有 {count} 个 rank，{base} 只有一个，以上速率均为单个 rank 的。{run} 的所有 rank 合计为 {base} 的 {times} 倍（扩展效率 {share}）。"
            );
        }
        message!(
            en: "{run} has {count} ranks, {base} has {alone}; the rates above are per rank. All ranks of {run} together are {times}× as fast as those of {base} (scaling efficiency {share}).",
            zh: "{run} 有 {count} 个 rank，{base} 有 {alone} 个，以上速率均为单个 rank 的。{run} 的所有 rank 合计为 {base} 的 {times} 倍（扩展效率 {share}）。"
        )
    });
    notes.collect()
}

/// Different GPUs or CPUs: the runs differ by more than what was changed.
fn hardware(digests: &[Digest]) -> Option<Message> {
    let described = |digest: &Digest| -> Option<String> {
        let cpus = digest.info.host.as_ref()?.cpus.count();
        let mut gpus: Vec<&str> = digest
            .info
            .gpus
            .values()
            .filter_map(|gpu| gpu.name.as_deref())
            .collect();
        gpus.sort_unstable();
        let gpus = if gpus.is_empty() {
            String::new()
        } else {
            format!(", {}", gpus.join(", "))
        };
        Some(format!("{cpus} CPUs{gpus}"))
    };
    let kinds: BTreeSet<String> = digests.iter().filter_map(described).collect();
    (kinds.len() > 1).then(|| {
        let kinds = kinds.into_iter().collect::<Vec<_>>().join("; ");
        message!(
            en: "The runs used different hardware ({kinds}), which may explain a difference in speed.",
            zh: "这些运行使用了不同的硬件（{kinds}）：速度差异可能由此而来。"
        )
    })
}

#[cfg(test)]
mod tests;
