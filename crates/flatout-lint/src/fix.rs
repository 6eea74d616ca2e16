//! Choosing, applying and writing the edits of findings. Edits never overlap; a file is written whole or not at all, and its
//! original text is kept as a backup.

use crate::lint::Outcome;
use crate::report::Reported;
use crate::source::Source;
use flatout_core::error::FileError;
use flatout_core::files;
use flatout_core::{Edit, Finding, Fix};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The first fix of a finding that edits source and may be applied; empty if there is none.
pub fn edits_of(finding: &Finding, with_unsafe: bool) -> &[Edit] {
    let found = finding.fixes.iter().find_map(|fix| match fix {
        Fix::Edits { edits, safe, .. } if *safe || with_unsafe => Some(edits.as_slice()),
        _ => None,
    });
    found.unwrap_or(&[])
}

/// What will be changed.
#[derive(Debug, Default)]
pub struct Plan {
    /// For each file its edits, in order, none overlapping.
    pub edits: BTreeMap<PathBuf, Vec<Edit>>,
    /// Findings that these edits fix.
    pub fixed: usize,
    /// Findings whose edits would overlap with others: the next round fixes them.
    pub postponed: usize,
    /// Files that are not changed, and why.
    pub left: BTreeMap<PathBuf, Left>,
}

/// Why a file is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It may mean something else than what was read of it.
    SyntaxError,
    /// What it names may be outside the project; inside, it is linted under its own name.
    Link,
    ReadOnly,
    /// Somebody changed it after it was read.
    Changed,
}

pub fn plan(found: &[Reported], left: impl Fn(&Path) -> Option<Left>, with_unsafe: bool) -> Plan {
    let mut plan = Plan::default();
    for one in found {
        let edits = edits_of(&one.finding, with_unsafe);
        if edits.is_empty() {
            continue;
        }
        let mut files = edits.iter().map(|edit| &edit.file);
        if let Some((file, why)) = files.find_map(|file| Some((file, left(file)?))) {
            plan.left.insert(file.clone(), why);
            continue;
        }
        if edits.iter().any(|edit| collides(&plan, edit)) {
            plan.postponed += 1;
            continue;
        }
        plan.fixed += 1;
        for edit in edits {
            let list = plan.edits.entry(edit.file.clone()).or_default();
            if !list.contains(edit) {
                list.push(edit.clone());
            }
        }
    }
    for list in plan.edits.values_mut() {
        list.sort_by_key(|edit| (edit.start, edit.end));
    }
    plan
}

/// Two edits must not touch the same bytes or insert at the same location; identical edits count once.
fn collides(plan: &Plan, edit: &Edit) -> bool {
    plan.edits.get(&edit.file).is_some_and(|list| {
        list.iter().any(|other| {
            let apart = edit.end < other.start || other.end < edit.start;
            let adjacent = edit.start != other.start && (edit.end == other.start || other.end == edit.start);
            other != edit && !apart && !adjacent
        })
    })
}

/// The text with edits made; they are sorted and do not overlap.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        let (Some(kept), true) = (text.get(at..edit.start), edit.end >= edit.start) else {
            continue;
        };
        result.push_str(kept);
        result.push_str(&edit.text);
        at = edit.end;
    }
    result.push_str(text.get(at..).unwrap_or(""));
    result
}

/// What was fixed, or would be.
#[derive(Debug, Default)]
pub struct Fixed {
    pub diff: String,
    pub files: BTreeSet<PathBuf>,
    pub findings: usize,
    pub postponed: usize,
    /// Files that are not changed, and why.
    pub left: BTreeMap<PathBuf, Left>,
    pub written: bool,
}

/// More rounds than edits can wait for each other; an end in any case.
const MOST_ROUNDS: usize = 8;

/// What a first round would change. Nothing is written.
pub fn preview(outcome: &Outcome, with_unsafe: bool) -> Fixed {
    let mut fixed = Fixed::default();
    let plan = plan(&outcome.found, |path| outcome.left(path), with_unsafe);
    fixed.take(outcome, &plan);
    fixed
}

/// Applies fixes until none is left: one edit enables the next (a loader that pins, then copies that need not block), and
/// two at the same location follow each other. `again` lints the current text. The text before the first round is kept as backup.
pub fn apply_all<E: From<FileError>>(
    first: Outcome,
    with_unsafe: bool,
    mut again: impl FnMut() -> Result<Outcome, E>,
) -> Result<Fixed, E> {
    let mut fixed = Fixed {
        written: true,
        ..Fixed::default()
    };
    let mut outcome = first;
    let mut written: BTreeMap<PathBuf, String> = BTreeMap::new();
    for _ in 0..MOST_ROUNDS {
        let left = |path: &Path| {
            let source = outcome.source(path)?;
            let is_ours = written.get(path).is_none_or(|text| *text == source.text);
            let now = || std::fs::read(path).is_ok_and(|bytes| bytes == source.text.as_bytes());
            let changed = || (!is_ours || !now()).then_some(Left::Changed);
            let before = fixed.left.get(path).copied();
            before.or_else(|| outcome.left(path)).or_else(changed)
        };
        let plan = plan(&outcome.found, left, with_unsafe);
        let texts = fixed.take(&outcome, &plan);
        if texts.is_empty() {
            break;
        }
        for (source, new) in texts {
            let (path, old) = (&source.path, source.text.as_bytes());
            match written.contains_key(path) {
                true => files::write_inside(path, new.as_bytes())?,
                false => drop(files::edit(path, old, new.as_bytes())?),
            }
            written.insert(path.clone(), new);
        }
        outcome = again()?;
    }
    Ok(fixed)
}

