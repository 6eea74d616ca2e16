//! One step of the card against one of the CPU, from the same weights: at the start, and where training has led. Over many steps two
//! roundings lead apart by themselves: on the CPU alone, one millionth more or less on each weight at each step moves the mean loss of
//! 60 steps of the LSTM of 512 units by a thousandth. So weights are handed over and steps compared one by one.

use crate::cases::{CASES, Case, WINDOWS, fill, prepare};
use flatout_engine::cuda::{self, CudaSession, Precision, Way};
use flatout_engine::{CpuSession, Role, Session};

/// How far a precision may be off.
struct Tolerance {
    /// Of all gradients together, relative to their norm.
    whole: f64,
    /// Of one tensor's gradient, relative to its own norm: sums that nearly cancel keep the rounding of what they add up.
    tensor: f64,
    /// Of losses.
    loss: f64,
    /// Of what an update moves, relative to its norm. After the first steps only: until then the signs of rounding decide.
    moved: f64,
}

/// Compared after so many steps on the card.
const AFTER: [usize; 3] = [0, 20, 60];

fn parity(precision: Precision, within: &Tolerance) {
    for case in CASES {
        parity_of(case, precision, within);
    }
    // The recurrences again, both ways: measurement takes one of them.
    for way in [Way::Persistent, Way::StepByStep] {
        cuda::force_recurrence(Some(way));
        for case in CASES.iter().filter(|case| std::ptr::eq(case.inputs, WINDOWS)) {
            print!("{way:?} ");
            parity_of(case, precision, within);
        }
    }
    cuda::force_recurrence(None);
}

fn parity_of(case: &Case, precision: Precision, within: &Tolerance) {
    let mut cpu = CpuSession::<f32>::new((case.plan)().unwrap(), 2, 7).unwrap();
    let mut card = CudaSession::new((case.plan)().unwrap(), 0, precision, 7).unwrap();
    let what = format!("{} {}", case.name, precision.name());
    prepare(&mut cpu);
    prepare(&mut card);
    let mut seen = Vec::new();
    for after in AFTER {
        for step in card.position().updates as usize..after {
            fill(&mut card, case, step);
            card.step(1e-3).unwrap();
        }
        let _ = card.take_loss();
        hand_over(&mut card, &mut cpu);
        let off = step_of_both(&mut card, &mut cpu, case, after);
        off.check(
            &format!("{what}, after {after} steps"),
            within,
            case.slack,
            after > 0,
        );
        seen.push(format!(
            "{after}: {:.0e}/{:.0e}/{:.0e}/{:.0e}",
            off.evaluation.max(off.loss),
            off.whole,
            off.worst(),
            off.moved
        ));
    }
    println!("{what:44} loss/gradients/worst tensor/moved {}", seen.join(", "));
}

/// The card's weights, state and position become the CPU's.
fn hand_over(card: &mut CudaSession, cpu: &mut CpuSession<f32>) {
    for tensor in card.snapshot().unwrap().arrive().unwrap() {
        cpu.write(&tensor.name, &tensor.values).unwrap();
    }
    cpu.set_position(card.position());
}

/// How far the card is off in one step.
struct Off {
    evaluation: f64,
    loss: f64,
    whole: f64,
    /// Name, size and error of each tensor's gradient.
    tensors: Vec<(String, f64, f64)>,
    moved: f64,
}

impl Off {
    /// The worst gradient that counts: one that vanishes beside the others (a bias before a batch norm) is nothing but rounding.
    fn counting(&self) -> impl Iterator<Item = &(String, f64, f64)> {
        let whole = self
            .tensors
            .iter()
            .map(|(_, size, _)| size * size)
            .sum::<f64>()
            .sqrt();
        self.tensors
            .iter()
            .filter(move |(_, size, _)| *size > 1e-3 * whole)
    }

    fn worst(&self) -> f64 {
        self.counting().map(|(.., error)| *error).fold(0.0, f64::max)
    }

