//! `.npy` arrays as tables, panels out of one table, and dictionaries of one table applied to another.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::inspect::inspect;
use flatout_data::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn write_npy(path: &Path, kind: &str, shape: &[usize], data: &[u8]) {
    let sides: Vec<String> = shape.iter().map(|side| format!("{side},")).collect();
    let header = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}\n",
        sides.concat()
    );
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

fn floats(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_le_bytes).collect()
}

fn tabular(label: &str) -> TabularOptions {
    TabularOptions {
        label: label.into(),
        ..TabularOptions::default()
    }
}

#[test]
fn reads_an_array_with_labels_as_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    write_npy(&path, "<f8", &[4, 3], &floats((0..12).map(f64::from)));
    let table = load_tabular(&path, &tabular("column_2")).unwrap();
    assert_eq!(table.feature_names, ["column_0", "column_1"]);
    assert_eq!(&table.features[..], [0.0, 1.0, 3.0, 4.0, 6.0, 7.0, 9.0, 10.0]);
    let Labels::Real(labels) = &table.labels else {
        panic!()
    };
    assert_eq!(&labels[..], [2.0, 5.0, 8.0, 11.0]);
    write_npy(
        &folder.path().join("labels.npy"),
        "<i8",
        &[4],
        &[
            [1u8, 0, 0, 0, 0, 0, 0, 0],
            [0; 8],
            [2, 0, 0, 0, 0, 0, 0, 0],
            [0; 8],
        ]
        .concat(),
    );
    for path in [&path, folder.path()] {
        let options = TabularOptions {
            label_kind: LabelKind::Class,
            ..tabular("label")
        };
        let table = load_tabular(path, &options).unwrap();
        assert_eq!(table.feature_names.len(), 3);
        let Labels::Class { classes, names } = &table.labels else {
            panic!()
        };
        assert_eq!((&classes[..], names.len()), (&[1, 0, 2, 0][..], 3));
    }
    let seen = inspect(&path, None, &Policies::default()).unwrap();
    assert_eq!(
        (seen.kind, seen.format.as_str(), seen.rows, seen.columns.len()),
        ("table", "NumPy", 4, 4)
    );
    write_npy(&folder.path().join("labels.npy"), "<i8", &[3], &[0; 24]);
    let error = load_tabular(&path, &tabular("label")).unwrap_err().to_string();
    assert!(error.contains("labels.npy"), "{error}");
}

#[test]
fn an_array_with_three_axes_is_a_panel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("panel.npy");
    // 12 entities of 5 rows with 2 columns: value = entity · 100 + row · 10 + column.
    let value = |index: usize| (index / 10 * 100 + index / 2 % 5 * 10 + index % 2) as f64;
    write_npy(&path, "<f8", &[12, 5, 2], &floats((0..120).map(value)));
    let options = PanelOptions {
        label: "column_1".into(),
        ..PanelOptions::default()
    };
    let panel = load_panel(&path, &options).unwrap();
    assert_eq!((panel.entities.len(), panel.rows()), (12, 60));
    assert_eq!(panel.entities[10].name, "10");
    assert_eq!(panel.features[10 * 5 + 3], 1030.0);
    assert_eq!(panel.labels[10 * 5 + 3], 1031.0);
    assert_eq!(inspect(&path, None, &Policies::default()).unwrap().kind, "panel");
    let (again, used) = Cache::new(folder.path().join("cache"))
        .panel(&path, &options)
        .unwrap();
    assert!(matches!(used, CacheUse::Stored(_)));
    assert_eq!(&again.features[..], &panel.features[..]);
}

#[test]
fn damaged_arrays_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let error = |kind: &str, shape: &[usize], data: &[u8]| {
        write_npy(&path, kind, shape, data);
        load_tabular(&path, &tabular("column_0")).unwrap_err().to_string()
    };
    for text in [
        error("<f8", &[4, 2], &[0; 40]),
        error("|O", &[4, 2], &[0; 64]),
        error("<f8", &[1, 1, 1, 1], &[0; 8]),
        error("<f8", &[0, 2], &[]),
        error("<f8", &[usize::MAX, 9], &[]),
    ] {
        assert!(text.contains("x.npy"), "{text}");
    }
    let text = error("<f8", &[2, 2], &floats([0.0, f64::NAN, 1.0, 2.0]));
    assert!(text.contains("column_1") && text.contains("NaN"), "{text}");
}

fn long_table(folder: &Path, rows: &[(usize, i64, f32)]) -> PathBuf {
    let path = folder.join("long.csv");
    let mut text = String::from("day,code,x,y\n");
    for (entity, day, x) in rows {
        let date = time::format_us(day * 86_400_000_000);
        text += &format!("{},s{entity},{x},{}\n", &date[..10], x * 2.0);
    }
    std::fs::write(&path, text).unwrap();
    path
}

