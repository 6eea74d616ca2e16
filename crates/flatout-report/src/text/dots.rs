//! A dot plot: one line a value, its place between the smallest and the largest. The scale does not begin at zero, so no bars,
//! whose lengths would lie.

use super::width::{cut, pad, width};

/// `values` with their names, in the order given, for a terminal of so many cells.
pub fn dots(values: &[(String, f64)], cells: usize, shown: impl Fn(f64) -> String) -> String {
    let finite: Vec<&(String, f64)> = values.iter().filter(|(_, value)| value.is_finite()).collect();
    let low = finite
        .iter()
        .map(|(_, value)| *value)
        .fold(f64::INFINITY, f64::min);
    let high = finite
        .iter()
        .map(|(_, value)| *value)
        .fold(f64::NEG_INFINITY, f64::max);
    let texts: Vec<String> = finite.iter().map(|(_, value)| shown(*value)).collect();
    let widest_text = texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let widest_name = finite.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let names = widest_name.min(cells / 2);
    let plot = cells.saturating_sub(names + widest_text + 4).clamp(10, 60);
    let mut text = String::new();
    for ((name, value), shown) in finite.into_iter().zip(&texts) {
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.0
        };
        let place = (share * (plot - 1) as f64).round() as usize;
        let (before, after) = ("·".repeat(place), "·".repeat(plot - 1 - place));
        text += &format!("{} {before}●{after} {shown}\n", pad(&cut(name, names), names));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_within_the_range() {
        let values = [
            ("a".to_owned(), 1.0),
            ("中文".to_owned(), 3.0),
            ("c".to_owned(), f64::NAN),
            ("d".to_owned(), 2.0),
        ];
        let text = dots(&values, 20, |value| value.to_string());
        assert_eq!(
            text,
            "a    ●·········· 1\n中文 ··········● 3\nd    ·····●····· 2\n"
        );
        assert_eq!(dots(&[], 20, |value| value.to_string()), "");
        assert_eq!(
            dots(&[("x".to_owned(), 5.0)], 20, |v| v.to_string())
                .matches('●')
                .count(),
            1
        );
    }
}
