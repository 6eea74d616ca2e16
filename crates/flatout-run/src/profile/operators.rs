//! Operators on the host: the time of each without what it calls.

use super::tally::Names;
use flatout_record::NamedTime;

#[derive(Clone, Copy)]
pub struct HostSpan {
    pub start_us: f64,
    pub duration_us: f32,
    pub thread: u32,
    pub name: u32,
}

/// The costliest by their own time.
pub fn by_own_time(mut spans: Vec<HostSpan>, names: &Names, most: usize) -> Vec<NamedTime> {
    // An outer operator comes before those it calls.
    spans.sort_by(|a, b| {
        let outer_first = b.duration_us.total_cmp(&a.duration_us);
        a.thread
            .cmp(&b.thread)
            .then(a.start_us.total_cmp(&b.start_us))
            .then(outer_first)
    });
    let mut own = vec![(0u64, 0.0f64); names.len()];
    let mut open: Vec<(u32, f64, u32)> = Vec::new();
    for span in &spans {
        while open
            .last()
            .is_some_and(|(thread, end, _)| *thread != span.thread || *end <= span.start_us)
        {
            open.pop();
        }
        let duration = f64::from(span.duration_us);
        if let Some((_, _, parent)) = open.last() {
            own[*parent as usize].1 -= duration;
        }
        own[span.name as usize].0 += 1;
        own[span.name as usize].1 += duration;
        open.push((span.thread, span.start_us + duration, span.name));
    }
    let times = own.into_iter().enumerate().filter(|(_, (count, _))| *count > 0);
    let mut times: Vec<NamedTime> = times
        .map(|(index, (count, us))| NamedTime {
            name: names.get(index).to_owned(),
            count,
            ms: us.max(0.0) / 1e3,
        })
        .collect();
    times.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    times.truncate(most);
    times
}
