//! Windows over the rows of entities: a folder of Parquet files, one an entity, or a table with a column that names them.

use super::{
    Codes, Preparation, Shape, TrainingData, cached, codes, label_of, label_table, left_out, rows,
    split_rule, weights,
};
use crate::target::RealLabels;
use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use flatout_data::standardise::say_without_values;
use flatout_data::{DataError, Panel, PanelOptions, PanelSplit, Standardiser, load_panel};
use flatout_engine::Table;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Rows that were read and standardised once.
pub struct Loaded {
    /// Without the features, which the table has.
    panel: Panel,
    parts: PanelSplit,
    standardiser: Standardiser,
    features: Table,
    categories: Vec<Codes>,
    codes: Vec<(String, Table)>,
    entity_of_row: Arc<Vec<i32>>,
    bytes: usize,
}

pub fn load(path: &Path, settings: &Settings) -> Result<TrainingData, TrainError> {
    check_past_labels(settings)?;
    let label = label_of(path, settings)?.ok_or(TrainError::Missing { setting: "label" })?;
    let (label, mut more_labels) = rows::several(label);
    more_labels.extend(settings.sample_weight.clone());
    let options = PanelOptions {
        label,
        more_labels,
        entity: settings.entity.clone(),
        time: settings.time.clone(),
        policies: settings.policies.clone(),
        limit: settings.limit,
        ..PanelOptions::default()
    };
    let mut notes = Vec::new();
    let load = || load_panel(path, &options);
    let mut panel: Panel = cached(settings, &mut notes, load, |cache| cache.panel(path, &options))?;
    notes.extend(left_out(&panel.skipped, panel.rows_dropped));
    let parts = panel.split(&split_rule(settings))?;
    let trained_rows: Vec<u32> = parts.train.iter().cloned().flatten().collect();
    let columns = codes::Columns {
        codes: panel.codes.to_mut(),
        categories: &panel.categories,
    };
    let categories = codes::fit(columns, &trained_rows, settings)?;
    notes.extend(said(&categories));
    notes.extend(codes::told(&categories, &panel.categories, settings));
    if settings.past_labels {
        panel.add_label_feature();
    }
    notes.extend(say_without_values(&panel.features, &panel.feature_names));
    let standardiser = panel.standardise(&parts.train);
    let loaded = Arc::new(Loaded {
        bytes: panel.size_bytes(),
        features: Table::F32(Arc::new(std::mem::take(&mut panel.features))),
        entity_of_row: Arc::new(std::mem::take(&mut panel.entity_of_row).into_vec()),
        codes: rows::code_tables(&panel.codes, categories.len()),
        categories,
        parts,
        standardiser,
        panel,
    });
    let mut data = loaded.windows(settings)?;
    notes.append(&mut data.notes);
    data.notes = notes;
    Ok(data)
}

fn check_past_labels(settings: &Settings) -> Result<(), TrainError> {
    if !settings.past_labels || settings.horizon > 0 {
        return Ok(());
    }
    Err(TrainError::Value {
        setting: "past_labels".to_owned(),
        value: "true".to_owned(),
        expected: message!(en: "false with a horizon of 0: otherwise the label of a window's last row \
        would be among its inputs", zh: "horizon 为 0 时应为 false：否则窗口最后一行的标签会出现在输入中"),
    })
}

/// Columns of text are learned from; that is worth a line.
fn said(categories: &[Codes]) -> Option<Message> {
    let names: Vec<String> = categories
        .iter()
        .map(|codes| format!("{} ({})", codes.name, codes.embedding_rows() - 1))
        .collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| {
        message!(en: "category columns, taken from the last row of each window: \
    {names} values", zh: "类别列（取窗口最后一行的值）：{names} 个值")
    })
}

