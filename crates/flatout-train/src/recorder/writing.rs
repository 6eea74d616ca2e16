//! The thread that writes the record and reads the sources, so that the training thread does neither. Two ticks go round: one is
//! filled while the other is written; when writing is slow (a full disk, a file system far away), the tick being filled grows longer.

use super::tick::Tick;
use super::{DeviceReading, Shared, TICK_S, reading};
use flatout_core::cpus::UsableCpus;
use flatout_telemetry::Sampler;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub struct Writing {
    /// `None` once it is to end.
    full: Option<SyncSender<Box<Tick>>>,
    empty: Receiver<Box<Tick>>,
    thread: Option<JoinHandle<()>>,
}

impl Writing {
    pub fn start(shared: Arc<Shared>, sampler: Option<Sampler>) -> io::Result<Self> {
        let (full, to_write) = sync_channel(1);
        let (written, empty) = sync_channel(1);
        // Cannot fail: the channel has room for it, and both ends live.
        let _ = written.send(Box::new(Tick::new()));
        let thread = std::thread::Builder::new()
            .name("flatout-record".to_owned())
            .spawn(move || work(&shared, sampler, &to_write, &written))?;
        Ok(Self {
            full: Some(full),
            empty,
            thread: Some(thread),
        })
    }

    /// Hands a full tick over for an empty one, unless the one before is still being written.
    pub fn exchange(&self, tick: &mut Box<Tick>) -> bool {
        let (Some(full), Ok(empty)) = (&self.full, self.empty.try_recv()) else {
            return false;
        };
        full.try_send(std::mem::replace(tick, empty)).is_ok()
    }

    /// Writes a last tick and waits until all is written.
    pub fn finish(&mut self, last: Box<Tick>) {
        if let Some(full) = self.full.take() {
            let _ = full.send(last);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    shared: &Shared,
    mut sampler: Option<Sampler>,
    to_write: &Receiver<Box<Tick>>,
    written: &SyncSender<Box<Tick>>,
) {
    let usable_cpus = UsableCpus::here().count() as f64;
    loop {
        let wait = sampler
            .as_ref()
            .map_or(Duration::from_secs_f64(TICK_S), Sampler::remaining);
        match to_write.recv_timeout(wait) {
            Ok(mut tick) => {
                let line = tick.line();
                if let Some(busy_ms) = line.busy_ms {
                    // The device's own clock knows better than the driver's samples.
                    let ratio = (busy_ms / (line.dt * 1e3)).clamp(0.0, 1.0);
                    shared.watched().own_busy_ratio = Some(ratio);
                }
                shared.writer().steps(&line);
                *tick = Tick::new();
                // There is no room for the last one of a training, and nobody who wants it.
                let _ = written.try_send(tick);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(tick) = sampler.as_mut().and_then(Sampler::poll) {
            let mut writer = shared.writer();
            writer.sample(&tick.sample);
            tick.events.iter().for_each(|event| writer.event(event));
            if tick.described
                && let Some(sampler) = &sampler
            {
                writer.update_info(|info| sampler.describe(info));
            }
            drop(writer);
            let mut watched = shared.watched();
            let gpu = watched.gpu;
            watched.reading = reading(&tick.sample, gpu, usable_cpus);
        }
    }
}

/// Which of the visible GPUs trains, `None` for the CPU, and what was last read of it.
#[derive(Default)]
pub struct Watched {
    pub gpu: Option<usize>,
    pub reading: DeviceReading,
    pub own_busy_ratio: Option<f64>,
}

impl Shared {
    pub fn writer(&self) -> std::sync::MutexGuard<'_, flatout_record::RecordWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
