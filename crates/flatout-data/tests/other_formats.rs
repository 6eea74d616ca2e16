//! Arrow IPC and `.npz` as tables. The files in `tests/formats` were written by PyArrow 26 and NumPy 2.4: every type that is read, in
//! batches of two or three rows, with each compression.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::formats::{arrow_ipc, npz};
use flatout_data::table::ColumnType;
use flatout_data::table_source::TableSource;
use flatout_data::{TabularOptions, load_tabular};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/formats")
        .join(name)
}

fn arrow(name: &str) -> String {
    let mut text = String::new();
    let file = File::open(path(name)).unwrap();
    arrow_ipc::AsCsv::new(Box::new(file))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

const ROWS: &str = r#""i","u8","x","f","b","s","ls","sv","d","day","ts","none"
1,1,1.5,1.5,1,"a","a","a","x",2024-01-02,2024-01-02 09:30:00.250000,
-2,2,,0.1,0,"b,""c""","b","b","y",2024-01-02,2024-01-02 09:30:00.250000,
,3,,,,,,,,2024-01-02,2024-01-02 09:30:00.250000,
4,4,1e-30,3e20,1,"股票","d","d","x",2024-01-02,2024-01-02 09:30:00.250000,
5,255,-2.25,-2.25,1,"long text of more than twelve bytes","e","long text of more than twelve bytes","y",,1969-12-31 23:00:00,
"#;

#[test]
fn arrow_files_and_streams_are_tables() {
    for name in [
        "all_uncompressed.feather",
        "all_lz4.feather",
        "all_zstd.feather",
        "stream.arrow",
    ] {
        assert_eq!(arrow(name), ROWS, "{name}");
    }
    let source = TableSource::open(&path("all_lz4.feather"), None, None).unwrap();
    assert_eq!(source.format_name(), "Arrow IPC");
    let kind = |name: &str| source.types[source.column(name).unwrap()];
    assert_eq!(
        [kind("i"), kind("x"), kind("s"), kind("ts")],
        [
            ColumnType::Integer,
            ColumnType::Real,
            ColumnType::Category,
            ColumnType::Time
        ]
    );
    let nested = TableSource::open(&path("nested.feather"), None, None).unwrap_err();
    let said = format!("{nested}: {}", std::error::Error::source(&nested).unwrap());
    assert!(said.contains("`l` is of type list"), "{said}");
}

#[test]
fn arrays_of_an_npz_are_columns() {
    for name in ["arrays.npz", "packed.npz"] {
        let source = TableSource::open(&path(name), None, None).unwrap();
        assert_eq!(source.names, ["x_0", "x_1", "y"], "{name}");
    }
    let options = TabularOptions {
        label: "y".into(),
        policies: flatout_data::Policies::of(&flatout_data::Written {
            missing: "zero",
            ..Default::default()
        })
        .unwrap(),
        ..TabularOptions::default()
    };
    let table = load_tabular(&path("arrays.npz"), &options).unwrap();
    assert_eq!(table.features[..], [1.0, 2.5, 3.0, 0.0, 5.0, 6.0]);
    let uneven = npz::AsCsv::new(File::open(path("uneven.npz")).unwrap());
    let said = uneven.err().unwrap().to_string();
    assert!(said.contains("`y` has the shape [4]"), "{said}");
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged");
    for name in ["all_lz4.feather", "stream.arrow", "packed.npz", "arrays.npz"] {
        let whole = std::fs::read(path(name)).unwrap();
        let read = |bytes: &[u8]| {
            let mut text = Vec::new();
            if name.ends_with("npz") {
                std::fs::write(&damaged, bytes).unwrap();
                if let Ok(Some(mut csv)) = npz::AsCsv::new(File::open(&damaged).unwrap()) {
                    let _ = csv.read_to_end(&mut text);
                }
            } else if let Ok(csv) = arrow_ipc::AsCsv::new(Box::new(std::io::Cursor::new(bytes.to_vec()))) {
                let _ = csv.take(1 << 20).read_to_end(&mut text);
            }
        };
        for end in 0..whole.len() {
            read(&whole[..end]);
        }
        for place in 0..whole.len() {
            for bits in [0x01, 0x80, 0xFF] {
                let mut bytes = whole.clone();
                bytes[place] ^= bits;
                read(&bytes);
            }
        }
    }
}
