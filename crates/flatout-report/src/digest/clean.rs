//! A record may be empty, torn, or written while the clock jumped. What cannot be placed in time is left out and said; a
//! number from it would be wrong.

use flatout_core::{Message, message};
use flatout_record::RunData;

/// Something that the reader of a report should know of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    pub say: Message,
    /// What a record has while it is written: its end is missing.
    pub is_missing_end: bool,
}

/// A record of more than ten years is no record of a training: the time is broken.
const LONGEST_S: f64 = 10.0 * 365.0 * 86_400.0;

/// Lets through what comes after all before it, and counts the rest.
#[derive(Debug)]
pub struct Ascending {
    last_s: f64,
    pub dropped: usize,
}

impl Default for Ascending {
    fn default() -> Self {
        Self {
            last_s: f64::NEG_INFINITY,
            dropped: 0,
        }
    }
}

impl Ascending {
    pub fn take(&mut self, t: f64) -> bool {
        let take = placed(t) && t > self.last_s;
        if take {
            self.last_s = t;
        } else {
            self.dropped += 1;
        }
        take
    }
}

/// What is wrong with the record. `dropped`: samples and step lines that were left out; `every`: of how many samples the rules saw one.
pub fn defects(data: &RunData, dropped: (usize, usize), every: usize) -> Vec<Defect> {
    let mut defects = Vec::new();
    let mut add = |say: Message, is_missing_end: bool| {
        defects.push(Defect { say, is_missing_end });
    };
    let (samples, steps) = dropped;
    if samples + steps > 0 {
        add(
            message!(
                en: "the clock jumped back or was wrong: ignored {samples} samples and {steps} step lines",
                zh: "时钟回跳或有误：忽略 {samples} 个采样和 {steps} 行步数据"
            ),
            false,
        );
    }
    let broken = data.skipped.iter().filter(|skipped| !skipped.torn).count();
    if broken > 0 {
        add(
            message!(en: "{broken} lines of the record could not be read", zh: "记录中有 {broken} 行无法读取"),
            false,
        );
    }
    if data.skipped.iter().any(|skipped| skipped.torn) {
        add(
            message!(
                en: "the last line is incomplete because the writer was killed; everything before it is \
                intact",
                zh: "最后一行不完整：写入进程被终止；之前的内容都在"
            ),
            true,
        );
    }
    let empty = data.samples.is_empty() && data.steps.is_empty();
    if empty {
        add(
            message!(en: "the record is empty: it has no samples and no steps", zh: "记录为空：既无采样也无步数据"),
            false,
        );
    } else if data.samples.len() == 1 && data.steps.is_empty() {
        add(
            message!(en: "only one sample: not enough to judge the run", zh: "只有一个采样：无法说明运行过程"),
            false,
        );
    }
    if data.info.exit.is_none() && !empty && data.info.kind != "import" {
        add(
            message!(
                en: "the end of the run is not recorded: it was killed or is still running",
                zh: "记录中没有运行的结束：被终止，或仍在运行"
            ),
            true,
        );
    }
    if every > 1 {
        add(
            message!(
                en: "long run: charts and GPU figures use every sample, findings use one in {every}; \
                `flatout diagnose` uses all of them",
                zh: "运行较长：图表和 GPU 指标取自全部采样，诊断结论取自每 {every} 个采样中的一个；flatout diagnose 会分析全部"
            ),
            false,
        );
    }
    defects
}

pub fn placed(t: f64) -> bool {
    (0.0..LONGEST_S).contains(&t)
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

    #[test]
    fn what_jumped_back_is_not_taken() {
        let mut ascending = Ascending::default();
        let times = [1.0, 2.0, 1.5, 3.0, f64::NAN, -4.0, 1e300];
        let taken: Vec<f64> = times.into_iter().filter(|t| ascending.take(*t)).collect();
        assert_eq!(taken, [1.0, 2.0, 3.0]);
        assert_eq!(ascending.dropped, 4);
        let defects = defects(&RunData::default(), (4, 0), 1);
        assert!(
            defects[0].say.en.contains("4 samples and 0 step lines"),
            "{defects:?}"
        );
    }

    #[test]
    fn reports_an_empty_record() {
        let data = RunData::default();
        assert!(defects(&data, (0, 0), 1)[0].say.en.contains("empty"));
        assert_eq!(length_s(&data), None);
    }
}
