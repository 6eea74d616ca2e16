//! What can be wrong with data, said so that the person finds the place.

mod wording;

use crate::formats::csv::number::is_missing;
use crate::load::policies::in_flag;
use crate::table::{BadRow, Problem};
use flatout_core::error::FileError;
use flatout_core::{Explain, Message, explained, message, shell};
use std::path::PathBuf;
pub(crate) use wording::is_infinite;
use wording::{bad_row, not_a_number, other_columns};

pub type Result<T> = std::result::Result<T, DataError>;

#[derive(Debug)]
pub enum DataError {
    File(FileError),
    /// Nothing that flatout can read at this path.
    NoFiles {
        path: PathBuf,
        wanted: Message,
    },
    /// A file of a known format that cannot be decoded.
    Corrupt {
        path: PathBuf,
        format: &'static str,
        reason: String,
    },
    /// A file that was written to, or replaced, while it was read.
    Changed {
        path: PathBuf,
    },
    NoSuchColumn {
        path: PathBuf,
        column: String,
        columns: Vec<String>,
    },
    /// A column whose values cannot serve as what they are asked to be.
    ColumnKind {
        path: PathBuf,
        column: String,
        found: String,
        wanted: Message,
    },
    /// A missing, NaN or infinite value in a column that must not have one. Rows count from 1.
    NotFinite {
        path: PathBuf,
        row: u64,
        column: String,
        value: String,
    },
    /// A file whose columns are not those of the first one.
    OtherColumns {
        path: PathBuf,
        first: PathBuf,
        missing: Vec<String>,
        extra: Vec<String>,
    },
    NoRows {
        path: PathBuf,
    },
    /// Bad rows were left out until none was left.
    AllSkipped {
        path: PathBuf,
        first: Box<BadRow>,
    },
    /// The same, where it is their label that they lack.
    NoLabels {
        path: PathBuf,
        column: String,
    },
    /// A row of a text file that cannot be read.
    BadRow(BadRow),
    /// A row without its label.
    NoLabel(BadRow),
    /// A row of a table of pictures that lacks the file or a label.
    PictureRow(BadRow),
    UnclosedQuote {
        path: PathBuf,
        line: u64,
    },
    /// A part in the middle is not there.
    MissingShard {
        path: PathBuf,
        neighbour: PathBuf,
    },
    /// Two files hold the same part.
    DuplicateShard {
        path: PathBuf,
        other: PathBuf,
    },
    /// A file of a format that is known and not read.
    OtherFormat {
        path: PathBuf,
        format: &'static str,
        /// Makes a Parquet file of it.
        python: String,
    },
    /// A text file whose names are in another encoding.
    NotUtf8 {
        path: PathBuf,
    },
    DuplicateColumn {
        path: PathBuf,
        column: String,
    },
    /// Rows of one entity must be in the order of time.
    Unordered {
        path: PathBuf,
        row: u64,
        column: String,
    },
    /// No entity is long enough for one window.
    NoWindows {
        sequence_length: usize,
        horizon: usize,
        longest: usize,
    },
    TooLarge {
        what: &'static str,
        count: u64,
    },
    /// A pattern of file names that cannot be understood.
    Pattern {
        pattern: String,
        reason: Message,
    },
    /// A word that is no policy for reading.
    Policy {
        setting: &'static str,
        value: String,
        expected: Message,
    },
    /// A setting that makes no sense; the message says which and why.
    Setting(Message),
}

impl From<FileError> for DataError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl DataError {
    pub(crate) fn reading(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File(FileError::reading(path, source))
    }

    pub(crate) fn writing(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File(FileError::writing(path, source))
    }
}

