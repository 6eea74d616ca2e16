mod recorded;
mod supplied;

use super::measured::SENDING_S;
use super::*;
use crate::trial::{self, Fed};

/// One thread, no workers, nothing measured but the step.
fn plain() -> Cost {
    Cost {
        own: Curve::straight(Line::flat(0.0), 1.0),
        device_s: 0.0,
        aside_s: 0.0,
        along: Along::default(),
        load: Line::flat(0.0),
        epoch: None,
        handover_s: 0.0,
        sending_s: 0.0,
        usable: 1.0,
        workers: 0,
        step_threads: StepThreads {
            threads: 1.0,
            busy: 1.0,
            disturbed: 1.0,
            may_change: false,
            tried: Vec::new(),
        },
        fed: Feeding::default(),
        supply: Supply::default(),
        blind: false,
        batch: 1.0,
        step_s: 0.0,
        wait_s: 0.0,
    }
}

#[test]
fn no_more_than_all_of_a_step_is_fixed() {
    let own = Curve::straight(Line::flat(5e-3), 100.0);
    let share = |step_s: f64| {
        Cost {
            own: own.clone(),
            batch: 100.0,
            step_s,
            ..plain()
        }
        .fixed_share()
    };
    assert!((share(10e-3) - 0.5).abs() < 1e-12);
    assert_eq!(share(4.9e-3), 1.0);
}

#[test]
fn workers_hide_the_loading_until_they_are_too_few() {
    let cost = Cost {
        own: Curve::straight(
            Line {
                fixed: 2e-3,
                slope: 0.0,
            },
            100.0,
        ),
        load: Line {
            fixed: 0.0,
            slope: 10e-6,
        },
        usable: 8.0,
        batch: 100.0,
        step_s: 3e-3,
        wait_s: 1e-3,
        ..plain()
    };
    assert!((cost.gain(100.0, 0) - 1.0).abs() < 1e-12);
    assert!((cost.gain(100.0, 1) - 1.5).abs() < 1e-12);
    let wide = Cost {
        device_s: 20e-6,
        aside_s: 1e-6,
        ..cost.clone()
    };
    assert!((wide.step_s(800.0, 7) - 16.8e-3).abs() < 1e-12);
    // More workers than CPUs make no more batches, and the step needs one of them, which they share.
    assert!((cost.step_s(3200.0, 64) - (4.25e-3 + 2e-3 / 8.0)).abs() < 1e-12);
    // A batch of 1600 takes 16 ms to make.
    assert!((cost.step_s(1600.0, 4) - 4e-3).abs() < 1e-12 && (cost.step_s(1400.0, 7) - 2e-3).abs() < 1e-12);
}

/// Two CPUs, two threads that share a product: a table's MLP, where one worker beside them made it slower, and one beside one
/// thread faster.
#[test]
fn threads_make_room_for_workers() {
    let line = Line {
        fixed: 1e-3,
        slope: 4e-6,
    };
    let load = Line {
        fixed: 0.0,
        slope: 16e-6,
    };
    let mut cost = Cost {
        own: Curve::straight(line, 1000.0),
        load,
        usable: 2.0,
        step_threads: StepThreads {
            threads: 2.0,
            busy: 1.2,
            disturbed: 1.0,
            may_change: true,
            tried: Vec::new(),
        },
        batch: 1000.0,
        step_s: 21e-3,
        wait_s: 16e-3,
        ..plain()
    };
    assert_eq!(cost.other_threads(1), Some(1));
    assert!((cost.step_s(1000.0, 1) - 16e-3).abs() < 1e-12);
    cost.step_threads.may_change = false;
    assert_eq!(cost.other_threads(1), None);
    assert!((cost.step_s(1000.0, 1) - 21e-3).abs() < 1e-12);
    // With a worker already there, the steps are disturbed as they were measured.
    cost.workers = 1;
    cost.step_threads.disturbed = 2.0;
    assert!((cost.step_s(1000.0, 1) - 16e-3).abs() < 1e-12 && (cost.step_s(1000.0, 0) - 21e-3).abs() < 1e-12);
    assert!(!cost.is_supplied() && cost.gain_by_threads(1.0) > 0.99);
    // Of 21 ms these costs explain 16: twice the batch takes twice as long, not less.
    assert!((cost.gain(2000.0, 1) - 1.0).abs() < 0.02);
}

