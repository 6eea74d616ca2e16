//! How fast a log is analysed: `analyze_speed FILE…` prints megabytes a second of each. Part of `benches/`, not a test.

use flatout_report::analyze::{self, Options};
use std::path::Path;
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let start = Instant::now();
        let read = analyze::log(Path::new(&path), &Options::default());
        let megabytes_a_second = bytes as f64 / 1e6 / start.elapsed().as_secs_f64();
        match read {
            Ok(_) => println!("{path}: {megabytes_a_second:.0} MB/s"),
            Err(error) => eprintln!("{error:?}"),
        }
    }
}
