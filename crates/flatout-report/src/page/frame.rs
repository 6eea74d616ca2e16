//! The document around the parts: policy, style, theme, script.

use super::escape::ScriptData;
use super::{Markup, made_by, markup};
use flatout_core::Language;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("style.css");
const DARK: &str = include_str!("dark.css");
const SCRIPT: &str = concat!(include_str!("charts.js"), include_str!("steps.js"));
/// Of a page that `flatout serve` shows.
const SERVED_STYLE: &str = include_str!("serve.css");
const SERVED_SCRIPT: &str = concat!(
    include_str!("charts.js"),
    include_str!("steps.js"),
    include_str!("serve.js")
);

pub(crate) struct Frame {
    pub title: String,
    pub body: Markup,
    pub data: ScriptData,
    pub language: Language,
    pub pdf_ready: bool,
    /// A page that is served may ask its own server for more; a file may ask nobody.
    pub served: Option<Served>,
}

/// What a served page has that a file has not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Served {
    /// The theme that the reader chose on another page.
    pub theme: Option<&'static str>,
}

impl Frame {
    pub fn html(self) -> String {
        let style = self.style();
        let script = match self.served {
            Some(_) => SERVED_SCRIPT,
            None => SCRIPT,
        };
        let (style_hash, script_hash) = (hash(&style.concat()), hash(script));
        let policy = match self.served {
            Some(_) => markup!(
                "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'",
                style_hash,
                script_hash
            ),
            None => markup!(
                "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
                style_hash,
                script_hash
            ),
        };
        let icon = match self.served {
            Some(_) => markup!("<link rel=\"icon\" href=\"/icon.svg\">\n"),
            None => Markup::default(),
        };
        let page = self.root()
            + markup!(
                "\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
                 <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
                 <meta name=\"generator\" content=\"flatout\">\n<title>{}</title>\n{}{}</head>\n",
                policy,
                self.title,
                icon,
                Markup::style(&style)
            )
            + markup!(
                "<body>\n<main>\n{}<footer><p>{}</p></footer>\n</main>\n{}{}</body>\n</html>\n",
                self.body,
                made_by().get(self.language),
                Markup::data(&self.data),
                Markup::script(script)
            );
        page.into_string()
    }

    fn root(&self) -> Markup {
        let language = self.language.tag();
        let theme = if self.pdf_ready {
            Some("light")
        } else {
            self.served.and_then(|served| served.theme)
        };
        if let Some(theme) = theme {
            return markup!(
                "<!doctype html>\n<html lang=\"{}\" data-theme=\"{}\">",
                language,
                theme
            );
        }
        markup!("<!doctype html>\n<html lang=\"{}\">", language)
    }

    /// Dark by the system's wish or by the button, on the screen only: paper is white.
    fn style(&self) -> Vec<&'static str> {
        if self.pdf_ready {
            return vec![STYLE];
        }
        let mut style = vec![STYLE];
        if self.served.is_some() {
            style.push(SERVED_STYLE);
        }
        style.extend([
            "@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=\"light\"]) { ",
            DARK,
            " } }\n@media screen { :root[data-theme=\"dark\"] { ",
            DARK,
            " } }\n",
        ]);
        style
    }
}

/// The style of a part of another page: nothing outside of the part changes. Notebooks tell in their own ways that they are dark.
pub(crate) fn fragment_style() -> Vec<&'static str> {
    let (colors, rules) = STYLE.split_once("\n}\n").unwrap_or(("", STYLE));
    let colors = colors.split_once('{').map_or(colors, |(_, colors)| colors);
    vec![
        ".flatout { ",
        colors,
        "\ncolor: var(--ink); font: 14px/1.5 system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans CJK SC\", sans-serif; max-width: 68rem;\n}\n\
         body[data-jp-theme-light=\"false\"] .flatout, body.vscode-dark .flatout, html[theme=\"dark\"] .flatout { ",
        DARK,
        " }\n.flatout {\n",
        rules,
        "\nh2 { margin: 1.2rem 0 0.5rem; font-size: 1.1rem; }\n}\n",
    ]
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
