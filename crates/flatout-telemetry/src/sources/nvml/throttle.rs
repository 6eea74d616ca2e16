//! Why the clocks are below their maximum, as names.

use nvml_wrapper::bitmasks::device::ThrottleReasons;

const NAMES: &[(ThrottleReasons, &str)] = &[
    (ThrottleReasons::GPU_IDLE, "idle"),
    (
        ThrottleReasons::APPLICATIONS_CLOCKS_SETTING,
        "applications-clocks",
    ),
    (ThrottleReasons::SW_POWER_CAP, "power-cap"),
    (ThrottleReasons::HW_SLOWDOWN, "hw-slowdown"),
    (ThrottleReasons::SYNC_BOOST, "sync-boost"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "thermal-sw"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "thermal-hw"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power-brake"),
    (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display-clocks"),
];

/// Empty when nothing holds the clocks back.
pub fn names(bits: u64) -> Vec<String> {
    let reasons = ThrottleReasons::from_bits_truncate(bits);
    NAMES
        .iter()
        .filter(|(reason, _)| reasons.contains(*reason))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// The bits behind names; a name that NVML does not have is left out.
pub fn bits(names: &[String]) -> u64 {
    NAMES
        .iter()
        .filter(|(_, name)| names.iter().any(|given| given == name))
        .fold(0, |bits, (reason, _)| bits | reason.bits())
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
