//! Values of categories to codes. Code 0 is "unknown": missing, never seen, or too rare to learn from; what is seen in training counts from
//! 1, or is hashed where there are too many values for an embedding each.

use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use flatout_data::{Category, DataError};
use serde::{Deserialize, Serialize};

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
        .map(|position| fit_column(&mut columns, position, training, settings))
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
    let least = settings.min_count.of(&name).unwrap_or(0);
    let mut values: Vec<String> = category.values.iter().map(|value| value.into_owned()).collect();
    if least > 1 {
        let counts = columns.counts(position, training);
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

/// What became of the values of columns that were hashed or thinned out.
pub fn told(codes: &[Codes], categories: &[Category]) -> Vec<Message> {
    let changed = codes.iter().zip(categories).filter_map(|(codes, category)| {
        let (name, of, kept, buckets) = (&codes.name, category.values.len(), codes.values.len(), codes.buckets);
        if buckets > 0 {
            return Some(message!(en: "`{name}`: {of} values are hashed into {buckets} codes", zh: "`{name}`：{of} 个值哈希到 {buckets} 个编码"));
        }
        (kept < of).then(|| message!(en: "`{name}`: {kept} of {of} values get an embedding; rarer ones are \
        treated as unknown", zh: "`{name}`：{of} 个值中有 {kept} 个有嵌入；更少见的按未知值处理"))
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
