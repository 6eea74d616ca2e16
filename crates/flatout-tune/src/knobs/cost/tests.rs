use super::*;

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
        device_s: 0.0,
        aside_s: 0.0,
        load: Line {
            fixed: 0.0,
            slope: 10e-6,
        },
        handover_s: 0.0,
        sending_s: 0.0,
        usable: 8.0,
        workers: 0,
        crew: Crew {
            threads: 1.0,
            busy: 1.0,
            disturbed: 1.0,
            may_change: false,
            tried: Vec::new(),
        },
        blind: false,
        batch: 100.0,
        step_s: 3e-3,
        wait_s: 1e-3,
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
        device_s: 0.0,
        aside_s: 0.0,
        load,
        handover_s: 0.0,
        sending_s: 0.0,
        usable: 2.0,
        workers: 0,
        crew: Crew {
            threads: 2.0,
            busy: 1.2,
            disturbed: 1.0,
            may_change: true,
            tried: Vec::new(),
        },
        blind: false,
        batch: 1000.0,
        step_s: 21e-3,
        wait_s: 16e-3,
    };
    assert_eq!(cost.other_threads(1), Some(1));
    assert!((cost.step_s(1000.0, 1) - 16e-3).abs() < 1e-12);
    cost.crew.may_change = false;
    assert_eq!(cost.other_threads(1), None);
    assert!((cost.step_s(1000.0, 1) - 21e-3).abs() < 1e-12);
    // With a worker already there, the steps are disturbed as they were measured.
    cost.workers = 1;
    cost.crew.disturbed = 2.0;
    assert!((cost.step_s(1000.0, 1) - 16e-3).abs() < 1e-12 && (cost.step_s(1000.0, 0) - 21e-3).abs() < 1e-12);
    assert!(!cost.is_supplied() && cost.gain_by_threads(1.0) > 0.99);
    // Of 21 ms these costs explain 16: twice the batch takes twice as long, not less.
    assert!((cost.gain(2000.0, 1) - 1.0).abs() < 0.02);
}

/// Threads that were tried tell what fewer of them are worth, better than the CPU time that spinning ones use up.
#[test]
fn threads_that_were_tried_tell_their_worth() {
    let mut crew = Crew {
        threads: 2.0,
        busy: 2.0,
        disturbed: 1.0,
        may_change: true,
        tried: Vec::new(),
    };
    assert!((crew.pace(1.0) - 2.0).abs() < 1e-12);
    crew.tried = vec![(1.0, 1.1), (2.0, 1.0)];
    assert!((crew.pace(1.0) - 1.1).abs() < 1e-12 && (crew.pace(2.0) - 1.0).abs() < 1e-12);
    // With the search's own single thread, two are as much faster.
    crew.threads = 1.0;
    assert!((crew.pace(2.0) - 1.0 / 1.1).abs() < 1e-12);
    // Half way, the speed is half way.
    crew.threads = 8.0;
    crew.tried = vec![(1.0, 4.0), (8.0, 1.0)];
    assert!((1.0 / crew.pace(4.5) - 0.625).abs() < 1e-12);
}