impl Explain for DataError {
    fn message(&self) -> Message {
        match self {
            Self::File(error) => error.message(),
            Self::NoFiles { path, wanted } => {
                let (path, en, zh) = (path.display(), &wanted.en, &wanted.zh);
                Message {
                    en: format!("found no {en} at `{path}`"),
                    zh: format!("`{path}` 处没有找到{zh}"),
                }
            }
            Self::Corrupt { path, format, reason } => {
                let path = path.display();
                message!(en: "`{path}` is not a readable {format} file: {reason}", zh: "`{path}` 不是可读的 {format} 文件：{reason}")
            }
            Self::Changed { path } => {
                let path = path.display();
                message!(en: "`{path}` changed while it was read", zh: "`{path}` 在读取过程中被修改")
            }
            Self::NoSuchColumn { path, column, .. } => {
                let path = path.display();
                message!(en: "`{path}` has no column `{column}`", zh: "`{path}` 中没有列 `{column}`")
            }
            Self::ColumnKind {
                path,
                column,
                found,
                wanted,
            } => {
                let (path, en, zh) = (path.display(), &wanted.en, &wanted.zh);
                Message {
                    en: format!("column `{column}` of `{path}` contains {found}, but must be {en}"),
                    zh: format!("`{path}` 的列 `{column}` 存的是 {found}，应为{zh}"),
                }
            }
            Self::NotFinite {
                path,
                row,
                column,
                value,
            } => {
                let path = path.display();
                message!(
                    en: "row {row} of `{path}`: column `{column}` is {value}",
                    zh: "`{path}` 第 {row} 行：列 `{column}` 的值是 {value}"
                )
            }
            Self::OtherColumns {
                path,
                first,
                missing,
                extra,
            } => other_columns(path, first, missing, extra),
            Self::NoRows { path } => {
                let path = path.display();
                message!(en: "`{path}` has no rows", zh: "`{path}` 没有数据行")
            }
            Self::AllSkipped { path, first } => {
                let (path, first) = (path.display(), bad_row(first));
                Message {
                    en: format!("every row of `{path}` is skipped; the first: {}", first.en),
                    zh: format!("`{path}` 的所有行都被跳过；第一处：{}", first.zh),
                }
            }
            Self::NoLabels { path, column } => {
                let path = path.display();
                message!(en: "no row of `{path}` has a label (column `{column}`)", zh: "`{path}` 中没有一行有标签（列 `{column}`）")
            }
            Self::BadRow(row) | Self::NoLabel(row) | Self::PictureRow(row) => bad_row(row),
            Self::UnclosedQuote { path, line } => {
                let path = path.display();
                message!(
                    en: "a quote opened on line {line} of `{path}` is never closed",
                    zh: "`{path}` 第 {line} 行起的引号没有闭合"
                )
            }
            Self::MissingShard { path, neighbour } => {
                let (path, neighbour) = (path.display(), neighbour.display());
                message!(
                    en: "`{path}` is missing, although `{neighbour}` exists",
                    zh: "缺少分片 `{path}`（`{neighbour}` 存在）"
                )
            }
            Self::DuplicateShard { path, other } => {
                let (path, other) = (path.display(), other.display());
                message!(en: "`{path}` and `{other}` are copies of the same part", zh: "`{path}` 与 `{other}` 是同一个分片")
            }
            Self::OtherFormat { path, format, .. } => {
                let path = path.display();
                message!(en: "`{path}` is a {format} file, which flatout cannot read", zh: "`{path}` 是 {format} 文件，flatout 不读取这种格式")
            }
            Self::NotUtf8 { path } => {
                let path = path.display();
                message!(en: "`{path}` is not UTF-8: its column names cannot be read", zh: "`{path}` 不是 UTF-8 编码：无法读取列名")
            }
            Self::DuplicateColumn { path, column } => {
                let path = path.display();
                message!(en: "`{path}` has two columns named `{column}`", zh: "`{path}` 中有两列同名：`{column}`")
            }
            Self::Unordered { path, row, column } => {
                let path = path.display();
                message!(
                    en: "row {row} of `{path}` is earlier than the previous row (column `{column}`)",
                    zh: "`{path}` 第 {row} 行的时间早于上一行（列 `{column}`）"
                )
            }
            Self::NoWindows {
                sequence_length,
                horizon,
                longest,
            } => message!(
                en: "no window fits: it needs {sequence_length} rows plus a horizon of {horizon}, but the \
                longest entity in this split has {longest} rows",
                zh: "没有可用的窗口：需要 {sequence_length} 行加 {horizon} 行预测步长，而该划分中最长的序列只有 {longest} 行"
            ),
            Self::TooLarge { what, count } => {
                message!(en: "{count} {what} are more than one dataset can hold", zh: "{what} 数量 {count} 超出单个数据集的上限")
            }
            Self::Pattern { pattern, reason } => {
                let (en, zh) = (&reason.en, &reason.zh);
                Message {
                    en: format!("`{pattern}` is not a valid file name pattern: {en}"),
                    zh: format!("`{pattern}` 不是有效的文件名模式：{zh}"),
                }
            }
            Self::Policy {
                setting,
                value,
                expected,
            } => Message {
                en: format!("`{setting}` is `{value}`; expected {}", expected.en),
                zh: format!("`{setting}` 的值为 `{value}`；应为{}", expected.zh),
            },
            Self::Setting(message) => message.clone(),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::NoSuchColumn { columns, .. } => {
                let list = columns.join(", ");
                Some(message!(en: "its columns are: {list}", zh: "它的列有：{list}"))
            }
            Self::NotFinite { column, value, .. } => Some(not_a_number(column, value)),
            Self::BadRow(BadRow {
                problem: Problem::Value { column, value, .. },
                ..
            }) if is_missing(value.as_bytes()) || is_infinite(value) => Some(not_a_number(column, value)),
            Self::BadRow(BadRow {
                problem: Problem::Value { column, .. },
                ..
            }) => {
                let category = in_flag(column, "category");
                Some(message!(
                    en: "fix the file, skip such rows with `--bad-rows skip`, or read the column as another \
                    type: `--column-type {category}` (or ignore)",
                    zh: "请修正文件；或训练时用 `--bad-rows skip` 跳过这样的行；或换一种方式读取该列：`--column-type {category}`（或 ignore）"
                ))
            }
            Self::OtherFormat { python, .. } => {
                let python = shell::word(python);
                Some(message!(en: "convert it: python -c {python}", zh: "可以转换：python -c {python}"))
            }
            Self::NotUtf8 { path } => {
                let new = shell::word(&path.with_extension("utf8.csv").display().to_string());
                let path = shell::word(&path.display().to_string());
                Some(message!(
                    en: "name its encoding, such as `--encoding gbk`, or convert it to UTF-8: `iconv -f GBK -t UTF-8 {path} > {new}`",
                    zh: "请指定编码，例如 `--encoding gbk`；或转换为 UTF-8：`iconv -f GBK -t UTF-8 {path} > {new}`"
                ))
            }
            Self::NoLabel(_) => Some(message!(
                en: "a row without a label cannot be used for training; `--bad-rows skip` skips such rows",
                zh: "没有标签的行无法用于学习；`--bad-rows skip` 可跳过这样的行"
            )),
            Self::PictureRow(_) => Some(message!(
                en: "every row of this table needs a file and its labels: fix the row, or remove it",
                zh: "该表的每一行都需要文件名和标签：请修正这一行，或将其删除"
            )),
            Self::NoLabels { .. } => Some(message!(
                en: "is the label another column? Name it with `--label COLUMN`",
                zh: "标签是否在另一列？用 `--label 列名` 指定"
            )),
            Self::BadRow(_) => Some(message!(
                en: "fix the file, or skip such rows with `--bad-rows skip`",
                zh: "请修正文件，或训练时用 `--bad-rows skip` 跳过这样的行"
            )),
            Self::NoWindows { .. } => Some(message!(
                en: "use a shorter sequence length, or make this split larger",
                zh: "请缩短序列长度，或增大该划分的比例"
            )),
            Self::Changed { .. } => Some(message!(
                en: "try again when nothing writes to the file, or read a copy",
                zh: "请在没有程序写入该文件时重试，或读取它的副本"
            )),
            Self::DuplicateShard { .. } => Some(message!(en: "remove one of them", zh: "请删除其中一个")),
            Self::Unordered { .. } => Some(message!(en: "sort the file by time", zh: "请先按时间排序该文件")),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(DataError);
