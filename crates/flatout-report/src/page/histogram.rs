//! How long steps take: a histogram with logarithmic buckets, drawn here, so that it is there without the script.

use super::{Markup, Writer, markup};
use flatout_core::histogram::Histogram;
use flatout_core::{message, units};

const WIDTH: f64 = 700.0;
const HEIGHT: f64 = 170.0;
const BOTTOM: f64 = 140.0;
const TOP: f64 = 22.0;
const LEFT: f64 = 12.0;
/// One bucket is an eighth of an octave.
const BUCKET_RATIO: f64 = 1.090_507_732_665_257_7;

impl Writer {
    pub(crate) fn distribution(&self, histogram: &Histogram) -> Markup {
        let bars: Vec<(f64, u64)> = histogram.bars_ms().filter(|(_, count)| *count > 0).collect();
        let (Some(first), Some(last)) = (bars.first(), bars.last()) else {
            return Markup::default();
        };
        let (low, high) = (first.0.ln() - BUCKET_RATIO.ln(), last.0.ln() + BUCKET_RATIO.ln());
        let x = |ms: f64| LEFT + (ms.ln() - low) / (high - low) * (WIDTH - 2.0 * LEFT);
        let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
        let steps = histogram.count();
        let mut svg = Markup::default();
        for (ms, count) in &bars {
            let (left, right) = (x(ms / BUCKET_RATIO.sqrt()), x(ms * BUCKET_RATIO.sqrt()));
            let height = (*count as f64 / most * (BOTTOM - TOP)).max(1.0);
            let time = units::duration(ms / 1e3);
            let title = message!(en: "{time}: {count} steps", zh: "{time}：{count} 步");
            svg += markup!(
                "<rect class=\"c0\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                left,
                BOTTOM - height,
                (right - left - 0.6).max(0.8),
                height,
                self.say(&title)
            );
        }
        svg += markup!(
            "<line class=\"axis\" x1=\"{}\" x2=\"{:.0}\" y1=\"{}\" y2=\"{}\"/>",
            LEFT,
            WIDTH - LEFT,
            BOTTOM,
            BOTTOM
        );
        svg += ticks(low.exp(), high.exp(), x);
        let mut said = Vec::new();
        let mut labelled = f64::NEG_INFINITY;
        for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            if let Some(ms) = histogram.quantile_ms(share) {
                let at = x(ms);
                svg += markup!(
                    "<line class=\"quantile\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{}\" y2=\"{}\"/>",
                    at,
                    at,
                    TOP,
                    BOTTOM
                );
                // Quantiles that nearly coincide would write over each other.
                if at - labelled > 50.0 {
                    svg += markup!(
                        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                        at,
                        TOP - 6.0,
                        name
                    );
                    labelled = at;
                }
                said.push(format!("{name} {}", units::rough_duration(ms / 1e3)));
            }
        }
        let said = said.join(" · ");
        let line = message!(en: "{steps} steps: {said}", zh: "共 {steps} 步：{said}");
        let body = self.note(&line)
            + markup!(
                "<svg class=\"histogram\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
                WIDTH,
                HEIGHT,
                self.say(&line),
                svg
            );
        self.section(
            &message!(en: "Distribution of step times", zh: "单步耗时分布"),
            body,
        )
    }
}

/// 1, 2, 5 of every decade; with more than a few decades the ones only.
fn ticks(low_ms: f64, high_ms: f64, x: impl Fn(f64) -> f64) -> Markup {
    let decades = (high_ms / low_ms).log10();
    let steps: &[f64] = match decades {
        narrow if narrow < 0.6 => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
        middle if middle < 3.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let mut text = Markup::default();
    let mut last = f64::NEG_INFINITY;
    for power in low_ms.log10().floor() as i32..=high_ms.log10().ceil() as i32 {
        for step in steps {
            let ms = step * 10f64.powi(power);
            if ms < low_ms || ms > high_ms || x(ms) - last < 80.0 {
                continue;
            }
            last = x(ms);
            text += markup!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                last,
                BOTTOM + 18.0,
                units::duration(ms / 1e3)
            );
        }
    }
    text
}
