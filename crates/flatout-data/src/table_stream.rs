//! A table larger than memory: read part after part, within a budget, epoch after epoch.
//!
//! A part is as many files as fit into half the budget, so that one is used while the next is read. The order of the parts is another one in
//! each epoch; rows are shuffled within a part by whoever takes batches from it. Categories have one code in all parts. Only labels
//! that are numbers can be streamed: which classes there are is known when all parts have been read.

use crate::dataset::Tabular;
use crate::load::roles::role_columns;
use crate::load::tabular::{self, TabularOptions};
use crate::order::Permutation;
use crate::table_source::TableSource;
use crate::text_list::Dictionary;
use crate::{DataError, LabelKind, Result, parallel};
use flatout_core::message;
use std::path::PathBuf;
use std::thread::JoinHandle;

pub struct TableStream {
    parts: Vec<Vec<PathBuf>>,
    options: TabularOptions,
    seed: u64,
    epoch: u64,
    next: usize,
    /// One a category, grown by every part.
    dictionaries: Vec<Dictionary>,
    reading: Option<JoinHandle<Result<Tabular>>>,
}

/// Rows in memory, with their place in the stream.
pub struct StreamPart {
    pub table: Tabular,
    pub epoch: u64,
    /// Parts of this epoch that are left.
    pub left: usize,
}

impl TableStream {
    /// Looks at all files of `source` and reads none yet.
    pub fn new(
        source: &TableSource,
        options: &TabularOptions,
        budget_bytes: usize,
        seed: u64,
    ) -> Result<Self> {
        let roles = role_columns(source, options, &[])?;
        if roles.class_label {
            return Err(DataError::Setting(message!(
                en: "a table can be streamed only if its label is numeric",
                zh: "只有标签为数值的表才能以流式方式读取"
            )));
        }
        // What a column is was decided over all files; no part may find otherwise.
        let named = |columns: &[usize]| {
            columns
                .iter()
                .map(|&column| source.names[column].clone())
                .collect()
        };
        let mut fixed = TabularOptions {
            label_kind: LabelKind::Real,
            features: Some(named(&roles.features)),
            categories: Some(named(&roles.categories)),
            ..options.clone()
        };
        let types = source.names.iter().cloned().zip(source.types.iter().copied());
        fixed.policies.types.splice(0..0, types);
        let times = 2 * usize::from(roles.time.is_some());
        let row_bytes = 4 * (roles.features.len() + roles.categories.len() + 1 + times);
        Ok(Self {
            parts: parts(source, row_bytes, budget_bytes / 2)?,
            dictionaries: roles.categories.iter().map(|_| Dictionary::default()).collect(),
            options: fixed,
            seed,
            epoch: 0,
            next: 0,
            reading: None,
        })
    }

    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The next part; the one after it is being read when this returns.
    pub fn next_part(&mut self) -> Result<StreamPart> {
        let reading = match self.reading.take() {
            Some(reading) => reading,
            None => self.read(self.epoch, self.next)?,
        };
        let table = reading.join().unwrap_or_else(|_| Err(failed()))?;
        let (epoch, number) = (self.epoch, self.next);
        (self.epoch, self.next) = match number + 1 {
            next if next < self.parts.len() => (epoch, next),
            _ => (epoch + 1, 0),
        };
        self.reading = Some(self.read(self.epoch, self.next)?);
        Ok(StreamPart {
            table: self.in_common_codes(table),
            epoch,
            left: self.parts.len() - 1 - number,
        })
    }

    fn read(&self, epoch: u64, number: usize) -> Result<JoinHandle<Result<Tabular>>> {
        let place = Permutation::new(self.parts.len() as u32, self.seed, epoch).get(number as u32);
        let (files, options) = (self.parts[place as usize].clone(), self.options.clone());
        let read = move || {
            let first = files[0].clone();
            let source = TableSource::of_files(files, options.threads, options.policies.encoding)?;
            tabular::build(&source, &options, &[], &first)
        };
        std::thread::Builder::new()
            .name("flatout-stream".into())
            .spawn(read)
            .map_err(|error| DataError::reading("thread", error))
    }

    fn in_common_codes(&mut self, mut table: Tabular) -> Tabular {
        let width = table.categories.len();
        for (place, (category, common)) in table
            .categories
            .iter_mut()
            .zip(&mut self.dictionaries)
            .enumerate()
        {
            let values = &category.values;
            let codes: Vec<i32> = (0..values.len())
                .map(|value| common.code(values.bytes(value)))
                .collect();
            for code in table.codes.to_mut().iter_mut().skip(place).step_by(width) {
                if *code > 0 {
                    *code = codes[*code as usize - 1];
                }
            }
            category.values = common.texts().clone();
        }
        table
    }
}

impl Drop for TableStream {
    fn drop(&mut self) {
        if let Some(reading) = self.reading.take() {
            let _ = reading.join();
        }
    }
}

/// Files one after the other, as many in a part as fit.
fn parts(source: &TableSource, row_bytes: usize, most_bytes: usize) -> Result<Vec<Vec<PathBuf>>> {
    let sizes = parallel::map(source.files.len(), parallel::threads(None), |file| {
        source.decoded_bytes(file, row_bytes)
    })?;
    let (mut parts, mut filled): (Vec<Vec<PathBuf>>, usize) = (Vec::new(), usize::MAX);
    for (file, bytes) in source.files.iter().zip(sizes) {
        if bytes > most_bytes {
            let (path, size) = (file.display(), flatout_core::units::bytes(bytes as f64));
            let most = flatout_core::units::bytes(most_bytes as f64);
            return Err(DataError::Setting(message!(
                en: "`{path}` takes up to {size} in memory, more than half of the budget ({most}); split it \
                into smaller files, or allow more memory",
                zh: "`{path}` 在内存中最多占 {size}，超过预算的一半（{most}）；请把它切成更小的文件，或增大内存预算"
            )));
        }
        filled = filled.saturating_add(bytes);
        match parts.last_mut() {
            Some(part) if filled <= most_bytes => part.push(file.clone()),
            _ => {
                parts.push(vec![file.clone()]);
                filled = bytes;
            }
        }
    }
    Ok(parts)
}

fn failed() -> DataError {
    DataError::Setting(message!(
        en: "the thread that reads the next part failed",
        zh: "读取下一部分的线程出错"
    ))
}
