//! What happens now, from the sampler.

use super::{Feed, FeedTick};
use flatout_core::{Explain, Message, message};
use flatout_record::RunInfo;
use flatout_telemetry::Sampler;
use flatout_telemetry::sources::gpus::GpuState;
use std::time::Duration;

pub struct Live {
    sampler: Sampler,
    info: RunInfo,
    ended: bool,
    /// What became of the driver has been said, or there is nothing to say.
    told: bool,
}

impl Live {
    /// `info` holds what the sampler cannot know: name, kind, command.
    pub fn new(sampler: Sampler, mut info: RunInfo) -> Self {
        sampler.describe(&mut info);
        Self {
            sampler,
            info,
            ended: false,
            told: false,
        }
    }

    /// Once the driver has answered: why there is no GPU, if there is none.
    fn no_gpu(&mut self) -> Option<Message> {
        if self.told {
            return None;
        }
        let state = self.sampler.gpus(Duration::ZERO);
        self.told = !matches!(state, GpuState::Starting);
        match state {
            GpuState::Unavailable(problem) => {
                let (why, hint) = (problem.message(), problem.hint().unwrap_or_default());
                Some(Message {
                    en: format!("no GPU: {}; monitoring the host only\nhint: {}", why.en, hint.en),
                    zh: format!("没有 GPU：{}；仅监控主机\n提示：{}", why.zh, hint.zh),
                })
            }
            GpuState::Ready(gpus) if gpus.is_empty() => Some(message!(
                en: "no GPU: the environment hides all of them; monitoring the host only\nhint: check \
                CUDA_VISIBLE_DEVICES, or select GPUs with --gpu 0",
                zh: "没有 GPU：环境变量隐藏了所有 GPU；继续监控主机\n提示：检查 CUDA_VISIBLE_DEVICES，或用 --gpu 0 指定"
            )),
            _ => None,
        }
    }
}

impl Feed for Live {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn remaining(&self) -> Duration {
        self.sampler.remaining()
    }

    fn poll(&mut self) -> Option<FeedTick> {
        let tick = self.sampler.poll()?;
        self.ended |= tick.ended;
        if tick.described {
            self.sampler.describe(&mut self.info);
        }
        Some(FeedTick {
            sample: tick.sample,
            events: tick.events,
            described: tick.described,
            missed: self.sampler.missed(),
            notices: self.no_gpu().into_iter().collect(),
        })
    }

    fn is_over(&self) -> bool {
        self.ended
    }

    fn elapsed_s(&self) -> f64 {
        self.sampler.elapsed_s()
    }
}
