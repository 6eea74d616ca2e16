//! Files that are broken, empty, locked or changed under the reader: an error that names them, no panic, no hang.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::dataset::images::{never_learnt, single_pictures};
use flatout_data::formats::image::{ImageShape, write_png};
use flatout_data::formats::parquet_write::{self, ColumnToWrite};
use flatout_data::generate::{Recipe, interactions::Interactions, stocks::Stocks};
use flatout_data::inspect::inspect;
use flatout_data::load::images::list_images;
use flatout_data::table::Layout;
use flatout_data::table_source::{ReadOptions, TableSource};
use flatout_data::*;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn stocks(folder: &Path) -> PathBuf {
    let path = folder.join("stocks");
    let recipe = Stocks {
        stocks: 3,
        days: 50,
        ..Stocks::default()
    };
    Recipe::Stocks(recipe).generate(&path, None).unwrap();
    path
}

fn panel_options() -> PanelOptions {
    PanelOptions {
        label: "return_pct".into(),
        ..PanelOptions::default()
    }
}

fn table_options(label: &str) -> TabularOptions {
    TabularOptions {
        label: label.into(),
        ..TabularOptions::default()
    }
}

#[test]
fn a_truncated_parquet_file_is_named_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let source = stocks(folder.path());
    let victim = source.join("600001.parquet");
    let whole = std::fs::read(&victim).unwrap();
    for length in [0, 3, 100, whole.len() / 2, whole.len() - 5] {
        std::fs::write(&victim, &whole[..length]).unwrap();
        let errors = [
            load_panel(&source, &panel_options()).unwrap_err(),
            load_tabular(&source, &table_options("return_pct")).unwrap_err(),
            inspect(&source, None, &Policies::default()).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("600001.parquet"), "{length}: {error}");
        }
    }
    // The end in place, the middle overwritten.
    let mut damaged = whole.clone();
    let middle = damaged.len() / 3;
    damaged[4..middle].fill(0xA5);
    std::fs::write(&victim, &damaged).unwrap();
    let error = load_panel(&source, &panel_options()).unwrap_err().to_string();
    assert!(error.contains("600001.parquet"), "{error}");
}

#[test]
fn files_without_rows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let says = |path: &Path| load_tabular(path, &table_options("y")).unwrap_err().to_string();
    let csv = folder.path().join("header.csv");
    std::fs::write(&csv, "x,y\n").unwrap();
    assert!(says(&csv).contains("header.csv"), "{}", says(&csv));
    assert!(
        inspect(&csv, None, &Policies::default()).is_ok_and(|seen| seen.rows == 0),
        "looking at it is no failure"
    );
    let parquet = folder.path().join("none.parquet");
    let nothing: [f32; 0] = [];
    parquet_write::write(
        &parquet,
        &[
            ("x", ColumnToWrite::Float(&nothing)),
            ("y", ColumnToWrite::Float(&nothing)),
        ],
    )
    .unwrap();
    assert!(says(&parquet).contains("none.parquet"), "{}", says(&parquet));
    let panel = PanelOptions {
        label: "y".into(),
        ..PanelOptions::default()
    };
    assert!(load_panel(&parquet, &panel).is_err());
}

#[test]
fn splits_and_trains_with_a_single_image_class() {
    let folder = tempfile::tempdir().unwrap();
    let shape = ImageShape {
        height: 4,
        width: 4,
        channels: 1,
    };
    for (class, count) in [("many", 9), ("one", 1)] {
        std::fs::create_dir(folder.path().join(class)).unwrap();
        for number in 0..count {
            write_png(
                &folder.path().join(class).join(format!("{number}.png")),
                &[7; 16],
                shape,
            )
            .unwrap();
        }
    }
    std::fs::create_dir(folder.path().join("none")).unwrap();
    let images = load_images(folder.path(), &ImageOptions::default()).unwrap();
    let ImageTargets::Class { classes, names } = &images.targets else {
        panic!()
    };
    assert_eq!(names, &["many", "one"], "a folder without pictures is no class");
    assert_eq!(classes.iter().filter(|class| **class == 1).count(), 1);
    let split = images.split(&SplitRule::default()).unwrap();
    assert_eq!(split.train.len() + split.validation.len(), 10);
    let counts = images.targets.counts(None);
    assert_eq!(counts, [("many".to_owned(), 9), ("one".to_owned(), 1)]);
    let said = single_pictures(&counts).unwrap();
    assert!(said.en.contains("only one image in: one;"), "{}", said.en);
    assert!(single_pictures(&counts[..1]).is_none());
    let others: Vec<u32> = (0..9).collect();
    let said = never_learnt(&images.targets.counts(Some(&others))).unwrap();
    assert!(said.en.ends_with("cannot learn: one"), "{}", said.en);
}

