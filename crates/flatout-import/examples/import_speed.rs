//! How fast a log is read: `import_speed FILE` prints megabytes a second. Part of `benches/`, not a test.

use flatout_import::{ImportOptions, Importer};
use std::path::Path;
use std::time::Instant;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let start = Instant::now();
    let importer = match Importer::open(Path::new(&path), &ImportOptions::default()) {
        Ok(importer) => importer,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    let mut sum = 0.0;
    let report = importer.each(|sample| {
        sum += sample.gpus.values().filter_map(|gpu| gpu.util).sum::<f64>();
    });
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:.0} MB/s, {:.2} million rows/s, {} rows, mean utilisation {:.4}",
        bytes as f64 / 1e6 / seconds,
        report.rows as f64 / 1e6 / seconds,
        report.rows,
        sum / report.rows.max(1) as f64
    );
}
