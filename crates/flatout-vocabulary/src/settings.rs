//! The table of settings.

use flatout_core::{Message, message};

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number, with the least that makes sense.
    Count { least: u64 },
    /// On or off.
    Switch,
    /// Judged where it is used.
    Word,
}

/// The call that a setting is an argument of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Loader,
    Optimizer,
}

/// How a setting is written in a program's source.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// An argument, with its position among the positional ones; beyond all of them where it has none.
    Argument {
        call: Call,
        name: &'static str,
        position: usize,
    },
    /// What a person writes, given the value.
    ByHand(fn(&str) -> Message),
    /// Nothing is known of it.
    Unknown,
}

/// A setting under the name `flatout run --apply` knows it by, or, without one there, its usual name.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub key: &'static str,
    /// What a Python program calls it.
    pub name: &'static str,
    /// Other names for it; dashes count as underscores.
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    /// The probe can put it in force.
    pub applies: bool,
    /// It takes minutes until it is in force: no finding's command tries it along with others.
    pub is_slow: bool,
    /// Losses differ with it, by more than the last bits.
    pub changes_losses: bool,
    pub source: Source,
    /// The statement that sets it in a Python program, given the value; `None` where it is an assignment to its name.
    pub statement: Option<fn(&str) -> Option<String>>,
    /// How frameworks spell it, with `{}` for the value.
    pub spellings: &'static [(Framework, &'static str)],
}

/// A library that owns the training loop, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// Hugging Face's `TrainingArguments`.
    Transformers,
    /// Lightning's `Trainer`.
    Lightning,
    /// `Accelerator`.
    Accelerate,
    /// DeepSpeed's configuration.
    DeepSpeed,
    /// timm's `create_loader`.
    Timm,
}

/// No position: by its name only.
const BY_NAME: usize = usize::MAX;

impl Setting {
    const fn new(key: &'static str, name: &'static str, kind: Kind) -> Self {
        Self {
            key,
            name,
            aliases: &[],
            kind,
            applies: true,
            is_slow: false,
            changes_losses: false,
            source: Source::Unknown,
            statement: None,
            spellings: &[],
        }
    }

    /// A whole number.
    pub const fn count(key: &'static str, name: &'static str, least: u64) -> Self {
        Self::new(key, name, Kind::Count { least })
    }

    pub const fn switch(key: &'static str, name: &'static str) -> Self {
        Self::new(key, name, Kind::Switch)
    }

    pub const fn word(key: &'static str, name: &'static str) -> Self {
        Self::new(key, name, Kind::Word)
    }

    /// Other names.
    #[must_use]
    pub const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Read and advised, but the probe cannot put it in force.
    #[must_use]
    pub const fn only_named(mut self) -> Self {
        self.applies = false;
        self
    }

    /// Minutes until it is in force.
    #[must_use]
    pub const fn slow(mut self) -> Self {
        self.is_slow = true;
        self
    }

    #[must_use]
    pub const fn changing_losses(mut self) -> Self {
        self.changes_losses = true;
        self
    }

    /// An argument of the call, under its own name.
    #[must_use]
    pub const fn argument(mut self, call: Call, position: usize) -> Self {
        self.source = Source::Argument {
            call,
            name: self.name,
            position,
        };
        self
    }

    /// What a person writes into the source.
    #[must_use]
    pub const fn by_hand(mut self, say: fn(&str) -> Message) -> Self {
        self.source = Source::ByHand(say);
        self
    }

    /// A statement that sets it.
    #[must_use]
    pub const fn statement(mut self, write: fn(&str) -> Option<String>) -> Self {
        self.statement = Some(write);
        self
    }

