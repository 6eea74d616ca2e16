//! CSV through the whole reader, against a reader that is too simple to be wrong.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::formats::csv::{CsvOptions, infer, read};
use flatout_data::formats::encoding::Encoding;
use flatout_data::table::{Array, BadRows, ColumnType, Layout, MISSING, TableRead};
use proptest::prelude::*;
use std::io::Write;
use std::path::PathBuf;

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn read_as(files: &[PathBuf], kinds: &[ColumnType], options: &CsvOptions) -> flatout_data::Result<TableRead> {
    let schema = infer(files, None, 1, Encoding::default())?;
    let kinds: Vec<Option<ColumnType>> = kinds.iter().copied().map(Some).collect();
    read(files, &schema, &Layout::columns(&kinds), options)
}

fn small_blocks(threads: usize) -> CsvOptions {
    CsvOptions {
        threads: Some(threads),
        block_bytes: Some(64),
        ..CsvOptions::default()
    }
}

/// One cell: what is written, and the text it means.
fn cell() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        "[a-z0-9 ]{1,6}".prop_map(|text| (text.clone(), text.trim().to_owned())),
        "[a-z,\n\"]{1,8}".prop_map(|text| (format!("\"{}\"", text.replace('"', "\"\"")), text)),
        Just((String::new(), String::new())),
    ]
}

proptest! {
    #[test]
    fn categories_and_numbers_come_back(
        rows in prop::collection::vec((cell(), -1e6f32..1e6, any::<i64>()), 1..120),
        cuts in prop::collection::vec(0usize..120, 0..3),
        crlf: bool,
        threads in 1usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let end = if crlf { "\r\n" } else { "\n" };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows.len())).collect();
        cuts.push(rows.len());
        cuts.sort_unstable();
        let (mut start, mut files) = (0, Vec::new());
        for (index, cut) in cuts.into_iter().enumerate() {
            let mut text = format!("name,x,n{end}");
            for ((written, _), real, integer) in &rows[start..cut] {
                text += &format!("{written},{real},{integer}{end}");
            }
            files.push(write(&folder, &format!("t_part{}.csv", index + 1), text.as_bytes()));
            start = cut;
        }
        let kinds = [ColumnType::Category, ColumnType::Real, ColumnType::Integer];
        let got = read_as(&files, &kinds, &small_blocks(threads)).unwrap();
        prop_assert_eq!(got.arrays.rows, rows.len());
        prop_assert_eq!(got.rows_per_file.iter().sum::<usize>(), rows.len());
        let [Array::Code(codes), Array::Real(reals), Array::Integer(integers)] = &got.arrays.arrays[..] else { panic!() };
        let mut known = std::collections::HashMap::new();
        for (index, ((_, meaning), real, integer)) in rows.iter().enumerate() {
            prop_assert_eq!(reals[index], *real);
            prop_assert_eq!(integers[index], *integer);
            let missing = ["", "nan", "null", "none"].contains(&meaning.as_str());
            if missing {
                prop_assert_eq!(codes[index], 0);
            } else {
                // Codes count up in the order of first appearance.
                let next = known.len() as i32 + 1;
                let code = *known.entry(meaning.clone()).or_insert(next);
                prop_assert_eq!(codes[index], code, "{:?}", meaning);
                prop_assert_eq!(got.arrays.dictionaries[0].get(code as usize - 1), meaning.as_str());
            }
        }
    }

    #[test]
    fn any_bytes_give_an_answer(text: Vec<u8>, skip: bool) {
        let folder = tempfile::tempdir().unwrap();
        let files = [write(&folder, "x.csv", &text)];
        if let Ok(schema) = infer(&files, None, 1, Encoding::default()) {
            let kinds: Vec<_> = schema.types.iter().map(|kind| Some(*kind)).collect();
            let bad_rows = if skip { BadRows::Skip } else { BadRows::Error };
            let options = CsvOptions { bad_rows, ..small_blocks(2) };
            let _ = read(&files, &schema, &Layout::columns(&kinds), &options);
        }
    }

    #[test]
    fn texts_like_csv_give_an_answer(text in "[a1.,\n\r\"-]{0,200}", skip: bool) {
        let folder = tempfile::tempdir().unwrap();
        let files = [write(&folder, "x.csv", text.as_bytes())];
        if let Ok(schema) = infer(&files, None, 1, Encoding::default()) {
            let kinds: Vec<_> = schema.types.iter().map(|kind| Some(*kind)).collect();
            let bad_rows = if skip { BadRows::Skip } else { BadRows::Error };
            let one = read(&files, &schema, &Layout::columns(&kinds), &CsvOptions { bad_rows, ..small_blocks(1) });
            let two = read(&files, &schema, &Layout::columns(&kinds), &CsvOptions { bad_rows, ..small_blocks(3) });
            match (one, two) {
                (Ok(one), Ok(two)) => {
                    prop_assert_eq!(format!("{:?}", one.arrays), format!("{:?}", two.arrays));
                    prop_assert_eq!(one.skipped, two.skipped);
                }
                (Err(one), Err(two)) => prop_assert_eq!(one.to_string(), two.to_string()),
                (one, two) => prop_assert!(false, "{:?} {:?}", one, two),
            }
        }
    }
}

