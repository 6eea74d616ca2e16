//! The settings that matter, and the names that programs, flags and configuration files give them. One table for everybody:
//! advice prints them, `--from` and `check` read them, `tune` searches over them.

/// A setting under the name `flatout run --apply` knows it by, or, without one there, its usual name.
#[derive(Debug, PartialEq)]
pub struct Setting {
    pub key: &'static str,
    /// What a Python program calls it.
    pub name: &'static str,
    /// Other names for it; dashes count as underscores.
    pub aliases: &'static [&'static str],
}

pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "loader.batch_size",
        name: "batch_size",
        aliases: &[
            "train_batch_size",
            "per_device_train_batch_size",
            "bs",
            "micro_batch_size",
        ],
    },
    Setting {
        key: "loader.num_workers",
        name: "num_workers",
        aliases: &["workers", "n_workers", "dataloader_num_workers", "loader_workers"],
    },
    Setting {
        key: "loader.prefetch_factor",
        name: "prefetch_factor",
        aliases: &["prefetch", "dataloader_prefetch_factor"],
    },
    Setting {
        key: "loader.pin_memory",
        name: "pin_memory",
        aliases: &["pin", "dataloader_pin_memory"],
    },
    Setting {
        key: "loader.persistent_workers",
        name: "persistent_workers",
        aliases: &["dataloader_persistent_workers"],
    },
    Setting {
        key: "amp",
        name: "amp",
        aliases: &["use_amp", "precision", "mixed_precision", "amp_dtype", "bf16"],
    },
    Setting {
        key: "tf32",
        name: "tf32",
        aliases: &["allow_tf32"],
    },
    Setting {
        key: "cudnn.benchmark",
        name: "cudnn_benchmark",
        aliases: &["benchmark"],
    },
    Setting {
        key: "channels_last",
        name: "channels_last",
        aliases: &["memory_format"],
    },
    Setting {
        key: "optimizer.fused",
        name: "fused",
        aliases: &["fused_optimizer"],
    },
    Setting {
        key: "compile",
        name: "compile",
        aliases: &["compile_model", "torch_compile", "compile_mode"],
    },
    Setting {
        key: "step.accumulation",
        name: "gradient_accumulation_steps",
        aliases: &[
            "accumulation",
            "accumulation_steps",
            "accumulate_grad_batches",
            "grad_accum",
        ],
    },
    Setting {
        key: "zero_grad.set_to_none",
        name: "set_to_none",
        aliases: &[],
    },
    Setting {
        key: "gc.freeze",
        name: "gc_freeze",
        aliases: &[],
    },
    Setting {
        key: "malloc.keep",
        name: "malloc_keep",
        aliases: &[],
    },
    Setting {
        key: "threads.torch",
        name: "torch_threads",
        aliases: &["threads", "omp_num_threads"],
    },
    Setting {
        key: "hidden_size",
        name: "hidden_size",
        aliases: &["hidden", "hidden_dim"],
    },
    Setting {
        key: "eval_interval",
        name: "eval_interval",
        aliases: &["evaluation_interval", "eval_every"],
    },
    Setting {
        key: "checkpoint_interval",
        name: "checkpoint_interval",
        aliases: &["save_interval", "checkpoint_every"],
    },
];

/// The setting that this name means: its key, its name, or an alias; dashes or underscores, any case.
pub fn find(name: &str) -> Option<&'static Setting> {
    let plain = name.replace('-', "_").to_ascii_lowercase();
    let is = |known: &str| known.replace('.', "_") == plain.replace('.', "_");
    SETTINGS
        .iter()
        .find(|setting| is(setting.key) || is(setting.name) || setting.aliases.iter().any(|alias| is(alias)))
}

/// One spelling for what means the same: `True`, `on` and `yes`; `bf16` and `bfloat16`; `None` and `off`.
pub fn normal(value: &str) -> String {
    let plain = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    match plain.as_str() {
        "true" | "on" | "yes" => "on".into(),
        "false" | "off" | "no" | "none" | "null" | "~" | "" => "off".into(),
        "bfloat16" | "bf16-mixed" => "bf16".into(),
        "float16" | "16-mixed" | "16" => "fp16".into(),
        "float32" | "32" | "32-true" => "fp32".into(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_kinds_mean_one_setting() {
        for name in [
            "batch_size",
            "batch-size",
            "loader.batch_size",
            "BATCH_SIZE",
            "per_device_train_batch_size",
        ] {
            assert_eq!(
                find(name).map(|setting| setting.key),
                Some("loader.batch_size"),
                "{name}"
            );
        }
        assert_eq!(
            find("cudnn.benchmark").map(|setting| setting.key),
            Some("cudnn.benchmark")
        );
        assert!(find("colour").is_none());
    }

    #[test]
    fn no_name_means_two_settings() {
        let mut seen = std::collections::BTreeSet::new();
        for setting in SETTINGS {
            let mut names: Vec<&str> = [setting.key, setting.name]
                .into_iter()
                .chain(setting.aliases.iter().copied())
                .collect();
            names.dedup();
            for name in names {
                assert!(seen.insert(name), "{name} twice");
            }
        }
    }

    #[test]
    fn spellings() {
        assert_eq!(normal("True"), "on");
        assert_eq!(normal("\"bfloat16\""), "bf16");
        assert_eq!(normal("None"), "off");
        assert_eq!(normal("512"), "512");
    }
}
