//! Configuration written as a class: fields of a dataclass, of an attrs class or of a pydantic model, seen like the keys of a file.
//! `cfg.train.amp` reads the field `amp` of the class that the field `train` is declared with.

use super::{Code, ModuleId, Project};
use crate::config::{Entry, Value};
use crate::python::Kind;
use crate::source::Source;
use rustc_hash::FxHashMap;

/// Classes within classes: no deeper than this.
const DEEPEST: usize = 4;

/// What makes a class of fields one of settings, and not one of samples or results.
const CONFIG_WORDS: [&str; 13] = [
    "config",
    "configuration",
    "cfg",
    "conf",
    "args",
    "arguments",
    "settings",
    "options",
    "opts",
    "params",
    "parameters",
    "hparams",
    "hyperparameters",
];

/// The keys of one file's configuration classes.
#[derive(Debug)]
pub(crate) struct ConfigClasses {
    module: ModuleId,
    entries: Vec<Entry>,
}

pub(super) fn all(project: &Project) -> Vec<ConfigClasses> {
    let classes: Vec<Code<'_>> = project
        .module_ids()
        .filter(|module| !project.module(*module).source.is_test)
        .flat_map(|module| {
            let ids = project.module(module).parsed.tree.classes().iter();
            ids.map(move |id| project.code(module, *id))
        })
        .filter(|class| is_config_class(*class))
        .collect();
    let nested = nesting(&classes);
    let mut found: Vec<ConfigClasses> = Vec::new();
    for class in classes {
        let entries = entries_of(class, &nested);
        match found.last_mut().filter(|last| last.module == class.module) {
            Some(last) => last.entries.extend(entries),
            None => found.push(ConfigClasses {
                module: class.module,
                entries,
            }),
        }
    }
    found
}

impl Project {
    /// Everything that holds settings, file by file: configuration files, and Python files with configuration classes.
    pub fn settings(&self) -> impl Iterator<Item = (&Source, &[Entry])> {
        let files = self
            .documents
            .iter()
            .map(|document| (&document.source, document.entries.as_slice()));
        let classes = self.config_classes().iter();
        files.chain(classes.map(|found| (&self.module(found.module).source, found.entries.as_slice())))
    }
}

fn is_config_class(class: Code<'_>) -> bool {
    let named = class.definition_name().is_some_and(|name| {
        crate::words(name).any(|word| CONFIG_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    });
    named && (class.decorators().any(makes_fields) || class.inherits(&is_model))
}

/// `@dataclass`, `@dataclasses.dataclass(frozen=True)`, `@attrs.define`.
fn makes_fields(decorator: Code<'_>) -> bool {
    let named = decorator.callee().unwrap_or(decorator);
    named.qualified().is_some_and(|name| {
        matches!(
            name.as_str(),
            "dataclasses.dataclass"
                | "pydantic.dataclasses.dataclass"
                | "attrs.define"
                | "attr.define"
                | "attr.s"
        )
    })
}

fn is_model(name: &str) -> bool {
    matches!(
        name,
        "pydantic.BaseModel" | "pydantic.BaseSettings" | "pydantic_settings.BaseSettings"
    )
}

/// For each class the field of another one that holds it: the name of the field, and the class that has it.
type Nesting<'p> = FxHashMap<&'p str, Vec<(&'p str, &'p str)>>;

fn nesting<'p>(classes: &[Code<'p>]) -> Nesting<'p> {
    let mut nested = Nesting::default();
    for class in classes {
        let Some(outer) = class.definition_name() else {
            continue;
        };
        for (name, annotation, _) in fields(*class) {
            nested.entry(annotation.text()).or_default().push((name, outer));
        }
    }
    nested
}

/// The paths under which the fields of a class are read.
fn prefixes(class: &str, nested: &Nesting<'_>, left: usize) -> Vec<Vec<String>> {
    let holders = nested.get(class).map_or(&[][..], Vec::as_slice);
    if holders.is_empty() || left == 0 {
        return vec![Vec::new()];
    }
    let of_holder = |(field, outer): &(&str, &str)| -> Vec<Vec<String>> {
        let mut paths = prefixes(outer, nested, left - 1);
        paths.iter_mut().for_each(|path| path.push((*field).to_owned()));
        paths
    };
    holders.iter().flat_map(of_holder).collect()
}

fn entries_of(class: Code<'_>, nested: &Nesting<'_>) -> Vec<Entry> {
    let prefixes = prefixes(class.definition_name().unwrap_or_default(), nested, DEEPEST);
    let mut entries = Vec::new();
    for (name, annotation, default) in fields(class) {
        for prefix in &prefixes {
            let mut path = prefix.clone();
            path.push(name.to_owned());
            entries.push(Entry {
                path,
                key: annotation.parent().map_or(annotation.span(), Code::span),
                value: default.and_then(Code::literal).unwrap_or(Value::Unknown),
                span: default.unwrap_or(annotation).span(),
            });
        }
    }
    entries
}

/// Name, annotation and default of every field; `field(default=x)` has the default `x`.
fn fields<'p>(class: Code<'p>) -> impl Iterator<Item = (&'p str, Code<'p>, Option<Code<'p>>)> {
    class.body().iter().filter_map(move |id| {
        let Kind::AnnotatedAssign {
            target,
            annotation,
            value,
        } = class.at(*id).kind()
        else {
            return None;
        };
        let value = value.map(|value| class.at(value));
        let default = value.and_then(|value| match value.kind() {
            Kind::Call { .. } => value.keyword("default"),
            _ => Some(value),
        });
        Some((class.at(*target).as_name()?, class.at(*annotation), default))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::project;

    fn settings(text: &str) -> Vec<String> {
        let project = project(&[("train.py", text)]);
        project
            .settings()
            .flat_map(|(_, entries)| entries)
            .map(|entry| format!("{}={:?}", entry.path.join("."), entry.value))
            .collect()
    }

    #[test]
    fn fields_are_keys_below_the_class_that_holds_them() {
        let text = "from dataclasses import dataclass, field\n@dataclass\nclass TrainConfig:\n    amp: bool = True\n    workers: int = field(default=0)\n    names: list = field(default_factory=list)\n@dataclass(frozen=True)\nclass Config:\n    train: TrainConfig\n    seed: int = 7\n";
        assert_eq!(
            settings(text),
            [
                "train.amp=Boolean(true)",
                "train.workers=Integer(0)",
                "train.names=Unknown",
                "train=Unknown",
                "seed=Integer(7)",
            ]
        );
    }

    #[test]
    fn classes_of_samples_and_plain_classes_are_none() {
        assert!(
            settings("from dataclasses import dataclass\n@dataclass\nclass Sample:\n    x: int = 1\n")
                .is_empty()
        );
        assert!(settings("class Config:\n    x: int = 1\n").is_empty());
    }

    #[test]
    fn a_class_that_holds_itself_does_no_harm() {
        let text = "from dataclasses import dataclass\n@dataclass\nclass Config:\n    parent: Config = None\n    x: int = 1\n";
        assert!(!settings(text).is_empty());
    }
}
