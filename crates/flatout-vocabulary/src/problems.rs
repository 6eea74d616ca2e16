//! The ids of problems. A problem has one id, whether `lint` sees it in the source or `run` and `diagnose` see it in a run.

/// Ids that were released under another name, and the names they have now. Everything that takes an id accepts both.
pub const FORMER_IDS: &[(&str, &str)] = &[
    ("cache-emptied-in-step", "memory-released-every-step"),
    ("data-parallel-used", "data-parallel"),
    ("dataframe-row-in-getitem", "dataframe-row-per-sample"),
    ("gradients-zeroed-in-place", "gradients-zeroed"),
    ("loader-built-in-epoch-loop", "loader-rebuilt"),
    ("loader-in-main-process", "loader-without-workers"),
    ("loader-with-too-many-workers", "workers-beyond-usable-cpus"),
    ("loader-without-pinned-memory", "pageable-copies"),
    ("optimizer-not-fused", "optimizer-unfused"),
    ("tf32-not-enabled", "tf32-off"),
    ("training-without-autocast", "mixed-precision-off"),
    ("workers-not-persistent", "workers-respawned-each-epoch"),
];

/// The id that a person or an old record means: in lower case, with hyphens, under its present name.
pub fn canonical_id(id: &str) -> String {
    let id = id.trim().to_lowercase().replace('_', "-");
    let present = FORMER_IDS.iter().find(|(former, _)| *former == id);
    present.map_or(id, |(_, present)| (*present).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_former_names_case_and_underscores() {
        assert_eq!(canonical_id("tf32-not-enabled"), "tf32-off");
        assert_eq!(canonical_id(" TF32_Not_Enabled "), "tf32-off");
        assert_eq!(canonical_id("Item-In-Step"), "item-in-step");
        assert_eq!(canonical_id("no-such-rule"), "no-such-rule");
    }

    #[test]
    fn former_ids_are_sorted_and_lead_to_present_ones() {
        assert!(FORMER_IDS.is_sorted());
        for (_, present) in FORMER_IDS {
            assert_eq!(canonical_id(present), *present);
        }
    }
}
