//! What a name, an attribute or a call refers to: a dotted name (`torch.nn.Linear`) through every alias, and the function
//! or class of this project behind it, across files.

use super::{Code, ModuleId, Project};
use crate::python::{Binding, Bound, Kind, NodeId};
use rustc_hash::FxHashMap;

/// Aliases of aliases, re-exports of re-exports: cyclic imports end here.
const LONGEST_CHAIN: usize = 8;

pub(super) fn call_names(project: &Project, id: ModuleId) -> Vec<Option<Box<str>>> {
    project
        .calls(id)
        .map(|call| {
            call.callee()
                .and_then(|callee| callee.qualified())
                .map(String::into_boxed_str)
        })
        .collect()
}

pub(super) fn call_targets(project: &Project, id: ModuleId) -> Vec<Option<(ModuleId, NodeId)>> {
    project
        .calls(id)
        .map(|call| {
            let target = call.callee()?.definition()?;
            Some((target.module, target.id))
        })
        .collect()
}

pub(super) type Callers = FxHashMap<(ModuleId, NodeId), Vec<(ModuleId, NodeId)>>;

pub(super) fn callers(project: &Project) -> Callers {
    let mut map = Callers::default();
    for id in project.module_ids() {
        for call in project.calls(id) {
            if let Some(target) = call.target() {
                map.entry((target.module, target.id))
                    .or_default()
                    .push((id, call.id));
            }
        }
    }
    map
}

impl<'p> Code<'p> {
    fn call_index(self) -> Option<usize> {
        self.tree().calls().binary_search(&self.id).ok()
    }

