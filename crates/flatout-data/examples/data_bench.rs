//! flatout's side of `benches/peers/data_loading.py`: one kind of loading a call, one line of JSON as answer.
//!
//! `data_bench make DIR` · `tabular` · `windows` · `csv PATH [THREADS]` · `parquet PATH [THREADS]` · `jpeg DIR` · `cache DIR` · `stream DIR GIGABYTES`

use flatout_data::generate::{Recipe, interactions::Interactions, stocks::Stocks};
use flatout_data::load::images::list_images;
use flatout_data::table::{ColumnType, Layout};
use flatout_data::table_source::{ReadOptions, TableSource};
use flatout_data::table_stream::TableStream;
use flatout_data::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const MEMORIES: usize = 6;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| arguments.get(index).map_or("", String::as_str);
    let folder = Path::new(word(1));
    let answer = match word(0) {
        "make" => make(folder),
        "tabular" => tabular(),
        "windows" => windows(),
        "csv" | "parquet" => columns(folder, word(2).parse().unwrap_or(0)),
        "jpeg" => jpeg(folder),
        "cache" => cache(folder),
        "stream" => stream(folder, word(2).parse().unwrap_or(50.0)),
        other => Ok(json!({ "error": format!("no such benchmark: {other}") })),
    };
    match answer {
        Ok(answer) => println!("{answer}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}

/// The data for the other modes: interaction logs in CSV parts and a panel of stocks in Parquet.
fn make(folder: &Path) -> Result<Value> {
    let logs = Interactions {
        users: 20_000,
        videos: 40_000,
        ..Interactions::of_size(3_000_000, 0)
    };
    Recipe::Interactions(logs).ensure(&folder.join("clicks"), None)?;
    let stocks = Stocks {
        stocks: 1000,
        days: 1500,
        ..Stocks::default()
    };
    Recipe::Stocks(stocks).ensure(&folder.join("stocks"), None)?;
    Ok(json!({ "made": folder }))
}

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.starts_with(field))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// Takes batches for some seconds; returns samples a second and what the controller settled on.
fn drain(
    source: Arc<dyn SampleSource>,
    samples: u32,
    batch_size: usize,
    seconds: f64,
) -> Result<(f64, usize)> {
    let order = EpochOrder::new((0..samples).collect(), batch_size, true, Some(1));
    let memories = (0..MEMORIES)
        .map(|_| HostBatch::new(source.shape(), batch_size))
        .collect();
    let mut batches = Prefetcher::new(source, order, Position::default(), memories, Threads::Auto)?;
    // The controller gets a while to settle.
    let warm_up = Instant::now();
    while warm_up.elapsed().as_secs_f64() < seconds / 3.0 {
        batches.next_batch()?;
    }
    let (start, mut taken) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        taken += batches.next_batch()?.samples;
    }
    Ok((taken as f64 / start.elapsed().as_secs_f64(), batches.threads()))
}

fn numbers(count: usize) -> Vec<f32> {
    let mut stream = random::Stream::new(3, &[]);
    let mut values = block::zeroed(count);
    values.fill_with(|| stream.uniform() as f32);
    values
}

fn tabular() -> Result<Value> {
    let (rows, width) = (500_000, 128);
    let table = Tabular {
        rows,
        features: numbers(rows * width).into(),
        feature_names: (0..width).map(|index| index.to_string()).collect(),
        labels: Labels::Real(numbers(rows).into()),
        ..Tabular::default()
    };
    let source: Arc<dyn SampleSource> = Arc::new(TabularSource(Arc::new(table)));
    let (rate, threads) = drain(source, rows as u32, 512, 2.0)?;
    Ok(json!({ "samples_per_s": rate, "threads": threads }))
}

fn windows() -> Result<Value> {
    let (entities, days, width, length) = (500usize, 1500usize, 20usize, 60usize);
    let rows = entities * days;
    let panel = Panel {
        features: numbers(rows * width).into(),
        feature_names: (0..width).map(|index| index.to_string()).collect(),
        labels: numbers(rows).into(),
        entity_of_row: (0..rows)
            .map(|row| (row / days) as i32)
            .collect::<Vec<_>>()
            .into(),
        ..Panel::default()
    };
    let source = WindowSource {
        panel: Arc::new(panel),
        sequence_length: length,
        horizon: 1,
    };
    let samples = (rows - length - 1) as u32;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut answer = json!({});
    for batch_size in [512usize, 4096] {
        let one = against_memcpy(&source, samples, batch_size, 1)?;
        let all = against_memcpy(&source, samples, batch_size, cpus)?;
        let (rate, threads) = drain(Arc::new(source.clone()), samples, batch_size, 2.0)?;
        answer[batch_size.to_string()] =
            json!({ "samples_per_s": rate, "threads": threads, "one_thread": one, "all_threads": all });
    }
    Ok(answer)
}

