//! Sources of samples over data sets in memory: a batch is a gather.

use crate::Result;
use crate::batch::{BatchSlices, Draw, FillTime, SampleShape, SampleSource};
use crate::block::Plain;
use crate::dataset::{Labels, Panel, Tabular};
use crate::gather;
use std::sync::Arc;
use std::time::Instant;

pub use crate::image_source::{Augment, ImageSource, PixelFormat};

/// Rows of a table.
#[derive(Debug, Clone)]
pub struct TabularSource(pub Arc<Tabular>);

impl SampleSource for TabularSource {
    fn shape(&self) -> SampleShape {
        let (targets, classes) = match &self.0.labels {
            Labels::Real(_) => (1, 0),
            Labels::Class { .. } => (0, 1),
        };
        SampleShape {
            inputs: self.0.feature_names.len(),
            codes: self.0.categories.len(),
            pixels: 0,
            targets,
            classes,
        }
    }

    fn fill(&self, samples: &[u32], _: Draw, into: BatchSlices<'_>) -> Result<FillTime> {
        let start = Instant::now();
        gather_rows(&self.0.features, self.0.feature_names.len(), samples, into.inputs);
        gather_rows(&self.0.codes, self.0.categories.len(), samples, into.codes);
        match &self.0.labels {
            Labels::Real(values) => gather_rows(values, 1, samples, into.targets),
            Labels::Class { classes, .. } => gather_rows(classes, 1, samples, into.classes),
        }
        Ok(fetched_since(start))
    }
}

/// Windows of a panel: inputs `[sequence_length, features]`, the entity as code, the label at the horizon as target.
#[derive(Debug, Clone)]
pub struct WindowSource {
    pub panel: Arc<Panel>,
    pub sequence_length: usize,
    pub horizon: usize,
}

impl SampleSource for WindowSource {
    fn shape(&self) -> SampleShape {
        SampleShape {
            inputs: self.sequence_length * self.panel.feature_names.len(),
            codes: 1,
            pixels: 0,
            targets: 1,
            classes: 0,
        }
    }

    fn fill(&self, samples: &[u32], _: Draw, into: BatchSlices<'_>) -> Result<FillTime> {
        let start = Instant::now();
        let width = self.panel.feature_names.len();
        let window = self.sequence_length * width;
        let label_offset = self.sequence_length - 1 + self.horizon;
        gather::runs(
            &self.panel.features,
            window,
            |index| samples[index] as usize * width,
            into.inputs,
        );
        let first = |index: usize| samples[index] as usize;
        gather::values(&self.panel.entity_of_row, first, into.codes);
        let label = |index: usize| samples[index] as usize + label_offset;
        gather::values(&self.panel.labels, label, into.targets);
        Ok(fetched_since(start))
    }
}

pub(crate) fn fetched_since(start: Instant) -> FillTime {
    FillTime {
        fetch_ns: start.elapsed().as_nanos() as u64,
        prepare_ns: 0,
    }
}

/// Copies row `samples[i]` of a `[rows, width]` block to row `i` of `into`.
pub(crate) fn gather_rows<T: Plain>(block: &[T], width: usize, samples: &[u32], into: &mut [T]) {
    if width == 1 {
        gather::values(block, |index| samples[index] as usize, into);
    } else {
        gather::runs(block, width, |index| samples[index] as usize * width, into);
    }
}
