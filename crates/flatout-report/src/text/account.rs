//! Where the steady steps went: activities with their share, and the costliest lines of each.

use super::width::{pad, printable, width as cells};
use super::{Paint, Tone};
use flatout_core::{Language, Message, Place, message, text::shortened, units};
use flatout_diagnose::account::activity::Activity;
use flatout_diagnose::account::{Account, Row};
use flatout_diagnose::analysis::efficiency::Efficiency;
use flatout_diagnose::analysis::kernels::kind_name;

/// Cells of the longest bar.
const BAR_CELLS: f64 = 20.0;
/// An activity or a line with less is left out; it is in the sum of the others.
const SHOWN_SHARE: f64 = 0.03;
/// With so few lines there is no room for what they consist of.
const FEW_LINES: usize = 2;
/// Kinds of kernels that are named.
const MOST_KINDS: usize = 4;

/// With at most so many lines in all.
pub fn account(
    account: &Account,
    most_lines: usize,
    language: Language,
    width: usize,
    colour: bool,
) -> String {
    let paint = Paint { colour };
    let steps = account.steps;
    let head = if steps > 0 {
        let step = units::duration(account.wall_s / steps as f64);
        crate::words::account_title(account.rank, &step, steps)
    } else {
        let seconds = units::duration(account.wall_s);
        match &account.iterations {
            Some(iterations) => {
                let (one, line) = (units::duration(iterations.ms / 1e3), iterations.place.line);
                message!(
                    en: "Where the time goes ({seconds}; one iteration of the loop at line {line} takes about {one})",
                    zh: "时间去向（统计了 {seconds}；第 {line} 行的循环每次迭代约 {one}）"
                )
            }
            None => message!(en: "Where the time goes ({seconds})", zh: "时间去向（统计了 {seconds}）"),
        }
    };
    let mut told = lines(account);
    told.truncate(most_lines);
    let most_parts = most_lines.max(3);
    let mut shown = Vec::new();
    let activities = account.by_activity().into_iter();
    for (activity, share) in activities
        .filter(|(_, share)| *share >= SHOWN_SHARE)
        .take(most_parts)
    {
        let (own, rest): (Vec<Row>, Vec<Row>) = told.into_iter().partition(|row| row.activity == activity);
        told = rest;
        let has_kinds = activity == Activity::GpuComputing && !account.gpu_kinds.is_empty();
        let note = (has_kinds && most_lines > FEW_LINES).then(|| kinds(account, language));
        shown.push(Part {
            share,
            name: activity.name().get(language).to_owned(),
            note,
            lines: own.iter().map(line).collect(),
        });
    }
    let mut text = format!(
        "{}\n{}",
        paint.tone(Tone::Strong, head.get(language)),
        parts(&shown, width, paint)
    );
    if let Some(efficiency) = account.efficiency.as_ref().filter(|_| most_lines > FEW_LINES) {
        text += &format!("  {}\n", reached(efficiency).get(language));
    }
    text
}

/// A part of the time with its lines: source and share.
pub(super) struct Part {
    pub share: f64,
    pub name: String,
    /// What it consists of, where that is known.
    pub note: Option<String>,
    pub lines: Vec<(String, f64)>,
}

/// ```text
///   40.3%  decoding      ████████
///          train.py:38  return json.load(f)[key]                            38.1%
/// ```
pub(super) fn parts(parts: &[Part], width: usize, paint: Paint) -> String {
    const SHARE: usize = 6;
    let longest = parts.iter().map(|part| cells(&part.name)).max().unwrap_or(0);
    let room = width.saturating_sub(SHARE + 4 + SHARE + 2).max(24);
    // As wide as the widest line: numbers far from their line are hard to read.
    let lines = || parts.iter().flat_map(|part| &part.lines);
    let wide = lines().map(|(line, _)| cells(line).min(room)).max().unwrap_or(0);
    let mut text = String::new();
    for part in parts {
        let bar = "█".repeat((part.share * BAR_CELLS).round() as usize);
        let line = format!(
            "  {:>SHARE$}  {}  {}",
            units::percent(part.share),
            pad(&part.name, longest),
            paint.tone(Tone::Quiet, &bar)
        );
        text += line.trim_end();
        text.push('\n');
        if let Some(note) = &part.note {
            let note = shortened(note, room + SHARE + 2);
            text += &format!("{}{}\n", " ".repeat(SHARE + 4), paint.tone(Tone::Quiet, &note));
        }
        for (line, share) in &part.lines {
            let line = pad(&shortened(line, room), wide);
            let share = format!("{:>SHARE$}", units::percent(*share));
            text += &format!(
                "{}{}  {}\n",
                " ".repeat(SHARE + 4),
                paint.tone(Tone::Name, &line),
                paint.tone(Tone::Quiet, &share)
            );
        }
    }
    text
}

/// `matmul in FP32 52%, elementwise 20%`: shares of the wall time.
fn kinds(account: &Account, language: Language) -> String {
    let named = account
        .gpu_kinds
        .iter()
        .filter(|kind| kind.share >= SHOWN_SHARE / 3.0)
        .take(MOST_KINDS)
        .map(|kind| {
            let name = kind_name(kind.kind);
            format!("{} {}", name.get(language), units::percent(kind.share))
        });
    named.collect::<Vec<_>>().join(if language == Language::Chinese {
        "，"
    } else {
        ", "
    })
}

