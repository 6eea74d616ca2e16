//! The file of one prepared data set: magic, length and checksum of the header, the header as JSON, then blocks of plain numbers, each at
//! the beginning of a page.

use super::key::{hash_block, hash_bytes};
use super::mark;
use super::prepared::Prepared;
use crate::block::{Block, Plain};
use crate::mapping::Mapping;
use flatout_core::error::FileError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"flatout\x01";
const PREFIX_BYTES: usize = 24;
const PAGE_BYTES: usize = 4096;
/// A longer header is damage.
const MAXIMUM_HEADER_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    pub kind: String,
    /// The path it was made from, for people.
    pub source: String,
    pub rows: u64,
    /// Hash of all bytes of the sources, when somebody asked for it.
    #[serde(default)]
    pub source_bytes: Option<u64>,
    /// What the data set has beside blocks: names, sizes.
    pub meta: serde_json::Value,
    pub blocks: Vec<BlockEntry>,
    pub file_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BlockEntry {
    pub name: String,
    pub offset: u64,
    pub bytes: u64,
    pub checksum: u64,
}

/// An open file whose bytes have been checked.
pub struct CacheFile {
    mapping: Arc<Mapping>,
    pub header: Header,
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl CacheFile {
    /// Maps the file and checks it: all of it where it has no mark, or where that is asked for.
    pub fn open(path: &Path, whole: bool) -> io::Result<Self> {
        let (header, checksum) = Self::read_checked(path)?;
        let file = File::open(path)?;
        let known = !whole && mark::is_set(&file.metadata()?, checksum);
        let mapping = Mapping::new(&file)?;
        for block in &header.blocks {
            let range = block.offset as usize..block.offset.saturating_add(block.bytes) as usize;
            let bytes = mapping
                .bytes()
                .get(range)
                .ok_or_else(|| damaged("a block lies outside the file"))?;
            if !known && hash_block(bytes) != block.checksum {
                return Err(damaged("a block has changed"));
            }
        }
        // Also says when it was last used. Nothing is lost where it cannot be set.
        let _ = mark::set(&file, checksum);
        Ok(Self {
            mapping: Arc::new(mapping),
            header,
        })
    }

    /// The header alone, with the file's length checked against it.
    pub fn read_header(path: &Path) -> io::Result<Header> {
        Self::read_checked(path).map(|(header, _)| header)
    }

    /// The header with its checksum.
    fn read_checked(path: &Path) -> io::Result<(Header, u64)> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut prefix = [0; PREFIX_BYTES];
        file.read_exact(&mut prefix)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| prefix[at + index]));
        let (header_bytes, checksum) = (number(8), number(16));
        if &prefix[..8] != MAGIC || header_bytes > MAXIMUM_HEADER_BYTES.min(length) {
            return Err(damaged("not a prepared data set"));
        }
        let mut text = vec![0; header_bytes as usize];
        file.read_exact(&mut text)?;
        if hash_bytes(&text) != checksum {
            return Err(damaged("its header has changed"));
        }
        let header: Header = serde_json::from_slice(&text).map_err(io::Error::other)?;
        if header.file_bytes != length {
            return Err(damaged("it is cut short"));
        }
        Ok((header, checksum))
    }

    /// A block by name; `None` when it is not there or does not fit the type.
    pub fn block<T: Plain>(&self, name: &str) -> Option<Block<T>> {
        let entry = self.header.blocks.iter().find(|block| block.name == name)?;
        Block::mapped(&self.mapping, entry.offset as usize, entry.bytes as usize)
    }
}

/// The bytes of plain numbers.
pub fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers have no padding; the length is theirs in bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}

/// Writes the data set to a file of another name and renames it.
pub fn write<T: Prepared>(
    path: &Path,
    source: &Path,
    source_bytes: Option<u64>,
    value: &T,
) -> Result<(), FileError> {
    if let Some(folder) = path.parent() {
        flatout_core::files::sweep(folder);
    }
    let name = flatout_core::leftover::name(path.file_name().unwrap_or_default());
    let temporary = path.with_file_name(name);
    let result =
        write_new(&temporary, source, source_bytes, value).and_then(|()| std::fs::rename(&temporary, path));
    result.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        FileError::writing(path, error)
    })
}

fn write_new<T: Prepared>(
    path: &Path,
    source: &Path,
    source_bytes: Option<u64>,
    value: &T,
) -> io::Result<()> {
    let blocks = value.blocks();
    let source = std::fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
    let mut header = Header {
        kind: T::KIND.into(),
        source: source.display().to_string(),
        rows: value.rows(),
        source_bytes,
        meta: value.meta(),
        blocks: blocks
            .iter()
            .map(|(name, bytes)| BlockEntry {
                name: name.clone(),
                offset: u64::MAX >> 1,
                bytes: bytes.len() as u64,
                checksum: hash_block(bytes),
            })
            .collect(),
        file_bytes: u64::MAX >> 1,
    };
    // With the largest offsets the header is as long as it can get; the real one is filled up with spaces.
    let room = serde_json::to_vec(&header)?.len();
    let mut offset = (PREFIX_BYTES + room).next_multiple_of(PAGE_BYTES);
    for (entry, (_, bytes)) in header.blocks.iter_mut().zip(&blocks) {
        entry.offset = offset as u64;
        offset = (offset + bytes.len()).next_multiple_of(PAGE_BYTES);
    }
    header.file_bytes = offset as u64;
    let mut text = serde_json::to_vec(&header)?;
    text.resize(room, b' ');
    let mut file = io::BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(MAGIC)?;
    file.write_all(&(text.len() as u64).to_le_bytes())?;
    let checksum = hash_bytes(&text);
    file.write_all(&checksum.to_le_bytes())?;
    file.write_all(&text)?;
    let mut written = PREFIX_BYTES + text.len();
    let padding = [0; PAGE_BYTES];
    for (_, bytes) in &blocks {
        file.write_all(&padding[..written.next_multiple_of(PAGE_BYTES) - written])?;
        file.write_all(bytes)?;
        written = written.next_multiple_of(PAGE_BYTES) + bytes.len();
    }
    file.write_all(&padding[..written.next_multiple_of(PAGE_BYTES) - written])?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_data()?;
    let _ = mark::set(&file, checksum);
    Ok(())
}
