//! Text from a record, made harmless in HTML and inside a script block.

use serde::Serialize;

/// A character as it is, or the reference that stands for it.
pub(crate) enum Part {
    Character(char),
    Reference(&'static str),
}

/// For text and for attributes in double quotes. Control characters are shown as what they are: not text.
pub(crate) fn characters(text: &str) -> impl Iterator<Item = Part> {
    text.chars().map(|character| match character {
        '&' => Part::Reference("&amp;"),
        '<' => Part::Reference("&lt;"),
        '>' => Part::Reference("&gt;"),
        '"' => Part::Reference("&quot;"),
        '\'' => Part::Reference("&#39;"),
        '\n' | '\t' => Part::Character(character),
        // Overrides of the writing direction could make a command read as another one.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Part::Character('\u{fffd}'),
        character if character.is_control() => Part::Character('\u{fffd}'),
        character => Part::Character(character),
    })
}

/// JSON that cannot end the script element it stands in, whatever the strings hold.
pub(crate) struct ScriptData(String);

impl ScriptData {
    pub fn new(value: &impl Serialize) -> Self {
        let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        Self(
            json.replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026")
                .replace('\u{2028}', "\\u2028")
                .replace('\u{2029}', "\\u2029"),
        )
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_string_ends_the_script(text in any::<String>()) {
            let json = ScriptData::new(&text);
            prop_assert!(!json.as_str().contains(['<', '>', '&']));
            prop_assert_eq!(serde_json::from_str::<String>(json.as_str()).unwrap(), text);
        }
    }
}
