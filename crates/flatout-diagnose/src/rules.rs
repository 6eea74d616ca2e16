//! The rules. A new one is a file `rules/<domain>/<pattern>.rs` and one line in the list below. A rule file holds its page
//! (the head comment, shown by `flatout explain`), its thresholds with their sources, `check`, and three cases: `fires`,
//! `quiet`, `no_data`.

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::RuleInfo;

pub mod health;

pub struct Rule {
    pub info: RuleInfo,
    pub check: fn(&Analysis) -> Option<Candidate>,
    /// The module's name: the id in snake_case.
    pub module: &'static str,
}

macro_rules! rules {
    ($($domain:ident { $($rule:ident,)* })*) => {
        $(pub mod $domain { $(pub mod $rule;)* })*

        /// Every diagnosis rule.
        pub const RULES: &[Rule] = &[$($(Rule {
            info: RuleInfo {
                id: $domain::$rule::ID,
                domain: stringify!($domain),
                severity: $domain::$rule::WORST,
                source: include_str!(concat!("rules/", stringify!($domain), "/", stringify!($rule), ".rs")),
            },
            check: $domain::$rule::check,
            module: stringify!($rule),
        },)*)*];
    };
}

rules! {
    input {
        loader_without_workers,
        too_few_workers,
        workers_beyond_usable_cpus,
        input_cpus_exhausted,
        storage_bound_input,
        slow_collate,
        rows_fetched_one_by_one,
        workers_respawned_each_epoch,
        workers_collecting_garbage,
        loader_rebuilt,
        data_set_copied_per_worker,
        bursty_prefetch,
        pageable_copies,
        shared_memory_short,
        workers_read_everything,
        data_read_again,
        loader_starved,
    }
    lines {
        file_read_per_sample,
        dataframe_row_per_sample,
        slow_sampler,
        iterator_per_batch,
        python_loop_per_sample,
        image_decoded_large,
        slow_batch_code,
        blocking_call_in_loop,
        metrics_every_step,
        logging_every_step,
        memory_released_every_step,
        model_copied_every_step,
        python_loop_in_step,
        costly_operator,
        hidden_synchronization,
    }
    launch {
        batch_too_small,
        micro_batches_too_small,
        tiny_kernels,
        host_bound_dispatch,
        gpu_idle,
    }
    host {
        host_work_in_loop,
        cpu_threads_idle,
        memory_given_back,
        too_many_threads,
        debug_mode_left_on,
        steps_slow_down,
    }
    sync {
        sync_every_step,
    }
    precision {
        mixed_precision_off,
        mixed_precision_inactive,
        tf32_off,
        tensor_cores_idle,
        double_precision,
    }
    device {
        padded_batches,
        many_small_copies,
        attention_unfused,
        elementwise_bound,
        layout_conversions,
        far_from_peak,
        frozen_forward,
    }
    compile {
        compile_not_applied,
        compile_failed,
        graph_breaks,
        recompiling,
        autotuning_again,
    }
    optimizer {
        optimizer_unfused,
        gradients_zeroed,
        optimizer_rebuilt,
        dense_embedding_gradients,
        discarded_gradients,
    }
    interruptions {
        evaluation_too_often,
        checkpoint_too_often,
        periodic_dips,
        garbage_collection_pauses,
    }
    memory {
        gpu_memory_near_limit,
        gpu_memory_growing,
        gpu_memory_half_unused,
        out_of_memory,
        recomputing_with_free_memory,
    }
    heat {
        thermal_throttling,
        power_throttling,
        power_below_utilization,
    }
    neighbours {
        gpu_shared,
        cpu_stolen,
        host_swapping,
    }
    parallel {
        slow_rank,
        unequal_shards,
        stalled,
        exposed_communication,
        synchronized_accumulation,
        gpu_unused,
        gpus_unbalanced,
        data_parallel,
    }
    startup {
        slow_end,
        slow_start,
    }
}

/// The rules' entries, with those of the verdicts, for `flatout explain`.
pub fn rule_infos() -> impl Iterator<Item = &'static RuleInfo> {
    RULES.iter().map(|rule| &rule.info).chain(health::INFOS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_is_documented_and_has_its_cases() {
        for rule in RULES {
            let id = rule.info.id;
            assert_eq!(
                id,
                rule.module.replace('_', "-"),
                "the file is named after the id"
            );
            assert_eq!(rule.info.missing_headings(), Vec::<&str>::new(), "{id}");
            assert_eq!(rule.info.missing_chinese_headings(), Vec::<&str>::new(), "{id}");
            assert_eq!(rule.info.wrong_code(), Vec::<&str>::new(), "{id}");
            assert!(
                rule.info.page().starts_with(&format!("# {id}\n")),
                "{id}: the page begins with its id"
            );
            for case in ["fn fires()", "fn quiet()", "fn no_data()"] {
                assert!(rule.info.source.contains(case), "{id} has no case `{case}`");
            }
        }
        for info in health::INFOS {
            assert_eq!(info.missing_headings(), Vec::<&str>::new(), "{}", info.id);
            assert_eq!(info.missing_chinese_headings(), Vec::<&str>::new(), "{}", info.id);
        }
    }

    #[test]
    fn ids_are_unique() {
        let mut seen = BTreeSet::new();
        for info in rule_infos() {
            assert!(seen.insert(info.id), "{} twice", info.id);
        }
    }

    #[test]
    fn no_rule_knows_a_fault_program() {
        for rule in RULES {
            assert!(!rule.info.source.contains("faults/"), "{}", rule.info.id);
        }
    }
}
