//! Logs of other tools as samples: `nvidia-smi --query-gpu=… --format=csv -l`, `nvidia-smi dmon`, `gpustat --json`, and our
//! own CSV. This is how a job that ran without flatout gets analysed.
//!
//! The header decides what a column is; columns nobody knows are ignored and named in the [`Report`]. Logs are read in one
//! pass with constant memory. A row that cannot be read is passed over and counted: nothing in a log makes it fail later.

mod columns;
mod dmon;
mod gpustat;
pub(crate) mod in_order;
pub(crate) mod lines;
pub mod log_csv;
pub(crate) mod number;
mod row;
mod table;
pub(crate) mod time;
pub mod training_log;

use flatout_core::{Explain, Message, explained, message};
use flatout_record::{GpuInfo, Sample};
use lines::LineReader;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Which tool wrote the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    NvidiaSmi,
    Dmon,
    Gpustat,
    Flatout,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::NvidiaSmi => "nvidia-smi --query-gpu",
            Self::Dmon => "nvidia-smi dmon",
            Self::Gpustat => "gpustat --json",
            Self::Flatout => "flatout CSV",
        }
    }
}

/// What a log cannot tell by itself.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The columns of a log without a header, as given to `--query-gpu=`.
    pub columns: Option<String>,
    /// Seconds between rows, for logs without a time (`dmon` without `-o T`).
    pub interval_s: f64,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            columns: None,
            interval_s: 1.0,
        }
    }
}

/// What was found on the way.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub rows: u64,
    pub samples: u64,
    /// Columns that mean nothing to flatout.
    pub ignored_columns: Vec<String>,
    /// Rows that were passed over.
    pub bad_rows: u64,
    /// The first of them: its line, and what is wrong with it.
    pub first_bad: Option<(u64, Message)>,
    /// Shares above 100% that were clamped.
    pub clamped: u64,
    /// How often the clock went backwards; time goes on there.
    pub backward_steps: u64,
    pub gpus: BTreeMap<u32, GpuInfo>,
    pub versions: BTreeMap<String, String>,
    /// Milliseconds since 1970 at the first row, by the logging machine's own clock taken for UTC.
    pub started_unix_ms: Option<u64>,
}

#[derive(Debug)]
pub enum ImportError {
    Unreadable {
        path: PathBuf,
        source: io::Error,
    },
    Empty {
        path: PathBuf,
    },
    /// No tool's log that flatout knows; with the beginning of its first line.
    Unrecognised {
        path: PathBuf,
        first: String,
    },
    /// Looks like rows of nvidia-smi without a header.
    NoHeader {
        path: PathBuf,
        fields: usize,
    },
    /// `columns` names nothing that flatout knows.
    BadColumns {
        columns: String,
    },
}

