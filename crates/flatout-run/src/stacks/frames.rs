//! What of a stack is kept: not the probe's own frames, not what a forked worker inherited, and never an endless recursion.

use flatout_record::ThreadStack;
use py_spy::{Frame, StackTrace};

/// The outermost and the innermost frames kept of a deep stack.
const OUTER: usize = 6;
const INNER: usize = 18;

/// Threads kept of a program that has stalled.
const MOST_THREADS: usize = 12;

/// The main thread's frames as the record writes them, outermost first. Interpreters list the newest thread first.
/// With them, whether it held the interpreter's lock.
pub fn of_main_thread(traces: &[StackTrace], pid: u32, worker: bool) -> (Vec<String>, bool) {
    let own = |trace: &&StackTrace| trace.os_thread_id == Some(u64::from(pid));
    let Some(trace) = traces.iter().find(own).or(traces.last()) else {
        return (Vec::new(), false);
    };
    let mut frames: Vec<&Frame> = trace
        .frames
        .iter()
        .filter(|frame| !is_noise(frame))
        .rev()
        .collect();
    if worker {
        // Below the worker's loop a forked process still shows the stack it was forked from.
        let from = frames
            .iter()
            .rposition(|frame| frame.name == "_worker_loop")
            .unwrap_or(0);
        frames.drain(..from);
    }
    if frames.len() > OUTER + INNER {
        frames.drain(OUTER..frames.len() - INNER);
    }
    let text = |frame: &&Frame| format!("{} ({}:{})", frame.name, frame.filename, frame.line);
    (frames.iter().map(text).collect(), trace.owns_gil)
}

/// The frames of every thread of a process, the main thread first; at most a dozen of them.
pub fn of_all_threads(traces: &[StackTrace], pid: u32) -> Vec<ThreadStack> {
    let main = |trace: &&StackTrace| trace.os_thread_id == Some(u64::from(pid));
    let mut sorted: Vec<&StackTrace> = traces.iter().filter(main).collect();
    sorted.extend(traces.iter().filter(|trace| !main(trace)));
    let frames = |trace: &&StackTrace| {
        let (frames, _) = of_main_thread(std::slice::from_ref(*trace), pid, false);
        ThreadStack {
            thread: trace.os_thread_id,
            frames,
        }
    };
    sorted.iter().take(MOST_THREADS).map(frames).collect()
}

/// The probe's own frames, and the import system's: a start-up is full of them.
fn is_noise(frame: &Frame) -> bool {
    frame.filename == "<flatout>" || frame.filename.starts_with("<frozen ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(names: &[(&str, &str)]) -> StackTrace {
        let frame = |(name, filename): &(&str, &str)| Frame {
            name: (*name).into(),
            filename: (*filename).into(),
            module: None,
            short_filename: None,
            line: 1,
            locals: None,
            is_entry: false,
            is_shim_entry: false,
        };
        StackTrace {
            pid: 1,
            thread_id: 1,
            thread_name: None,
            os_thread_id: Some(7),
            active: true,
            owns_gil: false,
            frames: names.iter().rev().map(frame).collect(),
            process_info: None,
        }
    }

    #[test]
    fn a_forked_worker_shows_its_own_work_only() {
        let names = [
            ("<module>", "train.py"),
            ("__iter__", "<flatout>"),
            ("_worker_loop", "torch/worker.py"),
            ("__getitem__", "data.py"),
        ];
        let (all, _) = of_main_thread(&[trace(&names)], 7, false);
        assert_eq!(
            all,
            [
                "<module> (train.py:1)",
                "_worker_loop (torch/worker.py:1)",
                "__getitem__ (data.py:1)"
            ]
        );
        assert_eq!(of_main_thread(&[trace(&names)], 7, true).0, all[1..]);
    }

    #[test]
    fn recursion_is_cut_in_the_middle() {
        let names = vec![("again", "a.py"); 900];
        assert_eq!(of_main_thread(&[trace(&names)], 7, false).0.len(), OUTER + INNER);
        assert!(of_main_thread(&[], 7, false).0.is_empty());
    }
}
