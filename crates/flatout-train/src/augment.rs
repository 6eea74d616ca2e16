//! Random changes of training images that the gathering of a batch cannot make: rotation, zoom, color, cutout, and all changes of
//! images with positions, which move along. The host changes all training images before each epoch, while the epoch before trains, as a
//! function of (seed, epoch, image) alone: every device gets the same bytes, and a resumed training goes on exactly.

mod change;
mod points;

pub use points::Points;

use crate::Settings;
use crate::data::label_table;
use crate::target::{Labels, Target};
use change::{Change, Size};
use flatout_data::parallel;
use flatout_data::random::Stream;
use flatout_engine::Table;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Random numbers of these changes, apart from those of anything else.
const PURPOSE: u64 = 0xa06;
/// Images that a thread changes in one go.
const TOGETHER: usize = 32;
/// Draws of a movement that may take a position out of the image; then the image stays where it is.
const ATTEMPTS: usize = 8;

/// How far images may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Changes {
    pub flip: bool,
    /// Pixels.
    pub shift: usize,
    /// Degrees.
    pub rotate: f64,
    /// Share of the size.
    pub zoom: f64,
    /// Of brightness, contrast and saturation, as a share.
    pub color: f64,
    /// Side of a square that is blanked, in pixels.
    pub cutout: usize,
}

impl Changes {
    pub fn of(settings: &Settings) -> Self {
        Self {
            flip: settings.flip,
            shift: settings.crop_padding,
            rotate: settings.rotate,
            zoom: settings.zoom,
            color: settings.color_jitter,
            cutout: settings.cutout,
        }
    }

    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Whether a thing in the image may be elsewhere afterwards.
    pub fn moves(&self) -> bool {
        self.flip || self.shift > 0 || self.rotate > 0.0 || self.zoom > 0.0
    }

    /// Whether the host makes them; flips and shifts of images with classes are made where a batch is gathered.
    pub fn on_host(&self, target: &Target) -> bool {
        let gathered = Self {
            flip: self.flip,
            shift: self.shift,
            ..Self::default()
        };
        *self != gathered || (self.is_any() && target.has_numbers())
    }
}

/// Everything that the tables of an epoch are made from.
#[derive(Clone)]
pub struct Augmenter {
    pub changes: Changes,
    pub seed: u64,
    /// Bytes of all images as they are.
    pub pixels: Table,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// The byte that the model sees as 0.
    pub blank: u8,
    pub train: Arc<[u32]>,
    pub target: Target,
    pub labels: Labels,
    pub weights: Option<Vec<f32>>,
    pub points: Points,
}

/// By their names in the plan.
pub type Tables = Vec<(String, Table)>;

impl Augmenter {
    /// The images and labels of an epoch: those of the training part changed, all others as they are.
    pub fn tables(&self, epoch: u64, threads: usize) -> Tables {
        let size = Size {
            height: self.height,
            width: self.width,
            channels: self.channels,
        };
        let bytes = size.bytes().max(1);
        let mut pixels = self.pixels.bytes().to_vec();
        let images = pixels.len() / bytes;
        let mut trained = vec![false; images];
        for &sample in self.train.iter() {
            if let Some(slot) = trained.get_mut(sample as usize) {
                *slot = true;
            }
        }
        let (mut values, columns) = match &self.labels {
            Labels::Real { values, columns } => (values.to_vec(), *columns),
            Labels::Class(_) => (Vec::new(), 0),
        };
        let mut label_parts = values.chunks_mut((TOGETHER * columns).max(1));
        let parts: Vec<_> = pixels
            .chunks_mut(TOGETHER * bytes)
            .map(|part| Mutex::new((part, label_parts.next().unwrap_or_default())))
            .collect();
        let original = self.pixels.bytes();
        let change_part = |index: usize| {
            let mut part = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
            let (pixels, labels) = &mut *part;
            for (place, into) in pixels.chunks_exact_mut(bytes).enumerate() {
                let image = index * TOGETHER + place;
                if !trained[image] {
                    continue;
                }
                let own = match columns {
                    0 => &mut [][..],
                    columns => labels
                        .get_mut(place * columns..(place + 1) * columns)
                        .unwrap_or_default(),
                };
                let change = self.draw(size, epoch, image as u64, own);
                change.apply(size, self.blank, &original[image * bytes..][..bytes], into);
                self.points.moved(own, |point| change.moved(size, point));
            }
            Ok::<_, Infallible>(())
        };
        let _ = parallel::for_each(parts.len(), threads, change_part);
        drop(parts);
        let mut tables = vec![("features".to_owned(), Table::U8(Arc::new(pixels)))];
        if columns > 0 && self.changes.moves() && !self.points.is_empty() {
            let labels = Labels::Real {
                values: Arc::new(values),
                columns,
            };
            let table = label_table(&self.target, &labels, self.weights.as_deref());
            tables.push(("labels".to_owned(), table));
        }
        tables
    }

    /// How an image changes in an epoch; its positions stay in it.
    fn draw(&self, size: Size, epoch: u64, image: u64, labels: &[f32]) -> Change {
        let mut stream = Stream::new(self.seed, &[PURPOSE, epoch, image]);
        let mut change = Change::draw(&self.changes, size, &mut stream);
        let stays = |change: &Change| {
            let mut inside = true;
            let mut labels = labels.to_vec();
            self.points.moved(&mut labels, |point| {
                let moved = change.moved(size, point);
                inside &= size.contains(moved) || !size.contains(point);
                moved
            });
            inside
        };
        for _ in 0..ATTEMPTS {
            if stays(&change) {
                return change;
            }
            change = Change::draw(&self.changes, size, &mut stream);
        }
        match stays(&change) {
            true => change,
            false => change.in_place(),
        }
    }
}

/// Makes the tables of the next epoch while one is trained.
pub struct Ahead {
    augmenter: Arc<Augmenter>,
    next: Option<(u64, JoinHandle<Tables>)>,
}

impl Ahead {
    pub fn new(augmenter: Arc<Augmenter>) -> Self {
        Self {
            augmenter,
            next: None,
        }
    }

    /// The tables of an epoch. `more`: the one after it comes, too.
    pub fn tables(&mut self, epoch: u64, more: bool) -> Tables {
        let threads = parallel::threads(None);
        let made = match self.next.take() {
            Some((known, thread)) if known == epoch => thread.join().ok(),
            _ => None,
        };
        let tables = made.unwrap_or_else(|| self.augmenter.tables(epoch, threads));
        if more {
            let augmenter = Arc::clone(&self.augmenter);
            // The steps need the CPU as well.
            let thread = std::thread::Builder::new()
                .name("flatout-images".to_owned())
                .spawn(move || augmenter.tables(epoch + 1, (threads / 2).max(1)));
            self.next = thread.ok().map(|thread| (epoch + 1, thread));
        }
        tables
    }
}
