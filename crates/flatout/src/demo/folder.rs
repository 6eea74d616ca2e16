//! The demo's folder. Only a folder that a demo made is emptied.

use flatout_core::error::FileError;
use flatout_core::{Failure, Result, message};
use std::fs;
use std::path::Path;

const MARK: &str = ".flatout-demo";
/// Records of the PyTorch programs.
pub const RUNS: &str = "records";

pub fn prepare(folder: &Path) -> Result<()> {
    let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !folder.join(MARK).exists() {
        let shown = folder.display();
        return Err(Failure::new(
            message!(en: "`{shown}` is not empty and was not created by the demo", zh: "`{shown}` 不为空，且不是由 demo 生成的"),
        )
        .with_hint(message!(en: "choose another folder: flatout demo --out FOLDER", zh: "换一个文件夹：flatout demo --out FOLDER")));
    }
    for part in ["data", "before", "after", "after-2", RUNS] {
        let part = folder.join(part);
        if part.exists() {
            fs::remove_dir_all(&part).map_err(|source| FileError::deleting(&part, source))?;
        }
    }
    fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
    let mark = folder.join(MARK);
    fs::write(&mark, "made by flatout demo\n").map_err(|source| FileError::writing(&mark, source))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_folder_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let mine = folder.path().join("data");
        fs::create_dir(&mine).unwrap();
        assert!(prepare(folder.path()).is_err() && mine.exists());
        let made = folder.path().join("demo");
        prepare(&made).unwrap();
        fs::create_dir(made.join("before")).unwrap();
        prepare(&made).unwrap();
        assert!(!made.join("before").exists());
    }
}
