//! Patterns of paths, as shells have them: `*`, `?`, `[a-z]`, `[!0-9]`, `{a,b}`, and `**` for folders at any depth. It finds files and
//! knows nothing of what is in them.

mod pattern;

use crate::paths::natural_order;
use crate::{DataError, Result};
use pattern::{Name, Part};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A pattern without braces for each of its alternatives.
#[derive(Debug)]
pub struct Glob {
    alternatives: Vec<Vec<Part>>,
}

impl Glob {
    pub fn parse(text: &str) -> Result<Self> {
        let alternatives = pattern::alternatives(text)?
            .iter()
            .map(|one| pattern::parts(text, one))
            .collect::<Result<_>>()?;
        Ok(Self { alternatives })
    }

    /// Whether a name without folders fits.
    pub fn matches(&self, name: &str) -> bool {
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|parts| matches!(&parts[..], [Part::Name(pattern)] if pattern.matches(name)))
    }

    /// All files below a folder that fit, in natural order, each once. Only what begins with a dot in the pattern finds hidden ones.
    pub fn find_in(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for parts in &self.alternatives {
            descend(folder, parts, &mut files)?;
        }
        let mut named: Vec<(String, PathBuf)> = files
            .into_iter()
            .map(|file| (file.to_string_lossy().into_owned(), file))
            .collect();
        named.sort_by(|(left, _), (right, _)| natural_order(left, right));
        named.dedup();
        Ok(named.into_iter().map(|(_, file)| file).collect())
    }
}

/// Whether a path is a pattern: it has one of a pattern's signs, and is not itself there.
pub fn is_pattern(path: &Path) -> bool {
    has_signs(&path.to_string_lossy()) && !path.exists()
}

pub(crate) fn has_signs(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files of a pattern that begins at the root or at the folder one is in.
pub fn find(path: &Path) -> Result<Vec<PathBuf>> {
    let root = if path.is_absolute() { "/" } else { "" };
    Glob::parse(&path.to_string_lossy())?.find_in(Path::new(root))
}

fn descend(folder: &Path, parts: &[Part], files: &mut Vec<PathBuf>) -> Result<()> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(());
    };
    let mut take = |path: PathBuf, is_folder: bool| match (rest.is_empty(), is_folder) {
        (true, false) => {
            files.push(path);
            Ok(())
        }
        (false, true) => descend(&path, rest, files),
        _ => Ok(()),
    };
    match part {
        Part::Name(Name::Plain(name)) => {
            let path = folder.join(name);
            match std::fs::metadata(&path) {
                Ok(found) => take(path, found.is_dir()),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    Ok(())
                }
                Err(error) => Err(DataError::reading(path, error)),
            }
        }
        Part::Name(pattern) => {
            for name in names(folder)? {
                if pattern.matches(&name.to_string_lossy()) {
                    let path = folder.join(&name);
                    let is_folder = path.is_dir();
                    take(path, is_folder)?;
                }
            }
            Ok(())
        }
        Part::AnyFolders => {
            descend(folder, rest, files)?;
            for name in names(folder)? {
                let path = folder.join(&name);
                // A link to a folder may lead in a circle.
                let is_own = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
                if is_own && !name.as_encoded_bytes().starts_with(b".") {
                    descend(&path, parts, files)?;
                }
            }
            Ok(())
        }
    }
}

fn names(folder: &Path) -> Result<Vec<OsString>> {
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let failed = |error| DataError::reading(here, error);
    let entries = std::fs::read_dir(here).map_err(failed)?;
    entries
        .map(|entry| Ok(entry.map_err(failed)?.file_name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            "a.csv",
            "part2.csv",
            "part10.csv",
            ".hidden.csv",
            "2023/b.csv",
            "2023/deep/er/c.csv",
            "2024/b.csv",
            "2024/b.txt",
            ".secret/d.csv",
        ] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("2024/circle")).unwrap();
        let files = Glob::parse(pattern).unwrap().find_in(folder.path()).unwrap();
        let below = |file: &PathBuf| file.strip_prefix(folder.path()).unwrap().display().to_string();
        files.iter().map(below).collect()
    }

    #[test]
    fn files_are_found_in_natural_order() {
        assert_eq!(found("part*.csv"), ["part2.csv", "part10.csv"]);
        assert_eq!(found("*.csv"), ["a.csv", "part2.csv", "part10.csv"]);
        assert_eq!(found(".*.csv"), [".hidden.csv"]);
        assert_eq!(found("20??/b.csv"), ["2023/b.csv", "2024/b.csv"]);
        assert_eq!(
            found("{2024,2023}/b.{csv,txt}"),
            ["2023/b.csv", "2024/b.csv", "2024/b.txt"]
        );
        assert_eq!(found("202[!3]/*"), ["2024/b.csv", "2024/b.txt"]);
        assert_eq!(found("./2023/../a.csv"), ["2023/../a.csv"]);
        assert!(found("nowhere/*").is_empty() && found("a.csv/*").is_empty() && found("2023").is_empty());
    }

    #[test]
    fn folders_at_any_depth_but_no_hidden_ones_and_no_circles() {
        let all = [
            "2023/b.csv",
            "2023/deep/er/c.csv",
            "2024/b.csv",
            "a.csv",
            "part2.csv",
            "part10.csv",
        ];
        assert_eq!(found("**/*.csv"), all);
        assert_eq!(found("**/**/*.csv"), all);
        assert_eq!(found("2023/**"), ["2023/b.csv", "2023/deep/er/c.csv"]);
        assert_eq!(found("**/er/*"), ["2023/deep/er/c.csv"]);
    }

    #[test]
    fn a_name_with_signs_is_a_name_where_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a[1].csv");
        assert!(is_pattern(&path));
        std::fs::write(&path, "").unwrap();
        assert!(!is_pattern(&path));
    }
}
