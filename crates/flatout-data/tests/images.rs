//! Pictures from folders, tables and `.npy`; the planted answers; broken files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::dataset::images::PixelStatistics;
use flatout_data::formats::image::{ImageShape, write_png};
use flatout_data::generate::{Recipe, captcha::Captcha, images::ImageClasses, score::BestScore};
use flatout_data::load::images::list_images;
use flatout_data::*;
use std::sync::Arc;

#[test]
fn generated_classes_load_and_their_best_score_is_the_share_of_right_folders() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = Recipe::Images(ImageClasses {
        images: 160,
        seed: 3,
        wrong_label_share: 0.1,
    });
    let generated = recipe.generate(folder.path(), Some(2)).unwrap();
    let images = load_images(folder.path(), &ImageOptions::default()).unwrap();
    assert_eq!(
        (images.count, images.height, images.width, images.channels),
        (160, 128, 128, 1)
    );
    let ImageTargets::Class { names, .. } = &images.targets else {
        panic!()
    };
    assert_eq!(names.len(), 8);
    let BestScore::Classes { all, validation } = generated.best else {
        panic!()
    };
    assert!((0.8..1.0).contains(&all.accuracy), "{all:?}");
    assert_eq!(validation.samples, 32);
    // Same bytes with another number of threads.
    let again = tempfile::tempdir().unwrap();
    recipe.generate(again.path(), Some(1)).unwrap();
    let one = load_images(again.path(), &ImageOptions::default()).unwrap();
    assert_eq!(&one.pixels[..], &images.pixels[..]);
}

#[test]
fn captcha_targets_come_from_the_table() {
    let folder = tempfile::tempdir().unwrap();
    Recipe::Captcha(Captcha { images: 6, seed: 1 })
        .generate(folder.path(), None)
        .unwrap();
    let options = ImageOptions {
        height: Some(80),
        width: Some(160),
        channels: Some(3),
        ..ImageOptions::default()
    };
    let images = load_images(folder.path(), &options).unwrap();
    assert_eq!(images.pixels.len(), 6 * 80 * 160 * 3);
    let ImageTargets::Real { values, names } = &images.targets else {
        panic!()
    };
    assert_eq!(names, &["gap_x", "gap_y", "slider_x", "slider_y"]);
    assert!(
        values
            .chunks(4)
            .all(|row| (99.0..291.0).contains(&row[0]) && (29.0..31.0).contains(&row[2]))
    );
    let chosen = ImageOptions {
        targets: Some(vec!["gap_x".into()]),
        limit: Some(2),
        ..options
    };
    let images = load_images(folder.path(), &chosen).unwrap();
    assert_eq!(images.count, 2);
    let table = folder.path().join("labels.csv");
    let text = std::fs::read_to_string(&table).unwrap();
    std::fs::write(&table, text + "000005.png,1,2,3,\n").unwrap();
    let error = load_images(folder.path(), &ImageOptions::default()).unwrap_err();
    assert!(error.to_string().contains("line 8"), "{error}");
    let hint = flatout_core::Explain::hint(&error).unwrap().en;
    assert!(hint.contains("fix the row"), "{hint}");
}

#[test]
fn names_broken_images() {
    let folder = tempfile::tempdir().unwrap();
    let class = folder.path().join("a");
    std::fs::create_dir(&class).unwrap();
    let shape = ImageShape {
        height: 8,
        width: 8,
        channels: 1,
    };
    write_png(&class.join("fine.png"), &[9; 64], shape).unwrap();
    assert_eq!(
        load_images(folder.path(), &ImageOptions::default())
            .unwrap()
            .count,
        1,
        "one class, one picture"
    );
    let bytes = std::fs::read(class.join("fine.png")).unwrap();
    for (name, content) in [
        ("cut.png", &bytes[..bytes.len() / 2]),
        ("jpeg.jpg", &[0xFF, 0xD8, 0xFF, 0xE0][..]),
        ("text.png", b"hello"),
    ] {
        std::fs::write(class.join(name), content).unwrap();
        let error = load_images(folder.path(), &ImageOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(name), "{error}");
        std::fs::remove_file(class.join(name)).unwrap();
    }
    let nothing = tempfile::tempdir().unwrap();
    assert!(load_images(nothing.path(), &ImageOptions::default()).is_err());
    assert!(load_images(&folder.path().join("none"), &ImageOptions::default()).is_err());
}

fn striped(count: usize) -> Arc<Images> {
    let pixels: Vec<u8> = (0..count * 16).map(|index| (index * 7 % 256) as u8).collect();
    Arc::new(Images {
        pixels: pixels.into(),
        count,
        height: 4,
        width: 4,
        channels: 1,
        targets: ImageTargets::Class {
            classes: vec![0; count].into(),
            names: vec!["a".into()],
        },
        ..Images::default()
    })
}

#[test]
fn augmentation_depends_on_seed_epoch_and_sample_alone() {
    let source = ImageSource {
        images: striped(40),
        format: PixelFormat::Bytes,
        augment: Augment {
            flip: true,
            crop_padding: 1,
        },
    };
    let fill = |samples: &[u32], epoch: u64| {
        let mut batch = HostBatch::new(source.shape(), samples.len());
        source
            .fill(samples, Draw { seed: 5, epoch }, batch.slices(samples.len()))
            .unwrap();
        batch.pixels
    };
    let together = fill(&[3, 4, 5], 2);
    assert_eq!(
        &together[16..32],
        fill(&[4], 2),
        "the place in the batch does not matter"
    );
    let all: Vec<u32> = (0..40).collect();
    assert_ne!(fill(&all, 2), fill(&all, 3), "another epoch, other changes");
    assert_eq!(fill(&all, 2), fill(&all, 2));
}

