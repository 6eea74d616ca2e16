//! The ranks of one run side by side. Ranks go in step, so a slow one shows neither in its steps nor in theirs: it shows in who waits
//! for whom. A rank's own work is its step without collectives; the slow rank has more of it than the others, and the rows of its
//! account that are larger than theirs tell why.

use crate::account::Row;
use crate::account::activity::Activity;
use crate::analysis::Analysis;
use crate::candidate::Stretch;
use crate::{Diagnosis, conclude_one};
use flatout_core::{Message, Place, message};
use flatout_record::{EventKind, Phase, RunData};
use serde::Serialize;

/// A rank is slow when its own work exceeds the others' by this share of a step: TraceML's first level for stragglers.
const EXCESS: f64 = 0.10;
/// And the others must really wait for it.
const LATE: f64 = 0.05;
/// Where the host does not see the waiting, one rank must be behind most of the lateness.
const MOSTLY: f64 = 0.6;
/// Forward takes about a half of the time that its backward takes.
const FORWARD: f64 = 0.2;
/// A rank that misses a CPU this many times as often as the others is starved of it.
const STARVED: f64 = 2.0;
/// Batches that differ by more are unequal.
const SAMPLES: f64 = 1.1;

#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Ranks {
    pub world: u32,
    /// The rank that findings and account are of: the slow one, else the first.
    pub shown: u32,
    pub rows: Vec<RankRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Message>,
}

/// One rank; times are per step.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RankRow {
    pub rank: u32,
    pub steps: u64,
    pub step_ms: f64,
    /// Without collectives; `None` where the host does not see how long those take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<f64>,
    /// In collectives: until the last rank arrived, and after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_ms: Option<f64>,
    pub data_ms: f64,
    /// By how much it kept the others waiting.
    pub late_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
    pub slow: bool,
}

/// The rank that the others wait for.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Slow {
    pub rank: u32,
    /// Its own work per step, and the median of the others'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<(f64, f64)>,
    /// By how much it kept the others waiting, per step, and as a share of a step.
    pub late_ms: f64,
    pub late_share: f64,
    /// Samples per step, and the median of the others', where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<(f64, f64)>,
    /// What it spends more time on than the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Excess>,
}

/// A part of the slow rank's account that the others have less of.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Excess {
    pub activity: Activity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Per step, and the median of the others'.
    pub ms: f64,
    pub others_ms: f64,
}

impl Excess {
    /// The stretch of the slow rank's time that it is in.
    pub fn stretch(&self) -> Stretch {
        match self.activity {
            Activity::WaitingForBatch | Activity::PreparingBatch => Stretch::Data,
            Activity::Copying => Stretch::Transfer,
            Activity::Synchronizing => Stretch::Sync,
            Activity::Evaluating => Stretch::Eval,
            Activity::Saving => Stretch::Checkpoint,
            _ => Stretch::Dispatch,
        }
    }
}

/// The rank that a record's own files are of.
pub fn rank_of(data: &RunData) -> u32 {
    let fact = data.facts.iter().rfind(|fact| fact.key == "parallel.rank");
    let rank = fact.and_then(|fact| fact.value.as_u64());
    rank.and_then(|rank| u32::try_from(rank).ok()).unwrap_or(0)
}

impl Ranks {
    /// `None` for a run with one rank, and for a part of one.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let data = analysis.data;
        if analysis.ranks.is_some() || data.ranks.is_empty() {
            return None;
        }
        let main = rank_of(data);
        let others: Vec<(u32, Analysis)> = data
            .ranks
            .iter()
            .filter(|(rank, _)| *rank != main)
            .map(|(rank, data)| (*rank, Analysis::new(data)))
            .collect();
        let mut all: Vec<(u32, &Analysis)> = others.iter().map(|(rank, of)| (*rank, of)).collect();
        all.push((main, analysis));
        all.sort_by_key(|(rank, _)| *rank);
        let mut rows: Vec<RankRow> = all
            .iter()
            .filter_map(|(rank, of)| RankRow::of(*rank, of))
            .collect();
        if rows.len() < 2 {
            return None;
        }
        let slow = Slow::among(&rows, &all);
        for row in &mut rows {
            row.slow = slow.as_ref().is_some_and(|slow| slow.rank == row.rank);
        }
        let worlds = all
            .iter()
            .filter_map(|(_, of)| of.collectives.as_ref().map(|all| all.world));
        let world = worlds.max().unwrap_or(rows.len() as u32);
        Some(Self {
            world,
            shown: slow.as_ref().map_or(main, |slow| slow.rank),
            notes: notes(&rows, world, &all),
            rows,
            slow,
        })
    }
}

