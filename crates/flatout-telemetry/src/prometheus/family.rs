//! The text exposition format: families of series with help and type, labels escaped.

use std::fmt::Write;

#[derive(Clone, Copy)]
pub enum Kind {
    Gauge,
    Counter,
}

#[derive(Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Writes a family with all its series; none at all when nothing is known.
    pub fn family<'a>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        series: impl IntoIterator<Item = (Vec<(&'a str, String)>, Option<f64>)>,
    ) {
        let mut head = true;
        for (labels, value) in series {
            let Some(value) = value else { continue };
            if std::mem::take(&mut head) {
                let kind = match kind {
                    Kind::Gauge => "gauge",
                    Kind::Counter => "counter",
                };
                let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            }
            self.text.push_str(name);
            self.labels(&labels);
            let _ = writeln!(self.text, " {value}");
        }
    }

    fn labels(&mut self, labels: &[(&str, String)]) {
        if labels.is_empty() {
            return;
        }
        for (index, (name, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        self.text.push('}');
    }

    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_unknown_values_absent() {
        let mut page = Page::default();
        let label = |text: &str| vec![("name", text.to_owned())];
        page.family(
            "a",
            Kind::Gauge,
            "help",
            [(label("x\"\\\n"), Some(1.5)), (label("y"), None)],
        );
        page.family("b", Kind::Counter, "help", [(Vec::new(), None)]);
        assert_eq!(
            page.finish(),
            "# HELP a help\n# TYPE a gauge\na{name=\"x\\\"\\\\\\n\"} 1.5\n"
        );
    }
}
