//! Many GPUs: one row each, a sparkline in it, columns in fixed places.

use super::canvas::{Canvas, Piece, piece, rows, toned};
use super::{cards, graph};
use crate::lines::{memory, memory_total, power};
use crate::screen::State;
use crate::screen::theme::{full_is_bad, heat, high_is_good};
use flatout_core::{message, units};
use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::{GpuInfo, GpuSample};
use flatout_report::text::Tone;
use flatout_report::text::width::{cut, pad_left, printable, width};
use ratatui_core::layout::Rect;

/// The columns left and right of the sparkline.
struct Widths {
    name: u16,
    held: u16,
    spark: u16,
}

/// ` 0 ` and ` 97%`.
const INDEX_CELLS: u16 = 4;
const SHARE_CELLS: u16 = 5;
const MEMORY_CELLS: u16 = 10;
const POWER_CELLS: u16 = 9;
const HEAT_CELLS: u16 = 5;
const CLOCK_CELLS: u16 = 6;

impl Widths {
    fn new(width: u16) -> Self {
        let name = if width >= 120 { 18 } else { 0 };
        let held = if width >= 100 { 20 } else { 10 };
        let fixed = INDEX_CELLS
            + name
            + SHARE_CELLS * 4
            + MEMORY_CELLS
            + POWER_CELLS
            + HEAT_CELLS
            + CLOCK_CELLS
            + held
            + 2;
        Self {
            name,
            held,
            spark: width.saturating_sub(fixed),
        }
    }
}

pub fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let picture = state.picture();
    let widths = Widths::new(area.width);
    let mut areas = rows(area);
    if let Some(rule) = areas.next() {
        canvas.rule(rule, "GPU", &legend(state, widths.spark));
    }
    if let Some(row) = areas.next() {
        head(state, canvas, row, &widths);
    }
    let blank = GpuSample::default();
    let shown = usize::from(area.height.saturating_sub(2));
    for ((index, history), row) in picture.history.iter().zip(areas) {
        let gpu = picture.sample.gpus.get(index).unwrap_or(&blank);
        let spark_x = draw_row(
            state,
            canvas,
            row,
            *index,
            gpu,
            picture.info.gpus.get(index),
            &widths,
        );
        if widths.spark > 1 {
            let spark = Rect {
                x: spark_x,
                width: widths.spark - 1,
                ..row
            };
            graph::draw(canvas, spark, history, None);
        }
    }
    if let Some(hidden) = picture
        .history
        .len()
        .checked_sub(shown)
        .filter(|hidden| *hidden > 0 && area.height > 2)
    {
        let text =
            message!(en: " and {hidden} more; enlarge the window ", zh: " 还有 {hidden} 块；请增大窗口高度 ");
        let last = Rect {
            y: area.bottom().saturating_sub(1),
            height: 1,
            ..area
        };
        canvas.pieces_right(last, &[toned(state.say(&text), Tone::Warning)]);
    }
}

/// How much time the graphs show.
pub fn legend(state: &State, columns: u16) -> String {
    let picture = state.picture();
    let known = picture
        .history
        .values()
        .map(|history| history.len())
        .max()
        .unwrap_or(0)
        .min(usize::from(columns));
    let Some(interval) = picture.info.interval_s.filter(|_| known > 1) else {
        return String::new();
    };
    let span = units::duration((known as f64 * interval).round().max(interval));
    let inner = picture
        .history
        .values()
        .flatten()
        .any(|point| point.inner.is_some())
        && state.theme.colour;
    let said = if inner {
        message!(en: "last {span}, utilization (bright: SMs busy)", zh: "最近 {span} 利用率（亮色：SM 在工作）")
    } else {
        message!(en: "last {span}, utilization", zh: "最近 {span} 利用率")
    };
    state.say(&said).to_owned()
}

