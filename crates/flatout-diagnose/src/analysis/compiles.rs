//! What `torch.compile` did, over the whole run: compiling happens before the steady window.

use super::stacks;
use flatout_core::Place;
use flatout_record::{EventKind, RunData};

/// One kind of compile event: errors, graph breaks or recompiles.
#[derive(Clone, Debug, Default)]
pub struct Compiles {
    pub count: u64,
    /// The last reason given, in one line.
    pub message: Option<String>,
    /// In the user's own code.
    pub places: Vec<Place>,
    /// Seconds the compiler took.
    pub seconds: f64,
}

/// All events of one kind (`graph-break`, `recompile`, `compiled`).
pub fn of(data: &RunData, kind: &str) -> Compiles {
    filtered(data, kind, |_| true)
}

/// Seconds of compilation within a part of the run.
pub fn seconds_within(data: &RunData, (start_s, end_s): (f64, f64)) -> f64 {
    let inside = data
        .events
        .iter()
        .filter(|event| event.t > start_s && event.t <= end_s + 1.0);
    inside
        .filter_map(|event| match &event.kind {
            EventKind::Compile { duration_ms, .. } => *duration_ms,
            _ => None,
        })
        .sum::<f64>()
        / 1e3
}

/// Compilations that failed.
pub fn errors(data: &RunData) -> Compiles {
    filtered(data, "error", |text| !is_limit(text))
}

/// Functions that the compiler gave up because it had compiled them too often.
pub fn given_up(data: &RunData) -> Compiles {
    filtered(data, "error", is_limit)
}

/// PyTorch says so as an error: "recompile limit exceeded", before 2.6 "hit config.cache_size_limit".
fn is_limit(text: &str) -> bool {
    text.contains("recompile limit") || text.contains("recompile_limit") || text.contains("cache_size_limit")
}

fn filtered(data: &RunData, kind: &str, keep: impl Fn(&str) -> bool) -> Compiles {
    let mut found = Compiles::default();
    for event in &data.events {
        if let EventKind::Compile {
            what,
            count,
            message,
            place,
            duration_ms,
        } = &event.kind
            && what == kind
            && keep(message.as_deref().unwrap_or_default())
        {
            found.count += count;
            found.seconds += duration_ms.unwrap_or(0.0) / 1e3;
            found.message = message
                .as_ref()
                .and_then(|text| first_line(text))
                .or(found.message);
            let users = |place: &&Place| !stacks::is_library(&place.file.to_string_lossy());
            if let Some(place) = place
                .as_ref()
                .filter(|place| !found.places.contains(place))
                .filter(users)
            {
                found.places.push(place.clone());
            }
        }
    }
    found
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(160).collect())
}
