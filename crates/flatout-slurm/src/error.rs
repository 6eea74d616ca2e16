//! Why Slurm did not answer.

use flatout_core::{Explain, Message, explained, message};

#[derive(Debug)]
pub enum SlurmError {
    /// The program is not on this machine.
    NotInstalled {
        program: String,
    },
    Unstartable {
        program: String,
        source: std::io::Error,
    },
    /// It ended with an error; its own words.
    Refused {
        program: String,
        words: String,
    },
    /// The controller or the database did not answer in time.
    Silent {
        program: String,
        seconds: u64,
    },
    BadJobId {
        text: String,
    },
    UnknownJob {
        id: String,
    },
}

/// What Slurm's commands print when its controller is down, restarts, or has too much to do.
const AWAY: [&str; 9] = [
    "unable to contact slurm controller",
    "slurm controller not responding",
    "slurm backup controller in standby",
    "connection refused",
    "connect failure",
    "socket timed out",
    "zero bytes were transmitted",
    "temporarily unable to accept job",
    "resource temporarily unavailable",
];

impl SlurmError {
    /// Whether Slurm itself is away, so that the same call may succeed later.
    pub fn is_away(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Refused { words, .. } => {
                let words = words.to_ascii_lowercase();
                AWAY.iter().any(|sign| words.contains(sign))
            }
            _ => false,
        }
    }
}

impl Explain for SlurmError {
    fn message(&self) -> Message {
        match self {
            Self::NotInstalled { program } => {
                message!(en: "`{program}` is not installed on this machine", zh: "本机没有 `{program}`")
            }
            Self::Unstartable { program, .. } => {
                message!(en: "failed to start `{program}`", zh: "无法启动 `{program}`")
            }
            Self::Refused { program, words } => {
                message!(en: "`{program}` reported: {words}", zh: "`{program}` 报告：{words}")
            }
            Self::Silent { program, seconds } => message!(
                en: "`{program}` did not respond within {seconds} s",
                zh: "`{program}` 在 {seconds} 秒内没有响应"
            ),
            Self::BadJobId { text } => {
                message!(en: "`{text}` is not a Slurm job id", zh: "`{text}` 不是 Slurm 作业号")
            }
            Self::UnknownJob { id } => message!(en: "Slurm has no job {id}", zh: "Slurm 中没有作业 {id}"),
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::NotInstalled { .. } => message!(
                en: "run this on the cluster's login node, or load the Slurm module",
                zh: "请在集群登录节点上运行，或加载 Slurm 的 module"
            ),
            Self::Unstartable { .. } => return None,
            Self::Refused { .. } | Self::Silent { .. } => {
                message!(en: "check whether Slurm responds: sinfo", zh: "检查 Slurm 是否可用：sinfo")
            }
            Self::BadJobId { .. } => message!(
                en: "use the number that sbatch printed: 4711, or 4711_3 for one task of an array",
                zh: "请给出 sbatch 打印的数字：4711，数组作业中的一个任务写作 4711_3"
            ),
            Self::UnknownJob { .. } => {
                message!(en: "list your jobs: sacct -X, squeue --me", zh: "列出你的作业：sacct -X、squeue --me")
            }
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unstartable { source, .. } => Some(source),
            _ => None,
        }
    }
}
explained!(SlurmError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_is_away_is_not_a_refusal() {
        let of = |words: &str| {
            SlurmError::Refused {
                program: "squeue".to_owned(),
                words: words.to_owned(),
            }
            .is_away()
        };
        assert!(of(
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
        ));
        assert!(of(
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
        ));
        assert!(!of("sbatch: error: invalid partition specified: gpu"));
    }
}
