//! What a person may say about reading: missing and infinite values, bad rows, types; the same for every format and for panels.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::formats::parquet_write::{self, ColumnToWrite};
use flatout_data::inspect::inspect;
use flatout_data::*;
use std::path::{Path, PathBuf};

fn policies(written: Written<'_>) -> Policies {
    Policies::of(&written).unwrap()
}

/// `a` has a missing value in row 2, an infinite one in row 3 and text in row 5; rows without them are 1 and 4.
fn csv(folder: &Path) -> PathBuf {
    let path = folder.join("t.csv");
    let mut text = String::from("a,b,city,y\n1,1,x,1\n,2,y,2\ninf,3,,3\n4,4,x,4\nwrong,5,y,5\n");
    // Enough good rows that the column is one of numbers.
    (6..46).for_each(|row| text += &format!("{row},{row},x,{row}\n"));
    std::fs::write(&path, text).unwrap();
    path
}

fn load(path: &Path, written: Written<'_>) -> Result<Tabular> {
    let options = TabularOptions {
        label: "y".into(),
        policies: policies(written),
        ..TabularOptions::default()
    };
    load_tabular(path, &options)
}

#[test]
fn a_row_is_bad_unless_its_values_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = csv(folder.path());
    let nothing = Written::default();
    let says = |written| {
        let failure = flatout_core::Failure::from(load(&path, written).unwrap_err());
        format!("{failure:?}")
    };
    let missing = says(nothing);
    assert!(
        missing.contains("line 3") && missing.contains("--missing a=mean"),
        "{missing}"
    );
    let mean = Written {
        missing: "mean",
        ..nothing
    };
    let infinite = says(mean);
    assert!(
        infinite.contains("line 4") && infinite.contains("--infinite missing"),
        "{infinite}"
    );
    let infinite_too = Written {
        infinite: "missing",
        ..mean
    };
    let text = says(infinite_too);
    assert!(
        text.contains("line 6") && text.contains("--bad-rows skip"),
        "{text}"
    );
    let all = load(
        &path,
        Written {
            bad_rows: "skip",
            ..infinite_too
        },
    )
    .unwrap();
    assert_eq!((all.rows, all.skipped.count, all.rows_dropped), (44, 1, 0));
    assert!(all.features[2].is_nan() && all.features[4].is_nan());
    let none = load(
        &path,
        Written {
            bad_rows: "skip",
            ..nothing
        },
    )
    .unwrap();
    assert_eq!((none.rows, none.skipped.count), (42, 3));
    let dropped = Written {
        missing: "a=drop",
        infinite: "missing",
        bad_rows: "skip",
        ..nothing
    };
    let dropped = load(&path, dropped).unwrap();
    assert_eq!(
        (dropped.rows, dropped.skipped.count, dropped.rows_dropped),
        (42, 1, 2)
    );
}

#[test]
fn column_types_override_inference() {
    let folder = tempfile::tempdir().unwrap();
    let path = csv(folder.path());
    let kinds = |column_type| Written {
        column_type,
        ..Written::default()
    };
    let table = load(&path, kinds("a=category,b=ignore")).unwrap();
    assert_eq!(table.rows, 45);
    assert!(table.feature_names.is_empty());
    assert_eq!(table.categories[0].name, "a");
    let without = load(&path, kinds("a=ignore,city=ignore")).unwrap();
    assert_eq!(
        (without.feature_names, without.categories.len()),
        (vec!["b".to_owned()], 0)
    );
    assert!(
        load(&path, kinds("z=real"))
            .unwrap_err()
            .to_string()
            .contains("no column `z`")
    );
    let city = |missing| Written {
        missing,
        ..kinds("a=ignore")
    };
    assert_eq!(load(&path, city("")).unwrap().rows, 45);
    assert_eq!(load(&path, city("city=drop")).unwrap().rows_dropped, 1);
    let error = load(&path, city("city=error")).unwrap_err().to_string();
    assert!(
        error.contains("line 4") && error.contains("`city` is empty"),
        "{error}"
    );
    assert!(
        load(&path, city("city=mean"))
            .unwrap_err()
            .to_string()
            .contains("is categorical")
    );
    assert!(
        load(&path, city("y=drop"))
            .unwrap_err()
            .to_string()
            .contains("is the label")
    );
}

