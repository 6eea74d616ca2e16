//! Workers on a GPU's machine: what they supply, and what goes along with them.

use super::*;

fn seen(workers: u64, samples: u64, batch_ms: f64, host_ms: f64) -> trial::Supply {
    trial::Supply {
        workers,
        samples,
        batch_s: batch_ms / 1e3,
        host_s: host_ms / 1e3,
    }
}

/// Rows of a table on a machine with 16 CPUs, as an H200's: a batch of 4096 takes one worker 39 ms, and eight of them do not make one
/// in five.
#[test]
fn workers_supply_what_they_were_seen_to() {
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
    let told = seen(8, 1000, 1.0, 1.0);
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
fn many_measured_workers_predict_fewer() {
    let cost = Cost {
        own: Curve::straight(Line::flat(20e-3), 256.0),
        load: Line {
            fixed: 0.0,
            slope: 1e-3,
        },
        usable: 16.0,
        workers: 28,
        supply: Supply::by([
            seen(28, 64, 26.0, 1.0),
            seen(16, 64, 15.0, 1.0),
            seen(8, 64, 30.0, 1.0),
        ]),
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
    let cost = Cost {
        own: Curve::straight(Line::flat(3.7e-3), 32.0),
        load: Line {
            fixed: 0.0,
            slope: 1.67e-3,
        },
        usable: 16.0,
        workers: 1,
        supply: Supply::by([
            seen(8, 32, 7.71, 1.0),
            seen(16, 32, 4.07, 1.0),
            seen(16, 256, 30.3, 1.0),
        ]),
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
    let first_s = |batch: f64| FIRST * 8e-6 * batch * batch / 60_000.0;
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

/// Steps that add up several batches.
#[test]
fn a_step_may_take_several_batches() {
    let cost = Cost {
        batch: 4090.0,
        ..plain()
    };
    assert_eq!(
        [1024, 4096, 8192].map(|batch| cost.batches_a_step(batch)),
        [4.0, 1.0, 1.0]
    );
}

/// Samples that do not end are no epoch: its first batch would have been waited for.
#[test]
fn a_short_epoch_is_none() {
    let cost = Cost {
        load: Line::flat(1e-3),
        epoch: Some(500.0),
        ..plain()
    };
    assert_eq!(cost.first_s(100.0, 4), 0.0);
    assert!((cost.first_s(50.0, 4) - FIRST * 1e-4).abs() < 1e-12 && cost.first_s(50.0, 0) == 0.0);
}

/// A table's MLP on an H200, 1024 samples by eight workers: taking batches over was reckoned too high. At 4096 the workers are what the steps
/// wait for, and their supply was measured.
#[test]
fn too_much_for_the_step_is_not_too_much_for_the_workers() {
    let team = |samples: u64, batch_s: f64| trial::Supply {
        workers: 8,
        samples,
        batch_s,
        host_s: 2e-3,
    };
    let mut cost = Cost {
        own: Curve::straight(Line::flat(1.8e-3), 1024.0),
        supply: Supply::by([team(1024, 2.3e-3), team(4096, 8e-3)]),
        usable: 16.0,
        workers: 8,
        batch: 1024.0,
        step_s: 2.8e-3,
        ..plain()
    };
    assert!(cost.explained_s() > 3.5e-3, "{}", cost.explained_s());
    assert!((cost.gain(4096.0, 8) - 4.0 * 2.8 / 8.0).abs() < 1e-9);
    // Workers that supplied more than was measured of them may do so with another batch.
    cost.supply = Supply::by([team(1024, 4e-3), team(4096, 8e-3)]);
    assert!(
        (cost.gain(4096.0, 8) - 2.0).abs() < 1e-9,
        "{}",
        cost.gain(4096.0, 8)
    );
}

/// What keeps the device busy was measured with another precision, perhaps: sizes that were measured tell better.
#[test]
fn the_device_is_a_floor_for_sizes_that_nobody_measured() {
    let cost = Cost {
        own: Curve::straight(Line::flat(10e-3), 128.0),
        device_s: 1e-3,
        batch: 16.0,
        step_s: 10e-3,
        ..plain()
    };
    assert!((cost.step_s(128.0, 0) - 10e-3).abs() < 1e-12);
    assert!((cost.step_s(256.0, 0) - 256e-3).abs() < 1e-12);
}
