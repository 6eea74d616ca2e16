//! Collectives inside the account. A sample in a collective cannot tell whether another rank is still missing: the stamps of all ranks
//! can. So the time of each line's collectives, known exactly, is taken from the samples at that line.

use super::activity::Activity;
use super::{Frame, Span};
use crate::analysis::collectives::{BUFFERS, Collectives, GRADIENTS, Site};
use flatout_record::RunData;

/// Splits the samples in collectives into waiting for other ranks, transferring, and what is neither.
pub fn split(data: &RunData, range: (f64, f64), spans: &mut Vec<Span>) {
    let Some(collectives) = Collectives::new(data, range) else {
        return;
    };
    for site in &collectives.sites {
        let (Some(wait_s), Some(transfer_s)) = (site.wait_s, site.transfer_s) else {
            continue;
        };
        let within: Vec<usize> = (0..spans.len())
            .filter(|index| is_in(site, &spans[*index]))
            .collect();
        let sampled: f64 = within.iter().map(|index| spans[*index].seconds).sum();
        let known = wait_s + transfer_s;
        if sampled <= 0.0 || known <= 0.0 {
            continue;
        }
        let taken = known.min(sampled);
        for index in within {
            let span = &mut spans[index];
            let part = span.seconds * taken / sampled;
            span.seconds -= part;
            let of = |activity, seconds| Span {
                activity,
                seconds: part * seconds / known,
                ..span.clone()
            };
            let both = [
                of(Activity::WaitingForRank, wait_s),
                of(Activity::Communicating, transfer_s),
            ];
            spans.extend(both);
        }
    }
    spans.retain(|span| span.seconds > 0.0);
}

/// Whether samples may be in the collective of this line.
fn is_in(site: &Site, span: &Span) -> bool {
    if matches!(span.activity, Activity::WaitingForRank | Activity::Communicating) || span.activity.on_gpu() {
        return false;
    }
    let called = |test: fn(&Frame) -> bool| span.called().any(test);
    let inside = match site.op.as_str() {
        GRADIENTS => called(Frame::is_backward),
        BUFFERS => called(|frame| frame.function.ends_with("_distributed_broadcast_coalesced")),
        _ => called(|frame| frame.in_file("torch/distributed/distributed_c10d.py")),
    };
    let line = span.line().map(Frame::place);
    inside && (site.place.is_none() || line == site.place)
}
