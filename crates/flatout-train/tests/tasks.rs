//! Each kind of data and each model learns what was planted in it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_data::generate::{Recipe, captcha, images, interactions, stocks};
use flatout_train::metrics::Scores;
use flatout_train::settings::Values;
use flatout_train::{Configuration, TrainError, Trainer};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn train(data: &Path, more: &[(&'static str, &str)]) -> Result<(Scores, Vec<String>), TrainError> {
    let output = tempfile::tempdir().unwrap();
    let mut values: Values = [
        ("data", data.display().to_string()),
        ("output_dir", output.path().display().to_string()),
        ("device", "cpu".to_owned()),
        ("cache", "false".to_owned()),
        ("eval_interval", "100".to_owned()),
    ]
    .into();
    values.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let configuration = Configuration::read(None, &values)?;
    let (interrupted, mut notes) = (AtomicBool::new(false), Vec::new());
    let mut report = |report: &flatout_train::Report| {
        if let flatout_train::Report::Start { notes: said, .. } = report {
            notes.extend(said.iter().map(|note| note.en.clone()));
        }
    };
    let outcome = Trainer::new(&configuration, &interrupted, &mut report)?.run()?;
    Ok((outcome.scores.unwrap(), notes))
}

#[test]
fn clicks_are_yes_or_no() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = interactions::Interactions::of_size(6000, 3);
    Recipe::Interactions(recipe)
        .generate(folder.path(), Some(2))
        .unwrap();
    let more = [
        ("hidden_size", "16"),
        ("entity_embedding_dim", "4"),
        ("batch_size", "128"),
        ("epochs", "6"),
        ("learning_rate", "0.005"),
    ];
    let (scores, _) = train(folder.path(), &more).unwrap();
    assert!(
        scores.auc.unwrap() > 0.6 && scores.accuracy.unwrap() > 0.5,
        "{scores:?}"
    );
    assert!(scores.mae.is_none() && scores.ic.is_none());
    let (numbers, _) = train(
        folder.path(),
        &[&more[..], &[("task", "regression"), ("epochs", "1")]].concat(),
    )
    .unwrap();
    assert!(numbers.mae.is_some() && numbers.auc.is_none() && numbers.ic.is_none());
}

#[test]
fn a_label_that_nobody_named_is_asked_for_once_the_data_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = train(&folder.path().join("nowhere"), &[])
        .unwrap_err()
        .to_string();
    assert!(nowhere.contains("nowhere"), "{nowhere}");
    let table = folder.path().join("table.csv");
    std::fs::write(&table, "x,y\n1,2\n").unwrap();
    let unnamed = train(&table, &[]).unwrap_err();
    assert!(unnamed.to_string().contains("--label"), "{unnamed}");
    // A recipe of a join names it.
    let joined = folder.path().join("joined");
    Recipe::Interactions(interactions::Interactions::of_size(300, 3))
        .generate(&joined, Some(2))
        .unwrap();
    std::fs::remove_file(joined.join("recipe.json")).unwrap();
    let (scores, _) = train(
        &joined,
        &[("epochs", "1"), ("batch_size", "32"), ("hidden_size", "8")],
    )
    .unwrap();
    assert!(scores.accuracy.is_some(), "{scores:?}");
}

