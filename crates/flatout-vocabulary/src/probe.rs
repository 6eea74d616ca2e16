//! The table as the probe reads it: `python/_flatout_apply/known.py`, written by `FLATOUT_WRITE_REFERENCE=1 cargo test -p
//! flatout-vocabulary`.

use crate::{Call, Setting, Source};
use std::fmt::Write;

/// The text of `known.py` for these settings.
pub fn known(settings: &[Setting]) -> String {
    let mut text = String::from(
        "\"\"\"The settings of `--apply`. Written by flatout-vocabulary from its table: add a setting there.\"\"\"\n",
    );
    text += "\n# Arguments of a DataLoader.\nLOADER = (\n";
    for setting in settings.iter().filter(|setting| setting.applies) {
        if let Source::Argument {
            call: Call::Loader,
            name,
            ..
        } = setting.source
        {
            let _ = writeln!(text, "    \"{name}\",");
        }
    }
    text += ")\nKNOWN = {\n";
    for setting in settings.iter().filter(|setting| setting.applies) {
        let _ = writeln!(text, "    \"{}\",", setting.key);
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SETTINGS;

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test may fail")]
    fn the_probe_has_the_table() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/_flatout_apply/known.py"
        );
        if std::env::var_os("FLATOUT_WRITE_REFERENCE").is_some() {
            std::fs::write(path, known(SETTINGS)).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            written,
            known(SETTINGS),
            "FLATOUT_WRITE_REFERENCE=1 cargo test -p flatout-vocabulary writes it"
        );
    }
}
