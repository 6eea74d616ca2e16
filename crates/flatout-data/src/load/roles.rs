//! Which column is what: label, time, number, category or key.

use super::join::Side;
use super::missing::Missing;
use super::tabular::{LabelKind, TabularOptions};
use crate::table::{ColumnType, is_index};
use crate::table_source::TableSource;
use crate::{DataError, Result};
use flatout_core::message;

#[derive(Debug, Default)]
pub struct Roles {
    pub features: Vec<usize>,
    pub categories: Vec<usize>,
    /// Keys of joins that are not categories themselves.
    pub separate_keys: Vec<usize>,
    /// The key column of each side table.
    pub keys: Vec<usize>,
    /// Absent where files may do without.
    pub label: Option<usize>,
    /// Further labels.
    pub more_labels: Vec<usize>,
    /// Those of several labels that are text, by their place among the labels, the first being 0.
    pub text_labels: Vec<usize>,
    pub class_label: bool,
    pub time: Option<usize>,
}

/// Whole numbers that only name something.
fn is_identifier(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "id" || name.ends_with("_id")
}

pub fn role_columns(source: &TableSource, options: &TabularOptions, sides: &[Side]) -> Result<Roles> {
    let policies = &options.policies;
    let kind_of = |column: usize| policies.type_of(&source.names[column], source.types[column]);
    for name in policies.columns() {
        if !sides.iter().any(|side| side.has_column(name)) {
            source.column(name)?;
        }
    }
    let label = match source.column(&options.label) {
        _ if options.without_labels => None,
        found => Some(found?),
    };
    let more_labels = match options.without_labels {
        true => Vec::new(),
        false => {
            let found = options.more_labels.iter().map(|name| source.column(name));
            found.collect::<Result<Vec<_>>>()?
        }
    };
    let mut text_labels = Vec::new();
    if !more_labels.is_empty() {
        let all: Vec<usize> = label.into_iter().chain(more_labels.iter().copied()).collect();
        let is_text = |column: &usize| kind_of(*column) == ColumnType::Category;
        text_labels.extend((0..all.len()).filter(|&place| is_text(&all[place])));
        let numbers: Vec<usize> = all.into_iter().filter(|column| !is_text(column)).collect();
        check_numbers(source, &numbers, &kind_of)?;
    }
    let class_label = match options.label_kind {
        _ if !more_labels.is_empty() => false,
        LabelKind::Auto => label.is_some_and(|label| kind_of(label) == ColumnType::Category),
        LabelKind::Real => false,
        LabelKind::Class => true,
    };
    let time = options
        .time
        .as_ref()
        .map(|name| source.column(name))
        .transpose()?;
    let keys = sides
        .iter()
        .map(|side| source.column(&side.key))
        .collect::<Result<Vec<_>>>()?;
    let mut excluded = Vec::new();
    for name in options.exclude.iter().chain(&policies.ignored) {
        excluded.extend(source.names.iter().position(|known| known == name));
    }
    let free = |column: &usize| {
        source.names[*column] != options.label
            && !options.more_labels.contains(&source.names[*column])
            && Some(*column) != time
            && !excluded.contains(column)
            && !is_index(&source.names[*column])
    };
    let columns = |names: &[String]| {
        names
            .iter()
            .map(|name| source.column(name))
            .collect::<Result<Vec<usize>>>()
    };
    let categories = match &options.categories {
        Some(names) => columns(names)?,
        None => (0..source.names.len())
            .filter(free)
            .filter(|&column| {
                let named = policies
                    .types
                    .iter()
                    .any(|(name, _)| *name == source.names[column]);
                match kind_of(column) {
                    ColumnType::Category => true,
                    ColumnType::Integer => !named && is_identifier(&source.names[column]),
                    _ => false,
                }
            })
            .filter(|&column| {
                options
                    .features
                    .as_ref()
                    .is_none_or(|names| !names.contains(&source.names[column]))
            })
            .collect(),
    };
    let features = match &options.features {
        Some(names) => columns(names)?,
        None => (0..source.names.len())
            .filter(free)
            .filter(|column| !categories.contains(column) && !keys.contains(column))
            .filter(|&column| matches!(kind_of(column), ColumnType::Integer | ColumnType::Real))
            .collect(),
    };
    // Predictions know which columns are numbers: what is none is told with its line when it is read.
    if !(options.without_labels && source.is_text()) {
        check_numbers(source, &features, &kind_of)?;
    }
    check(source, label, &features, &categories)?;
    for (name, policy) in &policies.missing_by_column {
        let among = |columns: &[usize]| columns.iter().any(|&column| source.names[column] == *name);
        let side_category = |side: &Side| side.categories.iter().any(|category| category.name == *name);
        let computed = matches!(policy, Missing::Mean | Missing::Zero | Missing::Forward);
        if computed && (among(&categories) || sides.iter().any(side_category)) {
            return Err(DataError::Setting(message!(
                en: "column `{name}` is categorical; missing values form their own category unless the \
                policy is `error` or `drop`",
                zh: "列 `{name}` 是类别列：缺失值自成一类；只有 `error` 和 `drop` 能改变这一点"
            )));
        }
        if label.is_some_and(|label| source.names[label] == *name) && *policy != Missing::Error {
            return Err(DataError::Setting(message!(
                en: "column `{name}` is the label; a row without a label cannot be used for training, and \
                `--bad-rows skip` skips such rows",
                zh: "列 `{name}` 是标签：没有标签的行无法用于学习；`--bad-rows skip` 可跳过这样的行"
            )));
        }
    }
    if features.is_empty() && categories.is_empty() && sides.is_empty() {
        return Err(DataError::Setting(message!(
            en: "there is no column to learn from other than the label",
            zh: "除标签外没有可用于学习的列"
        )));
    }
    let separate_keys = keys
        .iter()
        .copied()
        .filter(|key| !categories.contains(key))
        .collect();
    Ok(Roles {
        features,
        categories,
        separate_keys,
        keys,
        label,
        more_labels,
        text_labels,
        class_label,
        time,
    })
}

fn check_numbers(
    source: &TableSource,
    features: &[usize],
    kind_of: &impl Fn(usize) -> ColumnType,
) -> Result<()> {
    for &column in features {
        if kind_of(column) == ColumnType::Category || kind_of(column) == ColumnType::Time {
            return Err(DataError::ColumnKind {
                path: source.files[0].clone(),
                column: source.names[column].clone(),
                found: kind_of(column).name().into(),
                wanted: message!(en: "numbers", zh: "数值"),
            });
        }
    }
    Ok(())
}

fn check(source: &TableSource, label: Option<usize>, features: &[usize], categories: &[usize]) -> Result<()> {
    let both = features
        .iter()
        .find(|column| categories.contains(column) || Some(**column) == label);
    let clash = both.or(categories.iter().find(|column| Some(**column) == label));
    match clash {
        None => Ok(()),
        Some(&column) => {
            let name = &source.names[column];
            Err(DataError::Setting(message!(
                en: "column `{name}` has two roles (feature, category or label)",
                zh: "列 `{name}` 被指定了两种角色（特征、类别或标签）"
            )))
        }
    }
}
