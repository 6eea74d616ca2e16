//! Reads a profiler's trace and prints what it says, how long that took and the most memory this process held:
//! `cargo run --release -p flatout-run --example read_trace -- trace.json`

use std::fs::File;
use std::time::Instant;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "trace.json".into());
    let file = File::open(&path)?;
    let bytes = file.metadata()?.len();
    let begun = Instant::now();
    let profile = flatout_run::profile::read(file)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string_pretty(&profile).unwrap_or_default());
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    eprintln!("{:.0} MB in {seconds:.2} s; {peak}", bytes as f64 / 1e6);
    Ok(())
}