impl RankRow {
    /// `None` without a steady part.
    fn of(rank: u32, analysis: &Analysis) -> Option<Self> {
        let window = analysis.window.as_ref().filter(|window| window.steps > 0)?;
        let a_step = |seconds: f64| seconds * 1e3 / window.steps as f64;
        let step_ms = a_step(window.wall_s());
        let collectives = analysis.collectives.as_ref();
        let wait_ms = collectives.and_then(|all| all.wait_s()).map(a_step);
        let transfer_ms = collectives.and_then(|all| all.transfer_s()).map(a_step);
        let own = wait_ms.zip(transfer_ms);
        Some(Self {
            rank,
            steps: window.steps,
            step_ms,
            own_ms: own.map(|(wait, transfer)| (step_ms - wait - transfer).max(0.0)),
            wait_ms,
            transfer_ms,
            data_ms: a_step(window.seconds(Phase::Data)),
            late_ms: collectives.map_or(0.0, |all| a_step(all.late_s())),
            samples: window
                .samples
                .filter(|samples| *samples > 0)
                .map(|samples| samples as f64 / window.steps as f64),
            slow: false,
        })
    }
}

impl Slow {
    fn among(rows: &[RankRow], all: &[(u32, &Analysis)]) -> Option<Self> {
        let late: f64 = rows.iter().map(|row| row.late_ms).sum();
        let excess = |row: &RankRow| {
            let others = median(rows, row.rank, |other| other.own_ms)?;
            Some((row.own_ms?, others))
        };
        // By own work where that is known of all; else by who comes last.
        let known = rows.iter().all(|row| row.own_ms.is_some());
        let weight = |row: &RankRow| match excess(row).filter(|_| known) {
            Some((own, others)) => own - others,
            None => row.late_ms,
        };
        let row = rows.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
        let is_slow = row.late_ms >= row.step_ms * LATE
            && weight(row) >= row.step_ms * EXCESS
            && (known || row.late_ms >= late * MOSTLY);
        if !is_slow {
            return None;
        }
        let samples = median(rows, row.rank, |other| other.samples);
        Some(Self {
            rank: row.rank,
            own_ms: excess(row).filter(|_| known),
            late_ms: row.late_ms,
            late_share: row.late_ms / row.step_ms,
            samples: row
                .samples
                .zip(samples)
                .filter(|(own, others)| *own > others * SAMPLES),
            cause: largest_excess(row.rank, all),
        })
    }
}

/// The median over the ranks except one; the lower one of two in the middle.
fn median(rows: &[RankRow], except: u32, value: impl Fn(&RankRow) -> Option<f64>) -> Option<f64> {
    let others = rows.iter().filter(|row| row.rank != except);
    lower_median(others.filter_map(value).collect())
}

fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// The row of the slow rank's account that exceeds the others' most.
fn largest_excess(rank: u32, all: &[(u32, &Analysis)]) -> Option<Excess> {
    let of = |analysis: &Analysis, row: &Row| -> f64 {
        let Some(account) = &analysis.account else {
            return 0.0;
        };
        let same = account
            .rows
            .iter()
            .filter(|other| other.activity == row.activity && other.place == row.place);
        same.map(|row| row.seconds).sum::<f64>() * 1e3 / account.steps.max(1) as f64
    };
    let (_, slow) = all.iter().find(|(other, _)| *other == rank)?;
    let others: Vec<&Analysis> = all
        .iter()
        .filter(|(other, analysis)| *other != rank && analysis.account.is_some())
        .map(|(_, analysis)| *analysis)
        .collect();
    let account = slow.account.as_ref()?;
    let starved = is_starved(slow, &others);
    let own = account.rows.iter().filter(|row| match row.activity {
        Activity::WaitingForRank | Activity::Communicating | Activity::Unexplained => false,
        Activity::Descheduled => starved,
        _ => true,
    });
    let excess = |row: &Row| {
        let others_ms = lower_median(others.iter().map(|other| of(other, row)).collect())?;
        Some(Excess {
            activity: row.activity,
            place: row.place.clone(),
            text: row.text.clone(),
            ms: of(slow, row),
            others_ms,
        })
    };
    let more = |excess: &Excess| excess.ms - excess.others_ms;
    let mut found: Vec<(bool, Excess)> = own
        .filter_map(|row| Some((is_backward(row), excess(row)?)))
        .filter(|(_, excess)| more(excess) > 0.0)
        .collect();
    found.sort_by(|(_, a), (_, b)| more(b).total_cmp(&more(a)));
    let (backward, largest) = found.first()?;
    // More backward follows from more forward: the line that causes both is named.
    let forward = found
        .iter()
        .find(|(is_backward, excess)| !is_backward && excess.place.is_some())
        .filter(|(_, excess)| *backward && more(excess) >= more(largest) * FORWARD);
    Some(forward.map_or(largest, |(_, excess)| excess).clone())
}

