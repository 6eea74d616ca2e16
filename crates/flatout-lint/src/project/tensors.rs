//! Whether an expression is surely a tensor on the device. Python has no types here, so only clear cases count: results of
//! `torch` functions, of the loss, of the model, and what is computed from them.

use super::Code;
use crate::python::{Binding, Bound, Kind};

/// Chains longer than this are not followed.
const LONGEST_CHAIN: usize = 6;

/// Methods that leave the device or give plain Python values.
const LEAVES_DEVICE: [&str; 14] = [
    "item", "cpu", "numpy", "tolist", "size", "dim", "numel", "shape", "keys", "values", "items", "format",
    "join", "get",
];

/// Functions of `torch` whose result is no tensor.
const NOT_TENSORS: [&str; 22] = [
    "torch.is_tensor",
    "torch.device",
    "torch.load",
    "torch.save",
    "torch.compile",
    "torch.Generator",
    "torch.numel",
    "torch.manual_seed",
    "torch.is_grad_enabled",
    "torch.no_grad",
    "torch.autocast",
    "torch.get_default_dtype",
    "torch.is_floating_point",
    "torch.jit",
    "torch.hub",
    "torch.cuda",
    "torch.distributed",
    "torch.utils",
    "torch.optim",
    "torch.amp",
    "torch.backends",
    "torch.profiler",
];

/// Functions of `torch` that make a tensor out of nothing or of host data: on the CPU unless a device is named.
const MAKERS: [&str; 14] = [
    "tensor",
    "as_tensor",
    "from_numpy",
    "zeros",
    "ones",
    "empty",
    "full",
    "rand",
    "randn",
    "randint",
    "randperm",
    "arange",
    "linspace",
    "eye",
];

impl<'p> Code<'p> {
    pub fn is_device_tensor(self) -> bool {
        self.is_tensor_within(LONGEST_CHAIN)
    }

    fn is_tensor_within(self, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        match self.kind() {
            Kind::Call { .. } => self.call_gives_tensor(left),
            Kind::Binary { left: one, right, .. } => {
                self.at(*one).is_tensor_within(left) || self.at(*right).is_tensor_within(left)
            }
            Kind::Negative(inner) => self.at(*inner).is_tensor_within(left),
            Kind::Subscript { value, .. } => {
                // An element of a plain dictionary or list may be anything.
                let value = self.at(*value);
                matches!(value.kind(), Kind::Name) && value.is_tensor_within(left)
            }
            Kind::Attribute { value, name } if matches!(self.slice(*name), "data" | "grad") => {
                self.at(*value).is_tensor_within(left)
            }
            Kind::Name => self.backward_is_called_on() || self.every_value_is_tensor(left),
            _ => false,
        }
    }

    fn call_gives_tensor(self, left: usize) -> bool {
        if let Some(name) = self.call_name() {
            if name.starts_with("torch.nn.functional.") {
                return true;
            }
            if name.starts_with("torch.") {
                let listed = NOT_TENSORS.iter().any(|prefix| {
                    name.strip_prefix(prefix)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                });
                let is_class = name
                    .rsplit('.')
                    .next()
                    .is_some_and(|last| last.starts_with(char::is_uppercase));
                return !listed && !is_class && !self.makes_host_tensor() && name.matches('.').count() == 1;
            }
        }
        if let Some((receiver, method)) = self.method_call() {
            if LEAVES_DEVICE.contains(&method) || method.starts_with("is_") {
                return false;
            }
            if receiver.is_tensor_within(left) {
                return true;
            }
        }
        self.callee().is_some_and(|callee| callee.is_module_instance())
    }

    /// `torch.zeros(3)` and the like without a device: made on the CPU.
    pub fn makes_host_tensor(self) -> bool {
        let made = self
            .call_name()
            .and_then(|name| name.strip_prefix("torch."))
            .is_some_and(|name| MAKERS.contains(&name));
        made && self.keyword("device").is_none() && !self.splats()
    }

    /// A name or `self.name` holding an `nn.Module`: a loss or a model of `torch.nn`.
    fn is_module_instance(self) -> bool {
        let Some(call) = self.origin_call() else {
            return false;
        };
        let made_by_torch = call.call_name().is_some_and(|name| {
            name.starts_with("torch.nn.")
                && name
                    .rsplit('.')
                    .next()
                    .is_some_and(|last| last.starts_with(char::is_uppercase))
        });
        made_by_torch && call != self
    }

    /// `loss.backward()` in the same function: then `loss` is a tensor there.
    fn backward_is_called_on(self) -> bool {
        let name = self.text();
        self.body_around().calls_inside().any(|call| {
            // `accelerator.backward(loss)` is not a call on the loss.
            let alone = call
                .arguments()
                .is_some_and(|arguments| arguments.positional.is_empty());
            alone
                && call.method_call().is_some_and(|(receiver, method)| {
                    method == "backward" && receiver.as_name() == Some(name)
                })
        })
    }

    fn every_value_is_tensor(self, left: usize) -> bool {
        let list: &[Binding] = self.own_bindings();
        let mut some = false;
        for one in list {
            match one.bound {
                Bound::Value {
                    value,
                    position: None,
                } if self.at(value).is_tensor_within(left) => some = true,
                Bound::Augmented(_) => {}
                _ => return false,
            }
        }
        some
    }
}
