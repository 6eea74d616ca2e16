//! What a prepared file depends on, as one number.

use crate::random::mix;
use crate::{DataError, Result, parallel};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Raised whenever the format or the meaning of loading changes: old files are then simply not found.
const VERSION: u64 = 7;
const SAMPLE_BYTES: u64 = 4096;
/// Files whose blocks are sampled; of more, so many evenly spread ones.
const SAMPLED_FILES: usize = 256;
/// Fewer files are looked at sooner than a second thread is there.
const FILES_A_THREAD: usize = 64;
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

/// Pieces of a block or of a file that are hashed by themselves, so that several threads can share the work.
const PIECE_BYTES: usize = 4 << 20;

/// The hash of a large block, by several threads.
pub fn hash_block(bytes: &[u8]) -> u64 {
    let pieces: Vec<&[u8]> = bytes.chunks(PIECE_BYTES).collect();
    let hashes = parallel::map(pieces.len(), parallel::threads(None), |index| {
        Ok::<_, std::convert::Infallible>(hash_bytes(pieces[index]))
    });
    combine(bytes.len() as u64, &hashes.unwrap_or_default())
}

fn combine(start: u64, hashes: &[u64]) -> u64 {
    hashes
        .iter()
        .fold(mix(start), |state, hash| mix(state.rotate_left(23) ^ hash))
}

/// The key of a data set: its kind, options, and of every source file the path, size, time of change and samples.
pub fn of_sources(source: &Path, kind: &str, options: &str) -> Result<u64> {
    let files = source_files(source)?;
    let mut state = mix(VERSION);
    add(&mut state, kind.as_bytes());
    add(&mut state, options.as_bytes());
    // Files of one folder share its absolute path: asking the system for each would take longer than all the rest.
    let mut folder: Option<(&Path, PathBuf)> = None;
    for (path, stamp) in files.iter().zip(stamps(&files)?) {
        let parent = path.parent().unwrap_or(Path::new(""));
        if folder.as_ref().is_none_or(|(known, _)| *known != parent) {
            let named = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            let absolute = std::fs::canonicalize(named).unwrap_or_else(|_| parent.to_owned());
            add(&mut state, absolute.as_os_str().as_encoded_bytes());
            folder = Some((parent, absolute));
        }
        add(
            &mut state,
            path.file_name().unwrap_or_default().as_encoded_bytes(),
        );
        add(&mut state, &stamp.to_le_bytes());
    }
    Ok(state)
}

/// Size, time of change and samples of each file, as one number each.
fn stamps(files: &[PathBuf]) -> Result<Vec<u64>> {
    let step = files.len().div_ceil(SAMPLED_FILES).max(1);
    let stamp = |index: usize| -> Result<u64> {
        let path = &files[index];
        let metadata = std::fs::metadata(path).map_err(|error| DataError::reading(path, error))?;
        let mut state = 0;
        let facts = [
            metadata.len(),
            metadata.mtime() as u64,
            metadata.mtime_nsec() as u64,
        ];
        facts.iter().for_each(|fact| add(&mut state, &fact.to_le_bytes()));
        if index.is_multiple_of(step) {
            add(&mut state, &sample(path, metadata.len())?);
        }
        Ok(state)
    };
    let threads = parallel::threads(None).min(files.len() / FILES_A_THREAD).max(1);
    let parts = parallel::ranges(files.len(), threads);
    let all = parallel::map(parts.len(), threads, |part| {
        parts[part].clone().map(stamp).collect::<Result<Vec<u64>>>()
    })?;
    Ok(all.concat())
}

/// Every byte of every source file, as one number.
pub fn of_all_bytes(source: &Path) -> Result<u64> {
    let files = source_files(source)?;
    let hashes = parallel::map(files.len(), parallel::threads(None), |index| {
        hash_file(&files[index]).map_err(|error| DataError::reading(&files[index], error))
    })?;
    Ok(combine(files.len() as u64, &hashes))
}

fn hash_file(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut piece, mut hashes, mut length) = (Vec::new(), Vec::new(), 0);
    loop {
        piece.clear();
        let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if read == 0 {
            return Ok(combine(length, &hashes));
        }
        length += read as u64;
        hashes.push(hash_bytes(&piece));
    }
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
        let arrays = crate::shards::find_tables(source)?;
        return Ok(arrays
            .into_iter()
            .chain([labels])
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
        // The listing mostly knows; only a link has to be followed.
        let kind = entry
            .file_type()
            .map_err(|error| DataError::reading(&path, error))?;
        if kind.is_dir() || kind.is_symlink() && path.is_dir() {
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
        let key = |options: &str| of_sources(folder.path(), "t", options).unwrap();
        let first = key("o");
        assert_eq!(first, key("o"));
        assert_ne!(first, key("p"));
        std::fs::write(folder.path().join("b.csv"), "x\n1\n").unwrap();
        let second = key("o");
        assert_ne!(first, second);
        std::fs::write(folder.path().join("b.csv"), "x\n2\n").unwrap();
        assert_ne!(second, key("o"));
        // So many that several threads look at them: any one counts.
        for number in 0..300 {
            std::fs::write(folder.path().join(format!("c{number}.csv")), "x\n1\n").unwrap();
        }
        let many = key("o");
        assert_eq!(many, key("o"));
        for number in [0, 149, 150, 299] {
            let path = folder.path().join(format!("c{number}.csv"));
            std::fs::write(&path, "x\n10\n").unwrap();
            assert_ne!(many, key("o"), "{number}");
            std::fs::remove_file(path).unwrap();
            assert_ne!(many, key("o"), "{number}");
        }
        let bytes = of_all_bytes(folder.path()).unwrap();
        assert_eq!(bytes, of_all_bytes(folder.path()).unwrap());
        std::fs::write(folder.path().join("b.csv"), "x\n3\n").unwrap();
        assert_ne!(bytes, of_all_bytes(folder.path()).unwrap());
    }
}
