//! A place in the project's Python code: what rules hold in their hands.

use super::{Module, ModuleId, Project};
use crate::python::{Arguments, Class, Function, Kind, NodeId, Span, Tree};
use flatout_core::Place;

#[derive(Clone, Copy)]
pub struct Code<'p> {
    pub project: &'p Project,
    pub module: ModuleId,
    pub id: NodeId,
}

impl std::fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place(), self.text())
    }
}

impl PartialEq for Code<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.module, self.id) == (other.module, other.id)
    }
}

impl<'p> Code<'p> {
    pub fn in_module(self) -> &'p Module {
        self.project.module(self.module)
    }

    pub fn tree(self) -> &'p Tree {
        &self.in_module().parsed.tree
    }

    pub fn at(self, id: NodeId) -> Self {
        Self { id, ..self }
    }

    pub fn kind(self) -> &'p Kind {
        self.tree().kind(self.id)
    }

    pub fn span(self) -> Span {
        self.tree().span(self.id)
    }

    pub fn text(self) -> &'p str {
        self.span().text(&self.in_module().source.text)
    }

    /// The text of a span of this file.
    pub fn slice(self, span: Span) -> &'p str {
        span.text(&self.in_module().source.text)
    }

    /// On one line and not too long: for messages.
    pub fn brief(self) -> String {
        crate::brief(self.text())
    }

    pub fn place(self) -> Place {
        self.in_module().source.place(self.span())
    }

    pub fn line(self) -> u32 {
        self.in_module().source.position(self.span().start).0
    }

    pub fn parent(self) -> Option<Self> {
        self.tree().parent(self.id).map(|id| self.at(id))
    }

    pub fn ancestors(self) -> impl Iterator<Item = Self> {
        self.tree().ancestors(self.id).map(move |id| self.at(id))
    }

    pub fn subtree(self) -> impl Iterator<Item = Self> {
        self.tree().subtree(self.id).map(move |id| self.at(id))
    }

    /// Everything below that runs when this runs; bodies of functions defined here do not.
    pub fn runs(self) -> impl Iterator<Item = Self> {
        self.tree().runs(self.id).map(move |id| self.at(id))
    }

    pub fn calls_inside(self) -> impl Iterator<Item = Self> {
        self.tree().calls_in(self.id).iter().map(move |id| self.at(*id))
    }

    pub fn contains(self, other: Self) -> bool {
        self.module == other.module && self.tree().contains(self.id, other.id)
    }

    pub fn statement(self) -> Self {
        self.at(self.tree().statement(self.id))
    }

    pub fn function_around(self) -> Option<Self> {
        self.tree().function_around(self.id).map(|id| self.at(id))
    }

    pub fn class_around(self) -> Option<Self> {
        self.tree().class_around(self.id).map(|id| self.at(id))
    }

    /// The function around, or the module.
    pub fn body_around(self) -> Self {
        self.function_around().unwrap_or(self.at(NodeId(0)))
    }

    pub fn as_function(self) -> Option<&'p Function> {
        match self.kind() {
            Kind::Function(function) => Some(function),
            _ => None,
        }
    }

    pub fn as_class(self) -> Option<&'p Class> {
        match self.kind() {
            Kind::Class(class) => Some(class),
            _ => None,
        }
    }

    /// The name of a function or class definition.
    pub fn definition_name(self) -> Option<&'p str> {
        match self.kind() {
            Kind::Function(function) => Some(self.slice(function.name)),
            Kind::Class(class) => Some(self.slice(class.name)),
            _ => None,
        }
    }

    pub fn as_name(self) -> Option<&'p str> {
        matches!(self.kind(), Kind::Name).then(|| self.text())
    }

    /// `value.name`
    pub fn as_attribute(self) -> Option<(Self, &'p str)> {
        match self.kind() {
            Kind::Attribute { value, name } => Some((self.at(*value), self.slice(*name))),
            _ => None,
        }
    }

    pub fn as_text(self) -> Option<&'p str> {
        match self.kind() {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_boolean(self) -> Option<bool> {
        match self.kind() {
            Kind::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_integer(self) -> Option<i64> {
        match self.kind() {
            Kind::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub fn arguments(self) -> Option<&'p Arguments> {
        match self.kind() {
            Kind::Call { arguments, .. } => Some(arguments),
            _ => None,
        }
    }

    /// The expression that is called.
    pub fn callee(self) -> Option<Self> {
        match self.kind() {
            Kind::Call { function, .. } => Some(self.at(*function)),
            _ => None,
        }
    }

    /// `receiver.method(…)`: both, for a call of that form.
    pub fn method_call(self) -> Option<(Self, &'p str)> {
        self.callee()?.as_attribute()
    }

    pub fn is_method(self, name: &str) -> bool {
        self.method_call().is_some_and(|(_, method)| method == name)
    }

    pub fn positional(self, index: usize) -> Option<Self> {
        let argument = *self.arguments()?.positional.get(index)?;
        Some(self.at(argument))
    }

    pub fn keyword(self, name: &str) -> Option<Self> {
        let mut keywords = self.arguments()?.keywords.iter();
        let found = keywords.find(|(keyword, _)| keyword.is_some_and(|span| self.slice(span) == name))?;
        Some(self.at(found.1))
    }

    /// The argument by its name or its position.
    pub fn argument(self, name: &str, position: usize) -> Option<Self> {
        self.keyword(name).or_else(|| {
            let argument = self.positional(position)?;
            (!self.splats_positional()).then_some(argument)
        })
    }

    /// Whether `*list` or `**dict` is passed, so that arguments may be there that cannot be seen.
    pub fn splats(self) -> bool {
        let hidden = |arguments: &Arguments| arguments.keywords.iter().any(|(name, _)| name.is_none());
        self.arguments().is_some_and(hidden) || self.splats_positional()
    }

    fn splats_positional(self) -> bool {
        self.arguments().is_some_and(|arguments| {
            let mut positional = arguments.positional.iter();
            positional.any(|id| matches!(self.at(*id).kind(), Kind::Starred(_)))
        })
    }

    pub fn argument_count(self) -> usize {
        self.arguments().map_or(0, |arguments| {
            arguments.positional.len() + arguments.keywords.len()
        })
    }

    pub fn decorators(self) -> impl Iterator<Item = Self> {
        let list = match self.kind() {
            Kind::Function(function) => function.decorators.as_slice(),
            Kind::Class(class) => class.decorators.as_slice(),
            _ => &[],
        };
        list.iter().map(move |id| self.at(*id))
    }

    pub fn is_loop(self) -> bool {
        matches!(self.kind(), Kind::For { .. } | Kind::While { .. })
    }

    /// What a `for` loop iterates over.
    pub fn iterator(self) -> Option<Self> {
        match self.kind() {
            Kind::For { iterator, .. } => Some(self.at(*iterator)),
            _ => None,
        }
    }

    pub fn body(self) -> &'p [NodeId] {
        match self.kind() {
            Kind::For { body, .. }
            | Kind::While { body, .. }
            | Kind::With { body, .. }
            | Kind::Try { body } => body,
            Kind::Function(function) => &function.body,
            Kind::Class(class) => &class.body,
            _ => &[],
        }
    }
}
