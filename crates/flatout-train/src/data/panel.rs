//! Windows over the rows of entities: a folder of Parquet files, one an entity, or a table with a column that names them.

use super::{Preparation, Shape, TrainingData, cached, label_of, label_table, left_out, split_rule};
use crate::target::RealLabels;
use crate::{Settings, TrainError};
use flatout_core::message;
use flatout_data::standardise::say_without_values;
use flatout_data::{Panel, PanelOptions, PanelSplit, Standardiser, load_panel};
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
    entity_of_row: Arc<Vec<i32>>,
    bytes: usize,
}

pub fn load(path: &Path, settings: &Settings) -> Result<TrainingData, TrainError> {
    let options = PanelOptions {
        label: label_of(path, settings)?.ok_or(TrainError::Missing { setting: "label" })?,
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
    notes.extend(say_without_values(&panel.features, &panel.feature_names));
    let standardiser = panel.standardise(&parts.train);
    let loaded = Arc::new(Loaded {
        bytes: panel.size_bytes(),
        features: Table::F32(Arc::new(std::mem::take(&mut panel.features))),
        entity_of_row: Arc::new(std::mem::take(&mut panel.entity_of_row).into_vec()),
        parts,
        standardiser,
        panel,
    });
    let mut data = loaded.windows(settings)?;
    notes.append(&mut data.notes);
    data.notes = notes;
    Ok(data)
}

impl Loaded {
    /// Cuts windows; the rows are shared.
    pub fn windows(self: &Arc<Self>, settings: &Settings) -> Result<TrainingData, TrainError> {
        let panel = &self.panel;
        let (length, horizon) = (settings.sequence_length, settings.horizon);
        let windows = |ranges: &[Range<u32>]| panel.windows(ranges, length, horizon);
        let (train, validation) = (windows(&self.parts.train)?, windows(&self.parts.validation)?);
        let unlabelled = train.without_label + validation.without_label;
        let (train, validation) = (train.starts, validation.starts);
        let label_offset = (length - 1 + horizon) as u32;
        let labels = RealLabels {
            values: panel.labels.to_vec(),
            names: vec![panel.label_name.clone()],
            training: &mut train.iter().map(|start| start + label_offset),
        };
        let (target, labels) = labels.decide(&settings.task)?;
        let preparation = Preparation {
            shape: Shape::Sequence {
                features: panel.feature_names.len(),
                entities: panel.entities.len(),
            },
            label: panel.label_name.clone(),
            features: panel.feature_names.clone(),
            mean: self.standardiser.mean.clone(),
            std: self.standardiser.std.clone(),
            categories: Vec::new(),
            entities: panel.entities.iter().map(|entity| entity.name.clone()).collect(),
            target,
        };
        Ok(TrainingData {
            tables: vec![
                ("features", self.features.clone()),
                ("labels", label_table(&preparation.target, &labels)),
            ],
            preparation,
            train,
            validation,
            labels,
            entity_of_row: self.entity_of_row.clone(),
            label_offset,
            bytes: self.bytes,
            notes: Vec::from_iter((unlabelled > 0).then(
                || message!(en: "{unlabelled} windows have no label and are left out", zh: "{unlabelled} 个窗口没有标签，已跳过"),
            )),
            panel: Some(self.clone()),
        })
    }
}
