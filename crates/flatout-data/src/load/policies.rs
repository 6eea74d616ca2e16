//! How values are read, as a person says it: types that inference would guess otherwise, what becomes of missing and infinite values
//! and of rows that cannot be read. What is not said is an error.

use super::missing::Missing;
use crate::formats::encoding::Encoding;
use crate::table::{BadRows, ColumnType};
use crate::{DataError, Result};
use flatout_core::{Message, message, shell};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    /// Of every numeric column without one of its own; what a recipe says, else an error, when absent.
    pub missing: Option<Missing>,
    pub missing_by_column: Vec<(String, Missing)>,
    pub bad_rows: BadRows,
    /// Infinite values count as missing ones, instead of making their row a bad one.
    pub infinite_is_missing: bool,
    pub types: Vec<(String, ColumnType)>,
    /// Columns that are not learnt from.
    pub ignored: Vec<String>,
    /// Of text files.
    pub encoding: Encoding,
}

/// The same as it is written in flags and files; nothing written is the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written<'a> {
    /// `mean`, `price=zero`, or several with commas between them; a name with a comma stands in quotes ([`quoted`]).
    pub missing: &'a str,
    /// `error` or `skip`.
    pub bad_rows: &'a str,
    /// `error` or `missing`.
    pub infinite: &'a str,
    /// `user_id=category`, or several with commas between them; `ignore` is a type, too.
    pub column_type: &'a str,
    /// `gbk`; empty for UTF-8.
    pub encoding: &'a str,
}

pub const BAD_ROWS: &[&str] = &["error", "skip"];
pub const INFINITE: &[&str] = &["error", "missing"];
/// The type of columns that are left alone.
const IGNORE: &str = "ignore";

impl Policies {
    pub fn of(written: &Written<'_>) -> Result<Self> {
        let mut policies = Self {
            bad_rows: match choice("bad_rows", written.bad_rows, BAD_ROWS)? {
                "skip" => BadRows::Skip,
                _ => BadRows::Error,
            },
            infinite_is_missing: choice("infinite", written.infinite, INFINITE)? == "missing",
            encoding: encoding(written.encoding)?,
            ..Self::default()
        };
        for word in words(written.missing) {
            let refused = || {
                refuse(
                    "missing",
                    word,
                    message!(
                        en: "error, mean, zero, forward or drop; prefix COLUMN= for a single column",
                        zh: "error、mean、zero、forward 或 drop；只针对一列时在前面加 列名="
                    ),
                )
            };
            let (column, name) = column_and_word(word).ok_or_else(refused)?;
            let policy = name.parse().map_err(|()| refused())?;
            match column {
                Some(column) => policies.missing_by_column.push((column, policy)),
                None => policies.missing = Some(policy),
            }
        }
        for word in words(written.column_type) {
            let refused = || {
                refuse(
                    "column_type",
                    word,
                    message!(
                        en: "COLUMN=real, COLUMN=integer, COLUMN=category, COLUMN=time or COLUMN=ignore",
                        zh: "列名=real、列名=integer、列名=category、列名=time 或 列名=ignore"
                    ),
                )
            };
            let (Some(column), kind) = column_and_word(word).ok_or_else(refused)? else {
                return Err(refused());
            };
            if kind == IGNORE {
                policies.ignored.push(column);
            } else {
                let kind = ColumnType::parse(kind).ok_or_else(refused)?;
                policies.types.push((column, kind));
            }
        }
        Ok(policies)
    }

    pub fn missing_of(&self, column: &str) -> Missing {
        self.own_missing(column)
            .or(self.missing)
            .unwrap_or(Missing::Error)
    }

    /// What was said of this very column; the last word counts.
    pub fn own_missing(&self, column: &str) -> Option<Missing> {
        let mut named = self.missing_by_column.iter().rev();
        named.find(|(name, _)| name == column).map(|(_, policy)| *policy)
    }

    pub fn type_of(&self, column: &str, inferred: ColumnType) -> ColumnType {
        let mut named = self.types.iter().rev();
        named
            .find(|(name, _)| name == column)
            .map_or(inferred, |(_, kind)| *kind)
    }

    pub fn is_ignored(&self, column: &str) -> bool {
        self.ignored.iter().any(|name| name == column)
    }

    /// The same without what is said of other columns.
    #[must_use]
    pub fn only(mut self, wanted: impl Fn(&str) -> bool) -> Self {
        self.missing_by_column.retain(|(name, _)| wanted(name));
        self.types.retain(|(name, _)| wanted(name));
        self.ignored.retain(|name| wanted(name));
        self
    }

    /// Every column that something is said of.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        let named = self.missing_by_column.iter().map(|(name, _)| name);
        let typed = self.types.iter().map(|(name, _)| name);
        named.chain(typed).chain(&self.ignored)
    }
}

fn encoding(name: &str) -> Result<Encoding> {
    if name.is_empty() {
        return Ok(Encoding::default());
    }
    let known = message!(en: "the name of an encoding, such as utf-8, gbk, gb18030, big5 or latin1", zh: "编码名称，例如 utf-8、gbk、gb18030、big5 或 latin1");
    Encoding::named(name).ok_or_else(|| refuse("encoding", name, known))
}

