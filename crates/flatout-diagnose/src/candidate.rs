//! What a rule returns: a finding, and the stretch of time it answers for. The arbiter (`rank`) decides which of
//! several candidates for one stretch is its cause.

use flatout_core::{Confidence, Evidence, Finding, Fix, Gain, Kind, Message, Place, Severity};

/// A stretch of the window that a cause can answer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stretch {
    /// Waiting for batches.
    Data,
    Transfer,
    /// The device waits while the host launches work; on the CPU: the fixed cost of a step.
    Dispatch,
    /// The device computes, more slowly than it could. Not idle: several causes may share it.
    Device,
    Sync,
    /// In collectives: waiting for other ranks and transferring.
    Communication,
    Eval,
    Checkpoint,
    /// The program's own Python code between steps.
    Other,
}

/// How specific a rule's explanation is. For one stretch the most specific wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// "The training waits for batches."
    General,
    /// "… because the CPUs are full."
    Likely,
    /// "… because there are no workers."
    Specific,
    /// Measured span by span: "… because workers were restarted, which took 4.1 s".
    Measured,
    /// Compared with other ranks, which do the same without these seconds.
    Compared,
}

/// The share of a stretch that this finding accounts for, and how much of it the fix would recover.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The seconds are taken from the first of these, and the rest from the next.
    pub stretches: Vec<Stretch>,
    /// The seconds it accounts for.
    pub explains_s: f64,
    /// Those of them that may go, and those that surely go.
    pub possible_s: f64,
    pub certain_s: f64,
    /// Seconds that may go beyond those it claims: what its fix takes along elsewhere. They raise the gain, and stay others' to claim.
    pub beyond_s: f64,
    /// Of those, the seconds that surely go.
    pub surely_beyond_s: f64,
    pub reach: Reach,
    /// Whether the finding is worth its line without the seconds.
    pub stands_alone: bool,
    /// The seconds are those of one line that can go: measured fixes show what that gains.
    pub is_line: bool,
}

#[derive(Clone, Debug)]
pub struct Candidate {
    pub finding: Finding,
    pub claim: Option<Claim>,
}

/// From here on a cost is a warning. 10% as TraceML's first level; PyTorch's own plugin speaks at 5%.
pub const WARNING_SHARE: f64 = 0.10;
/// From here on it is critical: removing it gains 1.4× or more. gpuprof's second level.
pub const CRITICAL_SHARE: f64 = 0.30;

/// How bad a lost share of the time is.
pub fn severity_of(share: f64) -> Severity {
    match share {
        s if s >= CRITICAL_SHARE => Severity::Critical,
        s if s >= WARNING_SHARE => Severity::Warning,
        _ => Severity::Information,
    }
}

impl Candidate {
    pub fn new(rule: &str, severity: Severity, title: Message) -> Self {
        Self {
            finding: Finding::new(rule, severity, title),
            claim: None,
        }
    }

    #[must_use]
    pub fn detail(mut self, detail: Message) -> Self {
        self.finding.detail = detail;
        self
    }

    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.finding.kind = kind;
        self
    }

    #[must_use]
    pub fn confidence(mut self, confidence: Confidence) -> Self {
        self.finding.confidence = confidence;
        self
    }

    /// Answers for `possible_s` seconds of a stretch, of which `certain_s` surely go.
    #[must_use]
    pub fn claims(mut self, stretch: Stretch, reach: Reach, certain_s: f64, possible_s: f64) -> Self {
        let possible_s = possible_s.max(0.0);
        self.claim = Some(Claim {
            stretches: vec![stretch],
            explains_s: possible_s,
            possible_s,
            certain_s: certain_s.clamp(0.0, possible_s),
            beyond_s: 0.0,
            surely_beyond_s: 0.0,
            reach,
            stands_alone: false,
            is_line: false,
        });
        self
    }

    /// Its seconds are those of one line.
    #[must_use]
    pub fn of_line(mut self) -> Self {
        if let Some(claim) = &mut self.claim {
            claim.is_line = true;
        }
        self
    }

    /// It costs something else than time too (memory, say): where the seconds are another's doing it stays a cause, without a gain.
    #[must_use]
    pub fn stands_alone(mut self) -> Self {
        if let Some(claim) = &mut self.claim {
            claim.stands_alone = true;
        }
        self
    }

    /// Accounts for more seconds than mending it removes: too few workers explain the whole wait, but a few more of them
    /// shorten it only. Nobody else may then claim the rest.
    #[must_use]
    pub fn explains(mut self, seconds: f64) -> Self {
        if let Some(claim) = &mut self.claim {
            claim.explains_s = seconds.max(claim.possible_s);
        }
        self
    }

    /// Its fix may remove this many seconds in all, more than it claims.
    #[must_use]
    pub fn up_to(mut self, seconds: f64) -> Self {
        if let Some(claim) = &mut self.claim {
            claim.beyond_s = (seconds - claim.possible_s).max(0.0);
        }
        self
    }

    /// What it costs grows: at the end of the window its fix removes this share of the time, more than on average.
    #[must_use]
    pub fn by_now(mut self, share: Option<f64>, wall_s: f64) -> Self {
        if let (Some(claim), Some(share)) = (&mut self.claim, share) {
            let more_s = (share * wall_s - claim.possible_s).max(0.0);
            claim.beyond_s = claim.beyond_s.max(more_s);
            claim.surely_beyond_s = more_s;
        }
        self
    }

    /// Where else its seconds may lie, when it cannot be told which phase they fell into.
    #[must_use]
    pub fn or_in(mut self, stretch: Stretch) -> Self {
        if let Some(claim) = &mut self.claim {
            claim.stretches.push(stretch);
        }
        self
    }

    /// The same, where there is any.
    #[must_use]
    pub fn evidence_if(self, evidence: Option<Evidence>) -> Self {
        match evidence {
            Some(evidence) => self.evidence(evidence),
            None => self,
        }
    }

    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Self {
        self.finding.evidence.push(evidence);
        self
    }

    #[must_use]
    pub fn place(mut self, place: Option<&Place>) -> Self {
        if let Some(place) = place.filter(|place| !self.finding.places.contains(place)) {
            self.finding.places.push(place.clone());
        }
        self
    }

    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.finding.fixes.push(fix);
        self
    }

    /// A setting by the name `--apply` knows. Left out when it has that value already.
    #[must_use]
    pub fn setting(self, setting: &str, from: Option<String>, to: impl ToString, say: Message) -> Self {
        let to = to.to_string();
        if from.as_deref() == Some(to.as_str()) {
            return self;
        }
        self.fix(Fix::Setting {
            setting: setting.to_owned(),
            from,
            to,
            say,
        })
    }

    #[must_use]
    pub fn code(self, place: Option<&Place>, say: Message) -> Self {
        self.fix(Fix::Code {
            place: place.cloned(),
            say,
        })
    }

    #[must_use]
    pub fn refused(self, setting: &str, say: Message) -> Self {
        self.fix(Fix::Refused {
            setting: setting.to_owned(),
            say,
        })
    }

    #[must_use]
    pub fn gain(mut self, gain: Gain) -> Self {
        self.finding.gain = Some(gain);
        self
    }
}
