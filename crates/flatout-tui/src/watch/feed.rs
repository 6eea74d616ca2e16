//! Where ticks come from.

use super::Speed;
use flatout_core::Message;
use flatout_record::{Event, RunInfo, Sample};
use std::time::Duration;

/// What one tick brought.
#[derive(Clone, Debug, Default)]
pub struct FeedTick {
    pub sample: Sample,
    pub events: Vec<Event>,
    /// [`Feed::info`] has something new to say.
    pub described: bool,
    /// Ticks that could not be taken in time, so far.
    pub missed: u64,
    /// What a person should know, once.
    pub notices: Vec<Message>,
}

pub trait Feed {
    /// What is known of the run by now.
    fn info(&self) -> &RunInfo;

    /// How long until the next tick.
    fn remaining(&self) -> Duration;

    /// The next tick, if it is due.
    fn poll(&mut self) -> Option<FeedTick>;

    /// Nothing will come any more.
    fn is_over(&self) -> bool;

    /// Seconds of the run so far, on the clock of the samples.
    fn elapsed_s(&self) -> f64;

    fn pause(&mut self, _paused: bool) {}

    fn faster(&mut self, _factor: f64) {}

    /// `None` when it happens now.
    fn speed(&self) -> Option<Speed> {
        None
    }
}
