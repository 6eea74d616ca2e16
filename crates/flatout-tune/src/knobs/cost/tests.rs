mod recorded;

use super::*;
use crate::knobs::Done;
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
        crew: Crew {
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
        crew: Crew {
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
        crew: Crew {
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

/// Rows of a table on a machine with 16 CPUs, as an H200's: a batch of 4096 takes one worker 39 ms, and eight of them do not make one
/// in five.
#[test]
fn workers_supply_what_they_were_seen_to() {
    let seen = |workers, samples, batch_ms: f64, host_ms: f64| trial::Supply {
        workers,
        samples,
        batch_s: batch_ms / 1e3,
        host_s: host_ms / 1e3,
    };
    let load = Line {
        fixed: 0.0,
        slope: 8e-6,
    };
    let told = [
        seen(16, 4096, 7.5, 1.2),
        seen(8, 4096, 9.8, 1.0),
        seen(8, 1024, 2.6, 0.8),
        seen(1, 1024, 9.0, 0.7),
        // Of an earlier trial.
        seen(8, 1024, 90.0, 9.0),
    ];
    let supply = Supply::by(told);
    let batch_ms = |batch, workers| supply.batch_s(batch, workers, load).unwrap() * 1e3;
    assert!((batch_ms(4096.0, 8) - 9.8).abs() < 1e-9 && (batch_ms(1024.0, 8) - 2.6).abs() < 1e-9);
    assert!((batch_ms(2560.0, 8) - 6.2).abs() < 1e-9);
    // Half way between one worker and eight, and beyond the most.
    let rates = [1.0 / 9.0, 1.0 / 2.6];
    assert!((1.0 / batch_ms(1024.0, 4) - (rates[0] + (rates[1] - rates[0]) * 3.0 / 7.0)).abs() < 1e-9);
    assert!((batch_ms(4096.0, 64) - 7.5).abs() < 1e-9);
    // One size alone grows as making it does.
    assert!((batch_ms(2048.0, 1) - 18.0).abs() < 1e-9);
    assert!((supply.host_s(1024.0, load).unwrap() - 0.75e-3).abs() < 1e-12);
    assert_eq!(Supply::default().batch_s(64.0, 2, load), None);
    // Fewer workers than any that were asked, in proportion.
    let many = Supply::by(told.into_iter().filter(|one| one.workers == 16));
    assert!((many.batch_s(4096.0, 4, load).unwrap() * 1e3 - 30.0).abs() < 1e-9);
}

/// What a batch costs the host is in the way of a step that waits for the host, and not of one that waits for the device.
#[test]
fn batches_cost_the_host() {
    let told = trial::Supply {
        workers: 8,
        samples: 1000,
        batch_s: 1e-3,
        host_s: 1e-3,
    };
    let mut cost = Cost {
        own: Curve::straight(Line::flat(2e-3), 1000.0),
        load: Line {
            fixed: 0.0,
            slope: 4e-6,
        },
        handover_s: HANDOVER_S,
        sending_s: SENDING_S,
        usable: 16.0,
        supply: Supply::by([told]),
        batch: 1000.0,
        step_s: 6e-3,
        wait_s: 4e-3,
        ..plain()
    };
    assert!((cost.gain(1000.0, 8) - 2.0).abs() < 1e-9);
    let line = Line {
        fixed: 0.0,
        slope: 2e-6,
    };
    cost.own = Curve::straight(line, 1000.0);
    assert!((cost.gain(1000.0, 8) - 3.0).abs() < 1e-9);
}

/// Fifteen workers, of whose waiting the costs explain three quarters: a sixteenth adds what it adds, and takes nothing of the rest away.
#[test]
fn other_workers_do_not_explain_what_is_left_open() {
    let mut cost = Cost {
        own: Curve::straight(Line::flat(4e-3), 8192.0),
        load: Line {
            fixed: 0.0,
            slope: 0.173 / 8192.0,
        },
        handover_s: HANDOVER_S,
        sending_s: 0.0,
        usable: 16.0,
        workers: 15,
        batch: 8192.0,
        step_s: 15.5e-3,
        wait_s: 11.1e-3,
        ..plain()
    };
    let gain = cost.gain(8192.0, 16);
    assert!(gain < 16.0 / 15.0 + 1e-9 && gain > 0.7, "{gain}");
    assert!(cost.gain(8192.0, 14) < 1.0);
    // Where there are more than CPUs, they were in each other's way.
    assert!(cost.tells(14) && cost.tells(16));
    cost.workers = 17;
    assert!(cost.gain(8192.0, 14) > 1.2 && !cost.tells(14) && cost.tells(18) && cost.tells(0));
}

/// 28 workers on 16 CPUs, which were asked for batches alone as well: what they supply explains the steps, so fewer are predicted.
#[test]
fn a_crowd_that_was_asked_tells_what_fewer_are_worth() {
    let seen = |workers, batch_ms: f64| trial::Supply {
        workers,
        samples: 64,
        batch_s: batch_ms / 1e3,
        host_s: 1e-3,
    };
    let cost = Cost {
        own: Curve::straight(Line::flat(20e-3), 256.0),
        load: Line {
            fixed: 0.0,
            slope: 1e-3,
        },
        usable: 16.0,
        workers: 28,
        supply: Supply::by([seen(28, 26.0), seen(16, 15.0), seen(8, 30.0)]),
        batch: 256.0,
        step_s: 112e-3,
        wait_s: 90e-3,
        ..plain()
    };
    let gain = cost.gain(256.0, 15);
    assert!(cost.tells(15) && gain > 1.6 && gain < 1.8, "{gain}");
    let unasked = Cost {
        supply: Supply::default(),
        ..cost
    };
    assert!(!unasked.tells(15));
}

/// Pictures of an H200's program with one worker, which was not asked: an eighth of what eight supply is less than it does.
#[test]
fn what_explains_too_much_is_not_taken_for_a_gain() {
    let seen = |workers, samples, batch_ms: f64| trial::Supply {
        workers,
        samples,
        batch_s: batch_ms / 1e3,
        host_s: 1e-3,
    };
    let cost = Cost {
        own: Curve::straight(Line::flat(3.7e-3), 32.0),
        load: Line {
            fixed: 0.0,
            slope: 1.67e-3,
        },
        usable: 16.0,
        workers: 1,
        supply: Supply::by([seen(8, 32, 7.71), seen(16, 32, 4.07), seen(16, 256, 30.3)]),
        batch: 32.0,
        step_s: 53.8e-3,
        wait_s: 50.1e-3,
        ..plain()
    };
    let gain = cost.gain(128.0, 15);
    let step_s = cost.step_s(128.0, 15);
    assert!((gain - 128.0 / step_s / (32.0 / 53.8e-3)).abs() < 1e-9, "{gain}");
    // The same workers are explained in the same way for every batch.
    assert!((cost.gain(64.0, 1) - 1.0).abs() < 0.05);
}

/// A small GRU on an H200: 1024 samples a step, four workers that each epoch of half a second starts anew for 0.2 s.
#[test]
fn workers_that_stay_spare_each_sample_its_part_of_their_start() {
    let restart_s = 0.2 / 60_000.0;
    let mut cost = Cost {
        own: Curve::straight(
            Line {
                fixed: 2e-3,
                slope: 2e-6,
            },
            1024.0,
        ),
        aside_s: restart_s,
        along: Along {
            restart_s,
            stays: true,
            copying_s: None,
        },
        usable: 16.0,
        workers: 4,
        batch: 1024.0,
        step_s: 4.048e-3 + 1024.0 * restart_s,
        ..plain()
    };
    assert!((cost.gain(1024.0, 4) - cost.step_s / 4.048e-3).abs() < 1e-9);
    assert!((cost.wait_share() - 1024.0 * restart_s / cost.step_s).abs() < 1e-9);
    // A larger batch alone takes nothing of it away.
    cost.along.stays = false;
    assert!((cost.gain(4096.0, 4) - 4.0 * cost.step_s / (10.192e-3 + 4096.0 * restart_s)).abs() < 1e-9);
    assert!((cost.gain(1024.0, 0) - cost.step_s / 4.048e-3).abs() < 1e-9);
    // Every epoch's first batch is waited for, by fewer steps where they are larger.
    cost.load.slope = 8e-6;
    cost.epoch = Some(60_000.0);
    let first_s = |batch: f64| 8e-6 * batch * batch / 60_000.0;
    assert!((cost.step_s(1024.0, 4) - (4.048e-3 + 1024.0 * restart_s + first_s(1024.0))).abs() < 1e-9);
    assert!((cost.step_s(4096.0, 8) - (10.192e-3 + 4096.0 * restart_s + first_s(4096.0))).abs() < 1e-9);
}

/// An LSTM on an H200 whose workers make enough: the waiting is taking batches over, which pinning does beside, and copies are shorter.
#[test]
fn pinned_memory_spares_taking_over_and_some_of_the_copying() {
    let mut cost = Cost {
        own: Curve::straight(Line::flat(20e-3), 1024.0),
        load: Line {
            fixed: 0.0,
            slope: 10e-6,
        },
        along: Along {
            restart_s: 0.0,
            stays: false,
            copying_s: Some(2e-3),
        },
        usable: 16.0,
        workers: 4,
        batch: 1024.0,
        step_s: 23.2e-3,
        wait_s: 3.2e-3,
        ..plain()
    };
    assert!(cost.takes_over());
    assert!((cost.gain(1024.0, 4) - 23.2e-3 / 18e-3).abs() < 1e-9);
    // Where workers are too few, it takes as long as they do.
    cost.load.slope = 100e-6;
    assert!(!cost.takes_over() && (cost.gain(1024.0, 4) - 1.0).abs() < 1e-9);
}
