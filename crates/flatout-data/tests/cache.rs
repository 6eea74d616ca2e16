//! The prepared cache: the same data back, made again when anything changed, never half a file.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::generate::{Recipe, images::ImageClasses, interactions::Interactions, stocks::Stocks};
use flatout_data::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn stocks(folder: &Path) -> PathBuf {
    let path = folder.join("stocks");
    let recipe = Stocks {
        stocks: 4,
        days: 60,
        ..Stocks::default()
    };
    Recipe::Stocks(recipe).generate(&path, None).unwrap();
    path
}

fn options() -> PanelOptions {
    PanelOptions {
        label: "return_pct".into(),
        ..PanelOptions::default()
    }
}

fn hit(used: &CacheUse) -> PathBuf {
    let CacheUse::Hit(path) = used else {
        panic!("{used:?}")
    };
    path.clone()
}

#[test]
fn a_cached_panel_is_mapped_and_can_be_standardized() {
    let folder = tempfile::tempdir().unwrap();
    let source = stocks(folder.path());
    let cache = Cache::new(folder.path().join("cache"));
    let (first, used) = cache.panel(&source, &options()).unwrap();
    assert!(matches!(used, CacheUse::Stored(_)), "{used:?}");
    let (mut second, used) = cache
        .panel(
            &source,
            &PanelOptions {
                threads: Some(1),
                ..options()
            },
        )
        .unwrap();
    let file = hit(&used);
    assert!(second.features.is_mapped());
    assert_eq!(first.features[..], second.features[..]);
    assert_eq!(first.entities, second.entities);
    assert_eq!(first.timestamps_us.as_deref(), second.timestamps_us.as_deref());
    let split = second.split(&SplitRule::default()).unwrap();
    second.standardise(&split.train);
    assert_ne!(first.features[..], second.features[..]);
    let (third, _) = cache.panel(&source, &options()).unwrap();
    assert_eq!(
        first.features[..],
        third.features[..],
        "standardising did not reach the file"
    );
    // Still readable after its file is gone.
    std::fs::remove_file(file).unwrap();
    assert_eq!(first.labels[..], third.labels[..]);
}

#[test]
fn restores_tables_and_images() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"));
    let clicks = folder.path().join("clicks");
    Recipe::Interactions(Interactions::of_size(500, 1))
        .generate(&clicks, None)
        .unwrap();
    let (first, _) = cache.tabular(&clicks, &TabularOptions::default()).unwrap();
    let (second, used) = cache.tabular(&clicks, &TabularOptions::default()).unwrap();
    hit(&used);
    assert_eq!(first.categories, second.categories);
    assert_eq!(first.codes[..], second.codes[..]);
    assert_eq!(first.features[..], second.features[..]);
    let shapes = folder.path().join("shapes");
    Recipe::Images(ImageClasses {
        images: 16,
        ..ImageClasses::default()
    })
    .generate(&shapes, None)
    .unwrap();
    let (first, _) = cache.images(&shapes, &ImageOptions::default()).unwrap();
    let (second, used) = cache.images(&shapes, &ImageOptions::default()).unwrap();
    hit(&used);
    assert_eq!(first.pixels[..], second.pixels[..]);
    assert_eq!(cache.list().unwrap().len(), 2);
    assert_eq!(cache.clean(3600).unwrap().len(), 0, "nothing is an hour old");
    assert_eq!(cache.clean(0).unwrap().len(), 2);
    assert!(cache.list().unwrap().is_empty());
}

#[test]
fn a_changed_source_or_option_is_another_entry() {
    let folder = tempfile::tempdir().unwrap();
    let source = stocks(folder.path());
    let cache = Cache::new(folder.path().join("cache"));
    cache.panel(&source, &options()).unwrap();
    let limited = PanelOptions {
        limit: Some(2),
        ..options()
    };
    let (panel, used) = cache.panel(&source, &limited).unwrap();
    assert!(matches!(used, CacheUse::Stored(_)));
    assert_eq!(panel.entities.len(), 2);
    std::fs::remove_file(source.join("600003.parquet")).unwrap();
    let (panel, used) = cache.panel(&source, &options()).unwrap();
    assert!(matches!(used, CacheUse::Stored(_)));
    assert_eq!(panel.entities.len(), 3);
}

#[test]
fn an_unwritable_folder_only_costs_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let source = stocks(folder.path());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let (panel, used) = Cache::new(folder.path().join("file/cache"))
        .panel(&source, &options())
        .unwrap();
    assert_eq!(panel.entities.len(), 4);
    assert!(matches!(used, CacheUse::NotStored(_)), "{used:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_damaged_file_is_made_again(place in 0.0f64..1.0, change in 1u8..=255, cut: bool) {
        let folder = tempfile::tempdir().unwrap();
        let source = stocks(folder.path());
        let cache = Cache::new(folder.path().join("cache"));
        let (first, used) = cache.panel(&source, &options()).unwrap();
        let CacheUse::Stored(path) = used else { panic!() };
        let mut bytes = std::fs::read(&path).unwrap();
        let place = (bytes.len() as f64 * place) as usize;
        if cut { bytes.truncate(place); } else { bytes[place] ^= change; }
        std::fs::write(&path, &bytes).unwrap();
        let (second, _) = cache.panel(&source, &options()).unwrap();
        // A changed byte in the padding between blocks harms nobody; all else is noticed. Either way the data are right.
        prop_assert_eq!(&first.features[..], &second.features[..]);
        prop_assert_eq!(&first.labels[..], &second.labels[..]);
        prop_assert_eq!(&first.entities, &second.entities);
        if cut {
            prop_assert!(cache.list().unwrap().iter().all(|entry| entry.intact), "stored again");
        }
    }
}
