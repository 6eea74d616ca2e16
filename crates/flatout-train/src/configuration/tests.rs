//! Files as users write them.

use super::*;
use crate::settings::Amp;
use flatout_data::Missing;
use flatout_data::table::ColumnType;

fn read(text: &str) -> Result<Configuration, TrainError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment.yaml");
    std::fs::write(&path, text).unwrap();
    Configuration::read(Some(&path), &Values::new())
}

#[test]
fn loads_the_kuairand_configuration_unchanged() {
    let text = "# 数据加载优化\ndataset:\n  num_workers: 8        # 数据加载进程数\n  pin_memory: true\n\nuse_amp: true\n\npretrain:\n  batch_size: 512\n\nglobal:\n  batch_size: 128\n";
    let configuration = read(text).unwrap();
    assert_eq!(configuration.settings.amp, Amp::Bf16);
    let phases: Vec<_> = configuration
        .phases
        .iter()
        .map(|p| (p.name.as_str(), p.settings.batch_size))
        .collect();
    assert_eq!(phases, [("pretrain", Some(512)), ("global", Some(128))]);
    assert_eq!(configuration.notes.len(), 2);
}

#[test]
fn loads_the_captcha_configuration_unchanged() {
    let text = "train:\n  batch_size: 512          # 从256增加到512\n  amp: true                # 保持不变\n  channels_last: true\n  num_workers: 8\n  pin_memory: true\n  non_blocking: true\n  gradient_accumulation_steps: 2\n  compile_model: true\n  compile_mode: \"max-autotune\"\n  prefetch_factor: 4\n\noptimizer:\n  lr: 6.0e-4\n\ninput_size: [512, 256]\n";
    let configuration = read(text).unwrap();
    let settings = &configuration.settings;
    assert_eq!(
        (
            settings.batch_size,
            settings.gradient_accumulation_steps,
            settings.amp
        ),
        (Some(512), 2, Amp::Bf16)
    );
    assert!((settings.learning_rate - 6e-4).abs() < 1e-12);
    assert_eq!(settings.input_size, Some((512, 256)));
    assert_eq!(configuration.notes.len(), 7);
}

#[test]
fn column_policies_can_be_a_mapping() {
    let text = "missing:\n  price: zero\n  'a, b': drop\ncolumn_type: {hour: category, 'x\"y': ignore}\n";
    let read = |text: &str| Configuration::of(Path::new("c.yaml"), text, &Values::new());
    let configuration = read(text).unwrap();
    let policies = &configuration.settings.policies;
    assert_eq!(policies.missing_of("price"), Missing::Zero);
    assert_eq!(policies.missing_of("a, b"), Missing::Drop);
    assert_eq!(policies.missing_of("other"), Missing::Error);
    assert_eq!(policies.type_of("hour", ColumnType::Real), ColumnType::Category);
    assert!(policies.is_ignored("x\"y"));
    let again = read(&configuration.yaml()).unwrap();
    assert_eq!(
        &again.settings.policies, policies,
        "the resolved file says the same"
    );
    let grouped = read("dataset:\n  missing: [mean, {price: zero}]\n  label: y\n").unwrap();
    let policies = &grouped.settings.policies;
    assert_eq!(
        (policies.missing_of("x"), policies.missing_of("price")),
        (Missing::Mean, Missing::Zero)
    );
    let refused = read("missing: {price: average}\n").unwrap_err().to_string();
    assert!(refused.contains("`price=average`"), "{refused}");
    assert!(read("label: {price: zero}\n").is_err());
}

#[test]
fn refuses_unknown_keys_with_location_and_suggestion() {
    let error = read("epochs: 3\ntrain:\n  hiden_size: 4\n").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("experiment.yaml:3: unknown setting `train.hiden_size`"),
        "{error}"
    );
    assert!(
        flatout_core::Explain::hint(&error)
            .unwrap()
            .en
            .contains("hidden_size")
    );
    assert!(matches!(read("a: [1, 2\n"), Err(TrainError::Syntax { .. })));
    assert!(matches!(read("epochs: many\n"), Err(TrainError::Mistakes { .. })));
    assert!(
        read("a: 1\nepochs: many\n")
            .unwrap_err()
            .to_string()
            .contains("2: `epochs` is `many`")
    );
}

#[test]
fn phases_and_the_recipe_survive_in_the_resolved_file() {
    let text = "epochs: 3\npretrain:\n  epochs: 1\nglobal:\n  batch_size: 128\ngenerate:\n  kind: stocks\n  days: 99\n";
    let configuration = read(text).unwrap();
    assert!(configuration.settings.recipe.is_some());
    let again = read(&configuration.yaml()).unwrap();
    assert_eq!(again.settings, configuration.settings);
    let settings = |c: &Configuration| -> Vec<(String, Settings)> {
        let phases = c.phases.iter();
        phases.map(|p| (p.name.clone(), p.settings.clone())).collect()
    };
    assert_eq!(settings(&again), settings(&configuration));
    assert_eq!(again.phases.len(), 2);
    assert!(matches!(
        read("generate:\n  kind: cats\n"),
        Err(TrainError::Value { .. })
    ));
}

