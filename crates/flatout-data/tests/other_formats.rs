//! Arrow IPC and `.npz` as tables. The files in `tests/formats` were written by PyArrow 26 and NumPy 2.4: every type that is read, in
//! batches of two or three rows, with each compression.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "other_formats/arrow_messages.rs"]
mod arrow_messages;

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

/// A zip of one array, as `numpy.savez` writes it.
fn zipped(name: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut array = b"\x93NUMPY\x01\0".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(data);
    let sizes = [
        (array.len() as u32).to_le_bytes(),
        (array.len() as u32).to_le_bytes(),
    ]
    .concat();
    let lengths = [(name.len() as u16).to_le_bytes(), [0, 0]].concat();
    let mut zip = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    zip.extend([&sizes[..], &lengths, name.as_bytes(), &array].concat());
    let start = zip.len() as u32;
    let mut entry = b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    entry.extend([&sizes[..], &lengths, &[0; 14], name.as_bytes()].concat());
    let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
    end.extend((entry.len() as u32).to_le_bytes());
    end.extend(start.to_le_bytes());
    end.extend([0, 0]);
    [zip, entry, end].concat()
}

#[test]
fn shapes_that_no_data_backs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("a.npz");
    let read = |name: &str, shape: &str, data: &[u8]| {
        std::fs::write(&at, zipped(name, shape, data)).unwrap();
        npz::AsCsv::new(File::open(&at).unwrap()).map(|csv| {
            let mut text = String::new();
            csv.unwrap().read_to_string(&mut text).unwrap();
            text
        })
    };
    assert_eq!(read("x.npy", "(2, 1)", &[7, 8]).unwrap(), "\"x_0\"\n7\n8\n");
    let long = "n".repeat(60_000) + ".npy";
    for (name, shape) in [
        ("x.npy", "(0, 1000000000000000000)"),
        ("x.npy", "(0, 18446744073709551615)"),
        ("x.npy", "(1000000000000, 0)"),
        (&long, "(0, 1000000)"),
    ] {
        let said = read(name, shape, &[]).unwrap_err().to_string();
        assert!(said.contains("columns"), "{shape}: {said}");
    }
}

#[test]
fn a_zip_that_unpacks_to_more_than_the_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("a.npz");
    let mut zip = zipped("x.npy", "(2,)", &[7, 8]);
    let entry = zip.windows(4).rposition(|mark| mark == b"PK\x01\x02").unwrap();
    // The size of the directory's entry, now in a field of 64 bits; then the directory is longer by that field.
    let field = [&[1, 0, 8, 0][..], &(1u64 << 60).to_le_bytes()].concat();
    zip[entry + 24..entry + 28].copy_from_slice(&[0xFF; 4]);
    zip[entry + 30] = field.len() as u8;
    let after = entry + 46 + "x.npy".len();
    zip.splice(after..after, field.iter().copied());
    let end = zip.len() - 22;
    zip[end + 12] += field.len() as u8;
    std::fs::write(&at, zip).unwrap();
    let said = npz::AsCsv::new(File::open(&at).unwrap())
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("bytes of memory"), "{said}");
}

#[test]
fn a_dictionary_may_grow_any_number_of_times() {
    use arrow_messages::{dictionary, records, schema, text_column};
    const TIMES: i64 = 100_000;
    let mut file = schema(&[text_column("t", Some(7))]);
    for index in 0..TIMES {
        file.extend(dictionary(7, index > 0, b"a"));
    }
    let last = (TIMES as i32 - 1).to_le_bytes();
    let rows = [[0; 4], last, (TIMES as i32).to_le_bytes()].concat();
    file.extend(records(3, &[&[], &rows], None));
    // With one call per piece this stack would overflow.
    let text = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        let mut text = String::new();
        let csv = arrow_ipc::AsCsv::new(Box::new(std::io::Cursor::new(file)));
        csv.unwrap().read_to_string(&mut text).unwrap();
        text
    });
    assert_eq!(text.unwrap().join().unwrap(), "\"t\"\n\"a\"\n\"a\"\n\n");
}

/// The first thing wrong with a file.
fn refusal(file: Vec<u8>) -> String {
    let read = |csv: arrow_ipc::AsCsv| csv.take(1 << 30).read_to_end(&mut Vec::new());
    let error = arrow_ipc::AsCsv::new(Box::new(std::io::Cursor::new(file)))
        .and_then(read)
        .unwrap_err();
    error.to_string()
}

#[test]
fn arrow_rows_and_sizes_that_no_data_backs_are_refused() {
    use arrow_messages::{byte_column, null_column, records, records_at, schema};
    let nothing = [schema(&[null_column("n")]), records(i64::MAX, &[], None)].concat();
    assert!(refusal(nothing).contains("none of its columns has values"));
    let no_columns = [schema(&[]), records(i64::MAX, &[], None)].concat();
    assert!(refusal(no_columns).contains("none of its columns has values"));
    // Half a gigabyte of zeros in some kilobytes.
    let rows: usize = 1 << 29;
    let mut packed = (rows as i64).to_le_bytes().to_vec();
    let zeros = std::io::repeat(0).take(rows as u64);
    packed.extend(zstd::stream::encode_all(zeros, 1).unwrap());
    assert!(packed.len() < 100_000);
    let bomb = records(rows as i64, &[&[], &packed], Some(1));
    let said = refusal([schema(&[byte_column("b")]), bomb].concat());
    assert!(said.contains("times their size"), "{said}");
    // A thousand columns that share one buffer.
    let names: Vec<String> = (0..1000).map(|column| format!("c{column}")).collect();
    let columns: Vec<_> = names.iter().map(|name| byte_column(name)).collect();
    let shared = records_at(4096, &[0; 4096], &[[(0, 0), (0, 4096)]; 1000].concat());
    let said = refusal([schema(&columns), shared].concat());
    assert!(said.contains("a record batch"), "{said}");
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