    /// How frameworks spell it.
    #[must_use]
    pub const fn spelled(mut self, spellings: &'static [(Framework, &'static str)]) -> Self {
        self.spellings = spellings;
        self
    }

    /// How a framework spells it with this value.
    pub fn in_framework(&self, framework: Framework, value: &str) -> Option<String> {
        let found = self.spellings.iter().find(|(owner, _)| *owner == framework);
        found.map(|(_, spelling)| spelling.replace("{}", value))
    }

    /// Whether a value can be; otherwise what one looks like.
    pub fn check(&self, value: &str) -> Result<(), String> {
        match self.kind {
            Kind::Count { least } if value.parse::<u64>().is_ok_and(|count| count >= least) => Ok(()),
            Kind::Count { least } => Err(format!("{least}, {}, …", least + 1)),
            Kind::Switch if matches!(normal(value).as_str(), "on" | "off") && !value.is_empty() => Ok(()),
            Kind::Switch => Err("on / off".to_owned()),
            Kind::Word if value.is_empty() => Err(format!("{}=VALUE", self.key)),
            Kind::Word => Ok(()),
        }
    }

    /// What to write into the source by hand; `None` for an argument.
    pub fn words(&self, value: &str) -> Option<Message> {
        match self.source {
            Source::Argument { .. } => None,
            Source::ByHand(say) => Some(say(value)),
            Source::Unknown => Some(
                message!(en: "it takes more than changing one argument of a call", zh: "仅修改一个调用参数不够"),
            ),
        }
    }
}

/// `True` or `False`.
fn boolean(value: &str) -> &'static str {
    if normal(value) == "on" { "True" } else { "False" }
}