const ROUNDS: usize = 21;

/// Filling batches of windows and plain copying of as many bytes out of the same block into the same memory, by as many threads, by turns,
/// so that whatever else the machine does meets both: the middle of the rounds' ratios.
fn against_memcpy(source: &WindowSource, samples: u32, batch_size: usize, threads: usize) -> Result<Value> {
    let batches = 16_384 / batch_size as u64;
    let barrier = std::sync::Barrier::new(threads);
    let work = |thread: usize| -> Result<Vec<[f64; 2]>> {
        let mut batch = HostBatch::new(source.shape(), batch_size);
        let order = EpochOrder::new((0..samples).collect(), batch_size, true, Some(thread as u64));
        let (mut ids, block) = (vec![0; batch_size], &source.panel.features);
        let mut rounds = Vec::new();
        for epoch in 0..ROUNDS as u64 {
            barrier.wait();
            let start = Instant::now();
            for batch_number in 0..batches {
                let position = Position {
                    epoch,
                    batch: batch_number,
                };
                order.fill(position, &mut ids);
                source.fill(&ids, Draw { seed: 1, epoch }, batch.slices(batch_size))?;
            }
            let gather = start.elapsed().as_secs_f64();
            barrier.wait();
            let (start, length) = (Instant::now(), batch.inputs.len());
            for number in 0..batches {
                // Each thread has its own place in the block: nobody copies what another one has just brought into the shared cache.
                let place = (epoch * batches + number) as usize * length + block.len() / threads * thread;
                let from = place % (block.len() - length);
                batch.inputs.copy_from_slice(&block[from..from + length]);
                std::hint::black_box(&mut batch.inputs);
            }
            rounds.push([gather, start.elapsed().as_secs_f64()]);
        }
        Ok(rounds)
    };
    let rounds = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Ok(Vec::new())))
            .collect::<Result<Vec<_>>>()
    })?;
    let bytes = batches as f64 * (batch_size * source.shape().inputs * 4) as f64;
    let speed = |round: usize, which: usize| {
        rounds
            .iter()
            .map(|thread| bytes / thread[round][which])
            .sum::<f64>()
    };
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let gather: Vec<f64> = (0..ROUNDS).map(|round| speed(round, 0)).collect();
    let copy: Vec<f64> = (0..ROUNDS).map(|round| speed(round, 1)).collect();
    let share = gather
        .iter()
        .zip(&copy)
        .map(|(gather, copy)| gather / copy)
        .collect();
    Ok(json!({
        "share_of_memcpy": middle(share),
        "gather_bytes_per_s": middle(gather.clone()),
        "memcpy_bytes_per_s": middle(copy.clone()),
        "best_gather_bytes_per_s": gather.iter().copied().fold(0.0, f64::max),
        "best_memcpy_bytes_per_s": copy.iter().copied().fold(0.0, f64::max),
        "samples_per_s": middle(gather) / (source.shape().inputs * 4) as f64,
    }))
}

/// All columns of the table at `path`, best of three, with as many threads as asked for (0: as many as there are CPUs).
fn columns(path: &Path, threads: usize) -> Result<Value> {
    let threads = Some(threads).filter(|&threads| threads > 0);
    let before = status("VmRSS");
    let (mut best, mut decoded, mut rows) = (f64::MAX, 0, 0);
    for _ in 0..3 {
        let start = Instant::now();
        let source = TableSource::open(path, None, threads)?;
        let kinds: Vec<Option<ColumnType>> = source.types.iter().map(|kind| Some(*kind)).collect();
        let read = source.read(
            &Layout::columns(&kinds),
            &ReadOptions {
                threads,
                ..ReadOptions::default()
            },
        )?;
        best = best.min(start.elapsed().as_secs_f64());
        decoded = read
            .arrays
            .arrays
            .iter()
            .map(|array| array.size_bytes())
            .sum::<usize>()
            + read
                .arrays
                .dictionaries
                .iter()
                .map(|texts| texts.size_bytes())
                .sum::<usize>();
        rows = read.arrays.rows;
    }
    let peak = status("VmHWM").saturating_sub(before);
    Ok(
        json!({ "seconds": best, "rows": rows, "decoded_bytes": decoded, "peak_bytes": peak,
        "peak_ratio": peak as f64 / decoded as f64 }),
    )
}

fn jpeg(folder: &Path) -> Result<Value> {
    let options = ImageOptions {
        height: Some(128),
        width: Some(128),
        ..ImageOptions::default()
    };
    let list = list_images(folder, &options)?;
    let count = list.files.len() as u32;
    let (rate, threads) = drain(Arc::new(ImageFileSource(Arc::new(list))), count, 64, 3.0)?;
    Ok(json!({ "samples_per_s": rate, "threads": threads }))
}

