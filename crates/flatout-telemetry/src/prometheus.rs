//! The latest sample as a page for Prometheus: [`page`] writes it, [`PrometheusServer`] serves it, on loopback unless told
//! otherwise. It shows what was sampled and samples nothing itself; unknown values are absent, never 0.

mod family;
mod metrics;
mod server;

pub use server::{DEFAULT_ADDRESS, PrometheusError, PrometheusServer};

use family::Page;
use flatout_record::{RunInfo, Sample};

/// What a page is made of.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub info: RunInfo,
    pub sample: Sample,
    pub ticks: u64,
    pub missed: u64,
}

/// The page in the text exposition format 0.0.4.
pub fn page(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    metrics::about(&mut page, snapshot);
    metrics::gpus(&mut page, snapshot);
    metrics::host(&mut page, &snapshot.sample.host);
    metrics::processes(&mut page, &snapshot.sample);
    page.finish()
}
