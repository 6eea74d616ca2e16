//! Which GPUs are meant: `--gpu`, else what the environment leaves visible, in the order
//! `CUDA_VISIBLE_DEVICES`, `NVIDIA_VISIBLE_DEVICES`, `SLURM_STEP_GPUS`, `SLURM_JOB_GPUS`, else all.

use flatout_core::{Explain, Message, explained, message};

/// The variables that narrow the scope, first found first.
pub const SCOPE_VARIABLES: [&str; 4] = [
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "SLURM_STEP_GPUS",
    "SLURM_JOB_GPUS",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuScope {
    /// `None`: all.
    pub wanted: Option<Vec<GpuName>>,
    /// The option or variable it came from; `None` when nothing narrowed it.
    pub origin: Option<&'static str>,
}

/// How a person or a scheduler names a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuName {
    Index(u32),
    /// `GPU-…` or its beginning, as CUDA allows.
    Uuid(String),
    /// `MIG-…`: a slice of a GPU.
    Mig(String),
}

#[derive(Debug)]
pub struct BadScope {
    text: String,
}

impl Explain for BadScope {
    fn message(&self) -> Message {
        let text = &self.text;
        message!(en: "`{text}` is not a GPU index or UUID", zh: "`{text}` 不是有效的 GPU 编号")
    }

    fn hint(&self) -> Option<Message> {
        Some(
            message!(en: "use indices or UUIDs: --gpu 0,1 or --gpu GPU-8932f937", zh: "请使用编号或 UUID：--gpu 0,1 或 --gpu GPU-8932f937"),
        )
    }
}
explained!(BadScope);

impl GpuScope {
    pub fn all() -> Self {
        Self {
            wanted: None,
            origin: None,
        }
    }

    /// Reads `--gpu 0,1,GPU-8932f937`. Unlike a variable, it must be right.
    pub fn parse(text: &str) -> Result<Self, BadScope> {
        if text.trim().eq_ignore_ascii_case("all") {
            return Ok(Self::all());
        }
        let names: Option<Vec<GpuName>> = text.split(',').map(|name| GpuName::parse(name.trim())).collect();
        match names {
            Some(names) => Ok(Self {
                wanted: Some(names),
                origin: Some("--gpu"),
            }),
            None => Err(BadScope {
                text: text.to_owned(),
            }),
        }
    }

    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The scope of another environment, such as a watched process's.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        Self::from_list(&SCOPE_VARIABLES, variable)
    }

    /// The same for the variables of another vendor, first found first.
    pub fn from_list(variables: &[&'static str], variable: impl Fn(&str) -> Option<String>) -> Self {
        for origin in variables.iter().copied() {
            let Some(text) = variable(origin) else { continue };
            let text = text.trim();
            let wanted = match (origin, text) {
                // An empty list hides all GPUs from CUDA; for the others it says nothing.
                (
                    "CUDA_VISIBLE_DEVICES" | "HIP_VISIBLE_DEVICES" | "ROCR_VISIBLE_DEVICES",
                    "" | "-1" | "NoDevFiles" | "none",
                ) => Some(Vec::new()),
                ("NVIDIA_VISIBLE_DEVICES", "none") => Some(Vec::new()),
                (_, "" | "all" | "void") => continue,
                // CUDA stops at the first name that it does not understand.
                _ => Some(
                    text.split(',')
                        .map_while(|name| GpuName::parse(name.trim()))
                        .collect(),
                ),
            };
            return Self {
                wanted,
                origin: Some(origin),
            };
        }
        Self::all()
    }

    /// Whether the person asked for these very GPUs, so that a missing one is an error.
    pub fn is_explicit(&self) -> bool {
        self.origin == Some("--gpu")
    }
}

impl GpuName {
    fn parse(name: &str) -> Option<Self> {
        if let Ok(index) = name.parse() {
            return Some(Self::Index(index));
        }
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '/');
        if !plain {
            None
        } else if name.starts_with("MIG-") {
            Some(Self::Mig(name.to_owned()))
        } else if name.len() > 4 && name.starts_with("GPU-") {
            Some(Self::Uuid(name.to_owned()))
        } else {
            None
        }
    }
}

impl std::fmt::Display for GpuName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Uuid(uuid) | Self::Mig(uuid) => f.write_str(uuid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GpuName::{Index, Mig, Uuid};

    fn scope(variables: &[(&str, &str)]) -> GpuScope {
        GpuScope::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let both = scope(&[("SLURM_JOB_GPUS", "2,3"), ("CUDA_VISIBLE_DEVICES", "1")]);
        assert_eq!(both.wanted, Some(vec![Index(1)]));
        let slurm = scope(&[("NVIDIA_VISIBLE_DEVICES", "all"), ("SLURM_STEP_GPUS", "2,3")]);
        assert_eq!(slurm.wanted, Some(vec![Index(2), Index(3)]));
        assert_eq!(slurm.origin, Some("SLURM_STEP_GPUS"));
        assert_eq!(scope(&[]), GpuScope::all());
    }

    #[test]
    fn uuids_slices_and_what_cuda_would_ignore() {
        let wanted = |text| scope(&[("CUDA_VISIBLE_DEVICES", text)]).wanted;
        assert_eq!(
            wanted("GPU-8932f937, 1"),
            Some(vec![Uuid("GPU-8932f937".into()), Index(1)])
        );
        assert_eq!(wanted("MIG-GPU-1/2/0"), Some(vec![Mig("MIG-GPU-1/2/0".into())]));
        assert_eq!(wanted("0,-1,1"), Some(vec![Index(0)]));
        assert_eq!(wanted(""), Some(vec![]));
    }

    #[test]
    fn an_option_must_be_right() {
        assert_eq!(
            GpuScope::parse("0, 2").unwrap().wanted,
            Some(vec![Index(0), Index(2)])
        );
        assert_eq!(GpuScope::parse("all").unwrap(), GpuScope::all());
        for wrong in ["", "0,", "one", "GPU-", "-1", "0;1"] {
            assert!(GpuScope::parse(wrong).is_err(), "{wrong}");
        }
    }
}
