//! Values that are known without running anything: literals, names bound to them, defaults of parameters and of argparse options,
//! and keys of the project's configuration files.

use super::{Code, Project};
use crate::config::{Entry, Value};
use crate::python::{Bound, Kind};
use crate::source::Source;

/// Names of names, parameters of parameters: no further than this.
const LONGEST_CHAIN: usize = 6;

/// Where a value is written.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'p> {
    Code(Code<'p>),
    Config { source: &'p Source, entry: &'p Entry },
}

#[derive(Clone, Debug)]
pub struct Known<'p> {
    pub value: Value,
    pub origin: Origin<'p>,
}

/// What an expression may be; `complete` when it can be nothing else.
#[derive(Clone, Debug, Default)]
pub struct Values<'p> {
    pub list: Vec<Known<'p>>,
    pub complete: bool,
}

impl<'p> Values<'p> {
    fn one(value: Value, origin: Origin<'p>) -> Self {
        Self {
            list: vec![Known { value, origin }],
            complete: true,
        }
    }

    fn join(mut self, other: Self) -> Self {
        self.list.extend(other.list);
        self.complete &= other.complete;
        self
    }

    /// The only value it can have.
    pub fn only(&self) -> Option<&Value> {
        let first = &self.list.first()?.value;
        let same = self.list.iter().all(|known| known.value == *first);
        (self.complete && same).then_some(first)
    }
}

impl<'p> Code<'p> {
    pub fn values(self) -> Values<'p> {
        self.values_within(LONGEST_CHAIN)
    }

    /// The literal value of this expression.
    pub fn literal(self) -> Option<Value> {
        Some(match self.kind() {
            Kind::Text(text) => Value::Text(text.to_string()),
            Kind::Integer(value) => Value::Integer(*value),
            Kind::Float(value) => Value::Float(*value),
            Kind::Boolean(value) => Value::Boolean(*value),
            Kind::None => Value::Null,
            Kind::Negative(inner) => match self.at(*inner).literal()? {
                Value::Integer(value) => Value::Integer(-value),
                Value::Float(value) => Value::Float(-value),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn values_within(self, left: usize) -> Values<'p> {
        let Some(left) = left.checked_sub(1) else {
            return Values::default();
        };
        if let Some(value) = self.literal() {
            return Values::one(value, Origin::Code(self));
        }
        if let Kind::Conditional { body, otherwise, .. } = self.kind() {
            let body = self.at(*body).values_within(left);
            return body.join(self.at(*otherwise).values_within(left));
        }
        if self
            .callee()
            .is_some_and(|callee| callee.as_name() == Some("int"))
        {
            return self
                .positional(0)
                .map_or_else(Values::default, |inner| inner.values_within(left));
        }
        if let Some(values) = self.values_of_bindings(left) {
            return values;
        }
        self.values_of_settings()
    }

    fn values_of_bindings(self, left: usize) -> Option<Values<'p>> {
        let list = self.own_bindings();
        if list.is_empty() {
            return None;
        }
        let parts = list.iter().map(|one| match one.bound {
            Bound::Value {
                value,
                position: None,
            } => self.at(value).values_within(left),
            Bound::Parameter { function, position } => self.at(function).values_of_parameter(position, left),
            _ => Values::default(),
        });
        parts.reduce(Values::join)
    }

    /// What callers pass for a parameter; its default where nobody in the project calls the function.
    fn values_of_parameter(self, position: u32, left: usize) -> Values<'p> {
        let Some(parameter) = self
            .as_function()
            .and_then(|function| function.parameters.get(position as usize))
        else {
            return Values::default();
        };
        let default = || match parameter.default {
            Some(default) => self.at(default).values_within(left),
            None => Values::default(),
        };
        let name = self.slice(parameter.name);
        // A method's first parameter is bound by the call itself.
        let bound = usize::from(self.parent().is_some_and(|parent| parent.as_class().is_some()));
        let class = self
            .parent()
            .filter(|_| self.definition_name() == Some("__init__"));
        let callers: Vec<Code<'p>> = self.project.callers(class.unwrap_or(self)).collect();
        let passed =
            callers.iter().map(
                |call| match call.argument(name, (position as usize).wrapping_sub(bound)) {
                    Some(argument) => argument.values_within(left),
                    None if call.splats() => Values::default(),
                    None => default(),
                },
            );
        passed.reduce(Values::join).unwrap_or_else(|| Values {
            complete: false,
            ..default()
        })
    }

    /// `args.workers` and `config["train"]["workers"]`.
    fn values_of_settings(self) -> Values<'p> {
        let Some(path) = self.config_path() else {
            return Values::default();
        };
        let mut found = self.project.configured(&path);
        let fallback = self.is_method("get").then(|| self.positional(1)).flatten();
        if found.list.is_empty()
            && let Some(fallback) = fallback
        {
            found = fallback.values();
        }
        if let [name] = path.as_slice() {
            found = found.join(self.project.option_default(name));
        }
        found.complete &= !found.list.is_empty();
        found
    }
}

impl Project {
    /// The values of configuration files and classes at a path; a path matches where a key's path ends with it.
    pub fn configured<'p>(&'p self, path: &[String]) -> Values<'p> {
        let mut values = Values {
            complete: true,
            ..Values::default()
        };
        for (source, entries) in self.settings() {
            for entry in entries.iter().filter(|entry| entry.path.ends_with(path)) {
                let origin = Origin::Config { source, entry };
                values.list.push(Known {
                    value: entry.value.clone(),
                    origin,
                });
            }
        }
        values
    }

    /// The defaults of the argparse options that fill `args.<name>`.
    fn option_default(&self, name: &str) -> Values<'_> {
        let mut values = Values {
            complete: true,
            ..Values::default()
        };
        for option in self.options().iter().filter(|option| option.name == name) {
            let call = self.code(option.module, option.id);
            match call.keyword("default") {
                Some(default) => match default.literal() {
                    Some(value) => values.list.push(Known {
                        value,
                        origin: Origin::Code(default),
                    }),
                    None => values.complete = false,
                },
                None => values.complete = false,
            }
        }
        values
    }
}
