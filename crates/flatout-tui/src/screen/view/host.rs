//! The machine: processors, memory, disks, and every core at a glance.

use super::canvas::{Canvas, Piece, piece, rows, toned};
use super::graph;
use crate::lines::gib;
use crate::screen::State;
use crate::screen::theme::full_is_bad;
use flatout_core::{Message, message, units};
use flatout_record::HostSample;
use flatout_report::text::Tone;
use ratatui_core::layout::Rect;

const LABEL_CELLS: u16 = 7;
const CORE: [&str; 9] = ["▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

pub fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let host = &state.picture().sample.host;
    let mut areas = rows(area);
    if let Some(rule) = areas.next() {
        canvas.rule(rule, state.say(&message!(en: "host", zh: "主机")), &usable(state));
    }
    if let Some(row) = areas.next() {
        processors(state, canvas, row, host);
    }
    if let Some(row) = areas.next() {
        memory(state, canvas, row, host);
    }
    if let Some(row) = areas.next() {
        cores(state, canvas, row, host);
    }
}

/// `14 of 64 CPUs usable (affinity 16, quota 14)`
fn usable(state: &State) -> String {
    let Some(host) = &state.picture().info.host else {
        return String::new();
    };
    let (count, online, affinity) = (host.cpus.count(), host.cpus.online, host.cpus.affinity);
    let said = match host.cpus.quota.map(units::significant) {
        Some(quota) => message!(
            en: "{count} of {online} CPUs usable (affinity {affinity}, quota {quota})",
            zh: "{online} 个 CPU 中可用 {count} 个（亲和性 {affinity}，配额 {quota}）"
        ),
        None => {
            message!(en: "{count} of {online} CPUs usable (affinity {affinity})", zh: "{online} 个 CPU 中可用 {count} 个（亲和性 {affinity}）")
        }
    };
    state.say(&said).to_owned()
}

fn label(state: &State, canvas: &mut Canvas, row: Rect, text: &Message) -> Rect {
    let quiet = canvas.style(Some(Tone::Quiet));
    canvas.text(row.x + 1, row.y, LABEL_CELLS, state.say(text), quiet);
    Rect {
        x: row.x + 1 + LABEL_CELLS,
        width: row.width.saturating_sub(LABEL_CELLS + 2),
        ..row
    }
}

/// A bar, then its figure.
fn meter(canvas: &mut Canvas, area: Rect, share: Option<f64>, tone: Tone, text: &str) -> Rect {
    let bar = (area.width / 8).clamp(6, 24);
    canvas.meter(area.x, area.y, bar, share, tone);
    let used = bar
        + 1
        + canvas.text(
            area.x + bar + 1,
            area.y,
            area.width.saturating_sub(bar + 1),
            text,
            canvas.style(None),
        );
    let used = used.min(area.width);
    Rect {
        x: area.x + used,
        width: area.width - used,
        ..area
    }
}

fn percent(value: f64) -> String {
    format!("{:.0}%", value * 100.0)
}

fn processors(state: &State, canvas: &mut Canvas, row: Rect, host: &HostSample) {
    let area = label(state, canvas, row, &message!(en: "CPU", zh: "CPU"));
    let text = host
        .cpu_util
        .map_or_else(|| "  –".into(), |value| format!("{:>3.0}%", value * 100.0));
    let rest = meter(canvas, area, host.cpu_util, Tone::Name, &text);
    let spark = (rest.width / 5).min(40);
    if spark >= 6 {
        graph::draw(
            canvas,
            Rect {
                x: rest.x + 1,
                width: spark,
                height: 1,
                ..rest
            },
            &state.picture().cpu,
            Some(Tone::Name),
        );
    }
    let mut pieces = vec![piece("  ")];
    add(
        state,
        &mut pieces,
        message!(en: "I/O wait", zh: "I/O 等待"),
        host.iowait.map(percent),
        host.iowait.is_some_and(|wait| wait > 0.2),
    );
    add(
        state,
        &mut pieces,
        message!(en: "queue", zh: "队列"),
        host.run_queue.map(|queue| format!("{queue:.0}")),
        false,
    );
    let pressures = [
        (message!(en: "pressure cpu", zh: "压力 cpu"), host.psi_cpu),
        (message!(en: "io", zh: "io"), host.psi_io),
        (message!(en: "memory", zh: "内存"), host.psi_memory),
    ];
    for (name, value) in pressures {
        add(
            state,
            &mut pieces,
            name,
            value.map(percent),
            value.is_some_and(|value| value > 0.2),
        );
    }
    let used = (spark + 1).min(rest.width);
    canvas.pieces(
        Rect {
            x: rest.x + used,
            width: rest.width - used,
            ..rest
        },
        &pieces,
    );
}

