//! A new setting is one entry of the table: names, `--apply`, patches, advice, frameworks and the probe follow from it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_core::Message;
use flatout_vocabulary::settings::find_in;
use flatout_vocabulary::{Call, Framework, SETTINGS, Setting, Source, probe};
use std::path::Path;

/// As somebody would add them.
const SWITCH: Setting = Setting::switch("step.colorful", "colorful")
    .or(&["colors"])
    .by_hand(|value| Message::verbatim(format!("call colorful({value})")))
    .statement(|value| Some(format!("colorful({value:?})")))
    .spelled(&[
        (Framework::Transformers, "colorful=True"),
        (Framework::Lightning, "colors=\"{}\""),
    ]);
const ARGUMENT: Setting = Setting::count("loader.color_count", "color_count", 2).argument(Call::Loader, 9);

fn table() -> Vec<Setting> {
    [SETTINGS, &[SWITCH, ARGUMENT]].concat()
}

#[test]
fn every_name_and_value_is_known() {
    let table = table();
    for name in ["step.colorful", "COLORFUL", "colors"] {
        assert_eq!(find_in(&table, name).unwrap().key, "step.colorful");
    }
    assert!(SWITCH.check("on").is_ok() && SWITCH.check("7").is_err());
    assert!(ARGUMENT.check("2").is_ok() && ARGUMENT.check("1").is_err());
}

#[test]
fn the_probe_receives_new_settings() {
    let text = probe::known(&table());
    assert!(text.contains("    \"step.colorful\",\n"), "{text}");
    assert!(text.contains("    \"color_count\",\n)"), "{text}");
    assert!(text.contains("    \"loader.color_count\",\n"), "{text}");
}

#[test]
fn source_and_frameworks_have_their_words() {
    assert_eq!(SWITCH.words("on").unwrap().en, "call colorful(on)");
    assert!(ARGUMENT.words("3").is_none());
    let Source::Argument { call, name, position } = ARGUMENT.source else {
        panic!("{:?}", ARGUMENT.source)
    };
    assert_eq!((call, name, position), (Call::Loader, "color_count", 9));
    assert_eq!(SWITCH.statement.unwrap()("on").unwrap(), "colorful(\"on\")");
    let lightning = SWITCH.in_framework(Framework::Lightning, "red");
    assert_eq!(lightning.unwrap(), "colors=\"red\"");
    assert!(SWITCH.in_framework(Framework::Timm, "red").is_none());
}

/// What the probe is told of, it can do: a function of `apply.py` or `model.py` and the like names the key.
#[test]
fn the_probe_puts_each_in_force() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/_flatout_apply");
    let mut code = String::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".py") && name != "known.py" {
            code += &std::fs::read_to_string(entry.path()).unwrap();
        }
    }
    for setting in SETTINGS.iter().filter(|setting| setting.applies) {
        // Put into the call by their names in `known.LOADER`.
        let argument = matches!(
            setting.source,
            Source::Argument {
                call: Call::Loader,
                ..
            }
        );
        let of_optimizer = setting
            .key
            .strip_prefix("optimizer.")
            .is_some_and(|name| code.contains(&format!("\"{name}\"")));
        let named = code.contains(&format!("\"{}\"", setting.key));
        assert!(argument || of_optimizer || named, "{}", setting.key);
    }
}

/// No other list of names: whoever wants one asks this crate.
#[test]
fn names_are_registered_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![root];
    let mut lists = Vec::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            // A knob of tune says itself what it turns.
            let skipped = ["tests", "target", "knobs", "flatout-vocabulary"];
            if !name.is_some_and(|name| skipped.contains(&name.as_str())) {
                files.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .flatten()
                        .map(|entry| entry.path()),
                );
            }
            continue;
        }
        if path.extension().is_none_or(|end| end != "rs") || path.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        // Five lines in a row that are nothing but a name.
        let is_name = |line: &str| {
            let mut all = SETTINGS.iter();
            all.any(|setting| line.trim() == format!("\"{}\",", setting.key))
        };
        let names: Vec<bool> = text.lines().map(is_name).collect();
        if names.windows(5).any(|five| five.iter().all(|name| *name)) {
            lists.push(path.display().to_string());
        }
    }
    assert!(lists.is_empty(), "{lists:?} list settings of their own");
}
