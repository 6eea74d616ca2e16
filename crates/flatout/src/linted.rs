//! What `run`, `diagnose` and `report` add for lines with a lint finding, without another command. The record keeps the ids of the
//! lint rules with the sampled lines.

use flatout_core::Place;
use flatout_diagnose::Diagnosis;
use flatout_lint::join;
use flatout_record::SourceLine;

/// A line with less of the time is not what a finding is about.
const COSTLY: f64 = 0.03;

/// Notes in the findings what the lint reports of the costly lines.
pub fn annotate(diagnosis: &mut Diagnosis, lines: &[SourceLine]) {
    let shares = shares(diagnosis);
    let share = |place: &Place| -> f64 {
        let same = shares.iter().filter(|(other, _)| other == place);
        same.map(|(_, share)| share).sum()
    };
    let named = |line: &SourceLine| (Place::new(&line.file, line.line), line.lint.clone());
    let places: Vec<&Place> = diagnosis
        .findings
        .iter()
        .flat_map(|finding| &finding.places)
        .collect();
    let costly: Vec<(Place, Vec<String>)> = lines
        .iter()
        .filter(|line| !line.lint.is_empty())
        .map(named)
        .filter(|(place, _)| share(place) >= COSTLY || places.contains(&place))
        .collect();
    join::annotate(&mut diagnosis.findings, &costly);
}

/// Lines with their share of the training thread's time, and of a worker's.
fn shares(diagnosis: &Diagnosis) -> Vec<(Place, f64)> {
    let steps = diagnosis.account.iter().flat_map(|account| &account.rows);
    let steps = steps.filter_map(|row| Some((row.place.clone()?, row.share)));
    let workers = diagnosis.workers.iter().flat_map(|account| &account.rows);
    let workers = workers.filter_map(|row| Some((row.place.clone()?, row.share)));
    steps.chain(workers).collect()
}