fn by_code() -> PanelOptions {
    PanelOptions {
        label: "y".into(),
        entity: Some("code".into()),
        ..PanelOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Rows in any order become entities in natural order with their rows in the order of time, none lost.
    #[test]
    fn one_table_becomes_the_panel_that_separate_files_would(lengths in prop::collection::vec(1usize..20, 1..13), seed: u64) {
        let folder = tempfile::tempdir().unwrap();
        let sorted: Vec<(usize, i64, f32)> = lengths.iter().enumerate()
            .flat_map(|(entity, &length)| (0..length).map(move |row| (entity, row as i64 + entity as i64, (entity * 100 + row) as f32)))
            .collect();
        let permutation = Permutation::new(sorted.len() as u32, seed, 0);
        let shuffled: Vec<_> = (0..sorted.len() as u32).map(|index| sorted[permutation.get(index) as usize]).collect();
        let panel = load_panel(&long_table(folder.path(), &shuffled), &by_code()).unwrap();
        let names: Vec<String> = (0..lengths.len()).map(|entity| format!("s{entity}")).collect();
        prop_assert_eq!(panel.entities.iter().map(|entity| entity.name.clone()).collect::<Vec<_>>(), names);
        prop_assert_eq!(&panel.features[..], &sorted.iter().map(|row| row.2).collect::<Vec<_>>()[..]);
        prop_assert_eq!(&panel.labels[..], &sorted.iter().map(|row| row.2 * 2.0).collect::<Vec<_>>()[..]);
        let times = panel.timestamps_us.as_ref().unwrap();
        prop_assert!(panel.entities.iter().all(|entity| times[entity.rows.start as usize..entity.rows.end as usize].is_sorted()));
        for (entity, &length) in panel.entities.iter().zip(&lengths) {
            prop_assert_eq!(entity.rows.len(), length);
        }
    }
}

#[test]
fn a_limit_takes_the_first_entities_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = long_table(
        folder.path(),
        &[(1, 0, 1.0), (0, 0, 2.0), (2, 0, 3.0), (0, 1, 4.0)],
    );
    let limited = PanelOptions {
        limit: Some(2),
        ..by_code()
    };
    let panel = load_panel(&path, &limited).unwrap();
    assert_eq!(panel.entities.len(), 2);
    assert_eq!(&panel.features[..], [2.0, 4.0, 1.0]);
    std::fs::write(&path, "day,code,x,y\n2024-01-01,,1,2\n2024-01-02,a,1,2\n").unwrap();
    let error = load_panel(&path, &by_code()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("code"), "{error}");
    // A folder of CSV files, one an entity.
    let files = tempfile::tempdir().unwrap();
    for name in ["b", "a10", "a9"] {
        std::fs::write(
            files.path().join(format!("{name}.csv")),
            "day,x,y\n2024-01-01,1,2\n2024-01-02,3,4\n",
        )
        .unwrap();
    }
    let plain = PanelOptions {
        label: "y".into(),
        ..PanelOptions::default()
    };
    let panel = load_panel(files.path(), &plain).unwrap();
    let names: Vec<&str> = panel.entities.iter().map(|entity| entity.name.as_str()).collect();
    assert_eq!((names, panel.rows()), (vec!["a9", "a10", "b"], 6));
}

#[test]
fn dictionaries_of_old_data_know_what_they_have_not_seen() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        load_tabular(&path, &tabular("y")).unwrap()
    };
    let old = load("old.csv", "city,user_id,y\nparis,7,1\noslo,8,2\nparis,9,3\n");
    let new = load("new.csv", "user_id,city,y\n9,oslo,1\n5,rome,2\n,paris,3\n");
    let recoded = new.recode(&old.categories);
    let names: Vec<&str> = old
        .categories
        .iter()
        .map(|category| category.name.as_str())
        .collect();
    assert_eq!(names, ["city", "user_id"]);
    // oslo is 2 and 9 is 3 of the old; rome and 5 are unseen; a missing user is 0 but not unseen.
    assert_eq!(recoded.codes, [2, 3, 0, 0, 1, 0]);
    assert_eq!(recoded.unseen, [1, 1]);
    let same = old.recode(&old.categories);
    assert_eq!((&same.codes[..], &same.unseen[..]), (&old.codes[..], &[0, 0][..]));
}

#[test]
fn reports_a_panel_without_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "who,a,y\np,1,\np,2,\nq,3,\n").unwrap();
    let options = PanelOptions {
        label: "y".into(),
        entity: Some("who".into()),
        ..PanelOptions::default()
    };
    let error = load_panel(&path, &options).unwrap_err().to_string();
    assert!(
        error.contains("no row of") && error.contains("(column `y`)"),
        "{error}"
    );
    let unlabelled = PanelOptions {
        without_labels: true,
        ..options
    };
    let panel = load_panel(&path, &unlabelled).unwrap();
    assert_eq!(
        (panel.rows(), &panel.feature_names[..]),
        (3, &["a".to_owned()][..])
    );
}
