//! # periodic-dips
//!
//! ## What it detects
//! Steps stall at regular intervals, and no evaluation, checkpoint, epoch or garbage collection explains it.
//!
//! ## Why it is slow
//! Something happens every few seconds or steps during which the program does not train: writing a log, computing a metric over all
//! data, reopening a file.
//!
//! ## Example
//! ```python
//! if step % 50 == 0:
//!     validate(model, validation_loader)
//! ```
//!
//! ## Use instead
//! ```python
//! if step % 5000 == 0:
//!     validate(model, validation_loader)
//! ```
//!
//! ## Evidence
//! The number, period and regularity of the stalls, the time they cost, and the phase that grows during them.
//!
//! ## Fix
//! Find what the program does at that interval (with stack samples, flatout shows the line), and do it less often or in another
//! thread.
//!
//! ## When it is wrong
//! Another job on the same machine runs at this interval.
//!
//! ## References
//! SageMaker treats a step beyond three standard deviations as an outlier; gpuprof reports p99/p50 above 2.
//! See also `evaluation-too-often`, `checkpoint-too-often` and `bursty-prefetch`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/utilization-swings.md>
//!
//! ---
//! ## 检测什么
//! 训练以固定周期停顿，而评估、checkpoint、epoch 或垃圾回收都不能解释。
//! ## 为什么慢
//! 每隔若干秒或若干步会发生某件事，其间不训练：写日志、计算全量指标、重新打开文件。
//! ## 证据
//! 停顿的次数、周期和规律性，损失的时间，以及停顿时增长的阶段。
//! ## 怎么改
//! 找出程序在这个周期做了什么（有调用栈记录时会显示主线程所在行），减少次数或放到线程中。
//! ## 何时不成立
//! 同一台机器上另一个作业有自己的节奏。
//! ## 参考
//! SageMaker：超过三个标准差的步为异常；gpuprof：p99/p50 大于 2。
//! 另见 `evaluation-too-often`、`checkpoint-too-often`、`bursty-prefetch`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/utilization-swings.md>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::stats::{deviation, mean, quantile};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::{EventKind, Phase, StepTick};

pub const ID: &str = "periodic-dips";
pub const WORST: Severity = Severity::Warning;

/// A tick with fewer steps than this part of the usual is a dip; so are neighbours that together lack as much of one.
const DIP: f64 = 0.6;
/// A stall falls between two ticks as often as into one: then each lacks less. Rates vary by so much without any.
const SHALLOW: f64 = 0.85;
/// As many make a rhythm; with fewer it may be chance, and is said with less confidence.
const DIPS: usize = 4;
/// Fewer are no rhythm, and so many only when they fill the window: a beginning and an end without one speak against it.
const FEWEST_DIPS: usize = 3;
const SILENCE: f64 = 1.5;
/// With fewer steps in a tick, a dip may be one step that ended a moment later.
const STEPS_A_TICK: f64 = 5.0;
/// The spread of the gaps between dips, of their mean: a ticking clock has little.
const REGULAR: f64 = 0.2;
/// Time lost.
const SHARE: f64 = 0.05;
/// A last tick that is filled less than this is the program's end.
const ENDED: f64 = 0.8;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let (start_s, end_s) = window.range();
    // By their middles: an edge may lie a rounding beyond the window's.
    let mut ticks: Vec<&StepTick> = analysis
        .data
        .steps
        .iter()
        .filter(|tick| tick.t - tick.dt / 2.0 > start_s && tick.t <= end_s && tick.dt > 0.0)
        .collect();
    // The program ended in the last tick: fewer steps there are no dip.
    ticks.pop_if(|tick| ended_within(tick));
    let rate = |tick: &StepTick| tick.steps as f64 / tick.dt;
    let mut rates: Vec<f64> = ticks.iter().map(|tick| rate(tick)).collect();
    rates.sort_by(f64::total_cmp);
    let usual = quantile(&rates, 0.5);
    let lacking = |tick: &&StepTick| 1.0 - rate(tick) / usual;
    let deep = ticks
        .iter()
        .copied()
        .filter(|tick| lacking(tick) > 1.0 - DIP)
        .collect();
    let mut wide: Vec<&StepTick> = Vec::new();
    for run in ticks.chunk_by(|a, b| (lacking(a) > 1.0 - SHALLOW) == (lacking(b) > 1.0 - SHALLOW)) {
        let shallow = run.first().is_some_and(|tick| lacking(tick) > 1.0 - SHALLOW);
        if shallow && run.iter().map(lacking).sum::<f64>() > 1.0 - DIP {
            wide.extend(run);
        }
    }
    rhythm(analysis, &ticks, wide, usual).or_else(|| rhythm(analysis, &ticks, deep, usual))
}

