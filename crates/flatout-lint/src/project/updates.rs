//! Whether a backward pass trains: an update of the weights follows it. One that only looks at gradients (a plot of a receptive
//! field, a check of initial weights) makes no training loop of the loop around it.

use super::Code;

/// Callers of callers: no further than this.
const LONGEST_CHAIN: usize = 6;

impl Code<'_> {
    /// `optimizer.step()` in the same function, in its class, or in a function that calls it. Where the program updates nothing
    /// by that name, weights are updated in some other way, and every backward pass counts.
    pub(super) fn is_followed_by_update(self) -> bool {
        self.updates_within(LONGEST_CHAIN) || !self.program_updates()
    }

    /// Somewhere the program updates weights, or a framework does it for the program.
    fn program_updates(self) -> bool {
        let project = self.project;
        project.program_calls(self.module).any(is_update)
            || project.program_mentions(self.module, &["LightningModule"])
    }

    fn updates_within(self, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else {
            // Too far to see: taken as training.
            return true;
        };
        // A file's top level runs many things one after the other: there only the loops around count.
        let outermost = || self.ancestors().filter(|above| above.is_loop()).last();
        let body = self.function_around().or_else(outermost).unwrap_or(self);
        if body.calls_inside().any(is_update) || body.subtree().any(changes_weights) {
            return true;
        }
        let Some(function) = self.function_around() else {
            return false;
        };
        if function
            .class_around()
            .is_some_and(|class| class.subtree().any(is_update))
        {
            return true;
        }
        let mut callers = self.project.callers(function).peekable();
        // Called by nobody in sight: a library's function, whose users update.
        callers.peek().is_none() || callers.any(|call| call.updates_within(left))
    }
}

/// `optimizer.step()`, `scaler.step(optimizer)`; not `scheduler.step()`.
fn is_update(call: Code<'_>) -> bool {
    call.method_call().is_some_and(|(receiver, method)| {
        method == "step" && !receiver.text().to_ascii_lowercase().contains("sched")
    })
}

/// `weight -= rate * weight.grad`, `weight.sub_(weight.grad)`.
fn changes_weights(code: Code<'_>) -> bool {
    let in_place = matches!(code.kind(), crate::python::Kind::AugmentedAssign { .. })
        || code
            .method_call()
            .is_some_and(|(_, method)| matches!(method, "sub_" | "add_" | "copy_"));
    in_place && code.text().contains(".grad")
}
