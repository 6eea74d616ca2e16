//! What an earlier training left in the folder: its files move aside together, into a folder that is never used twice.

use crate::TrainError;
use flatout_core::error::FileError;
use flatout_core::{Message, message};
use std::path::{Path, PathBuf};

/// What a training leaves in its folder; `batch.json` stays, for the next.
const LEFT: [&str; 8] = [
    "best.safetensors",
    "last.safetensors",
    "config.yaml",
    "metrics.jsonl",
    "metrics.csv",
    "result.json",
    "tensorboard",
    "run",
];
/// Checkpoints: what a training is worth keeping for.
const CHECKPOINTS: &[&str] = &["best.safetensors", "last.safetensors"];
/// In a folder of files put aside: the moving was not finished.
const MOVING: &str = ".moving";

pub(crate) fn holds_training(output: &Path) -> bool {
    CHECKPOINTS.iter().any(|name| output.join(name).exists())
}

/// Moves the files of an earlier training to `<output>/before`, `before-2`, `before-3` …, so that the files of two models are never
/// side by side and no model is overwritten. What was killed half-way is finished here. Gives what there is to report.
pub(crate) fn put_aside(output: &Path) -> Result<Option<Message>, TrainError> {
    let unfinished = folders(output).find(|folder| folder.join(MOVING).exists());
    if unfinished.is_none() && !holds_training(output) {
        return Ok(None);
    }
    let before = unfinished
        .or_else(|| folders(output).last())
        .unwrap_or_else(|| output.join("before"));
    let failed = |source| TrainError::from(FileError::writing(&before, source));
    log::info!(
        "an earlier training in {} moves to {}",
        output.display(),
        before.display()
    );
    std::fs::create_dir_all(&before).map_err(failed)?;
    std::fs::write(before.join(MOVING), "").map_err(failed)?;
    for name in LEFT.iter().map(|name| (*name).to_owned()).chain(records(output)) {
        let (from, to) = (output.join(&name), before.join(&name));
        // Anything else there belongs to somebody else.
        let is_ours = !name.starts_with("run") || from.join("run.json").exists();
        if from.exists() && is_ours && !to.exists() {
            std::fs::rename(&from, &to).map_err(failed)?;
        }
    }
    std::fs::remove_file(before.join(MOVING)).map_err(failed)?;
    let (output, before) = (output.display(), before.display());
    Ok(Some(message!(
        en: "{output} contained another training, now moved to {before}; continue it with --resume {before}",
        zh: "{output} 中有另一次训练：其文件现在位于 {before}；用 --resume {before} 可以继续它"
    )))
}

/// `before`, `before-2` … as far as there are any, and the first that is free.
fn folders(output: &Path) -> impl Iterator<Item = PathBuf> {
    let numbered = (2..).map(|number| format!("before-{number}"));
    let names = std::iter::once("before".to_owned()).chain(numbered);
    let mut free = false;
    let output = output.to_owned();
    names
        .map(move |name| output.join(name))
        .take_while(move |folder| {
            let before = free;
            free = !folder.exists();
            !before
        })
}

/// Records of a training that was resumed: `run-2`, `run-3` …
fn records(output: &Path) -> impl Iterator<Item = String> {
    let output = output.to_owned();
    (2..)
        .map(|number| format!("run-{number}"))
        .take_while(move |name| output.join(name).exists())
}

/// The first of `run`, `run-2`, `run-3` … without a record.
pub(crate) fn free_record(output: &Path) -> PathBuf {
    let numbered = (2..).map(|number| output.join(format!("run-{number}")));
    std::iter::once(output.join("run"))
        .chain(numbered)
        .find(|folder| !folder.join("run.json").exists())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn leave(output: &Path, model: &str) {
        fs::create_dir_all(output.join("run")).unwrap();
        fs::write(output.join("run/run.json"), model).unwrap();
        for name in ["best.safetensors", "last.safetensors", "config.yaml"] {
            fs::write(output.join(name), model).unwrap();
        }
    }

    fn model(folder: &Path) -> String {
        fs::read_to_string(folder.join("best.safetensors")).unwrap()
    }

    #[test]
    fn nothing_put_aside_is_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path();
        assert!(put_aside(output).unwrap().is_none());
        for number in 1..=4 {
            leave(output, &number.to_string());
            assert!(put_aside(output).unwrap().is_some());
        }
        let kept = ["before", "before-2", "before-3", "before-4"].map(|name| model(&output.join(name)));
        assert_eq!(kept, ["1", "2", "3", "4"]);
        assert!(!holds_training(output) && !output.join("run").exists());
        assert!(!output.join("before/.moving").exists());
    }

    #[test]
    fn a_move_that_was_killed_is_finished_into_the_same_folder() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path();
        leave(output, "0");
        put_aside(output).unwrap();
        leave(output, "1");
        fs::create_dir(output.join("before-2")).unwrap();
        fs::write(output.join("before-2/.moving"), "").unwrap();
        fs::rename(
            output.join("best.safetensors"),
            output.join("before-2/best.safetensors"),
        )
        .unwrap();
        put_aside(output).unwrap();
        assert_eq!(
            fs::read_to_string(output.join("before-2/last.safetensors")).unwrap(),
            "1"
        );
        assert!(!output.join("before-3").exists());
    }
}
