//! The card against the CPU, and against itself: the same plan, the same seed, the same batches. Needs a GPU: run with `--ignored`
//! on one.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use cases::{CASES, Case, fill, prepare};
use flatout_engine::cuda::{self, CudaSession, Precision, Way};
use flatout_engine::{EngineError, Role, Session};
use models::{averaged, tabular};

#[path = "cuda/cases.rs"]
mod cases;
#[path = "support/every_loss.rs"]
mod every_loss;
#[path = "cuda/models.rs"]
mod models;
#[path = "cuda/parity.rs"]
mod parity;

/// Evaluations that are not waited for give what evaluations that are read give.
#[test]
#[ignore = "needs a GPU"]
fn kept_outputs_are_those_that_were_read() {
    let case = &CASES[0];
    for precision in [Precision::F32, Precision::Bf16] {
        let mut session = CudaSession::new((case.plan)().unwrap(), 0, precision, 7).unwrap();
        prepare(&mut session);
        let (mut expected, mut values) = (Vec::new(), vec![0f32; 48]);
        for keeping in [false, true] {
            for (batch, rows) in [(0, 48), (1, 48), (2, 13)] {
                fill(&mut session, case, batch);
                session.set_valid_rows(rows);
                if keeping {
                    session.evaluate_keeping("prediction").unwrap();
                } else {
                    session.evaluate().unwrap();
                    session.read("prediction", &mut values).unwrap();
                    expected.extend_from_slice(&values[..rows]);
                }
            }
        }
        assert_eq!(session.take_kept().unwrap(), expected);
        assert!(session.take_kept().unwrap().is_empty());
        session.wait().unwrap();
        assert!(session.busy_ms().unwrap() > 0.0);
    }
}

/// A gradient that f16 cannot hold leaves the update out and halves the scale; the next ones go through.
#[test]
#[ignore = "needs a GPU"]
fn f16_leaves_out_updates_that_overflow() {
    let mut session = CudaSession::new((CASES[0].plan)().unwrap(), 0, Precision::F16, 7).unwrap();
    prepare(&mut session);
    let mut before = vec![0f32; 1];
    session.read("head.bias", &mut before).unwrap();
    fill(&mut session, &CASES[0], 0);
    session.accumulate(1e9).unwrap();
    session.update(1e-2).unwrap();
    let mut after = vec![0f32; 1];
    session.read("head.bias", &mut after).unwrap();
    assert_eq!(before, after);
    session.step(1e-2).unwrap();
    session.read("head.bias", &mut after).unwrap();
    assert_ne!(before, after);
}

/// Every kernel once and no more: what compute-sanitizer looks at, which takes its time. `FLATOUT_TEST_CASE` names the only case to look at;
/// one that does not exist makes it name them all.
fn one_step(precision: Precision) {
    cuda::force_recurrence(Some(Way::Persistent));
    let only = std::env::var("FLATOUT_TEST_CASE").ok();
    let chosen = |case: &&Case| only.as_ref().is_none_or(|name| case.name == name);
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    assert!(
        CASES.iter().any(|case| chosen(&case)),
        "there are\ncase: {}",
        names.join("\ncase: ")
    );
    for case in CASES.iter().filter(chosen) {
        let mut session = CudaSession::new((case.plan)().unwrap(), 0, precision, 3).unwrap();
        prepare(&mut session);
        fill(&mut session, case, 0);
        session.step(1e-3).unwrap();
        session.evaluate().unwrap();
        assert!(session.take_loss().unwrap().is_finite(), "{}", case.name);
        assert!(
            session.take_evaluation_loss().unwrap().is_finite(),
            "{}",
            case.name
        );
    }
}

#[test]
#[ignore = "needs a GPU"]
fn one_step_of_everything_in_f32() {
    one_step(Precision::F32);
}

#[test]
#[ignore = "needs a GPU"]
fn one_step_of_everything_in_bf16() {
    one_step(Precision::Bf16);
}

