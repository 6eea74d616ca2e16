//! Pictures decoded batch by batch, for those that do not fit into memory: reading is "fetch", decoding and resizing "prepare".

use crate::Result;
use crate::batch::{BatchSlices, Draw, FillTime, SampleShape, SampleSource};
use crate::dataset::ImageTargets;
use crate::error::DataError;
use crate::formats::image::ImageDecoder;
use crate::load::images::ImageList;
use crate::source::gather_rows;
use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

/// Samples are positions in the list; pixels come as `u8 [height, width, channels]`.
#[derive(Clone)]
pub struct ImageFileSource(pub Arc<ImageList>);

thread_local! {
    /// Each thread decodes with its own memory, which it keeps.
    static SCRATCH: RefCell<(ImageDecoder, Vec<u8>)> = RefCell::default();
}

impl SampleSource for ImageFileSource {
    fn shape(&self) -> SampleShape {
        let (targets, classes) = match &self.0.targets {
            ImageTargets::Class { .. } => (0, 1),
            ImageTargets::Real { names, .. } => (names.len(), 0),
        };
        SampleShape {
            pixels: self.0.shape.size_bytes(),
            targets,
            classes,
            ..SampleShape::default()
        }
    }

    fn fill(&self, samples: &[u32], _: Draw, into: BatchSlices<'_>) -> Result<FillTime> {
        let mut time = FillTime::default();
        let size = self.0.shape.size_bytes();
        SCRATCH.with_borrow_mut(|(decoder, bytes)| {
            for (&sample, pixels) in samples.iter().zip(into.pixels.chunks_exact_mut(size)) {
                let path = &self.0.files[sample as usize];
                let start = Instant::now();
                bytes.clear();
                std::fs::File::open(path)
                    .and_then(|mut file| file.read_to_end(bytes))
                    .map_err(|source| DataError::reading(path, source))?;
                let fetched = Instant::now();
                decoder.decode(bytes, self.0.shape, path, pixels)?;
                time.fetch_ns += (fetched - start).as_nanos() as u64;
                time.prepare_ns += fetched.elapsed().as_nanos() as u64;
            }
            Ok::<_, DataError>(())
        })?;
        match &self.0.targets {
            ImageTargets::Class { classes, .. } => gather_rows(classes, 1, samples, into.classes),
            ImageTargets::Real { values, names } => gather_rows(values, names.len(), samples, into.targets),
        }
        Ok(time)
    }
}
