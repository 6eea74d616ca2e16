//! Tables that do not fit on the card: the host copies the rows of a batch into pinned memory, a queue of its own carries
//! them over while the card computes on the batches before. Two of each, so that neither side waits for the other; where steps
//! are short, a stage holds several batches, which are copied, carried and computed together.
//!
//! What the caller set for a batch travels in front of its rows: sent by itself, it would wait behind the rows of the next one,
//! since the card's engine carries one thing at a time.

use super::CudaSession;
use crate::EngineError;
use crate::cpu::pool::{self, Parts, Pool};
use crate::cuda::driver::{Block, Event, Pinned, Stream};
use crate::cuda::error::CudaError;
use crate::ops::Op;
use crate::plan::{BufferId, Plan, Role};
use crate::session::Table;
use flatout_core::cpus::UsableCpus;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

/// Threads that copy rows: more than these only fight for the memory.
const MOST_THREADS: usize = 12;
/// Several batches share a stage up to this size.
const LARGEST_STAGE_BYTES: usize = 96 << 20;
/// Parts of a stage begin at multiples of this many bytes.
const ALIGNMENT: usize = 256;
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
    /// Where it lies in its batch's part of a stage.
    offset: usize,
    batch: usize,
    /// Bytes of a row of the table, and of what one index names.
    row_bytes: usize,
    window_bytes: usize,
}

impl Share {
    /// Where a sample's rows lie in its batch's part of a stage.
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

/// Batches on their way.
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
    /// Batches that a stage holds, their bytes, and which of them is being recorded.
    parts: usize,
    part_bytes: usize,
    recorded: Cell<usize>,
    /// Of what the caller set, in front of a batch's rows.
    input_bytes: usize,
    copies: Stream,
    pool: Pool,
}

