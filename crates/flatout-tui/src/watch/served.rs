//! The newest sample on the Prometheus page.

use super::{FeedTick, Sink};
use flatout_record::RunInfo;
use flatout_telemetry::prometheus::{PrometheusServer, Snapshot};

pub struct Served {
    server: PrometheusServer,
    info: RunInfo,
    ticks: u64,
}

impl Served {
    pub fn new(server: PrometheusServer, info: &RunInfo) -> Self {
        Self {
            server,
            info: info.clone(),
            ticks: 0,
        }
    }
}

impl Sink for Served {
    fn describe(&mut self, info: &RunInfo) {
        self.info = info.clone();
    }

    fn tick(&mut self, tick: &FeedTick) {
        self.ticks += 1;
        self.server.publish(Snapshot {
            info: self.info.clone(),
            sample: tick.sample.clone(),
            ticks: self.ticks,
            missed: tick.missed,
        });
    }
}
