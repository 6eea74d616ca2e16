//! What a prepared file depends on, as one number.

use crate::random::mix;
use crate::{DataError, Result};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Raised whenever the format or the meaning of loading changes: old files are then simply not found.
const VERSION: u64 = 1;
const SAMPLE_BYTES: u64 = 4096;
/// Files whose blocks are sampled; of more, so many evenly spread ones.
const SAMPLED_FILES: usize = 256;
const MAXIMUM_DEPTH: usize = 4;

/// A fast hash for telling damage and change, not for security: four lanes of multiply and rotate.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    const PRIMES: [u64; 4] = [
        0x9E37_79B1_85EB_CA87,
        0xC2B2_AE3D_27D4_EB4F,
        0x1656_67B1_9E37_79F9,
        0x27D4_EB2F_1656_67C5,
    ];
    let mut lanes = PRIMES;
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let mut word = [0; 8];
            word.copy_from_slice(&chunk[index * 8..index * 8 + 8]);
            *lane = (*lane ^ u64::from_le_bytes(word))
                .wrapping_mul(PRIMES[index])
                .rotate_left(31);
        }
    }
    let tail = chunks
        .remainder()
        .iter()
        .fold(bytes.len() as u64, |state, &byte| mix(state ^ u64::from(byte)));
    lanes
        .iter()
        .fold(tail, |state, lane| mix(state.rotate_left(17) ^ lane))
}

fn add(state: &mut u64, bytes: &[u8]) {
    *state = mix(state.rotate_left(23) ^ hash_bytes(bytes));
}

/// The key of a data set: its kind, options, and every source file.
pub fn of_sources(source: &Path, kind: &str, options: &str, all_bytes: bool) -> Result<u64> {
    let files = source_files(source)?;
    let mut state = mix(VERSION);
    add(&mut state, kind.as_bytes());
    add(&mut state, options.as_bytes());
    let step = files.len().div_ceil(SAMPLED_FILES).max(1);
    for (index, path) in files.iter().enumerate() {
        let metadata = std::fs::metadata(path).map_err(|error| DataError::reading(path, error))?;
        let absolute = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        add(&mut state, absolute.as_os_str().as_encoded_bytes());
        let facts = [
            metadata.len(),
            metadata.mtime() as u64,
            metadata.mtime_nsec() as u64,
        ];
        facts.iter().for_each(|fact| add(&mut state, &fact.to_le_bytes()));
        if all_bytes {
            let bytes = std::fs::read(path).map_err(|error| DataError::reading(path, error))?;
            add(&mut state, &bytes);
        } else if index % step == 0 {
            add(&mut state, &sample(path, metadata.len())?);
        }
    }
    Ok(state)
}

/// The beginning, the middle and the end.
fn sample(path: &Path, length: u64) -> Result<Vec<u8>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let mut bytes = vec![0; 3 * SAMPLE_BYTES as usize];
        let places = [0, length / 2, length.saturating_sub(SAMPLE_BYTES)];
        for (place, part) in places
            .into_iter()
            .zip(bytes.chunks_exact_mut(SAMPLE_BYTES as usize))
        {
            file.read_at(part, place)?;
        }
        Ok(bytes)
    };
    read().map_err(|error| DataError::reading(path, error))
}

/// The files a source consists of: a file with its shards, the files of a glob, or all files below a folder.
fn source_files(source: &Path) -> Result<Vec<PathBuf>> {
    if source.is_dir() {
        let mut files = Vec::new();
        walk(source, MAXIMUM_DEPTH, &mut files)?;
        files.sort();
        return Ok(files);
    }
    if source.extension().is_some_and(|ending| ending == "npy") {
        let labels = source.with_file_name("labels.npy");
        return Ok([source.to_owned(), labels]
            .into_iter()
            .filter(|path| path.exists())
            .collect());
    }
    crate::shards::find_tables(source)
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| DataError::reading(folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| DataError::reading(folder, error))?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            if depth > 1 {
                walk(&path, depth - 1, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_changes_the_hash() {
        let bytes: Vec<u8> = (0..100).collect();
        let hash = hash_bytes(&bytes);
        for place in 0..100 {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert_ne!(hash_bytes(&other), hash, "{place}");
        }
        assert_ne!(hash_bytes(&bytes[..99]), hash);
        assert_ne!(hash_bytes(&[0; 32]), hash_bytes(&[0; 64]));
    }

    #[test]
    fn the_key_follows_the_sources_and_the_options() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x\n1\n").unwrap();
        let key = |options: &str| of_sources(folder.path(), "t", options, false).unwrap();
        let first = key("o");
        assert_eq!(first, key("o"));
        assert_ne!(first, key("p"));
        std::fs::write(folder.path().join("b.csv"), "x\n1\n").unwrap();
        let second = key("o");
        assert_ne!(first, second);
        std::fs::write(folder.path().join("b.csv"), "x\n2\n").unwrap();
        assert_ne!(second, key("o"));
    }
}
