//! Files to tables and samples: what stays in one place (tables), and what names a sample in them (indices).

use crate::{Settings, TrainError};
use flatout_data::{
    Labels, Panel, PanelOptions, SplitRule, Standardiser, Tabular, TabularOptions, load_panel, load_tabular,
};
use flatout_engine::Table;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A number.
    Regression,
}

/// What a model is built for.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Windows over the rows of entities.
    Sequence { features: usize, entities: usize },
    /// Rows, with categories of so many codes each.
    Rows { features: usize, categories: Vec<usize> },
}

/// A data set ready to train on.
pub struct TrainingData {
    pub shape: Shape,
    pub task: Task,
    pub label: String,
    /// Name in the plan, contents.
    pub tables: Vec<(&'static str, Table)>,
    pub train: Arc<[u32]>,
    pub validation: Arc<[u32]>,
    pub standardiser: Standardiser,
    /// Of every row: what metrics compare with.
    labels: Arc<Vec<f32>>,
    entity_of_row: Arc<Vec<i32>>,
    pub entity_names: Vec<String>,
    /// From a sample's number to the row of its label.
    label_offset: u32,
    pub bytes: usize,
}

impl TrainingData {
    /// A folder of Parquet files is a panel, one file an entity; anything else a table of rows.
    pub fn load(settings: &Settings) -> Result<Self, TrainError> {
        let path = settings
            .data
            .as_deref()
            .ok_or(TrainError::Missing { setting: "data" })?;
        if is_panel(path) {
            Self::panel(path, settings)
        } else {
            Self::rows(path, settings)
        }
    }

    fn panel(path: &Path, settings: &Settings) -> Result<Self, TrainError> {
        let label = settings
            .label
            .clone()
            .or_else(|| recipe_label(path))
            .ok_or(TrainError::Missing { setting: "label" })?;
        let options = PanelOptions {
            label,
            limit: settings.limit,
            ..PanelOptions::default()
        };
        let mut panel: Panel = load_panel(path, &options)?;
        let parts = panel.split(&SplitRule::default())?;
        let standardiser = panel.standardise(&parts.train);
        let windows = |ranges: &[std::ops::Range<u32>]| {
            panel.windows(ranges, settings.sequence_length, settings.horizon)
        };
        let (train, validation) = (windows(&parts.train)?.starts, windows(&parts.validation)?.starts);
        let bytes = panel.size_bytes();
        let shape = Shape::Sequence {
            features: panel.feature_names.len(),
            entities: panel.entities.len(),
        };
        let (features, labels) = (
            Arc::new(panel.features.into_vec()),
            Arc::new(panel.labels.into_vec()),
        );
        Ok(Self {
            shape,
            task: Task::Regression,
            label: panel.label_name,
            tables: vec![
                ("features", Table::F32(features)),
                ("labels", Table::F32(labels.clone())),
            ],
            train,
            validation,
            standardiser,
            labels,
            entity_of_row: Arc::new(panel.entity_of_row.into_vec()),
            entity_names: panel.entities.into_iter().map(|entity| entity.name).collect(),
            label_offset: (settings.sequence_length - 1 + settings.horizon) as u32,
            bytes,
        })
    }

    fn rows(path: &Path, settings: &Settings) -> Result<Self, TrainError> {
        let label = settings
            .label
            .clone()
            .or_else(|| recipe_label(path))
            .ok_or(TrainError::Missing { setting: "label" })?;
        let options = TabularOptions {
            label,
            limit: settings.limit,
            ..TabularOptions::default()
        };
        let mut table: Tabular = load_tabular(path, &options)?;
        let splits = table.split(&SplitRule::default())?;
        let standardiser = table.standardise(&splits.train);
        let bytes = table.size_bytes();
        let labels = match table.labels {
            Labels::Real(values) => values.into_vec(),
            Labels::Class { classes, .. } => classes.iter().map(|&class| class as f32).collect(),
        };
        let labels = Arc::new(labels);
        let categories: Vec<usize> = table
            .categories
            .iter()
            .map(flatout_data::Category::embedding_rows)
            .collect();
        let mut tables = vec![
            ("features", Table::F32(Arc::new(table.features.into_vec()))),
            ("labels", Table::F32(labels.clone())),
        ];
        // One table a category: the engine gathers single codes.
        let codes = table.codes.into_vec();
        for (position, name) in CODES.iter().enumerate().take(categories.len()) {
            let column: Vec<i32> = codes
                .iter()
                .skip(position)
                .step_by(categories.len())
                .copied()
                .collect();
            tables.push((name, Table::I32(Arc::new(column))));
        }
        Ok(Self {
            shape: Shape::Rows {
                features: table.feature_names.len(),
                categories,
            },
            task: Task::Regression,
            label: table.label_name,
            tables,
            train: splits.train,
            validation: splits.validation,
            standardiser,
            entity_of_row: Arc::new(Vec::new()),
            entity_names: Vec::new(),
            labels,
            label_offset: 0,
            bytes,
        })
    }

    /// The row of a sample's label.
    pub fn label_row(&self, sample: u32) -> u32 {
        sample + self.label_offset
    }

    pub fn label(&self, sample: u32) -> f32 {
        self.labels
            .get(self.label_row(sample) as usize)
            .copied()
            .unwrap_or(f32::NAN)
    }

    pub fn entity(&self, sample: u32) -> i32 {
        self.entity_of_row.get(sample as usize).copied().unwrap_or(0)
    }
}

/// Names of the tables of categories.
pub const CODES: &[&str] = &[
    "codes0", "codes1", "codes2", "codes3", "codes4", "codes5", "codes6", "codes7", "codes8", "codes9",
    "codes10", "codes11", "codes12", "codes13", "codes14", "codes15",
];

fn is_panel(path: &Path) -> bool {
    let parquet = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "parquet");
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(parquet).take(2).count() == 2
}

/// Data that flatout generated say themselves what is to be predicted.
fn recipe_label(path: &Path) -> Option<String> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    Some(flatout_data::generate::read_recipe(folder).ok()??.label)
}