impl Streaming {
    /// For the gathers of a plan that read one of these tables; nothing where there are none. `together` batches may be sent at
    /// once, each with `input_bytes` that the caller sets.
    pub fn new(
        plan: &Plan,
        tables: &HashMap<BufferId, Table>,
        together: usize,
        input_bytes: usize,
    ) -> Result<Option<Self>, CudaError> {
        let mut shares: Vec<Share> = Vec::new();
        let mut bytes = input_bytes.next_multiple_of(ALIGNMENT);
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
            bytes += (gather.batch * window_bytes).next_multiple_of(ALIGNMENT);
        }
        if shares.is_empty() {
            return Ok(None);
        }
        let parts = if together * bytes <= LARGEST_STAGE_BYTES {
            together
        } else {
            1
        };
        let stage = |_| {
            Ok(Stage {
                host: Pinned::new(parts * bytes)?,
                card: Block::new(parts * bytes)?,
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
            parts,
            part_bytes: bytes,
            recorded: Cell::new(0),
            input_bytes,
            copies: Stream::new(false)?,
            pool: Pool::new(threads),
        }))
    }

    /// Which of the stages holds the batches: graphs are recorded for each.
    pub fn stage(&self) -> usize {
        self.current
    }

    /// How many batches a stage holds.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Where a batch of the stage lies: what the caller set, then its rows.
    pub fn part(&self, number: usize) -> u64 {
        self.stages[self.current].card.address() + (number * self.part_bytes) as u64
    }

    /// Puts a batch in the place of the stage's first, which has been used.
    pub fn bring_forward(&self, number: usize, queue: &Stream) -> Result<(), CudaError> {
        match number {
            0 => Ok(()),
            _ => queue.copy(self.part(0), self.part(number), self.part_bytes),
        }
    }

    /// Work that is recorded from now on reads this batch of the stage.
    pub fn record_part(&self, number: usize) {
        self.recorded.set(number);
    }

    /// Where a gather finds its rows, sample by sample.
    pub fn rows_of(&self, node: usize) -> Option<u64> {
        let share = self.shares.iter().find(|share| share.node == node)?;
        Some(self.part(self.recorded.get()) + share.offset as u64)
    }

    /// Copies the rows that batches ask for and sends them off, behind what the caller set for each (`inputs`); `queue` will
    /// wait for them. `index` finds a gather's indices in what was set.
    fn bring(
        &mut self,
        queue: &Stream,
        inputs: &[&[u8]],
        index: impl Fn(&[u8], BufferId, usize) -> Vec<i32>,
    ) -> Result<(), CudaError> {
        self.current = 1 - self.current;
        let stage = &mut self.stages[self.current];
        if stage.used {
            stage.uploaded.wait()?;
        }
        let indices: Vec<Vec<Vec<i32>>> = inputs
            .iter()
            .map(|set| {
                let of = |share: &Share| index(set, share.index, share.batch);
                self.shares.iter().map(of).collect()
            })
            .collect();
        let (part_bytes, bytes) = (self.part_bytes, inputs.len() * self.part_bytes);
        let memory = stage.host.bytes_mut();
        for (part, set) in memory.chunks_exact_mut(part_bytes).zip(inputs) {
            part[..self.input_bytes].copy_from_slice(set);
        }
        let host = Parts::new(memory);
        let copy = |worker: usize, workers: usize| {
            for (part, indices) in indices.iter().enumerate() {
                for (share, indices) in self.shares.iter().zip(indices) {
                    for sample in pool::share(worker, workers, share.batch, 1) {
                        let place = share.place(sample);
                        let (start, end) = (part * part_bytes + place.start, part * part_bytes + place.end);
                        // SAFETY: each sample of each share belongs to one worker.
                        let place = unsafe { host.part(start..end) };
                        share.copy(indices, sample, place);
                    }
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
        let address = stage.card.address();
        // SAFETY: the pinned memory is written again only after `uploaded` has been waited for.
        unsafe { self.copies.upload(address, stage.host.as_ptr(), bytes)? };
        stage.uploaded.record(&self.copies)?;
        stage.used = true;
        queue.wait_for(&stage.uploaded)
    }

    /// The queue has passed the work that reads the stage.
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
    /// Brings the rows of complete batches over, where tables are streamed: `count` of them from `first` on.
    pub(super) fn bring_rows(&mut self, first: usize, count: usize) -> Result<(), EngineError> {
        let base = self.memory.inputs.address();
        let (memory, slots) = (&self.memory, &self.slots);
        let Some(streaming) = &mut self.streaming else {
            return Ok(());
        };
        let inputs: Vec<&[u8]> = (first..first + count).map(|number| slots.batch(number)).collect();
        let index = |set: &[u8], id: BufferId, count: usize| {
            let offset = (memory.place(id).address - base) as usize;
            let words = set[offset..offset + 4 * count].chunks_exact(4);
            words
                .map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect()
        };
        Ok(streaming.bring(&self.machine.stream, &inputs, index)?)
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

/// Tables from this size on are worth larger pages.
const LARGE_BYTES: usize = 64 << 20;

/// Asks for a table's memory in large pages, beside the training: rows lie anywhere, and looking up small pages takes as long as
/// the rows themselves (measured: 320 ns a row of 512 bytes with small pages, 165 with large ones).
pub(super) fn ask_for_large_pages(table: &Table) {
    #[cfg(target_os = "linux")]
    {
        if table.bytes().len() < LARGE_BYTES {
            return;
        }
        let table = table.clone();
        let advise = move || {
            const PAGE: usize = 4096;
            let bytes = table.bytes();
            let first = (bytes.as_ptr() as usize).next_multiple_of(PAGE);
            let end = (bytes.as_ptr() as usize + bytes.len()) / PAGE * PAGE;
            for advice in [libc::MADV_HUGEPAGE, libc::MADV_COLLAPSE] {
                // SAFETY: whole pages within memory that the table keeps alive; neither advice changes what is in it. Where it
                // cannot be followed (a mapped file, an older kernel) nothing happens.
                unsafe { libc::madvise(first as *mut libc::c_void, end.saturating_sub(first), advice) };
            }
        };
        let name = "flatout-pages".to_owned();
        if let Err(error) = std::thread::Builder::new().name(name).spawn(advise) {
            log::debug!("tables stay in small pages: {error}");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (table, LARGE_BYTES);
}
