//! What the screen shows: the newest sample, a stretch of history, and how the person wants to see it.

use super::Theme;
use crate::watch::{Moment, Speed};
use flatout_core::{Language, Message, message};
use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::{EventKind, RunInfo, Sample};
use std::collections::{BTreeMap, VecDeque};

/// As wide as the widest terminal in practice; a point is 16 bytes.
const HISTORY: usize = 512;
const MESSAGES: usize = 3;

pub struct State {
    /// `monitor` or `replay`.
    pub title: String,
    pub language: Language,
    pub theme: Theme,
    pub sort: Sort,
    pub help: bool,
    /// First process shown.
    pub scroll: usize,
    live: Picture,
    /// What was there when it was paused.
    frozen: Option<Box<Picture>>,
}

/// A moment, with what led to it.
#[derive(Clone, Default)]
pub struct Picture {
    pub info: RunInfo,
    pub sample: Sample,
    pub history: BTreeMap<u32, VecDeque<Point>>,
    pub cpu: VecDeque<Point>,
    pub missed: u64,
    pub speed: Option<Speed>,
    pub remarks: Vec<String>,
    /// What should be known, newest last.
    pub messages: VecDeque<Message>,
    pub begun: bool,
}

/// One tick of a graph; unknown stays a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub share: Option<f32>,
    /// The part of it in which SMs had work, where that is known.
    pub inner: Option<f32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    GpuMemory,
    SmShare,
    Cpu,
    Pid,
}

impl Sort {
    pub fn next(self) -> Self {
        match self {
            Self::GpuMemory => Self::SmShare,
            Self::SmShare => Self::Cpu,
            Self::Cpu => Self::Pid,
            Self::Pid => Self::GpuMemory,
        }
    }

    pub fn name(self) -> Message {
        match self {
            Self::GpuMemory => message!(en: "GPU memory", zh: "显存"),
            Self::SmShare => message!(en: "SM share", zh: "SM 占用"),
            Self::Cpu => message!(en: "CPU", zh: "CPU"),
            Self::Pid => message!(en: "PID", zh: "PID"),
        }
    }
}

impl State {
    pub fn new(title: &str, language: Language, theme: Theme) -> Self {
        Self {
            title: title.to_owned(),
            language,
            theme,
            sort: Sort::default(),
            help: false,
            scroll: 0,
            live: Picture::default(),
            frozen: None,
        }
    }

    pub fn picture(&self) -> &Picture {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    pub fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// Says whether it is paused now.
    pub fn toggle_pause(&mut self) -> bool {
        self.frozen = match self.frozen.take() {
            Some(_) => None,
            None => Some(Box::new(self.live.clone())),
        };
        self.is_paused()
    }

    pub fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    /// Takes a tick in, also while paused.
    pub fn take(&mut self, moment: &Moment) {
        let picture = &mut self.live;
        if moment.tick.described || !picture.begun {
            picture.info = moment.info.clone();
        }
        let sample = &moment.tick.sample;
        for index in picture.info.gpus.keys().chain(sample.gpus.keys()) {
            picture.history.entry(*index).or_default();
        }
        for (index, history) in &mut picture.history {
            let gpu = sample.gpus.get(index);
            let narrow = |value: Option<f64>| value.map(|value| value as f32);
            remember(
                history,
                Point {
                    share: narrow(gpu.and_then(utilisation_of_tick)),
                    inner: narrow(gpu.and_then(|gpu| gpu.sm_activity)),
                },
            );
        }
        remember(
            &mut picture.cpu,
            Point {
                share: sample.host.cpu_util.map(|value| value as f32),
                inner: None,
            },
        );
        let events = moment.tick.events.iter().filter_map(|event| told(&event.kind));
        for message in moment.tick.notices.iter().cloned().chain(events) {
            if picture.messages.len() == MESSAGES {
                picture.messages.pop_front();
            }
            picture.messages.push_back(message);
        }
        picture.sample = sample.clone();
        picture.missed = moment.tick.missed;
        picture.speed = moment.speed;
        picture.remarks = moment.remarks.to_vec();
        picture.begun = true;
    }
}

fn remember(history: &mut VecDeque<Point>, point: Point) {
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(point);
}

/// Events that a person at the screen should see.
fn told(kind: &EventKind) -> Option<Message> {
    Some(match kind {
        EventKind::GpuLost { gpu, message } => {
            message!(en: "lost contact with GPU {gpu}: {message}", zh: "GPU {gpu} 已掉线：{message}")
        }
        EventKind::OutOfMemory { message, .. } => {
            message!(en: "out of memory: {message}", zh: "显存不足：{message}")
        }
        EventKind::Note { source, text } => message!(en: "{source}: {text}", zh: "{source}：{text}"),
        _ => return None,
    })
}
