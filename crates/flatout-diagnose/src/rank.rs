//! The arbiter. At most one cause for one stretch of time: the narrowest candidate takes the seconds it claims, a
//! later one gets what is left, and one that is left with less than half of its claim is only a symptom. A gain is that of
//! its fix alone. No rule knows of another: they meet here.

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Claim, Reach, Stretch, severity_of};
use crate::promise;
use flatout_core::{Finding, Gain, Kind, Severity};
use flatout_record::Phase;
use std::collections::BTreeMap;

/// Orders and clears the candidates: causes by gain, then symptoms, then verdicts.
pub fn rank(analysis: &Analysis, mut candidates: Vec<Candidate>) -> Vec<Finding> {
    candidates.sort_by(|a, b| {
        let key = |candidate: &Candidate| {
            candidate
                .claim
                .as_ref()
                .map_or((0, 0.0), |claim| (claim.reach as u8 + 1, claim.explains_s))
        };
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    let whole = available(analysis);
    let mut left = whole.clone();
    let wall_s = analysis.window.as_ref().map_or(0.0, |window| window.wall_s());
    let mut findings: Vec<(f64, Finding)> = candidates
        .into_iter()
        .map(|candidate| {
            let weight = weight_of(&candidate);
            let finding = settle(candidate, &whole, &mut left, wall_s);
            (1.0 + (gain_of(&finding) - 1.0) * weight, finding)
        })
        .collect();
    findings.sort_by(|(a_gain, a), (b_gain, b)| {
        order(a, *a_gain)
            .cmp(&order(b, *b_gain))
            .then(b_gain.total_cmp(a_gain))
    });
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Of two that promise about the same, the narrower one comes first: it names what to change.
fn weight_of(candidate: &Candidate) -> f64 {
    let Some(claim) = &candidate.claim else {
        return 1.0;
    };
    // Small kernels, small batches and a slow host are true of the whole step; a line says what to change.
    let of_the_step = !claim.is_line && claim.stretches.first() == Some(&Stretch::Dispatch);
    match claim.reach {
        Reach::General => 0.5,
        Reach::Likely => 0.6,
        Reach::Specific if of_the_step => 0.5,
        _ => 1.0,
    }
}

/// Grants a candidate what is left of its stretch.
fn settle(
    candidate: Candidate,
    whole: &BTreeMap<Stretch, f64>,
    left: &mut BTreeMap<Stretch, f64>,
    wall_s: f64,
) -> Finding {
    let Candidate { mut finding, claim } = candidate;
    let Some(claim) = claim else {
        return finding;
    };
    if finding.kind != Kind::Cause || wall_s <= 0.0 {
        return finding;
    }
    let granted = take(&claim, left);
    let goes_s = claim.possible_s.min(granted);
    if claim.stands_alone && goes_s <= 0.0 {
        return finding;
    }
    if granted <= 0.0 || goes_s <= 0.0 {
        finding.kind = Kind::Symptom;
        finding.severity = finding.severity.min(Severity::Information);
        finding.gain = None;
        return finding;
    }
    let share = goes_s / wall_s;
    // What the change gains by itself: the seconds decide who is the cause, not what a fix is worth.
    let possible_s = claim.possible_s.min(held(&claim, whole));
    let gain = if claim.is_line {
        promise::of_line
    } else {
        Gain::from_removed_shares
    };
    finding.gain = Some(gain(
        (claim.certain_s.min(possible_s) + claim.surely_beyond_s) / wall_s,
        (possible_s + claim.beyond_s) / wall_s,
    ));
    if !claim.stands_alone {
        finding.severity = finding.severity.min(severity_of(share));
    }
    finding
}

/// Takes what the claim explains out of its stretches; nothing when less than half of it is there.
fn take(claim: &Claim, left: &mut BTreeMap<Stretch, f64>) -> f64 {
    let stretches = stretches(claim, left);
    let granted = claim.explains_s.min(held(claim, left));
    if granted < claim.explains_s / 2.0 {
        return 0.0;
    }
    let mut wanted = granted;
    for stretch in &stretches {
        let pool = left.entry(*stretch).or_insert(0.0);
        let taken = wanted.min(*pool);
        *pool -= taken;
        wanted -= taken;
    }
    granted
}

/// The seconds that a claim's stretches hold.
fn held(claim: &Claim, pools: &BTreeMap<Stretch, f64>) -> f64 {
    let pool = |stretch: Stretch| pools.get(&stretch).copied().unwrap_or(0.0);
    stretches(claim, pools).into_iter().map(pool).sum()
}

/// The stretches of a claim. Where the device is the host itself, launching and computing are the same seconds.
fn stretches(claim: &Claim, pools: &BTreeMap<Stretch, f64>) -> Vec<Stretch> {
    let one = !pools.contains_key(&Stretch::Device);
    let merged = |stretch: &Stretch| match stretch {
        Stretch::Device if one => Stretch::Dispatch,
        other => *other,
    };
    claim.stretches.iter().map(merged).collect()
}

/// The seconds of the window each stretch has.
fn available(analysis: &Analysis) -> BTreeMap<Stretch, f64> {
    let Some(window) = &analysis.window else {
        return BTreeMap::new();
    };
    let busy_s = analysis.device_busy_share().map(|share| share * window.wall_s());
    let compute_s = window.seconds(Phase::Compute);
    // On a GPU the host may launch ahead of a busy device: then launching costs nothing.
    let dispatch_s = match analysis.device() {
        Device::Cuda => analysis.dispatch_idle_s().unwrap_or(compute_s),
        _ => compute_s,
    };
    // Collectives are called while the step computes; nothing else can remove their time.
    let communication_s = analysis
        .collectives
        .as_ref()
        .map_or(0.0, |all| all.seconds())
        .min(dispatch_s);
    let dispatch_s = dispatch_s - communication_s;
    let mut all = BTreeMap::from([
        (Stretch::Data, window.seconds(Phase::Data)),
        (Stretch::Transfer, window.seconds(Phase::Transfer)),
        (Stretch::Dispatch, dispatch_s),
        (Stretch::Communication, communication_s),
        (Stretch::Sync, window.seconds(Phase::Sync)),
        (Stretch::Eval, window.seconds(Phase::Eval)),
        (Stretch::Checkpoint, window.seconds(Phase::Checkpoint)),
        (
            Stretch::Other,
            window.seconds(Phase::Other) + window.unexplained_s(),
        ),
    ]);
    all.extend(busy_s.map(|busy_s| (Stretch::Device, busy_s)));
    all
}

/// Causes come by what they weigh, not by what they may gain at most.
fn order(finding: &Finding, weighed_gain: f64) -> (u8, std::cmp::Reverse<Severity>) {
    let kind = match finding.kind {
        Kind::Cause => 0,
        Kind::Symptom => 1,
        Kind::Verdict => 2,
    };
    let severity = match finding.gain {
        Some(_) => finding
            .severity
            .min(severity_of(1.0 - 1.0 / weighed_gain.max(1.0))),
        None => finding.severity,
    };
    (kind, std::cmp::Reverse(severity))
}

fn gain_of(finding: &Finding) -> f64 {
    let gain = finding.gain.map_or(1.0, |gain| (gain.low + gain.high) / 2.0);
    // Of two that promise about the same, the one with a line is easier to act on.
    if finding.places.is_empty() {
        1.0 + (gain - 1.0) * 0.7
    } else {
        gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_core::Message;

    fn candidate(id: &'static str, reach: Reach, seconds: f64) -> Candidate {
        Candidate::new(id, Severity::Critical, Message::verbatim(id)).claims(
            Stretch::Data,
            reach,
            0.0,
            seconds,
        )
    }

    #[test]
    fn what_costs_more_than_time_stays_a_cause_without_the_seconds() {
        let data = Build::steady(20)
            .phase(Phase::Data, 0.4)
            .phase(Phase::Compute, 0.6)
            .done();
        let analysis = Analysis::new(&data);
        let memory = || candidate("memory", Reach::General, 8.0).stands_alone();
        let both = rank(
            &analysis,
            vec![memory(), candidate("narrow", Reach::Specific, 8.0)],
        );
        assert!(both.iter().all(|finding| finding.kind == Kind::Cause));
        let of = |id: &str| {
            both.iter()
                .find(|finding| finding.rule == id)
                .and_then(|finding| finding.gain)
        };
        assert!(of("narrow").is_some() && of("memory").is_none());
        let general = rank(
            &analysis,
            vec![memory(), candidate("general", Reach::General, 8.0)],
        );
        assert_eq!(general[0].rule, "memory");
        assert_eq!(general[1].kind, Kind::Symptom);
    }

    #[test]
    fn one_cause_a_stretch_and_the_narrowest_wins() {
        let data = Build::steady(21).phase(Phase::Data, 0.5).done();
        let analysis = Analysis::new(&data);
        let all = analysis.window.as_ref().unwrap().seconds(Phase::Data);
        let findings = rank(
            &analysis,
            vec![
                candidate("general", Reach::General, all),
                candidate("specific", Reach::Specific, all - 2.0),
                candidate("measured", Reach::Measured, 2.0),
            ],
        );
        let kinds: Vec<(&str, Kind)> = findings.iter().map(|f| (f.rule.as_str(), f.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("specific", Kind::Cause),
                ("measured", Kind::Cause),
                ("general", Kind::Symptom)
            ]
        );
        // Each gain is that of its fix alone.
        let removed = |id: &str| {
            let found = findings.iter().find(|finding| finding.rule == id);
            found
                .and_then(|finding| finding.gain)
                .map(|gain| 1.0 - 1.0 / gain.high)
        };
        let wall_s = analysis.window.as_ref().unwrap().wall_s();
        assert!((removed("specific").unwrap() - (all - 2.0) / wall_s).abs() < 1e-9);
        assert!((removed("measured").unwrap() - 2.0 / wall_s).abs() < 1e-9);
    }

    #[test]
    fn what_is_explained_is_nobody_elses_even_where_it_stays() {
        let data = Build::steady(21).phase(Phase::Data, 0.6).done();
        let analysis = Analysis::new(&data);
        let all = analysis.window.as_ref().unwrap().seconds(Phase::Data);
        let narrow = candidate("narrow", Reach::Likely, all / 4.0).explains(all);
        let findings = rank(&analysis, vec![candidate("general", Reach::General, all), narrow]);
        assert_eq!(
            (findings[0].rule.as_str(), findings[0].kind),
            ("narrow", Kind::Cause)
        );
        assert!((findings[0].gain.unwrap().high - 1.0 / 0.85).abs() < 1e-6);
        assert_eq!(findings[1].kind, Kind::Symptom);
    }

    #[test]
    fn seconds_of_an_unknown_phase_are_taken_where_they_are() {
        let data = Build::steady(21)
            .phase(Phase::Other, 0.1)
            .phase(Phase::Compute, 0.9)
            .done();
        let analysis = Analysis::new(&data);
        let wall_s = analysis.window.as_ref().unwrap().wall_s();
        let mut wanted = candidate("x", Reach::Measured, wall_s * 0.5).or_in(Stretch::Dispatch);
        wanted.claim.as_mut().unwrap().stretches[0] = Stretch::Other;
        let findings = rank(&analysis, vec![wanted]);
        assert!((findings[0].gain.unwrap().high - 2.0).abs() < 1e-6);
    }

    #[test]
    fn on_the_cpu_launching_and_computing_are_the_same_seconds() {
        let data = Build::steady(21)
            .phase(Phase::Compute, 1.0)
            .fact("device", "cpu")
            .done();
        let analysis = Analysis::new(&data);
        let all = analysis.window.as_ref().unwrap().seconds(Phase::Compute);
        let mut launching = candidate("launching", Reach::Specific, all * 0.8);
        launching.claim.as_mut().unwrap().stretches[0] = Stretch::Dispatch;
        let mut computing = candidate("computing", Reach::Likely, all * 0.8);
        computing.claim.as_mut().unwrap().stretches[0] = Stretch::Device;
        let kinds: Vec<Kind> = rank(&analysis, vec![computing, launching])
            .iter()
            .map(|f| f.kind)
            .collect();
        assert_eq!(kinds, [Kind::Cause, Kind::Symptom]);
    }

    #[test]
    fn a_claim_beyond_the_stretch_is_cut() {
        let data = Build::steady(21).phase(Phase::Data, 0.2).done();
        let analysis = Analysis::new(&data);
        let all = analysis.window.as_ref().unwrap().seconds(Phase::Data);
        let findings = rank(&analysis, vec![candidate("greedy", Reach::Specific, all * 1.5)]);
        assert!((findings[0].gain.unwrap().high - 1.25).abs() < 1e-6);
        assert_eq!(findings[0].severity, Severity::Warning);
    }
}