pub const SETTINGS: &[Setting] = &[
    Setting::count("loader.batch_size", "batch_size", 1).changing_losses()
        .or(&[
            "train_batch_size",
            "per_device_train_batch_size",
            "bs",
            "micro_batch_size",
        ])
        .argument(Call::Loader, 1)
        .spelled(&[
            (Framework::Transformers, "per_device_train_batch_size={}"),
            (Framework::DeepSpeed, "\"train_micro_batch_size_per_gpu\": {}"),
            (Framework::Timm, "batch_size={}"),
        ]),
    Setting::count("loader.num_workers", "num_workers", 0)
        .or(&["workers", "n_workers", "dataloader_num_workers", "loader_workers"])
        .argument(Call::Loader, 5)
        .spelled(&[
            (Framework::Transformers, "dataloader_num_workers={}"),
            (Framework::Timm, "num_workers={}"),
        ]),
    Setting::count("loader.prefetch_factor", "prefetch_factor", 1)
        .or(&["prefetch", "dataloader_prefetch_factor"])
        .argument(Call::Loader, BY_NAME)
        .spelled(&[
            (Framework::Transformers, "dataloader_prefetch_factor={}"),
        ]),
    Setting::switch("loader.pin_memory", "pin_memory")
        .or(&["pin", "dataloader_pin_memory"])
        .argument(Call::Loader, 7)
        .spelled(&[
            (Framework::Transformers, "dataloader_pin_memory=True"),
            (Framework::Timm, "pin_memory=True"),
        ]),
    Setting::switch("loader.persistent_workers", "persistent_workers")
        .or(&["dataloader_persistent_workers"])
        .argument(Call::Loader, BY_NAME)
        .spelled(&[
            (Framework::Transformers, "dataloader_persistent_workers=True"),
            (Framework::Timm, "persistent_workers=True"),
        ]),
    Setting::switch("loader.batched", "batched").by_hand(|_| {
        message!(
            en: "give the dataset a __getitems__ that indexes its columns with the whole list of indices",
            zh: "给数据集加上 __getitems__，用整个索引列表一次取出各列"
        )
    }),
    Setting::switch("loader.resident", "resident").by_hand(|_| {
        message!(
            en: "move the dataset's tensors to the GPU once, and index them there",
            zh: "把数据集的张量一次性移到 GPU，在那里按索引取 batch"
        )
    }),
    Setting::count("loader.threads", "loader_threads", 1).by_hand(|value| {
        message!(
            en: "fetch batches with a pool of {value} threads",
            zh: "用 {value} 个线程的线程池取 batch"
        )
    }),
    Setting::switch("padding.trim", "trim_padding").changing_losses().by_hand(|_| {
        message!(
            en: "trim each batch to its longest row: `length = mask.sum(1).max()`, then `[:, :length]`",
            zh: "把每个 batch 裁到最长的一行：`length = mask.sum(1).max()`，再取 `[:, :length]`"
        )
    }),
    Setting::switch("step.graph", "cuda_graph").changing_losses().slow().by_hand(|_| {
        message!(
            en: "torch.compile(model, mode=\"reduce-overhead\"), or torch.cuda.make_graphed_callables",
            zh: "使用 torch.compile(model, mode=\"reduce-overhead\") 或 torch.cuda.make_graphed_callables"
        )
    }),
    Setting::word("amp", "amp").changing_losses()
        .or(&["use_amp", "precision", "mixed_precision", "amp_dtype", "bf16"])
        .by_hand(|_| {
            message!(
                en: "run the forward pass and the loss under torch.autocast(device, dtype=torch.bfloat16)",
                zh: "把前向计算和 loss 放进 torch.autocast(device, dtype=torch.bfloat16)"
            )
        })
        .statement(|value| match value {
            "bf16" => Some("autocast = torch.autocast(device.type, dtype=torch.bfloat16)".into()),
            "fp16" => Some(
                "autocast, scaler = torch.autocast(device.type, dtype=torch.float16), torch.amp.GradScaler()"
                    .into(),
            ),
            _ => None,
        })
        .spelled(&[
            (Framework::Transformers, "{}=True"),
            (Framework::Lightning, "precision=\"{}-mixed\""),
            (Framework::Accelerate, "mixed_precision=\"{}\""),
            (Framework::DeepSpeed, "\"{}\": {\"enabled\": true}"),
        ]),
    Setting::switch("tf32", "tf32").changing_losses()
        .or(&["allow_tf32"])
        .by_hand(|_| {
            message!(
                en: "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True at the \
                start of the program",
                zh: "在程序开头写 torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True"
            )
        })
        .statement(|value| {
            let value = boolean(value);
            Some(format!(
                "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {value}"
            ))
        })
        .spelled(&[
            (Framework::Transformers, "tf32=True"),
        ]),
    Setting::switch("cudnn.benchmark", "cudnn_benchmark")
        .or(&["benchmark"])
        .by_hand(|_| {
            message!(
                en: "torch.backends.cudnn.benchmark = True at the start of the program",
                zh: "在程序开头写 torch.backends.cudnn.benchmark = True"
            )
        })
        .statement(|value| Some(format!("torch.backends.cudnn.benchmark = {}", boolean(value))))
        .spelled(&[
            (Framework::Lightning, "benchmark=True"),
        ]),
    Setting::word("matmul.precision", "matmul_precision"),
    Setting::switch("channels_last", "channels_last")
        .or(&["memory_format"])
        .by_hand(|_| {
            message!(
                en: "model.to(memory_format=torch.channels_last), and the same for each batch of images",
                zh: "对模型调用 .to(memory_format=torch.channels_last)，每个图像 batch 也一样"
            )
        })
        .statement(|value| {
            let on = normal(value) == "on";
            on.then(|| "model = model.to(memory_format=torch.channels_last)".into())
        }),
    Setting::switch("optimizer.fused", "fused")
        .or(&["fused_optimizer"])
        .argument(Call::Optimizer, BY_NAME)
        .spelled(&[
            (Framework::Transformers, "optim=\"adamw_torch_fused\""),
        ]),
    Setting::switch("optimizer.foreach", "foreach"),
    Setting::word("optimizer.lr_scale", "lr_scale").by_hand(|value| {
        message!(en: "multiply the learning rate by {value}", zh: "把学习率乘以 {value}")
    }),
    Setting::word("compile", "compile").changing_losses()
        .or(&["compile_model", "torch_compile", "compile_mode"])
        .slow()
        .by_hand(|value| {
            message!(
                en: "model = torch.compile(model, mode=\"{value}\") before the training loop",
                zh: "在训练循环之前写 model = torch.compile(model, mode=\"{value}\")"
            )
        })
        .statement(|value| (value != "off").then(|| format!("model = torch.compile(model, mode={value:?})")))
        .spelled(&[
            (Framework::Transformers, "torch_compile=True"),
            (Framework::Accelerate, "dynamo_backend=\"inductor\""),
        ]),
    Setting::count("step.accumulation", "gradient_accumulation_steps", 1)
        .or(&[
            "accumulation",
            "accumulation_steps",
            "accumulate_grad_batches",
            "grad_accum",
        ])
        .by_hand(|value| {
            message!(
                en: "(loss / {value}).backward(), and optimizer.step() and zero_grad() after every {value} batches",
                zh: "用 (loss / {value}).backward()，每 {value} 个 batch 调用一次 optimizer.step() 和 zero_grad()"
            )
        })
        .spelled(&[
            (Framework::Transformers, "gradient_accumulation_steps={}"),
            (Framework::Lightning, "accumulate_grad_batches={}"),
            (Framework::Accelerate, "gradient_accumulation_steps={}"),
            (Framework::DeepSpeed, "\"gradient_accumulation_steps\": {}"),
        ]),
    Setting::switch("zero_grad.set_to_none", "set_to_none").by_hand(|_| {
        message!(
            en: "optimizer.zero_grad() without set_to_none=False",
            zh: "调用 optimizer.zero_grad() 时不写 set_to_none=False"
        )
    }),
    Setting::switch("gc.freeze", "gc_freeze").by_hand(|_| {
        message!(en: "call gc.freeze() before the training loop", zh: "在训练循环之前调用 gc.freeze()")
    }),
    Setting::switch("malloc.keep", "malloc_keep").by_hand(|_| {
        message!(
            en: "set MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ to 1073741824 in the program's environment",
            zh: "在程序的环境变量中把 MALLOC_TRIM_THRESHOLD_ 和 MALLOC_MMAP_THRESHOLD_ 设为 1073741824"
        )
    }),
    Setting::count("threads.torch", "torch_threads", 1)
        .or(&["threads", "omp_num_threads"])
        .by_hand(|value| {
            message!(
                en: "call torch.set_num_threads({value}) at the start of the program",
                zh: "在程序开头调用 torch.set_num_threads({value})"
            )
        }),
    Setting::count("hidden_size", "hidden_size", 1)
        .or(&["hidden", "hidden_dim"])
        .only_named(),
    Setting::word("eval_interval", "eval_interval")
        .or(&["evaluation_interval", "eval_every"])
        .only_named(),
    Setting::word("checkpoint_interval", "checkpoint_interval")
        .or(&["save_interval", "checkpoint_every"])
        .only_named(),
];

