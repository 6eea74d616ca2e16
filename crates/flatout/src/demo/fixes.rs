//! From findings to settings of the trainer. What no finding asks for stays as it was.

use super::training::Settings;
use flatout_core::{Finding, Kind, Message, message};

pub struct Change {
    pub setting: &'static str,
    pub to: &'static str,
    pub why: Message,
}

/// The changes that the findings ask for and that are not made yet.
pub fn for_findings(findings: &[Finding], settings: &Settings) -> Vec<Change> {
    let found = |rules: &[&str]| {
        findings
            .iter()
            .find(|finding| finding.kind != Kind::Verdict && rules.contains(&finding.rule.as_str()))
            .map(|finding| finding.rule.clone())
    };
    let because = |rule: String| Message::verbatim(format!("[{rule}]"));
    let mut changes = Vec::new();
    let mut add = |setting, to, rules: &[&str]| {
        if let Some(rule) = found(rules) {
            changes.push(Change {
                setting,
                to,
                why: because(rule),
            });
        }
    };
    add(
        "batch_size",
        "auto",
        &["batch-too-small", "gpu-memory-half-unused", "host-bound-dispatch"],
    );
    add("eval_interval", "50", &["evaluation-too-often"]);
    add("checkpoint_interval", "50", &["checkpoint-too-often"]);
    add(
        "amp",
        "bf16",
        &[
            "mixed-precision-off",
            "mixed-precision-inactive",
            "tensor-cores-idle",
        ],
    );
    changes.push(Change {
        setting: "pipeline",
        to: "auto",
        why: message!(
            en: "all CPUs or the whole GPU, and the loss read only when it is shown",
            zh: "用满全部 CPU 或整块 GPU，仅在显示时读取损失"
        ),
    });
    changes.retain(|change| settings.value(change.setting) != Some(change.to));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Severity;

    #[test]
    fn only_what_was_found_is_changed() {
        let naive = Settings::new(std::path::Path::new("x"), "before").with("pipeline", "naive");
        let settings = |findings: &[Finding]| -> Vec<&str> {
            for_findings(findings, &naive)
                .iter()
                .map(|change| change.setting)
                .collect()
        };
        assert_eq!(settings(&[]), ["pipeline"]);
        let finding = Finding::new(
            "batch-too-small",
            Severity::Critical,
            message!(en: "small", zh: "太小"),
        );
        assert_eq!(settings(&[finding]), ["batch_size", "pipeline"]);
        assert!(for_findings(&[], &naive.clone().with("pipeline", "auto")).is_empty());
    }
}