impl Loaded {
    /// The training rows of each entity, without the last ones before its validation rows.
    fn trained_rows(&self, gap: usize) -> Vec<Range<u32>> {
        let before_validation = |rows: &Range<u32>| {
            let next = self
                .parts
                .validation
                .partition_point(|range| range.start < rows.end);
            self.parts
                .validation
                .get(next)
                .is_some_and(|range| range.start == rows.end)
        };
        let shortened = self.parts.train.iter().map(|rows| {
            let gap = if before_validation(rows) { gap as u32 } else { 0 };
            rows.start..rows.end.saturating_sub(gap).max(rows.start)
        });
        shortened.filter(|rows| !rows.is_empty()).collect()
    }

    /// When a row was, where that is known.
    pub fn time_us(&self, row: u32) -> Option<i64> {
        self.panel.timestamps_us.as_ref()?.get(row as usize).copied()
    }

    /// Cuts windows; the rows are shared.
    pub fn windows(self: &Arc<Self>, settings: &Settings) -> Result<TrainingData, TrainError> {
        check_past_labels(settings)?;
        let panel = &self.panel;
        let (length, horizon) = (settings.sequence_length, settings.horizon);
        let train = panel.windows(&self.trained_rows(settings.gap), length, horizon)?;
        let scored =
            |history: usize| panel.windows_of_labels(&self.parts.validation, length, horizon, history);
        // A window in a grid that is too long for every entity fails by itself, and does not take the others with it.
        let validation = match scored(settings.min_history) {
            Err(DataError::NoWindows { .. }) => scored(length),
            found => found,
        }?;
        let unlabelled = train.without_label + validation.without_label;
        let test = match self.parts.test.is_empty() {
            true => Arc::default(),
            false => {
                panel
                    .windows_of_labels(&self.parts.test, length, horizon, settings.min_history)?
                    .starts
            }
        };
        let (train, validation) = (train.starts, validation.starts);
        let last_offset = (length - 1) as u32;
        let label_offset = last_offset + horizon as u32;
        let trained: Vec<u32> = train.iter().map(|start| start + label_offset).collect();
        let (mut values, mut names) = panel.all_labels();
        let sample_weights = match settings.sample_weight {
            Some(_) => weights::split_off(&mut values, &mut names),
            None => None,
        };
        let label = names.join(",");
        let labels = RealLabels {
            values,
            names,
            classes: Vec::new(),
            training: &trained,
        };
        let (mut target, labels) = labels.decide(settings)?;
        let weights = weights::of(&mut target, &labels, sample_weights, &trained, settings)?;
        let preparation = Preparation {
            shape: Shape::Sequence {
                features: panel.feature_names.len(),
                entities: panel.entities.len(),
                unknown: settings.entity_dropout > 0.0 && settings.entity_embedding_dim > 0,
                categories: self.categories.iter().map(Codes::embedding_rows).collect(),
            },
            label,
            features: panel.feature_names.clone(),
            mean: self.standardiser.mean.clone(),
            std: self.standardiser.std.clone(),
            categories: self.categories.clone(),
            entities: panel.entities.iter().map(|entity| entity.name.clone()).collect(),
            target,
        };
        let mut tables = vec![
            ("features".to_owned(), self.features.clone()),
            (
                "labels".to_owned(),
                label_table(&preparation.target, &labels, weights.as_deref()),
            ),
        ];
        tables.extend(self.codes.iter().cloned());
        let mut trained = vec![false; panel.entities.len()];
        for &start in train.iter() {
            trained[self.entity_of_row[start as usize] as usize] = true;
        }
        Ok(TrainingData {
            tables,
            trained: trained.into(),
            preparation,
            train,
            validation,
            test,
            labels,
            entity_of_row: self.entity_of_row.clone(),
            label_offset,
            last_offset,
            bytes: self.bytes,
            notes: Vec::from_iter((unlabelled > 0).then(
                || message!(en: "skipped {unlabelled} windows without a label", zh: "{unlabelled} 个窗口没有标签，已跳过"),
            )),
            panel: Some(self.clone()),
            augmenter: None,
        })
    }
}
