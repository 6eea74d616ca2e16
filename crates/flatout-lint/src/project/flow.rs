//! Which loops train and which evaluate, and which functions run once a step. Found from where `.backward()` is called, across
//! functions and files: the innermost loop around it is the step loop, loops around that one run epochs.

use super::{Code, ModuleId, Project};
use crate::python::{Kind, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopRole {
    /// One turn is one training step.
    Step,
    /// Contains a step loop: epochs, folds, tasks.
    Epoch,
    /// Goes over a loader without training: evaluation or prediction, one batch a turn.
    Evaluation,
}

type Key = (ModuleId, NodeId);

#[derive(Debug, Default)]
pub struct Flow {
    roles: FxHashMap<Key, LoopRole>,
    step_functions: FxHashSet<Key>,
    evaluation_functions: FxHashSet<Key>,
}

/// What runs again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hot {
    Step,
    Evaluation,
}

impl Flow {
    pub(super) fn build(project: &Project) -> Self {
        let mut flow = Self::default();
        let backward = backward_calls(project);
        let steps = flow.spread(project, backward, LoopRole::Step, true);
        let outer = flow.spread(project, steps, LoopRole::Epoch, false);
        drop(outer);
        flow.evaluations(project);
        flow.reach_functions(project);
        flow
    }

    pub fn role(&self, code: Code<'_>) -> Option<LoopRole> {
        self.roles.get(&(code.module, code.id)).copied()
    }

    /// The loops with a role, in source order.
    pub fn loops<'p>(&self, project: &'p Project, module: ModuleId, role: LoopRole) -> Vec<Code<'p>> {
        let loops = project.module(module).parsed.tree.loops().iter();
        loops
            .map(|id| project.code(module, *id))
            .filter(|code| self.role(*code) == Some(role))
            .collect()
    }

    /// Whether a function goes over a loader to evaluate.
    pub fn evaluates(&self, function: Code<'_>) -> bool {
        self.evaluation_functions
            .contains(&(function.module, function.id))
    }

    pub fn trains(&self, project: &Project, module: ModuleId) -> bool {
        let loops = project.module(module).parsed.tree.loops().iter();
        loops
            .into_iter()
            .any(|id| self.roles.get(&(module, *id)) == Some(&LoopRole::Step))
    }

    /// Climbs from places to the loops around them, through the callers of the functions they are in. With `innermost` only
    /// the first loop gets the role; without, all of them. Gives back the loops that got it.
    fn spread<'p>(
        &mut self,
        project: &'p Project,
        from: Vec<Code<'p>>,
        role: LoopRole,
        innermost: bool,
    ) -> Vec<Code<'p>> {
        let mut found = Vec::new();
        let mut queue = from;
        let mut seen: FxHashSet<Key> = FxHashSet::default();
        while let Some(place) = queue.pop() {
            for above in place.ancestors() {
                if above.is_loop() {
                    let key = (above.module, above.id);
                    self.roles.entry(key).or_insert_with(|| {
                        found.push(above);
                        role
                    });
                    if innermost {
                        break;
                    }
                } else if above.as_function().is_some() {
                    if seen.insert((above.module, above.id)) {
                        queue.extend(project.callers(above));
                        if innermost {
                            self.step_functions.insert((above.module, above.id));
                        }
                    }
                    // A closure runs where it is defined, a method or a plain function where it is called.
                    let is_closure = above.function_around().is_some() && above.class_around().is_none();
                    if !is_closure {
                        break;
                    }
                }
            }
        }
        found
    }

    fn evaluations(&mut self, project: &Project) {
        for module in project.module_ids() {
            if !project.module(module).mentions_torch {
                continue;
            }
            for id in project.module(module).parsed.tree.loops() {
                let code = project.code(module, *id);
                if self.role(code).is_none() && is_evaluation(code) {
                    self.roles.insert((module, *id), LoopRole::Evaluation);
                    if let Some(function) = code.function_around() {
                        self.evaluation_functions.insert((module, function.id));
                    }
                }
            }
        }
    }

    /// Functions that run once a step: called in a step loop or in such a function, and not behind an interval.
    fn reach_functions(&mut self, project: &Project) {
        let mut queue: Vec<Code<'_>> = Vec::new();
        for module in project.module_ids() {
            queue.extend(self.loops(project, module, LoopRole::Step));
            queue.extend(lightning_steps(project, module));
        }
        for (module, id) in self.step_functions.iter().copied().collect::<Vec<_>>() {
            queue.push(project.code(module, id));
        }
        for body in queue.iter().filter(|body| body.as_function().is_some()) {
            self.step_functions.insert((body.module, body.id));
        }
        while let Some(body) = queue.pop() {
            for call in body.calls_inside() {
                let Some(target) = call.target().filter(|target| target.as_function().is_some()) else {
                    continue;
                };
                let key = (target.module, target.id);
                let skip = self.evaluation_functions.contains(&key) || self.step_functions.contains(&key);
                if skip || call.hot_within(self) != Some(Hot::Step) || has_step_loop(self, target) {
                    continue;
                }
                self.step_functions.insert(key);
                queue.push(target);
            }
        }
    }
}

impl<'p> Code<'p> {
    /// Whether this runs at every step, or at every batch of an evaluation, and not only at logging intervals.
    pub fn hot(self) -> Option<Hot> {
        self.hot_within(&self.project.flow)
    }