/// The setting that this name means: its key, its name, or an alias; dashes or underscores, any case.
pub fn find(name: &str) -> Option<&'static Setting> {
    find_in(SETTINGS, name)
}

/// The same among other settings.
pub fn find_in<'a>(settings: &'a [Setting], name: &str) -> Option<&'a Setting> {
    let plain = name.replace('-', "_").to_ascii_lowercase();
    let is = |known: &str| known.replace('.', "_") == plain.replace('.', "_");
    settings
        .iter()
        .find(|setting| is(setting.key) || is(setting.name) || setting.aliases.iter().any(|alias| is(alias)))
}

/// The settings that the probe can put in force.
pub fn applied() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| setting.applies)
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
    fn values_are_checked_by_their_kind() {
        let fits = |name: &str, value: &str| find(name).is_some_and(|setting| setting.check(value).is_ok());
        assert!(fits("num_workers", "0") && !fits("num_workers", "-1") && !fits("batch_size", "0"));
        assert!(fits("tf32", "True") && !fits("tf32", "maybe") && !fits("tf32", ""));
        assert!(fits("amp", "bf16") && !fits("amp", ""));
    }

    #[test]
    fn spellings() {
        assert_eq!(normal("True"), "on");
        assert_eq!(normal("\"bfloat16\""), "bf16");
        assert_eq!(normal("None"), "off");
        assert_eq!(normal("512"), "512");
    }
}
