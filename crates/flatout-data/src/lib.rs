//! The data engine: files become contiguous blocks in memory, samples become indices, batches are gathered by threads into memory
//! that the caller lends. It knows nothing of models.
//!
//! # In two minutes
//!
//! ```no_run
//! use flatout_data::*;
//! use std::sync::Arc;
//! # fn main() -> Result<()> {
//! // 1. Load. A folder of Parquet files, one an entity, becomes one `[rows, features]` block of f32.
//! let mut panel = load_panel("data/stocks".as_ref(), &PanelOptions { label: "return_pct".into(), ..Default::default() })?;
//! // 2. Split by time, standardise on the training rows only, enumerate windows (first rows; nothing is copied).
//! let parts = panel.split(&SplitRule::default())?;
//! let standardiser = panel.standardise(&parts.train);
//! let (length, horizon) = (60, 1);
//! let train = panel.windows(&parts.train, length, horizon)?.starts; // Arc<[u32]>
//! // 3a. On a GPU: upload `panel.features`, `panel.labels`, `panel.entity_of_row` and `train`, gather there; the label of
//! //     window `w` is `labels[w + length - 1 + horizon]`, its entity `entity_of_row[w]`. The order of an epoch:
//! let order = EpochOrder::new(train, 512, true, Some(42));
//! let mut ids = vec![0u32; 512];
//! order.fill(Position { epoch: 0, batch: 7 }, &mut ids); // any batch, any time: resume is exact
//! // 3b. Or stream: threads fill batches ahead, into memory you lend (implement `BatchMemory` for pinned memory).
//! let source: Arc<dyn SampleSource> = Arc::new(WindowSource { panel: Arc::new(panel), sequence_length: length, horizon });
//! let memories = (0..4).map(|_| HostBatch::new(source.shape(), 512)).collect();
//! let mut batches = Prefetcher::new(source, order, Position::default(), memories, Threads::Auto)?;
//! let batch = batches.next_batch()?; // waits if it must; `batch.memory.inputs` is [samples, 60, features]
//! # drop(batch); Ok(()) }
//! ```
//!
//! [`Tabular`] (rows with features, categorical codes and a label) and [`Images`] (one block of bytes with classes or regression
//! targets) work the same way with [`TabularSource`] and [`ImageSource`]: `split` gives `Arc<[u32]>` of samples, `EpochOrder` orders
//! them, a source fills them.
//!
//! # Map
//!
//! | module | what |
//! | --- | --- |
//! | [`dataset`] | the three shapes in memory |
//! | [`split`], [`standardise`] | parts without leaks |
//! | [`order`] | the shuffle: a computed permutation of (seed, epoch) |
//! | [`batch`], [`source`], [`file_source`] | what a batch is; gathering it from memory, or decoding it from files |
//! | [`prefetch`] | threads, queue, back-pressure, the controller |
//! | [`formats`], [`load`] | files to columns |
//! | [`table_stream`] | a table larger than memory, part after part |
//! | [`cache`] | a parsed data set in one mapped file: `Cache::new(Cache::default_folder()).panel(path, &options)` |
//! | [`inspect`] | what the engine sees at a path |
//! | [`generate`] | synthetic data with a known best score |
//! | [`random`], [`parallel`], [`block`], [`paths`], [`glob`], [`time`] | the tools underneath |

pub mod batch;
pub mod block;
pub mod cache;
pub mod dataset;
pub mod error;
pub mod file_source;
pub mod formats;
mod gather;
pub mod generate;
pub mod glob;
mod image_source;
pub mod inspect;
pub mod load;
mod mapping;
pub mod order;
pub mod parallel;
pub mod paths;
pub mod prefetch;
pub mod random;
pub mod shards;
pub mod source;
pub mod split;
mod stamps;
pub mod standardise;
pub mod table;
pub mod table_source;
pub mod table_stream;
pub mod text_list;
pub mod time;

pub use batch::{BatchMemory, BatchSlices, Draw, FillTime, Filled, HostBatch, SampleShape, SampleSource};
pub use block::Block;
pub use cache::{Cache, CacheUse};
pub use dataset::{
    Category, Entity, ImageTargets, Images, Labels, Panel, PanelSplit, Recoded, Tabular, Windows,
};
pub use error::{DataError, Result};
pub use file_source::ImageFileSource;
pub use load::images::{ImageOptions, load_images};
pub use load::join::{JoinRecipe, SideTable};
pub use load::missing::Missing;
pub use load::panel::{PanelOptions, load_panel};
pub use load::policies::{Policies, Written};
pub use load::tabular::{LabelKind, TabularOptions, load_tabular};
pub use order::{EpochOrder, Permutation, Position};
pub use prefetch::{Lease, Prefetcher, Threads};
pub use source::{Augment, ImageSource, PixelFormat, TabularSource, WindowSource};
pub use split::{SplitRule, Splits};
pub use standardise::Standardiser;