/// Tables on the card, or rows carried over batch by batch: the same bits.
#[test]
#[ignore = "needs a GPU"]
fn streamed_tables_give_the_same_losses() {
    for case in CASES {
        let run = |streamed: bool| {
            let mut session = CudaSession::new((case.plan)().unwrap(), 0, Precision::Bf16, 3).unwrap();
            if streamed {
                session.set_table_budget(0);
            }
            prepare(&mut session);
            assert_eq!(session.is_streaming(), streamed);
            for step in 0..50 {
                fill(&mut session, case, step);
                session.step(1e-3).unwrap();
            }
            fill(&mut session, case, 99);
            session.evaluate().unwrap();
            (
                session.take_loss().unwrap().to_bits(),
                session.take_evaluation_loss().unwrap().to_bits(),
            )
        };
        assert_eq!(run(true), run(false), "{}", case.name);
    }
}

/// Short steps are sent several at a time; the losses are those of one at a time.
#[test]
#[ignore = "needs a GPU"]
fn steps_sent_together_are_the_same_steps() {
    let run = |alone: bool| {
        let mut session = CudaSession::new((CASES[0].plan)().unwrap(), 0, Precision::Bf16, 3).unwrap();
        prepare(&mut session);
        for step in 0..203 {
            fill(&mut session, &CASES[0], step);
            session.step(1e-3).unwrap();
            if alone {
                session.wait().unwrap();
            }
        }
        // Set while steps are held, and needed after them.
        fill(&mut session, &CASES[0], 500);
        session.evaluate().unwrap();
        let evaluated = session.take_evaluation_loss().unwrap().to_bits();
        let mut weight = vec![0f32; 16];
        session.read("head.weight", &mut weight).unwrap();
        (session.take_loss().unwrap().to_bits(), evaluated, weight)
    };
    assert_eq!(run(true), run(false));
}

#[test]
#[ignore = "needs a GPU"]
fn the_same_seed_gives_the_same_bits() {
    for case in CASES {
        let run = || {
            let mut session = CudaSession::new((case.plan)().unwrap(), 0, Precision::Bf16, 3).unwrap();
            prepare(&mut session);
            for step in 0..20 {
                fill(&mut session, case, step);
                session.step(1e-3).unwrap();
            }
            let id = session.plan().find("head.weight").unwrap();
            let mut weight = vec![0f32; session.plan().buffer(id).len()];
            session.read("head.weight", &mut weight).unwrap();
            let bits: Vec<u32> = weight.iter().map(|value| value.to_bits()).collect();
            (session.take_loss().unwrap().to_bits(), bits)
        };
        assert_eq!(run(), run(), "{}", case.name);
    }
}

/// What is copied beside the steps that follow is what was there before them.
#[test]
#[ignore = "needs a GPU"]
fn a_snapshot_is_of_its_moment_while_steps_go_on() {
    for case in CASES {
        let mut session = CudaSession::new((case.plan)().unwrap(), 0, Precision::Bf16, 3).unwrap();
        prepare(&mut session);
        let steps = |session: &mut CudaSession, from: usize| {
            for step in from..from + 30 {
                fill(session, case, step);
                session.step(1e-3).unwrap();
            }
        };
        for round in 0..2 {
            steps(&mut session, 60 * round);
            let (first, second) = (session.snapshot().unwrap(), session.snapshot().unwrap());
            let names: Vec<(String, usize)> = session
                .plan()
                .buffers()
                .iter()
                .filter(|buffer| matches!(buffer.role, Role::Parameter | Role::State))
                .map(|buffer| (buffer.name.clone(), buffer.len()))
                .collect();
            let mut expected = Vec::new();
            for (name, length) in &names {
                let mut values = vec![0f32; *length];
                session.read(name, &mut values).unwrap();
                expected.push(values);
            }
            steps(&mut session, 60 * round + 30);
            for leaving in [first, second] {
                let found = std::thread::spawn(|| leaving.wait().unwrap()).join().unwrap();
                assert_eq!(found.len(), names.len());
                for ((tensor, (name, _)), expected) in found.iter().zip(&names).zip(&expected) {
                    assert_eq!((&tensor.name, &tensor.values), (name, expected), "{}", case.name);
                }
            }
        }
    }
}

