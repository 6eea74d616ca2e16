//! Why nothing ran on the device: when was the kernel after the gap launched, and what had the host been doing?

use flatout_record::Idle;

#[derive(Clone, Copy)]
pub struct DeviceSpan {
    pub start_us: f64,
    pub duration_us: f32,
    /// Joins it with its launch on the host.
    pub correlation: u32,
}

/// Something the host did that explains why it launched late.
#[derive(Clone, Copy)]
pub struct HostMark {
    pub start_us: f64,
    pub end_us: f64,
    pub waits_for: Waits,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    Batch,
    Device,
}

/// The host goes on this soon after the device has finished what it waited for.
const SYNC_SLACK_US: f64 = 50.0;

/// The time in which something ran, and why nothing did in the rest. `launches` are sorted by correlation.
pub fn explain(
    mut spans: Vec<DeviceSpan>,
    launches: &[(u32, f64)],
    mut marks: Vec<HostMark>,
    begin_us: f64,
) -> (f64, Idle) {
    spans.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
    marks.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
    let mut end = begin_us;
    let (mut busy_us, mut idle) = (0.0, Idle::default());
    for span in &spans {
        let span_end = span.start_us + f64::from(span.duration_us);
        if span.start_us > end {
            let launched = launches
                .binary_search_by_key(&span.correlation, |(correlation, _)| *correlation)
                .ok()
                .map(|at| launches[at].1);
            charge(&mut idle, (end, span.start_us), launched, &marks);
            busy_us += span_end - span.start_us;
        } else {
            busy_us += (span_end - end).max(0.0);
        }
        end = end.max(span_end);
    }
    (busy_us / 1e3, idle)
}

fn charge(idle: &mut Idle, (end, start): (f64, f64), launched_us: Option<f64>, marks: &[HostMark]) {
    let gap_ms = (start - end) / 1e3;
    let Some(launched) = launched_us.filter(|launched| *launched > end) else {
        idle.queued_ms += gap_ms;
        return;
    };
    // Marks overlap little: those that begin before the launch, the latest first, until one lies well before the gap.
    let until = marks.partition_point(|mark| mark.start_us < launched);
    let mut batch_us = 0.0;
    let mut synchronized = false;
    for mark in marks[..until].iter().rev().take(64) {
        match mark.waits_for {
            Waits::Batch => batch_us += (mark.end_us.min(launched) - mark.start_us.max(end)).max(0.0),
            Waits::Device => {
                synchronized |=
                    mark.start_us < end && mark.end_us > end - SYNC_SLACK_US && mark.end_us < launched;
            }
        }
    }
    // From the launch to the start it is the launch itself; what lies before it has the host's reason.
    let late_ms = (launched - end).min(start - end) / 1e3;
    idle.queued_ms += gap_ms - late_ms;
    if batch_us * 2.0 > (launched - end) {
        idle.data_ms += late_ms;
    } else if synchronized {
        idle.sync_ms += late_ms;
    } else {
        idle.host_ms += late_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_us: f64, duration_us: f32, correlation: u32) -> DeviceSpan {
        DeviceSpan {
            start_us,
            duration_us,
            correlation,
        }
    }

    #[test]
    fn a_gap_has_the_reason_of_its_late_launch() {
        let spans = vec![
            span(0.0, 100.0, 1),
            span(150.0, 50.0, 2),
            span(400.0, 100.0, 3),
            span(1500.0, 10.0, 4),
            span(2000.0, 10.0, 5),
        ];
        // The second was launched in time, the third late, the fourth after a batch, the fifth after a sync.
        let launches = [(1, -10.0), (2, 20.0), (3, 390.0), (4, 1490.0), (5, 1990.0)];
        let marks = vec![
            HostMark {
                start_us: 600.0,
                end_us: 1480.0,
                waits_for: Waits::Batch,
            },
            HostMark {
                start_us: 1495.0,
                end_us: 1515.0,
                waits_for: Waits::Device,
            },
        ];
        let (busy_ms, idle) = explain(spans, &launches, marks, 0.0);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(busy_ms, 0.27), "{busy_ms}");
        assert!(
            near(idle.host_ms, 0.19) && near(idle.data_ms, 0.99) && near(idle.sync_ms, 0.48),
            "{idle:?}"
        );
        assert!(near(idle.queued_ms, 0.05 + 0.03), "{idle:?}");
    }

    #[test]
    fn what_overlaps_is_busy_once() {
        let (busy_ms, idle) = explain(
            vec![span(0.0, 100.0, 1), span(20.0, 30.0, 2), span(50.0, 100.0, 3)],
            &[],
            Vec::new(),
            0.0,
        );
        assert!((busy_ms - 0.15).abs() < 1e-9);
        assert_eq!(idle, Idle::default());
    }
}
