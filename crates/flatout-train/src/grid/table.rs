//! `grid.csv`: a row a combination, for a spreadsheet or pandas.

use super::{Grid, PointResult};
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;

pub fn write_csv(grid: &Grid, results: &[PointResult]) -> Result<(), FileError> {
    let scores = results.iter().find_map(|result| result.best_scores);
    let figures: Vec<&str> = scores
        .map(|scores| scores.figures())
        .unwrap_or_default()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let axes = grid.axes.iter().map(|(name, _)| (*name).to_owned());
    let scored = figures.iter().map(|name| format!("validation_{name}"));
    // Of one label among several: it is not among the scores of all.
    let selected = results.first().map(|result| result.selected.as_str());
    let selected = selected.filter(|name| name.contains('.'));
    let selected_of = selected.map(|name| format!("validation_{name}"));
    let scored = scored.chain(selected_of);
    let rest = ["best_loss", "samples_s", "seconds", "output_dir", "error"].map(str::to_owned);
    let header: Vec<String> = axes.chain(scored).chain(rest).collect();
    let mut text = header.join(",") + "\n";
    for result in results {
        let found = result
            .best_scores
            .map(|scores| scores.figures())
            .unwrap_or_default();
        let figure = |name: &&str| {
            let value = found.iter().find(|(key, _)| key == name);
            value.map(|(_, value)| value.to_string()).unwrap_or_default()
        };
        let mut cells: Vec<String> = result.values.iter().map(|(_, value)| value.clone()).collect();
        cells.extend(figures.iter().map(figure));
        if selected.is_some() {
            cells.push(result.best.map(|best| best.to_string()).unwrap_or_default());
        }
        cells.push(result.best_loss.map(|loss| loss.to_string()).unwrap_or_default());
        cells.push(result.samples_s.map(|rate| rate.to_string()).unwrap_or_default());
        cells.push(result.seconds.to_string());
        cells.push(result.output_dir.display().to_string());
        cells.push(result.error.clone().unwrap_or_default());
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        text += &(cells.join(",") + "\n");
    }
    write_atomically(&grid.output_dir.join("grid.csv"), text.as_bytes())
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
