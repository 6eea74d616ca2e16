//! From findings to settings of the trainer, with the value that the finding suggests. All other settings stay.

use super::training::Settings;
use flatout_core::{Finding, Fix, Kind, Message, message};

pub struct Change {
    pub setting: &'static str,
    pub to: String,
    pub why: Message,
}

/// Settings that findings name, as the trainer names them.
const NAMES: [(&str, &str); 4] = [
    ("loader.batch_size", "batch_size"),
    ("amp", "amp"),
    ("eval.interval", "eval_interval"),
    ("checkpoint.interval", "checkpoint_interval"),
];

/// The changes that the findings ask for and that are not made yet.
pub fn for_findings(findings: &[Finding], settings: &Settings) -> Vec<Change> {
    let causes = findings.iter().filter(|finding| finding.kind != Kind::Verdict);
    let mut changes: Vec<Change> = causes
        .flat_map(|finding| finding.fixes.iter().map(move |fix| (finding, fix)))
        .filter_map(|(finding, fix)| {
            let Fix::Setting { setting, to, .. } = fix else {
                return None;
            };
            let (_, name) = NAMES.into_iter().find(|(theirs, _)| theirs == setting)?;
            let why = Message::verbatim(format!("[{}]", finding.rule));
            let to = to.clone();
            Some(Change {
                setting: name,
                to,
                why,
            })
        })
        .collect();
    changes.push(Change {
        setting: "pipeline",
        to: "auto".to_owned(),
        why: message!(
            en: "all CPUs or the whole GPU, and the loss read only when it is printed",
            zh: "用满全部 CPU 或整块 GPU，仅在显示时读取损失"
        ),
    });
    changes.retain(|change| settings.value(change.setting) != Some(&change.to));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Severity;

    #[test]
    fn changes_only_what_was_found() {
        let naive = Settings::new(std::path::Path::new("x"), "before").with("pipeline", "naive");
        let changes = |findings: &[Finding]| -> Vec<(&str, String)> {
            let changes = for_findings(findings, &naive);
            changes
                .into_iter()
                .map(|change| (change.setting, change.to))
                .collect()
        };
        let always = ("pipeline", "auto".to_owned());
        assert_eq!(changes(&[]), std::slice::from_ref(&always));
        let title = message!(en: "too often", zh: "过频");
        let mut finding = Finding::new("evaluation-too-often", Severity::Warning, title.clone());
        finding.fixes.push(Fix::Setting {
            setting: "eval.interval".into(),
            from: Some("1".into()),
            to: "6".into(),
            say: title.clone(),
        });
        finding.fixes.push(Fix::Code {
            place: None,
            say: title,
        });
        assert_eq!(changes(&[finding]), [("eval_interval", "6".to_owned()), always]);
        assert!(for_findings(&[], &naive.clone().with("pipeline", "auto")).is_empty());
    }
}
