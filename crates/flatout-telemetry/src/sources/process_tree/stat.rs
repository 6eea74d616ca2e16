//! `/proc/PID/stat`, whose second field may hold anything.

use crate::sources::proc_file::number;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub state: u8,
    pub parent: u32,
    /// Pages touched for the first time that no disk was needed for, by all threads since the start.
    pub minor_faults: u64,
    /// User and system time, in clock ticks.
    pub cpu_ticks: u64,
    /// The system's part of it.
    pub kernel_ticks: u64,
    pub threads: u32,
    /// Clock ticks from boot to the process's start: tells a process from a later one with its number.
    pub started: u64,
    pub rss_pages: u64,
}

pub fn parse(text: &[u8]) -> Option<Stat> {
    // The name stands in brackets and may itself hold brackets and blanks; the last one closes it.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = text.get(end + 2..)?;
    let state = *rest.first()?;
    // The fields behind the state, the fourth of the file first.
    let mut fields = [0u64; 21];
    let mut rest = &rest[1..];
    for field in &mut fields {
        (*field, rest) = number(rest)?;
    }
    Some(Stat {
        state,
        parent: u32::try_from(fields[0]).ok()?,
        minor_faults: fields[6],
        kernel_ticks: fields[11],
        cpu_ticks: fields[10].saturating_add(fields[11]),
        threads: u32::try_from(fields[16]).ok()?,
        started: fields[18],
        rss_pages: fields[20],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_with_brackets_and_blanks() {
        let text = b"42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 9000 1000000 512 18446744073709551615 1";
        let stat = parse(text).unwrap();
        assert_eq!(
            (
                stat.state,
                stat.parent,
                stat.minor_faults,
                stat.cpu_ticks,
                stat.kernel_ticks,
                stat.threads,
                stat.started,
                stat.rss_pages
            ),
            (b'S', 7, 100, 300, 50, 3, 9000, 512)
        );
    }

    #[test]
    fn this_process() {
        let stat = parse(&std::fs::read("/proc/self/stat").unwrap()).unwrap();
        assert!(stat.parent > 0 && stat.rss_pages > 0 && stat.started > 0);
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
