//! Where a framework owns the training loop, a fix names the framework's argument and the user's construction of it.

mod arguments;

use crate::account::frame::Frame;
use crate::analysis::Analysis;
use crate::analysis::stacks::is_library;
use flatout_core::{Finding, Fix, Message, Place, message};
use flatout_vocabulary::Framework;

/// A framework, and what of the samples shows that a program uses it.
struct Sign {
    framework: Framework,
    /// Parts of the paths of its files.
    files: &'static [&'static str],
    /// The share of the samples inside of them. A framework that owns the loop is in most of them; one that wraps the optimizer or
    /// makes the loader only in those of its parts.
    share: f64,
    /// What the user constructs to set it up.
    construction: &'static [&'static str],
}

/// Those that own the loop first: the others may be inside of them.
const SIGNS: [Sign; 5] = [
    Sign {
        framework: Framework::Transformers,
        files: &["transformers/trainer.py"],
        share: 0.5,
        construction: &["TrainingArguments("],
    },
    Sign {
        framework: Framework::Lightning,
        files: &["lightning/pytorch/", "pytorch_lightning/"],
        share: 0.5,
        construction: &["Trainer("],
    },
    Sign {
        framework: Framework::DeepSpeed,
        files: &["deepspeed/runtime/"],
        share: 0.2,
        construction: &["deepspeed.initialize("],
    },
    Sign {
        framework: Framework::Accelerate,
        files: &["site-packages/accelerate/"],
        share: 0.1,
        construction: &["Accelerator("],
    },
    Sign {
        framework: Framework::Timm,
        files: &["timm/data/loader.py"],
        share: 0.05,
        construction: &["create_loader("],
    },
];

/// The framework that the training thread's samples show.
fn sign(analysis: &Analysis) -> Option<&'static Sign> {
    let account = analysis.account.as_ref()?;
    let all: f64 = account.spans.iter().map(|span| span.seconds).sum();
    let share = |files: &[&str]| {
        let inside = |frame: &Frame| files.iter().any(|part| frame.file.contains(part));
        let spans = account.spans.iter().filter(|span| span.frames.iter().any(inside));
        spans.map(|span| span.seconds).sum::<f64>() / all
    };
    SIGNS
        .iter()
        .find(|sign| all > 0.0 && share(sign.files) >= sign.share)
}

/// A framework that owns the loop or a part of it, and what the user constructs to set it up, where that line is known.
pub struct Used {
    pub framework: Framework,
    pub construction: Option<Place>,
}

impl Used {
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let sign = sign(analysis)?;
        Some(Self {
            framework: sign.framework,
            construction: analysis.mention(sign.construction),
        })
    }
}

/// Puts findings into the words of the framework that the program uses.
pub fn translate(analysis: &Analysis, findings: &mut [Finding]) {
    if let Some(sign) = sign(analysis) {
        findings
            .iter_mut()
            .for_each(|finding| reword(analysis, sign, finding));
    }
}

/// No line inside the framework, and its argument next to our setting.
fn reword(analysis: &Analysis, sign: &Sign, finding: &mut Finding) {
    let construction = analysis.mention(sign.construction);
    let inside = |place: &Place| is_library(&place.file.to_string_lossy());
    let within = finding.places.iter().any(inside)
        || finding
            .places
            .first()
            .is_none_or(|place| hands_over(analysis, place));
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
    let own = arguments::of_rule(analysis, sign.framework, &finding.rule, within);
    let settings = finding.fixes.iter();
    let arguments: Vec<String> = settings
        .filter_map(|fix| match fix {
            Fix::Setting { setting, to, .. } => {
                flatout_vocabulary::find(setting)?.in_framework(sign.framework, to)
            }
            _ => None,
        })
        .chain(own)
        .collect();
    // The line of the argument itself where the construction has it, else the construction.
    let written_at = arguments
        .iter()
        .filter_map(|argument| argument.split_once('='))
        .find_map(|(name, _)| analysis.mention(&[&format!("{name}=")]))
        .or_else(|| construction.clone());
    if !arguments.is_empty() && finding.places.is_empty() {
        finding.places.extend(written_at);
    }
    if !arguments.is_empty() {
        finding.fixes.push(Fix::Code {
            place: construction,
            say: written(sign.framework, &arguments.join(", ")),
        });
    }
}

/// Whether the user's line only hands the loop over: what costs time there is inside the framework.
fn hands_over(analysis: &Analysis, place: &Place) -> bool {
    let mut lines = analysis.data.lines.iter();
    let line = lines.find(|line| std::path::Path::new(&line.file) == place.file && line.line == place.line);
    line.is_some_and(|line| [".train(", ".fit("].iter().any(|call| line.text.contains(call)))
}

/// What to write into the construction.
pub fn written(framework: Framework, arguments: &str) -> Message {
    let name = match framework {
        Framework::Transformers => "TrainingArguments",
        Framework::Lightning => "Trainer",
        Framework::Accelerate => "Accelerator",
        Framework::Timm => "create_loader",
        Framework::DeepSpeed => {
            return message!(
                en: "in the DeepSpeed configuration: {arguments}",
                zh: "在 DeepSpeed 配置中写：{arguments}"
            );
        }
    };
    message!(en: "{name}(…, {arguments})", zh: "{name}(…, {arguments})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_core::Severity;
    use flatout_record::{Phase, SourceLine};

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
        assert_eq!(sign(&analysis).unwrap().framework, Framework::Transformers);
        let mut finding = Finding::new("x", Severity::Warning, Message::default());
        finding.places.push(Place::new(inside, 99));
        finding.fixes.push(Fix::Setting {
            setting: "loader.num_workers".into(),
            from: None,
            to: "4".into(),
            say: Message::default(),
        });
        translate(&analysis, std::slice::from_mut(&mut finding));
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
        assert!(sign(&Analysis::new(&data)).is_none());
    }

    /// The fix for mixed precision in a program with half of its samples in this file.
    fn precision_in(file: &str) -> String {
        let frame = format!("f (/v/lib/python3.11/site-packages/{file}:9)");
        let data = Build::steady(20)
            .stack_of(&["<module> (t.py:50)", &frame], 50, Some(Phase::Compute), false)
            .stack_of(&["<module> (t.py:51)"], 50, Some(Phase::Compute), false)
            .done();
        let mut finding = Finding::new("x", Severity::Warning, Message::default());
        finding.fixes.push(Fix::Setting {
            setting: "amp".into(),
            from: None,
            to: "bf16".into(),
            say: Message::default(),
        });
        translate(&Analysis::new(&data), std::slice::from_mut(&mut finding));
        match finding.fixes.get(1) {
            Some(Fix::Code { say, .. }) => say.en.clone(),
            _ => String::new(),
        }
    }

    #[test]
    fn frameworks_that_wrap_a_part_of_the_loop_are_recognized() {
        assert_eq!(
            precision_in("accelerate/accelerator.py"),
            "Accelerator(…, mixed_precision=\"bf16\")"
        );
        assert!(precision_in("deepspeed/runtime/engine.py").contains("\"bf16\": {\"enabled\": true}"));
        assert_eq!(precision_in("timm/data/loader.py"), "");
        assert_eq!(precision_in("torch/nn/linear.py"), "");
    }
}
