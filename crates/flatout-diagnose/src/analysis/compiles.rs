//! What `torch.compile` did, over the whole run: compiling happens before the steady window.

use flatout_core::Place;
use flatout_telemetry::EventKind;
use flatout_telemetry::record::RunData;

/// One kind of compile event: errors, graph breaks or recompiles.
#[derive(Clone, Debug, Default)]
pub struct Compiles {
    pub count: u64,
    /// The last reason given, in one line.
    pub message: Option<String>,
    pub places: Vec<Place>,
}

/// All events of one kind (`error`, `graph-break`, `recompile`, `compiled`).
pub fn of(data: &RunData, kind: &str) -> Compiles {
    let mut found = Compiles::default();
    for event in &data.events {
        if let EventKind::Compile {
            what,
            count,
            message,
            place,
        } = &event.kind
            && what == kind
        {
            found.count += count;
            found.message = message
                .as_ref()
                .and_then(|text| first_line(text))
                .or(found.message);
            if let Some(place) = place.as_ref().filter(|place| !found.places.contains(place)) {
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
