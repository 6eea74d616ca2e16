//! Where a framework owns the training loop, a fix names the framework's argument and the user's construction of it.

use crate::account::frame::Frame;
use crate::analysis::Analysis;
use crate::analysis::stacks::is_library;
use flatout_core::{Finding, Fix, Message, Place, message};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    Transformers,
    Lightning,
}

/// The loop is a framework's from this share of the samples on.
const SHARE: f64 = 0.5;

impl Framework {
    /// The framework whose loop most of the training thread's samples are in.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let account = analysis.account.as_ref()?;
        let all: f64 = account.spans.iter().map(|span| span.seconds).sum();
        let owned = |marks: &[&str]| {
            let inside = |frame: &Frame| marks.iter().any(|mark| frame.file.contains(mark));
            let spans = account.spans.iter().filter(|span| span.frames.iter().any(inside));
            spans.map(|span| span.seconds).sum::<f64>() >= all * SHARE
        };
        if all <= 0.0 {
            None
        } else if owned(&["transformers/trainer.py"]) {
            Some(Self::Transformers)
        } else if owned(&["lightning/pytorch/", "pytorch_lightning/"]) {
            Some(Self::Lightning)
        } else {
            None
        }
    }

    /// What the user constructs to set it up.
    fn construction(self) -> &'static [&'static str] {
        match self {
            Self::Transformers => &["TrainingArguments("],
            Self::Lightning => &["Trainer("],
        }
    }

    /// The argument that a setting of ours is called.
    fn argument(self, setting: &str, to: &str) -> Option<String> {
        let setting = flatout_vocabulary::find(setting)?;
        let argument = match self {
            Self::Transformers => setting.transformers?,
            Self::Lightning => setting.lightning?,
        };
        Some(argument.replace("{}", to))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Transformers => "TrainingArguments",
            Self::Lightning => "Trainer",
        }
    }
}

/// Puts a finding into the framework's words: no line inside the framework, and the argument beside our setting.
pub fn translate(analysis: &Analysis, framework: Framework, finding: &mut Finding) {
    let construction = analysis.mention(framework.construction());
    let inside = |place: &Place| is_library(&place.file.to_string_lossy());
    if finding.places.iter().any(inside) {
        finding.places.retain(|place| !inside(place));
        finding.places.extend(construction.clone());
    }
    for fix in &mut finding.fixes {
        if let Fix::Code { place, .. } = fix
            && place.as_ref().is_some_and(inside)
        {
            place.clone_from(&construction);
        }
    }
    let arguments: Vec<String> = finding
        .fixes
        .iter()
        .filter_map(|fix| match fix {
            Fix::Setting { setting, to, .. } => framework.argument(setting, to),
            _ => None,
        })
        .collect();
    if !arguments.is_empty() {
        finding.fixes.push(Fix::Code {
            place: construction,
            say: written(framework, &arguments.join(", ")),
        });
    }
}

fn written(framework: Framework, arguments: &str) -> Message {
    let name = framework.name();
    message!(en: "{name}(…, {arguments})", zh: "{name}(…, {arguments})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_core::Severity;
    use flatout_telemetry::Phase;
    use flatout_telemetry::record::SourceLine;

    #[test]
    fn names_the_argument_and_the_users_line() {
        let inside = "/v/lib/python3.11/site-packages/transformers/trainer.py";
        let frame = format!("Trainer.train ({inside}:99)");
        let mut data = Build::steady(20)
            .stack_of(&["<module> (t.py:50)", &frame], 100, Some(Phase::Compute), false)
            .done();
        data.lines.push(SourceLine {
            file: "t.py".into(),
            line: 40,
            text: "args = TrainingArguments(".into(),
            ..SourceLine::default()
        });
        let analysis = Analysis::new(&data);
        let framework = Framework::of(&analysis).unwrap();
        assert_eq!(framework, Framework::Transformers);
        let mut finding = Finding::new("x", Severity::Warning, Message::default());
        finding.places.push(Place::new(inside, 99));
        finding.fixes.push(Fix::Setting {
            setting: "loader.num_workers".into(),
            from: None,
            to: "4".into(),
            say: Message::default(),
        });
        translate(&analysis, framework, &mut finding);
        assert_eq!(finding.places, [Place::new("t.py", 40)]);
        let Fix::Code { place, say } = &finding.fixes[1] else {
            panic!("{:?}", finding.fixes)
        };
        assert_eq!(place.as_ref().unwrap().line, 40);
        assert!(say.en.contains("dataloader_num_workers=4"));
    }

    #[test]
    fn a_plain_loop_has_no_framework() {
        let data = Build::steady(20)
            .stack_of(&["<module> (t.py:50)"], 100, Some(Phase::Compute), false)
            .done();
        assert!(Framework::of(&Analysis::new(&data)).is_none());
    }
}
