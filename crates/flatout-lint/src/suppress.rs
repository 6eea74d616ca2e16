//! `# flatout: ignore[rule, rule]` silences rules on its own line or, standing alone, on the next; without brackets it silences
//! all. `# flatout: ignore-file[…]` does so for the whole file.

use crate::report::Reported;
use crate::rules::find;
use crate::source::Source;

const MARK: &str = "flatout: ignore";

/// The silencing comments of one file.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    /// Line (0 for the whole file) and rules (empty: all).
    list: Vec<(u32, Vec<String>)>,
}

impl Silences {
    /// Out of the comments of a file; of every line's comment when `comments` are not known.
    pub(crate) fn of(source: &Source, comments: Option<&[crate::python::Span]>) -> Self {
        let mut silences = Self::default();
        if !source.text.contains(MARK) {
            return silences;
        }
        match comments {
            Some(comments) => {
                for comment in comments {
                    let (line, column) = source.position(comment.start);
                    let alone = source.line(line).trim_start().len()
                        == source.line(line).len() - (column as usize - 1)
                        && source.line(line).trim_start().starts_with('#');
                    silences.comment(comment.text(&source.text), line, alone);
                }
            }
            None => {
                for (index, text) in source.text.lines().enumerate() {
                    if let Some(at) = text.find('#') {
                        silences.comment(&text[at..], index as u32 + 1, text[..at].trim().is_empty());
                    }
                }
            }
        }
        silences
    }

    fn comment(&mut self, text: &str, line: u32, alone: bool) {
        let Some(rest) = text.split_once(MARK).map(|(_, rest)| rest) else {
            return;
        };
        let (whole_file, rest) = match rest.strip_prefix("-file") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let named = rest
            .trim_start()
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next());
        let rules: Vec<String> = named.map_or_else(Vec::new, |named| {
            named
                .split(',')
                .map(flatout_vocabulary::canonical_id)
                .filter(|name| !name.is_empty())
                .collect()
        });
        if whole_file {
            self.list.push((0, rules));
            return;
        }
        self.list.push((line, rules.clone()));
        if alone {
            self.list.push((line + 1, rules));
        }
    }

    pub(crate) fn silences(&self, one: &Reported) -> bool {
        let rule = &one.finding.rule;
        let domain = find(rule).map_or("", |rule| rule.info.domain);
        let line = one.place().line;
        self.list.iter().any(|(at, rules)| {
            (*at == 0 || *at == line)
                && (rules.is_empty() || rules.iter().any(|name| name == rule || name == domain))
        })
    }
}
