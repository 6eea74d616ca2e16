//! Which words occur in the project's code: attribute names, strings, keywords, parameters. A configuration key that is
//! none of them is read by nobody.

use super::{ModuleId, Project};
use crate::python::{Kind, NodeId};
use rustc_hash::FxHashSet;

/// Longer strings are prose, not keys.
const LONGEST_KEY: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Mentions {
    words: FxHashSet<Box<str>>,
    /// Names of fields: declared, which is no use of them yet.
    fields: FxHashSet<Box<str>>,
}

impl Mentions {
    pub(super) fn build(project: &Project) -> Self {
        let mut all = Self::default();
        for part in project.each_module(words_of) {
            all.words.extend(part.words);
            all.fields.extend(part.fields);
        }
        all
    }

    /// Said anywhere, be it as the name of a field.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.uses(word) || self.fields.contains(word)
    }

    /// Said anywhere but where a field of that name is declared.
    pub(crate) fn uses(&self, word: &str) -> bool {
        self.words.contains(word)
    }
}

fn words_of(project: &Project, module: ModuleId) -> Mentions {
    let mut words: FxHashSet<Box<str>> = FxHashSet::default();
    let mut fields: FxHashSet<Box<str>> = FxHashSet::default();
    let mut add = |word: &str| {
        if word.len() <= LONGEST_KEY && !words.contains(word) {
            words.insert(word.into());
        }
    };
    for code in project.code(module, NodeId(0)).subtree() {
        match code.kind() {
            Kind::Attribute { name, .. } => add(code.slice(*name)),
            // An option's own definition is no use of it.
            Kind::Text(_)
                if code
                    .parent()
                    .is_some_and(|parent| parent.is_method("add_argument")) => {}
            Kind::Text(text) => {
                add(text);
                // `"train.amp"` and `"--amp"` name keys too.
                text.split(['.', '-', '/', ' '])
                    .filter(|part| part.len() < text.len())
                    .for_each(&mut add);
            }
            Kind::Call { arguments, .. } => {
                let names = arguments.keywords.iter().filter_map(|(name, _)| *name);
                names.for_each(|name| add(code.slice(name)));
            }
            Kind::Function(function) => {
                function
                    .parameters
                    .iter()
                    .for_each(|parameter| add(code.slice(parameter.name)));
            }
            Kind::AnnotatedAssign { target, .. } => {
                fields.insert(code.at(*target).text().into());
            }
            _ => {}
        }
    }
    Mentions { words, fields }
}
