//! Finding the name that somebody meant.

/// Edit distance of two short names.
pub fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_single_edits() {
        assert_eq!(distance("batch_size", "batch_size"), 0);
        assert_eq!(distance("hiden_size", "hidden_size"), 1);
        assert_eq!(distance("", "lr"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
