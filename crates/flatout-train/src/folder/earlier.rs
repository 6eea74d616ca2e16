//! What an earlier training left in the folder: its files move aside together, into a folder that is never used twice.

use super::FolderLock;
use crate::TrainError;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Message, message};
use std::path::{Path, PathBuf};

/// What a training leaves in its folder; `batch.json` stays, for the next.
const LEFT: [&str; 9] = [
    "best.safetensors",
    "last.safetensors",
    "config.yaml",
    "metrics.jsonl",
    "metrics.csv",
    "result.json",
    "test.json",
    "tensorboard",
    "run",
];
/// Checkpoints: what a training is worth keeping for.
const CHECKPOINTS: &[&str] = &["best.safetensors", "last.safetensors"];
/// In a folder of files put aside: the training they made room for has no checkpoint yet, so they are still the model of the folder above.
const ASIDE: &str = ".moving";
/// What is written there while files move, and once they have moved.
const MOVING: &str = "moving";
const MOVED: &str = "moved";

pub(crate) fn holds_training(output: &Path) -> bool {
    CHECKPOINTS.iter().any(|name| output.join(name).exists())
}

/// Moves the files of an earlier training to `<output>/before`, `before-2`, `before-3` …, so that the files of two models are never
/// side by side and no model is overwritten. Until [`keep_aside`] they count as the folder's own, wherever they are: [`find`] finds them,
/// and [`bring_back`] undoes what was killed. Gives what there is to report.
pub(crate) fn put_aside(output: &Path) -> Result<Option<Message>, TrainError> {
    if !holds_training(output) {
        return Ok(None);
    }
    let before = folders(output).last().unwrap_or_else(|| output.join("before"));
    log::info!(
        "an earlier training in {} moves to {}",
        output.display(),
        before.display()
    );
    let failed = |source| TrainError::from(FileError::writing(&before, source));
    std::fs::create_dir_all(&before).map_err(failed)?;
    mark(&before, MOVING)?;
    for name in names(output) {
        let (from, to) = (output.join(&name), before.join(&name));
        // Anything else there belongs to somebody else.
        let is_ours = !name.starts_with("run") || from.join("run.json").exists();
        if from.exists() && is_ours && !to.exists() {
            std::fs::rename(&from, &to).map_err(failed)?;
        }
    }
    mark(&before, MOVED)?;
    let (output, before) = (output.display(), before.display());
    Ok(Some(message!(
        en: "{output} contained another training, now moved to {before}; continue it with --resume {before}",
        zh: "{output} 中有另一次训练：其文件现在位于 {before}；用 --resume {before} 可以继续它"
    )))
}

/// The new training has a checkpoint: what was put aside for it stays there.
pub(crate) fn keep_aside(output: &Path) {
    for before in folders(output) {
        let _ = std::fs::remove_file(before.join(ASIDE));
    }
}

/// Gives a folder back the files that were put aside for a training which was ended before its first checkpoint. What that one left is
/// removed. Whoever works with a folder of files put aside has made it a folder of its own.
pub(crate) fn bring_back(output: &Path) -> Result<(), TrainError> {
    let _ = std::fs::remove_file(output.join(ASIDE));
    let Some(before) = aside(output) else {
        // What is left are marks of trainings that were killed between their first checkpoint and its end.
        keep_aside(output);
        return Ok(());
    };
    // Somebody continues that training where it is.
    let Ok(lock) = FolderLock::take(&before) else {
        return Ok(());
    };
    log::info!("{} moves back to {}", before.display(), output.display());
    let failed = |source| TrainError::from(FileError::writing(output, source));
    mark(&before, MOVING)?;
    for name in names(&before) {
        let (from, to) = (before.join(&name), output.join(&name));
        if !from.exists() {
            continue;
        }
        if to.is_dir() {
            std::fs::remove_dir_all(&to).map_err(failed)?;
        }
        std::fs::rename(&from, &to).map_err(failed)?;
    }
    std::fs::remove_file(before.join(ASIDE)).map_err(failed)?;
    drop(lock);
    // Refused where something else is inside.
    let _ = std::fs::remove_dir(&before);
    Ok(())
}

