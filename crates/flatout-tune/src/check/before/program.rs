//! The program: there, and allowed to run.

use super::super::{Item, Status};
use flatout_core::message;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// By its path, or by the name that a shell would find.
pub(super) fn there(name: &str) -> Item {
    let what = message!(en: "the program", zh: "程序");
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| runs(path))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|path| runs(path))
    };
    match found {
        Some(path) => Item::new("program", what, Status::Pass).found(path.display().to_string(), ""),
        None => Item::new("program", what, Status::Fail)
            .found(name.to_owned(), "")
            .because(message!(en: "program not found", zh: "找不到该程序")),
    }
}

/// The script that an interpreter is given, where it is not there; one that is needs no line.
pub(super) fn script(command: &[String]) -> Option<Item> {
    let rest = command.get(1..)?;
    let module = rest.iter().position(|word| word == "-m" || word == "-c");
    let at = rest.iter().position(|word| word.ends_with(".py"))?;
    let missing = module.is_none_or(|module| at < module) && !Path::new(&rest[at]).is_file();
    missing.then(|| {
        let what = message!(en: "the script", zh: "脚本");
        let why = message!(en: "not found", zh: "不存在");
        Item::new("script", what, Status::Fail)
            .found(rest[at].clone(), "")
            .because(why)
    })
}

fn runs(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
