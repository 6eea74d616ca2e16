//! What each name of a file refers to: imports, functions, classes, assigned values, parameters, loop variables, and the
//! attributes that methods give to `self`. Nothing is evaluated and no other file is looked at.

use super::tree::{Kind, NodeId, Span, Tree};

/// What a name was bound to at one place.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// The module or the object in it: `torch.nn`, `..models.Net`.
    Import(Box<str>),
    Function(NodeId),
    Class(NodeId),
    /// `name = value`; `position` when the value was unpacked: `a, b = value`.
    Value {
        value: NodeId,
        position: Option<u32>,
    },
    /// `name += value`.
    Augmented(NodeId),
    Parameter {
        function: NodeId,
        position: u32,
    },
    /// `for name in iterator`, in a loop or a comprehension.
    Loop {
        iterator: NodeId,
    },
    /// `with context as name`.
    With(NodeId),
}

#[derive(Clone, Debug)]
pub struct Binding {
    /// The function, lambda or module; for `self.name` the class.
    pub scope: NodeId,
    pub name: Span,
    pub at: NodeId,
    pub bound: Bound,
}

#[derive(Debug, Default)]
pub struct Bindings {
    /// Sorted by scope, name and place.
    list: Vec<Binding>,
}

impl Bindings {
    pub(super) fn collect(tree: &Tree, text: &str) -> Self {
        let mut collector = Collector {
            tree,
            text,
            list: Vec::new(),
        };
        for id in tree.ids() {
            collector.node(id);
        }
        let mut list = collector.list;
        list.sort_by(|a, b| {
            let key = |one: &Binding| (one.scope, one.at);
            let (a_key, b_key) = (key(a), key(b));
            (a_key.0, a.name.text(text), a_key.1).cmp(&(b_key.0, b.name.text(text), b_key.1))
        });
        Self { list }
    }

    /// The bindings of a name in one scope, in source order.
    pub fn of<'a>(&'a self, scope: NodeId, name: &str, text: &str) -> &'a [Binding] {
        let key = |one: &Binding| -> std::cmp::Ordering {
            one.scope.cmp(&scope).then_with(|| one.name.text(text).cmp(name))
        };
        let first = self.list.partition_point(|one| key(one).is_lt());
        let last = self.list.partition_point(|one| key(one).is_le());
        &self.list[first..last]
    }

    pub fn all(&self) -> &[Binding] {
        &self.list
    }
}

struct Collector<'a> {
    tree: &'a Tree,
    text: &'a str,
    list: Vec<Binding>,
}

impl Collector<'_> {
    fn node(&mut self, id: NodeId) {
        match self.tree.kind(id) {
            Kind::Function(function) => {
                self.push(self.tree.scope(id), function.name, id, Bound::Function(id));
                for (position, parameter) in function.parameters.iter().enumerate() {
                    let position = position as u32;
                    self.push(
                        id,
                        parameter.name,
                        id,
                        Bound::Parameter {
                            function: id,
                            position,
                        },
                    );
                }
            }
            Kind::Class(class) => self.push(self.tree.scope(id), class.name, id, Bound::Class(id)),
            Kind::Import { names } => {
                for (module, bound, renamed) in names {
                    let head = || module.split('.').next().unwrap_or_default();
                    // `import a.b` binds `a`; `import a.b as c` binds `c` to `a.b`.
                    let (path, name) = if *renamed {
                        (&**module, *bound)
                    } else {
                        (
                            head(),
                            Span {
                                end: bound.start + head().len() as u32,
                                ..*bound
                            },
                        )
                    };
                    self.push(self.tree.scope(id), name, id, Bound::Import(path.into()));
                }
            }
            Kind::ImportFrom { module, level, names } => {
                let dots = ".".repeat(*level as usize);
                for (name, bound) in names {
                    let joint = if module.is_empty() { "" } else { "." };
                    let path = format!("{dots}{module}{joint}{name}");
                    self.push(self.tree.scope(id), *bound, id, Bound::Import(path.into()));
                }
            }
            Kind::Assign { targets, value } => {
                for target in targets {
                    self.target(*target, id, *value, &|value, position| Bound::Value {
                        value,
                        position,
                    });
                }
            }
            Kind::AnnotatedAssign {
                target,
                value: Some(value),
                ..
            } => {
                self.target(*target, id, *value, &|value, position| Bound::Value {
                    value,
                    position,
                });
            }
            Kind::AugmentedAssign { target, value, .. } => {
                self.target(*target, id, *value, &|value, _| Bound::Augmented(value));
            }
            Kind::For { target, iterator, .. } => {
                self.target(*target, id, *iterator, &|iterator, _| Bound::Loop { iterator });
            }
            Kind::Comprehension { generators, .. } => {
                for one in generators {
                    self.target(one.target, id, one.iterator, &|iterator, _| Bound::Loop {
                        iterator,
                    });
                }
            }
            Kind::With { items, .. } => {
                for (context, target) in items {
                    if let Some(target) = target {
                        self.target(*target, id, *context, &|context, _| Bound::With(context));
                    }
                }
            }
            _ => {}
        }
    }

    fn target(
        &mut self,
        target: NodeId,
        at: NodeId,
        value: NodeId,
        bound: &dyn Fn(NodeId, Option<u32>) -> Bound,
    ) {
        match self.tree.kind(target) {
            Kind::Name => self.push(
                self.tree.scope(at),
                self.tree.span(target),
                at,
                bound(value, None),
            ),
            Kind::Attribute { value: owner, name } => {
                let is_self = matches!(self.tree.kind(*owner), Kind::Name)
                    && self.tree.span(*owner).text(self.text) == "self";
                if let (true, Some(class)) = (is_self, self.tree.class_around(target)) {
                    self.push(class, *name, at, bound(value, None));
                }
            }
            Kind::Sequence(parts) => {
                let values = match self.tree.kind(value) {
                    Kind::Sequence(values) if values.len() == parts.len() => Some(values),
                    _ => None,
                };
                for (position, part) in parts.iter().enumerate() {
                    if let Some(values) = values {
                        self.target(*part, at, values[position], bound);
                    } else {
                        let unpacked = |value, _| bound(value, Some(position as u32));
                        self.target(*part, at, value, &unpacked);
                    }
                }
            }
            Kind::Starred(inner) => self.target(*inner, at, value, &|value, _| bound(value, Some(u32::MAX))),
            _ => {}
        }
    }

    fn push(&mut self, scope: NodeId, name: Span, at: NodeId, bound: Bound) {
        self.list.push(Binding {
            scope,
            name,
            at,
            bound,
        });
    }
}
