//! What a link checker needs of Markdown: links and headings outside of code.

/// A link of a page and the bytes of its target in the text.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub target: String,
    pub line: usize,
    pub start: usize,
}

/// Every link and image of a page: `[text](target)`. Code blocks and code spans have none.
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (number, start, line) in prose(text) {
        let plain = without_code_spans(line);
        let mut from = 0;
        while let Some(at) = plain[from..].find("](") {
            let begin = from + at + 2;
            let end = plain[begin..].find(')').map_or(plain.len(), |end| begin + end);
            let target = plain[begin..end].split(' ').next().unwrap_or_default();
            found.push(Link {
                target: target.to_owned(),
                line: number,
                start: start + begin,
            });
            from = end;
        }
    }
    found
}

/// The anchors of a page's headings, as code hosts and mdBook make them.
pub fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, _, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = slug(title.trim());
        let same = found
            .iter()
            .filter(|other| {
                **other == anchor || other.strip_suffix(char::is_numeric) == Some(&format!("{anchor}-"))
            })
            .count();
        found.push(if same == 0 {
            anchor
        } else {
            format!("{anchor}-{same}")
        });
    }
    found
}

fn slug(title: &str) -> String {
    title
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
            _ => None,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

/// Lines outside of fenced code: number from 1, offset, text.
fn prose(text: &str) -> Vec<(usize, usize, &str)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = offset;
        offset += line.len();
        let line = line.trim_end_matches('\n');
        let opening = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| opening.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => lines.push((index + 1, start, line)),
            _ => {}
        }
    }
    lines
}

/// The line with every character of a code span replaced by blanks of the same length.
fn without_code_spans(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        plain.push_str(&rest[..open]);
        let ticks = rest[open..].len() - rest[open..].trim_start_matches('`').len();
        let inside = &rest[open + ticks..];
        let length = match inside.find(&"`".repeat(ticks)) {
            Some(close) => ticks + close + ticks,
            None => ticks,
        };
        plain.extend(std::iter::repeat_n(' ', length));
        rest = &rest[open + length..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_outside_of_code() {
        let text =
            "See [a](b.md#c) and `[no](link)` and ![d](e.png).\n```\n[f](g.md)\n```\n[`h`](i.md \"title\")\n";
        let found: Vec<(String, usize)> = links(text)
            .into_iter()
            .map(|link| {
                assert!(text[link.start..].starts_with(&link.target));
                (link.target, link.line)
            })
            .collect();
        let expected = [("b.md#c", 1), ("e.png", 1), ("i.md", 5)];
        assert_eq!(found, expected.map(|(target, line)| (target.to_owned(), line)));
    }

    #[test]
    fn makes_anchors_like_code_hosts() {
        let text = "# One file, `two`\n## 收益 (x)\n#no-heading\n```\n# code\n```\n## Fix\n## Fix\n";
        assert_eq!(anchors(text), ["one-file-two", "收益-x", "fix", "fix-1"]);
    }
}