impl Fixed {
    /// Counts a round in, with its diff; gives the files of it with their new texts.
    fn take<'o>(&mut self, outcome: &'o Outcome, plan: &Plan) -> Vec<(&'o Source, String)> {
        self.findings += plan.fixed;
        self.postponed = plan.postponed;
        self.left
            .extend(plan.left.iter().map(|(path, why)| (path.clone(), *why)));
        let mut texts = Vec::new();
        for (path, edits) in &plan.edits {
            let Some(source) = outcome.source(path) else {
                continue;
            };
            let new = apply(&source.text, edits);
            self.diff += &crate::format::unified(path, &source.text, &new, edits);
            self.files.insert(path.clone());
            texts.push((source, new));
        }
        texts
    }

    pub fn summary(&self) -> flatout_core::Message {
        use flatout_core::message;
        let (findings, files, postponed) = (self.findings, self.files.len(), self.postponed);
        let mut say = match (findings, self.written) {
            (0, _) => message!(en: "Nothing can be fixed automatically.", zh: "没有可以自动修复的问题。"),
            (_, true) => message!(
                en: "Fixed {findings} findings in {files} files; the old files are kept as *.flatout-backup.",
                zh: "已在 {files} 个文件中修复 {findings} 处；原文件保存为 *.flatout-backup。"
            ),
            (_, false) => message!(
                en: "{findings} findings in {files} files would be fixed.",
                zh: "将在 {files} 个文件中修复 {findings} 处。"
            ),
        };
        if postponed > 0 {
            say.en += &format!(" {postponed} more touch the same lines and come in the next round.");
            say.zh += &format!("另有 {postponed} 处涉及相同的行，将在下一轮修复。");
        }
        let count = |why: Left| self.left.values().filter(|other| **other == why).count();
        if let broken @ 1.. = count(Left::SyntaxError) {
            say.en += &format!(" Files with syntax errors, not changed: {broken}.");
            say.zh += &format!("有语法错误、未作修改的文件：{broken} 个。");
        }
        if let links @ 1.. = count(Left::Link) {
            say.en += &format!(" Symbolic links, not followed: {links}.");
            say.zh += &format!("未跟随的符号链接：{links} 个。");
        }
        if let locked @ 1.. = count(Left::ReadOnly) {
            say.en += &format!(" Read-only files, not changed: {locked}.");
            say.zh += &format!("只读、未作修改的文件：{locked} 个。");
        }
        if let edited @ 1.. = count(Left::Changed) {
            say.en += &format!(" Files edited meanwhile, not changed: {edited}; run it again.");
            say.zh += &format!("期间被编辑、未作修改的文件：{edited} 个；请再运行一次。");
        }
        say
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, lint};

    const PROGRAM: &str = "import torch
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size=8)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
";

    #[test]
    fn a_file_that_was_edited_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["edited.py", "same.py", "edited_later.py"] {
            std::fs::write(at(name), PROGRAM).unwrap();
        }
        let paths = [folder.path().to_owned()];
        let look = || lint(&paths, &Settings::default());
        let first = look().unwrap();
        let mine = PROGRAM.replace("batch_size=8", "batch_size=9");
        std::fs::write(at("edited.py"), &mine).unwrap();
        let mut rounds = 0;
        let fixed = apply_all(first, true, || {
            rounds += 1;
            if rounds == 1 {
                std::fs::write(at("edited_later.py"), &mine).unwrap();
            }
            look().map_err(|_| FileError::reading(folder.path(), std::io::Error::other("lint")))
        });
        let fixed = fixed.unwrap();
        let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        assert_ne!(text("same.py"), PROGRAM);
        assert_eq!((text("edited.py"), text("edited_later.py")), (mine.clone(), mine));
        assert_eq!(fixed.left.get(&at("edited.py")), Some(&Left::Changed));
        assert!(
            fixed.summary().en.contains("edited meanwhile"),
            "{}",
            fixed.summary().en
        );
        assert!(!at("edited.py.flatout-backup").exists());
        assert_eq!(text("edited_later.py.flatout-backup"), PROGRAM);
    }
}
