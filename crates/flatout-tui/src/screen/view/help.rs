//! The help, over everything else.

use super::canvas::{Canvas, rows};
use crate::screen::State;
use flatout_core::{Message, message};
use flatout_report::text::Tone;
use flatout_report::text::width::{pad, width};
use ratatui_core::layout::Rect;

fn lines() -> Vec<(&'static str, Message)> {
    vec![
        (
            "q Esc ^C",
            message!(en: "quit and print the verdict", zh: "退出并输出结论"),
        ),
        (
            "p Space",
            message!(en: "pause the screen; sampling continues", zh: "暂停画面；采样继续"),
        ),
        (
            "s",
            message!(en: "sort processes by memory, SM, CPU, PID", zh: "按显存、SM、CPU、PID 排序进程"),
        ),
        ("↑ ↓", message!(en: "scroll the process list", zh: "滚动进程列表")),
        ("+ -", message!(en: "replay speed", zh: "回放速度")),
        ("", Message::default()),
        (
            "util",
            message!(en: "share of time with a kernel running", zh: "有 kernel 在运行的时间占比"),
        ),
        (
            "SM",
            message!(en: "share of SMs with work", zh: "SM 有活可干的占比"),
        ),
        (
            "TC",
            message!(en: "share of time with tensor cores active", zh: "Tensor Core 工作的时间占比"),
        ),
        (
            "DRAM",
            message!(en: "share of memory bandwidth in use", zh: "显存带宽的使用占比"),
        ),
        (
            "held by",
            message!(en: "what throttles the clocks", zh: "降低时钟频率的原因"),
        ),
        (
            "–",
            message!(en: "unknown: this GPU does not report it", zh: "未知：该 GPU 不提供"),
        ),
    ]
}

const KEY_CELLS: usize = 10;

pub fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let lines = lines();
    let widest = lines
        .iter()
        .map(|(_, text)| width(state.say(text)))
        .max()
        .unwrap_or(0);
    let (cells, height) = ((widest + KEY_CELLS + 4) as u16, lines.len() as u16 + 2);
    let inside = Rect {
        x: area.x + area.width.saturating_sub(cells) / 2,
        y: area.y + area.height.saturating_sub(height) / 2,
        width: cells.min(area.width),
        height: height.min(area.height),
    };
    let edge = |left: &str, right: &str| {
        format!(
            "{left}{}{right}",
            "─".repeat(usize::from(inside.width.saturating_sub(2)))
        )
    };
    let style = canvas.style(None);
    for (index, row) in rows(inside).enumerate() {
        let blank = " ".repeat(usize::from(row.width.saturating_sub(2)));
        let text = match index {
            0 => edge("╭", "╮"),
            index if index + 1 == usize::from(inside.height) => edge("╰", "╯"),
            _ => format!("│{blank}│"),
        };
        canvas.text(row.x, row.y, row.width, &text, style);
        if let Some((key, what)) = index
            .checked_sub(1)
            .and_then(|line| lines.get(line))
            .filter(|_| index + 1 < usize::from(inside.height))
        {
            let strong = canvas.style(Some(Tone::Strong));
            canvas.text(row.x + 2, row.y, KEY_CELLS as u16, &pad(key, KEY_CELLS), strong);
            let room = row.width.saturating_sub(KEY_CELLS as u16 + 3);
            canvas.text(row.x + 2 + KEY_CELLS as u16, row.y, room, state.say(what), style);
        }
    }
}
