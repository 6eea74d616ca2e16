//! Paths of a call stay inside the folder that the server was started for.

use flatout_core::{Failure, Result, message};
use flatout_record as record;
use flatout_record::Record;
use std::path::{Component, Path, PathBuf};

/// The folder that calls may name files of. It is the server's current folder as well.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        folder.canonicalize().map(Self)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// A path that exists, relative to the folder; links are followed before it is judged.
    pub fn existing(&self, named: &str) -> Result<PathBuf> {
        let full = self.0.join(named);
        let real = full.canonicalize().map_err(|_| {
            // What is outside is not even said to be missing.
            if named.starts_with('/')
                || Path::new(named)
                    .components()
                    .any(|part| part == Component::ParentDir)
            {
                return self.outside(named);
            }
            Failure::new(message!(en: "there is no file or folder `{named}`", zh: "没有文件或目录 `{named}`"))
                .with_hint(
                    message!(en: "paths are relative to the server's folder", zh: "路径相对于服务器的目录"),
                )
        })?;
        self.inside(&real).ok_or_else(|| self.outside(named))
    }

    /// A path to write: its folder exists, it may be new. A link there is not followed out of the folder.
    pub fn writable(&self, named: &str) -> Result<PathBuf> {
        let full = self.0.join(named);
        let name = full
            .components()
            .next_back()
            .filter(|last| matches!(last, Component::Normal(_)))
            .map(|last| last.as_os_str().to_owned());
        let (Some(name), Some(folder), false) = (name, full.parent(), full.is_dir()) else {
            return Err(Failure::new(
                message!(en: "`{named}` is not a file name", zh: "`{named}` 不是文件名"),
            ));
        };
        let folder = folder.canonicalize().map_err(|_| {
            Failure::new(
                message!(en: "`{named}`: its folder does not exist", zh: "`{named}`：所在目录不存在"),
            )
        })?;
        let path = folder.join(name);
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let dangling = path.is_symlink() && !path.exists();
        if dangling || self.inside(&real).is_none() {
            return Err(self.outside(named));
        }
        Ok(path)
    }

    /// A run: `last`, a name, an id, or a folder inside this one.
    pub fn run(&self, named: &str) -> Result<Record> {
        let path = Path::new(named);
        if path.is_dir() {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let runs = record::runs_folder().canonicalize().ok();
            if self.inside(&real).is_none() && !runs.is_some_and(|runs| real.starts_with(runs)) {
                return Err(self.outside(named));
            }
        }
        Ok(record::find(named)?)
    }

    fn inside(&self, real: &Path) -> Option<PathBuf> {
        let below = real.strip_prefix(&self.0).ok()?;
        Some(if below.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            below.to_owned()
        })
    }

    /// Whether a file of a patch may be changed.
    pub fn check(&self, path: &Path) -> Result<()> {
        let real = self.0.join(path).canonicalize().ok();
        match real.and_then(|real| self.inside(&real)) {
            Some(_) => Ok(()),
            None => Err(self.outside(&path.to_string_lossy())),
        }
    }

    fn outside(&self, named: &str) -> Failure {
        let root = self.0.display();
        Failure::new(message!(en: "`{named}` is outside `{root}`", zh: "`{named}` 在 `{root}` 之外"))
            .with_hint(message!(
                en: "this server works only in that folder; start another one with `flatout mcp --folder DIR`",
                zh: "此服务器只在该目录内工作；可用 `flatout mcp --folder DIR` 另启一个"
            ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nothing_outside_is_reached_by_dots_or_links() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("project");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("train.py"), "").unwrap();
        fs::write(outer.path().join("secret.py"), "").unwrap();
        std::os::unix::fs::symlink(outer.path(), inner.join("up")).unwrap();
        std::os::unix::fs::symlink(outer.path().join("new.html"), inner.join("dangling.html")).unwrap();
        let root = Root::new(&inner).unwrap();
        assert_eq!(root.existing("train.py").unwrap(), Path::new("train.py"));
        assert_eq!(root.existing(".").unwrap(), Path::new("."));
        for outside in [
            "../secret.py",
            "up/secret.py",
            "/etc/passwd",
            "..",
            "../missing.py",
        ] {
            let refusal = root.existing(outside).unwrap_err();
            assert!(refusal.message().en.contains("is outside"), "{outside}");
        }
        assert!(root.existing("missing.py").is_err());
        for outside in [
            "../new.html",
            "up/new.html",
            "/tmp/new.html",
            "..",
            "",
            "dangling.html",
            "no/such.html",
        ] {
            assert!(root.writable(outside).is_err(), "{outside}");
        }
        assert_eq!(root.writable("new.html").unwrap(), root.folder().join("new.html"));
    }
}