impl Explain for ImportError {
    fn message(&self) -> Message {
        match self {
            Self::Unreadable { path, .. } => {
                let path = path.display();
                message!(en: "failed to read `{path}`", zh: "无法读取 `{path}`")
            }
            Self::Empty { path } => {
                let path = path.display();
                message!(en: "`{path}` is empty", zh: "`{path}` 是空文件")
            }
            Self::Unrecognised { path, first } => {
                let path = path.display();
                message!(
                    en: "`{path}` is not a log format that flatout supports; it starts with `{first}`",
                    zh: "`{path}` 不是 flatout 认识的日志；开头是 `{first}`"
                )
            }
            Self::NoHeader { path, fields } => {
                let path = path.display();
                message!(
                    en: "`{path}` has rows of {fields} fields but no header",
                    zh: "`{path}` 每行有 {fields} 个字段，但没有表头"
                )
            }
            Self::BadColumns { columns } => {
                message!(en: "none of the columns `{columns}` is supported", zh: "列 `{columns}` 中没有可识别的列")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Unreadable { .. } => {
                message!(en: "check that the file exists and that you have permission to read it", zh: "请确认文件存在且有读取权限")
            }
            Self::Empty { .. } => message!(
                en: "create one with: nvidia-smi \
                --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1 > \
                gpu.csv",
                zh: "可用以下命令生成：nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1 > gpu.csv"
            ),
            Self::Unrecognised { .. } => message!(
                en: "flatout reads nvidia-smi --query-gpu=… --format=csv, nvidia-smi dmon, gpustat --json, and its own CSV",
                zh: "flatout 支持 nvidia-smi --query-gpu=… --format=csv、nvidia-smi dmon、gpustat --json 以及自身的 CSV"
            ),
            Self::NoHeader { .. } => message!(
                en: "name the columns as nvidia-smi does: --columns timestamp,index,utilization.gpu,…",
                zh: "请按 nvidia-smi 的写法说明各列：--columns timestamp,index,utilization.gpu,…"
            ),
            Self::BadColumns { .. } => message!(
                en: "use nvidia-smi's names: nvidia-smi --help-query-gpu",
                zh: "请使用 nvidia-smi 的列名：nvidia-smi --help-query-gpu"
            ),
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
explained!(ImportError);

/// A log that is about to be read.
pub struct Importer {
    format: Format,
    body: Body,
}

enum Body {
    Table(Box<table::TableReader>),
    Gpustat(Box<gpustat::GpustatReader>),
}

impl Importer {
    pub fn open(path: &Path, options: &ImportOptions) -> Result<Self, ImportError> {
        let unreadable = |source| ImportError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        Self::from_reader(Box::new(file), path, options)
    }

    /// Reads from anything; `path` is what errors call it.
    pub fn from_reader(
        reader: Box<dyn Read + Send>,
        path: &Path,
        options: &ImportOptions,
    ) -> Result<Self, ImportError> {
        let mut lines = LineReader::new(reader);
        let first = loop {
            match lines.next() {
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                Ok(Some(line)) => break line.to_vec(),
                Ok(None) => {
                    return Err(ImportError::Empty {
                        path: path.to_owned(),
                    });
                }
                Err(source) => {
                    return Err(ImportError::Unreadable {
                        path: path.to_owned(),
                        source,
                    });
                }
            }
        };
        let first_line = first.trim_ascii();
        if first_line.starts_with(b"{") {
            let reader = gpustat::GpustatReader::new(lines, first);
            return Ok(Self {
                format: Format::Gpustat,
                body: Body::Gpustat(Box::new(reader)),
            });
        }
        let (format, header) = header(first_line, path, options)?;
        Ok(Self {
            format,
            body: Body::Table(Box::new(table::TableReader::new(
                lines,
                header,
                format,
                options.interval_s,
                first,
            ))),
        })
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Calls `see` with every sample in its turn, in constant memory. The log is read by several threads.
    pub fn each(self, see: impl FnMut(&Sample)) -> Report {
        match self.body {
            Body::Table(reader) => reader.each(see),
            Body::Gpustat(reader) => reader.each(see),
        }
    }
}

impl Report {
    fn bad(&mut self, line: u64, what: Message) {
        self.bad_rows += 1;
        self.first_bad.get_or_insert((line, what));
    }

    /// The file could not be read on behind this line.
    fn broken_off(&mut self, line: u64, error: Option<String>) {
        if let Some(error) = error {
            self.bad(
                line,
                message!(en: "the rest of the file cannot be read: {error}", zh: "文件无法继续读取：{error}"),
            );
        }
    }

    fn ignore(&mut self, columns: &[String]) {
        for name in columns {
            if !self.ignored_columns.contains(name) {
                self.ignored_columns.push(name.clone());
            }
        }
    }
}

/// What the first line says the columns are.
fn header(
    line: &[u8],
    path: &Path,
    options: &ImportOptions,
) -> Result<(Format, columns::Header), ImportError> {
    if line.starts_with(b"#") {
        if let Some(header) = dmon::header(line) {
            return Ok((Format::Dmon, header));
        }
    } else if let Some(header) = columns::own(line) {
        return Ok((Format::Flatout, header));
    } else if let Some(header) = columns::query(line) {
        return Ok((Format::NvidiaSmi, header));
    } else if let Some(columns) = &options.columns {
        let header = columns::query(columns.as_bytes()).ok_or_else(|| ImportError::BadColumns {
            columns: columns.clone(),
        })?;
        return Ok((Format::NvidiaSmi, header.without_line()));
    } else if columns::looks_like_values(line) {
        return Err(ImportError::NoHeader {
            path: path.to_owned(),
            fields: line.split(|byte| *byte == b',').count(),
        });
    }
    Err(ImportError::Unrecognised {
        path: path.to_owned(),
        first: shown(line),
    })
}

/// The beginning of a line, fit to be printed.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(120)]);
    let clean: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    clean.trim().to_owned()
}
