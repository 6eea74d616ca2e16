//! What can be said of a program without a probe in it: where its Python code stood, and how busy the GPU and its processes were.

use crate::Analysis;
use crate::analysis::stacks::{hot_lines, own_stacks};
use crate::rules::host::memory_given_back::matters;
use flatout_core::Place;
use flatout_record::RunData;
use serde::Serialize;

/// Lines told, and the least share of one.
const MOST_LINES: usize = 8;
const LEAST_SHARE: f64 = 0.02;

#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Seen {
    pub schema: u32,
    pub seconds: f64,
    /// Times the main thread was looked at.
    pub stacks: u64,
    /// The program's own lines by their share of those.
    pub lines: Vec<SeenLine>,
    /// How busy the busiest GPU was, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_util: Option<f64>,
    /// Of the busiest process's CPU time, the part on memory that it gives back and takes again, where it is worth a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_pages: Option<f64>,
    /// Processes of the tree, itself included.
    pub processes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable_cpus: Option<usize>,
}

#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SeenLine {
    pub place: Place,
    pub function: String,
    pub share: f64,
}

pub fn look(data: &RunData) -> Seen {
    let analysis = Analysis::new(data);
    let all = (0.0, f64::INFINITY);
    let lines = hot_lines(data, all, |stack| !stack.worker).into_iter();
    let lines = lines.filter(|line| line.share >= LEAST_SHARE).take(MOST_LINES);
    let last = data.samples.last();
    Seen {
        schema: crate::SCHEMA,
        seconds: data
            .info
            .exit
            .map(|exit| exit.t)
            .or(last.map(|sample| sample.t))
            .unwrap_or_default(),
        stacks: own_stacks(data, all, |_| true).map_or(0, |(_, all)| all),
        lines: lines
            .map(|line| SeenLine {
                place: line.place,
                function: line.function,
                share: line.share,
            })
            .collect(),
        gpu_util: analysis.busiest_gpu().and_then(|gpu| gpu.util),
        on_pages: analysis.pages.filter(matters).map(|pages| pages.share()),
        processes: last.map_or(0, |sample| sample.processes.len()),
        usable_cpus: analysis.usable_cpus(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;

    #[test]
    fn lists_program_lines_by_share() {
        let data = Build::steady(20)
            .stack(&["<module> (train.py:80)", "load (data.py:9)"], 75)
            .stack(&["<module> (train.py:81)"], 25)
            .done();
        let seen = look(&data);
        assert_eq!((seen.stacks, seen.lines.len()), (100, 2));
        assert_eq!((seen.lines[0].place.line, seen.lines[0].share), (9, 0.75));
        let nothing = look(&RunData::default());
        assert!(nothing.stacks == 0 && nothing.on_pages.is_none());
        let faulting = look(&Build::steady(20).pages(200_000.0, 0.5, 2.0).done());
        assert!((faulting.on_pages.unwrap() - 0.2).abs() < 1e-9);
    }
}
