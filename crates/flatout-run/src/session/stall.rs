//! A program that gets nowhere: no step, no batch and no collective for a long time. Where every rank is goes into the record and to the
//! terminal, once per stall. The program is left alone unless asked otherwise.

use super::{Live, Options, Recording};
use crate::program::{self, Program};
use flatout_record::{Event, EventKind, RecordWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to do with a program that has stalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnHang {
    #[default]
    Leave,
    Stop,
}

/// After SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(30);

pub struct Stall {
    patience_s: Option<f64>,
    on_hang: OnHang,
    /// Names the processes of the run.
    runtime: PathBuf,
    /// The longest quiet time of the stall that was reported.
    told_s: Option<f64>,
    stopped: Option<Instant>,
}

impl Stall {
    pub fn new(options: &Options, runtime: &Path) -> Self {
        Self {
            patience_s: options.patience.map(|patience| patience.as_secs_f64()),
            on_hang: options.on_hang,
            runtime: runtime.to_owned(),
            told_s: None,
            stopped: None,
        }
    }

    /// Reports a stall, or its end.
    pub fn look(
        &mut self,
        recording: &Recording,
        writer: &mut RecordWriter,
        program: &Program,
        live: &mut dyn FnMut(Live),
    ) {
        if let Some(since) = self.stopped {
            if since.elapsed() > GRACE {
                program::kill_marked(&self.runtime);
                self.stopped = Some(Instant::now());
            }
            return;
        }
        let (Some(patience_s), Some(quiet_s)) = (self.patience_s, recording.quiet_s()) else {
            return;
        };
        let t = recording.elapsed_s();
        if quiet_s < patience_s {
            if let Some(seconds) = self.told_s.take() {
                writer.event(&Event {
                    t,
                    kind: EventKind::Resumed { seconds },
                });
                live(Live::Resumed(seconds));
            }
            return;
        }
        if let Some(told_s) = &mut self.told_s {
            *told_s = told_s.max(quiet_s);
            return;
        }
        self.told_s = Some(quiet_s);
        let ranks = recording.where_ranks_are();
        let stopping = self.on_hang == OnHang::Stop;
        live(Live::Stalled {
            seconds: quiet_s,
            ranks: &ranks,
            stopping,
        });
        writer.event(&Event {
            t,
            kind: EventKind::Stalled {
                seconds: quiet_s,
                ranks,
            },
        });
        if stopping {
            program.send(libc::SIGTERM);
            self.stopped = Some(Instant::now());
        }
    }
}
