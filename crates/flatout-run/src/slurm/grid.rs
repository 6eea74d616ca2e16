//! A grid search as an array job: each task runs the command with one combination appended.

use flatout_core::{Explain, Message, explained, message};

/// Slurm's own default limit is 1001 tasks an array.
const MOST_TASKS: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    axes: Vec<(String, Vec<String>)>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum GridError {
    /// Not `name=value,value`.
    Shape {
        text: String,
    },
    Twice {
        name: String,
    },
    TooMany {
        count: usize,
    },
}

impl Explain for GridError {
    fn message(&self) -> Message {
        match self {
            Self::Shape { text } => {
                message!(en: "expected `SETTING=VALUE,VALUE`, got `{text}`", zh: "应为“设置=取值,取值”的形式，而不是 \
                `{text}`")
            }
            Self::Twice { name } => {
                message!(en: "`{name}` appears twice in the grid", zh: "网格中 `{name}` 出现了两次")
            }
            Self::TooMany { count } => {
                message!(en: "the grid has {count} combinations; the limit is {MOST_TASKS}", zh: "网格有 {count} 种组合，超过了 {MOST_TASKS}")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(message!(
            en: "use the names of your program's options: --grid hidden-size=128,256 --grid lr=1e-3,3e-4",
            zh: "按程序的选项名书写：--grid hidden-size=128,256 --grid lr=1e-3,3e-4"
        ))
    }
}
explained!(GridError);

impl Grid {
    /// `hidden-size=128,256`, once an axis.
    pub fn parse(texts: &[String]) -> Result<Self, GridError> {
        let mut axes: Vec<(String, Vec<String>)> = Vec::new();
        for text in texts {
            let shape = || GridError::Shape { text: text.clone() };
            let (name, values) = text.split_once('=').ok_or_else(shape)?;
            let name = name.trim_start_matches("--");
            let values: Vec<String> = values.split(',').map(str::to_owned).collect();
            if name.is_empty() || name.contains(char::is_whitespace) || values.iter().any(String::is_empty) {
                return Err(shape());
            }
            if axes.iter().any(|(known, _)| known == name) {
                return Err(GridError::Twice {
                    name: name.to_owned(),
                });
            }
            axes.push((name.to_owned(), values));
        }
        let grid = Self { axes };
        match grid.count() {
            count if count > MOST_TASKS => Err(GridError::TooMany { count }),
            _ => Ok(grid),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// How many combinations there are.
    pub fn count(&self) -> usize {
        self.axes
            .iter()
            .fold(1usize, |count, (_, values)| count.saturating_mul(values.len()))
    }

    /// The options of one combination; the last axis changes fastest.
    pub fn options(&self, task: usize) -> Vec<String> {
        let values = self.values(task).into_iter();
        values.map(|(name, value)| format!("--{name}={value}")).collect()
    }

    /// `hidden-size-128_lr-1e-3`
    pub fn name(&self, task: usize) -> String {
        let values = self.values(task).into_iter();
        let parts: Vec<String> = values.map(|(name, value)| format!("{name}-{value}")).collect();
        parts.join("_")
    }

    /// Whether the combinations differ in an option.
    pub fn has(&self, option: &str) -> bool {
        self.axes.iter().any(|(name, _)| name == option)
    }

    fn values(&self, task: usize) -> Vec<(&str, &str)> {
        let (mut rest, mut found) = (task, Vec::new());
        for (name, values) in self.axes.iter().rev() {
            found.push((name.as_str(), values[rest % values.len()].as_str()));
            rest /= values.len();
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(texts: &[&str]) -> Result<Grid, GridError> {
        Grid::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_combination_once() {
        let grid = grid(&["hidden=128,256", "--lr=1e-3,3e-4,1e-4"]).unwrap();
        let all: std::collections::BTreeSet<Vec<String>> =
            (0..grid.count()).map(|task| grid.options(task)).collect();
        assert_eq!((grid.count(), all.len()), (6, 6));
        assert_eq!(grid.options(1), ["--hidden=128", "--lr=3e-4"]);
        assert_eq!(super::Grid::default().count(), 1);
    }

    #[test]
    fn refuses_invalid_grids() {
        assert!(matches!(grid(&["hidden"]), Err(GridError::Shape { .. })));
        assert!(matches!(grid(&["a=1,,2"]), Err(GridError::Shape { .. })));
        assert!(matches!(grid(&["a=1", "a=2"]), Err(GridError::Twice { .. })));
        let many = format!("a={}", vec!["1"; 1001].join(","));
        assert!(matches!(grid(&[&many]), Err(GridError::TooMany { count: 1001 })));
    }
}