#[test]
fn folders_are_classes_and_tables_of_labels_positions() {
    let folder = tempfile::tempdir().unwrap();
    let (shapes, captchas) = (folder.path().join("shapes"), folder.path().join("captchas"));
    let recipe = images::ImageClasses {
        images: 160,
        ..Default::default()
    };
    Recipe::Images(recipe).generate(&shapes, Some(2)).unwrap();
    let small = [
        ("hidden_size", "16"),
        ("num_layers", "3"),
        ("input_size", "32"),
        ("batch_size", "16"),
        ("epochs", "8"),
        ("learning_rate", "0.005"),
    ];
    let (scores, _) = train(&shapes, &small).unwrap();
    // Eight classes: guessing is right one time in eight.
    assert!(
        scores.accuracy.unwrap() > 0.3 && scores.auc.is_none(),
        "{scores:?}"
    );
    let recipe = captcha::Captcha { images: 60, seed: 1 };
    Recipe::Captcha(recipe).generate(&captchas, Some(2)).unwrap();
    let (scores, _) = train(
        &captchas,
        &[&small[..], &[("input_size", "64,32"), ("epochs", "10")]].concat(),
    )
    .unwrap();
    // Four columns, in pixels: knowing nothing but the means is off by 18.
    assert!(
        scores.mae.unwrap() < 16.0 && scores.accuracy.is_none(),
        "{scores:?}"
    );
    let turned = [("flip", "true"), ("crop_padding", "2"), ("epochs", "3")];
    let (scores, _) = train(&shapes, &[&small[..], &turned].concat()).unwrap();
    assert!(scores.accuracy.unwrap() > 0.2, "{scores:?}");
    // Positions move along; half of the mirrored ones are where none is in the files, so little is learned so soon.
    let moved = [
        ("input_size", "64,32"),
        ("flip", "true"),
        ("crop_padding", "3"),
        ("rotate", "5"),
        ("zoom", "0.1"),
        ("color_jitter", "0.2"),
        ("cutout", "6"),
        ("epochs", "3"),
    ];
    let twice = || train(&captchas, &[&small[..], &moved].concat()).unwrap().0;
    let scores = twice();
    assert!(scores.mae.unwrap() < 120.0, "{scores:?}");
    assert_eq!(scores, twice());
    // Where there is no other coordinate, nothing can be turned.
    let half = [&small[..], &[("rotate", "5"), ("label", "gap_x")]].concat();
    let refused = train(&captchas, &half).unwrap_err().to_string();
    assert!(
        refused.contains("rotate") && refused.contains("gap_x"),
        "{refused}"
    );
    let wrong = train(&captchas, &[("label", "gap_z")]).unwrap_err().to_string();
    assert!(wrong.contains("gap_z"), "{wrong}");
}

#[test]
fn every_model_learns_what_was_planted_in_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let (windows, clicks, shapes) = (
        folder.path().join("stocks"),
        folder.path().join("clicks"),
        folder.path().join("shapes"),
    );
    let recipe = stocks::Stocks {
        stocks: 8,
        days: 260,
        seed: 7,
        ..Default::default()
    };
    Recipe::Stocks(recipe).generate(&windows, Some(2)).unwrap();
    let small = [
        ("hidden_size", "16"),
        ("entity_embedding_dim", "4"),
        ("sequence_length", "10"),
        ("batch_size", "64"),
        ("epochs", "6"),
        ("learning_rate", "0.005"),
    ];
    for (model, own) in [
        ("tcn", ("num_layers", "2")),
        ("transformer", ("num_layers", "1")),
        ("lstm", ("bidirectional", "true")),
    ] {
        let chosen = [("model_type", model), ("dropout", "0.1"), own];
        let (scores, notes) = train(&windows, &[&small[..], &chosen].concat()).unwrap();
        assert!(scores.ic.unwrap() > 0.2, "{model}: {scores:?}");
        assert!(
            notes.iter().all(|note| !note.contains("this model is")),
            "{notes:?}"
        );
    }
    let wrong = [("model_type", "transformer"), ("num_heads", "5")];
    let error = train(&windows, &[&small[..], &wrong].concat()).unwrap_err();
    assert!(error.to_string().contains("divides hidden_size (16)"), "{error}");
    let (_, notes) = train(
        &windows,
        &[&small[..], &[("epochs", "1"), ("kernel_size", "3")]].concat(),
    )
    .unwrap();
    assert!(
        notes.iter().any(|note| note.contains("only tcn uses it")),
        "{notes:?}"
    );

    Recipe::Interactions(interactions::Interactions::of_size(6000, 3))
        .generate(&clicks, Some(2))
        .unwrap();
    let wide = [("model_type", "wide-deep"), ("batch_size", "128")];
    let (scores, _) = train(&clicks, &[&small[..], &wide].concat()).unwrap();
    assert!(scores.auc.unwrap() > 0.6, "{scores:?}");

    let columns = [("model_type", "tabular-transformer"), ("batch_size", "128")];
    let (scores, _) = train(&clicks, &[&small[..], &columns].concat()).unwrap();
    assert!(scores.auc.unwrap() > 0.6, "{scores:?}");

    let recipe = images::ImageClasses {
        images: 160,
        ..Default::default()
    };
    Recipe::Images(recipe).generate(&shapes, Some(2)).unwrap();
    let resnet = [
        ("model_type", "resnet"),
        ("num_layers", "10"),
        ("hidden_size", "64"),
        ("input_size", "32"),
        ("batch_size", "16"),
        ("epochs", "6"),
        ("learning_rate", "0.003"),
    ];
    let (scores, _) = train(&shapes, &resnet).unwrap();
    // Eight classes: guessing is right one time in eight.
    assert!(scores.accuracy.unwrap() > 0.3, "{scores:?}");
    let heatmap = [("model_type", "heatmap"), ("batch_size", "16")];
    let error = train(&shapes, &heatmap).unwrap_err();
    assert!(error.to_string().contains("heatmap for positions"), "{error}");
    let captchas = folder.path().join("captchas");
    let recipe = captcha::Captcha { images: 60, seed: 1 };
    Recipe::Captcha(recipe).generate(&captchas, Some(2)).unwrap();
    let heatmap = [
        ("model_type", "heatmap"),
        ("num_layers", "3"),
        ("hidden_size", "16"),
        ("input_size", "64,32"),
        ("batch_size", "16"),
        ("epochs", "10"),
        ("learning_rate", "0.01"),
    ];
    let (scores, _) = train(&captchas, &heatmap).unwrap();
    // Four columns, in pixels: knowing nothing but the means is off by 18.
    assert!(scores.mae.unwrap() < 16.0, "{scores:?}");
    let deep = [
        ("model_type", "resnet"),
        ("num_layers", "50"),
        ("batch_size", "16"),
    ];
    let error = train(&shapes, &deep).unwrap_err();
    assert!(error.to_string().contains("10, 18 or 34"), "{error}");
}

