//! The programs and what their labels say is planted.

use crate::Result;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default)]
pub struct Label {
    pub needs_gpu: bool,
    pub causes: Vec<String>,
    pub also: Vec<String>,
    /// The code the program ends with.
    pub exit: i32,
    /// It shows the same on any machine, also a loaded one with two CPUs.
    pub anywhere: bool,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub folder: PathBuf,
    pub held_out: bool,
    pub label: Label,
}

/// Every folder with a label, held-out ones last.
pub fn find(faults: &Path) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (folder, held_out) in [(faults.to_owned(), false), (faults.join("holdout"), true)] {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        for folder in folders {
            let Ok(text) = fs::read_to_string(folder.join("label.toml")) else {
                continue;
            };
            let name = folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            let label = parse(&text).map_err(|reason| format!("faults: {name}/label.toml: {reason}"))?;
            programs.push(Program {
                name,
                folder,
                held_out,
                label,
            });
        }
    }
    Ok(programs)
}

/// Lines `key = value` whose values are strings, numbers, lists of strings or `true`, as JSON writes them too.
fn parse(text: &str) -> Result<Label> {
    let known = rule_ids();
    let mut fields = BTreeMap::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (key, rest) = line
            .split_once('=')
            .ok_or_else(|| format!("`{line}` is no `key = value`"))?;
        let value = serde_json::Deserializer::from_str(rest)
            .into_iter::<Value>()
            .next();
        let Some(Ok(value)) = value else {
            return Err(format!("`{}` has no readable value", key.trim()));
        };
        fields.insert(key.trim().to_owned(), value);
    }
    let rules = |key: &str| -> Result<Vec<String>> {
        let list = fields
            .get(key)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let ids: Vec<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        match ids.iter().find(|id| !known.contains(&id.as_str())) {
            Some(id) => Err(format!("there is no rule `{id}`")),
            None => Ok(ids),
        }
    };
    let needs = fields.get("needs").and_then(Value::as_str).unwrap_or_default();
    if !["cpu", "gpu"].contains(&needs) {
        return Err("`needs` is \"cpu\" or \"gpu\"".into());
    }
    Ok(Label {
        needs_gpu: needs == "gpu",
        causes: rules("causes")?,
        also: rules("also")?,
        exit: fields.get("exit").and_then(Value::as_i64).unwrap_or(0) as i32,
        anywhere: fields.get("anywhere").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn rule_ids() -> Vec<&'static str> {
    flatout_diagnose::rule_infos().map(|info| info.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_with_comments() {
        let label =
            parse("needs = \"cpu\"   # or gpu\ncauses = [\"loader-starved\"]\nalso = []\nnote = \"x\"\n")
                .unwrap();
        assert_eq!(label.causes, ["loader-starved"]);
        assert!(parse("needs = \"cpu\"\ncauses = [\"no-such-rule\"]").is_err());
        assert!(parse("causes = []").is_err());
    }

    #[test]
    fn every_label_of_the_project_is_valid() {
        let programs = find(&crate::root().join("faults")).unwrap();
        assert!(programs.len() >= 28);
        let anywhere = |program: &&Program| program.label.anywhere;
        assert!(programs.iter().filter(anywhere).count() >= 10);
        assert!(
            programs
                .iter()
                .filter(anywhere)
                .all(|program| !program.label.needs_gpu && !program.held_out)
        );
    }

    /// The table in `faults/README.md`: every rule that can name a cause is there, next to the programs it is planted in, to
    /// programs of `faults/lines` whose records show it, or to its unit tests.
    #[test]
    fn the_table_lists_where_each_cause_is_planted() {
        let faults = crate::root().join("faults");
        let programs = find(&faults).unwrap();
        let table = fs::read_to_string(faults.join("README.md")).unwrap();
        for info in flatout_diagnose::rule_infos() {
            // What is only worth knowing is no cause.
            if info.severity < flatout_core::Severity::Warning {
                continue;
            }
            let planted = programs
                .iter()
                .filter(|program| {
                    !program.held_out && program.label.causes.iter().any(|cause| cause == info.id)
                })
                .map(|program| format!("`{}`", program.name))
                .collect::<Vec<_>>();
            let row = table
                .lines()
                .find(|line| line.starts_with(&format!("| `{}` |", info.id)));
            let row = row.unwrap_or_else(|| panic!("faults/README.md does not tell of {}", info.id));
            if planted.is_empty() {
                if let Some((_, names)) = row.rsplit_once("| `faults/lines`: ") {
                    let names = names.trim_end_matches(" |").split(", ");
                    for name in names.map(|name| name.trim_matches('`')) {
                        let named = crate::faults::lines::rules_named(&faults, name).unwrap();
                        assert!(
                            named.iter().any(|rule| rule == info.id),
                            "{name} does not show {}",
                            info.id
                        );
                    }
                    continue;
                }
                assert!(
                    row.contains("| – unit tests: "),
                    "no program shows {}, and no reason is given",
                    info.id
                );
                continue;
            }
            assert!(
                row.ends_with(&format!("| {} |", planted.join(", "))),
                "{row}\nshould end with {}",
                planted.join(", ")
            );
        }
    }
}