#[test]
fn a_damaged_image_ends_the_stream_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let shape = ImageShape {
        height: 4,
        width: 4,
        channels: 1,
    };
    std::fs::create_dir(folder.path().join("a")).unwrap();
    for number in 0..12 {
        write_png(&folder.path().join(format!("a/{number}.png")), &[7; 16], shape).unwrap();
    }
    for harm in ["remove", "corrupt"] {
        let list = list_images(folder.path(), &ImageOptions::default()).unwrap();
        let victim = folder.path().join("a/5.png");
        if harm == "remove" {
            std::fs::rename(&victim, folder.path().join("kept")).unwrap();
        } else {
            std::fs::write(&victim, b"\x89PNG nothing").unwrap();
        }
        let source: Arc<dyn SampleSource> = Arc::new(ImageFileSource(Arc::new(list)));
        let order = EpochOrder::new((0..12).collect(), 2, false, Some(1));
        let memories = (0..3).map(|_| HostBatch::new(source.shape(), 2)).collect();
        let mut batches =
            Prefetcher::new(source, order, Position::default(), memories, Threads::Fixed(2)).unwrap();
        let error = (0..12)
            .find_map(|_| batches.next_batch().map(drop).err())
            .unwrap();
        assert!(error.to_string().contains("5.png"), "{harm}: {error}");
        assert!(batches.next_batch().is_err(), "and stays ended");
        if harm == "remove" {
            std::fs::rename(folder.path().join("kept"), &victim).unwrap();
        }
    }
}

#[test]
fn reports_a_file_replaced_while_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for replacement in ["x,y\n1,2\n", "a,b\n1,2\n3,4\n", ""] {
        std::fs::write(&path, "x,y\n1,2\n3,4\n5,6\n").unwrap();
        let source = TableSource::open(&path, None, None).unwrap();
        std::fs::write(&path, replacement).unwrap();
        let kinds: Vec<_> = source.types.iter().map(|kind| Some(*kind)).collect();
        let error = source
            .read(&Layout::columns(&kinds), &ReadOptions::default())
            .unwrap_err();
        assert!(matches!(error, DataError::Changed { .. }), "{error}");
        assert!(error.to_string().contains("t.csv"));
    }
    let stocks = stocks(folder.path());
    let source = TableSource::open(&stocks, None, None).unwrap();
    std::fs::copy(stocks.join("600002.parquet"), stocks.join("600001.parquet")).unwrap();
    let kinds: Vec<_> = source.types.iter().map(|kind| Some(*kind)).collect();
    let error = source
        .read(&Layout::columns(&kinds), &ReadOptions::default())
        .unwrap_err();
    assert!(error.to_string().contains("600001.parquet"), "{error}");
}

#[test]
fn sources_that_change_while_they_are_loaded_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "x,y\n1,2\n").unwrap();
    for verify in [false, true] {
        let mut cache = Cache::new(folder.path().join("cache"));
        cache.verify_sources = verify;
        let (table, used) = cache
            .get(&path, "o", || {
                let table = load_tabular(&path, &table_options("y"))?;
                std::fs::write(&path, "x,y\n1,2\n3,4\n").unwrap();
                Ok(table)
            })
            .unwrap();
        assert!(matches!(used, CacheUse::NotStored(_)), "{used:?}");
        assert!(table.rows > 0, "what was read is not lost");
        std::fs::write(&path, "x,y\n1,2\n").unwrap();
    }
}

