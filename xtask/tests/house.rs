//! Who may use whom: the table of docs/architecture.md, held against what cargo says.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A crate of ours and those of ours it may use. `flatout` may use all; nobody may use `flatout` or `xtask`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("flatout-core", &[]),
    ("flatout-vocabulary", &["flatout-core"]),
    ("flatout-telemetry", &["flatout-core"]),
    (
        "flatout-diagnose",
        &["flatout-core", "flatout-vocabulary", "flatout-telemetry"],
    ),
    (
        "flatout-compare",
        &["flatout-core", "flatout-telemetry", "flatout-diagnose"],
    ),
    ("flatout-lint", &["flatout-core", "flatout-vocabulary"]),
    ("flatout-tracer", &[]),
    ("flatout-data", &["flatout-core"]),
    ("flatout-engine", &["flatout-core"]),
    (
        "flatout-train",
        &[
            "flatout-core",
            "flatout-data",
            "flatout-engine",
            "flatout-telemetry",
        ],
    ),
    (
        "flatout-tune",
        &[
            "flatout-compare",
            "flatout-core",
            "flatout-vocabulary",
            "flatout-telemetry",
            "flatout-diagnose",
        ],
    ),
    (
        "flatout-run",
        &[
            "flatout-core",
            "flatout-telemetry",
            "flatout-diagnose",
            "flatout-lint",
            "flatout-tracer",
            "flatout-tune",
            "flatout-vocabulary",
        ],
    ),
    (
        "flatout-report",
        &[
            "flatout-compare",
            "flatout-core",
            "flatout-telemetry",
            "flatout-diagnose",
        ],
    ),
    ("flatout-fake-nvml", &["flatout-core", "flatout-telemetry"]),
    (
        "xtask",
        &["flatout-core", "flatout-telemetry", "flatout-diagnose"],
    ),
];

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    let ours: BTreeSet<String> = packages
        .iter()
        .map(|package| package["name"].as_str().unwrap().to_owned())
        .collect();
    packages
        .iter()
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter();
            let used = used.filter(|dependency| dependency["kind"] != "dev");
            let used = used.map(|dependency| dependency["name"].as_str().unwrap().to_owned());
            (
                package["name"].as_str().unwrap().to_owned(),
                used.filter(|name| ours.contains(name)).collect(),
            )
        })
        .collect()
}

#[test]
fn every_crate_uses_only_what_it_may() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for (package, used) in dependencies() {
        assert!(
            !used.contains("flatout") && !used.contains("xtask"),
            "{package} uses the command line"
        );
        if package == "flatout" {
            continue;
        }
        let allowed = allowed
            .get(package.as_str())
            .unwrap_or_else(|| panic!("{package} is not in the table"));
        for name in &used {
            assert!(allowed.contains(&name.as_str()), "{package} may not use {name}");
        }
    }
}
