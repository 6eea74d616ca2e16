//! Processes on the GPUs and those of the watched tree, with their command lines.

use super::canvas::{Canvas, rows, toned};
use crate::screen::{Sort, State};
use flatout_core::{message, units};
use flatout_record::Sample;
use flatout_report::text::Tone;
use flatout_report::text::width::{cut, pad_left, printable};
use ratatui_core::layout::Rect;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    pid: u32,
    gpus: Vec<u32>,
    gpu_bytes: Option<u64>,
    sm: Option<f64>,
    cpus: Option<f64>,
    rss_bytes: Option<u64>,
    command: String,
}

pub fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let all = sorted(&state.picture().sample, state.sort);
    let count = all.len();
    let mut areas = rows(area);
    if let Some(rule) = areas.next() {
        let sort = state.say(&state.sort.name()).to_owned();
        let right = message!(en: "{count}, by {sort}", zh: "{count} 个，按{sort}排序");
        canvas.rule(
            rule,
            state.say(&message!(en: "processes", zh: "进程")),
            if count > 0 { state.say(&right) } else { "" },
        );
    }
    if let Some(row) = areas.next() {
        let head = line([
            "PID",
            "GPU",
            state.say(&message!(en: "GPU mem", zh: "显存")),
            "SM",
            "CPU",
            state.say(&message!(en: "memory", zh: "内存")),
        ]);
        let command = message!(en: "command", zh: "命令");
        let command = state.say(&command);
        canvas.pieces(row, &[toned(format!("{head}  {command}"), Tone::Quiet)]);
    }
    let room = usize::from(area.height.saturating_sub(2));
    let first = state.scroll.min(count.saturating_sub(room));
    for (process, row) in all.iter().skip(first).zip(areas) {
        draw_row(canvas, row, process);
    }
}

fn draw_row(canvas: &mut Canvas, row: Rect, process: &Row) {
    let gpus = ranges(&process.gpus);
    let unknown = || "–".to_owned();
    let bytes = |value: Option<u64>| value.map_or_else(unknown, |bytes| units::bytes(bytes as f64));
    let percent = |value: Option<f64>| value.map_or_else(unknown, |value| format!("{:.0}%", value * 100.0));
    let text = line([
        &process.pid.to_string(),
        &if gpus.is_empty() { unknown() } else { cut(&gpus, 5) },
        &bytes(process.gpu_bytes),
        &percent(process.sm),
        &percent(process.cpus),
        &bytes(process.rss_bytes),
    ]);
    let used = canvas.text(row.x, row.y, row.width, &text, canvas.style(None));
    let room = row.width.saturating_sub(used + 3);
    canvas.text(
        row.x + used + 2,
        row.y,
        room,
        &printable(&process.command),
        canvas.style(Some(Tone::Name)),
    );
}

fn line<T: AsRef<str>>(cells: [T; 6]) -> String {
    let widths = [8, 6, 10, 6, 7, 10];
    cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| pad_left(cell.as_ref(), width))
        .collect()
}

/// `0-7`, `0,2`.
fn ranges(gpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for gpu in gpus {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*gpu) => *last = *gpu,
            _ => parts.push((*gpu, *gpu)),
        }
    }
    let text = parts.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    text.collect::<Vec<_>>().join(",")
}

fn sorted(sample: &Sample, sort: Sort) -> Vec<Row> {
    let mut by_pid: BTreeMap<u32, Row> = BTreeMap::new();
    for (index, gpu) in &sample.gpus {
        for process in gpu.processes.iter().flatten() {
            let row = by_pid.entry(process.pid).or_default();
            row.gpus.push(*index);
            row.gpu_bytes = sum(row.gpu_bytes, process.mem_bytes);
            row.sm = sum(row.sm, process.sm_util);
            if let Some(command) = &process.command {
                row.command.clone_from(command);
            }
        }
    }
    for (pid, process) in &sample.processes {
        let row = by_pid.entry(*pid).or_default();
        row.cpus = process.cpus;
        row.rss_bytes = process.rss_bytes;
        if let Some(command) = process.command.as_ref().filter(|_| row.command.is_empty()) {
            row.command.clone_from(command);
        }
    }
    let mut all: Vec<Row> = by_pid.into_iter().map(|(pid, row)| Row { pid, ..row }).collect();
    let share = |value: Option<f64>| Reverse(value.map(|value| (value * 1e6) as i64));
    match sort {
        Sort::Pid => {}
        Sort::GpuMemory => all.sort_by_key(|row| Reverse(row.gpu_bytes)),
        Sort::SmShare => all.sort_by_key(|row| share(row.sm)),
        Sort::Cpu => all.sort_by_key(|row| share(row.cpus)),
    }
    all
}

fn sum<T: std::ops::Add<Output = T>>(known: Option<T>, more: Option<T>) -> Option<T> {
    match (known, more) {
        (Some(known), Some(more)) => Some(known + more),
        (known, more) => known.or(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{GpuProcess, GpuSample, ProcessSample};

    #[test]
    fn a_process_on_two_gpus_is_one_row_and_the_order_is_the_one_asked_for() {
        let on = |pid, bytes| GpuProcess {
            pid,
            mem_bytes: Some(bytes),
            sm_util: None,
            command: Some(format!("p{pid}")),
        };
        let gpu = |processes| GpuSample {
            processes: Some(processes),
            ..GpuSample::default()
        };
        let mut sample = Sample::default();
        sample.gpus.insert(0, gpu(vec![on(7, 10), on(8, 15)]));
        sample.gpus.insert(1, gpu(vec![on(7, 10)]));
        sample.processes.insert(
            9,
            ProcessSample {
                cpus: Some(2.0),
                command: Some("worker".into()),
                ..ProcessSample::default()
            },
        );
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        let pids = |sort| {
            sorted(&sample, sort)
                .iter()
                .map(|row| row.pid)
                .collect::<Vec<_>>()
        };
        assert_eq!(pids(Sort::GpuMemory), [7, 8, 9]);
        assert_eq!(pids(Sort::Cpu), [9, 7, 8]);
        let first = &sorted(&sample, Sort::Pid)[0];
        assert_eq!(
            (first.gpus.as_slice(), first.gpu_bytes),
            ([0, 1].as_slice(), Some(20))
        );
    }
}
