//! Random flips and shifts of training pictures: while one epoch trains, threads make the bytes of the next. A picture keeps its number,
//! pictures to validate on stay as they are, and what happens to a picture depends on (seed, epoch, picture) alone, so a resumed
//! training sees the same ones.

use crate::TrainError;
use flatout_data::batch::{BatchSlices, Draw};
use flatout_data::{Augment, DataError, ImageSource, Images, PixelFormat, SampleSource, parallel};
use flatout_engine::Table;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Pixels of pictures that stay where they are.
pub struct Pixels(pub Arc<Images>);

impl AsRef<[u8]> for Pixels {
    fn as_ref(&self) -> &[u8] {
        &self.0.pixels
    }
}

/// A copy begins by itself.
impl Clone for Augmentation {
    fn clone(&self) -> Self {
        Self {
            source: self.source.clone(),
            training: self.training.clone(),
            seed: self.seed,
            next: None,
        }
    }
}

type Made = Result<Vec<u8>, DataError>;

pub struct Augmentation {
    source: ImageSource,
    training: Arc<[u32]>,
    pub seed: u64,
    /// The epoch that is being made.
    next: Option<(u64, JoinHandle<Made>)>,
}

impl Augmentation {
    pub fn new(images: Arc<Images>, augment: Augment, training: Arc<[u32]>, seed: u64) -> Self {
        Self {
            source: ImageSource {
                images,
                format: PixelFormat::Bytes,
                augment,
            },
            training,
            seed,
            next: None,
        }
    }

    /// The pictures of an epoch; those of the one after it are begun.
    pub fn epoch(&mut self, epoch: u64) -> Result<Table, TrainError> {
        let ready = self.next.take().filter(|(made, _)| *made == epoch);
        let bytes = match ready.and_then(|(_, thread)| thread.join().ok()) {
            Some(made) => made?,
            None => make(
                &self.source,
                &self.training,
                self.seed,
                epoch,
                parallel::threads(None),
            )?,
        };
        let (source, training, seed) = (self.source.clone(), self.training.clone(), self.seed);
        // One thread beside those that train: it has a whole epoch's time.
        let thread = std::thread::Builder::new()
            .name("flatout-augment".to_owned())
            .spawn(move || make(&source, &training, seed, epoch + 1, 1));
        self.next = thread.ok().map(|thread| (epoch + 1, thread));
        Ok(Table::U8(Arc::new(bytes)))
    }
}

fn make(source: &ImageSource, training: &[u32], seed: u64, epoch: u64, threads: usize) -> Made {
    let size = source.images.pixels_per_image();
    let mut bytes = source.images.pixels.to_vec();
    let mut changed = vec![false; source.images.count];
    training
        .iter()
        .for_each(|&sample| changed[sample as usize] = true);
    let pictures: Vec<Mutex<&mut [u8]>> = bytes.chunks_exact_mut(size).map(Mutex::new).collect();
    parallel::for_each(pictures.len(), threads, |index| {
        if !changed[index] {
            return Ok(());
        }
        let mut pixels = pictures[index]
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        let into = BatchSlices {
            pixels: &mut pixels,
            ..BatchSlices::default()
        };
        source
            .fill(&[index as u32], Draw { seed, epoch }, into)
            .map(|_| ())
    })?;
    drop(pictures);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_differ_repeat_and_leave_validation_alone() {
        let images = Arc::new(Images {
            pixels: (0..4 * 25).map(|value| value as u8).collect::<Vec<u8>>().into(),
            count: 4,
            height: 5,
            width: 5,
            channels: 1,
            ..Images::default()
        });
        let augment = Augment {
            flip: true,
            crop_padding: 2,
        };
        let new = || Augmentation::new(images.clone(), augment, Arc::from([0u32, 2, 3]), 7);
        let bytes = |table: Table| match table {
            Table::U8(values) => (*values).as_ref().to_vec(),
            _ => Vec::new(),
        };
        let mut one = new();
        let (first, second) = (bytes(one.epoch(0).unwrap()), bytes(one.epoch(1).unwrap()));
        assert_ne!(first, second);
        assert_eq!(
            second,
            bytes(new().epoch(1).unwrap()),
            "resumed at the second epoch"
        );
        assert_eq!(first[25..50], images.pixels[25..50]);
        assert_ne!(first[..25], images.pixels[..25]);
    }
}
