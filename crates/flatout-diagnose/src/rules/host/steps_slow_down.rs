//! # steps-slow-down
//!
//! ## What it detects
//! Steps take longer and longer during the run.
//!
//! ## Why it is slow
//! Something grows and is processed at every step: a history, a buffer, hooks that are registered repeatedly, losses that keep their
//! graphs.
//!
//! ## Example
//! ```python
//! losses.append(loss.item())
//! smooth = sum(losses) / len(losses)
//! ```
//!
//! ## Use instead
//! ```python
//! losses = deque(maxlen=100)
//! losses.append(loss.item())
//! smooth = sum(losses) / len(losses)
//! ```
//!
//! ## Evidence
//! Time per step in the first and in the last quarter of the run, and the line whose time per step grows most.
//!
//! ## Fix
//! Bound what grows: keep a running value, a `deque(maxlen=N)` or detached numbers; register hooks only once.
//!
//! ## When it is wrong
//! Sequences get longer by design (a curriculum), or another program uses the CPU or the GPU.
//!
//! ## References
//! Reported often in public issues about growing step times, for example mmocr 508, voxceleb_trainer 110 and CycleGAN 281.
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>
//!
//! ---
//! ## 检测什么
//! 运行过程中每步越来越慢。
//! ## 为什么慢
//! 有东西不断增长，且每一步都要处理它：历史记录、缓冲区、重复注册的 hook、保留计算图的 loss。
//! ## 证据
//! 运行最初四分之一和最后四分之一的每步时间，以及每步时间增长最多的那一行。
//! ## 怎么改
//! 限制增长：使用滑动值、`deque(maxlen=N)`、detach 后的数值；hook 只注册一次。
//! ## 何时不成立
//! 序列按设计变长（课程学习），或有其他程序占用 CPU 或 GPU。
//! ## 参考
//! 六个公开讨论提到 data_time 或每步时间不断增长：mmocr 508、voxceleb_trainer 110、CycleGAN 281 等。
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>

use crate::account::center::Center;
use crate::account::frame::Frame;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::StepTick;

pub const ID: &str = "steps-slow-down";
pub const WORST: Severity = Severity::Critical;

/// The last quarter's time per step over the first's, from which on it is a warning.
const SLOWER: f64 = 1.4;
/// How well a straight line explains the times: below this they jump, as on a machine with neighbours.
const STRAIGHT: f64 = 0.7;
/// The line that works through what grows holds this share of the time at least.
const LINE: f64 = 0.15;
/// A line's share grows by this much at least between the halves of the run.
const GROWN: f64 = 0.05;
/// Ticks needed for four quarters of two ticks each.
const TICKS: usize = 8;

/// Seconds per step of steps that get slower and slower.
struct Drift {
    first: f64,
    average: f64,
    last: f64,
}

impl Drift {
    fn of(analysis: &Analysis) -> Option<Self> {
        let (start_s, end_s) = analysis.window.as_ref()?.range();
        let ticks: Vec<&StepTick> = analysis
            .data
            .steps
            .iter()
            .filter(|tick| tick.t > start_s && tick.t <= end_s && tick.steps > 0)
            .collect();
        if ticks.len() < TICKS {
            return None;
        }
        let quarter = ticks.len() / 4;
        let per_step = |ticks: &[&StepTick]| {
            let (seconds, steps) = ticks
                .iter()
                .fold((0.0, 0), |sum, tick| (sum.0 + tick.dt, sum.1 + tick.steps));
            seconds / steps.max(1) as f64
        };
        let quarters: Vec<f64> = (0..4)
            .map(|index| {
                let end = if index == 3 {
                    ticks.len()
                } else {
                    (index + 1) * quarter
                };
                per_step(&ticks[index * quarter..end])
            })
            .collect();
        // Steady growth, not one slow stretch.
        let grows = quarters.windows(2).all(|pair| pair[1] > pair[0] * 1.02);
        let times: Vec<f64> = ticks.iter().map(|tick| per_step(&[tick])).collect();
        let (first, last) = (quarters[0], quarters[3]);
        if !grows || last < first * SLOWER || straightness(&times) < STRAIGHT {
            return None;
        }
        Some(Self {
            first,
            average: per_step(&ticks),
            last,
        })
    }

    /// What grows takes this share of the time on average: its share of the last steps.
    fn at_the_end(&self, share: f64) -> f64 {
        (1.0 - self.average * (1.0 - share) / self.last).clamp(0.0, 0.95)
    }
}