/// The finding, where these dips have one.
fn rhythm(analysis: &Analysis, ticks: &[&StepTick], dips: Vec<&StepTick>, usual: f64) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let (start_s, end_s) = window.range();
    let rate = |tick: &StepTick| tick.steps as f64 / tick.dt;
    let rest: Vec<&StepTick> = ticks
        .iter()
        .copied()
        .filter(|tick| !dips.iter().any(|dip| dip.t == tick.t))
        .collect();
    // Half of the ticks being dips is no rhythm but a rate of two values.
    if usual < STEPS_A_TICK
        || dips.len() * 3 > ticks.len()
        || dips.iter().any(|tick| explained(analysis, tick))
    {
        return None;
    }
    let starts = starts(&dips);
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if starts.len() < FEWEST_DIPS || deviation(&gaps, mean(&gaps)) > mean(&gaps) * REGULAR {
        return None;
    }
    let silent_s = (starts.first()? - start_s).max(end_s - starts.last()?);
    if starts.len() < DIPS && silent_s > mean(&gaps) * SILENCE {
        return None;
    }
    // A few may be another rule's doing: then that one says it better.
    let (confidence, reach) = match starts.len() {
        DIPS.. => (Confidence::Medium, Reach::Specific),
        _ => (Confidence::Low, Reach::General),
    };
    let lost_s: f64 = dips.iter().map(|tick| tick.dt * (1.0 - rate(tick) / usual)).sum();
    let share = lost_s / window.wall_s();
    if share < SHARE {
        return None;
    }
    let (times, period) = (starts.len(), units::duration(mean(&gaps)));
    let grown = grown_phase(&dips, &rest)?;
    let in_phase = crate::analysis::phase_name(grown);
    let (en, zh) = (&in_phase.en, &in_phase.zh);
    Some(
        Candidate::new(
            ID,
            severity_of(share).min(WORST),
            message!(en: "Steps stall every {period} ({times} times)", zh: "训练每隔 {period} 停顿一次，共 {times} 次"),
        )
        .detail(flatout_core::Message {
            en: format!("What increases during the stalls: {en}."),
            zh: format!("停顿时增加的是：{zh}。"),
        })
        .confidence(confidence)
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "time lost to the stalls", zh: "停顿损失的时间"), share * 100.0, "%")
                .against(SHARE * 100.0),
        ))
        .evidence(analysis.in_window(Evidence::new(message!(en: "period", zh: "周期"), mean(&gaps), "s")))
        .claims(stretch(grown), reach, lost_s * 0.5, lost_s)
        .code(
            analysis.loop_place().as_ref(),
            message!(
                en: "Find what the program does every {period}, and do it less often or in another thread",
                zh: "找出程序每隔 {period} 做的事，降低频率或放到线程中"
            ),
        ),
    )
}

/// Whether the phases, which add up to the time the program was there, fill only a part of the tick.
fn ended_within(tick: &StepTick) -> bool {
    let there_s: f64 = Phase::ALL
        .into_iter()
        .map(|phase| tick.phase_ms(phase) / 1e3)
        .sum();
    there_s > 0.0 && there_s < tick.dt * ENDED
}

/// Whether an event that other rules judge lies in the tick.
fn explained(analysis: &Analysis, tick: &StepTick) -> bool {
    let within = |t: f64| t > tick.t - tick.dt - 0.1 && t <= tick.t + 0.1;
    analysis
        .data
        .events
        .iter()
        .filter(|event| within(event.t))
        .any(|event| {
            matches!(
                event.kind,
                EventKind::Eval { .. }
                    | EventKind::Checkpoint { .. }
                    | EventKind::LoaderStart { .. }
                    | EventKind::Epoch { .. }
                    | EventKind::Compile { .. }
            ) || matches!(event.kind, EventKind::GarbageCollection { duration_ms, .. } if duration_ms > 100.0)
        })
}

/// When each dip began; neighbouring ticks are one dip.
fn starts(dips: &[&StepTick]) -> Vec<f64> {
    let mut starts: Vec<f64> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for tick in dips {
        if tick.t - tick.dt > last + 0.1 {
            starts.push(tick.t - tick.dt);
        }
        last = tick.t;
    }
    starts
}

