//! A digest as one HTML file: no network, no library, below a megabyte. [`mod@markup`] escapes everything that comes from a record,
//! and the content security policy allows this file's own style and script only.

mod account;
pub(crate) mod data;
mod drawings;
pub(crate) mod escape;
mod findings;
pub(crate) mod frame;
mod head;
mod histogram;
mod machine;
pub(crate) mod markup;
mod over_time;
mod program;
mod ranks;
mod verdict;
mod workers;

use crate::digest::Digest;
use escape::ScriptData;
use flatout_core::{Language, Message, message};
use frame::Frame;
pub(crate) use markup::{Markup, markup};

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
    pub fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    pub fn section(&self, title: &Message, body: Markup) -> Markup {
        if body.is_empty() {
            return body;
        }
        markup!("<section><h2>{}</h2>\n{}</section>\n", self.say(title), body)
    }

    /// Folded away on the screen, open on paper.
    pub fn folded(&self, title: &Message, body: Markup) -> Markup {
        let start = if self.pdf_ready {
            markup!("<details open>")
        } else {
            markup!("<details>")
        };
        start + markup!("<summary>{}</summary>\n{}</details>\n", self.say(title), body)
    }

    /// The button that goes from light to dark and back; paper has none.
    pub fn theme_button(&self) -> Markup {
        if self.pdf_ready {
            return Markup::default();
        }
        let name = message!(en: "Light / dark", zh: "浅色 / 深色");
        markup!(
            "<button id=\"theme\" type=\"button\">{}</button>",
            self.say(&name)
        )
    }

    /// A table that scrolls by itself where the page is narrow.
    pub fn table(&self, rows: Markup) -> Markup {
        markup!("<div class=\"scroll\"><table>{}</table></div>\n", rows)
    }

    /// The same for names and their values.
    pub fn settings_table(&self, rows: Markup) -> Markup {
        markup!(
            "<div class=\"scroll\"><table class=\"settings\">{}</table></div>\n",
            rows
        )
    }

    /// A line that explains what is above it.
    pub fn note(&self, message: &Message) -> Markup {
        markup!("<p class=\"soft\">{}</p>\n", self.say(message))
    }
}

/// The whole page of one run.
pub fn html(digest: &Digest, options: Options) -> String {
    let frame = Frame {
        title: format!("{} – flatout", digest.info.name),
        body: body(digest, options),
        data: script_data(digest, options.language),
        language: options.language,
        pdf_ready: options.pdf_ready,
        served: None,
    };
    frame.html()
}

/// The findings and the account as a part of another page: the output of a notebook's cell.
pub fn fragment(digest: &Digest, language: Language) -> String {
    let writer = Writer {
        language,
        // Without buttons, and nothing that a script would have to draw.
        pdf_ready: true,
    };
    let mut body = writer.headline(&digest.figures);
    body += writer.time_bar(digest);
    body += writer.findings(&digest.diagnosis);
    body += writer.account(digest.diagnosis.account.as_ref());
    let style = Markup::style(&frame::fragment_style());
    markup!(
        "<div class=\"flatout\" lang=\"{}\">\n{}{}</div>\n",
        language.tag(),
        style,
        body
    )
    .into_string()
}

/// What the page of one run shows.
pub(crate) fn body(digest: &Digest, options: Options) -> Markup {
    let writer = Writer {
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    let mut body = writer.head(digest);
    body += writer.verdict(digest.diagnosis.monitor.as_ref());
    body += writer.headline(&digest.figures);
    body += writer.time_bar(digest);
    body += writer.ranks(&digest.ranks);
    body += writer.findings(&digest.diagnosis);
    body += writer.account(digest.diagnosis.account.as_ref());
    body += writer.workers(digest.diagnosis.workers.as_ref());
    body += writer.timeline(digest.timeline.as_ref());
    body += writer.flame(digest.diagnosis.account.as_ref());
    body += writer.over_time(digest.over_time.as_ref());
    body += writer.charts(&digest.charts, &digest.marks);
    body += writer.distribution(&digest.step_hist);
    body += writer.input(digest);
    body += writer.gpus(&digest.verdict);
    body += writer.checklist(&digest.checklist);
    body += writer.settings(digest);
    body
}

/// What its script draws.
pub(crate) fn script_data(digest: &Digest, language: Language) -> ScriptData {
    data::with_drawings(
        &digest.charts,
        &digest.marks,
        digest.length_s.unwrap_or(0.0),
        language,
        drawings::of(digest, language),
    )
}

pub(crate) fn made_by() -> Message {
    let version = env!("CARGO_PKG_VERSION");
    message!(
        en: "Created by flatout {version}. A value that could not be read is omitted, never shown as 0.",
        zh: "由 flatout {version} 生成。未能读取的值不显示，绝不显示为 0。"
    )
}

#[cfg(test)]
mod tests;