/// A column's name as `Written` takes it: in quotes where it has signs of the writing itself.
pub fn quoted(column: &str) -> String {
    let plain = column.trim() == column && !column.contains([',', '"']);
    if plain {
        column.to_owned()
    } else {
        format!("\"{}\"", column.replace('"', "\"\""))
    }
}

/// What is said of a column as it is typed after a flag: in the shell's quotes where the name needs them.
pub fn in_flag(column: &str, word: &str) -> String {
    shell::word(&format!("{}={word}", quoted(column)))
}

/// The words between commas that are not within quotes. A word is a column, where it names one, and what is said of it.
pub fn words(text: &str) -> Vec<&str> {
    split(text, ',')
}

/// The parts of a text between separators that are not within quotes.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let mut within = false;
    let parts = text.split(|char| {
        within ^= char == '"';
        char == separator && !within
    });
    parts.map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// `price=zero`, `"price, EUR"=zero` (a quote within quotes is doubled), or `zero` of no column.
pub fn column_and_word(word: &str) -> Option<(Option<String>, &str)> {
    let Some((column, word)) = word.rsplit_once('=') else {
        return Some((None, word.trim()));
    };
    let column = column.trim();
    let name = match column.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.replace("\"\"", "\""),
        None => column.to_owned(),
    };
    (!name.is_empty()).then(|| (Some(name), word.trim()))
}

fn choice(setting: &'static str, text: &str, allowed: &[&'static str]) -> Result<&'static str> {
    let Some(first) = allowed.first() else {
        return Ok("");
    };
    if text.is_empty() {
        return Ok(first);
    }
    let list = allowed.join(", ");
    allowed
        .iter()
        .find(|word| text.eq_ignore_ascii_case(word))
        .copied()
        .ok_or_else(|| {
            refuse(
                setting,
                text,
                message!(en: "one of {list}", zh: "以下之一：{list}"),
            )
        })
}

fn refuse(setting: &'static str, value: &str, expected: Message) -> DataError {
    DataError::Policy {
        setting,
        value: value.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        let policies = Policies::of(&Written {
            encoding: "gbk",
            missing: "mean, price=zero,a=b=drop,price=forward",
            bad_rows: "skip",
            infinite: "missing",
            column_type: "user=categorical,note=ignore, when = time",
        })
        .unwrap();
        assert_eq!(policies.missing_of("other"), Missing::Mean);
        assert_eq!(policies.missing_of("price"), Missing::Forward);
        assert_eq!(policies.missing_of("a=b"), Missing::Drop);
        assert_eq!(policies.bad_rows, BadRows::Skip);
        assert!(policies.infinite_is_missing && policies.is_ignored("note"));
        assert_eq!(
            policies.type_of("user", ColumnType::Integer),
            ColumnType::Category
        );
        assert_eq!(policies.type_of("when", ColumnType::Real), ColumnType::Time);
        assert_eq!(policies.type_of("n", ColumnType::Integer), ColumnType::Integer);
        let nothing = Policies::of(&Written::default()).unwrap();
        assert_eq!(nothing, Policies::default());
        assert_eq!(nothing.missing_of("x"), Missing::Error);
    }

    proptest! {
        #[test]
        fn any_name_of_a_column_can_be_written(names in prop::collection::vec("[ab,=\"' ]{1,6}", 1..4)) {
            let words: Vec<String> = names.iter().map(|name| format!("{}=zero", quoted(name))).collect();
            let policies = Policies::of(&Written { missing: &words.join(","), ..Written::default() }).unwrap();
            let read: Vec<&String> = policies.missing_by_column.iter().map(|(name, _)| name).collect();
            prop_assert_eq!(read, names.iter().collect::<Vec<_>>());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ab,=\" ]{0,20}") {
            let _ = Policies::of(&Written { missing: &text, column_type: &text, ..Written::default() });
        }
    }

    #[test]
    fn hints_can_be_typed_as_printed() {
        assert_eq!(in_flag("price", "mean"), "price=mean");
        assert_eq!(in_flag("收盘价", "mean"), "收盘价=mean");
        assert_eq!(in_flag("price, EUR", "zero"), "'\"price, EUR\"=zero'");
        assert_eq!(in_flag("it's", "drop"), "'it'\\''s=drop'");
    }

    #[test]
    fn refuses_unknown_policies_and_lists_choices() {
        let says = |written: Written<'_>| Policies::of(&written).unwrap_err().to_string();
        let missing = |missing| Written {
            missing,
            ..Written::default()
        };
        let kind = |column_type| Written {
            column_type,
            ..Written::default()
        };
        assert!(says(missing("average")).contains("`missing` is `average`; expected error, mean"));
        assert!(says(missing("=mean")).contains("`=mean`"));
        assert!(says(missing("\"a,b=mean")).contains("`\"a,b=mean`"));
        assert!(says(kind("user")).contains("COLUMN=category"));
        assert!(says(kind("user=colour")).contains("`user=colour`"));
        let bad_rows = Written {
            bad_rows: "drop",
            ..Written::default()
        };
        assert!(says(bad_rows).contains("error, skip"));
    }
}