    fn check(&self, what: &str, within: &Tolerance, slack: f64, settled: bool) {
        assert!(
            self.evaluation <= within.loss * slack,
            "{what}: evaluation is off by {:.2e}",
            self.evaluation
        );
        assert!(
            self.loss <= within.loss * slack,
            "{what}: loss is off by {:.2e}",
            self.loss
        );
        assert!(
            self.whole <= within.whole * slack,
            "{what}: gradients are off by {:.2e}",
            self.whole
        );
        for (name, _, error) in self.counting() {
            assert!(
                *error <= within.tensor * slack,
                "{what}: gradient of {name} is off by {error:.2e}"
            );
        }
        assert!(
            !settled || self.moved <= within.moved * slack,
            "{what}: the update is off by {:.2e}",
            self.moved
        );
    }
}

fn step_of_both(card: &mut CudaSession, cpu: &mut CpuSession<f32>, case: &Case, step: usize) -> Off {
    let names: Vec<String> = cpu.plan().names(Role::Parameter).map(str::to_owned).collect();
    let before = all(cpu, &names, Session::read);
    let (mut evaluations, mut losses, mut gradients, mut moves) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for session in [card as &mut dyn Session, cpu] {
        session.set_valid_rows(21);
        fill(session, case, 99);
        session.evaluate().unwrap();
        session.set_valid_rows(session.plan().batch());
        session.set_epoch(2);
        fill(session, case, step);
        session.accumulate(1.0).unwrap();
        evaluations.push(session.take_evaluation_loss().unwrap());
        gradients.push(all(session, &names, Session::read_gradient));
        session.update(1e-3).unwrap();
        losses.push(session.take_loss().unwrap());
        let moved = all(session, &names, Session::read);
        moves.push(
            moved
                .concat()
                .iter()
                .zip(before.concat())
                .map(|(after, before)| after - before)
                .collect::<Vec<_>>(),
        );
    }
    let tensors = names.iter().zip(gradients[0].iter().zip(&gradients[1]));
    Off {
        evaluation: (evaluations[0] - evaluations[1]).abs() / evaluations[1],
        loss: (losses[0] - losses[1]).abs() / losses[1],
        whole: relative(&gradients[0].concat(), &gradients[1].concat()),
        tensors: tensors
            .map(|(name, (found, expected))| (name.clone(), norm(expected), relative(found, expected)))
            .collect(),
        moved: relative(&moves[0], &moves[1]),
    }
}

type Read<'a> = fn(&mut (dyn Session + 'a), &str, &mut [f32]) -> Result<(), flatout_engine::EngineError>;

/// What `read` gives for each name.
fn all<'a>(session: &mut (dyn Session + 'a), names: &[String], read: Read<'a>) -> Vec<Vec<f32>> {
    let value = |name: &String| {
        let id = session.plan().find(name).unwrap();
        let mut values = vec![0f32; session.plan().buffer(id).len()];
        read(session, name, &mut values).unwrap();
        values
    };
    names.iter().map(value).collect()
}

fn norm(values: &[f32]) -> f64 {
    values
        .iter()
        .map(|value| f64::from(*value) * f64::from(*value))
        .sum::<f64>()
        .sqrt()
}

fn relative(found: &[f32], expected: &[f32]) -> f64 {
    let apart: Vec<f32> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
    norm(&apart) / norm(expected).max(1e-12)
}

#[test]
#[ignore = "needs a GPU"]
fn f32_agrees_with_the_cpu() {
    let within = Tolerance {
        whole: 1e-5,
        tensor: 2e-4,
        loss: 1e-4,
        moved: 1e-3,
    };
    parity(Precision::F32, &within);
}

#[test]
#[ignore = "needs a GPU"]
fn tf32_agrees_with_the_cpu() {
    let within = Tolerance {
        whole: 2e-3,
        tensor: 1e-2,
        loss: 5e-3,
        moved: 0.1,
    };
    parity(Precision::Tf32, &within);
}

#[test]
#[ignore = "needs a GPU"]
fn bf16_agrees_with_the_cpu() {
    let within = Tolerance {
        whole: 4e-2,
        tensor: 0.15,
        loss: 2e-2,
        moved: 0.3,
    };
    parity(Precision::Bf16, &within);
}

#[test]
#[ignore = "needs a GPU"]
fn f16_agrees_with_the_cpu() {
    let within = Tolerance {
        whole: 5e-3,
        tensor: 5e-2,
        loss: 1e-2,
        moved: 0.2,
    };
    parity(Precision::F16, &within);
}
