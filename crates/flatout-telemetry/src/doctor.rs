//! `flatout doctor`: what this machine has, what is missing, and what that costs. Under a second, and it changes nothing.
//!
//! A new check is a file here with a function that adds [`Check`]s, and one line in [`examine`].

mod cuda_libraries;
mod gpus;
mod host;
pub mod python;

use flatout_core::Message;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    Good,
    /// Worth knowing, neither good nor bad.
    Note,
    /// Not there; flatout does without, at the cost named.
    Missing,
    /// There, and broken or wrongly set.
    Problem,
}

/// One thing looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// `driver`, `gpu.0`, `cuda.libcudnn`, `python` …; never changes.
    pub id: String,
    pub area: Area,
    pub health: Health,
    pub text: Message,
    /// What its absence costs.
    pub cost: Option<Message>,
    /// What to type or to change.
    pub remedy: Option<Message>,
    /// The same for programs.
    pub data: Map<String, Value>,
}

/// The headings of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    Gpu,
    Libraries,
    Python,
    Host,
}

impl Area {
    pub fn title(self) -> Message {
        match self {
            Self::Gpu => flatout_core::message!(en: "GPU and driver", zh: "GPU 与驱动"),
            Self::Libraries => flatout_core::message!(en: "CUDA libraries", zh: "CUDA 库"),
            Self::Python => Message::verbatim("Python"),
            Self::Host => flatout_core::message!(en: "This machine", zh: "本机"),
        }
    }
}

impl Check {
    fn new(id: impl Into<String>, area: Area, health: Health, text: Message) -> Self {
        Self {
            id: id.into(),
            area,
            health,
            text,
            cost: None,
            remedy: None,
            data: Map::new(),
        }
    }

    fn cost(mut self, cost: Message) -> Self {
        self.cost = Some(cost);
        self
    }

    fn remedy(mut self, remedy: Message) -> Self {
        self.remedy = Some(remedy);
        self
    }

    fn with(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        if !value.is_null() {
            self.data.insert(name.to_owned(), value);
        }
        self
    }
}

/// A driver that takes longer is reported as slow, so that the whole stays below a second.
const DRIVER_PATIENCE: Duration = Duration::from_millis(700);

/// Looks at everything, area by area.
pub fn examine() -> Vec<Check> {
    let gpus = gpus::begin();
    let python = python::find();
    let mut rest = Vec::new();
    cuda_libraries::check(python.as_ref(), &mut rest);
    python::check(python.as_ref(), &mut rest);
    host::check(&mut rest);
    let mut checks = gpus::finish(gpus, DRIVER_PATIENCE);
    checks.append(&mut rest);
    checks
}
