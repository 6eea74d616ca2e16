//! Files that belong together: `name_part1.csv`, `name_part2.csv` … from `name.csv`, from the folder, or from a glob. A part
//! that is missing in the middle or there twice is an error that names it.

use crate::glob::{self, Glob};
use crate::paths::{find_files, list_folder};
use crate::{DataError, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Endings of tables in a folder. A file named by its path may have any ending.
pub const TABLE_ENDINGS: [&str; 16] = [
    "parquet",
    "csv",
    "csv.gz",
    "csv.zst",
    "tsv",
    "tsv.gz",
    "tsv.zst",
    "jsonl",
    "jsonl.gz",
    "jsonl.zst",
    "ndjson",
    "feather",
    "arrow",
    "ipc",
    "npz",
    "npy",
];

/// `log_part12.csv.gz` is part 12 of `log`.
fn part_of(name: &str) -> Option<(&str, u64)> {
    let stem = without_ending(name);
    let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let number = stem[stem.len() - digits..].parse().ok()?;
    let base = stem[..stem.len() - digits].strip_suffix("_part")?;
    Some((base, number))
}

/// The name without `.csv`, `.csv.gz`, `.parquet` …
pub fn without_ending(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    TABLE_ENDINGS
        .iter()
        .filter(|ending| lower.ends_with(&format!(".{ending}")))
        .map(|ending| &name[..name.len() - ending.len() - 1])
        .min_by_key(|stem| stem.len())
        .unwrap_or(name)
}

/// Whether the name ends like a table's.
pub fn has_table_ending(path: &Path) -> bool {
    let name = file_name(path);
    without_ending(&name) != name
}

/// Whether some of the files are numbered parts of a table.
pub fn are_parts(files: &[PathBuf]) -> bool {
    files.iter().any(|file| part_of(&file_name(file)).is_some())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// All files of the table at `path`, in natural order, with complete parts.
pub fn find_tables(path: &Path) -> Result<Vec<PathBuf>> {
    let parts = parts_of(path)?;
    if parts.is_empty() {
        let files = find_files(path, &TABLE_ENDINGS)?;
        // Generated data and recipes of joins keep their description beside the tables; it is not one of them.
        let mut files: Vec<PathBuf> = files
            .into_iter()
            .filter(|file| !file_name(file).ends_with(".json"))
            .collect();
        // Arrays in a folder of tables are something that somebody computed from them.
        let is_array = |file: &PathBuf| file_name(file).to_ascii_lowercase().ends_with(".npy");
        if path.is_dir() && !files.iter().all(is_array) {
            files.retain(|file| !is_array(file));
        }
        // Who names one part or a glob may want just these.
        if path.is_dir() {
            check_parts(&files)?;
        }
        return Ok(files);
    }
    if path.is_file() {
        return Err(DataError::DuplicateShard {
            path: path.to_owned(),
            other: parts[0].clone(),
        });
    }
    check_parts(&parts)?;
    Ok(parts)
}

/// `name_part*.csv` beside `name.csv`.
fn parts_of(path: &Path) -> Result<Vec<PathBuf>> {
    let name = file_name(path);
    let base = without_ending(&name).to_owned();
    if path.is_dir() || base == name || glob::is_pattern(path) {
        return Ok(Vec::new());
    }
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    list_folder(folder, |file| part_of(file).is_some_and(|(stem, _)| stem == base))
}

/// Parts of one name must count up without gaps and without doubles.
fn check_parts(files: &[PathBuf]) -> Result<()> {
    let mut groups: BTreeMap<String, Vec<(u64, &PathBuf)>> = BTreeMap::new();
    for file in files {
        if let Some((base, number)) = part_of(&file_name(file)) {
            groups.entry(base.to_owned()).or_default().push((number, file));
        }
    }
    for parts in groups.values_mut() {
        parts.sort();
        for pair in parts.windows(2) {
            let ((before, first), (number, second)) = (&pair[0], &pair[1]);
            if before == number {
                return Err(DataError::DuplicateShard {
                    path: (*second).clone(),
                    other: (*first).clone(),
                });
            }
            if before + 1 != *number {
                return Err(missing(first, *before, before + 1));
            }
        }
        if let Some(&(number, first)) = parts.first()
            && number > 1
        {
            return Err(missing(first, number, 1));
        }
    }
    Ok(())
}

fn missing(neighbour: &Path, number: u64, wanted: u64) -> DataError {
    let name = file_name(neighbour).replace(&format!("_part{number}."), &format!("_part{wanted}."));
    DataError::MissingShard {
        path: neighbour.with_file_name(name),
        neighbour: neighbour.to_owned(),
    }
}

/// Files of a folder that fit a pattern, as complete shards.
pub fn find_pattern(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let files = match pattern.rsplit_once('/') {
        Some((inner, name)) if !glob::has_signs(inner) => {
            let folder = folder.join(inner);
            if !folder.is_dir() {
                return Ok(Vec::new());
            }
            return find_pattern(&folder, name);
        }
        Some(_) => Glob::parse(pattern)?.find_in(folder)?,
        None => {
            let glob = Glob::parse(pattern)?;
            list_folder(folder, |name| {
                let plain =
                    part_of(name).map(|(base, _)| format!("{base}{}", &name[without_ending(name).len()..]));
                glob.matches(name) || plain.is_some_and(|plain| glob.matches(&plain))
            })?
        }
    };
    check_parts(&files)?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        names
            .iter()
            .for_each(|name| std::fs::write(folder.path().join(name), "a\n1\n").unwrap());
        folder
    }

    fn names(files: &[PathBuf]) -> Vec<String> {
        files.iter().map(|file| file_name(file)).collect()
    }

    #[test]
    fn parts_are_found_from_the_plain_name_and_from_the_folder() {
        let all: Vec<String> = (1..=11).map(|part| format!("log_part{part}.csv")).collect();
        let folder = folder(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(names(&find_tables(&folder.path().join("log.csv")).unwrap()), all);
        assert_eq!(names(&find_tables(folder.path()).unwrap()), all);
        assert_eq!(
            names(&find_tables(&folder.path().join("log_part1*.csv")).unwrap()).len(),
            3
        );
    }

    #[test]
    fn gaps_and_doubles_are_named() {
        let gap = folder(&["log_part1.csv", "log_part3.csv"]);
        let error = find_tables(gap.path()).unwrap_err().to_string();
        assert!(error.contains("log_part2.csv"), "{error}");
        let late = folder(&["log_part2.csv", "log_part3.csv"]);
        assert!(
            find_tables(late.path())
                .unwrap_err()
                .to_string()
                .contains("log_part1.csv")
        );
        let double = folder(&["log_part1.csv", "log_part01.csv"]);
        assert!(
            find_tables(double.path())
                .unwrap_err()
                .to_string()
                .contains("part")
        );
        let both = folder(&["log.csv", "log_part1.csv"]);
        assert!(
            find_tables(&both.path().join("log.csv"))
                .unwrap_err()
                .to_string()
                .contains("log_part1.csv")
        );
        assert!(find_tables(Path::new("/nowhere/x.csv")).is_err());
    }

    #[test]
    fn patterns_see_parts_as_their_base() {
        let folder = folder(&["log_a_part1.csv", "log_a_part2.csv", "log_b.csv", "user.csv"]);
        assert_eq!(names(&find_pattern(folder.path(), "log_?.csv").unwrap()).len(), 3);
        assert_eq!(
            names(&find_pattern(folder.path(), "{log_b,user}.csv").unwrap()),
            ["log_b.csv", "user.csv"]
        );
        std::fs::create_dir(folder.path().join("x")).unwrap();
        std::fs::write(folder.path().join("x/log_part1.csv"), "a\n").unwrap();
        for pattern in ["x/log.csv", "x/log_part[0-9].csv", "**/log_part?.csv"] {
            assert_eq!(
                names(&find_pattern(folder.path(), pattern).unwrap()),
                ["log_part1.csv"],
                "{pattern}"
            );
        }
        assert!(find_pattern(folder.path(), "y/log.csv").unwrap().is_empty());
        assert_eq!(part_of("log_4_22_part10.csv.gz"), Some(("log_4_22", 10)));
        assert_eq!(part_of("log_4_22.csv"), None);
    }
}