/// Whether it is the line that calls `backward()`.
fn is_backward(row: &Row) -> bool {
    row.via.as_deref().is_some_and(|via| via.ends_with("backward"))
}

/// Whether a rank misses a CPU more often than the others: with more work alone, all of them miss it equally often.
fn is_starved(slow: &Analysis, others: &[&Analysis]) -> bool {
    let share = |analysis: &Analysis| {
        let account = analysis.account.as_ref()?;
        let running = |row: &&Row| row.activity.runs();
        let runs: f64 = account.rows.iter().filter(running).map(|row| row.seconds).sum();
        let waits = account.seconds(Activity::Descheduled);
        (runs + waits > 0.0).then(|| waits / (runs + waits))
    };
    let usual = lower_median(others.iter().filter_map(|other| share(other)).collect());
    share(slow)
        .zip(usual)
        .is_some_and(|(own, usual)| own > usual * STARVED && own - usual > EXCESS)
}

/// What the comparison does not rest on.
fn notes(rows: &[RankRow], world: u32, all: &[(u32, &Analysis)]) -> Vec<Message> {
    let mut notes = Vec::new();
    let seen = rows.len();
    if (seen as u32) < world {
        notes.push(message!(
            en: "only {seen} of {world} ranks are compared: the others have no steady steps in this record",
            zh: "只比较了 {world} 个 rank 中的 {seen} 个：本记录只有它们的稳定步"
        ));
    }
    let launched = |(_, of): &(u32, &Analysis)| {
        let sites = of.collectives.iter().flat_map(|all| &all.sites);
        sites.clone().count() > 0 && of.collectives.as_ref().is_some_and(|all| all.wait_s().is_none())
    };
    if all.iter().any(launched) {
        notes.push(message!(
            en: "the CPU only launches these collectives, so wait and transfer times are unknown; ranks are \
            compared by launch time",
            zh: "这些集合通信由主机下发到 GPU，等待和传输时间未知；各 rank 按下发时刻比较"
        ));
    }
    notes
}

/// The findings of the rank that the others wait for, with the ranks side by side.
pub fn conclude(analysis: &Analysis, ranks: Ranks) -> Diagnosis {
    let shown = data_of(analysis.data, ranks.shown);
    let mut analysis = Analysis::new(shown.as_ref().unwrap_or(analysis.data));
    analysis.ranks = Some(ranks);
    conclude_one(&analysis)
}

/// The findings of one rank of a record. `None` where the record has no such rank.
pub fn diagnose_rank(data: &RunData, rank: u32) -> Option<Diagnosis> {
    let analysis = Analysis::new(data);
    if let Some(mut ranks) = Ranks::of(&analysis)
        && ranks.rows.iter().any(|row| row.rank == rank)
    {
        ranks.shown = rank;
        return Some(conclude(&analysis, ranks));
    }
    match data_of(data, rank) {
        Some(of) => Some(conclude_one(&Analysis::new(&of))),
        None => (rank == rank_of(data)).then(|| conclude_one(&analysis)),
    }
}

/// A rank's own data, with what the run's files hold for all ranks; `None` for the rank that those files are of.
fn data_of(data: &RunData, rank: u32) -> Option<RunData> {
    let (_, of) = data.ranks.iter().find(|(other, _)| *other == rank)?;
    let of_the_run = data.events.iter().filter(|event| of_the_run(&event.kind));
    (rank != rank_of(data)).then(|| RunData {
        info: data.info.clone(),
        samples: data.samples.clone(),
        lines: data.lines.clone(),
        events: of.events.iter().chain(of_the_run).cloned().collect(),
        ..of.clone()
    })
}

/// Events that the run's own files hold for all ranks.
fn of_the_run(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Process { .. }
            | EventKind::GpuLost { .. }
            | EventKind::Stalled { .. }
            | EventKind::Resumed { .. }
    )
}

#[cfg(test)]
mod tests;