/// Sessions of several threads: one records while the others allocate, load and compute. Each gives what it gives alone.
#[test]
#[ignore = "needs a GPU"]
fn sessions_side_by_side_do_not_disturb_each_other() {
    let run = |case: &Case| {
        let mut session = CudaSession::new((case.plan)().unwrap(), 0, Precision::Bf16, 3).unwrap();
        prepare(&mut session);
        for step in 0..60 {
            fill(&mut session, case, step);
            session.step(1e-3).unwrap();
        }
        fill(&mut session, case, 99);
        session.evaluate().unwrap();
        let evaluated = session.take_evaluation_loss().unwrap().to_bits();
        (session.take_loss().unwrap().to_bits(), evaluated)
    };
    let alone: Vec<_> = CASES.iter().map(run).collect();
    std::thread::scope(|scope| {
        for (thread, expected) in [&alone; 4].into_iter().enumerate() {
            scope.spawn(move || {
                for number in 0..CASES.len() {
                    let number = (number + thread * 5) % CASES.len();
                    assert_eq!(run(&CASES[number]), expected[number], "{}", CASES[number].name);
                }
            });
        }
    });
}

#[test]
#[ignore = "needs a GPU"]
fn an_index_outside_its_table_is_refused() {
    let mut session = CudaSession::new(tabular().unwrap(), 0, Precision::F32, 3).unwrap();
    prepare(&mut session);
    assert!(matches!(
        session.set_indices("stock", &[9; 48]),
        Err(EngineError::Index { .. })
    ));
}

#[test]
fn reports_a_missing_driver() {
    // On a machine with a card this opens it; elsewhere it must explain itself and not panic.
    match CudaSession::new(tabular().unwrap(), 0, Precision::F32, 3) {
        Ok(session) => assert!(session.device().contains("sm_")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Averages follow the parameters, are what is evaluated while they are in their place, and leave the training as it is.
#[test]
#[ignore = "needs a GPU"]
fn averages_change_places_with_the_parameters() {
    for precision in [Precision::F32, Precision::Bf16] {
        let start = |plan| {
            let mut session = CudaSession::new(plan, 0, precision, 3).unwrap();
            prepare(&mut session);
            session.begin_averages().unwrap();
            session
        };
        let (mut with, mut without) = (start(averaged().unwrap()), start(tabular().unwrap()));
        let read = |session: &mut CudaSession, name: &str| {
            let mut values = [0f32; 40];
            session.read(name, &mut values).unwrap();
            values
        };
        let choose = |session: &mut CudaSession, step: i32| {
            let rows: Vec<i32> = (0..48).map(|row| (row * 7 + step) % 300).collect();
            let stocks: Vec<i32> = rows.iter().map(|row| row % 9).collect();
            session.set_indices("start", &rows).unwrap();
            session.set_indices("stock", &stocks).unwrap();
        };
        let evaluated = |session: &mut CudaSession| {
            choose(session, 99);
            session.evaluate().unwrap();
            session.take_evaluation_loss().unwrap().to_bits()
        };
        let (name, average) = ("first.bias", "optimizer.average.first.bias");
        let mut expected = read(&mut with, name);
        for step in 0..20 {
            for session in [&mut with, &mut without] {
                choose(session, step);
                session.step(1e-2).unwrap();
            }
            let parameter = read(&mut with, name);
            for (average, parameter) in expected.iter_mut().zip(parameter) {
                *average += 0.25 * (parameter - *average);
            }
        }
        let (parameter, found) = (read(&mut with, name), read(&mut with, average));
        assert_eq!(parameter, read(&mut without, name));
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6));
        let before = evaluated(&mut with);
        with.exchange_averages().unwrap();
        assert_eq!(
            (read(&mut with, name), read(&mut with, average)),
            (found, parameter)
        );
        assert_ne!(evaluated(&mut with), before);
        with.exchange_averages().unwrap();
        assert_eq!(evaluated(&mut with), before);
        assert_eq!(read(&mut with, name), parameter);
    }
}