fn head(state: &State, canvas: &mut Canvas, row: Rect, widths: &Widths) {
    let quiet = Some(Tone::Quiet);
    let mut pieces: Vec<Piece> = vec![(" ".repeat(usize::from(INDEX_CELLS + widths.name)), quiet)];
    let right = |text: &str, cells: u16| (pad_left(text, usize::from(cells)), quiet);
    pieces.push(right(state.say(&message!(en: "util", zh: "利用")), SHARE_CELLS));
    pieces.push((" ".repeat(usize::from(widths.spark)), quiet));
    pieces.push(right("SM", SHARE_CELLS));
    pieces.push(right("TC", SHARE_CELLS));
    pieces.push(right("DRAM", SHARE_CELLS));
    pieces.push(right(state.say(&message!(en: "GiB", zh: "GiB")), MEMORY_CELLS));
    pieces.push(right(state.say(&message!(en: "power", zh: "功耗")), POWER_CELLS));
    pieces.push(right("°C", HEAT_CELLS));
    pieces.push(right("MHz", CLOCK_CELLS));
    pieces.push((
        format!("  {}", state.say(&message!(en: "throttle", zh: "降频"))),
        quiet,
    ));
    canvas.pieces(row, &pieces);
}

/// Draws all but the sparkline, and says where that begins.
fn draw_row(
    state: &State,
    canvas: &mut Canvas,
    row: Rect,
    index: u32,
    gpu: &GpuSample,
    info: Option<&GpuInfo>,
    widths: &Widths,
) -> u16 {
    let mut pieces = vec![toned(format!(" {index:>2} "), Tone::Strong)];
    if widths.name > 0 {
        let name = printable(
            info.and_then(|info| info.name.as_deref())
                .unwrap_or("")
                .trim_start_matches("NVIDIA "),
        );
        let name = cut(&name, usize::from(widths.name) - 1);
        pieces.push(toned(
            flatout_report::text::width::pad(&name, usize::from(widths.name)),
            Tone::Name,
        ));
    }
    pieces.push(share(utilisation_of_tick(gpu), true));
    let spark_x = row.x + pieces.iter().map(|(text, _)| width(text) as u16).sum::<u16>() + 1;
    pieces.push(piece(" ".repeat(usize::from(widths.spark))));
    pieces.push(share(gpu.sm_activity, false));
    pieces.push(share(gpu.tensor_activity, false));
    pieces.push(share(gpu.dram_activity.or(gpu.mem_util), false));
    let fullness = gpu
        .mem_used_bytes
        .zip(memory_total(gpu, info))
        .map(|(used, total)| used as f64 / total.max(1) as f64);
    let of_limit = gpu
        .power_w
        .zip(gpu.power_limit_w)
        .map(|(power, limit)| power / limit.max(1.0));
    let right = |text: String, cells: u16, tone: Option<Tone>| (pad_left(&text, usize::from(cells)), tone);
    pieces.push(right(
        memory(gpu, info).trim_end_matches(" GiB").to_owned(),
        MEMORY_CELLS,
        fullness.map(full_is_bad).filter(|tone| *tone != Tone::Good),
    ));
    pieces.push(right(power(gpu), POWER_CELLS, of_limit.map(high_is_good)));
    pieces.push(right(
        gpu.temp_c
            .map_or_else(|| "–".into(), |celsius| format!("{celsius:.0}")),
        HEAT_CELLS,
        gpu.temp_c.map(heat),
    ));
    pieces.push(right(
        gpu.sm_clock_mhz
            .map_or_else(|| "–".into(), |clock| format!("{clock:.0}")),
        CLOCK_CELLS,
        None,
    ));
    pieces.push(piece("  "));
    let used: u16 = pieces.iter().map(|(text, _)| width(text) as u16).sum();
    canvas.pieces(row, &pieces);
    let held: String = cards::held(state, gpu)
        .iter()
        .map(|(text, _)| text.as_str())
        .collect();
    let tone = cards::held(state, gpu).first().and_then(|(_, tone)| *tone);
    let x = row.x + used.min(row.width);
    canvas.text(
        x,
        row.y,
        widths.held.min(row.right().saturating_sub(x)),
        &held,
        canvas.style(tone),
    );
    spark_x
}

fn share(value: Option<f64>, judged: bool) -> Piece {
    match value {
        Some(value) => (
            format!("{:>4.0}%", value * 100.0),
            judged.then(|| high_is_good(value)),
        ),
        None => toned("    –", Tone::Quiet),
    }
}