fn memory(state: &State, canvas: &mut Canvas, row: Rect, host: &HostSample) {
    let area = label(state, canvas, row, &message!(en: "memory", zh: "内存"));
    let known = host
        .mem_total_bytes
        .zip(host.mem_available_bytes)
        .filter(|(total, _)| *total > 0);
    let share = known.map(|(total, available)| total.saturating_sub(available) as f64 / total as f64);
    let text = known.map_or_else(
        || "–".into(),
        |(total, available)| format!("{}/{} GiB", gib(total.saturating_sub(available)), gib(total)),
    );
    let rest = meter(canvas, area, share, share.map_or(Tone::Good, full_is_bad), &text);
    let mut pieces = vec![piece("  ")];
    if let (Some(read), Some(write)) = (host.disk_read_bytes_s, host.disk_write_bytes_s) {
        let rates = format!("↓{}/s ↑{}/s", units::bytes(read), units::bytes(write));
        add(
            state,
            &mut pieces,
            message!(en: "disk", zh: "磁盘"),
            Some(rates),
            false,
        );
    }
    add(
        state,
        &mut pieces,
        message!(en: "busy", zh: "忙"),
        host.disk_busy.map(percent),
        host.disk_busy.is_some_and(|busy| busy > 0.8),
    );
    let shm = host.shm_used_bytes.zip(host.shm_total_bytes);
    add(
        state,
        &mut pieces,
        Message::verbatim("/dev/shm"),
        shm.map(|(used, total)| format!("{}/{} GiB", gib(used), gib(total))),
        shm.is_some_and(|(used, total)| used as f64 > 0.9 * total as f64),
    );
    let swap = host.swap_used_bytes.map(|used| units::bytes(used as f64));
    add(
        state,
        &mut pieces,
        message!(en: "swap", zh: "交换"),
        swap,
        host.swap_in_bytes_s.is_some_and(|rate| rate > 1e6),
    );
    canvas.pieces(rest, &pieces);
}

fn add(state: &State, pieces: &mut Vec<Piece>, name: Message, value: Option<String>, alarming: bool) {
    let Some(value) = value else { return };
    // Name and value are one piece, so that a narrow screen never cuts between them.
    let text = format!("{} {value}  ", state.say(&name));
    pieces.push(if alarming {
        toned(text, Tone::Warning)
    } else {
        piece(text)
    });
}

/// A column a core; several cores share one where there are more than columns.
fn cores(state: &State, canvas: &mut Canvas, row: Rect, host: &HostSample) {
    let area = label(state, canvas, row, &message!(en: "cores", zh: "各核"));
    let Some(cores) = host.core_util.as_deref().filter(|cores| !cores.is_empty()) else {
        return;
    };
    let together = cores.len().div_ceil(usize::from(area.width.max(1)));
    for (column, group) in cores.chunks(together).enumerate() {
        let mean = group.iter().sum::<f64>() / group.len() as f64;
        let symbol = CORE[(mean.clamp(0.0, 1.0) * 8.0).round() as usize];
        let tone = if mean > 0.95 { Tone::Warning } else { Tone::Name };
        canvas.text(
            area.x + column as u16,
            area.y,
            1,
            symbol,
            canvas.theme.style(tone),
        );
    }
}