/// Less growth of a phase is none.
const GROWTH: f64 = 0.02;

/// The phase whose share grows most in the dips; where none does (a loop without a loader is all computing), the one that fills them.
fn grown_phase(dips: &[&StepTick], rest: &[&StepTick]) -> Option<Phase> {
    let share = |ticks: &[&StepTick], phase: Phase| {
        let wall: f64 = ticks.iter().map(|tick| tick.dt).sum();
        ticks.iter().map(|tick| tick.phase_ms(phase) / 1e3).sum::<f64>() / wall.max(1e-9)
    };
    let growth = |phase: &Phase| share(dips, *phase) - share(rest, *phase);
    let most = Phase::ALL
        .into_iter()
        .max_by(|a, b| growth(a).total_cmp(&growth(b)));
    let filling = || {
        Phase::ALL
            .into_iter()
            .max_by(|a, b| share(dips, *a).total_cmp(&share(dips, *b)))
    };
    most.filter(|phase| growth(phase) >= GROWTH).or_else(filling)
}

fn stretch(phase: Phase) -> Stretch {
    match phase {
        Phase::Data => Stretch::Data,
        Phase::Transfer => Stretch::Transfer,
        Phase::Compute => Stretch::Dispatch,
        Phase::Sync => Stretch::Sync,
        Phase::Eval => Stretch::Eval,
        Phase::Checkpoint => Stretch::Checkpoint,
        Phase::Other => Stretch::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_record::{PhaseTime, RunData};

    fn dipping() -> RunData {
        let mut data = Build::steady(40).slow_every(5, 0.2).done();
        for tick in data.steps.iter_mut().filter(|tick| tick.steps < 50) {
            let time = |ms| PhaseTime {
                ms,
                ..PhaseTime::default()
            };
            tick.phases = [(Phase::Compute, time(200.0)), (Phase::Other, time(800.0))].into();
        }
        data
    }

    #[test]
    fn ignores_a_dip_at_the_programs_end() {
        let mut data = dipping();
        let last = data.steps.last_mut().unwrap();
        last.steps = 4;
        last.phases = [(
            Phase::Compute,
            PhaseTime {
                ms: 70.0,
                ..PhaseTime::default()
            },
        )]
        .into();
        let last = last.clone();
        assert!(ended_within(&last));
        assert_eq!(crate::diagnose(&data).findings[0].rule, ID);
    }

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&dipping())).is_some());
        assert_eq!(crate::diagnose(&dipping()).findings[0].rule, ID);
    }

    #[test]
    fn a_stall_between_two_ticks_is_one_too() {
        let mut data = Build::steady(40).done();
        for (index, tick) in data.steps.iter_mut().enumerate() {
            // 0.8 s of every 5, half in one second and half in the next, or all in one.
            tick.steps = match index % 10 {
                3 | 4 => 60,
                8 => 20,
                _ => tick.steps,
            };
        }
        let found = check(&Analysis::new(&data)).map(|candidate| format!("{:?}", candidate.finding.title));
        assert!(found.is_some_and(|title| title.contains("8 times")));
        // The same seconds without a rhythm.
        for (index, tick) in data.steps.iter_mut().enumerate() {
            tick.steps = if [3, 4, 6, 17, 18, 31].contains(&index) {
                60
            } else {
                100
            };
        }
        assert!(check(&Analysis::new(&data)).is_none());
    }

    #[test]
    fn reports_three_dips_early_with_low_confidence() {
        let mut early = dipping();
        early.steps.truncate(17);
        let said = check(&Analysis::new(&early));
        assert_eq!(
            said.map(|candidate| candidate.finding.confidence),
            Some(Confidence::Low)
        );
        let mut over = dipping();
        let usual = over.steps[1].clone();
        for tick in &mut over.steps[17..] {
            *tick = StepTick {
                t: tick.t,
                ..usual.clone()
            };
        }
        assert!(check(&Analysis::new(&over)).is_none());
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(40)).is_none());
        let mut explained = dipping();
        for second in 0..40 {
            let kind = EventKind::Epoch {
                number: second,
                duration_ms: None,
            };
            explained.events.push(flatout_record::Event {
                t: 2.5 + second as f64,
                kind,
            });
        }
        assert!(check(&Analysis::new(&explained)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
