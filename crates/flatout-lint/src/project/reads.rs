//! Where the code reads its configuration, and what it does with the values: `config["train"].get("amp")`, `cfg.train.amp`.

use super::{Code, ModuleId, Project};
use crate::config::{Entry, Value};
use crate::python::{Bound, Kind, NodeId, Operator};
use rustc_hash::{FxHashMap, FxHashSet};

mod whole;

/// One read of a key.
#[derive(Clone, Debug)]
pub struct ConfigRead {
    pub module: ModuleId,
    pub id: NodeId,
    /// The keys that are read, as far as they are known: the last ones of the key's whole path.
    pub path: Vec<String>,
    pub used: Use,
}

/// What a read value is used for.
#[derive(Clone, Debug, PartialEq)]
pub enum Use {
    /// Only ever compared with these constants.
    Compared(Vec<Value>),
    /// Given a new value.
    Written,
    /// Tested for truth, passed on, computed with.
    Other,
}

/// Names that hold configuration.
const CONFIG_WORDS: [&str; 16] = [
    "cfg",
    "config",
    "configs",
    "conf",
    "configuration",
    "args",
    "arguments",
    "opt",
    "opts",
    "options",
    "params",
    "hparams",
    "settings",
    "hyp",
    "flags",
    "yaml",
];
/// Reads of reads: no further than this.
const LONGEST_CHAIN: usize = 5;

/// Every read of the project, by the last key of its path.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    by_key: FxHashMap<String, Vec<ConfigRead>>,
    /// Sections that are handed on as a whole, so that any key below may be read.
    whole: FxHashSet<Vec<String>>,
}

impl Reads {
    pub(super) fn build(project: &Project) -> Self {
        let mut reads = Self::default();
        for read in all(project) {
            let key = read.path.last().cloned().unwrap_or_default();
            reads.by_key.entry(key).or_default().push(read);
        }
        let whole = project.each_module(whole::sections);
        reads.whole = whole.into_iter().flatten().collect();
        reads
    }

    /// The reads that may mean a key: those whose path its own path ends with.
    pub(crate) fn of<'r>(&'r self, entry: &'r Entry) -> impl Iterator<Item = &'r ConfigRead> {
        let list = self.by_key.get(entry.name()).map_or(&[][..], Vec::as_slice);
        list.iter().filter(|read| entry.path.ends_with(&read.path))
    }

    /// Whether the section of a key is passed on as a whole somewhere.
    pub(crate) fn section_is_passed(&self, entry: &Entry) -> bool {
        let section = entry.section();
        (0..=section.len()).any(|start| self.whole.contains(&section[start..]))
    }
}

fn all(project: &Project) -> Vec<ConfigRead> {
    project.each_module(reads_of).into_iter().flatten().collect()
}

fn reads_of(project: &Project, module: ModuleId) -> Vec<ConfigRead> {
    let nodes = project.code(module, NodeId(0)).subtree();
    nodes
        .filter(|code| {
            matches!(
                code.kind(),
                Kind::Subscript { .. } | Kind::Attribute { .. } | Kind::Call { .. }
            )
        })
        .filter_map(|code| {
            let path = code.config_path()?;
            (!path.is_empty()).then(|| ConfigRead {
                module,
                id: code.id,
                path,
                used: code.used_as(LONGEST_CHAIN),
            })
        })
        .collect()
}

impl<'p> Code<'p> {
    /// The configuration keys that an expression reads, from the outermost one known; `[]` for the configuration itself.
    pub fn config_path(self) -> Option<Vec<String>> {
        self.config_path_within(LONGEST_CHAIN)
    }

    fn config_path_within(self, left: usize) -> Option<Vec<String>> {
        let left = left.checked_sub(1)?;
        let (owner, key) = match self.kind() {
            Kind::Subscript { value, index } => (self.at(*value), self.at(*index).as_text()?),
            Kind::Call { .. } => self.read_by_call()?,
            Kind::Attribute { value, name } => {
                let (owner, name) = (self.at(*value), self.slice(*name));
                if owner.is_self() {
                    return self.config_variable(name, left);
                }
                match owner.config_path_within(left) {
                    Some(_) => (owner, name),
                    None if is_config_name(name) => return Some(Vec::new()),
                    None => return None,
                }
            }
            Kind::Name => return self.config_variable(self.text(), left),
            _ => return None,
        };
        let mut path = owner.config_path_within(left)?;
        path.push(key.to_owned());
        Some(path)
    }

