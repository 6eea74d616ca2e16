//! A GPU as a card: its shares, a graph, its meters.

use super::canvas::{Canvas, Piece, piece, toned};
use super::{graph, table};
use crate::lines::{gib, memory_total};
use crate::screen::State;
use crate::screen::theme::{full_is_bad, heat, high_is_good};
use flatout_core::{Language, message, units};
use flatout_diagnose::verdict::{costs_speed, utilisation_of_tick};
use flatout_record::{GpuInfo, GpuSample};
use flatout_report::text::width::{cut, printable, width};
use flatout_report::text::{Tone, throttle_name};
use ratatui_core::layout::Rect;

/// `100` and `0` beside the graph.
const AXIS_CELLS: u16 = 5;

pub fn draw(state: &State, canvas: &mut Canvas, area: Rect, graph_rows: u16) {
    let picture = state.picture();
    let title = Rect {
        height: 1.min(area.height),
        ..area
    };
    canvas.rule(
        title,
        "GPU",
        &table::legend(state, area.width.saturating_sub(AXIS_CELLS + 1)),
    );
    let blank = GpuSample::default();
    let mut y = area.y + 1;
    for (index, history) in &picture.history {
        let height = graph_rows + 2;
        if y + height > area.bottom() {
            return;
        }
        let gpu = picture.sample.gpus.get(index).unwrap_or(&blank);
        let info = picture.info.gpus.get(index);
        let line = |y: u16| Rect {
            x: area.x + 1,
            y,
            width: area.width.saturating_sub(2),
            height: 1,
        };
        shares(state, canvas, line(y), *index, gpu, info);
        let quiet = canvas.style(Some(Tone::Quiet));
        canvas.text(area.x + 1, y + 1, 3, "100", quiet);
        canvas.text(area.x + 3, y + graph_rows, 1, "0", quiet);
        let plot = Rect {
            x: area.x + AXIS_CELLS,
            y: y + 1,
            width: area.width.saturating_sub(AXIS_CELLS + 1),
            height: graph_rows,
        };
        graph::draw(canvas, plot, history, None);
        meters(state, canvas, line(y + 1 + graph_rows), gpu, info);
        y += height;
    }
}

/// ` 0 H200   97%   SM 88%  tensor 41%  DRAM 62%          held down: power cap`
fn shares(
    state: &State,
    canvas: &mut Canvas,
    area: Rect,
    index: u32,
    gpu: &GpuSample,
    info: Option<&GpuInfo>,
) {
    let wide = area.width >= 98;
    let name = info.and_then(|info| info.name.as_deref()).unwrap_or("GPU");
    let mut pieces = vec![
        toned(format!("{index} "), Tone::Strong),
        toned(
            cut(
                &printable(name.trim_start_matches("NVIDIA ")),
                if wide { 40 } else { 16 },
            ),
            Tone::Name,
        ),
        piece("  "),
    ];
    pieces.push(match utilisation_of_tick(gpu) {
        Some(share) => toned(format!("{:>3.0}%", share * 100.0), high_is_good(share)),
        None => toned("  –", Tone::Quiet),
    });
    for (label, value) in activities(state.language, gpu, wide) {
        pieces.push(toned(format!("   {label} "), Tone::Quiet));
        pieces.push(piece(format!("{:.0}%", value * 100.0)));
    }
    let used: usize = pieces.iter().map(|(text, _)| width(text)).sum();
    canvas.pieces(area, &pieces);
    let used = (used as u16 + 2).min(area.width);
    canvas.pieces_right(
        Rect {
            x: area.x + used,
            width: area.width - used,
            ..area
        },
        &held(state, gpu),
    );
}

fn activities(language: Language, gpu: &GpuSample, wide: bool) -> Vec<(String, f64)> {
    let all = [
        (message!(en: "SM", zh: "SM"), gpu.sm_activity),
        (
            message!(en: "occupancy", zh: "占用率"),
            gpu.sm_occupancy.filter(|_| wide),
        ),
        (message!(en: "tensor", zh: "Tensor"), gpu.tensor_activity),
        (
            message!(en: "DRAM", zh: "显存带宽"),
            gpu.dram_activity.or(gpu.mem_util),
        ),
    ];
    all.into_iter()
        .filter_map(|(label, value)| Some((label.get(language).to_owned(), value?)))
        .collect()
}

