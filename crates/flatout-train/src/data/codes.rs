//! Values of categories to codes. Code 0 is "unknown": missing, never seen, or too rare to learn from; what is seen in training counts from
//! 1, or is hashed where there are too many values for an embedding each.

use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use flatout_data::random::Stream;
use flatout_data::{Category, DataError};
use serde::{Deserialize, Serialize};

/// Training rows without a known value that the embedding of unknown values needs, as a share.
const HIDDEN_SHARE: f64 = 0.01;
/// Random numbers of what is hidden, apart from those of anything else.
const HIDING: u64 = 0x41d;

/// A categorical column: value `i` has code `i + 1`, or a value's code is its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Codes {
    pub name: String,
    pub values: Vec<String>,
    /// Codes that values are hashed into, from 1; 0: values have codes of their own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub buckets: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Codes {
    pub fn dictionary(&self) -> Category {
        Category {
            name: self.name.clone(),
            values: self.values.iter().collect(),
        }
    }

    /// Rows of the embedding: the codes and the unknown one.
    pub fn embedding_rows(&self) -> usize {
        1 + if self.buckets > 0 {
            self.buckets
        } else {
            self.values.len()
        }
    }

    /// The codes of another table's column, by that table's own codes.
    pub fn translation(&self, column: &Category) -> Option<Vec<i32>> {
        let hashed = (0..column.values.len()).map(|index| bucket(column.values.bytes(index), self.buckets));
        (self.buckets > 0).then(|| std::iter::once(0).chain(hashed).collect())
    }
}

/// FNV-1a of 64 bits, modulo the number of buckets: the same in every program that reads a checkpoint.
fn bucket(value: &[u8], buckets: usize) -> i32 {
    let hash = value.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    1 + (hash % buckets.max(1) as u64) as i32
}

/// Columns of codes, `[rows, categories.len()]`.
pub struct Columns<'a> {
    pub codes: &'a mut [i32],
    pub categories: &'a [Category],
}

impl Columns<'_> {
    /// Code `c` of a column becomes `translation[c]`.
    fn translate(&mut self, position: usize, translation: &[i32]) {
        for code in self
            .codes
            .iter_mut()
            .skip(position)
            .step_by(self.categories.len())
        {
            let known = usize::try_from(*code).ok();
            *code = known.and_then(|code| translation.get(code).copied()).unwrap_or(0);
        }
    }

    /// Hides the value of some training rows, unless enough of them have none: otherwise the embedding of unknown values would stay as
    /// it was drawn.
    fn hide_some(&mut self, position: usize, training: &[u32]) {
        let width = self.categories.len();
        let place = |row: u32| row as usize * width + position;
        let unknown = training
            .iter()
            .filter(|row| self.codes.get(place(**row)) == Some(&0));
        let wanted = training.len() as f64 * HIDDEN_SHARE;
        let missing = wanted - unknown.count() as f64;
        if missing <= 0.0 {
            return;
        }
        let share = missing / training.len().max(1) as f64;
        for &row in training {
            let drawn = Stream::new(0, &[HIDING, position as u64, u64::from(row)]).uniform();
            if drawn < share
                && let Some(code) = self.codes.get_mut(place(row))
            {
                *code = 0;
            }
        }
    }

    /// Training rows of each code.
    fn counts(&self, position: usize, training: &[u32]) -> Vec<usize> {
        let width = self.categories.len();
        let mut counts = vec![0; self.categories[position].values.len() + 1];
        for &row in training {
            let code = self.codes.get(row as usize * width + position);
            if let Some(count) = code
                .and_then(|code| usize::try_from(*code).ok())
                .and_then(|code| counts.get_mut(code))
            {
                *count += 1;
            }
        }
        counts
    }
}

/// Decides the codes of every categorical column from the training rows, and gives them to all rows.
pub fn fit(mut columns: Columns, training: &[u32], settings: &Settings) -> Result<Vec<Codes>, TrainError> {
    let named = [
        &settings.min_count,
        &settings.hash_size,
        &settings.column_embedding_dim,
    ];
    for (name, _) in named.into_iter().flat_map(|numbers| &numbers.columns) {
        if !columns.categories.iter().any(|category| category.name == *name) {
            return Err(TrainError::Data(DataError::Setting(message!(
                en: "column `{name}` is not a category column of this data; --column-type {name}=category \
                makes it one",
                zh: "列 `{name}` 不是这些数据中的类别列；可用 --column-type {name}=category 指定"
            ))));
        }
    }
    let positions = 0..columns.categories.len();
    Ok(positions
        .map(|position| {
            let codes = fit_column(&mut columns, position, training, settings);
            if settings.entity_dropout > 0.0 {
                columns.hide_some(position, training);
            }
            codes
        })
        .collect())
}