#[test]
fn a_bad_row_is_named_with_file_line_column_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("a,b\n");
    (0..50).for_each(|row| text += &format!("{row},\"two\nlines {row}\"\n"));
    text += "7x,fine\n1,2,3\n";
    let files = [write(&folder, "prices.csv", text.as_bytes())];
    let kinds = [ColumnType::Real, ColumnType::Category];
    let error = read_as(&files, &kinds, &small_blocks(3)).unwrap_err().to_string();
    assert!(error.starts_with("line 102 of"), "{error}");
    assert!(
        error.ends_with("column `a` is `7x`, which is not real"),
        "{error}"
    );
    let skip = CsvOptions {
        bad_rows: BadRows::Skip,
        ..small_blocks(2)
    };
    let got = read_as(&files, &kinds, &skip).unwrap();
    assert_eq!((got.arrays.rows, got.skipped.count), (50, 2));
    assert_eq!(
        got.skipped
            .examples
            .iter()
            .map(|row| row.line)
            .collect::<Vec<_>>(),
        [102, 103]
    );
}

#[test]
fn missing_values_and_infinities() {
    let folder = tempfile::tempdir().unwrap();
    let files = [write(
        &folder,
        "a.csv",
        b"x,n,t,c\n,,,\nNaN,3.0,2024-01-02,NULL\n-inf,4,1704153600000,v\n",
    )];
    let kinds = [
        ColumnType::Real,
        ColumnType::Integer,
        ColumnType::Time,
        ColumnType::Category,
    ];
    let error = read_as(&files, &kinds, &CsvOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 4") && error.contains("-inf"), "{error}");
    let options = CsvOptions {
        infinite_is_missing: true,
        ..CsvOptions::default()
    };
    let got = read_as(&files, &kinds, &options).unwrap();
    let [
        Array::Real(x),
        Array::Integer(n),
        Array::Integer(t),
        Array::Code(c),
    ] = &got.arrays.arrays[..]
    else {
        panic!()
    };
    assert!(x[0].is_nan() && x[1].is_nan() && x[2].is_nan());
    assert_eq!(n, &[MISSING, 3, 4]);
    assert_eq!(t, &[MISSING, 1_704_153_600_000_000, 1_704_153_600_000_000]);
    assert_eq!(c, &[0, 0, 1]);
}

#[test]
fn compressed_files_read_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..20_000).fold("a,b\n".into(), |text, row| text + &format!("{row},{}\n", row % 7));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let plain = write(&folder, "a.csv", text.as_bytes());
    let gzip = write(&folder, "a.csv.gz", &gzip.finish().unwrap());
    let zstd = write(
        &folder,
        "a.csv.zst",
        &zstd::encode_all(text.as_bytes(), 1).unwrap(),
    );
    let kinds = [ColumnType::Integer, ColumnType::Category];
    let read = |path: &PathBuf| {
        let got = read_as(std::slice::from_ref(path), &kinds, &CsvOptions::default()).unwrap();
        format!("{:?}", got.arrays)
    };
    assert_eq!(read(&plain), read(&gzip));
    assert_eq!(read(&plain), read(&zstd));
    // Cut short: an error with the file's name, not half the data.
    let bytes = std::fs::read(&gzip).unwrap();
    let cut = write(&folder, "cut.csv.gz", &bytes[..bytes.len() / 2]);
    let error = read_as(&[cut], &kinds, &CsvOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("cut.csv.gz"), "{error}");
}

#[test]
fn types_are_inferred_over_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        write(
            &folder,
            "a_part1.csv",
            b"i,r,c,d,code\n1,1,x,2024-01-01,007\n2,2,y,2024-01-02,010\n",
        ),
        write(&folder, "a_part2.csv", b"i,r,c,d,code\n3,2.5,z,2024-01-03,011\n"),
    ];
    use ColumnType::{Category, Integer, Real, Time};
    assert_eq!(
        infer(&files, None, 2, Encoding::default()).unwrap().types,
        [Integer, Real, Category, Time, Category]
    );
    let other = write(&folder, "a_part3.csv", b"i,r,k,d,code\n");
    let files = [files[0].clone(), other];
    let error = infer(&files, None, 1, Encoding::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a_part3.csv") && error.contains("missing c; extra k"),
        "{error}"
    );
}

#[test]
fn another_encoding_is_named_and_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let files = [folder.path().join("prices.csv")];
    // Two names in GBK.
    std::fs::write(&files[0], b"\xBC\xDB\xB8\xF1,\xC4\xBF\xB1\xEA\n1,2\n").unwrap();
    let error = infer(&files, None, 1, Encoding::default()).unwrap_err();
    assert!(error.to_string().contains("prices.csv` is not UTF-8"), "{error}");
    let hint = flatout_core::Explain::hint(&error).unwrap().en;
    assert!(
        hint.contains("--encoding gbk")
            && hint.contains("iconv -f GBK -t UTF-8")
            && hint.contains("prices.utf8.csv"),
        "{hint}"
    );
    let gbk = infer(&files, None, 1, Encoding::named("gbk").unwrap()).unwrap();
    assert_eq!(gbk.names, ["价格", "目标"]);
    let kinds = Layout::columns(&[Some(ColumnType::Real); 2]);
    assert_eq!(
        read(&files, &gbk, &kinds, &CsvOptions::default())
            .unwrap()
            .arrays
            .rows,
        1
    );
    std::fs::write(&files[0], "价格,目标\n1,2\n").unwrap();
    assert_eq!(
        infer(&files, None, 1, Encoding::default()).unwrap().names,
        ["价格", "目标"]
    );
}
