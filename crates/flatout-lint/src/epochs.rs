//! What rules on work once an epoch share: which epoch loop runs a call at every turn, and how many epochs there are.

use crate::config::Value;
use crate::project::{Code, LoopRole};
use crate::python::Kind;

/// The epoch loop that runs this at every one of its turns: no condition in between, and no loop over batches.
pub fn epoch_of(call: Code<'_>) -> Option<Code<'_>> {
    let flow = call.project.flow();
    for above in call.ancestors() {
        if above.is_loop() {
            return (flow.role(above) == Some(LoopRole::Epoch)).then_some(above);
        }
        if matches!(above.kind(), Kind::If(_) | Kind::Conditional { .. }) || above.as_function().is_some() {
            return None;
        }
    }
    None
}

/// From this many epochs on, what is done after each of them can be afforded an interval.
const MANY_EPOCHS: i64 = 20;

/// The number of epochs after each of which a call runs, where there are many.
pub fn many_epochs_of(call: Code<'_>) -> Option<i64> {
    epoch_of(call)
        .and_then(epochs_of)
        .filter(|epochs| *epochs >= MANY_EPOCHS)
}

/// The number of epochs, where it can be read off: `for epoch in range(30)`, `range(start, args.epochs)`.
fn epochs_of(around: Code<'_>) -> Option<i64> {
    let mut iterator = around.iterator()?;
    let wraps = iterator.callee().and_then(Code::as_name) == Some("tqdm");
    if wraps {
        iterator = iterator.positional(0)?;
    }
    let callee = iterator.callee()?.as_name()?;
    if !matches!(callee, "range" | "trange") {
        return None;
    }
    let last = iterator.positional(1).or_else(|| iterator.positional(0))?;
    let last = match last.kind() {
        // `range(1, epochs + 1)`
        Kind::Binary { left, .. } => last.at(*left),
        _ => last,
    };
    let values = last.values();
    let counts = values.list.iter().map(|known| match known.value {
        Value::Integer(count) => Some(count),
        _ => None,
    });
    counts.collect::<Option<Vec<i64>>>()?.into_iter().min()
}
