//! Why the clocks are below their maximum, as names.

/// NVML's bits (`nvmlClocksEventReason…` in `nvml.h`) and the names that records use for them.
const NAMES: &[(u64, &str)] = &[
    (0x001, "idle"),
    (0x002, "applications-clocks"),
    (0x004, "power-cap"),
    (0x008, "hw-slowdown"),
    (0x010, "sync-boost"),
    (0x020, "thermal-sw"),
    (0x040, "thermal-hw"),
    (0x080, "power-brake"),
    (0x100, "display-clocks"),
];

/// Empty when nothing holds the clocks back.
pub fn names(bits: u64) -> Vec<String> {
    NAMES
        .iter()
        .filter(|(reason, _)| bits & reason != 0)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// The bits behind names; a name that NVML does not have is left out.
pub fn bits(names: &[String]) -> u64 {
    NAMES
        .iter()
        .filter(|(_, name)| names.iter().any(|given| given == name))
        .fold(0, |bits, (reason, _)| bits | reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_names_and_unknown_bits_nothing() {
        assert_eq!(names(0), Vec::<String>::new());
        assert_eq!(names(0x4 | 0x40), ["power-cap", "thermal-hw"]);
        assert_eq!(names(1 << 40), Vec::<String>::new());
        assert_eq!(bits(&names(0x1ff)), 0x1ff);
        assert_eq!(bits(&["luck".to_owned()]), 0);
    }
}
