//! Puts settings that were measured elsewhere (`flatout tune`) into the source: as arguments of the call that builds the loader or
//! the optimizer. Literals are replaced and arguments added; a value that comes from somewhere else is left, and named.

use crate::project::{Code, Origin, Project};
use crate::python::Kind;
use crate::{LintError, Settings, fix, lint};
use flatout_core::error::FileError;
use flatout_core::files::edit as edit_file;
use flatout_core::{Edit, Message, Place, message};
use flatout_vocabulary::{Call, Setting, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A setting under the name `--apply` knows it by, and the line that built what it belongs to.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub key: String,
    pub value: String,
    pub place: Option<Place>,
}

#[derive(Debug, Default)]
pub struct Patch {
    pub diff: String,
    /// Files that would change: path, old text, new text.
    pub files: Vec<(PathBuf, String, String)>,
    /// Settings that the source cannot be given, and why.
    pub left: Vec<(String, Message)>,
}

/// What would have to change. Nothing is written.
pub fn patch(wanted: &[Wanted]) -> Result<Patch, LintError> {
    let mut files: Vec<PathBuf> = wanted
        .iter()
        .filter_map(|one| one.place.as_ref())
        .map(|place| place.file.clone())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.dedup();
    if files.is_empty() {
        let left = wanted.iter().map(|one| (one.key.clone(), no_place())).collect();
        return Ok(Patch {
            left,
            ..Patch::default()
        });
    }
    let outcome = lint(&files, &Settings::default())?;
    Ok(patched(&outcome.project, wanted))
}

/// Writes the patch; the original files are kept as backups, whose paths it returns.
pub fn write(patch: &Patch) -> Result<Vec<(&Path, PathBuf)>, FileError> {
    let mut kept = Vec::new();
    for (path, old, new) in &patch.files {
        kept.push((path.as_path(), edit_file(path, old.as_bytes(), new.as_bytes())?));
    }
    Ok(kept)
}

fn patched(project: &Project, wanted: &[Wanted]) -> Patch {
    let mut patch = Patch::default();
    let mut edits: BTreeMap<PathBuf, Vec<Edit>> = BTreeMap::new();
    for one in wanted {
        match edit(project, one) {
            Ok(Some(edit)) => add(edits.entry(edit.file.clone()).or_default(), edit),
            Ok(None) => {}
            Err(why) => patch.left.push((one.key.clone(), why)),
        }
    }
    for (path, mut list) in edits {
        list.sort_by_key(|edit| (edit.start, edit.end));
        let Some(module) = project.modules.iter().find(|module| module.source.path == path) else {
            continue;
        };
        let old = &module.source.text;
        let new = fix::apply(old, &list);
        patch.diff += &crate::format::unified(&path, old, &new, &list);
        patch.files.push((path, old.clone(), new));
    }
    patch
}

/// Arguments added at the same place become one edit.
fn add(list: &mut Vec<Edit>, edit: Edit) {
    match list
        .iter_mut()
        .find(|other| (other.start, other.end) == (edit.start, edit.end))
    {
        Some(same) if same.start == same.end => same.text += &edit.text,
        Some(same) => *same = edit,
        None => list.push(edit),
    }
}

/// `None` if the source already has the value.
fn edit(project: &Project, wanted: &Wanted) -> Result<Option<Edit>, Message> {
    let setting = flatout_vocabulary::find(&wanted.key).ok_or_else(no_place)?;
    written_as(project, wanted, setting)
}

/// The edit that gives a call of the source the value.
fn written_as(project: &Project, wanted: &Wanted, setting: &Setting) -> Result<Option<Edit>, Message> {
    let Source::Argument { call, name, position } = setting.source else {
        return Err(setting.words(&wanted.value).unwrap_or_default());
    };
    let place = wanted.place.as_ref().ok_or_else(no_place)?;
    let call = built_at(project, place, call == Call::Loader).ok_or_else(no_place)?;
    let value = literal(&wanted.value);
    let Some(argument) = call.argument(name, position) else {
        if call.splats() {
            return Err(
                message!(en: "the call at {place} forwards its arguments", zh: "{place} 处的调用转发了参数"),
            );
        }
        return call.set_keyword(name, &value).map(Some).ok_or_else(no_place);
    };
    let written = written(argument).ok_or_else(|| {
        let text = argument.brief();
        message!(en: "{name} is `{text}`, which is set elsewhere", zh: "{name} 为 `{text}`，由别处决定")
    })?;
    Ok((written.text() != value).then(|| written.replace(value)))
}

/// The one literal that an argument gets its value from, in this file.
fn written(argument: Code<'_>) -> Option<Code<'_>> {
    let plain = |code: Code<'_>| {
        matches!(
            code.kind(),
            Kind::Integer(_) | Kind::Boolean(_) | Kind::None | Kind::Text(_)
        )
    };
    if plain(argument) {
        return Some(argument);
    }
    let values = argument.values();
    let [only] = values.list.as_slice() else {
        return None;
    };
    match only.origin {
        Origin::Code(code) if values.complete && plain(code) && code.module == argument.module => Some(code),
        _ => None,
    }
}

