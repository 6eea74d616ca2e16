//! Placeholders in a command: `{batch_size}`, `{batch_size=64}`; `{{` is a brace of the program's own.

use flatout_tune::trial::Settings;
use flatout_vocabulary::settings;

/// The names in `{name}` and `{name=value}`; `{{` is a brace.
pub(super) fn names(text: &str) -> Vec<(String, Option<String>)> {
    let text = text.replace("{{", "");
    let inside = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(inside, _)| inside);
    let plain = inside.filter(|inside| {
        !inside.is_empty()
            && inside
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.=".contains(c))
    });
    plain
        .map(|inside| {
            inside
                .split_once('=')
                .map_or((inside.to_owned(), None), |(name, value)| {
                    (name.to_owned(), Some(value.to_owned()))
                })
        })
        .collect()
}

pub(super) fn filled(text: &str, settings: &Settings) -> String {
    let mut text = text.to_owned();
    for (name, value) in names(&text.clone()) {
        let mark = value.map_or_else(|| format!("{{{name}}}"), |value| format!("{{{name}={value}}}"));
        if let Some(value) = settings::find(&name).and_then(|setting| settings.get(setting.key)) {
            text = text.replace(&mark, value);
        }
    }
    text.replace("{{", "{").replace("}}", "}")
}
