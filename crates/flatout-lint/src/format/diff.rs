//! A unified diff of one file before and after its edits. The edits are known, so nothing has to be searched for.

use flatout_core::Edit;
use std::fmt::Write;
use std::path::Path;

/// Lines shown around a change, as `diff -u` does.
const CONTEXT: usize = 3;

/// A run of old lines `old..old_end` that became the new lines `new..new_end`.
#[derive(Clone, Copy, Debug)]
struct Change {
    old: usize,
    old_end: usize,
    new: usize,
    new_end: usize,
}

impl Change {
    /// Leaves out lines at the ends that are the same before and after.
    fn trim(&mut self, old: &[&str], new: &[&str]) {
        while self.old < self.old_end && self.new < self.new_end && old.get(self.old) == new.get(self.new) {
            self.old += 1;
            self.new += 1;
        }
        while self.old < self.old_end
            && self.new < self.new_end
            && old.get(self.old_end - 1) == new.get(self.new_end - 1)
        {
            self.old_end -= 1;
            self.new_end -= 1;
        }
    }
}

pub fn unified(path: &Path, old: &str, new: &str, edits: &[Edit]) -> String {
    let path = named(path, std::env::current_dir().ok().as_deref());
    if edits.is_empty() || old == new {
        return String::new();
    }
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut changes = changes(old, edits);
    for change in &mut changes {
        change.trim(&old_lines, &new_lines);
    }
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let mut at = 0;
    while at < changes.len() {
        let mut last = at;
        while last + 1 < changes.len() && changes[last + 1].old <= changes[last].old_end + 2 * CONTEXT {
            last += 1;
        }
        hunk(&mut out, &changes[at..=last], &old_lines, &new_lines);
        at = last + 1;
    }
    out
}

/// As `patch -p1` finds it from here; a file elsewhere, from the root.
fn named(path: &Path, here: Option<&Path>) -> String {
    let within = here.and_then(|here| path.strip_prefix(here).ok());
    let path = within.unwrap_or(path).display().to_string();
    path.trim_start_matches('/').to_owned()
}

fn hunk(out: &mut String, changes: &[Change], old: &[&str], new: &[&str]) {
    let (first, last) = (changes[0], changes[changes.len() - 1]);
    let lead = first.old.min(CONTEXT);
    let trail = CONTEXT.min(old.len().saturating_sub(last.old_end));
    let (old_start, old_end) = (first.old - lead, last.old_end + trail);
    let (new_start, new_end) = (first.new - lead, last.new_end + trail);
    let _ = writeln!(
        out,
        "@@ -{},{} +{},{} @@",
        old_start + 1,
        old_end - old_start,
        new_start + 1,
        new_end - new_start
    );
    let mut at = old_start;
    for change in changes {
        put(out, ' ', old, at..change.old);
        put(out, '-', old, change.old..change.old_end);
        put(out, '+', new, change.new..change.new_end);
        at = change.old_end;
    }
    put(out, ' ', old, at..old_end);
}

fn put(out: &mut String, mark: char, lines: &[&str], range: std::ops::Range<usize>) {
    for line in lines.get(range).unwrap_or(&[]) {
        out.push(mark);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The changed lines, neighbouring edits joined.
fn changes(old: &str, edits: &[Edit]) -> Vec<Change> {
    let line_of = |offset: usize| {
        old.as_bytes()[..offset.min(old.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
    };
    let mut list: Vec<Change> = Vec::new();
    let mut grown: isize = 0;
    for edit in edits {
        let (first, last) = (line_of(edit.start), line_of(edit.end));
        let whole_lines =
            edit.start == edit.end || old.as_bytes().get(edit.end.wrapping_sub(1)) == Some(&b'\n');
        let starts_line = edit.start == 0 || old.as_bytes().get(edit.start - 1) == Some(&b'\n');
        let adds_lines = edit.text.ends_with('\n') || edit.text.is_empty();
        let pure = whole_lines && starts_line && adds_lines;
        let old_end = if pure { last } else { last + 1 };
        let added = edit.text.matches('\n').count() as isize;
        let removed = (last - first) as isize;
        let growth = added - removed;
        if let Some(previous) = list.last_mut()
            && first < previous.old_end
        {
            previous.old_end = previous.old_end.max(old_end);
            grown += growth;
            previous.new_end = (previous.old_end as isize + grown) as usize;
            continue;
        }
        let new = (first as isize + grown) as usize;
        grown += growth;
        let new_end = (old_end as isize + grown) as usize;
        list.push(Change {
            old: first,
            old_end,
            new,
            new_end,
        });
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, text: &str) -> Edit {
        Edit {
            file: "a.py".into(),
            start,
            end,
            text: text.into(),
        }
    }

    #[test]
    fn changed_inserted_and_removed_lines() {
        let old = "one\ntwo\nthree\nfour\n";
        let edits = [edit(4, 7, "2"), edit(8, 8, "2.5\n"), edit(14, 19, "")];
        let new = crate::fix::apply(old, &edits);
        assert_eq!(new, "one\n2\n2.5\nthree\n");
        let diff = unified(Path::new("a.py"), old, &new, &edits);
        assert_eq!(
            diff,
            "--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n+2.5\n three\n-four\n"
        );
    }

    #[test]
    fn files_are_named_from_here() {
        let here = Some(Path::new("/home/me/work"));
        assert_eq!(
            named(Path::new("/home/me/work/src/train.py"), here),
            "src/train.py"
        );
        assert_eq!(named(Path::new("train.py"), here), "train.py");
        assert_eq!(named(Path::new("/srv/train.py"), here), "srv/train.py");
        assert_eq!(named(Path::new("/srv/train.py"), None), "srv/train.py");
    }
}
