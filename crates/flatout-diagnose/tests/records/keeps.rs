//! Evidence, fixes, gains and time: what each finding owes its reader.

use super::{Recorded, all, until};
use flatout_core::{Finding, Fix, Kind, Severity};
use flatout_diagnose::{Analysis, Diagnosis, RULES, diagnose};
use flatout_record::{Phase, RunData};

/// Every record, whole and as it was on the way: each with its diagnosis.
fn each(mut hold: impl FnMut(&str, &RunData, &Diagnosis)) {
    for Recorded { name, data, .. } in all() {
        let end = data.steps.last().map_or(0.0, |tick| tick.t);
        for share in [0.3, 0.6, 1.0] {
            let past = if share < 1.0 {
                until(data, end * share)
            } else {
                data.clone()
            };
            hold(name, &past, &diagnose(&past));
        }
    }
}

fn causes(diagnosis: &Diagnosis) -> impl Iterator<Item = &Finding> {
    diagnosis
        .findings
        .iter()
        .filter(|finding| finding.kind == Kind::Cause)
}

#[test]
fn there_is_always_an_answer_in_both_languages() {
    each(|name, _, diagnosis| {
        assert!(!diagnosis.findings.is_empty(), "{name}");
        for finding in &diagnosis.findings {
            let rule = &finding.rule;
            assert!(
                !finding.title.en.is_empty() && !finding.title.zh.is_empty(),
                "{name}: {rule}"
            );
            for fix in &finding.fixes {
                let (Fix::Setting { say, .. }
                | Fix::Code { say, .. }
                | Fix::Edits { say, .. }
                | Fix::Command { say, .. }
                | Fix::Refused { say, .. }) = fix;
                assert!(!say.en.is_empty() && !say.zh.is_empty(), "{name}: {rule}");
            }
        }
    });
}

#[test]
fn a_cause_rests_on_a_number_a_threshold_and_a_window() {
    each(|name, _, diagnosis| {
        for finding in causes(diagnosis) {
            let rule = &finding.rule;
            let evidence = &finding.evidence;
            assert!(
                evidence.iter().all(|evidence| evidence.value.is_finite()),
                "{name}: {rule}"
            );
            assert!(
                evidence.iter().any(|evidence| evidence.threshold.is_some()),
                "{name}: {rule}"
            );
            let windows: Vec<(f64, f64)> = evidence.iter().filter_map(|evidence| evidence.window_s).collect();
            assert!(
                !windows.is_empty() && windows.iter().all(|(start, end)| start < end),
                "{name}: {rule}"
            );
        }
    });
}

#[test]
fn causes_have_a_fix_a_location_and_a_command() {
    each(|name, data, diagnosis| {
        for finding in causes(diagnosis).filter(|finding| finding.severity >= Severity::Warning) {
            let rule = &finding.rule;
            let has = |wanted: fn(&Fix) -> bool| finding.fixes.iter().any(wanted);
            assert!(
                has(|fix| !matches!(fix, Fix::Refused { .. })),
                "{name}: {rule} has nothing to do"
            );
            let place = has(|fix| matches!(fix, Fix::Code { place: Some(_), .. }));
            assert!(
                finding.places.is_empty() || place,
                "{name}: {rule} knows a line and does not say so in its fix"
            );
            let trial = flatout_diagnose::advice::trial(&finding.fixes, &data.info.command, &data.info.apply);
            assert!(
                trial.is_none() || has(|fix| matches!(fix, Fix::Command { .. })),
                "{name}: {rule} has no command"
            );
        }
    });
}

#[test]
fn advice_never_repeats_the_value_in_force() {
    each(|name, data, diagnosis| {
        let analysis = Analysis::new(data);
        for finding in &diagnosis.findings {
            for fix in &finding.fixes {
                let Fix::Setting {
                    setting, from, to, ..
                } = fix
                else {
                    continue;
                };
                assert_ne!(from.as_ref(), Some(to), "{name}: {} {setting}", finding.rule);
                let in_force = match (setting.strip_prefix("loader."), analysis.train_loader()) {
                    (Some(_), Some(loader)) => {
                        analysis.facts.scoped(setting, &format!("loader.{}", loader.id))
                    }
                    _ => analysis.facts.get(setting),
                };
                let now = in_force.and_then(|fact| flatout_diagnose::analysis::facts::as_text(&fact.value));
                assert_ne!(now.as_ref(), Some(to), "{name}: {} {setting}", finding.rule);
            }
        }
    });
}