/// Parsing against mapping the prepared file.
fn cache(folder: &Path) -> Result<Value> {
    let store = Cache::new(folder.join(".cache"));
    let mut answer = json!({});
    let clicks = folder.join("clicks");
    let start = Instant::now();
    load_tabular(&clicks, &TabularOptions::default())?;
    let parse = start.elapsed().as_secs_f64();
    store.tabular(&clicks, &TabularOptions::default())?;
    let start = Instant::now();
    let (_, used) = store.tabular(&clicks, &TabularOptions::default())?;
    let hit = start.elapsed().as_secs_f64();
    answer["csv"] =
        json!({ "parse_s": parse, "hit_s": hit, "faster": parse / hit, "use": format!("{used:?}") });
    let options = PanelOptions {
        label: "return_pct".into(),
        ..PanelOptions::default()
    };
    let stocks = folder.join("stocks");
    let start = Instant::now();
    load_panel(&stocks, &options)?;
    let parse = start.elapsed().as_secs_f64();
    store.panel(&stocks, &options)?;
    let start = Instant::now();
    store.panel(&stocks, &options)?;
    let hit = start.elapsed().as_secs_f64();
    answer["parquet"] = json!({ "parse_s": parse, "hit_s": hit, "faster": parse / hit });
    Ok(answer)
}

/// So many gigabytes of batches out of files of 4 GB that are gone through again and again, within a budget of 1 GB: memory must not
/// move. The files are put out of the system's cache after each pass, so that every pass reads them from the disk.
fn stream(folder: &Path, gigabytes: f64) -> Result<Value> {
    const BUDGET_BYTES: usize = 1_000_000_000;
    const MEMORIES_BYTES: usize = 100_000_000;
    let batch_size = 4096;
    let shards = folder.join("shards");
    make_shards(&shards)?;
    let source = TableSource::open(&shards, None, None)?;
    let options = TabularOptions {
        label: "column_0".into(),
        ..TabularOptions::default()
    };
    let mut stream = TableStream::new(&source, &options, BUDGET_BYTES - MEMORIES_BYTES, 1)?;
    let (mut resident, mut streamed, mut passes) = (Vec::new(), 0f64, 0);
    let (start, mut reported) = (Instant::now(), -1.0);
    while streamed < gigabytes * 1e9 {
        let part = stream.next_part()?;
        let (rows, last) = (part.table.rows as u32, part.left == 0);
        let samples: Arc<dyn SampleSource> = Arc::new(TabularSource(Arc::new(part.table)));
        let order = EpochOrder::new((0..rows).collect(), batch_size, false, Some(part.epoch));
        let count = prefetch::memories_for_budget(samples.shape(), batch_size, MEMORIES_BYTES);
        let memories = (0..count)
            .map(|_| HostBatch::new(samples.shape(), batch_size))
            .collect();
        let row_bytes = samples.shape().size_bytes();
        let batches = order.batches_per_epoch();
        let mut prefetcher = Prefetcher::new(samples, order, Position::default(), memories, Threads::Auto)?;
        for _ in 0..batches {
            streamed += (prefetcher.next_batch()?.samples * row_bytes) as f64;
            if streamed - reported >= gigabytes * 1e9 / 50.0 {
                reported = streamed;
                resident.push(json!([streamed.round(), status("VmRSS"), status("RssAnon")]));
            }
        }
        if last {
            passes += 1;
            source.files.iter().for_each(|file| forget(file));
        }
    }
    Ok(json!({
        "gigabytes": streamed / 1e9, "passes": passes, "parts": stream.parts(), "files": source.files.len(),
        "budget_bytes": BUDGET_BYTES, "seconds": start.elapsed().as_secs_f64(),
        "streamed_resident_anonymous_bytes": resident, "peak_bytes": status("VmHWM"),
    }))
}

/// 16 files of 64 000 rows of 1000 floats, unless they are there.
fn make_shards(folder: &Path) -> Result<()> {
    let failed = |error| DataError::File(flatout_core::error::FileError::writing(folder, error));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut header = String::from("{'descr': '<f4', 'fortran_order': False, 'shape': (64000, 1000), }");
    header += &" ".repeat(128 - 10 - 1 - header.len());
    header.push('\n');
    for number in 1..=16u64 {
        let path = folder.join(format!("rows_part{number}.npy"));
        if path.is_file() {
            continue;
        }
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        let mut values = random::Stream::new(number, &[]);
        (0..64_000 * 1000).for_each(|_| bytes.extend((values.uniform() as f32).to_le_bytes()));
        std::fs::write(&path, bytes).map_err(failed)?;
    }
    Ok(())
}

/// Puts a file out of the system's cache of files.
fn forget(path: &Path) {
    use std::os::fd::AsRawFd;
    if let Ok(file) = std::fs::File::open(path) {
        // SAFETY: advice about an open file; it changes nothing of its contents.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
}