    /// `owner.get("key", …)` and `getattr(owner, "key", …)`.
    fn read_by_call(self) -> Option<(Self, &'p str)> {
        if let Some((owner, "get")) = self.method_call() {
            return Some((owner, self.positional(0)?.as_text()?));
        }
        let is_getattr = self.callee()?.as_name() == Some("getattr");
        is_getattr.then_some(())?;
        Some((self.positional(0)?, self.positional(1)?.as_text()?))
    }

    /// A name that holds the configuration, or a section of it.
    fn config_variable(self, name: &str, left: usize) -> Option<Vec<String>> {
        if let Some(path) = self.only_value().and_then(|value| {
            let is_read = matches!(
                value.kind(),
                Kind::Subscript { .. } | Kind::Attribute { .. } | Kind::Call { .. }
            );
            is_read.then(|| value.config_path_within(left)).flatten()
        }) {
            return Some(path);
        }
        is_config_name(name).then(Vec::new)
    }

    fn used_as(self, left: usize) -> Use {
        let Some(left) = left.checked_sub(1) else {
            return Use::Other;
        };
        let Some(parent) = self.parent() else {
            return Use::Other;
        };
        match parent.kind() {
            Kind::Compare {
                left: first,
                operators,
                comparators,
            } => parent
                .compared(self, *first, operators, comparators)
                .map_or(Use::Other, Use::Compared),
            Kind::Assign { targets, .. } if targets.contains(&self.id) => Use::Written,
            Kind::Assign { targets, .. } => match targets.as_slice() {
                [target] => parent.at(*target).used_as_variable(left),
                _ => Use::Other,
            },
            Kind::AugmentedAssign { target, .. } if *target == self.id => Use::Written,
            _ => Use::Other,
        }
    }

    /// The constants that a value is compared with.
    fn compared(
        self,
        value: Self,
        first: NodeId,
        operators: &[Operator],
        others: &[NodeId],
    ) -> Option<Vec<Value>> {
        let ([operator], [other]) = (operators, others) else {
            return None;
        };
        let constant = if first == value.id {
            self.at(*other)
        } else {
            self.at(first)
        };
        match (operator, constant.kind()) {
            (Operator::Equal | Operator::NotEqual | Operator::Is | Operator::IsNot, _) => {
                Some(vec![constant.literal()?])
            }
            (Operator::In | Operator::NotIn, Kind::Sequence(items)) if first == value.id => {
                items.iter().map(|item| constant.at(*item).literal()).collect()
            }
            _ => None,
        }
    }

    /// All uses of a variable that holds the value and nothing else.
    fn used_as_variable(self, left: usize) -> Use {
        let list = self.own_bindings();
        if list.len() != 1 || !matches!(list[0].bound, Bound::Value { position: None, .. }) {
            return Use::Other;
        }
        let uses: Vec<Self> = match self.kind() {
            Kind::Name => self
                .at(self.tree().scope(self.id))
                .subtree()
                .filter(|code| code.as_name() == Some(self.text()) && *code != self)
                .collect(),
            Kind::Attribute { name, .. } => {
                let name = self.slice(*name);
                self.at(NodeId(0))
                    .subtree()
                    .filter(|code| {
                        code.as_attribute().is_some_and(|(_, other)| other == name) && *code != self
                    })
                    .collect()
            }
            _ => return Use::Other,
        };
        let mut constants = Vec::new();
        for code in uses {
            match code.used_as(left) {
                Use::Compared(more) => constants.extend(more),
                other => return other,
            }
        }
        if constants.is_empty() {
            Use::Other
        } else {
            Use::Compared(constants)
        }
    }
}

fn is_config_name(name: &str) -> bool {
    crate::words(name).any(|word| CONFIG_WORDS.contains(&word.to_ascii_lowercase().as_str()))
}