/// The share of the time that a finding promises at most.
fn promised(finding: &Finding) -> f64 {
    finding.gain.map_or(0.0, |gain| 1.0 - 1.0 / gain.high)
}

#[test]
fn each_gain_stays_within_the_time_that_was_lost() {
    each(|name, data, diagnosis| {
        let analysis = Analysis::new(data);
        for finding in &diagnosis.findings {
            if let Some(gain) = finding.gain {
                let (low, high) = (gain.low, gain.high);
                assert!(
                    1.0 <= low && low <= high && high <= 100.0,
                    "{name}: {} {low} to {high}",
                    finding.rule
                );
            }
            assert!(
                finding.kind == Kind::Cause || finding.gain.is_none(),
                "{name}: only causes gain"
            );
        }
        let Some(window) = &analysis.window else { return };
        let share = |phases: &[Phase]| phases.iter().map(|phase| window.share(*phase)).sum::<f64>();
        let domain_of = |finding: &Finding| {
            RULES
                .iter()
                .find(|rule| rule.info.id == finding.rule)
                .map(|rule| rule.info.domain)
        };
        for (domain, phases) in [
            ("input", &[Phase::Data, Phase::Transfer][..]),
            ("sync", &[Phase::Sync][..]),
            ("launch", &[Phase::Compute, Phase::Sync][..]),
            ("interruptions", &Phase::ALL[..]),
            // Half of the arithmetic at most, by whichever way.
            ("precision", &[Phase::Compute, Phase::Sync][..]),
        ] {
            for finding in causes(diagnosis).filter(|finding| domain_of(finding) == Some(domain)) {
                let promised = promised(finding);
                assert!(
                    promised <= share(phases) + 1e-6,
                    "{name}: {} promises {promised} of {}",
                    finding.rule,
                    share(phases)
                );
            }
        }
    });
}

#[test]
fn causes_come_first_and_the_worst_of_them_at_the_top() {
    each(|name, _, diagnosis| {
        let rank = |finding: &Finding| match finding.kind {
            Kind::Cause => 0,
            Kind::Symptom => 1,
            Kind::Verdict => 2,
        };
        for pair in diagnosis.findings.windows(2) {
            assert!(rank(&pair[0]) <= rank(&pair[1]), "{name}");
            let same = rank(&pair[0]) == rank(&pair[1]);
            assert!(
                !same || pair[0].severity >= pair[1].severity || rank(&pair[0]) == 2,
                "{name}"
            );
        }
    });
}

#[test]
fn every_second_is_somewhere_and_the_rest_is_shown() {
    each(|name, _, diagnosis| {
        let rows = &diagnosis.time.rows;
        if rows.is_empty() {
            return;
        }
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let total_s = diagnosis.time.total_s;
        assert!(
            (seconds - total_s).abs() <= total_s * 0.01,
            "{name}: {seconds} of {total_s}"
        );
        assert!(rows.iter().all(|row| row.seconds >= 0.0), "{name}");
        let shares: f64 = rows.iter().map(|row| row.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{name}: {shares}");
    });
}

#[test]
fn a_fix_that_cannot_help_is_refused_with_its_reason() {
    let mut refusals = 0;
    each(|name, _, diagnosis| {
        for finding in &diagnosis.findings {
            for fix in &finding.fixes {
                if let Fix::Refused { setting, say } = fix {
                    refusals += 1;
                    let taken =
                        |fix: &Fix| matches!(fix, Fix::Setting { setting: other, .. } if other == setting);
                    assert!(!finding.fixes.iter().any(taken), "{name}: {} both", finding.rule);
                    assert!(
                        say.en.chars().any(|c| c.is_ascii_digit()),
                        "{name}: no number in `{}`",
                        say.en
                    );
                }
            }
        }
    });
    assert!(refusals > 0, "no record shows a refusal");
}
