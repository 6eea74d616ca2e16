//! Windows over the rows of entities: a folder of Parquet files, one an entity.

use super::{Preparation, Shape, TrainingData, cached, label_of, label_table};
use crate::target::RealLabels;
use crate::{Settings, TrainError};
use flatout_data::{Panel, PanelOptions, SplitRule, load_panel};
use flatout_engine::Table;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub fn load(path: &Path, settings: &Settings) -> Result<TrainingData, TrainError> {
    let options = PanelOptions {
        label: label_of(path, settings)?.ok_or(TrainError::Missing { setting: "label" })?,
        limit: settings.limit,
        ..PanelOptions::default()
    };
    let mut notes = Vec::new();
    let load = || load_panel(path, &options);
    let mut panel: Panel = cached(settings, &mut notes, load, |cache| cache.panel(path, &options))?;
    let parts = panel.split(&SplitRule::default())?;
    let standardiser = panel.standardise(&parts.train);
    let (length, horizon) = (settings.sequence_length, settings.horizon);
    let windows = |ranges: &[Range<u32>]| panel.windows(ranges, length, horizon);
    let (train, validation) = (windows(&parts.train)?.starts, windows(&parts.validation)?.starts);
    let label_offset = (length - 1 + horizon) as u32;
    let bytes = panel.size_bytes();
    let labels = RealLabels {
        values: panel.labels.into_vec(),
        names: vec![panel.label_name.clone()],
        training: &mut train.iter().map(|start| start + label_offset),
    };
    let (target, labels) = labels.decide(&settings.task)?;
    let preparation = Preparation {
        shape: Shape::Sequence {
            features: panel.feature_names.len(),
            entities: panel.entities.len(),
        },
        label: panel.label_name,
        features: panel.feature_names,
        mean: standardiser.mean,
        std: standardiser.std,
        categories: Vec::new(),
        entities: panel.entities.into_iter().map(|entity| entity.name).collect(),
        target,
    };
    let features = Table::F32(Arc::new(panel.features.into_vec()));
    Ok(TrainingData {
        tables: vec![
            ("features", features),
            ("labels", label_table(&preparation.target, &labels)),
        ],
        preparation,
        train,
        validation,
        labels,
        entity_of_row: Arc::new(panel.entity_of_row.into_vec()),
        label_offset,
        bytes,
        notes,
    })
}