/// Threads that were tried tell what fewer of them are worth, better than the CPU time that spinning ones use up.
#[test]
fn measured_threads_predict_their_gain() {
    let mut step_threads = StepThreads {
        threads: 2.0,
        busy: 2.0,
        disturbed: 1.0,
        may_change: true,
        tried: Vec::new(),
    };
    assert!((step_threads.pace(1.0) - 2.0).abs() < 1e-12);
    step_threads.tried = vec![(1.0, 1.1), (2.0, 1.0)];
    assert!((step_threads.pace(1.0) - 1.1).abs() < 1e-12 && (step_threads.pace(2.0) - 1.0).abs() < 1e-12);
    // With the search's own single thread, two are as much faster.
    step_threads.threads = 1.0;
    assert!((step_threads.pace(2.0) - 1.0 / 1.1).abs() < 1e-12);
    // Half way, the speed is half way.
    step_threads.threads = 8.0;
    step_threads.tried = vec![(1.0, 4.0), (8.0, 1.0)];
    assert!((1.0 / step_threads.pace(4.5) - 0.625).abs() < 1e-12);
}

/// A table's autoencoder on two CPUs: reckoned were 1.2 ms with two workers, measured 3.5, and one worker was as fast.
#[test]
fn workers_that_were_measured_are_worth_what_they_were() {
    let mut cost = Cost {
        own: Curve::straight(
            Line {
                fixed: 0.7e-3,
                slope: 1e-6,
            },
            64.0,
        ),
        load: Line {
            fixed: 0.1e-3,
            slope: 1.6e-6,
        },
        handover_s: HANDOVER_S,
        sending_s: SENDING_S,
        usable: 2.0,
        step_threads: StepThreads {
            threads: 1.0,
            busy: 1.0,
            disturbed: 1.0,
            may_change: true,
            tried: Vec::new(),
        },
        batch: 64.0,
        step_s: 2e-3,
        wait_s: 0.2e-3,
        ..plain()
    };
    let rosy = cost.gain(512.0, 2);
    let fed = |workers, samples, step_s| Fed {
        workers,
        threads: 1,
        samples,
        step_s,
    };
    let measured = [
        fed(0, 64, 1e-3),
        fed(0, 512, 3e-3),
        fed(1, 64, 2e-3),
        fed(1, 512, 3.2e-3),
        fed(2, 512, 3.5e-3),
    ];
    let reckoned = |one: &Fed| cost.reckoned_s(one.samples as f64, one.workers, one.threads as f64);
    cost.fed = Feeding::meeting(measured, reckoned);
    for one in measured {
        let step_s = cost.step_with(one.samples as f64, one.workers, 1.0);
        assert!((step_s - one.step_s).abs() < 1e-12);
        // Held against what was measured in turn, not against another moment's step.
        let gain = one.samples as f64 / 64.0 / (one.step_s / 1e-3);
        assert!((cost.gain(one.samples as f64, one.workers) - gain).abs() < 1e-9);
    }
    assert!(rosy > 1.5 * cost.gain(512.0, 2));
    // The trial's own steps were quicker than those fed in turn: others worked beside those.
    let quicker = Cost {
        step_s: 0.8e-3,
        ..cost.clone()
    };
    assert!((quicker.gain(512.0, 0) / cost.gain(512.0, 0) - 0.8).abs() < 1e-9);
    let between = cost.step_with(256.0, 0, 1.0);
    assert!(between > 1e-3 && between < 3e-3);
    assert!(cost.is_fed() && cost.is_unknown(3) && !cost.is_unknown(1));
    // One number of workers alone says nothing against others.
    let alone = Cost {
        fed: Feeding::meeting([fed(0, 64, 1e-3)], |_| 1e-3),
        ..cost.clone()
    };
    assert!(!alone.is_fed() && !alone.is_unknown(3));
    // What computing faster is worth is not eaten up by meeting the same steps again.
    assert!(cost.gain_by_computing(2.0) > 1.3);
}
