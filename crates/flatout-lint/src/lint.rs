//! From paths to findings: discover, read, parse, build the project, run the rules, leave out what was silenced.

use crate::config::{self, Document};
use crate::discover::{self, Files, LARGEST_PYTHON_BYTES};
use crate::fix::Left;
use crate::notebook;
use crate::project::{LoopRole, ModuleId, Project, Unreadable};
use crate::python::{self, Parsed, Span};
use crate::report::{Report, Reported};
use crate::rules::{Check, RULES, Rule};
use crate::settings::Settings;
use crate::source::Source;
use crate::suppress::Silences;
use flatout_core::{Explain, Fix, Message, Place, explained, message};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum LintError {
    NoSuchPath { path: PathBuf },
    NothingToLint { paths: Vec<PathBuf> },
}

impl Explain for LintError {
    fn message(&self) -> Message {
        match self {
            Self::NoSuchPath { path } => {
                let path = path.display();
                message!(en: "there is no file or folder `{path}`", zh: "没有文件或目录 `{path}`")
            }
            Self::NothingToLint { paths } => {
                let list = paths
                    .iter()
                    .map(|path| format!("`{}`", path.display()))
                    .collect::<Vec<_>>()
                    .join(", ");
                message!(en: "no Python files in {list}", zh: "{list} 中没有 Python 文件")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(message!(
            en: "name the folder that contains the training code: flatout lint path/to/project",
            zh: "请给出训练代码所在的目录：flatout lint path/to/project"
        ))
    }
}
explained!(LintError);

/// What a lint run gave.
#[derive(Debug)]
pub struct Outcome {
    /// By file, line and column.
    pub found: Vec<Reported>,
    pub project: Project,
    /// Findings that a comment silenced.
    pub silenced: usize,
    pub lines: usize,
}

impl Outcome {
    /// Whether the project trains and no program of it uses CUDA: then most rules cannot apply.
    pub fn trains_without_cuda(&self) -> bool {
        let project = &self.project;
        let has_steps = |module| !project.flow().loops(project, module, LoopRole::Step).is_empty();
        let mut training = project
            .module_ids()
            .filter(|module| has_steps(*module))
            .peekable();
        training.peek().is_some() && training.all(|module| !project.uses_cuda(module))
    }

    pub fn source(&self, path: &Path) -> Option<&Source> {
        let modules = self.project.modules.iter().map(|module| &module.source);
        let documents = self.project.documents.iter().map(|document| &document.source);
        modules.chain(documents).find(|source| source.path == path)
    }

    /// Why a file must not be changed, if so.
    pub fn left(&self, path: &Path) -> Option<Left> {
        let mut modules = self.project.modules.iter();
        let mut documents = self.project.documents.iter();
        if modules.any(|module| module.source.path == path && !module.parsed.errors.is_empty())
            || documents.any(|document| document.source.path == path && document.error.is_some())
        {
            return Some(Left::SyntaxError);
        }
        let found = std::fs::symlink_metadata(path).ok()?;
        if found.is_symlink() {
            return Some(Left::Link);
        }
        flatout_core::files::is_read_only(path).then_some(Left::ReadOnly)
    }

    pub fn file_count(&self) -> usize {
        self.project.modules.len() + self.project.documents.len()
    }
}

pub fn lint(paths: &[PathBuf], settings: &Settings) -> Result<Outcome, LintError> {
    if let Some(path) = paths.iter().find(|path| !path.exists()) {
        return Err(LintError::NoSuchPath { path: path.clone() });
    }
    let files = discover::discover(paths, settings);
    if files.python.is_empty() && files.config.is_empty() {
        return Err(LintError::NothingToLint {
            paths: paths.to_vec(),
        });
    }
    let project = load(files, paths, settings);
    let found = check(&project, settings);
    Ok(finish(project, found))
}

fn load(files: Files, roots: &[PathBuf], settings: &Settings) -> Project {
    let read = crate::parallel::map(&files.python, |path| {
        let mut unread = Vec::new();
        (read_python(path, roots, &mut unread), unread)
    });
    let mut unreadable = files.unreadable;
    let mut modules = Vec::new();
    for (one, mut unread) in read {
        unreadable.append(&mut unread);
        match one {
            Ok(module) => modules.push(module),
            Err(error) => unreadable.push(error),
        }
    }
    let mut documents = Vec::new();
    for one in read_documents(&files.config, &modules) {
        match one {
            Ok(document) => documents.push(document),
            Err(error) => unreadable.push(error),
        }
    }
    Project::new(modules, documents, unreadable, settings.facts)
}

/// `unread` gets the parts of a file that are left out.
fn read_python(
    path: &Path,
    roots: &[PathBuf],
    unread: &mut Vec<Unreadable>,
) -> Result<(Source, Parsed), Unreadable> {
    let size = std::fs::metadata(path).map_or(0, |data| data.len());
    if size > LARGEST_PYTHON_BYTES {
        let size = size >> 20;
        let why = message!(en: "skipped: the file is {size} MiB", zh: "文件有 {size} MiB，已跳过");
        return Err(Unreadable {
            path: path.to_path_buf(),
            why,
        });
    }
    let mut text = read_text(path)?;
    let mut cells = Vec::new();
    if path.extension().is_some_and(|ending| ending == "ipynb") {
        let notebook = notebook::read(&text).map_err(|why| Unreadable {
            path: path.to_path_buf(),
            why,
        })?;
        let broken = notebook.broken.into_iter().map(|why| Unreadable {
            path: path.to_path_buf(),
            why,
        });
        unread.extend(broken);
        text = notebook.text;
        cells = notebook.cells;
    }
    let parsed = python::parse(&text);
    if parsed.too_deep {
        let deepest = python::DEEPEST;
        let why = message!(
            en: "skipped: the code is nested more than {deepest} levels deep",
            zh: "代码嵌套超过 {deepest} 层：未检查"
        );
        return Err(Unreadable {
            path: path.to_path_buf(),
            why,
        });
    }
    let mut source = Source::new(path.to_path_buf(), text);
    source.is_test = discover::is_test(path, roots);
    source.cells = cells;
    Ok((source, parsed))
}

fn read_text(path: &Path) -> Result<String, Unreadable> {
    let unreadable = |why| Unreadable {
        path: path.to_path_buf(),
        why,
    };
    let bytes = std::fs::read(path).map_err(|error| {
        unreadable(message!(en: "the file cannot be read: {error}", zh: "无法读取该文件：{error}"))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        unreadable(message!(en: "skipped: not valid UTF-8 (byte {at})", zh: "文件不是 UTF-8（第 {at} 字节），已跳过"))
    })
}

/// The configuration files that the code may load: by their names, or named in it.
fn read_documents(
    candidates: &[(PathBuf, config::Format)],
    modules: &[(Source, Parsed)],
) -> Vec<Result<Document, Unreadable>> {
    let wanted: Vec<&(PathBuf, config::Format)> = candidates
        .iter()
        .filter(|(path, _)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            discover::looks_like_config(path)
                || modules.iter().any(|(source, _)| source.text.contains(&*name))
        })
        .collect();
    crate::parallel::map(&wanted, |(path, format)| {
        let text = read_text(path)?;
        Ok(config::parse(Source::new(path.clone(), text), *format))
    })
}

fn check(project: &Project, settings: &Settings) -> Vec<Reported> {
    let selected: Vec<&Rule> = RULES.iter().filter(|rule| settings.selects(&rule.info)).collect();
    let modules: Vec<ModuleId> = project.module_ids().collect();
    let mut found: Vec<Reported> = crate::parallel::map(&modules, |module| {
        let mut found = Vec::new();
        if project.module(*module).source.is_test {
            return found;
        }
        for rule in &selected {
            if let Check::Module(check) = rule.check {
                let mut report = Report::new(&rule.info);
                check(project, *module, &mut report);
                found.append(&mut report.list);
            }
        }
        found
    })
    .into_iter()
    .flatten()
    .collect();
    for rule in &selected {
        if let Check::Project(check) = rule.check {
            let mut report = Report::new(&rule.info);
            check(project, &mut report);
            found.append(&mut report.list);
        }
    }
    found
}

/// Places in notebooks become those of their cells. Edits are of the module that the cells make up together, so they become advice.
fn place_in_cells(project: &Project, found: &mut [Reported]) {
    let sources = project.modules.iter().map(|module| &module.source);
    let notebooks: FxHashMap<&Path, &Source> = sources
        .filter(|source| !source.cells.is_empty())
        .map(|source| (source.path.as_path(), source))
        .collect();
    let locate = |place: &mut Place| {
        let source = notebooks.get(place.file.as_path())?;
        let (cell, line) = notebook::locate(&source.cells, place.line)?;
        (place.cell, place.line) = (Some(cell), line);
        Some(())
    };
    for one in found {
        // A finding about a file as a whole has no line to translate.
        let whole = one.span == Span::default();
        let skipped = usize::from(whole);
        for place in one.finding.places.iter_mut().skip(skipped) {
            locate(place);
        }
        for fix in &mut one.finding.fixes {
            match fix {
                Fix::Edits { edits, say, .. }
                    if edits
                        .iter()
                        .any(|edit| notebooks.contains_key(edit.file.as_path())) =>
                {
                    let say = std::mem::take(say);
                    *fix = Fix::Code { place: None, say };
                }
                Fix::Code {
                    place: Some(place), ..
                } => {
                    locate(place);
                }
                _ => {}
            }
        }
    }
}

fn finish(project: Project, mut found: Vec<Reported>) -> Outcome {
    let mut silences: FxHashMap<&Path, Silences> = FxHashMap::default();
    for module in &project.modules {
        let silence = Silences::of(&module.source, Some(&module.parsed.comments));
        silences.insert(&module.source.path, silence);
    }
    for document in &project.documents {
        silences.insert(&document.source.path, Silences::of(&document.source, None));
    }
    let before = found.len();
    found.retain(|one| {
        !silences
            .get(one.place().file.as_path())
            .is_some_and(|list| list.silences(one))
    });
    let silenced = before - found.len();
    found.sort_by(|a, b| (a.place(), &a.finding.rule).cmp(&(b.place(), &b.finding.rule)));
    found.dedup_by(|a, b| a.place() == b.place() && a.finding.rule == b.finding.rule);
    let lines = project
        .modules
        .iter()
        .map(|module| module.source.line_count())
        .sum();
    drop(silences);
    place_in_cells(&project, &mut found);
    Outcome {
        found,
        project,
        silenced,
        lines,
    }
}
