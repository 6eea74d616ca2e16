//! The longer sentences about bad data.

use crate::load::policies::in_flag;
use crate::table::{BadRow, Problem};
use flatout_core::{Message, message};

pub(crate) fn is_infinite(value: &str) -> bool {
    let value = value.trim_start_matches(['-', '+']).to_ascii_lowercase();
    value == "inf" || value == "infinity"
}

/// What to do about a missing or infinite value.
pub(super) fn not_a_number(column: &str, value: &str) -> Message {
    let mean = in_flag(column, "mean");
    if is_infinite(value) {
        return message!(
            en: "`--infinite missing --missing {mean}` treats infinite values as missing (zero, forward or \
            drop instead of mean); `--bad-rows skip` skips their rows",
            zh: "`--infinite missing --missing {mean}` 把无穷值当作缺失值（mean 也可换成 zero、forward 或 drop）；`--bad-rows skip` 跳过这些行"
        );
    }
    message!(
        en: "choose how to fill missing values: `--missing {mean}`, or zero, forward or drop; `--missing \
        mean` for all columns",
        zh: "请指定缺失值的处理方式：`--missing {mean}`，或 zero、forward、drop；`--missing mean` 对所有列生效"
    )
}

pub(super) fn other_columns(
    path: &std::path::Path,
    first: &std::path::Path,
    missing: &[String],
    extra: &[String],
) -> Message {
    let (path, first) = (path.display(), first.display());
    let (missing, extra) = (missing.join(", "), extra.join(", "));
    let mut text = message!(
        en: "the columns of `{path}` differ from those of `{first}`:",
        zh: "`{path}` 与 `{first}` 的列不一致："
    );
    if !missing.is_empty() {
        text.en += &format!(" missing {missing}");
        text.zh += &format!("缺少 {missing}");
    }
    if !extra.is_empty() {
        let (en, zh) = if missing.is_empty() {
            ("", "")
        } else {
            (";", "；")
        };
        text.en += &format!("{en} extra {extra}");
        text.zh += &format!("{zh}多出 {extra}");
    }
    if missing.is_empty() && extra.is_empty() {
        text.en += " another order";
        text.zh += "顺序不同";
    }
    text
}

pub(super) fn bad_row(row: &BadRow) -> Message {
    let (path, line) = (row.path.display(), row.line);
    match &row.problem {
        Problem::Fields { found, expected } => message!(
            en: "line {line} of `{path}` has {found} fields, the header has {expected}",
            zh: "`{path}` 第 {line} 行有 {found} 个字段，而表头有 {expected} 个"
        ),
        Problem::Value {
            column,
            value,
            wanted,
        } if value.is_empty() => message!(
            en: "line {line} of `{path}`: column `{column}` is empty (expected {wanted})",
            zh: "`{path}` 第 {line} 行：列 `{column}` 为空（应为 {wanted}）"
        ),
        Problem::Value {
            column,
            value,
            wanted,
        } => message!(
            en: "line {line} of `{path}`: column `{column}` is `{value}`, which is not {wanted}",
            zh: "`{path}` 第 {line} 行：列 `{column}` 的值 `{value}` 不是 {wanted}"
        ),
    }
}
