//! A record, tick by tick, as if it happened now: at its own pace, faster, or as fast as it can be read.

use super::{Feed, FeedTick};
use flatout_record::{Event, Items, Record, RunInfo, Sample, Skipped};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Times the pace of the run; `Fastest` waits for nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    Times(f64),
    Fastest,
}

/// The keys of the screen keep the pace within this.
const SLOWEST: f64 = 0.1;
const QUICKEST: f64 = 1000.0;

pub struct Replay {
    info: RunInfo,
    next: Option<Sample>,
    samples: Items<Sample>,
    events: VecDeque<Event>,
    skipped_events: Vec<Skipped>,
    speed: Speed,
    /// The run's clock at `since`, which stands still while paused.
    played_s: f64,
    since: Instant,
    paused: bool,
    first: bool,
    last_t: f64,
}

impl Replay {
    pub fn new(record: &Record, speed: Speed) -> Self {
        let mut events = record.events();
        let all: VecDeque<Event> = events.by_ref().collect();
        let mut samples = record.samples();
        let next = samples.next();
        let started_s = next.as_ref().map_or(0.0, |sample| sample.t);
        Self {
            info: record.info.clone(),
            next,
            samples,
            events: all,
            skipped_events: events.skipped,
            speed,
            played_s: started_s,
            since: Instant::now(),
            paused: false,
            first: true,
            last_t: started_s,
        }
    }

    /// Lines that could not be read so far.
    pub fn skipped(&self) -> impl Iterator<Item = &Skipped> {
        self.skipped_events.iter().chain(&self.samples.skipped)
    }

    fn clock_s(&self) -> f64 {
        match self.speed {
            _ if self.paused => self.played_s,
            Speed::Times(factor) => self.played_s + self.since.elapsed().as_secs_f64() * factor,
            Speed::Fastest => f64::INFINITY,
        }
    }

    /// What was played so far is kept, whatever changes from now on.
    fn settle(&mut self) {
        let clock_s = self.clock_s();
        self.played_s = if clock_s.is_finite() { clock_s } else { self.last_t };
        self.since = Instant::now();
    }
}

impl Feed for Replay {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn remaining(&self) -> Duration {
        match (self.speed, &self.next) {
            (Speed::Times(factor), Some(next)) if !self.paused => {
                let due_s = (next.t - self.clock_s()) / factor;
                Duration::from_secs_f64(due_s.clamp(0.0, 3600.0))
            }
            (Speed::Fastest, _) if !self.paused => Duration::ZERO,
            _ => Duration::from_secs(3600),
        }
    }

    fn poll(&mut self) -> Option<FeedTick> {
        let clock_s = self.clock_s();
        let sample = self.next.take_if(|sample| sample.t <= clock_s)?;
        self.next = self.samples.next();
        self.last_t = sample.t;
        let until = self.events.partition_point(|event| event.t <= sample.t);
        let events = self.events.drain(..until).collect();
        Some(FeedTick {
            sample,
            events,
            described: std::mem::take(&mut self.first),
            missed: 0,
            notices: Vec::new(),
        })
    }

    fn is_over(&self) -> bool {
        self.next.is_none()
    }

    fn elapsed_s(&self) -> f64 {
        self.last_t
    }

    fn pause(&mut self, paused: bool) {
        self.settle();
        self.paused = paused;
    }

    fn faster(&mut self, factor: f64) {
        self.settle();
        if let Speed::Times(speed) = self.speed {
            self.speed = Speed::Times((speed * factor).clamp(SLOWEST, QUICKEST));
        }
    }

    fn speed(&self) -> Option<Speed> {
        Some(self.speed)
    }
}
