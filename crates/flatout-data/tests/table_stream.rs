//! A table that is read part after part is the same table, epoch after epoch.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::table_source::TableSource;
use flatout_data::table_stream::TableStream;
use flatout_data::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Six parts of 50 rows. `kind` holds whole numbers in the first part and words in the last.
fn shards(folder: &Path) {
    for part in 1..=6 {
        let mut text = String::from("x,city,kind,y\n");
        for row in 0..50 {
            let number = part * 100 + row;
            let kind = if part == 6 {
                format!("k{}", row % 3)
            } else {
                (row % 3).to_string()
            };
            text += &format!("{number},c{},{kind},{number}\n", (part * 7 + row) % 11);
        }
        std::fs::write(folder.join(format!("t_part{part}.csv")), text).unwrap();
    }
}

fn options(label: &str) -> TabularOptions {
    TabularOptions {
        label: label.into(),
        ..TabularOptions::default()
    }
}

/// Rows of an epoch by their label, with the text of their city, and the order of the parts.
fn epoch(stream: &mut TableStream) -> (BTreeMap<u32, String>, Vec<u32>) {
    let (mut rows, mut order) = (BTreeMap::new(), Vec::new());
    loop {
        let part = stream.next_part().unwrap();
        let table = part.table;
        let Labels::Real(labels) = &table.labels else {
            panic!()
        };
        let city = table
            .categories
            .iter()
            .position(|category| category.name == "city")
            .unwrap();
        order.push(labels[0] as u32);
        for row in 0..table.rows {
            let code = table.codes[row * table.categories.len() + city];
            let name = table.categories[city].values.get(code as usize - 1).into_owned();
            assert!(rows.insert(labels[row] as u32, name).is_none());
            assert_eq!(table.features[row], labels[row]);
        }
        if part.left == 0 {
            return (rows, order);
        }
    }
}

#[test]
fn every_row_once_an_epoch_with_one_code_for_one_value() {
    let folder = tempfile::tempdir().unwrap();
    shards(folder.path());
    let source = TableSource::open(folder.path(), None, None).unwrap();
    let mut stream = TableStream::new(&source, &options("y"), 8192, 3).unwrap();
    assert!(stream.parts() > 2, "{}", stream.parts());
    let (first, order) = epoch(&mut stream);
    assert_eq!(first.len(), 300);
    for (number, city) in &first {
        let (part, row) = (number / 100, number % 100);
        assert_eq!(*city, format!("c{}", (part * 7 + row) % 11));
    }
    let orders: Vec<Vec<u32>> = (0..6)
        .map(|_| {
            let (rows, order) = epoch(&mut stream);
            assert_eq!(rows, first);
            order
        })
        .collect();
    assert!(
        orders.iter().any(|other| *other != order),
        "another order in another epoch"
    );
    let mut again = TableStream::new(&source, &options("y"), 8192, 3).unwrap();
    assert_eq!(epoch(&mut again).1, order);
}

#[test]
fn reports_tables_that_cannot_be_streamed() {
    let folder = tempfile::tempdir().unwrap();
    shards(folder.path());
    let source = TableSource::open(folder.path(), None, None).unwrap();
    let refused = |label: &str, budget| {
        TableStream::new(&source, &options(label), budget, 3)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refused("city", 8192).contains("label is numeric"));
    assert!(refused("y", 100).contains("t_part1.csv"));
    let mut stream = TableStream::new(&source, &options("y"), 8192, 3).unwrap();
    std::fs::write(folder.path().join("t_part4.csv"), "x,city\n1,2\n").unwrap();
    let failed = (0..stream.parts()).find_map(|_| stream.next_part().err());
    assert!(failed.is_some());
}