    fn hot_within(self, flow: &Flow) -> Option<Hot> {
        let mut below = self;
        for above in self.ancestors() {
            if below.is_rare_in(above) {
                return None;
            }
            if above.is_loop() {
                let in_body = above.body().iter().any(|id| above.at(*id).contains(below));
                match flow.role(above) {
                    Some(LoopRole::Step) if in_body => return Some(Hot::Step),
                    Some(LoopRole::Evaluation) if in_body => return Some(Hot::Evaluation),
                    Some(_) => return None,
                    None => {}
                }
            }
            if above.as_function().is_some() {
                if flow.step_functions.contains(&(above.module, above.id)) {
                    return Some(Hot::Step);
                }
                let is_closure = above.function_around().is_some() && above.class_around().is_none();
                if !is_closure {
                    return None;
                }
            }
            if above.as_class().is_some() {
                return None;
            }
            below = above;
        }
        None
    }

    /// The step, evaluation or epoch loop around, innermost first.
    pub fn loop_around(self, role: LoopRole) -> Option<Self> {
        self.ancestors()
            .take_while(|above| above.as_function().is_none())
            .find(|above| self.project.flow.role(*above) == Some(role))
    }
}

fn has_step_loop(flow: &Flow, function: Code<'_>) -> bool {
    function
        .runs()
        .any(|code| matches!(flow.role(code), Some(LoopRole::Step | LoopRole::Epoch)))
}

/// `loss.backward()`, `accelerator.backward(loss)`, `scaler.scale(loss).backward()`.
fn backward_calls(project: &Project) -> Vec<Code<'_>> {
    let mut found = Vec::new();
    for module in project.module_ids() {
        if !project.module(module).source.is_test {
            let calls = project.torch_calls(module);
            found.extend(calls.filter(|call| is_backward(*call) && call.is_followed_by_update()));
        }
    }
    found
}

pub(crate) fn is_backward(call: Code<'_>) -> bool {
    let Some((receiver, method)) = call.method_call() else {
        return false;
    };
    let is_super = receiver
        .callee()
        .is_some_and(|callee| callee.as_name() == Some("super"));
    let inside = call.function_around().and_then(Code::definition_name);
    matches!(method, "backward" | "manual_backward")
        && !is_super
        && inside != Some("backward")
        && !receiver
            .qualified()
            .is_some_and(|name| name.starts_with("torch.autograd.function"))
}

/// `training_step` of a LightningModule: Lightning's own loop calls it.
fn lightning_steps(project: &Project, module: ModuleId) -> Vec<Code<'_>> {
    if !project.module(module).mentions_torch {
        return Vec::new();
    }
    let classes = project.module(module).parsed.tree.classes().iter();
    classes
        .map(|id| project.code(module, *id))
        .filter(|class| class.inherits(&|name| name.ends_with(".LightningModule")))
        .filter_map(|class| class.method("training_step"))
        .filter(|method| method.module == module)
        .collect()
}

const EVALUATION_WORDS: [&str; 9] = [
    "eval",
    "evaluate",
    "valid",
    "validate",
    "validation",
    "test",
    "predict",
    "inference",
    "infer",
];

/// A loop over a loader, in a function that evaluates.
fn is_evaluation(code: Code<'_>) -> bool {
    let Some(iterator) = code.iterator() else {
        return false;
    };
    if !iterator.is_loader() {
        return false;
    }
    let body = code.body_around();
    let named = body.definition_name().is_some_and(|name| {
        crate::words(name).any(|word| EVALUATION_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    });
    named || code.without_gradients() || body.decorators().any(|one| disables_gradients(one))
}

/// `torch.no_grad`, `torch.inference_mode`, with or without parentheses.
pub(crate) fn disables_gradients(code: Code<'_>) -> bool {
    let named = code.callee().unwrap_or(code);
    named.qualified().is_some_and(|name| {
        matches!(
            name.as_str(),
            "torch.no_grad" | "torch.inference_mode" | "torch.autograd.no_grad"
        )
    })
}

impl<'p> Code<'p> {
    /// Inside `with torch.no_grad():` or `inference_mode`, or in a function so decorated.
    pub fn without_gradients(self) -> bool {
        std::iter::once(self)
            .chain(self.ancestors())
            .any(|above| match above.kind() {
                Kind::With { items, .. } => items
                    .iter()
                    .any(|(context, _)| disables_gradients(above.at(*context))),
                Kind::Function(_) => above.decorators().any(disables_gradients),
                _ => false,
            })
    }

    /// Whether the expression gives batches: a DataLoader, or something named like one, perhaps wrapped in `enumerate` or `tqdm`.
    pub fn is_loader(self) -> bool {
        if let Kind::Call { .. } = self.kind() {
            if self.call_name().is_some_and(|name| name.ends_with(".DataLoader")) {
                return true;
            }
            let wraps = self.callee().is_some_and(|callee| {
                let text = callee.text();
                [
                    "enumerate",
                    "tqdm",
                    "track",
                    "iter",
                    "islice",
                    "zip",
                    "log_every",
                    "progress_bar",
                    "cycle",
                ]
                .iter()
                .any(|name| text == *name || text.ends_with(&format!(".{name}")))
            });
            return wraps && self.positional(0).is_some_and(Self::is_loader);
        }
        let last = match self.kind() {
            Kind::Name => self.text(),
            Kind::Attribute { name, .. } => self.slice(*name),
            Kind::Subscript { value, .. } => return self.at(*value).is_loader(),
            _ => return false,
        };
        let lower = last.to_ascii_lowercase();
        lower.ends_with("loader") || lower.ends_with("loaders") || lower.ends_with("_dl") || {
            let call = self.origin_call();
            call.is_some_and(|call| call.call_name().is_some_and(|name| name.ends_with(".DataLoader")))
        }
    }
}
