//! The document around the parts: policy, style, theme, script.

use super::escape::ScriptData;
use super::{Markup, made_by, markup};
use flatout_core::Language;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("style.css");
const DARK: &str = include_str!("dark.css");
const SCRIPT: &str = concat!(include_str!("charts.js"), include_str!("steps.js"));

pub(crate) struct Frame {
    pub title: String,
    pub body: Markup,
    pub data: ScriptData,
    pub language: Language,
    pub pdf_ready: bool,
}

impl Frame {
    pub fn html(self) -> String {
        let style = self.style();
        let policy = markup!(
            "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
            hash(&style.concat()),
            hash(SCRIPT)
        );
        let page = self.root()
            + markup!(
                "\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
                 <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
                 <meta name=\"generator\" content=\"flatout\">\n<title>{}</title>\n{}</head>\n",
                policy,
                self.title,
                Markup::style(&style)
            )
            + markup!(
                "<body>\n<main>\n{}<footer><p>{}</p></footer>\n</main>\n{}{}</body>\n</html>\n",
                self.body,
                made_by().get(self.language),
                Markup::data(&self.data),
                Markup::script(SCRIPT)
            );
        page.into_string()
    }

    fn root(&self) -> Markup {
        let language = self.language.tag();
        if self.pdf_ready {
            return markup!(
                "<!doctype html>\n<html lang=\"{}\" data-theme=\"light\">",
                language
            );
        }
        markup!("<!doctype html>\n<html lang=\"{}\">", language)
    }

    /// Dark by the system's wish or by the button, on the screen only: paper is white.
    fn style(&self) -> Vec<&'static str> {
        if self.pdf_ready {
            return vec![STYLE];
        }
        vec![
            STYLE,
            "@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=\"light\"]) { ",
            DARK,
            " } }\n@media screen { :root[data-theme=\"dark\"] { ",
            DARK,
            " } }\n",
        ]
    }
}

/// As a content security policy wants it: `sha256-…`.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(LETTERS[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_as_browsers_make_them() {
        // `printf %s "alert(1)" | openssl dgst -sha256 -binary | base64`
        assert_eq!(
            hash("alert(1)"),
            "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI="
        );
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"ab"), "YWI=");
        assert_eq!(base64(b"abc"), "YWJj");
    }
}
