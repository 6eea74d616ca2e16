//! English and Chinese. Every sentence a person reads is a [`Message`], written with [`message!`](crate::message) where it is
//! used: both languages side by side, their placeholders checked by the compiler. A message without one of
//! the languages does not compile; a test of `xtask` looks that the Chinese one is Chinese.

use serde::{Deserialize, Serialize};

/// A language flatout speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// Reads `en`, `en_US.UTF-8`, `zh`, `zh-CN`, `zh_CN.UTF-8` …; `None` for a language flatout does not speak.
    pub fn parse(tag: &str) -> Option<Self> {
        let primary = tag
            .split(['-', '_', '.', '@'])
            .next()
            .unwrap_or("")
            .to_ascii_lowercase();
        match primary.as_str() {
            "en" | "c" | "posix" => Some(Self::English),
            "zh" => Some(Self::Chinese),
            _ => None,
        }
    }

    /// The language of the environment: `LC_ALL`, then `LC_MESSAGES`, then `LANG`; English when none of them decides.
    pub fn from_environment() -> Self {
        ["LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .find(|value| !value.is_empty())
            .and_then(|value| Self::parse(&value))
            .unwrap_or_default()
    }

    /// The tag for `--lang` and for HTML's `lang` attribute.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }
}

/// One sentence in both languages, its values filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Message {
    pub en: String,
    pub zh: String,
}

impl Message {
    /// Text that is the same in every language: a path, a setting, a number.
    pub fn verbatim(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            zh: text.clone(),
            en: text,
        }
    }

    pub fn get(&self, language: Language) -> &str {
        match language {
            Language::English => &self.en,
            Language::Chinese => &self.zh,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.zh.is_empty()
    }
}

/// `message!(en: "{workers} workers", zh: "{workers} 个 worker")`: a [`Message`], with the placeholders of
/// [`format!`] in both languages. English nouns agree with their number: write the plural, see [`plural`](crate::plural).
#[macro_export]
macro_rules! message {
    (en: $en:literal, zh: $zh:literal $(, $($arg:tt)*)?) => {
        $crate::Message { en: $crate::plural::counted(format!($en $(, $($arg)*)?)), zh: format!($zh $(, $($arg)*)?) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_names_of_real_systems_are_understood() {
        assert_eq!(Language::parse("zh_CN.UTF-8"), Some(Language::Chinese));
        assert_eq!(Language::parse("zh-CN"), Some(Language::Chinese));
        assert_eq!(Language::parse("en_GB.UTF-8"), Some(Language::English));
        assert_eq!(Language::parse("C.UTF-8"), Some(Language::English));
        assert_eq!(Language::parse("de_DE"), None);
        assert_eq!(Language::parse(""), None);
    }

    #[test]
    fn both_languages_carry_the_values() {
        let workers = 40;
        let message = message!(en: "{workers} workers", zh: "{workers} 个 worker");
        assert_eq!(message.get(Language::English), "40 workers");
        assert_eq!(message.get(Language::Chinese), "40 个 worker");
    }
}
