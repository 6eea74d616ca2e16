//! Scripted faults, from `FLATOUT_FAKE_NVML_FAULT`: a list like `not-supported:gpm,lost:1@5,slow:2`.
//!
//! | fault | |
//! | --- | --- |
//! | `not-supported:FIELD` | the GPU cannot tell FIELD: `util`, `samples`, `memory`, `power`, `energy`, `temperature`, `clocks`, `throttle`, `pcie`, `processes`, `process-share`, `gpm`, `details` |
//! | `lost:GPU@SECONDS` | the GPU falls off the bus that long after the start |
//! | `slow:SECONDS` or `slow:SECONDS@FROM` | reading the utilisation takes that long (from then on) |
//! | `absurd` | utilisation of 37100%, power and clocks of four thousand million |
//! | `mismatch`, `no-driver`, `no-gpus`, `no-permission` | the library does not start, or starts without GPUs |

/// What a function of NVML is about; a fault names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Field {
    Util,
    Samples,
    Memory,
    Power,
    Energy,
    Temperature,
    Clocks,
    Throttle,
    Pcie,
    Processes,
    ProcessShare,
    Gpm,
    Details,
}

impl Field {
    const NAMES: [(Self, &'static str); 13] = [
        (Self::Util, "util"),
        (Self::Samples, "samples"),
        (Self::Memory, "memory"),
        (Self::Power, "power"),
        (Self::Energy, "energy"),
        (Self::Temperature, "temperature"),
        (Self::Clocks, "clocks"),
        (Self::Throttle, "throttle"),
        (Self::Pcie, "pcie"),
        (Self::Processes, "processes"),
        (Self::ProcessShare, "process-share"),
        (Self::Gpm, "gpm"),
        (Self::Details, "details"),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(field, _)| *field)
    }
}

/// Why the library does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFault {
    Mismatch,
    NoDriver,
    NoPermission,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    pub start: Option<StartFault>,
    pub no_gpus: bool,
    pub not_supported: Vec<Field>,
    /// GPU and seconds since the start.
    pub lost: Vec<(u32, f64)>,
    /// Seconds a call takes, and from when on.
    pub slow: Option<(f64, f64)>,
    pub absurd: bool,
}

impl Faults {
    /// The script, or the word in it that means nothing.
    pub fn parse(script: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for word in script.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            faults.add(word).ok_or_else(|| word.to_owned())?;
        }
        Ok(faults)
    }

    fn add(&mut self, word: &str) -> Option<()> {
        let (kind, detail) = word.split_once(':').unwrap_or((word, ""));
        match kind {
            "mismatch" => self.start = Some(StartFault::Mismatch),
            "no-driver" => self.start = Some(StartFault::NoDriver),
            "no-permission" => self.start = Some(StartFault::NoPermission),
            "no-gpus" => self.no_gpus = true,
            "absurd" => self.absurd = true,
            "not-supported" => self.not_supported.push(Field::parse(detail)?),
            "lost" => {
                let (gpu, seconds) = detail.split_once('@')?;
                self.lost.push((gpu.parse().ok()?, seconds_from(seconds)?));
            }
            "slow" => {
                let (seconds, from) = detail.split_once('@').unwrap_or((detail, "0"));
                self.slow = Some((seconds_from(seconds)?, seconds_from(from)?));
            }
            _ => return None,
        }
        Some(())
    }
}

fn seconds_from(text: &str) -> Option<f64> {
    text.parse().ok().filter(|seconds| (0.0..1e6).contains(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_several_faults() {
        let faults = Faults::parse("not-supported:gpm, lost:1@2.5,slow:2@3,absurd").unwrap();
        assert_eq!(faults.not_supported, [Field::Gpm]);
        assert_eq!(faults.lost, [(1, 2.5)]);
        assert_eq!(faults.slow, Some((2.0, 3.0)));
        assert!(faults.absurd && faults.start.is_none());
        assert_eq!(Faults::parse("").unwrap(), Faults::default());
    }

    #[test]
    fn a_word_that_means_nothing_is_named() {
        for wrong in [
            "explode",
            "lost:1",
            "slow:",
            "slow:-1",
            "not-supported:luck",
            "slow:inf",
        ] {
            assert_eq!(Faults::parse(wrong), Err(wrong.to_owned()));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_script_makes_it_panic(script in ".{0,60}") {
            let _ = Faults::parse(&script);
        }
    }
}
