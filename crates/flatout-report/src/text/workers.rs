//! What the loader's workers do: tasks with their share, and the costliest lines of each.

use super::account::{Part, parts, source_line};
use super::{Paint, Tone};
use flatout_core::{Language, message};
use flatout_diagnose::account::workers::{Task, WorkerAccount, WorkerRow};

/// A task or a line with less is left out.
const SHOWN_SHARE: f64 = 0.01;
/// Lines of one task.
const MOST_LINES: usize = 5;

pub fn workers(account: &WorkerAccount, language: Language, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let samples = account.samples;
    let head = message!(
        en: "What a DataLoader worker does ({samples} samples of one worker)",
        zh: "DataLoader worker 在做什么（对一个 worker 采样 {samples} 次）"
    );
    let tasks = account.by_task().into_iter();
    let shown: Vec<Part> = tasks
        .filter(|(_, share)| *share >= SHOWN_SHARE)
        .map(|(task, share)| Part {
            share,
            name: task.name().get(language).to_owned(),
            note: None,
            lines: lines(account, task),
        })
        .collect();
    format!(
        "{}\n{}",
        paint.tone(Tone::Strong, head.get(language)),
        parts(&shown, width, paint)
    )
}

fn lines(account: &WorkerAccount, task: Task) -> Vec<(String, f64)> {
    let rows = account
        .rows
        .iter()
        .filter(|row| row.task == task && row.place.is_some() && row.share >= SHOWN_SHARE);
    let line = |row: &WorkerRow| {
        let what = row.text.as_deref().or(row.via.as_deref());
        let line = source_line(row.place.as_ref(), what.or(row.function.as_deref()));
        (line, row.share)
    };
    rows.take(MOST_LINES).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Place;

    #[test]
    fn tasks_with_their_lines() {
        let row = |task, share, line| WorkerRow {
            task,
            seconds: share,
            share,
            place: Some(Place::new("/home/me/train.py", line)),
            function: Some("__getitem__".into()),
            via: None,
            text: Some(format!("line({line})")),
        };
        let account = WorkerAccount {
            seconds: 1.0,
            samples: 200,
            rows: vec![
                row(Task::Transform, 0.6, 20),
                row(Task::Decode, 0.3, 21),
                row(Task::Read, 0.001, 22),
            ],
        };
        let text = workers(&account, Language::English, 80, false);
        assert!(
            text.contains("train.py:20  line(20)") && text.contains("decoding"),
            "{text}"
        );
        assert!(!text.contains("reading"), "{text}");
        assert!(workers(&account, Language::Chinese, 80, false).contains("变换"));
    }
}
