//! A digest as one HTML file: no network, no library, below a megabyte. Everything that comes from a record is escaped, and the
//! content security policy allows this file's own style and script only.

mod account;
pub(crate) mod data;
mod escape;
mod findings;
pub(crate) mod frame;
mod head;
mod histogram;
mod machine;
mod program;
mod ranks;

pub use escape::escape;

use crate::digest::Digest;
use flatout_core::{Language, Message, message};
use frame::Frame;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub language: Language,
    /// Light, without buttons, everything unfolded: for printing to PDF.
    pub pdf_ready: bool,
}

/// Writes the parts in the language chosen.
pub(crate) struct Writer {
    pub language: Language,
    pub pdf_ready: bool,
}

impl Writer {
    pub fn say(&self, message: &Message) -> String {
        escape(message.get(self.language))
    }

    pub fn section(&self, title: &Message, body: &str) -> String {
        if body.is_empty() {
            return String::new();
        }
        format!("<section><h2>{}</h2>\n{body}</section>\n", self.say(title))
    }

    /// Folded away on the screen, open on paper.
    pub fn folded(&self, title: &Message, body: &str) -> String {
        let open = if self.pdf_ready { " open" } else { "" };
        format!(
            "<details{open}><summary>{}</summary>\n{body}</details>\n",
            self.say(title)
        )
    }
}

/// The whole page of one run.
pub fn html(digest: &Digest, options: Options) -> String {
    let writer = Writer {
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    let mut body = writer.head(digest);
    body += &writer.headline(&digest.figures);
    body += &writer.time_bar(digest);
    body += &writer.ranks(&digest.ranks);
    body += &writer.findings(&digest.diagnosis);
    body += &writer.account(digest.diagnosis.account.as_ref());
    body += &writer.charts(&digest.charts, &digest.marks);
    body += &writer.distribution(&digest.step_hist);
    body += &writer.input(digest);
    body += &writer.gpus(&digest.verdict);
    body += &writer.checklist(&digest.checklist);
    body += &writer.settings(digest);
    let frame = Frame {
        title: format!("{} – flatout", digest.info.name),
        body,
        data: data::json(
            &digest.charts,
            &digest.marks,
            digest.length_s.unwrap_or(0.0),
            options.language,
        ),
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    frame.html()
}

pub(crate) fn made_by() -> Message {
    let version = env!("CARGO_PKG_VERSION");
    message!(
        en: "Made by flatout {version}. A value that could not be read is left out, never shown as 0.",
        zh: "由 flatout {version} 生成。未能读取的值不显示，绝不显示为 0。"
    )
}

#[cfg(test)]
mod tests;
