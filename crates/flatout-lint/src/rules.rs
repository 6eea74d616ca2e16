//! The rules. A new one is a file `rules/<domain>/<name>.rs` and one line in the list below; `flatout explain --list` shows it.

use crate::project::{ModuleId, Project};
use crate::report::Report;
use flatout_core::RuleInfo;

/// How a rule looks at a project.
pub enum Check {
    /// At one Python module, knowing the others.
    Module(fn(&Project, ModuleId, &mut Report<'_>)),
    /// At the project as a whole.
    Project(fn(&Project, &mut Report<'_>)),
}

pub struct Rule {
    pub info: RuleInfo,
    pub check: Check,
}

macro_rules! rules {
    ($($domain:ident: $($name:ident),+;)*) => {
        $(pub mod $domain { $(pub mod $name;)+ })*

        /// Every rule, by domain.
        pub static RULES: &[Rule] = &[$($(Rule {
            info: RuleInfo {
                id: $domain::$name::ID,
                domain: stringify!($domain),
                severity: $domain::$name::SEVERITY,
                source: include_str!(concat!("rules/", stringify!($domain), "/", stringify!($name), ".rs")),
            },
            check: $domain::$name::CHECK,
        },)+)*];

        #[cfg(test)]
        const FILE_NAMES: &[&str] = &[$($(stringify!($name),)+)*];
    };
}

rules! {
    loader: loader_without_workers, workers_beyond_usable_cpus, pageable_copies, transfer_without_non_blocking,
        non_blocking_without_pinning, workers_respawned_each_epoch, prefetch_left_at_default, loader_rebuilt, cuda_in_getitem, dataframe_row_per_sample,
        file_reopened_in_getitem, dataset_of_tensor_list, element_loop_in_collate;
    sync: item_in_step, host_copy_in_step, scalar_of_tensor_in_step, tensor_printed_in_step, tensor_tested_in_step, sync_in_evaluation,
        loss_kept_with_graph, synchronize_in_step, memory_released_every_step, cpu_metric_in_step;
    precision: mixed_precision_off, tf32_off, autocast_around_backward, fp16_without_scaler, scaler_with_bf16,
        old_amp_spelling;
    compile: compile_never_used, compile_in_loop, rnn_compiled, convolutions_without_channels_last, cudnn_benchmark_off;
    optimizer: optimizer_unfused, gradients_zeroed;
    training: evaluation_without_no_grad, evaluation_every_step, evaluation_every_epoch, checkpoint_every_step,
        checkpoint_every_epoch, data_parallel,
        accumulation_without_scaling;
    configuration: config_value_never_matches, config_key_never_read, option_never_used, optimization_never_called,
        config_key_twice, batch_small_for_gpu, learning_rate_not_scaled;
    source: source_not_parsed;
}

/// What every rule file uses.
#[allow(unused_imports, reason = "each rule takes what it needs")]
pub(crate) mod prelude {
    pub use super::Check;
    pub use crate::config::Value;
    pub use crate::epochs::{epoch_of, many_epochs_of};
    pub use crate::loaders::{
        dataset_getitems, gives_one_batch, has_workers, loader_calls, moves_to_device, pins_memory, transfers,
    };
    pub use crate::project::{Code, Hot, LoopRole, ModuleId, Origin, Project, Use};
    pub use crate::python::{Bound, Kind, NodeId, Operator};
    pub use crate::report::Report;
    pub use crate::step_calls::{add_wait_note, cuda_step_calls, cuda_step_loop, from_host, head};
    #[cfg(test)]
    pub use crate::testing::{edits_of, findings_of, fixed};
    pub use flatout_core::{Confidence, Severity, message};
}

/// The rule with this id, or that had it before.
pub fn find(id: &str) -> Option<&'static Rule> {
    let id = flatout_vocabulary::canonical_id(id);
    RULES.iter().find(|rule| rule.info.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::rule::FIX_SAFETY;
    use std::collections::HashSet;

    #[test]
    fn every_rule_is_documented_unique_and_has_its_cases() {
        let mut seen = HashSet::new();
        for (rule, file) in RULES.iter().zip(FILE_NAMES) {
            let info = &rule.info;
            assert!(
                info.missing_headings().is_empty() && info.missing_chinese_headings().is_empty(),
                "{}: {:?} {:?}",
                info.id,
                info.missing_headings(),
                info.missing_chinese_headings()
            );
            assert_eq!(info.wrong_code(), Vec::<&str>::new(), "{}", info.id);
            let edits = info.source.contains("safe_fix(");
            assert_eq!(
                edits,
                info.section(FIX_SAFETY.0).is_some(),
                "{}: a rule with edits, and only that, states whether they are safe",
                info.id
            );
            assert!(
                info.page().starts_with(&format!("# {}\n", info.id)),
                "{}: title",
                info.id
            );
            assert!(seen.insert(info.id), "{} is there twice", info.id);
            assert_eq!(info.id.replace('-', "_"), *file);
            for case in ["fn fires", "fn quiet", "fn look_alike"] {
                assert!(info.source.contains(case), "{} has no test `{case}`", info.id);
            }
        }
    }

    const ENGINE: &str = include_str!("../tests/fixtures/captcha/src/training/training_engine.py");
    const TRAIN: &str = include_str!("../tests/fixtures/captcha/scripts/training/train.py");
    const CONFIG: &str = include_str!("../tests/fixtures/captcha/config/training_config.yaml");

    /// The text without some of its characters, and with others in their place.
    fn broken(text: &str, at: usize, length: usize, instead: &str) -> String {
        let before = text.chars().take(at);
        let after = text.chars().skip(at + length);
        before.chain(instead.chars()).chain(after).collect()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(96))]
        #[test]
        fn no_rule_panics_on_broken_source(
            at in 0usize..1600,
            length in 0usize..400,
            instead in proptest::sample::select(vec!["", "(", "'", ":", "\n", "\t", "é", "    ", "lambda", "**", "f'{"]),
        ) {
            let engine = broken(ENGINE, at, length, instead);
            let train = broken(TRAIN, at, length, instead);
            let config = broken(CONFIG, at, length, instead);
            let files = [("src/training/training_engine.py", engine.as_str()), ("scripts/training/train.py", &train), ("config/c.yaml", &config)];
            let project = crate::testing::project(&files);
            let found: Vec<_> = RULES.iter().flat_map(|rule| crate::testing::run(rule, &project)).collect();
            // Whatever is found, its edits can be made.
            let plan = crate::fix::plan(&found, |_| None, true);
            for (path, text) in files {
                let edits = plan.edits.get(std::path::Path::new(path)).map_or(&[][..], Vec::as_slice);
                crate::fix::apply(text, edits);
            }
        }
    }
}
