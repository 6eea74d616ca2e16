//! Predictions are what the evaluation scored, on data with and without labels; what cannot be predicted is said.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_core::Explain;
use flatout_data::generate::{Recipe, images, interactions};
use flatout_train::predict::{Column, Predictions, predict};
use flatout_train::settings::Values;
use std::path::Path;
use support::{stocks, train, values};

fn cpu() -> Values {
    [("device", "cpu".to_owned())].into()
}

fn real<'a>(predictions: &'a Predictions, name: &str) -> &'a [f32] {
    match predictions.columns.iter().find(|(column, _)| column == name) {
        Some((_, Column::Real(values))) => values,
        _ => panic!("no column {name}"),
    }
}

#[test]
fn windows_with_and_without_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    train(
        &values(&data, &output, &[("epochs", "2"), ("cache", "false")]),
        None,
    )
    .unwrap();
    let all = predict(&output, &data, &cpu()).unwrap();
    let names: Vec<&str> = all.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["entity", "time", "prediction"]);
    // Every window of ten rows, also the last one, whose label lies in the future.
    let panel = flatout_data::load_panel(
        &data,
        &flatout_data::PanelOptions {
            label: "return_pct".into(),
            ..Default::default()
        },
    )
    .unwrap();
    let windows: usize = panel.entities.iter().map(|entity| entity.rows.len() - 9).sum();
    assert_eq!(all.rows(), windows);
    // One file alone gives the same numbers.
    let first = std::fs::read_dir(&data)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
        .min()
        .unwrap();
    let one = predict(&output, &first, &cpu()).unwrap();
    assert!(one.rows() > 100);
    for (alone, together) in real(&one, "prediction").iter().zip(real(&all, "prediction")) {
        assert!((alone - together).abs() < 1e-5, "{alone} {together}");
    }
    // A stock that was not trained on has the embedding of unknown ones, unless there is none.
    let strange = folder.path().join("999999.parquet");
    std::fs::copy(&first, &strange).unwrap();
    let unknown = predict(&output, &strange, &cpu()).unwrap();
    assert_ne!(real(&unknown, "prediction"), real(&one, "prediction"));
    assert!(unknown.notes.iter().any(|note| note.en.contains("999999")));
    let strict = folder.path().join("strict");
    let more = [("epochs", "1"), ("cache", "false"), ("entity_dropout", "0")];
    train(&values(&data, &strict, &more), None).unwrap();
    let refused = predict(&strict, &strange, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("999999"), "{refused}");
    std::fs::write(output.join("best.safetensors"), b"cut").unwrap();
    let refused = predict(&output, &data, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("damaged"), "{refused}");
}

#[test]
fn rows_are_coded_as_they_were_in_training() {
    let folder = tempfile::tempdir().unwrap();
    let (output, table) = (folder.path().join("out"), folder.path().join("table.csv"));
    let write = |path: &Path, label: bool, order: &[usize]| {
        let colours = ["red", "green", "blue"];
        let mut text = String::from(if label { "x,colour,y\n" } else { "x,colour\n" });
        for &index in order {
            let (x, colour) = (index as f32 / 50.0, colours[index % 3]);
            text += &format!("{x},{colour}");
            text += &if label {
                format!(",{}\n", x + (index % 3) as f32)
            } else {
                "\n".to_owned()
            };
        }
        std::fs::write(path, text).unwrap();
    };
    let forward: Vec<usize> = (0..200).collect();
    write(&table, true, &forward);
    let more = [
        ("label", "y"),
        ("epochs", "3"),
        ("cache", "false"),
        ("entity_embedding_dim", "2"),
    ];
    train(&values(&table, &output, &more), None).unwrap();
    let known = predict(&output, &table, &cpu()).unwrap();
    // The other way round: colours appear in another order, so their own codes would be others.
    let backward: Vec<usize> = (0..200).rev().collect();
    let other = folder.path().join("other.csv");
    write(&other, false, &backward);
    let turned = predict(&output, &other, &cpu()).unwrap();
    for (one, two) in real(&known, "prediction")
        .iter()
        .zip(real(&turned, "prediction").iter().rev())
    {
        assert!((one - two).abs() < 1e-5, "{one} {two}");
    }
    assert!(turned.notes.is_empty());
    std::fs::write(&other, "x,colour\n1,red\n2,pink\n3,\n4,black\n").unwrap();
    let strange = predict(&output, &other, &cpu()).unwrap();
    assert_eq!(strange.rows(), 4);
    assert_eq!(strange.notes.len(), 1);
    assert!(
        strange.notes[0].en.contains("`colour`: 2 values"),
        "{:?}",
        strange.notes
    );
    std::fs::write(&other, "x\n1\n").unwrap();
    let refused = predict(&output, &other, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("colour"), "{refused}");
}