#[test]
fn verifying_sees_a_change_that_samples_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let rows = |middle: &str| {
        let line = "1.5,2.5\n".repeat(5000);
        format!("x,y\n{line}{middle}\n{line}{line}")
    };
    std::fs::write(&path, rows("3.5,4.5")).unwrap();
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut cache = Cache::new(folder.path().join("cache"));
    cache.verify_sources = true;
    let options = table_options("y");
    assert!(matches!(
        cache.tabular(&path, &options).unwrap().1,
        CacheUse::Stored(_)
    ));
    assert!(matches!(
        cache.tabular(&path, &options).unwrap().1,
        CacheUse::Hit(_)
    ));
    // The same length and time, another digit between the samples.
    std::fs::write(&path, rows("9.5,4.5")).unwrap();
    std::fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    let (table, used) = cache.tabular(&path, &options).unwrap();
    assert!(matches!(used, CacheUse::Stored(_)), "{used:?}");
    assert_eq!(table.features[5000], 9.5);
    cache.verify_sources = false;
    assert!(
        matches!(cache.tabular(&path, &options).unwrap().1, CacheUse::Hit(_)),
        "one file serves both"
    );
    assert_eq!(cache.list().unwrap().len(), 1);
}

/// Runs as somebody whom permissions bind: root gives up its rights over files for this one thread.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: changes this thread's rights over files only; the thread ends with the work.
            unsafe { libc::setfsuid(65534) };
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_folder_or_file_without_permission_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let source = stocks(folder.path());
    let locked = folder.path().join("locked.csv");
    std::fs::write(&locked, "x,y\n1,2\n").unwrap();
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::set_permissions(&source, PermissionsExt::from_mode(0o000)).unwrap();
    let errors = as_nobody(|| {
        [
            load_panel(&source, &panel_options()).map(drop).unwrap_err(),
            load_images(&source, &ImageOptions::default())
                .map(drop)
                .unwrap_err(),
            inspect(&source, None, &Policies::default())
                .map(drop)
                .unwrap_err(),
            Cache::new(folder.path().join("cache"))
                .panel(&source, &panel_options())
                .map(drop)
                .unwrap_err(),
            load_tabular(&locked, &table_options("y")).map(drop).unwrap_err(),
        ]
    });
    for (error, name) in errors
        .iter()
        .zip(["stocks", "stocks", "stocks", "stocks", "locked.csv"])
    {
        assert!(error.to_string().contains(name), "{error}");
        let cause = flatout_core::Explain::cause(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(cause.contains("ermission denied"), "{error}: {cause}");
    }
    std::fs::set_permissions(&source, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn inspect_finds_a_damaged_image() {
    let folder = tempfile::tempdir().unwrap();
    let shape = ImageShape {
        height: 8,
        width: 8,
        channels: 1,
    };
    let picture = folder.path().join("0.png");
    write_png(&picture, &[7; 64], shape).unwrap();
    std::fs::write(folder.path().join("labels.csv"), "file,x\n0.png,3\n").unwrap();
    let look = || inspect(folder.path(), None, &Policies::default());
    assert_eq!(look().unwrap().kind, "images");
    let bytes = std::fs::read(&picture).unwrap();
    std::fs::write(&picture, &bytes[..bytes.len() - 20]).unwrap();
    assert!(look().unwrap_err().to_string().contains("0.png"));
    std::fs::remove_file(&picture).unwrap();
    assert_eq!(look().unwrap().kind, "table", "a table of that name is a table");
}

#[test]
fn a_bad_row_in_a_joined_table_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined");
    let recipe = Recipe::Interactions(Interactions::of_size(300, 1));
    recipe.generate(&path, None).unwrap();
    let videos = path.join("video_features.csv");
    let mut bytes = std::fs::read(&videos).unwrap();
    let mut lines: Vec<&mut [u8]> = bytes.split_mut(|byte| *byte == b'\n').collect();
    let dot = lines[10].iter().position(|byte| *byte == b'.').unwrap();
    lines[10][dot] = 0xff;
    std::fs::write(&videos, &bytes).unwrap();
    let found = inspect(&path, None, &Policies::default()).unwrap();
    assert_eq!(found.bad_rows, 1);
    assert!(
        found.bad_examples[0].path.ends_with("video_features.csv"),
        "{:?}",
        found.bad_examples
    );
}

#[test]
fn an_array_without_columns_or_with_too_many_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("features.npy");
    for shape in ["(0, 0)", "(5, 0)", "(0, 900000000000000000)", "(0, 0, 0)"] {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\0v\0".to_vec();
        bytes.extend_from_slice(format!("{header:<117}\n").as_bytes());
        std::fs::write(&path, bytes).unwrap();
        let error = inspect(&path, None, &Policies::default()).unwrap_err();
        assert!(matches!(error, DataError::Corrupt { .. }), "{shape}: {error:?}");
    }
}
