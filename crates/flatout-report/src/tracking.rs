//! A digest for experiment trackers: figures, findings, account and curves as plain names and numbers.

use crate::digest::Digest;
use crate::digest::charts::Chart;
use crate::{markdown, words};
use flatout_core::{Language, Severity};
use serde_json::{Map, Value, json};

/// Points of one curve: more cannot be seen in a tracker, and each is a request's worth.
const MOST_POINTS: usize = 300;
/// Lines of the account.
const MOST_LINES: usize = 50;

/// `record` is where the record is.
pub fn export(digest: &Digest, record: &std::path::Path, language: Language) -> Value {
    let finite = |value: f64| value.is_finite().then_some(value);
    let figures: Map<String, Value> = digest
        .figures
        .iter()
        .filter_map(|figure| Some((figure.key.to_owned(), finite(figure.mean)?.into())))
        .collect();
    let findings: Vec<Value> = digest
        .diagnosis
        .findings
        .iter()
        .map(|finding| {
            let severity = match finding.severity {
                Severity::Critical => "critical",
                Severity::Warning => "warning",
                Severity::Information => "information",
            };
            json!({
                "rule": finding.rule,
                "severity": severity,
                "title": finding.title.get(language),
                "place": finding.places.first().map(ToString::to_string),
                "gain_low": finding.gain.map(|gain| gain.low),
                "gain_high": finding.gain.map(|gain| gain.high),
            })
        })
        .collect();
    let account = digest.diagnosis.account.as_ref();
    let activities: Vec<Value> = account
        .iter()
        .flat_map(|account| account.by_activity())
        .map(|(activity, share)| json!({ "activity": activity, "share": share }))
        .collect();
    let lines: Vec<Value> = account
        .iter()
        .flat_map(|account| &account.rows)
        .filter(|row| row.place.is_some())
        .take(MOST_LINES)
        .map(|row| {
            json!({
                "place": row.place.as_ref().map(ToString::to_string),
                "source": row.text,
                "activity": row.activity,
                "share": row.share,
            })
        })
        .collect();
    let settings: Map<String, Value> = digest
        .facts
        .iter()
        .filter(|fact| fact.scope.is_none() && !fact.value.is_object() && !fact.value.is_array())
        .map(|fact| (fact.key.clone(), fact.value.clone()))
        .collect();
    json!({
        "name": words::run_name(&digest.info),
        "id": digest.info.id,
        "record": std::path::absolute(record).unwrap_or_else(|_| record.to_owned()),
        "started_unix_ms": digest.info.started_unix_ms,
        "length_s": digest.length_s.unwrap_or(0.0),
        "settings": settings,
        "figures": figures,
        "findings": findings,
        "account": activities,
        "lines": lines,
        "series": digest.charts.iter().flat_map(series).collect::<Vec<_>>(),
        "markdown": markdown::report(digest, language),
    })
}

/// The curves of a chart, without the limits.
fn series(chart: &Chart) -> Vec<Value> {
    let curves = chart.curves.iter().filter(|curve| !curve.limit).enumerate();
    curves
        .map(|(index, curve)| {
            let name = slug(&curve.name.en);
            let key = match index {
                0 => chart.key.to_owned(),
                // Not a slash: trackers make folders of names.
                _ => format!("{}_{name}", chart.key),
            };
            let (buckets, width) = (curve.series.buckets(), curve.series.width_s());
            let every = buckets.len().div_ceil(MOST_POINTS).max(1);
            let points: Vec<(f64, f64)> = buckets
                .chunks(every)
                .enumerate()
                .filter_map(|(at, chunk)| {
                    let known: Vec<f64> = chunk.iter().filter_map(|bucket| bucket.mean()).collect();
                    let value = flatout_core::stats::mean(&known);
                    let t = (at as f64 + 0.5) * width * every as f64;
                    (!known.is_empty() && value.is_finite() && t.is_finite()).then_some((t, value))
                })
                .collect();
            json!({ "key": key, "points": points })
        })
        .collect()
}

/// Letters and digits; trackers refuse others in names.
fn slug(text: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn names_and_numbers_of_a_training() {
        let digest = Digest::of(testing::training(40, 0.6));
        let value = export(&digest, "a/record".as_ref(), Language::English);
        assert!(value["figures"]["samples_per_s"].as_f64().unwrap() > 0.0);
        assert!(!value["findings"].as_array().unwrap().is_empty());
        let series = value["series"].as_array().unwrap();
        let rate = series.iter().find(|one| one["key"] == "rate").unwrap();
        let points = rate["points"].as_array().unwrap();
        assert!(!points.is_empty() && points.len() <= MOST_POINTS);
        let mut keys: Vec<&str> = series.iter().filter_map(|one| one["key"].as_str()).collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count, "names are not unique");
    }
}
