//! Which file an import means, and which files belong to one program.

use super::{Code, Module, ModuleId, Project};
use crate::python::{Kind, NodeId};
use rustc_hash::FxHashMap;
use std::path::Path;

/// `src/training/engine.py` is `[src, training, engine]`; a package's `__init__.py` has the package's name.
pub(super) fn name_parts(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path
        .with_extension("")
        .components()
        .filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last == "__init__") {
        parts.pop();
    }
    parts
}

pub(super) fn by_name(modules: &[Module]) -> FxHashMap<String, Vec<ModuleId>> {
    let mut map: FxHashMap<String, Vec<ModuleId>> = FxHashMap::default();
    for (index, module) in modules.iter().enumerate() {
        if let Some(last) = module.name.last() {
            map.entry(last.clone()).or_default().push(ModuleId(index as u32));
        }
    }
    map
}

impl Project {
    /// The module that `import path` means in `from`: Python looks in the script's own folder and in the folders on its path, which
    /// are, in practice, folders above the script.
    pub(super) fn find_module(&self, from: ModuleId, path: &str) -> Option<ModuleId> {
        let wanted: Vec<&str> = path.split('.').collect();
        let candidates = self.by_name.get(*wanted.last()?)?;
        let importer = &self.module(from).name;
        let folder = &importer[..importer.len().saturating_sub(1)];
        candidates
            .iter()
            .filter_map(|id| {
                let name = &self.module(*id).name;
                let root = name.len().checked_sub(wanted.len())?;
                let matches = name[root..].iter().zip(&wanted).all(|(part, want)| part == want);
                // `src/` layouts: the root is a sibling of the script's folder.
                let above = folder.starts_with(&name[..root])
                    || name[..root]
                        .split_last()
                        .is_some_and(|(last, rest)| last == "src" && folder.starts_with(rest));
                (matches && above && *id != from).then_some((root, *id))
            })
            .max_by_key(|(root, _)| *root)
            .map(|(_, id)| id)
    }

    /// `..models.Net` seen from `pkg/train/loop.py` is `pkg.models.Net`.
    pub(super) fn absolute(&self, from: ModuleId, path: &str) -> String {
        let dots = path.bytes().take_while(|byte| *byte == b'.').count();
        if dots == 0 {
            return path.to_owned();
        }
        let module = self.module(from);
        let is_package = module
            .source
            .path
            .file_stem()
            .is_some_and(|stem| stem == "__init__");
        let up = if is_package { dots - 1 } else { dots };
        let kept = module.name.len().saturating_sub(up);
        let mut parts: Vec<&str> = module.name[..kept].iter().map(String::as_str).collect();
        parts.extend(path[dots..].split('.').filter(|part| !part.is_empty()));
        parts.join(".")
    }

    /// The module that a dotted path starts with, and what is left of the path: `src.engine.Trainer` → (engine, `Trainer`).
    pub(super) fn split_path<'a>(&self, from: ModuleId, path: &'a str) -> Option<(ModuleId, &'a str)> {
        let mut end = path.len();
        loop {
            if let Some(id) = self.find_module(from, &path[..end]) {
                return Some((id, path[end..].trim_start_matches('.')));
            }
            end = path[..end].rfind('.')?;
        }
    }
}

/// Who imports whom.
#[derive(Debug, Default)]
pub(super) struct Graph {
    imports: Vec<Vec<ModuleId>>,
    imported_by: Vec<Vec<ModuleId>>,
}

impl Graph {
    pub(super) fn build(project: &Project) -> Self {
        let imports = project.each_module(imported_modules);
        let mut imported_by = vec![Vec::new(); imports.len()];
        for (from, list) in imports.iter().enumerate() {
            for to in list {
                imported_by[to.0 as usize].push(ModuleId(from as u32));
            }
        }
        Self { imports, imported_by }
    }

    /// The modules that run together with this one: all that import it, directly or not, and all that those import.
    pub(super) fn program(&self, module: ModuleId) -> Vec<ModuleId> {
        let above = reach(&self.imported_by, [module]);
        reach(&self.imports, above)
    }
}

fn reach(edges: &[Vec<ModuleId>], from: impl IntoIterator<Item = ModuleId>) -> Vec<ModuleId> {
    let mut seen = vec![false; edges.len()];
    let mut queue: Vec<ModuleId> = Vec::new();
    for id in from {
        if !std::mem::replace(&mut seen[id.0 as usize], true) {
            queue.push(id);
        }
    }
    let mut next = 0;
    while let Some(id) = queue.get(next).copied() {
        next += 1;
        for to in &edges[id.0 as usize] {
            if !std::mem::replace(&mut seen[to.0 as usize], true) {
                queue.push(*to);
            }
        }
    }
    queue.sort_unstable();
    queue
}

fn imported_modules(project: &Project, id: ModuleId) -> Vec<ModuleId> {
    let root = project.code(id, NodeId(0));
    let mut found: Vec<ModuleId> = Vec::new();
    for node in root.subtree() {
        match node.kind() {
            Kind::Import { names } => {
                let modules = names.iter().filter_map(|(path, ..)| project.split_path(id, path));
                found.extend(modules.map(|(module, _)| module));
            }
            Kind::ImportFrom { module, level, names } => {
                found.extend(from_import(node, module, *level, names))
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|other| *other != id);
    found
}

fn from_import<'a>(
    node: Code<'a>,
    module: &'a str,
    level: u32,
    names: &'a [(Box<str>, crate::python::Span)],
) -> impl Iterator<Item = ModuleId> + 'a {
    let dots = ".".repeat(level as usize);
    names.iter().filter_map(move |(name, _)| {
        let joint = if module.is_empty() { "" } else { "." };
        let path = node
            .project
            .absolute(node.module, &format!("{dots}{module}{joint}{name}"));
        node.project
            .split_path(node.module, &path)
            .map(|(module, _)| module)
    })
}
