//! The charts as the script reads them: equal buckets, numbers of four digits.

use super::escape::ScriptData;
use crate::digest::charts::{Chart, Curve};
use crate::digest::marks::{Marks, Span};
use flatout_core::{Language, message};
use serde_json::{Value, json};

pub(crate) fn json(charts: &[Chart], marks: &Marks, length_s: f64, language: Language) -> ScriptData {
    with_drawings(charts, marks, length_s, language, Value::Null)
}

/// The same with boxes to draw.
pub(crate) fn with_drawings(
    charts: &[Chart],
    marks: &Marks,
    length_s: f64,
    language: Language,
    drawings: Value,
) -> ScriptData {
    let charts: Vec<Value> = charts
        .iter()
        .map(|chart| {
            let series: Vec<Value> = chart.curves.iter().map(|one| curve(one, language)).collect();
            json!({
                "key": chart.key,
                "title": chart.title.get(language),
                "scale": chart.scale.name(),
                "series": series,
            })
        })
        .collect();
    let spans = |spans: &[Span]| -> Vec<Value> {
        spans
            .iter()
            .map(|span| json!([short(span.start_s), short(span.end_s)]))
            .collect()
    };
    let epochs: Vec<Value> = marks
        .epochs
        .iter()
        .map(|(t, number)| json!([short(*t), number]))
        .collect();
    let whole = message!(en: "Show the whole run", zh: "显示整个运行");
    ScriptData::new(&json!({
        "end": if length_s > 0.0 { length_s } else { 1.0 },
        "charts": charts,
        "marks": { "epochs": epochs, "evals": spans(&marks.evals), "checkpoints": spans(&marks.checkpoints) },
        "drawings": drawings,
        "words": { "whole": whole.get(language) },
    }))
}

fn curve(curve: &Curve, language: Language) -> Value {
    let buckets = curve.series.buckets();
    let mut value = json!({
        "name": curve.name.get(language),
        "limit": curve.limit,
        "width": curve.series.width_s(),
        "mean": buckets.iter().map(|bucket| bucket.mean().map(short)).collect::<Vec<_>>(),
    });
    if let Some(color) = curve.color {
        value["color"] = color.into();
    }
    // Where every bucket holds one value, the mean says it all.
    let spread = buckets
        .iter()
        .any(|bucket| bucket.weight > 0.0 && bucket.max - bucket.min > 1e-9 * bucket.max.abs());
    if spread {
        let of = |pick: fn(&crate::digest::series::Bucket) -> f64| -> Vec<Option<f64>> {
            buckets
                .iter()
                .map(|bucket| (bucket.weight > 0.0).then(|| short(pick(bucket))))
                .collect()
        };
        value["min"] = json!(of(|bucket| bucket.min));
        value["max"] = json!(of(|bucket| bucket.max));
    }
    value
}

/// Four significant digits: more cannot be seen, and every digit costs space.
fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let power = 10f64.powi(3 - value.abs().log10().floor() as i32);
    if !power.is_normal() {
        return 0.0;
    }
    (value * power).round() / power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_of_anything() {
        assert_eq!(short(12.345_678), 12.35);
        assert_eq!(short(150_754_820_096.0), 150_800_000_000.0);
        assert_eq!(short(0.000_123_456), 0.000_123_5);
        assert_eq!(short(-2.0), -2.0);
        assert_eq!(short(f64::NAN), 0.0);
        assert_eq!(short(5e-324), 0.0);
    }
}