/// `MFU 31% of 989 TFLOP/s (bf16, vendor), 38% of 806 TFLOP/s (measured)`.
fn reached(efficiency: &Efficiency) -> Message {
    let rate = units::significant(efficiency.flops_per_s / 1e12);
    let precision = &efficiency.precision;
    let mut text = if efficiency.at_least {
        message!(en: "at least {rate} TFLOP/s in {precision}", zh: "至少 {rate} TFLOP/s（{precision}）")
    } else {
        message!(en: "{rate} TFLOP/s in {precision}", zh: "达到 {rate} TFLOP/s（{precision}）")
    };
    let mut add = |part: Message| {
        text.en += &part.en;
        text.zh += &part.zh;
    };
    if let Some(peak) = efficiency.vendor {
        let (share, peak) = (units::percent(peak.share), units::significant(peak.tflops));
        add(message!(en: ": MFU {share} of the vendor's {peak}", zh: "：MFU 为厂商峰值 {peak} 的 {share}"));
    }
    if let Some(peak) = efficiency.measured {
        let (share, peak) = (units::percent(peak.share), units::significant(peak.tflops));
        add(
            message!(en: ", {share} of the {peak} that flatout bench measured", zh: "，flatout bench 实测 {peak} 的 {share}"),
        );
    }
    text
}

/// The costly lines, each once per activity: it may call several functions.
fn lines(account: &Account) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    for row in account.rows.iter().filter(|row| row.place.is_some()) {
        let same = |other: &&mut Row| other.activity == row.activity && other.place == row.place;
        match found.iter_mut().find(same) {
            Some(other) => other.share += row.share,
            None => found.push(row.clone()),
        }
    }
    found.retain(|row| row.share >= SHOWN_SHARE);
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

fn line(row: &Row) -> (String, f64) {
    let what = row.text.as_deref().or(row.via.as_deref());
    let line = source_line(row.place.as_ref(), what.or(row.function.as_deref()));
    (line, row.share)
}

/// `train.py:36  scale = torch.load(self.scale)`.
pub(super) fn source_line(place: Option<&Place>, what: Option<&str>) -> String {
    let place = place.map_or_else(String::new, |place| {
        let name = place.file.file_name().map_or_else(
            || place.file.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        format!("{name}:{}", place.line)
    });
    printable(&format!("{place}  {}", what.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_diagnose::account::device::GpuKind;
    use flatout_diagnose::analysis::efficiency::Peak;
    use flatout_record::KernelKind;

    fn busy() -> Account {
        let row = Row {
            activity: Activity::GpuComputing,
            seconds: 9.0,
            share: 0.9,
            place: None,
            function: None,
            via: None,
            text: None,
            kernel: None,
        };
        let kind = |kind, share| GpuKind {
            kind,
            share,
            per_step: 10.0,
            tiny_per_step: 0.0,
        };
        let peak = |tflops| {
            Some(Peak {
                tflops,
                share: 200.0 / tflops,
            })
        };
        Account {
            wall_s: 10.0,
            steps: 100,
            samples: 500,
            rows: vec![row],
            gpu_kinds: vec![
                kind(KernelKind::MatrixFp32, 0.6),
                kind(KernelKind::Elementwise, 0.3),
                kind(KernelKind::Softmax, 0.001),
            ],
            efficiency: Some(Efficiency {
                flops_per_s: 200e12,
                at_least: false,
                precision: "bf16".into(),
                vendor: peak(989.0),
                measured: peak(800.0),
            }),
            ..Account::default()
        }
    }

    #[test]
    fn shows_kinds_and_mfu() {
        let text = account(&busy(), 7, Language::English, 80, false);
        assert!(text.contains("matmul in FP32 60%, elementwise 30%"), "{text}");
        assert!(!text.contains("softmax"), "{text}");
        assert!(
            text.contains("200 TFLOP/s in bf16: MFU 20.2% of the vendor's 989, 25% of the 800 that flatout bench measured"),
            "{text}"
        );
        let chinese = account(&busy(), 7, Language::Chinese, 80, false);
        assert!(chinese.contains("FP32 矩阵乘法 60%，逐元素算子 30%"), "{chinese}");
    }

    #[test]
    fn says_nothing_of_what_is_not_known() {
        let mut plain = busy();
        (plain.gpu_kinds, plain.efficiency) = (Vec::new(), None);
        let text = account(&plain, 7, Language::English, 80, false);
        assert!(!text.contains("TFLOP") && !text.contains("matmul"), "{text}");
        assert!(
            text.lines().all(|line| !line.trim().is_empty()),
            "no empty row: {text}"
        );
    }

    #[test]
    fn no_line_is_wider_than_asked_for() {
        let long = "train.py:33  ".to_owned() + &"x".repeat(200);
        let shown = [
            Part {
                share: 0.9,
                name: "preparing batches in the training process".into(),
                note: None,
                lines: vec![(long, 0.8)],
            },
            Part {
                share: 0.1,
                name: "算子".into(),
                note: None,
                lines: Vec::new(),
            },
        ];
        let text = parts(&shown, 80, Paint { colour: false });
        assert!(text.lines().all(|line| cells(line) <= 80), "{text}");
        assert!(text.contains("…") && text.contains("  80%\n"), "{text}");
    }
}
