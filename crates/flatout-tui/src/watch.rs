//! Watching: a feed of ticks goes into sinks (record, log), onto a view (screen, lines) and into the verdict.
//!
//! The feed is the sampler or a record that is played back; the loop is the same, so a replay ends with the same verdict.

mod feed;
mod live;
mod replay;
mod served;
mod sinks;

pub use feed::{Feed, FeedTick};
pub use live::Live;
pub use replay::{Replay, Speed};
pub use served::Served;
pub use sinks::{CsvLog, RecordSink, Sink, SinkError};

use flatout_diagnose::verdict::{Gatherer, Verdict};
use flatout_record::RunInfo;
use std::time::Duration;

/// What a view gets to show at a tick.
pub struct Moment<'a> {
    pub info: &'a RunInfo,
    pub tick: &'a FeedTick,
    /// Speed of a replay; `None` when it happens now.
    pub speed: Option<Speed>,
    /// What the sinks have to say: where the record goes, what was lost.
    pub remarks: &'a [String],
}

/// What the person at the view wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wish {
    GoOn,
    Quit,
    /// Stop (or go on) showing; a replay also stops, sampling does not.
    Pause(bool),
    /// A replay times this.
    Faster(f64),
}

pub trait View {
    /// Something new was measured.
    fn show(&mut self, moment: &Moment);

    /// Waits for the person, at most this long.
    fn wait(&mut self, at_most: Duration) -> Wish;
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Duration,
    /// The person quit, or a signal came.
    Quit,
    /// The watched process ended, or the record did.
    Over,
}

pub struct Outcome {
    pub verdict: Verdict,
    pub end: End,
}

/// Watches until the duration is over, the feed is, or the person has seen enough.
pub fn watch(
    feed: &mut dyn Feed,
    view: &mut dyn View,
    sinks: &mut [Box<dyn Sink>],
    duration: Option<Duration>,
) -> Outcome {
    let mut gatherer = Gatherer::new(feed.info());
    let end = loop {
        // By the feed's clock, so that the tick at the very end is not a matter of luck.
        let left = duration.map(|duration| (duration.as_secs_f64() - feed.elapsed_s()).max(0.0));
        if left == Some(0.0) {
            break End::Duration;
        }
        if let Some(tick) = feed.poll() {
            if tick.described {
                gatherer.describe(feed.info());
                sinks.iter_mut().for_each(|sink| sink.describe(feed.info()));
            }
            gatherer.add(&tick.sample);
            sinks.iter_mut().for_each(|sink| sink.tick(&tick));
            let remarks: Vec<String> = sinks.iter().filter_map(|sink| sink.remark()).collect();
            view.show(&Moment {
                info: feed.info(),
                tick: &tick,
                speed: feed.speed(),
                remarks: &remarks,
            });
        }
        if feed.is_over() {
            break End::Over;
        }
        let left = left.map_or(Duration::MAX, Duration::from_secs_f64);
        let at_most = left.min(feed.remaining());
        match view.wait(at_most) {
            Wish::GoOn => {}
            Wish::Quit => break End::Quit,
            Wish::Pause(paused) => feed.pause(paused),
            Wish::Faster(factor) => feed.faster(factor),
        }
    };
    let t = feed.elapsed_s();
    sinks.iter_mut().for_each(|sink| sink.finish(t));
    Outcome {
        verdict: gatherer.verdict(),
        end,
    }
}

#[cfg(test)]
mod tests;
