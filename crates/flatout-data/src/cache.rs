//! The prepared cache: a data set as it lies in memory, in one file, mapped back at the next start.
//!
//! A file is named by a key of everything it depends on: the options, and of each source file the path, size, time of change and sampled
//! blocks. With `verify_sources` all bytes of the sources must be those it was made from, too. It is written beside its place and renamed, so it is whole or absent; its
//! length and header are checked when it is read, and every block unless nobody has written to it since that was done (`mark.rs`). A file that
//! fails the check is made again.

pub mod file;
pub mod key;
mod mark;
pub mod prepared;

use crate::dataset::{Images, Panel, Tabular};
use crate::{
    DataError, ImageOptions, PanelOptions, Result, TabularOptions, load_images, load_panel, load_tabular,
};
use file::CacheFile;
use flatout_core::error::FileError;
use prepared::Prepared;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const ENDING: &str = "flatout";

/// Where prepared data lie and how sources are compared.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// Compare all bytes of the sources, not samples only.
    pub verify_sources: bool,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheUse {
    Hit(PathBuf),
    /// Loaded from the sources and stored.
    Stored(PathBuf),
    /// Loaded from the sources; storing failed for this reason (a full disk, a read-only folder).
    NotStored(String),
}

/// One prepared data set on disk.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Entry {
    pub path: PathBuf,
    pub kind: String,
    pub source: String,
    pub size_bytes: u64,
    pub rows: u64,
    /// Seconds since it was last written or used; `None` when the clock says the future.
    pub age_seconds: Option<u64>,
    /// False for a file that cannot be used: cut short, or of another version.
    pub intact: bool,
}

impl Cache {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            verify_sources: false,
        }
    }

    /// `$FLATOUT_CACHE`, else `$XDG_CACHE_HOME/flatout/prepared`, else `~/.cache/flatout/prepared`.
    pub fn default_folder() -> PathBuf {
        let named = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        named("FLATOUT_CACHE")
            .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("flatout/prepared")))
            .or_else(|| named("HOME").map(|home| home.join(".cache/flatout/prepared")))
            .unwrap_or_else(|| std::env::temp_dir().join("flatout/prepared"))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The data set for `source` under `options` (any text that names all of them), from the cache or by `load`.
    pub fn get<T: Prepared>(
        &self,
        source: &Path,
        options: &str,
        load: impl FnOnce() -> Result<T>,
    ) -> Result<(T, CacheUse)> {
        let identity = || -> Result<(u64, Option<u64>)> {
            let bytes = self.verify_sources.then(|| key::of_all_bytes(source));
            Ok((key::of_sources(source, T::KIND, options)?, bytes.transpose()?))
        };
        let before = identity()?;
        let (key, source_bytes) = before;
        let path = self.folder.join(format!("{key:016x}.{ENDING}"));
        if let Ok(file) = CacheFile::open(&path, self.verify_sources)
            && (source_bytes.is_none() || source_bytes == file.header.source_bytes)
            && let Some(value) = T::restore(&file)
        {
            return Ok((value, CacheUse::Hit(path)));
        }
        let value = load()?;
        // What was read must be what the key says: a source that changed meanwhile is not stored under the old key.
        if identity()? != before {
            return Ok((
                value,
                CacheUse::NotStored("the files changed while they were read".into()),
            ));
        }
        let stored = std::fs::create_dir_all(&self.folder)
            .map_err(|error| FileError::writing(&self.folder, error))
            .and_then(|()| file::write(&path, source, source_bytes, &value));
        Ok(match stored {
            Ok(()) => (value, CacheUse::Stored(path)),
            Err(error) => {
                let cause = error.source.to_string();
                (value, CacheUse::NotStored(format!("{error}: {cause}")))
            }
        })
    }

    pub fn panel(&self, path: &Path, options: &PanelOptions) -> Result<(Panel, CacheUse)> {
        let named = PanelOptions {
            threads: None,
            ..options.clone()
        };
        self.get(path, &format!("{named:?}"), || load_panel(path, options))
    }

    pub fn tabular(&self, path: &Path, options: &TabularOptions) -> Result<(Tabular, CacheUse)> {
        let named = TabularOptions {
            threads: None,
            ..options.clone()
        };
        self.get(path, &format!("{named:?}"), || load_tabular(path, options))
    }

    pub fn images(&self, path: &Path, options: &ImageOptions) -> Result<(Images, CacheUse)> {
        let named = ImageOptions {
            threads: None,
            ..options.clone()
        };
        self.get(path, &format!("{named:?}"), || load_images(path, options))
    }

    /// Everything in the folder, newest first.
    pub fn list(&self) -> Result<Vec<Entry>> {
        if !self.folder.is_dir() {
            return Ok(Vec::new());
        }
        let paths = crate::paths::list_folder(&self.folder, |name| name.ends_with(&format!(".{ENDING}")))?;
        let mut entries: Vec<Entry> = paths.into_iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.age_seconds);
        Ok(entries)
    }

    /// Removes entries last used longer ago than `older_than_seconds`, and all that are not intact. Returns what was removed.
    pub fn clean(&self, older_than_seconds: u64) -> Result<Vec<Entry>> {
        let (removed, _) = self.list()?.into_iter().partition::<Vec<_>, _>(|entry| {
            !entry.intact || entry.age_seconds.unwrap_or(0) >= older_than_seconds
        });
        for entry in &removed {
            std::fs::remove_file(&entry.path).map_err(|error| DataError::writing(&entry.path, error))?;
        }
        Ok(removed)
    }
}

fn entry(path: PathBuf) -> Entry {
    let metadata = std::fs::metadata(&path).ok();
    let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
    let header = CacheFile::read_header(&path).ok();
    Entry {
        kind: header
            .as_ref()
            .map_or_else(String::new, |header| header.kind.clone()),
        source: header
            .as_ref()
            .map_or_else(String::new, |header| header.source.clone()),
        rows: header.as_ref().map_or(0, |header| header.rows),
        size_bytes: metadata.map_or(0, |metadata| metadata.len()),
        age_seconds: modified
            .and_then(|time| SystemTime::now().duration_since(time).ok())
            .map(|age| age.as_secs()),
        intact: header.is_some(),
        path,
    }
}
