//! Tables that do not fit on the card: the host copies the rows of a batch into pinned memory, a queue of its own carries
//! them over while the card computes on the batch before. Two of each, so that neither side waits for the other.

use super::CudaSession;
use crate::EngineError;
use crate::cpu::pool::{self, Parts, Pool};
use crate::cuda::driver::{Block, Event, Pinned, Stream};
use crate::cuda::error::CudaError;
use crate::ops::Op;
use crate::plan::{BufferId, Plan, Role};
use crate::session::Table;
use flatout_core::cpus::UsableCpus;
use std::collections::HashMap;
use std::ops::Range;

/// Threads that copy rows: more than these only fight for the memory.
const MOST_THREADS: usize = 8;
/// Less than this is copied sooner than anybody is woken.
const ALONE_BYTES: usize = 512 << 10;
/// How many samples ahead memory is asked for: rows lie anywhere, and each would be waited for.
const AHEAD: usize = 6;
/// Of a window, this much is asked for; the rest follows by itself.
const AHEAD_BYTES: usize = 1024;

/// What one gather brings over for a batch.
struct Share {
    node: usize,
    table: Table,
    index: BufferId,
    /// Where it lies in a stage, and how long it is.
    offset: usize,
    batch: usize,
    /// Bytes of a row of the table, and of what one index names.
    row_bytes: usize,
    window_bytes: usize,
}

impl Share {
    /// Where a sample's rows lie in a stage.
    fn place(&self, sample: usize) -> Range<usize> {
        let first = self.offset + sample * self.window_bytes;
        first..first + self.window_bytes
    }

    fn copy(&self, indices: &[i32], sample: usize, place: &mut [u8]) {
        let (source, first) = (self.table.bytes(), |index: i32| index as usize * self.row_bytes);
        if let Some(index) = indices.get(sample + AHEAD) {
            ask_for(source, first(*index), self.window_bytes.min(AHEAD_BYTES));
        }
        let first = first(indices[sample]);
        // Indices were looked at on their way in.
        if let Some(rows) = source.get(first..first + self.window_bytes) {
            place.copy_from_slice(rows);
        }
    }
}

/// One batch on its way.
struct Stage {
    host: Pinned,
    card: Block,
    uploaded: Event,
    consumed: Event,
    used: bool,
}

/// The gathers whose tables stay with the host.
pub(super) struct Streaming {
    shares: Vec<Share>,
    stages: Vec<Stage>,
    current: usize,
    copies: Stream,
    pool: Pool,
}

impl Streaming {
    /// For the gathers of a plan that read one of these tables; nothing where there are none.
    pub fn new(plan: &Plan, tables: &HashMap<BufferId, Table>) -> Result<Option<Self>, CudaError> {
        let mut shares: Vec<Share> = Vec::new();
        let mut bytes = 0;
        for (node, found) in plan.nodes().iter().enumerate() {
            let Op::Gather(gather) = &found.op else { continue };
            let Some(table) = tables.get(&found.inputs[0]) else {
                continue;
            };
            let row_bytes = gather.width * table.value_bytes();
            let window_bytes = row_bytes * gather.length();
            shares.push(Share {
                node,
                table: table.clone(),
                index: found.inputs[1],
                offset: bytes,
                batch: gather.batch,
                row_bytes,
                window_bytes,
            });
            bytes += (gather.batch * window_bytes).next_multiple_of(256);
        }
        if shares.is_empty() {
            return Ok(None);
        }
        let stage = |_| {
            Ok(Stage {
                host: Pinned::new(bytes)?,
                card: Block::new(bytes)?,
                uploaded: Event::new()?,
                consumed: Event::new()?,
                used: false,
            })
        };
        let threads = UsableCpus::here()
            .count()
            .saturating_sub(1)
            .clamp(1, MOST_THREADS);
        Ok(Some(Self {
            shares,
            stages: (0..2).map(stage).collect::<Result<_, CudaError>>()?,
            current: 0,
            copies: Stream::new(false)?,
            pool: Pool::new(threads),
        }))
    }

    /// Which of the stages holds the batch: graphs are recorded for each.
    pub fn stage(&self) -> usize {
        self.current
    }

    /// Where a gather finds its rows, sample by sample.
    pub fn rows_of(&self, node: usize) -> Option<u64> {
        let share = self.shares.iter().find(|share| share.node == node)?;
        Some(self.stages[self.current].card.address() + share.offset as u64)
    }

    /// Copies the rows that the indices name and sends them off; `queue` will wait for them.
    fn bring(
        &mut self,
        queue: &Stream,
        index: impl Fn(BufferId, usize) -> Vec<i32>,
    ) -> Result<(), CudaError> {
        self.current = 1 - self.current;
        let stage = &mut self.stages[self.current];
        if stage.used {
            stage.uploaded.wait()?;
        }
        let indices: Vec<Vec<i32>> = self
            .shares
            .iter()
            .map(|share| index(share.index, share.batch))
            .collect();
        let bytes = stage.host.bytes_mut().len();
        let host = Parts::new(stage.host.bytes_mut());
        let copy = |worker: usize, workers: usize| {
            for (share, indices) in self.shares.iter().zip(&indices) {
                for sample in pool::share(worker, workers, share.batch, 1) {
                    // SAFETY: each sample of each share belongs to one worker.
                    let place = unsafe { host.part(share.place(sample)) };
                    share.copy(indices, sample, place);
                }
            }
        };
        if bytes < ALONE_BYTES {
            copy(0, 1);
        } else {
            self.pool.run(&|worker| copy(worker, self.pool.workers()));
        }
        if stage.used {
            self.copies.wait_for(&stage.consumed)?;
        }
        let (bytes, address) = (stage.card.bytes(), stage.card.address());
        // SAFETY: the pinned memory is written again only after `uploaded` has been waited for.
        unsafe { self.copies.upload(address, stage.host.as_ptr(), bytes)? };
        stage.uploaded.record(&self.copies)?;
        stage.used = true;
        queue.wait_for(&stage.uploaded)
    }

    /// The queue has passed the work that reads the batch.
    pub fn consumed(&self, queue: &Stream) -> Result<(), CudaError> {
        self.stages[self.current].consumed.record(queue)
    }
}

/// Has memory brought into the cache.
fn ask_for(source: &[u8], first: usize, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (first..first + bytes).step_by(64) {
        if let Some(byte) = source.get(offset) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a hint; the address is of a byte that exists.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (source, first, bytes);
}

impl CudaSession {
    /// Brings the batch's rows over, where tables are streamed.
    pub(super) fn bring_rows(&mut self) -> Result<(), EngineError> {
        let base = self.memory.inputs.address();
        let (memory, slots) = (&self.memory, &mut self.slots);
        let Some(streaming) = &mut self.streaming else {
            return Ok(());
        };
        let filled: &[u8] = slots.filling();
        let index = |id: BufferId, count: usize| {
            let offset = (memory.place(id).address - base) as usize;
            let words = filled[offset..offset + 4 * count].chunks_exact(4);
            words
                .map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect()
        };
        Ok(streaming.bring(&self.machine.stream, index)?)
    }

    /// Whether a table can stay with the host: its rows are named by the caller, not by another table.
    pub(super) fn can_stream(&self, table: BufferId) -> bool {
        let readers = self
            .plan
            .nodes()
            .iter()
            .filter(|node| node.inputs.first() == Some(&table));
        let mut indices = readers.filter_map(|node| node.inputs.get(1));
        indices.all(|index| self.plan.buffer(*index).role == Role::Input)
    }
}
