//! `nvidia-smi dmon`: a header of names and one of units, repeated now and then, columns set with blanks.

use super::columns::{self, DMON, Header};

/// `# gpu    pwr  gtemp …`, with `-o DT` also `#Date Time gpu …`; `None` for the line of units and for any other.
pub fn header(line: &[u8]) -> Option<Header> {
    let text = String::from_utf8_lossy(line.strip_prefix(b"#")?).into_owned();
    let names: Vec<&str> = text
        .split([' ', '\t', ','])
        .filter(|name| !name.is_empty())
        .collect();
    let is_names = names.iter().any(|name| name.eq_ignore_ascii_case("gpu"));
    if !is_names {
        return None;
    }
    let find = |name: &str| {
        DMON.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, column)| *column)
    };
    // Newer ones write CSV on request.
    columns::read(line, names.into_iter(), !line.contains(&b','), find)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_names_from_units() {
        assert!(header(b"# gpu    pwr  gtemp  mtemp     sm    mem").is_some());
        assert!(header(b"#Date       Time        gpu   pwr").is_some_and(|header| header.columns.len() == 4));
        assert!(header(b"# Idx      W      C      C      %      %").is_none());
        assert!(header(b"# a comment").is_none());
        assert!(header(b"gpu pwr").is_none());
    }
}
