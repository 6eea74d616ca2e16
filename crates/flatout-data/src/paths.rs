//! Finding files: a file, a folder or a glob becomes a list in natural order (`part2` before `part10`).

use crate::{DataError, Result};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Compares names as people do: runs of digits by their value.
pub fn natural_order(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left.as_bytes(), right.as_bytes());
    while let (Some(&l), Some(&r)) = (left_rest.first(), right_rest.first()) {
        if l.is_ascii_digit() && r.is_ascii_digit() {
            let (l_number, l_rest) = take_digits(left_rest);
            let (r_number, r_rest) = take_digits(right_rest);
            let order = l_number
                .len()
                .cmp(&r_number.len())
                .then_with(|| l_number.cmp(r_number));
            if order != Ordering::Equal {
                return order;
            }
            (left_rest, right_rest) = (l_rest, r_rest);
        } else {
            if l != r {
                return l.cmp(&r);
            }
            (left_rest, right_rest) = (&left_rest[1..], &right_rest[1..]);
        }
    }
    // `part1` and `part01` are equal so far: the text decides, so that the order is total.
    left_rest
        .len()
        .cmp(&right_rest.len())
        .then_with(|| left.cmp(right))
}

/// A leading number without its leading zeros, and what follows.
fn take_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let zeros = text[..end].iter().take_while(|&&byte| byte == b'0').count();
    (&text[zeros.min(end)..end], &text[end..])
}

/// Whether `name` fits a pattern of `*` and `?`.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((star_p, star_n)) = star {
            (p, n) = (star_p + 1, star_n + 1);
            star = Some((star_p, star_n + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The files of a folder that `wanted` accepts by name, in natural order. Hidden files are left out.
pub fn list_folder(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|source| DataError::reading(folder, source))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| DataError::reading(folder, source))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && wanted(&name) && entry.path().is_file() {
            names.push((name, entry.path()));
        }
    }
    names.sort_by(|(left, _), (right, _)| natural_order(left, right));
    Ok(names.into_iter().map(|(_, path)| path).collect())
}

/// A file as it is, the matching files of a folder, or of a glob whose last part has `*` or `?`.
pub fn find_files(path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let has_extension = |name: &str| {
        let name = name.to_ascii_lowercase();
        extensions
            .iter()
            .any(|extension| name.ends_with(&format!(".{extension}")))
    };
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let files = if path.is_dir() {
        list_folder(path, has_extension)?
    } else if name.contains(['*', '?']) && !path.exists() {
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        list_folder(folder, |file| glob_matches(&name, file))?
    } else {
        std::fs::metadata(path).map_err(|source| DataError::reading(path, source))?;
        vec![path.to_owned()]
    };
    if files.is_empty() {
        let list = extensions.join(", ");
        return Err(DataError::NoFiles {
            path: path.to_owned(),
            wanted: flatout_core::message!(en: "files ending in {list}", zh: "以 {list} 结尾的文件"),
        });
    }
    Ok(files)
}

/// The file's name without folder and without its last extension.
pub fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_value() {
        let mut names = [
            "a_part10.csv",
            "a_part2.csv",
            "a_part1.csv",
            "a.csv",
            "b",
            "a_part02.csv",
        ];
        names.sort_by(|l, r| natural_order(l, r));
        assert_eq!(
            names,
            [
                "a.csv",
                "a_part1.csv",
                "a_part02.csv",
                "a_part2.csv",
                "a_part10.csv",
                "b"
            ]
        );
    }

    #[test]
    fn globs() {
        assert!(glob_matches("*.parquet", "600000.parquet"));
        assert!(glob_matches("log_*_4?.csv", "log_standard_4_22_41.csv"));
        assert!(!glob_matches("*.csv", "a.csv.gz"));
        assert!(glob_matches("**", ""));
        assert!(!glob_matches("?", ""));
    }
}
