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

/// Where training has led, a gradient may be the small rest of large parts. What rounding the weights alone does to it on the CPU says
/// how well it is determined; the card rounds at every product besides.
const ROUNDINGS: f64 = 10.0;

/// Compared after so many steps on the card.
const AFTER: [usize; 3] = [0, 20, 60];

fn parity(precision: Precision, within: &Tolerance) {
    let mut wrong = Vec::new();
    for case in CASES {
        wrong.extend(parity_of(case, precision, within));
    }
    // The recurrences again, both ways: measurement takes one of them.
    for way in [Way::Persistent, Way::StepByStep] {
        cuda::force_recurrence(Some(way));
        for case in CASES.iter().filter(|case| std::ptr::eq(case.inputs, WINDOWS)) {
            print!("{way:?} ");
            let found = parity_of(case, precision, within);
            wrong.extend(found.iter().map(|text| format!("{way:?} {text}")));
        }
    }
    cuda::force_recurrence(None);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is off by more than it may be.
fn parity_of(case: &Case, precision: Precision, within: &Tolerance) -> Vec<String> {
    let mut cpu = CpuSession::<f32>::new((case.plan)().unwrap(), 2, 7).unwrap();
    let mut card = CudaSession::new((case.plan)().unwrap(), 0, precision, 7).unwrap();
    let what = format!("{} {}", case.name, precision.name());
    prepare(&mut cpu);
    prepare(&mut card);
    let mut rounded = CpuSession::<f32>::new((case.plan)().unwrap(), 2, 7).unwrap();
    prepare(&mut rounded);
    let names: Vec<String> = cpu.plan().names(Role::Parameter).map(str::to_owned).collect();
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    for after in AFTER {
        for step in card.position().updates as usize..after {
            fill(&mut card, case, step);
            card.step(1e-3).unwrap();
        }
        let _ = card.take_loss();
        hand_over(&mut card, &mut cpu, f32::MANTISSA_DIGITS);
        hand_over(&mut card, &mut rounded, digits(precision));
        let of_rounded = gradients(&mut rounded, case, after, &names);
        rounded.update(0.0).unwrap();
        let off = step_of_both(&mut card, &mut cpu, case, after, &names, &of_rounded);
        let found = off.beyond(within, case.slack, after > 0);
        wrong.extend(
            found
                .iter()
                .map(|text| format!("{what}, after {after} steps: {text}")),
        );
        seen.push(format!(
            "{after}: {:.0e}/{:.0e} ({:.0e})/{:.0e}/{:.0e}",
            off.evaluation.max(off.loss),
            off.whole,
            off.rounding,
            off.worst(),
            off.moved
        ));
    }
    println!(
        "{what:44} loss/gradients (of rounded weights)/worst tensor/moved {}",
        seen.join(", ")
    );
    wrong
}

/// Binary digits that the factors of products keep.
fn digits(precision: Precision) -> u32 {
    match precision {
        Precision::F32 => 24,
        Precision::Tf32 | Precision::F16 => 11,
        Precision::Bf16 => 8,
    }
}

/// The card's weights, state and position become the CPU's, weights with so many binary digits.
fn hand_over(card: &mut CudaSession, cpu: &mut CpuSession<f32>, digits: u32) {
    let dropped = f32::MANTISSA_DIGITS - digits;
    let half = (1u32 << dropped) >> 1;
    let round = |value: &f32| f32::from_bits((value.to_bits() + half) >> dropped << dropped);
    for tensor in card.snapshot().unwrap().wait().unwrap() {
        let values: Vec<f32> = tensor.values.iter().map(round).collect();
        cpu.write(&tensor.name, &values).unwrap();
    }
    cpu.set_position(card.position());
}

/// The gradients of one batch.
fn gradients(session: &mut dyn Session, case: &Case, step: usize, names: &[String]) -> Vec<Vec<f32>> {
    session.set_valid_rows(session.plan().batch());
    session.set_epoch(2);
    fill(session, case, step);
    session.accumulate(1.0).unwrap();
    all(session, names, Session::read_gradient)
}

/// How far the card is off in one step.
struct Off {
    evaluation: f64,
    loss: f64,
    whole: f64,
    /// What rounding the weights does to all gradients on the CPU.
    rounding: f64,
    tensors: Vec<TensorOff>,
    moved: f64,
}

/// The gradient of one tensor.
struct TensorOff {
    name: String,
    size: f64,
    error: f64,
    rounding: f64,
}

impl Off {
    /// The gradients that count: one that vanishes beside the others (a bias before a batch norm) is nothing but rounding.
    fn counting(&self) -> impl Iterator<Item = &TensorOff> {
        let least = least_that_counts(self.tensors.iter().map(|tensor| tensor.size));
        self.tensors.iter().filter(move |tensor| tensor.size > least)
    }

    fn worst(&self) -> f64 {
        self.counting().map(|tensor| tensor.error).fold(0.0, f64::max)
    }

    fn beyond(&self, within: &Tolerance, slack: f64, settled: bool) -> Vec<String> {
        let whole = (within.whole * slack).max(ROUNDINGS * self.rounding);
        let mut figures = vec![
            ("evaluation".to_owned(), self.evaluation, within.loss * slack),
            ("loss".to_owned(), self.loss, within.loss * slack),
            ("all gradients".to_owned(), self.whole, whole),
        ];
        for tensor in self.counting() {
            let bound = (within.tensor * slack).max(ROUNDINGS * tensor.rounding);
            figures.push((format!("the gradient of {}", tensor.name), tensor.error, bound));
        }
        if settled {
            figures.push(("the update".to_owned(), self.moved, within.moved * slack));
        }
        figures.retain(|(_, found, bound)| found.is_nan() || found > bound);
        let told = figures
            .iter()
            .map(|(what, found, bound)| format!("{what} off by {found:.2e}, allowed {bound:.1e}"));
        told.collect()
    }
}

/// One thousandth of all sizes together.
fn least_that_counts(sizes: impl Iterator<Item = f64>) -> f64 {
    1e-3 * sizes.map(|size| size * size).sum::<f64>().sqrt()
}

fn step_of_both(
    card: &mut CudaSession,
    cpu: &mut CpuSession<f32>,
    case: &Case,
    step: usize,
    names: &[String],
    of_rounded: &[Vec<f32>],
) -> Off {
    let before = all(cpu, names, Session::read);
    let (mut evaluations, mut losses, mut both, mut after) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for session in [card as &mut dyn Session, cpu] {
        session.set_valid_rows(21);
        fill(session, case, 99);
        session.evaluate().unwrap();
        both.push(gradients(session, case, step, names));
        evaluations.push(session.take_evaluation_loss().unwrap());
        session.update(1e-3).unwrap();
        losses.push(session.take_loss().unwrap());
        after.push(all(session, names, Session::read));
    }
    let least = least_that_counts(both[1].iter().map(|gradient| norm(gradient)));
    // An update divides by the gradient's own size: where that is rounding, so is the update.
    let moves = |after: &[Vec<f32>]| -> Vec<f32> {
        let tensors = (0..names.len()).filter(|tensor| norm(&both[1][*tensor]) > least);
        let moved = tensors.flat_map(|tensor| {
            let pairs = after[tensor].iter().zip(&before[tensor]);
            pairs.map(|(after, before)| after - before).collect::<Vec<f32>>()
        });
        moved.collect()
    };
    let tensor = |place: usize| TensorOff {
        name: names[place].clone(),
        size: norm(&both[1][place]),
        error: relative(&both[0][place], &both[1][place]),
        rounding: relative(&of_rounded[place], &both[1][place]),
    };
    Off {
        evaluation: (evaluations[0] - evaluations[1]).abs() / evaluations[1],
        loss: (losses[0] - losses[1]).abs() / losses[1],
        whole: relative(&both[0].concat(), &both[1].concat()),
        rounding: relative(&of_rounded.concat(), &both[1].concat()),
        tensors: (0..names.len()).map(tensor).collect(),
        moved: relative(&moves(&after[0]), &moves(&after[1])),
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