#[test]
fn inspect_reports_the_effect_of_policies() {
    let folder = tempfile::tempdir().unwrap();
    let path = csv(folder.path());
    let seen = inspect(&path, None, &Policies::default()).unwrap();
    assert_eq!((seen.rows, seen.bad_rows, seen.bad_rows_policy), (43, 2, "error"));
    assert_eq!(
        (seen.columns[0].missing, seen.columns[0].missing_policy),
        (1, Some("error"))
    );
    assert_eq!(seen.columns[2].missing_policy, None);
    let written = Written {
        encoding: "",
        missing: "a=drop",
        infinite: "missing",
        bad_rows: "skip",
        column_type: "b=ignore",
    };
    let seen = inspect(&path, None, &policies(written)).unwrap();
    assert_eq!(
        (seen.rows, seen.bad_rows, seen.bad_rows_policy, seen.rows_to_drop),
        (44, 1, "skip", 2)
    );
    let names: Vec<&str> = seen.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["a", "city", "y"]);
}

/// Two entities of six rows; `a` of the second one has no value in row 2 and an infinite one in row 4.
fn entities(folder: &Path) {
    let days: Vec<i32> = (0..6).collect();
    let plain: Vec<f32> = (0..6).map(|row| row as f32).collect();
    let mut holes = plain.clone();
    (holes[1], holes[3]) = (f32::NAN, f32::INFINITY);
    for (name, a) in [("first", &plain), ("second", &holes)] {
        let columns = [
            ("date", ColumnToWrite::Date(&days)),
            ("a", ColumnToWrite::Float(a)),
            ("b", ColumnToWrite::Float(&plain)),
            ("y", ColumnToWrite::Float(&plain)),
        ];
        parquet_write::write(&folder.join(format!("{name}.parquet")), &columns).unwrap();
    }
}

#[test]
fn panels_follow_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    entities(folder.path());
    let load = |written| {
        let options = PanelOptions {
            label: "y".into(),
            policies: policies(written),
            ..PanelOptions::default()
        };
        load_panel(folder.path(), &options)
    };
    let nothing = Written::default();
    let mean = Written {
        missing: "a=mean",
        ..nothing
    };
    let error = load(mean).unwrap_err().to_string();
    assert!(error.contains("row 4") && error.contains("`a` is inf"), "{error}");
    let filled = load(Written {
        infinite: "missing",
        ..mean
    })
    .unwrap();
    assert_eq!((filled.rows(), filled.rows_dropped), (12, 0));
    let dropped = load(Written {
        infinite: "missing",
        missing: "a=drop",
        ..nothing
    })
    .unwrap();
    assert_eq!(
        (
            dropped.rows(),
            dropped.rows_dropped,
            dropped.entities[1].rows.clone()
        ),
        (10, 2, 6..10)
    );
    let skipped = load(Written {
        bad_rows: "skip",
        ..nothing
    })
    .unwrap();
    assert_eq!((skipped.rows(), skipped.skipped.count), (10, 2));
    assert_eq!(
        (skipped.entities[0].rows.clone(), skipped.entities[1].rows.clone()),
        (0..6, 6..10)
    );
    assert_eq!(&skipped.labels[6..], [0.0, 2.0, 4.0, 5.0]);
    let ignored = load(Written {
        column_type: "a=ignore",
        ..nothing
    })
    .unwrap();
    assert_eq!(ignored.feature_names, ["b"]);
    let category = load(Written {
        column_type: "a=category",
        ..nothing
    })
    .unwrap();
    assert_eq!(category.feature_names, ["b"]);
}

#[test]
fn the_cache_knows_the_policies() {
    let folder = tempfile::tempdir().unwrap();
    let path = csv(folder.path());
    let cache = Cache::new(folder.path().join("cache"));
    let used = |missing| {
        let written = Written {
            missing,
            bad_rows: "skip",
            infinite: "missing",
            ..Written::default()
        };
        let options = TabularOptions {
            label: "y".into(),
            policies: policies(written),
            ..TabularOptions::default()
        };
        let (table, used) = cache.tabular(&path, &options).unwrap();
        (
            table.features[2].is_nan(),
            table.skipped.count,
            matches!(used, CacheUse::Hit(_)),
        )
    };
    assert_eq!(used("mean"), (true, 1, false));
    assert_eq!(used("mean"), (true, 1, true));
    assert_eq!(used("zero"), (false, 1, false));
}