#[test]
fn rows_are_read_as_the_training_read_them_and_none_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (output, table) = (folder.path().join("out"), folder.path().join("table.csv"));
    let mut text = String::from("x,note,y\n");
    (0..200).for_each(|row| {
        text += &format!(
            "{},n,{row}\n",
            if row % 10 == 3 {
                String::new()
            } else {
                row.to_string()
            }
        )
    });
    text += "1,n\n";
    std::fs::write(&table, text).unwrap();
    let more = [
        ("label", "y"),
        ("epochs", "1"),
        ("cache", "false"),
        ("missing", "x=drop"),
        ("bad_rows", "skip"),
        ("column_type", "note=ignore"),
    ];
    train(&values(&table, &output, &more), None).unwrap();
    let refused = predict(&output, &table, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("line 202"), "{refused}");
    let other = folder.path().join("other.csv");
    std::fs::write(&other, "x\n1\n\"\"\n3\n").unwrap();
    let all = predict(&output, &other, &cpu()).unwrap();
    assert_eq!(all.rows(), 3);
    assert!(real(&all, "prediction").iter().all(|value| value.is_finite()));
}

#[test]
fn a_sequence_model_reports_missing_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    train(
        &values(&data, &output, &[("epochs", "1"), ("cache", "false")]),
        None,
    )
    .unwrap();
    let plain = folder.path().join("plain.csv");
    std::fs::write(&plain, "a,b\n1,2\n").unwrap();
    let refused = predict(&output, &plain, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("trained on sequences with columns"), "{refused}");
    // All stocks in one table are no one stock.
    let options = flatout_data::PanelOptions {
        label: "return_pct".into(),
        ..Default::default()
    };
    let panel = flatout_data::load_panel(&data, &options).unwrap();
    let mut text = panel.feature_names.join(",") + ",code\n";
    let width = panel.feature_names.len();
    for entity in &panel.entities {
        for row in entity.rows.clone() {
            let values = &panel.features[row as usize * width..][..width];
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            text += &format!("{},{}\n", values.join(","), entity.name);
        }
    }
    std::fs::write(&plain, text).unwrap();
    let refused = predict(&output, &plain, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("--entity COLUMN"), "{refused}");
    let mut flags = cpu();
    flags.insert("entity", "code".to_owned());
    let together = predict(&output, &plain, &flags).unwrap();
    assert_eq!(together.rows(), predict(&output, &data, &cpu()).unwrap().rows());
    let short: String = std::fs::read_to_string(&plain)
        .unwrap()
        .lines()
        .take(4)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&plain, short).unwrap();
    let refused = predict(&output, &plain, &flags).err().unwrap().to_string();
    assert!(
        refused.contains("needs 10 rows") && refused.contains("has 3"),
        "{refused}"
    );
}

#[test]
fn a_probability_names_its_class_and_text_for_a_number_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (table, output) = (folder.path().join("t.csv"), folder.path().join("out"));
    let rows = (0..100).map(|row| format!("{row},{}\n", if row < 50 { "cat" } else { "dog" }));
    std::fs::write(&table, format!("x,y\n{}", rows.collect::<String>())).unwrap();
    let more = [("label", "y"), ("epochs", "20"), ("cache", "false")];
    train(&values(&table, &output, &more), None).unwrap();
    let predictions = predict(&output, &table, &cpu()).unwrap();
    let dog = real(&predictions, "p_dog");
    assert!(dog[0] < dog[99], "{dog:?}");
    // A label that is there and cannot be read is not looked at.
    std::fs::write(&table, "x,y\n1,\n2,bird\n").unwrap();
    assert_eq!(predict(&output, &table, &cpu()).unwrap().rows(), 2);
    std::fs::write(&table, "x\n1\nabc\n").unwrap();
    let refused = predict(&output, &table, &cpu()).err().unwrap().to_string();
    assert!(
        refused.contains("line 3") && refused.contains("column `x` is `abc`, which is not real"),
        "{refused}"
    );
    std::fs::write(&table, "x\n1\n\"\"\n").unwrap();
    let refused = predict(&output, &table, &cpu()).err().unwrap();
    assert!(
        refused.hint().unwrap().en.contains("--missing x=mean"),
        "{refused}"
    );
}

#[test]
fn predicts_joined_tables_and_images() {
    let folder = tempfile::tempdir().unwrap();
    let (clicks, shapes) = (folder.path().join("clicks"), folder.path().join("shapes"));
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    Recipe::Interactions(interactions::Interactions::of_size(600, 3))
        .generate(&clicks, Some(2))
        .unwrap();
    train(
        &values(&clicks, &one, &[("epochs", "1"), ("cache", "false")]),
        None,
    )
    .unwrap();
    let predictions = predict(&one, &clicks, &cpu()).unwrap();
    assert_eq!(predictions.rows(), 600);
    assert!(
        real(&predictions, "probability")
            .iter()
            .all(|p| (0.0..=1.0).contains(p))
    );
    let recipe = images::ImageClasses {
        images: 80,
        ..Default::default()
    };
    Recipe::Images(recipe).generate(&shapes, Some(2)).unwrap();
    let small = [
        ("epochs", "1"),
        ("input_size", "16"),
        ("batch_size", "16"),
        ("cache", "false"),
    ];
    train(&values(&shapes, &two, &small), None).unwrap();
    let predictions = predict(&two, &shapes, &cpu()).unwrap();
    assert_eq!((predictions.rows(), predictions.columns.len()), (80, 2 + 8));
    let sum: f32 = predictions.columns[2..]
        .iter()
        .map(|(name, _)| real(&predictions, name)[0])
        .sum();
    assert!((sum - 1.0).abs() < 1e-5);
    let refused = predict(&two, &clicks, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("pictures"), "{refused}");
}

