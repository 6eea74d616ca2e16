//! The values in the form the user needs them in.

use super::Advice;
use flatout_core::Language;
use flatout_vocabulary::{find, normal};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--batch-size 512 --amp bf16 …`
    Flags,
    Yaml,
    /// Assignments and switches for a Python program.
    Python,
    /// A `DataLoader(…)` call.
    Loader,
}

/// The advice as text, its reasons as comments where the form has comments.
pub fn render(advice: &[Advice], form: Form, language: Language) -> String {
    match form {
        Form::Flags => flags(advice),
        Form::Yaml => yaml(advice, language),
        Form::Python => python(advice, language),
        Form::Loader => loader(advice, language),
    }
}

fn flags(advice: &[Advice]) -> String {
    let flag = |advice: &Advice| {
        let name = advice.name().replace('_', "-");
        match normal(&advice.value).as_str() {
            "on" => Some(format!("--{name}")),
            "off" => None,
            _ => Some(format!("--{name} {}", advice.value)),
        }
    };
    advice.iter().filter_map(flag).collect::<Vec<_>>().join(" ") + "\n"
}

fn yaml(advice: &[Advice], language: Language) -> String {
    let mut text = String::from("train:\n");
    for advice in advice {
        let value = match advice.value.as_str() {
            "on" => "true",
            "off" => "false",
            other => other,
        };
        let _ = writeln!(
            text,
            "  {}: {value}  # {}",
            advice.name(),
            advice.reason.get(language)
        );
    }
    text
}

fn literal(value: &str) -> String {
    match value {
        "on" => "True".into(),
        "off" => "False".into(),
        number if number.parse::<f64>().is_ok() => number.into(),
        text => format!("{text:?}"),
    }
}

fn python(advice: &[Advice], language: Language) -> String {
    let mut text = String::new();
    for advice in advice {
        let assigned = || {
            let name = advice.name().to_ascii_uppercase();
            Some(format!("{name} = {}", literal(&advice.value)))
        };
        let statement = find(advice.key).and_then(|setting| setting.statement);
        let Some(line) = statement.map_or_else(assigned, |write| write(&advice.value)) else {
            continue;
        };
        let _ = writeln!(text, "{line}  # {}", advice.reason.get(language));
    }
    text
}

fn loader(advice: &[Advice], language: Language) -> String {
    let mut text = String::from("DataLoader(\n    dataset,\n    shuffle=True,\n");
    for advice in advice.iter().filter(|advice| advice.key.starts_with("loader.")) {
        let _ = writeln!(
            text,
            "    {}={},  # {}",
            advice.name(),
            literal(&advice.value),
            advice.reason.get(language)
        );
    }
    text + ")\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Message;

    fn some() -> Vec<Advice> {
        let advice = |key, value: &str| Advice {
            key,
            value: value.into(),
            reason: Message::verbatim("why"),
        };
        vec![
            advice("loader.batch_size", "512"),
            advice("loader.pin_memory", "on"),
            advice("amp", "bf16"),
            advice("compile", "off"),
        ]
    }

    #[test]
    fn every_form() {
        let text = |form| render(&some(), form, Language::English);
        assert_eq!(text(Form::Flags), "--batch-size 512 --pin-memory --amp bf16\n");
        assert!(text(Form::Yaml).contains("  batch_size: 512  # why\n  pin_memory: true  # why\n"));
        assert!(text(Form::Python).contains("BATCH_SIZE = 512  # why\n"));
        assert!(!text(Form::Python).contains("compile"));
        assert_eq!(
            text(Form::Loader),
            "DataLoader(\n    dataset,\n    shuffle=True,\n    batch_size=512,  # why\n    pin_memory=True,  # why\n)\n"
        );
    }
}
