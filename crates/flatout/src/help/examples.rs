//! Lays the examples of a command out for the terminal. An example is a command that can be copied: its purpose follows a `#`,
//! above the command where the line would be too long, and a long command continues after a backslash. clap would break
//! the line anywhere, and half a comment would look like a command.

use super::{comment, translate};
use flatout_core::Language;
use flatout_report::text::width::{width as cells, wrap};

/// The heading above the examples of a command.
const HEADING: &str = "Examples:";
const INDENT: &str = "  ";
const CONTINUED: &str = "      ";

/// The examples of a command in a language, none of them wider than the terminal.
pub fn laid_out(examples: &str, language: Language, width: usize) -> String {
    let lines: Vec<Line> = examples.lines().map(|line| Line::of(line, language)).collect();
    let column = lines
        .iter()
        .filter(|line| line.comment.is_some())
        .map(|line| cells(&line.command))
        .filter(|command| *command <= width / 2)
        .max()
        .unwrap_or(0);
    let laid: Vec<String> = lines.iter().map(|line| line.laid_out(column, width)).collect();
    laid.join("\n")
}

struct Line {
    command: String,
    comment: Option<String>,
    /// A sentence or a heading: clap may break it.
    prose: bool,
}

impl Line {
    fn of(line: &str, language: Language) -> Self {
        let chinese = language == Language::Chinese;
        let in_language = |english: &str| match chinese {
            true => translate(english).unwrap_or(english).to_owned(),
            false => english.to_owned(),
        };
        let prose = !line.starts_with(' ');
        if prose {
            let command = match (line, chinese) {
                (HEADING, true) => "示例：".to_owned(),
                _ => in_language(line),
            };
            return Self {
                command,
                comment: None,
                prose,
            };
        }
        let comment = comment(line);
        let command = match comment {
            Some(comment) => line.trim_end().trim_end_matches(comment),
            None => line,
        };
        Self {
            command: command.trim().to_owned(),
            comment: comment.map(|comment| in_language(comment).trim_start_matches("# ").to_owned()),
            prose,
        }
    }

    fn laid_out(&self, column: usize, width: usize) -> String {
        if self.prose {
            return self.command.clone();
        }
        let command = continued(&self.command, width);
        let Some(comment) = &self.comment else {
            return command;
        };
        let gap = column.saturating_sub(cells(&self.command));
        let beside = format!("{INDENT}{}{}  # {comment}", self.command, " ".repeat(gap));
        if cells(&beside) <= width {
            return beside;
        }
        let above: String = wrap(comment, width.saturating_sub(4))
            .iter()
            .map(|line| format!("{INDENT}# {line}\n"))
            .collect();
        above + &command
    }
}

/// The command on as many lines as it needs, each but the last with a backslash at its end.
fn continued(command: &str, width: usize) -> String {
    let mut lines = vec![INDENT.to_owned()];
    for word in command.split(' ') {
        let line = lines.last().map_or(0, |line| cells(line));
        let first = lines.last().is_some_and(|line| line.trim().is_empty());
        if !first && line + 1 + cells(word) + 2 > width {
            lines.push(CONTINUED.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join(" \\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "Examples:
  flatout lint                 the current folder
  flatout lint --fix --unsafe .  apply the fixes and keep the original files under another name
  flatout tune --config train.yaml --set train.batch_size --write -- python train.py --config train.yaml

Nothing is changed.";

    #[test]
    fn wraps_long_comments_and_commands() {
        assert_eq!(
            laid_out(SAMPLE, Language::English, 70),
            "Examples:
  flatout lint                   # the current folder
  # apply the fixes and keep the original files under another name
  flatout lint --fix --unsafe .
  flatout tune --config train.yaml --set train.batch_size --write -- \\
      python train.py --config train.yaml

Nothing is changed."
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 30..120 {
            for line in laid_out(SAMPLE, Language::English, width).lines() {
                let words = line.trim().trim_start_matches("# ").split(' ').count();
                assert!(cells(line) <= width || words == 1, "{width}: {line}");
            }
        }
    }
}
