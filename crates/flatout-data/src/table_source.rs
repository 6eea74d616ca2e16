//! A table on disk, whatever its format: files, names and types, ready to be read into a [`Layout`].

use crate::formats::csv::{self, CsvOptions, CsvSchema};
use crate::formats::encoding::Encoding;
use crate::formats::parquet::ParquetFile;
use crate::formats::{npy_table, parquet_table};
use crate::stamps::Stamps;
use crate::table::{BadRows, ColumnType, Layout, TableRead};
use crate::{DataError, Result, parallel, shards};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    pub bad_rows: BadRows,
    /// Infinite values count as missing ones, instead of making their row a bad one.
    pub infinite_is_missing: bool,
    pub threads: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct TableSource {
    pub files: Vec<PathBuf>,
    pub names: Vec<String>,
    pub types: Vec<ColumnType>,
    format: Format,
    stamps: Stamps,
}

#[derive(Debug, Clone)]
enum Format {
    /// Text, and everything that is read as the text it would be.
    Csv {
        delimiter: u8,
        encoding: Encoding,
    },
    Parquet,
    Npy,
}

impl TableSource {
    /// Finds the files at `path` and infers their schema.
    pub fn open(path: &Path, limit: Option<usize>, threads: Option<usize>) -> Result<Self> {
        Self::open_as(path, limit, threads, Encoding::default())
    }

    /// The same for text in another encoding.
    pub fn open_as(
        path: &Path,
        limit: Option<usize>,
        threads: Option<usize>,
        encoding: Encoding,
    ) -> Result<Self> {
        let mut files = shards::find_tables(path)?;
        files.truncate(limit.unwrap_or(usize::MAX).max(1));
        Self::of_files(files, threads, encoding)
    }

    pub fn of_files(files: Vec<PathBuf>, threads: Option<usize>, encoding: Encoding) -> Result<Self> {
        let threads = parallel::threads(threads);
        let stamps = Stamps::take(&files)?;
        let ends = |path: &PathBuf, with: &str| {
            path.extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case(with))
        };
        let parquet = |path: &PathBuf| ends(path, "parquet");
        if files.iter().all(|path| ends(path, "npy")) {
            let files = npy_table::without_labels(files);
            let (names, types) = npy_table::schema(&files)?;
            return Ok(Self {
                files,
                names,
                types,
                format: Format::Npy,
                stamps,
            });
        }
        if files.iter().all(parquet) {
            let (names, types) = parquet_table::schema(&files, threads)?;
            return Ok(Self {
                files,
                names,
                types,
                format: Format::Parquet,
                stamps,
            });
        }
        if let Some(other) = files.iter().find(|path| parquet(path) || ends(path, "npy")) {
            return Err(DataError::Corrupt {
                path: other.clone(),
                format: "CSV",
                reason: "it lies among CSV files; a table has one format".into(),
            });
        }
        let CsvSchema {
            delimiter,
            names,
            types,
            ..
        } = csv::infer(&files, None, threads, encoding)?;
        Ok(Self {
            files,
            names,
            types,
            format: Format::Csv { delimiter, encoding },
            stamps,
        })
    }

    pub fn format_name(&self) -> &'static str {
        match self.format {
            Format::Csv { .. } => match self.ending().as_str() {
                "feather" | "arrow" | "ipc" | "arrows" => "Arrow IPC",
                "npz" => "NumPy",
                "jsonl" | "ndjson" => "JSON lines",
                _ => "CSV",
            },
            Format::Parquet => "Parquet",
            Format::Npy => "NumPy",
        }
    }

    /// Of the first file.
    fn ending(&self) -> String {
        let ending = self.files.first().and_then(|path| path.extension());
        ending.unwrap_or_default().to_string_lossy().to_ascii_lowercase()
    }

    /// Whether types are guessed from samples of text.
    pub fn is_text(&self) -> bool {
        matches!(self.format, Format::Csv { .. })
    }

    pub fn column(&self, name: &str) -> Result<usize> {
        self.names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| DataError::NoSuchColumn {
                path: self.files[0].clone(),
                column: name.to_owned(),
                columns: self.names.clone(),
            })
    }

    /// Reads all rows. Files that changed since they were opened are an error, whatever was read.
    pub fn read(&self, layout: &Layout, options: &ReadOptions) -> Result<TableRead> {
        let read = self.read_files(layout, options);
        self.stamps.check()?;
        read
    }

    fn read_files(&self, layout: &Layout, options: &ReadOptions) -> Result<TableRead> {
        match self.format {
            Format::Csv { delimiter, encoding } => {
                let schema = CsvSchema {
                    delimiter,
                    names: self.names.clone(),
                    types: self.types.clone(),
                    encoding,
                };
                let options = CsvOptions {
                    bad_rows: options.bad_rows,
                    infinite_is_missing: options.infinite_is_missing,
                    threads: options.threads,
                    block_bytes: None,
                };
                csv::read(&self.files, &schema, layout, &options)
            }
            Format::Parquet => parquet_table::read(&self.files, &self.names, layout, options),
            Format::Npy => npy_table::read(&self.files, layout, options),
        }
    }

    /// How much memory a file's rows take, at most.
    pub fn decoded_bytes(&self, file: usize, row_bytes: usize) -> Result<usize> {
        let path = &self.files[file];
        let rows = match self.format {
            Format::Parquet => Some(ParquetFile::open(path)?.rows()),
            Format::Npy => npy_table::rows(path),
            Format::Csv { .. } => None,
        };
        if let Some(rows) = rows {
            return Ok(rows.saturating_mul(row_bytes));
        }
        let size = std::fs::metadata(path).map_err(|error| DataError::reading(path, error))?;
        let ends = |ending: &str| {
            path.extension()
                .is_some_and(|end| end.eq_ignore_ascii_case(ending))
        };
        // A value of four bytes has at least a digit and a comma as text; packed text grows by ten at most, in earnest.
        let endings = ["gz", "zst", "feather", "arrow", "ipc", "npz"];
        let packed = if endings.into_iter().any(ends) { 10 } else { 1 };
        Ok((size.len() as usize).saturating_mul(2 * packed))
    }

    /// How many rows there are if that is known without reading them.
    pub fn rows_in_footers(&self) -> Option<usize> {
        match self.format {
            Format::Csv { .. } => None,
            Format::Parquet => self
                .files
                .iter()
                .map(|path| ParquetFile::open(path).ok().map(|file| file.rows()))
                .sum::<Option<usize>>(),
            Format::Npy => self.files.iter().map(|path| npy_table::rows(path)).sum(),
        }
    }
}
