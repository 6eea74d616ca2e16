//! A chart in a terminal: eighths of a cell upwards, time to the right. What is unknown is a gap, a known 0 a thin line.

use flatout_core::units;

const ROWS: usize = 4;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Before the columns: `100% ┤`.
const LABEL_CELLS: usize = 4;

/// Shares from 0 to 1.
pub fn shares(values: &[Option<f64>], length_s: f64) -> String {
    let mut text = String::new();
    for row in 0..ROWS {
        let label = match row {
            0 => "100%",
            row if row == ROWS - 1 => "0%",
            _ => "",
        };
        let line: String = values.iter().map(|value| cell(*value, row)).collect();
        text += &format!("{label:>LABEL_CELLS$} │{}\n", line.trim_end());
    }
    let end = units::duration(length_s);
    let gap = values
        .len()
        .saturating_sub(1 + crate::text::width::width(&end))
        .max(1);
    text + &format!("{:LABEL_CELLS$}  0{}{end}\n", "", " ".repeat(gap))
}

fn cell(value: Option<f64>, row: usize) -> char {
    let Some(value) = value else { return ' ' };
    let height = ((value.clamp(0.0, 1.0) * (ROWS * 8) as f64).round() as usize).max(1);
    let below = (ROWS - 1 - row) * 8;
    EIGHTHS[height.saturating_sub(below).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_line_and_unknown_a_gap() {
        assert_eq!(
            shares(&[Some(1.0), Some(0.5), Some(0.0), None, Some(0.25)], 90.0),
            "100% │█\n     │█\n     │██\n  0% │██▁ █\n      0 1 min 30 s\n"
        );
    }
}