fn fit_column(columns: &mut Columns, position: usize, training: &[u32], settings: &Settings) -> Codes {
    let category = &columns.categories[position];
    let name = category.name.clone();
    let buckets = settings.hash_size.of(&name).unwrap_or(0);
    if buckets > 0 && category.values.len() > buckets {
        let codes = Codes {
            name,
            values: Vec::new(),
            buckets,
        };
        let translation = codes.translation(category).unwrap_or_default();
        columns.translate(position, &translation);
        return codes;
    }
    let mut values: Vec<String> = category.values.iter().map(|value| value.into_owned()).collect();
    let counts = columns.counts(position, training);
    // Nothing is learned of a value without training rows.
    let least = settings.min_count.of(&name).unwrap_or(0).max(1);
    if counts.iter().skip(1).any(|count| *count < least) {
        let mut kept = Vec::new();
        let mut translation = vec![0i32; values.len() + 1];
        for (index, value) in values.into_iter().enumerate() {
            if counts[index + 1] >= least {
                kept.push(value);
                translation[index + 1] = kept.len() as i32;
            }
        }
        values = kept;
        columns.translate(position, &translation);
    }
    Codes {
        name,
        values,
        buckets: 0,
    }
}

/// What became of the values of columns that were hashed, or thinned out on request. That a split leaves some values without training rows
/// is nothing to report.
pub fn told(codes: &[Codes], categories: &[Category], settings: &Settings) -> Vec<Message> {
    let changed = codes.iter().zip(categories).filter_map(|(codes, category)| {
        let (name, of, kept, buckets) = (&codes.name, category.values.len(), codes.values.len(), codes.buckets);
        if buckets > 0 {
            return Some(message!(en: "`{name}`: {of} values are hashed into {buckets} codes", zh: "`{name}`：{of} 个值哈希到 {buckets} 个编码"));
        }
        let thinned = settings.min_count.of(name).is_some() && kept < of;
        thinned.then(|| message!(en: "`{name}`: {kept} of {of} values get an embedding; those that are \
        rare or missing in the training split are treated as unknown", zh: "`{name}`：{of} 个值中有 {kept} 个有嵌入；训练部分中少见或没有的值按未知值处理"))
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_training_rows_are_unknown_and_unknown_is_trained() {
        let values = ["a", "only in validation", "b"].map(str::to_owned);
        let categories = [Category {
            name: "month".to_owned(),
            values: values.iter().collect(),
        }];
        let fitted = |dropout: &str| {
            let mut codes: Vec<i32> = (0..2000).map(|row| if row % 2 == 0 { 1 } else { 3 }).collect();
            codes.extend([2, 2]);
            let training: Vec<u32> = (0..2000).collect();
            let columns = Columns {
                codes: &mut codes,
                categories: &categories,
            };
            let settings = Settings::of(&[("entity_dropout", dropout.to_owned())].into()).unwrap();
            let fitted = fit(columns, &training, &settings).unwrap();
            (fitted, codes)
        };
        let (kept, codes) = fitted("0.05");
        assert_eq!(
            (kept[0].values.clone(), kept[0].embedding_rows()),
            (vec!["a".to_owned(), "b".to_owned()], 3)
        );
        assert_eq!(codes[2000..], [0, 0]);
        let hidden = codes[..2000].iter().filter(|code| **code == 0).count();
        assert!((5..50).contains(&hidden), "{hidden}");
        assert!(codes[..2000].iter().all(|code| (0..=2).contains(code)));
        let (_, codes) = fitted("0");
        assert!(codes[..2000].iter().all(|code| *code != 0));
    }

    #[test]
    fn hashes_are_those_of_fnv() {
        // http://www.isthe.com/chongo/tech/comp/fnv: "foobar" has 0x85944171f73967e8.
        assert_eq!(
            bucket(b"foobar", 1 << 20),
            1 + (0x85944171f73967e8_u64 % (1 << 20)) as i32
        );
        assert_eq!(bucket(b"", 7), 1 + (0xcbf29ce484222325_u64 % 7) as i32);
    }
}
