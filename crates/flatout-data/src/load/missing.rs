//! What to do with missing values.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// They are an error that names the file, row and column.
    #[default]
    Error,
    /// The mean of the training split: they stay NaN until standardising, which makes them 0.
    Mean,
    Zero,
    /// The value before, of the same entity; the mean where there is none before.
    Forward,
    /// The row is left out, and counted.
    Drop,
}

impl Missing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Mean => "mean",
            Self::Zero => "zero",
            Self::Forward => "forward",
            Self::Drop => "drop",
        }
    }
}

impl std::str::FromStr for Missing {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "error" => Self::Error,
            "mean" => Self::Mean,
            "zero" => Self::Zero,
            "forward" | "ffill" => Self::Forward,
            "drop" => Self::Drop,
            _ => return Err(()),
        })
    }
}

/// Applies each column's policy to the rows of one entity, `[rows, policies.len()]`. Returns the first offending (row, column) for
/// `Error`. `Drop` is for the caller, who knows what else belongs to a row; infinities become NaN.
pub fn fill_columns(rows: &mut [f32], policies: &[Missing]) -> Result<(), (usize, usize)> {
    let width = policies.len();
    if width == 0 {
        return Ok(());
    }
    for index in 0..rows.len() {
        if rows[index].is_finite() {
            continue;
        }
        rows[index] = match policies[index % width] {
            Missing::Error => return Err((index / width, index % width)),
            Missing::Mean | Missing::Drop => f32::NAN,
            Missing::Zero => 0.0,
            Missing::Forward => index.checked_sub(width).map_or(f32::NAN, |before| rows[before]),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy() {
        let source = [f32::NAN, 1.0, 2.0, f32::INFINITY, f32::NAN, 3.0];
        let with = |policy| {
            let mut rows = source;
            fill_columns(&mut rows, &[policy; 2]).map(|()| rows)
        };
        assert_eq!(with(Missing::Error), Err((0, 0)));
        assert_eq!(with(Missing::Zero).unwrap(), [0.0, 1.0, 2.0, 0.0, 0.0, 3.0]);
        let forward = with(Missing::Forward).unwrap();
        assert!(forward[0].is_nan());
        assert_eq!(forward[1..], [1.0, 2.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            with(Missing::Mean)
                .unwrap()
                .iter()
                .filter(|value| value.is_nan())
                .count(),
            3
        );
    }
}