/// The call that builds a loader or an optimizer on this line.
fn built_at<'p>(project: &'p Project, place: &Place, loader: bool) -> Option<Code<'p>> {
    let module = project.module_at(&place.file)?;
    if !project.module(module).source.cells.is_empty() {
        // A notebook's text is not its file.
        return None;
    }
    let on_line = |call: &Code<'_>| {
        let source = &call.in_module().source;
        let span = call.span();
        (source.position(span.start).0..=source.position(span.end).0).contains(&place.line)
    };
    let optimizer = |call: &Code<'_>| {
        call.call_name()
            .is_some_and(|name| name.starts_with("torch.optim."))
    };
    let mut calls: Vec<Code<'p>> = if loader {
        crate::loaders::loader_calls(project, module)
            .filter(on_line)
            .collect()
    } else {
        project
            .torch_calls(module)
            .filter(optimizer)
            .filter(on_line)
            .collect()
    };
    // Two on one line cannot be distinguished.
    (calls.len() == 1).then(|| calls.remove(0))
}

fn literal(value: &str) -> String {
    match value {
        "on" => "True".into(),
        "off" => "False".into(),
        number if number.parse::<f64>().is_ok() => number.into(),
        text => format!("{text:?}"),
    }
}

fn no_place() -> Message {
    message!(en: "the call it belongs to was not found in the source", zh: "在源码中没有找到它所属的调用")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project;

    const PROGRAM: &str = "import torch
from torch.utils.data import DataLoader

BATCH = 64  # small


def main(data, args):
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=0)
    other = DataLoader(data, batch_size=args.batch)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=1e-3,
    )
";

    fn wanted(key: &str, value: &str, line: u32) -> Wanted {
        Wanted {
            key: key.into(),
            value: value.into(),
            place: Some(Place::new("train.py", line)),
        }
    }

    fn new_text(list: &[Wanted]) -> (String, Vec<String>) {
        let patch = patched(&project(&[("train.py", PROGRAM)]), list);
        let text = patch
            .files
            .first()
            .map_or(PROGRAM.to_owned(), |(_, _, new)| new.clone());
        (
            text,
            patch
                .left
                .into_iter()
                .map(|(key, why)| format!("{key}: {}", why.en))
                .collect(),
        )
    }

    #[test]
    fn replaces_literals_and_adds_arguments() {
        let (text, left) = new_text(&[
            wanted("loader.batch_size", "512", 8),
            wanted("loader.num_workers", "8", 8),
            wanted("loader.persistent_workers", "on", 8),
            wanted("loader.pin_memory", "on", 8),
            wanted("optimizer.fused", "on", 10),
        ]);
        assert!(left.is_empty(), "{left:?}");
        assert!(text.contains("BATCH = 512  # small\n"), "{text}");
        assert!(
            text.contains("shuffle=True, num_workers=8, persistent_workers=True, pin_memory=True)\n"),
            "{text}"
        );
        assert!(
            text.contains("        lr=1e-3,\n        fused=True,\n    )\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_decided_elsewhere_is_left_and_named() {
        let (text, left) = new_text(&[
            wanted("loader.batch_size", "512", 9),
            wanted("amp", "bf16", 9),
            wanted("loader.num_workers", "8", 3),
        ]);
        assert_eq!(text, PROGRAM);
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left[0].contains("args.batch"), "{left:?}");
    }

    #[test]
    fn settings_that_are_not_arguments_come_with_a_code_line() {
        for (key, value, line) in [
            ("threads.torch", "1", "torch.set_num_threads(1)"),
            ("tf32", "on", "allow_tf32 = True"),
            ("cudnn.benchmark", "on", "cudnn.benchmark = True"),
            ("channels_last", "on", "memory_format=torch.channels_last"),
            ("amp", "bf16", "torch.autocast("),
            (
                "compile",
                "reduce-overhead",
                "torch.compile(model, mode=\"reduce-overhead\")",
            ),
            ("zero_grad.set_to_none", "on", "optimizer.zero_grad()"),
            ("gc.freeze", "on", "gc.freeze()"),
            ("malloc.keep", "on", "MALLOC_TRIM_THRESHOLD_"),
        ] {
            let (text, left) = new_text(&[wanted(key, value, 8)]);
            assert_eq!(text, PROGRAM);
            assert!(left[0].contains(line), "{left:?}");
        }
    }

    #[test]
    fn existing_values_are_not_a_change() {
        let (text, left) = new_text(&[wanted("loader.num_workers", "0", 8)]);
        assert!(text == PROGRAM && left.is_empty());
    }
}
