//! Finding files: a file, a folder or a glob becomes a list in natural order (`part2` before `part10`).

use crate::{DataError, Result, glob};
use flatout_core::message;
use std::cmp::Ordering;
use std::collections::BTreeSet;
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

/// A file as it is, the files of a folder with one of the endings, or all files of a glob.
pub fn find_files(path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let has_extension = |name: &str| {
        let name = name.to_ascii_lowercase();
        extensions
            .iter()
            .any(|extension| name.ends_with(&format!(".{extension}")))
    };
    let files = if path.is_dir() {
        list_folder(path, has_extension)?
    } else if glob::is_pattern(path) {
        glob::find(path)?
    } else {
        std::fs::metadata(path).map_err(|source| DataError::reading(path, source))?;
        vec![path.to_owned()]
    };
    if files.is_empty() {
        let list = extensions.join(", ");
        let wanted = if path.is_dir() {
            message!(en: "files ending in {list}", zh: "以 {list} 结尾的文件")
        } else {
            message!(en: "file that fits the pattern", zh: "符合该模式的文件")
        };
        return Err(DataError::NoFiles {
            path: path.to_owned(),
            wanted,
        });
    }
    Ok(files)
}

/// A name for each file's entity: that of the file without its ending, with as many folders in front as all need to be different.
pub fn entity_names(files: &[PathBuf]) -> Vec<String> {
    let names: Vec<String> = files.iter().map(|path| stem(path)).collect();
    if names.iter().collect::<BTreeSet<_>>().len() == names.len() {
        return names;
    }
    let shared = |folder: &Path| files.iter().all(|file| file.starts_with(folder));
    let above = files.first().map_or(Path::new(""), PathBuf::as_path);
    let above = above.ancestors().skip(1).find(|folder| shared(folder));
    let below = |file: &PathBuf| {
        let path = above
            .and_then(|above| file.strip_prefix(above).ok())
            .unwrap_or(file);
        path.with_extension("").display().to_string()
    };
    files.iter().map(below).collect()
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
    fn distinguishes_entities_of_the_same_name_by_folder() {
        let names = |files: &[&str]| entity_names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["d/x/a.parquet", "d/y/b.parquet"]), ["a", "b"]);
        assert_eq!(names(&["d/x/a.parquet", "d/y/a.parquet"]), ["x/a", "y/a"]);
        assert_eq!(names(&["a.parquet", "y/a.parquet"]), ["a", "y/a"]);
        assert!(names(&[]).is_empty());
    }
}