    /// The dotted name that a call calls, aliases resolved.
    pub fn call_name(self) -> Option<&'p str> {
        self.in_module().call_names.get(self.call_index()?)?.as_deref()
    }

    pub fn calls(self, name: &str) -> bool {
        self.call_name() == Some(name)
    }

    pub fn calls_one_of(self, names: &[&str]) -> bool {
        self.call_name().is_some_and(|called| names.contains(&called))
    }

    /// The function or class of this project that a call calls.
    pub fn target(self) -> Option<Self> {
        let (module, id) = (*self.in_module().call_targets.get(self.call_index()?)?)?;
        Some(self.project.code(module, id))
    }

    /// Where a name is bound as seen from here: the innermost scope that binds it. Class scopes are seen only from their own body.
    pub fn bindings(self, name: &str) -> &'p [Binding] {
        let tree = self.tree();
        let text = &self.in_module().source.text;
        let bindings = &self.in_module().parsed.bindings;
        let mut scope = tree.scope(self.id);
        let mut innermost = true;
        loop {
            let is_class = matches!(tree.kind(scope), Kind::Class(_));
            if innermost || !is_class {
                let found = bindings.of(scope, name, text);
                // The class scope also holds the attributes of `self`, which a bare name does not see.
                let only_on_self = is_class && found.iter().all(|one| tree.scope(one.at) != scope);
                if !found.is_empty() && !only_on_self {
                    return found;
                }
            }
            innermost = false;
            if scope == NodeId(0) {
                return &[];
            }
            scope = tree.scope(scope);
        }
    }

    /// The bindings of `self.name` in the class around.
    pub fn self_bindings(self, name: &str) -> &'p [Binding] {
        let Some(class) = self.class_around() else {
            return &[];
        };
        let module = self.in_module();
        module.parsed.bindings.of(class.id, name, &module.source.text)
    }

    pub fn is_self(self) -> bool {
        self.as_name() == Some("self")
    }

    /// The bindings of a name or of an attribute of `self`.
    pub fn own_bindings(self) -> &'p [Binding] {
        match self.kind() {
            Kind::Name => self.bindings(self.text()),
            Kind::Attribute { value, name } if self.at(*value).is_self() => {
                self.self_bindings(self.slice(*name))
            }
            _ => &[],
        }
    }

    /// The value that a name (or `self.name`) has, when it is given one at exactly one place.
    pub fn only_value(self) -> Option<Self> {
        match self.own_bindings() {
            [
                Binding {
                    bound:
                        Bound::Value {
                            value,
                            position: None,
                        },
                    ..
                },
            ] => Some(self.at(*value)),
            _ => None,
        }
    }

    /// The expression behind names: follows single assignments.
    pub fn origin(self) -> Self {
        let mut code = self;
        for _ in 0..LONGEST_CHAIN {
            match code.only_value() {
                Some(value) if value != code => code = value,
                _ => break,
            }
        }
        code
    }

    /// The call that made the value of this expression, if one did.
    pub fn origin_call(self) -> Option<Self> {
        let origin = self.origin();
        matches!(origin.kind(), Kind::Call { .. }).then_some(origin)
    }

    pub fn qualified(self) -> Option<String> {
        self.qualified_within(LONGEST_CHAIN)
    }

    fn qualified_within(self, left: usize) -> Option<String> {
        let left = left.checked_sub(1)?;
        match self.kind() {
            Kind::Name => match self.bindings(self.text()) {
                [] => Some(self.text().to_owned()),
                list => self.qualified_binding(list, left),
            },
            Kind::Attribute { value, name } => {
                let owner = self.at(*value);
                if owner.is_self() {
                    return self.qualified_binding(self.self_bindings(self.slice(*name)), left);
                }
                let base = owner.qualified_within(left)?;
                Some(format!("{base}.{}", self.slice(*name)))
            }
            _ => None,
        }
    }

    fn qualified_binding(self, list: &[Binding], left: usize) -> Option<String> {
        // `try: import a except: a = None` binds twice; the import is what matters.
        let imported = list.iter().find_map(|one| match &one.bound {
            Bound::Import(path) => Some(self.project.absolute(self.module, path)),
            _ => None,
        });
        if imported.is_some() {
            return imported;
        }
        match list {
            [
                Binding {
                    bound:
                        Bound::Value {
                            value,
                            position: None,
                        },
                    ..
                },
            ] => match self.at(*value).kind() {
                Kind::Name | Kind::Attribute { .. } => self.at(*value).qualified_within(left),
                _ => None,
            },
            [
                Binding {
                    bound: Bound::Function(id) | Bound::Class(id),
                    ..
                },
            ] => {
                let module = &self.in_module().name;
                Some(format!(
                    "{}.{}",
                    module.join("."),
                    self.at(*id).definition_name()?
                ))
            }
            _ => None,
        }
    }

    /// The function or class of this project that an expression names.
    pub fn definition(self) -> Option<Self> {
        self.definition_within(LONGEST_CHAIN)
    }

    fn definition_within(self, left: usize) -> Option<Self> {
        let left = left.checked_sub(1)?;
        match self.kind() {
            Kind::Name => self.bound_definition(self.bindings(self.text()), left),
            Kind::Attribute { value, name } => {
                let (owner, name) = (self.at(*value), self.slice(*name));
                if owner.is_self() {
                    let class = self.class_around()?;
                    return class.member(name, left);
                }
                if let Some(class) = owner.instance_class(left) {
                    return class.member(name, left);
                }
                let path = format!("{}.{name}", owner.qualified_within(left)?);
                self.project.lookup(self.module, &path, left)
            }
            _ => None,
        }
    }

    fn bound_definition(self, list: &[Binding], left: usize) -> Option<Self> {
        match &list.last()?.bound {
            Bound::Function(id) | Bound::Class(id) => Some(self.at(*id)),
            Bound::Import(path) => {
                let path = self.project.absolute(self.module, path);
                self.project.lookup(self.module, &path, left)
            }
            Bound::Value {
                value,
                position: None,
            } if list.len() == 1 => self.at(*value).definition_within(left),
            _ => None,
        }
    }

    /// The class of this project whose instance the expression is.
    pub fn instance_class(self, left: usize) -> Option<Self> {
        let call = self.origin_call()?;
        let class = call.callee()?.definition_within(left.checked_sub(1)?)?;
        class.as_class().map(|_| class)
    }

    /// A class's method (or nested class), its own or inherited from a class of this project.
    pub fn member(self, name: &str, left: usize) -> Option<Self> {
        let left = left.checked_sub(1)?;
        let module = self.in_module();
        let own = module.parsed.bindings.of(self.id, name, &module.source.text);
        for one in own {
            if let Bound::Function(id) | Bound::Class(id) = one.bound {
                return Some(self.at(id));
            }
        }
        if !own.is_empty() {
            return None;
        }
        let bases = self.as_class()?.bases.iter();
        bases
            .filter_map(|base| self.at(*base).definition_within(left))
            .filter(|base| *base != self)
            .find_map(|base| base.member(name, left))
    }

    /// The method of a class of this project by name.
    pub fn method(self, name: &str) -> Option<Self> {
        self.member(name, LONGEST_CHAIN)
    }

    /// Whether a class has a base of this dotted name, directly or through classes of this project.
    pub fn inherits(self, wanted: &dyn Fn(&str) -> bool) -> bool {
        self.inherits_within(wanted, LONGEST_CHAIN)
    }

    fn inherits_within(self, wanted: &dyn Fn(&str) -> bool, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        self.as_class().is_some_and(|class| {
            class.bases.iter().any(|base| {
                let base = self.at(*base);
                base.qualified().is_some_and(|name| wanted(&name))
                    || base
                        .definition()
                        .is_some_and(|class| class != self && class.inherits_within(wanted, left))
            })
        })
    }
}

impl Project {
    /// The function or class that a dotted path means, seen from a module.
    fn lookup(&self, from: ModuleId, path: &str, left: usize) -> Option<Code<'_>> {
        let left = left.checked_sub(1)?;
        let (module, rest) = self.split_path(from, path)?;
        let mut parts = rest.split('.').filter(|part| !part.is_empty());
        let first = parts.next()?;
        let root = self.code(module, NodeId(0));
        let source = &self.module(module).source.text;
        let bindings = self.module(module).parsed.bindings.of(NodeId(0), first, source);
        let found = root.bound_definition(bindings, left)?;
        parts.try_fold(found, |class, part| class.member(part, left))
    }
}