/// Where a file of the folder's model is: there, unless that is put aside for a training without a checkpoint.
pub(crate) fn find(output: &Path, name: &str) -> PathBuf {
    let own = output.join(name);
    let moved = aside(output).map(|before| before.join(name));
    moved.filter(|moved| moved.exists()).unwrap_or(own)
}

/// The folder with files that are still the model of this one.
fn aside(output: &Path) -> Option<PathBuf> {
    folders(output).find(|before| match std::fs::read_to_string(before.join(ASIDE)) {
        // The new training wrote a checkpoint, and was ended before it could say so.
        Ok(stage) if stage.trim() == MOVED => !holds_training(output),
        Ok(_) => true,
        Err(_) => false,
    })
}

fn mark(before: &Path, stage: &str) -> Result<(), TrainError> {
    Ok(write_atomically(&before.join(ASIDE), stage.as_bytes())?)
}

/// Everything that trainings leave in a folder.
fn names(output: &Path) -> impl Iterator<Item = String> {
    let left = LEFT.iter().map(|name| (*name).to_owned());
    left.chain(records(output)).collect::<Vec<_>>().into_iter()
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
            keep_aside(output);
        }
        let kept = ["before", "before-2", "before-3", "before-4"].map(|name| model(&output.join(name)));
        assert_eq!(kept, ["1", "2", "3", "4"]);
        assert!(!holds_training(output) && !output.join("run").exists());
        assert!(!output.join("before/.moving").exists());
    }

    #[test]
    fn the_model_of_a_training_that_was_killed_after_its_checkpoint_comes_back() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path();
        leave(output, "A");
        put_aside(output).unwrap();
        leave(output, "B");
        bring_back(output).unwrap();
        put_aside(output).unwrap();
        bring_back(output).unwrap();
        assert_eq!(
            (model(output), model(&output.join("before"))),
            ("B".to_owned(), "A".to_owned())
        );
    }

    #[test]
    fn what_was_put_aside_for_nothing_comes_back() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path();
        leave(output, "0");
        put_aside(output).unwrap();
        keep_aside(output);
        // One that was killed after each of its moves, and one that was killed before its first checkpoint.
        let moves = ["best.safetensors", "last.safetensors", "config.yaml", "run"];
        for killed_after in 0..=moves.len() {
            leave(output, "1");
            fs::create_dir(output.join("before-2")).unwrap();
            let stage = if killed_after == moves.len() {
                MOVED
            } else {
                MOVING
            };
            mark(&output.join("before-2"), stage).unwrap();
            for name in &moves[..killed_after] {
                fs::rename(output.join(name), output.join("before-2").join(name)).unwrap();
            }
            if stage == MOVED {
                fs::create_dir_all(output.join("run")).unwrap();
                fs::write(output.join("config.yaml"), "killed").unwrap();
            }
            for name in CHECKPOINTS {
                assert_eq!(fs::read_to_string(find(output, name)).unwrap(), "1");
            }
            bring_back(output).unwrap();
            for name in [
                "best.safetensors",
                "last.safetensors",
                "config.yaml",
                "run/run.json",
            ] {
                assert_eq!(
                    fs::read_to_string(output.join(name)).unwrap(),
                    "1",
                    "{killed_after}"
                );
            }
            assert!(!output.join("before-2").exists());
        }
        assert_eq!(model(&output.join("before")), "0");
    }

    #[test]
    fn a_first_checkpoint_ends_the_move() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path();
        leave(output, "0");
        put_aside(output).unwrap();
        fs::write(output.join("last.safetensors"), "1").unwrap();
        assert_eq!(find(output, "best.safetensors"), output.join("best.safetensors"));
        bring_back(output).unwrap();
        assert_eq!(model(&output.join("before")), "0");
        assert_eq!(fs::read_to_string(output.join("last.safetensors")).unwrap(), "1");
    }
}
