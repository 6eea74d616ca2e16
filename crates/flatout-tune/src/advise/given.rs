//! What the user has: a configuration file's values, or what a recorded run had in force.

use crate::TuneError;
use crate::config_file::ConfigFile;
use flatout_diagnose::Analysis;
use flatout_record::RunData;
use flatout_vocabulary::settings;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Debug, Default)]
pub struct Given {
    values: BTreeMap<&'static str, String>,
}

impl Given {
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        let mut given = Self::default();
        for (name, value) in pairs {
            given.add(name, value);
        }
        given
    }

    pub fn from_file(path: &Path) -> Result<Self, TuneError> {
        let mut given = Self::default();
        for value in ConfigFile::read(path)?.values {
            given.add(value.name(), &value.text);
        }
        Ok(given)
    }

    pub fn from_run(data: &RunData) -> Self {
        let analysis = Analysis::new(data);
        let facts = &analysis.facts;
        let mut given = Self::default();
        let switch = |on: Option<bool>| on.map(|on| if on { "on" } else { "off" }.to_owned());
        if let Some(loader) = analysis.train_loader() {
            given.put(
                "loader.batch_size",
                loader.batch_size.map(|value| value.to_string()),
            );
            given.put(
                "loader.num_workers",
                loader.num_workers.map(|value| value.to_string()),
            );
            given.put(
                "loader.prefetch_factor",
                loader.prefetch_factor.map(|value| value.to_string()),
            );
            given.put("loader.pin_memory", switch(loader.pin_memory));
            given.put("loader.persistent_workers", switch(loader.persistent_workers));
        }
        given.put("amp", facts.text("amp.dtype"));
        given.put("tf32", switch(facts.switch("tf32.matmul")));
        given.put("cudnn.benchmark", switch(facts.switch("cudnn.benchmark")));
        given.put(
            "optimizer.fused",
            facts.get("optimizer.fused").map(|_| {
                if facts.switch("optimizer.fused") == Some(true) {
                    "on"
                } else {
                    "off"
                }
                .to_owned()
            }),
        );
        let compiled = facts.switch("compile.applied").unwrap_or(false);
        given.put(
            "compile",
            Some(if compiled {
                facts.text("compile.mode").unwrap_or_else(|| "default".into())
            } else {
                "off".into()
            }),
        );
        given.put(
            "channels_last",
            facts
                .text("model.memory_format")
                .map(|format| if format == "channels_last" { "on" } else { "off" }.to_owned()),
        );
        given.put("step.accumulation", facts.text("step.accumulation"));
        given
    }

    /// These values take the place of what was given before.
    pub fn overlay(&mut self, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            if let Some(setting) = settings::find(name) {
                self.values.insert(setting.key, value.clone());
            }
        }
    }

    /// These values fill in where nothing was given.
    pub fn underlay(&mut self, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            self.add(name, value);
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        if let Some(setting) = settings::find(name) {
            self.values.entry(setting.key).or_insert_with(|| value.to_owned());
        }
    }

    fn put(&mut self, key: &'static str, value: Option<String>) {
        if let Some(value) = value {
            self.values.insert(key, value);
        }
    }

    pub fn value(&self, key: &str) -> Option<String> {
        self.values.get(key).cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