#[test]
fn normalised_pixels_are_channels_first_with_mean_and_deviation_taken_out() {
    let images = striped(3);
    let statistics = images.statistics(&[0, 1, 2]);
    let source = ImageSource {
        images,
        format: PixelFormat::Normalised(statistics),
        augment: Augment::default(),
    };
    let mut batch = HostBatch::new(source.shape(), 3);
    source
        .fill(&[0, 1, 2], Draw { seed: 0, epoch: 0 }, batch.slices(3))
        .unwrap();
    let mean = batch.inputs.iter().sum::<f32>() / 48.0;
    let square = batch.inputs.iter().map(|value| value * value).sum::<f32>() / 48.0;
    assert!(
        mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-4,
        "{mean} {square}"
    );
    let flat = PixelStatistics {
        mean: vec![0.0],
        std: vec![1.0],
    };
    let source = ImageSource {
        format: PixelFormat::Normalised(flat),
        ..source
    };
    source
        .fill(&[1], Draw { seed: 0, epoch: 0 }, batch.slices(1))
        .unwrap();
    assert!((batch.inputs[1] - 119.0 / 255.0).abs() < 1e-6);
}

#[test]
fn streaming_gives_the_same_pixels_as_loading() {
    let folder = tempfile::tempdir().unwrap();
    Recipe::Images(ImageClasses {
        images: 24,
        ..ImageClasses::default()
    })
    .generate(folder.path(), None)
    .unwrap();
    let options = ImageOptions {
        height: Some(50),
        width: Some(64),
        ..ImageOptions::default()
    };
    let loaded = load_images(folder.path(), &options).unwrap();
    let list = Arc::new(list_images(folder.path(), &options).unwrap());
    let source = ImageFileSource(list);
    let samples = [5u32, 0, 23];
    let mut batch = HostBatch::new(source.shape(), 3);
    let time = source
        .fill(&samples, Draw { seed: 0, epoch: 0 }, batch.slices(3))
        .unwrap();
    let size = loaded.pixels_per_image();
    for (index, &sample) in samples.iter().enumerate() {
        assert_eq!(
            batch.pixels[index * size..][..size],
            loaded.pixels[sample as usize * size..][..size]
        );
    }
    assert!(time.fetch_ns > 0 && time.prepare_ns > 0);
}

#[test]
fn channels_are_those_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let class = folder.path().join("cat");
    std::fs::create_dir(&class).unwrap();
    let shape = |channels| ImageShape {
        height: 4,
        width: 4,
        channels,
    };
    let loaded = || load_images(folder.path(), &ImageOptions::default()).unwrap();
    write_png(&class.join("grey.png"), &[90; 16], shape(1)).unwrap();
    assert_eq!((loaded().channels, loaded().mixed_colors), (1, false));
    write_png(&class.join("red.png"), &[200, 10, 10].repeat(16), shape(3)).unwrap();
    let mixed = loaded();
    assert_eq!((mixed.channels, mixed.mixed_colors), (3, true));
    assert_eq!(mixed.pixels[..3], [90, 90, 90]);
    let grey = ImageOptions {
        channels: Some(1),
        ..ImageOptions::default()
    };
    assert_eq!(load_images(folder.path(), &grey).unwrap().channels, 1);
}

/// Gray images of one shade, one per file.
fn shades(folder: &std::path::Path, names: &[&str], shade: u8) {
    let shape = ImageShape {
        height: 4,
        width: 4,
        channels: 1,
    };
    for name in names {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_png(&path, &[shade; 16], shape).unwrap();
    }
}

#[test]
fn folders_of_parts_stay_parts() {
    let folder = tempfile::tempdir().unwrap();
    shades(
        &folder.path().join("train"),
        &["cat/1.png", "cat/2.png", "dog/1.png", "fox/1.png"],
        10,
    );
    shades(&folder.path().join("val"), &["dog/1.png", "fox/1.png"], 20);
    shades(&folder.path().join("test"), &["dog/1.png"], 30);
    let images = load_images(folder.path(), &ImageOptions::default()).unwrap();
    assert_eq!(images.parts, Some([4, 2, 1]));
    let ImageTargets::Class { classes, names } = &images.targets else {
        panic!()
    };
    assert_eq!(names, &["cat", "dog", "fox"]);
    assert_eq!(classes[..], [0, 0, 1, 2, 1, 2, 1]);
    let splits = images.split(&SplitRule::default()).unwrap();
    assert_eq!(
        (&splits.train[..], &splits.validation[..], &splits.test[..]),
        (&[0, 1, 2, 3][..], &[4, 5][..], &[6][..])
    );
    assert_eq!(images.pixels[4 * 16], 20);
    // Without a folder to validate on, a share of the others is.
    std::fs::remove_dir_all(folder.path().join("val")).unwrap();
    let images = load_images(folder.path(), &ImageOptions::default()).unwrap();
    let splits = images.split(&SplitRule::default()).unwrap();
    assert_eq!(
        [splits.train.len(), splits.validation.len(), splits.test.len()],
        [3, 1, 1]
    );
    // A class that is only there to test on cannot be learned.
    shades(&folder.path().join("test"), &["owl/1.png"], 30);
    let error = load_images(folder.path(), &ImageOptions::default()).unwrap_err();
    assert!(error.to_string().contains("owl"), "{error}");
    // Folders of these names that hold pictures are classes.
    let classes = tempfile::tempdir().unwrap();
    shades(classes.path(), &["train/1.png", "train/2.png", "test/1.png"], 10);
    let images = load_images(classes.path(), &ImageOptions::default()).unwrap();
    assert_eq!(images.parts, None);
}
