//! What one rank spent in collectives, by the line that calls them.

use flatout_core::{Message, Place, message};
use flatout_record::{EventKind, RunData};

/// The gradients that DistributedDataParallel reduces during backward.
pub const GRADIENTS: &str = "ddp-gradients";
/// The buffers that it sends from rank 0 before each forward.
pub const BUFFERS: &str = "ddp-buffers";

/// A collective as its users call it.
pub fn op_name(op: &str) -> Message {
    match op {
        GRADIENTS => message!(en: "DDP's gradient all-reduce", zh: "DDP 的梯度 all-reduce"),
        BUFFERS => message!(en: "DDP's buffer broadcast", zh: "DDP 的 buffer 广播"),
        other => Message::verbatim(other),
    }
}

#[derive(Clone, Debug, Default)]
pub struct Collectives {
    /// By time, the largest first.
    pub sites: Vec<Site>,
    /// Ranks that were compared, of how many there are.
    pub compared: u32,
    pub world: u32,
}

/// One line that calls a collective.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub op: String,
    pub place: Option<Place>,
    pub count: u64,
    /// Until the last rank arrived, and after that; `None` where the host only starts it, or no other rank was seen.
    pub wait_s: Option<f64>,
    pub transfer_s: Option<f64>,
    /// How often this rank came last, and by how much in all.
    pub last: u64,
    pub late_s: f64,
    seconds: f64,
}

impl Collectives {
    /// `None` where no rank called one.
    pub fn new(data: &RunData, (start_s, end_s): (f64, f64)) -> Option<Self> {
        let mut all = Self::default();
        for event in &data.events {
            if event.t <= start_s || event.t > end_s + 1.0 {
                continue;
            }
            if let EventKind::Collective { .. } = &event.kind {
                all.add(&event.kind);
            }
        }
        for site in &mut all.sites {
            // Those that could not be compared are taken to be like the others.
            if let (Some(wait), Some(transfer)) = (&mut site.wait_s, &mut site.transfer_s) {
                let known = *wait + *transfer;
                let factor = if known > 0.0 { site.seconds / known } else { 1.0 };
                (*wait, *transfer) = (*wait * factor, *transfer * factor);
            }
        }
        all.sites.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        (!all.sites.is_empty() && all.world > 1).then_some(all)
    }

    fn add(&mut self, kind: &EventKind) {
        let EventKind::Collective {
            op,
            place,
            count,
            ms,
            wait_ms,
            transfer_ms,
            last,
            late_ms,
            ranks,
            world,
            ..
        } = kind
        else {
            return;
        };
        let same = |site: &&mut Site| site.op == *op && site.place == *place;
        let site = match self.sites.iter_mut().find(same) {
            Some(site) => site,
            None => {
                self.sites.push(Site {
                    op: op.clone(),
                    place: place.clone(),
                    ..Site::default()
                });
                let newest = self.sites.len() - 1;
                &mut self.sites[newest]
            }
        };
        let add = |sum: &mut Option<f64>, ms: &Option<f64>| {
            if let Some(ms) = ms {
                *sum.get_or_insert(0.0) += ms / 1e3;
            }
        };
        site.count += count;
        site.seconds += ms / 1e3;
        site.last += last;
        site.late_s += late_ms / 1e3;
        add(&mut site.wait_s, wait_ms);
        add(&mut site.transfer_s, transfer_ms);
        self.compared = self.compared.max(*ranks);
        self.world = self.world.max(*world);
    }

    /// Seconds of the host in collectives.
    pub fn seconds(&self) -> f64 {
        let blocking = self.sites.iter().filter(|site| site.wait_s.is_some());
        blocking.map(|site| site.seconds).sum()
    }

    /// Seconds of the host in all collectives, also in those that were not compared with other ranks'.
    pub fn host_s(&self) -> f64 {
        self.sites.iter().map(|site| site.seconds).sum()
    }

    /// Seconds until the last rank arrived; `None` where that is not known of any.
    pub fn wait_s(&self) -> Option<f64> {
        sum(self.sites.iter().filter_map(|site| site.wait_s))
    }

    /// Seconds after the last rank had arrived.
    pub fn transfer_s(&self) -> Option<f64> {
        sum(self.sites.iter().filter_map(|site| site.transfer_s))
    }

    /// By how much this rank came later than the others when it was the last.
    pub fn late_s(&self) -> f64 {
        self.sites.iter().map(|site| site.late_s).sum()
    }
}

fn sum(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}