#[test]
fn flags_win_and_the_resolved_file_reads_back() {
    let flags = [("epochs", "3".to_owned())].into();
    let configuration = Configuration::read(None, &flags).unwrap();
    let again = read(&configuration.yaml()).unwrap();
    assert_eq!(again.settings, configuration.settings);
    assert_eq!(again.settings.epochs, 3);
    let phased = read("epochs: 4\npretrain:\n  batch_size: 512\nglobal:\n  epochs: 2\n").unwrap();
    let again = read(&phased.yaml()).unwrap();
    let of = |configuration: &Configuration| -> Vec<_> {
        let phases = configuration.phases.iter();
        phases
            .map(|phase| (phase.name.clone(), phase.settings.clone()))
            .collect()
    };
    assert_eq!(of(&again), of(&phased));
    let batch = Batch {
        effective: 2048,
        micro: 1024,
        rate_factor: 2.0,
    };
    let measured = read(
        &phased
            .with_batch(0, batch, &phased.settings)
            .with_batch(1, batch, &phased.settings)
            .yaml(),
    )
    .unwrap();
    let sizes: Vec<_> = measured
        .phases
        .iter()
        .map(|p| (p.settings.batch_size, p.settings.learning_rate))
        .collect();
    assert_eq!(sizes, [(Some(512), 0.001), (Some(2048), 0.002)]);
    let measured = read(&configuration.with_batch(0, batch, &configuration.settings).yaml()).unwrap();
    assert_eq!(
        (measured.settings.batch_size, measured.settings.learning_rate),
        (Some(2048), 0.002)
    );
    let flags: Values = [("epochs", "7".to_owned())].into();
    let flagged = Configuration::of(Path::new("a.yaml"), "global:\n  epochs: 2\n", &flags).unwrap();
    assert_eq!(flagged.phases[0].settings.epochs, 7);
}

#[test]
fn what_is_typed_counts_over_a_resolved_file() {
    let resumed = |first: &[(&'static str, &str)], then: &[(&'static str, &str)]| {
        let values = |list: &[(&'static str, &str)]| -> Values {
            list.iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect()
        };
        let kept = Configuration::read(None, &values(first)).unwrap().yaml();
        Configuration::of(Path::new("c.yaml"), &kept, &values(then))
            .unwrap()
            .settings
    };
    // A rate that was typed is not scaled, unless that was typed as well.
    let rate = ("learning_rate", "0.01");
    assert!(resumed(&[], &[rate]).keep_lr);
    assert!(resumed(&[("epochs", "3")], &[]).learning_rate.to_bits() == 0.001f64.to_bits());
    assert!(!resumed(&[], &[rate, ("keep_lr", "false")]).keep_lr);
    assert!(!resumed(&[], &[("epochs", "3")]).keep_lr);
    // Early stopping looks every epoch, unless somebody said otherwise.
    let early = ("early_stopping", "3");
    let often = ("eval_interval", "2");
    assert_eq!(resumed(&[], &[early]).eval_interval, 1);
    assert_eq!(resumed(&[early], &[]).eval_interval, 1);
    assert_eq!(resumed(&[often], &[early]).eval_interval, 2);
    assert_eq!(resumed(&[early, often], &[]).eval_interval, 2);
    assert_eq!(resumed(&[early], &[often]).eval_interval, 2);
    assert_eq!(resumed(&[], &[]).eval_interval, 5);
}

#[test]
fn a_date_is_checked_against_the_other_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mistakes = |text: &str, flags: &[(&'static str, &str)]| -> Vec<String> {
        let path = folder.path().join("c.yaml");
        std::fs::write(&path, text).unwrap();
        let flags: Values = flags
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let found = Configuration::mistakes(&path, &flags);
        found.into_iter().map(|message| message.en).collect()
    };
    let both = "validation_from: 2024-01-01\ndataset:\n  test_from: 2024-06-01\nepochs: many\n";
    let found = mistakes(both, &[]);
    assert!(found.len() == 1 && found[0].contains("epochs"), "{found:?}");
    let found = mistakes(
        "test_from: 2024-06-01\nepochs: many\n",
        &[("validation_from", "2024-01-01")],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    let found = mistakes(
        "test_from: 2023-06-01\nvalidation_from: 2024-01-01\nepochs: many\n",
        &[],
    );
    assert_eq!(found.len(), 2, "{found:?}");
    let found = mistakes(
        "test_from: 2023-06-01\nvalidation_from: soon\nepochs: many\n",
        &[],
    );
    assert!(found.len() == 2 && found[0].contains("soon"), "{found:?}");
}

#[test]
fn data_are_generated_only_at_the_files_own_path() {
    let text = "data: data/stocks\ngenerate:\n  kind: stocks\n";
    let read = |data: Option<&str>| {
        let flags: Values = data.iter().map(|data| ("data", (*data).to_owned())).collect();
        let configuration = Configuration::of(Path::new("a.yaml"), text, &flags).unwrap();
        let phases = configuration.phases.iter().map(|phase| &phase.settings);
        let recipes: Vec<bool> = phases.map(|settings| settings.recipe.is_some()).collect();
        (configuration.settings.recipe.is_some(), recipes)
    };
    assert_eq!(read(None), (true, vec![true]));
    assert_eq!(read(Some("data/stocks")), (true, vec![true]));
    assert_eq!(read(Some("data/stcks")), (false, vec![false]));
}

#[test]
fn deep_nesting_is_refused_at_once() {
    for text in [
        "- ".repeat(100_000) + "a",
        "? ".repeat(100_000),
        "{".repeat(100_000),
    ] {
        assert!(read(&text).is_err());
    }
}