#[test]
fn a_gru_learns_sequences_and_input_size_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = stocks::Stocks {
        stocks: 8,
        days: 260,
        seed: 7,
        ..Default::default()
    };
    Recipe::Stocks(recipe).generate(folder.path(), Some(2)).unwrap();
    let small = [
        ("model_type", "gru"),
        ("hidden_size", "16"),
        ("num_layers", "1"),
        ("entity_embedding_dim", "4"),
        ("sequence_length", "10"),
        ("batch_size", "64"),
        ("epochs", "6"),
        ("learning_rate", "0.005"),
    ];
    let (scores, notes) = train(folder.path(), &[&small[..], &[("input_size", "99")]].concat()).unwrap();
    assert!(
        scores.ic.unwrap() > 0.2 && scores.directional_accuracy.is_some(),
        "{scores:?}"
    );
    assert!(notes.iter().any(|note| note.contains("20 features")), "{notes:?}");
    let long = [("sequence_length", "5000")];
    let error = train(folder.path(), &[&small[..], &long].concat()).unwrap_err();
    assert!(error.to_string().contains("no window fits"), "{error}");
    let error = train(folder.path(), &[("model_type", "cnn"), ("sequence_length", "10")]).unwrap_err();
    assert!(
        error.to_string().contains("model for this kind of data"),
        "{error}"
    );
}

#[test]
fn held_out_samples_may_be_in_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: std::ops::Range<usize>, city: &str, noise: bool| {
        let mut text = String::from("x,city,y\n");
        for row in rows {
            let x = (row * 37 % 101) as f32 / 101.0;
            let up = (x > 0.5) != (noise && row % 2 == 0);
            text += &format!("{x},{city},{}\n", if up { "up" } else { "down" });
        }
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let data = write("train.csv", 0..400, "a", false);
    let (good, wrong) = (
        write("val.csv", 400..500, "b", false),
        write("test.csv", 500..600, "a", true),
    );
    let more = [
        ("hidden_size", "8"),
        ("batch_size", "16"),
        ("epochs", "8"),
        ("learning_rate", "0.01"),
        ("label", "y"),
        ("validation_data", good.to_str().unwrap()),
        ("test_data", wrong.to_str().unwrap()),
    ];
    let (scores, _) = train(&data, &more).unwrap();
    assert_eq!(scores.samples, 100);
    assert!(scores.accuracy.unwrap() > 0.95, "{scores:?}");
    let (noisy, _) = train(
        &data,
        &[&more[..5], &[("validation_data", wrong.to_str().unwrap())]].concat(),
    )
    .unwrap();
    assert!(noisy.accuracy.unwrap() < 0.7, "{noisy:?}");
    let missing = folder.path().join("other.csv");
    std::fs::write(&missing, "z,city,y\n1,a,up\n").unwrap();
    let refused = train(
        &data,
        &[&more[..5], &[("validation_data", missing.to_str().unwrap())]].concat(),
    );
    assert!(refused.unwrap_err().to_string().contains('x'));
}