/// The share of the last steps' time that a line costs which takes this share on average. `None` where steps do not slow down, or where
/// another line grows.
pub fn share_now(analysis: &Analysis, center: &Center, share: f64) -> Option<f64> {
    let drift = Drift::of(analysis)?;
    let grows = growth(analysis, center) >= GROWN;
    grows.then(|| drift.at_the_end(share))
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let drift = Drift::of(analysis)?;
    let Drift { first, average, last } = drift;
    let lost = ((average - first) / average).clamp(0.0, 1.0);
    let (before, after) = (units::duration(first), units::duration(last));
    let line = growing_line(analysis).filter(|center| center.seconds >= LINE * window.wall_s())?;
    let place = Some(line.hot.place());
    let mut candidate = Candidate::new(
        ID,
        severity_of(lost),
        message!(
            en: "Steps get slower over time: {before} per step at first, {after} at the end",
            zh: "每步越来越慢：最初每步 {before}，最后 {after}"
        ),
    )
    .confidence(Confidence::High)
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time per step, last quarter relative to the first", zh: "每步时间，最后四分之一与最初之比"),
                last / first,
                "×",
            )
            .against(SLOWER),
        ),
    )
    .claims(
        Stretch::Other,
        Reach::Measured,
        lost * window.wall_s() * 0.8,
        lost * window.wall_s(),
    )
    .or_in(Stretch::Dispatch)
    .or_in(Stretch::Data)
    .by_now(Some(drift.at_the_end(lost)), window.wall_s());
    for place in line.places() {
        candidate = candidate.place(Some(&place));
    }
    Some(candidate.code(
        place.as_ref(),
        message!(
            en: "Find what grows here and bound it: use a running value or deque(maxlen=N) instead of a \
            list, loss.item() or detach() instead of the loss, and register hooks only once",
            zh: "找出这里不断增长的东西并加以限制：用滑动值或 deque(maxlen=N) 代替列表，用 loss.item() 或 detach() 代替 loss，hook 只注册一次"
        ),
    ))
}

/// The share of the times' variance that a straight line explains.
fn straightness(times: &[f64]) -> f64 {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut both, mut across, mut along) = (0.0, 0.0, 0.0);
    for (index, time) in times.iter().enumerate() {
        let (x, y) = (index as f64 - middle, time - mean);
        both += x * y;
        across += x * x;
        along += y * y;
    }
    if across <= 0.0 || along <= 0.0 {
        return 0.0;
    }
    both * both / (across * along)
}

/// The line whose share of the samples grows most; where the samples do not tell, the costliest outside of the model.
fn growing_line<'a>(analysis: &'a Analysis<'_>) -> Option<&'a Center> {
    let lines = &analysis.lines;
    let beside = || lines.aside.iter().chain(&lines.helpers).chain(&lines.data);
    let costliest = || beside().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let grown = beside()
        .chain(&lines.operators)
        .map(|center| (center, growth(analysis, center)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    match grown {
        Some((center, by)) if by >= GROWN => Some(center),
        _ => costliest(),
    }
}

/// How much larger the line's share of the training thread's samples is in the later half of the run.
fn growth(analysis: &Analysis, center: &Center) -> f64 {
    let Some(window) = &analysis.window else {
        return 0.0;
    };
    let middle = (window.start_s + window.end_s) / 2.0;
    let share = |late: bool| {
        let ticks = analysis
            .data
            .stacks
            .iter()
            .filter(|tick| tick.t > window.start_s && (tick.t > middle) == late);
        let (mut there, mut all) = (0.0, 0.0);
        for stack in ticks.flat_map(|tick| &tick.stacks).filter(|stack| !stack.worker) {
            all += stack.time_ms();
            let frames = stack.frames.iter().filter_map(|text| Frame::parse(text));
            let here = frames.filter(Frame::is_users).any(|frame| frame == center.hot);
            there += if here { stack.time_ms() } else { 0.0 };
        }
        if all > 0.0 { there / all } else { 0.0 }
    };
    share(true) - share(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_record::RunData;

    fn drifting(slower: f64) -> RunData {
        let mut data = Build::steady(24)
            .phase(flatout_record::Phase::Other, 0.4)
            .phase(flatout_record::Phase::Compute, 0.6)
            .stack_of(
                &["<module> (t.py:9)"],
                60,
                Some(flatout_record::Phase::Compute),
                false,
            )
            .stack_of(
                &["<module> (t.py:11)", "scan (t.py:3)"],
                40,
                Some(flatout_record::Phase::Other),
                false,
            )
            .done();
        let count = data.steps.len();
        for (index, tick) in data.steps.iter_mut().enumerate() {
            let factor = 1.0 + (slower - 1.0) * index as f64 / count as f64;
            tick.steps = (100.0 / factor) as u64;
        }
        data
    }

    #[test]
    fn fires() {
        let data = drifting(3.0);
        let finding = check(&Analysis::new(&data)).unwrap().finding;
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!((finding.fixes.len(), finding.places[0].line), (1, 3));
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&drifting(1.1))).is_none());
        let mut data = drifting(1.0);
        data.steps[12].steps = 10;
        assert!(
            check(&Analysis::new(&data)).is_none(),
            "one slow second is no drift"
        );
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
