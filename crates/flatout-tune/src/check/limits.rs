//! The limits: `[check]` of the nearest `flatout.toml`, else what the seeds' checklists say.

use crate::TuneError;
use flatout_core::files::read_text;
use std::path::Path;
use toml_edit::Document;

macro_rules! limits {
    ($($(#[$meta:meta])* $name:ident = $default:literal;)*) => {
        /// Each can be set in `flatout.toml`, with dashes for underscores.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Limits {
            $($(#[$meta])* pub $name: f64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            fn set(&mut self, name: &str, value: f64) -> bool {
                match name.replace('-', "_").as_str() {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

limits! {
    /// Workers for each usable CPU.
    workers_per_cpu = 1.0;
    /// Samples in a batch on a GPU, at least.
    batch_min = 64.0;
    /// Share of a GPU's memory that others may hold before a start.
    gpu_memory_taken_max = 0.1;
    /// Degrees, before and during.
    gpu_temperature_max = 85.0;
    /// GiB left on the disk of the working folder.
    disk_free_gib_min = 5.0;
    /// Share of the data that lies in the page cache.
    data_cached_min = 0.5;
    /// Mean utilisation of the GPU.
    gpu_utilization_min = 0.6;
    /// Standard deviation of the utilisation.
    gpu_fluctuation_max = 0.1;
    /// Share of the GPU's memory in use, at most.
    gpu_memory_max = 0.95;
    /// Share of the GPU's memory in use, at least.
    gpu_memory_min = 0.1;
    /// Seconds of an epoch; 0 for any.
    epoch_seconds_max = 0.0;
    /// Use of the usable CPUs.
    cpu_utilization_max = 0.9;
    /// Share of the throughput that may be lost against the run of --against.
    slower_max = 0.03;
}

impl Limits {
    /// From the nearest `flatout.toml` at or above a folder.
    pub fn discover(folder: &Path) -> Result<Self, TuneError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let found = folder
            .ancestors()
            .map(|above| above.join("flatout.toml"))
            .find(|path| path.is_file());
        found.map_or(Ok(Self::default()), |path| Self::read(&path))
    }

    pub fn read(path: &Path) -> Result<Self, TuneError> {
        let text = read_text(path)?;
        let wrong = |text: String| TuneError::Syntax {
            path: path.to_owned(),
            text,
        };
        let document = Document::parse(text.as_str()).map_err(|error| wrong(error.message().to_owned()))?;
        let mut limits = Self::default();
        let section = document.get("check").and_then(|item| item.as_table_like());
        for (name, item) in section.into_iter().flat_map(|table| table.iter()) {
            let value = item
                .as_float()
                .or_else(|| item.as_integer().map(|whole| whole as f64));
            let value = value.ok_or_else(|| wrong(format!("check.{name}: a number is wanted")))?;
            if !limits.set(name, value) {
                return Err(wrong(format!(
                    "check.{name}: no such limit; there are: {}",
                    Self::NAMES.join(", ")
                )));
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_what_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flatout.toml");
        std::fs::write(
            &path,
            "[lint]\ncpus = 4\n[check]\ngpu-utilization-min = 0.8\nepoch_seconds_max = 20\n",
        )
        .unwrap();
        let limits = Limits::discover(folder.path()).unwrap();
        assert!(
            (limits.gpu_utilization_min - 0.8).abs() < 1e-12
                && (limits.epoch_seconds_max - 20.0).abs() < 1e-12
        );
        assert!((limits.batch_min - 64.0).abs() < 1e-12);
        std::fs::write(&path, "[check]\ncolour = 1\n").unwrap();
        assert!(
            matches!(Limits::read(&path), Err(TuneError::Syntax { text, .. }) if text.contains("no such limit"))
        );
        std::fs::write(&path, "[check]\nbatch_min = \"many\"\n").unwrap();
        assert!(Limits::read(&path).is_err());
    }
}
