//! A record may be empty, torn, or written while the clock jumped. What cannot be placed in time is left out and said; a
//! number from it would be wrong.

use flatout_core::{Message, message};
use flatout_telemetry::record::RunData;

/// Something that the reader of a report should know of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    pub say: Message,
}

/// A record of more than ten years is no record of a training: the time is broken.
const LONGEST_S: f64 = 10.0 * 365.0 * 86_400.0;

/// Leaves only what stands in time, ascending, and says what was wrong.
pub fn clean(data: &mut RunData) -> Vec<Defect> {
    let mut defects = Vec::new();
    let mut say = |say: Message| defects.push(Defect { say });
    let samples = keep_ascending(&mut data.samples, |sample| sample.t);
    let steps = keep_ascending(&mut data.steps, |tick| tick.t);
    data.events.retain(|event| placed(event.t));
    if samples + steps > 0 {
        let (samples, steps) = (samples, steps);
        say(message!(
            en: "the clock jumped back or was wrong: {samples} samples and {steps} step lines are left out",
            zh: "时钟回跳或有误：忽略 {samples} 个采样和 {steps} 行步数据"
        ));
    }
    let broken = data.skipped.iter().filter(|skipped| !skipped.torn).count();
    if broken > 0 {
        say(
            message!(en: "{broken} lines of the record could not be read", zh: "记录中有 {broken} 行无法读取"),
        );
    }
    if data.skipped.iter().any(|skipped| skipped.torn) {
        say(message!(
            en: "the last line is incomplete: the writer was killed; everything before it is here",
            zh: "最后一行不完整：写入进程被终止；之前的内容都在"
        ));
    }
    if data.samples.is_empty() && data.steps.is_empty() {
        say(
            message!(en: "the record is empty: it has neither samples nor steps", zh: "记录为空：既无采样也无步数据"),
        );
    } else if data.samples.len() == 1 && data.steps.is_empty() {
        say(
            message!(en: "one sample only: it says nothing about how things went", zh: "只有一个采样：无法说明运行过程"),
        );
    }
    if data.info.exit.is_none() && !(data.samples.is_empty() && data.steps.is_empty()) {
        say(message!(
            en: "the end of the run is not in the record: it was killed, or still runs",
            zh: "记录中没有运行的结束：被终止，或仍在运行"
        ));
    }
    defects
}

fn placed(t: f64) -> bool {
    (0.0..LONGEST_S).contains(&t)
}

/// Drops what does not come after all before it; returns how many.
fn keep_ascending<T>(items: &mut Vec<T>, t: impl Fn(&T) -> f64) -> usize {
    let before = items.len();
    let mut last = f64::NEG_INFINITY;
    items.retain(|item| {
        let t = t(item);
        let keep = placed(t) && t > last;
        if keep {
            last = t;
        }
        keep
    });
    before - items.len()
}

/// The run's length: its exit, else the last thing known of it.
pub fn length_s(data: &RunData) -> Option<f64> {
    let known = [
        data.info.exit.map(|exit| exit.t).filter(|t| placed(*t)),
        data.steps.last().map(|tick| tick.t),
        data.samples.last().map(|sample| sample.t),
        data.events.iter().map(|event| event.t).reduce(f64::max),
    ];
    known.into_iter().flatten().filter(|t| *t > 0.0).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_telemetry::{Sample, StepTick};

    #[test]
    fn what_jumped_back_is_left_out_and_said() {
        let mut data = RunData::default();
        for t in [1.0, 2.0, 1.5, 3.0, f64::NAN, -4.0, 1e300] {
            data.samples.push(Sample {
                t,
                ..Sample::default()
            });
        }
        data.steps.push(StepTick {
            t: 2.0,
            ..StepTick::default()
        });
        let defects = clean(&mut data);
        let times: Vec<f64> = data.samples.iter().map(|sample| sample.t).collect();
        assert_eq!(times, [1.0, 2.0, 3.0]);
        assert!(
            defects[0].say.en.contains("4 samples and 0 step lines"),
            "{defects:?}"
        );
        assert_eq!(length_s(&data), Some(3.0));
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        let mut data = RunData::default();
        let defects = clean(&mut data);
        assert!(defects[0].say.en.contains("empty"), "{defects:?}");
        assert_eq!(length_s(&data), None);
    }
}