/// An `.npy` of bytes, or of classes.
fn npy(path: &Path, kind: &str, shape: &str, bytes: &[u8]) {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    std::fs::write(path, file).unwrap();
}

#[test]
fn reads_pixel_arrays_as_images() {
    let folder = tempfile::tempdir().unwrap();
    let (root, output) = (folder.path(), folder.path().join("out"));
    // Bright pictures are class 1.
    let (count, size) = (200usize, 8usize);
    let pixels: Vec<u8> = (0..count * size * size)
        .map(|place| {
            let (bright, noise) = (place / (size * size) % 2, place * 7 % 50);
            u8::try_from(bright * 150 + noise).unwrap()
        })
        .collect();
    let classes: Vec<u8> = (0..count)
        .map(|number| u8::try_from(number % 2).unwrap())
        .collect();
    let pictures = root.join("images.npy");
    npy(&pictures, "|u1", "(200, 8, 8)", &pixels);
    npy(&root.join("labels.npy"), "|u1", "(200,)", &classes);
    let more = [
        ("batch_size", "16"),
        ("epochs", "4"),
        ("num_layers", "2"),
        ("cache", "false"),
    ];
    let (_, reports) = train(&values(&pictures, &output, &more), None).unwrap();
    let notes = reports.iter().find_map(|report| match report {
        flatout_train::Report::Start { notes, .. } => Some(notes),
        _ => None,
    });
    let notes: Vec<&str> = notes.unwrap().iter().map(|note| note.en.as_str()).collect();
    assert!(
        notes.iter().any(|note| note.starts_with("sequence_length: "))
            && notes
                .iter()
                .any(|note| note.starts_with("entity_embedding_dim: ")),
        "{notes:?}"
    );
    let other = root.join("new.npy");
    npy(&other, "|u1", "(10, 8, 8, 1)", &pixels[..640]);
    let predicted = predict(&output, &other, &cpu()).unwrap();
    let found = real(&predicted, "probability");
    let right = (0..)
        .zip(found)
        .filter(|(number, share)| (number % 2 == 1) == (**share > 0.5));
    assert_eq!((predicted.rows(), right.count()), (10, 10), "{found:?}");
    npy(&other, "|u1", "(40, 4, 4)", &pixels[..640]);
    let refused = predict(&output, &other, &cpu()).err().unwrap().to_string();
    assert!(refused.contains("[40, 4, 4]"), "{refused}");
}

#[test]
fn labels_that_cannot_be_read_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str, header: &str, row: &dyn Fn(usize) -> String| {
        let path = folder.path().join(name);
        let rows: String = (0..200).map(|number| row(number) + "\n").collect();
        std::fs::write(&path, format!("{header}\n{rows}")).unwrap();
        path
    };
    let number = |number: usize| format!("{number},{}", number * 2);
    let class = |number: usize| format!("{number},{}", ["a", "b", "c"][number / 80]);
    let train_on = |data: &Path, name: &str| {
        let output = folder.path().join(name);
        let more = [
            ("label", "y"),
            ("epochs", "1"),
            ("cache", "false"),
            ("batch_size", "16"),
        ];
        train(&values(data, &output, &more), None).unwrap();
        output
    };
    let numbers = train_on(&table("numbers.csv", "x,y", &number), "numbers");
    let broken = table("broken.csv", "x,y", &|row| match row {
        3 => "3,soon".to_owned(),
        _ => number(row),
    });
    let found = predict(&numbers, &broken, &cpu()).unwrap();
    assert!(found.scores.is_none() && found.rows() == 200);
    assert!(found.no_labels.as_ref().unwrap().en.contains("soon"));
    assert!(
        found.notes.iter().any(|note| note.en.contains("cannot be read")),
        "{:?}",
        found.notes
    );
    // Data without labels are nothing to warn of.
    let without = table("without.csv", "x", &|row| row.to_string());
    let found = predict(&numbers, &without, &cpu()).unwrap();
    assert!(
        found.no_labels.is_some() && found.notes.is_empty(),
        "{:?}",
        found.notes
    );
    // A class that training did not have.
    let classes = train_on(&table("classes.csv", "x,y", &class), "classes");
    let strange = table("strange.csv", "x,y", &|row| match row {
        3 => "3,d".to_owned(),
        _ => class(row),
    });
    let found = predict(&classes, &strange, &cpu()).unwrap();
    assert_eq!(found.scores.unwrap().samples, 199);
    assert!(
        found.notes.iter().any(|note| note.en.starts_with("1 of 200")),
        "{:?}",
        found.notes
    );
    let (label, report) = &found.classes[0];
    assert_eq!((label, report.confusion.len()), (&None, 3));
    assert_eq!(report.confusion.iter().flatten().sum::<u64>(), 199);
    assert_eq!(report.classes[0].samples, 79);
}