/// Why the clocks are down; idle is no news.
pub fn held(state: &State, gpu: &GpuSample) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(age) = gpu.age_s {
        let age = units::duration(age);
        pieces.push(toned(
            state.say(&message!(en: "{age} old ", zh: "{age} 前的数据 ")),
            Tone::Warning,
        ));
    }
    for reason in gpu.throttle.as_deref().unwrap_or_default() {
        let tone = if costs_speed(reason) {
            Tone::Bad
        } else {
            Tone::Quiet
        };
        let name = throttle_name(reason);
        let text = if pieces.is_empty() {
            state.say(&name).to_owned()
        } else {
            format!(" + {}", state.say(&name))
        };
        pieces.push(toned(text, tone));
    }
    pieces
}

/// ` memory ██████···· 61.2/141 GiB   power ████████·· 598/700 W   71 °C   1980/1980 MHz   PCIe ↓1.2 ↑0.3 GiB/s`
fn meters(state: &State, canvas: &mut Canvas, area: Rect, gpu: &GpuSample, info: Option<&GpuInfo>) {
    let bar = (area.width / 9).clamp(6, 24);
    let mut x = area.x;
    let memory = gpu.mem_used_bytes.map(|used| (used, memory_total(gpu, info)));
    let share = memory.and_then(|(used, total)| Some(used as f64 / total.filter(|total| *total > 0)? as f64));
    let text = match memory {
        Some((used, Some(total))) => format!("{}/{} GiB", gib(used), gib(total)),
        Some((used, None)) => format!("{} GiB", gib(used)),
        None => "–".to_owned(),
    };
    x = labelled_meter(
        canvas,
        area,
        x,
        bar,
        state.say(&message!(en: "memory", zh: "显存")),
        share,
        share.map_or(Tone::Good, full_is_bad),
        &text,
    );
    let share = gpu
        .power_w
        .zip(gpu.power_limit_w)
        .filter(|(_, limit)| *limit > 0.0)
        .map(|(power, limit)| power / limit);
    let text = match (gpu.power_w, gpu.power_limit_w) {
        (Some(power), Some(limit)) => format!("{power:.0}/{limit:.0} W"),
        (Some(power), None) => format!("{power:.0} W"),
        _ => "–".to_owned(),
    };
    x = labelled_meter(
        canvas,
        area,
        x,
        bar,
        state.say(&message!(en: "power", zh: "功耗")),
        share,
        share.map_or(Tone::Good, high_is_good),
        &text,
    );
    let mut pieces = Vec::new();
    if let Some(celsius) = gpu.temp_c {
        pieces.push(toned(format!("{celsius:.0} °C  "), heat(celsius)));
    }
    if let Some(clock) = gpu.sm_clock_mhz {
        let max = info
            .and_then(|info| info.sm_clock_max_mhz)
            .filter(|_| area.width >= 100);
        pieces.push(piece(max.map_or_else(
            || format!("{clock:.0} MHz  "),
            |max| format!("{clock:.0}/{max:.0} MHz  "),
        )));
    }
    for (name, into, out_of) in [
        ("PCIe", gpu.pcie_rx_bytes_s, gpu.pcie_tx_bytes_s),
        ("NVLink", gpu.nvlink_rx_bytes_s, gpu.nvlink_tx_bytes_s),
    ] {
        // A GPU without NVLink answers with zeros.
        if let (Some(into), Some(out_of)) = (into, out_of)
            && (name == "PCIe" || into + out_of > 0.0)
        {
            // One piece, so that a narrow screen never shows a name without its figures.
            pieces.push(piece(format!(
                " {name} ↓{}/s ↑{}/s  ",
                units::bytes(into),
                units::bytes(out_of)
            )));
        }
    }
    let room = area.right().saturating_sub(x);
    canvas.pieces(
        Rect {
            x,
            width: room,
            ..area
        },
        &pieces,
    );
}

#[expect(
    clippy::too_many_arguments,
    reason = "a label, a bar and a text in one place of a line"
)]
fn labelled_meter(
    canvas: &mut Canvas,
    area: Rect,
    x: u16,
    bar: u16,
    label: &str,
    share: Option<f64>,
    tone: Tone,
    text: &str,
) -> u16 {
    let wanted = width(label) as u16 + 1 + bar + 1 + width(text) as u16;
    if x + wanted > area.right() {
        return x;
    }
    let quiet = canvas.style(Some(Tone::Quiet));
    let mut x = x + canvas.text(x, area.y, area.width, &format!("{label} "), quiet);
    canvas.meter(x, area.y, bar, share, tone);
    x += bar + 1;
    x + canvas.text(x, area.y, area.width, text, canvas.style(None)) + 2
}
