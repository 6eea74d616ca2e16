//! Precision, recall and the confusion table.

use std::collections::BTreeMap;

/// What was wanted of one program and what was named.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub name: String,
    pub held_out: bool,
    pub wanted: Vec<String>,
    pub allowed: Vec<String>,
    pub named: Vec<String>,
    /// After the first step.
    pub first_finding_s: Option<f64>,
}

impl Verdict {
    fn hits(&self) -> usize {
        self.wanted
            .iter()
            .filter(|rule| self.named.contains(rule))
            .count()
    }

    fn misses(&self) -> Vec<&String> {
        self.wanted
            .iter()
            .filter(|rule| !self.named.contains(rule))
            .collect()
    }

    fn false_alarms(&self) -> Vec<&String> {
        self.named
            .iter()
            .filter(|rule| !self.wanted.contains(rule) && !self.allowed.contains(rule))
            .collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    hits: usize,
    misses: usize,
    false_alarms: usize,
    clean: usize,
    clean_right: usize,
    slowest_finding_s: f64,
}

impl Score {
    pub fn of(verdicts: &[Verdict]) -> Self {
        let mut score = Self::default();
        for verdict in verdicts {
            score.hits += verdict.hits();
            score.misses += verdict.misses().len();
            score.false_alarms += verdict.false_alarms().len();
            if verdict.wanted.is_empty() {
                score.clean += 1;
                score.clean_right += usize::from(verdict.false_alarms().is_empty());
            }
            score.slowest_finding_s = score
                .slowest_finding_s
                .max(verdict.first_finding_s.unwrap_or(0.0));
        }
        score
    }

    fn precision(self) -> f64 {
        share(self.hits, self.hits + self.false_alarms)
    }

    fn recall(self) -> f64 {
        share(self.hits, self.hits + self.misses)
    }

    pub fn below(self, wanted: f64) -> bool {
        self.precision() < wanted || self.recall() < wanted
    }

    pub fn line(self) -> String {
        format!(
            "precision {:.1}% ({} right, {} false alarms), recall {:.1}% ({} missed), clean twins {}/{}, slowest first \
             finding {:.0} s after the first step",
            self.precision() * 100.0,
            self.hits,
            self.false_alarms,
            self.recall() * 100.0,
            self.misses,
            self.clean_right,
            self.clean,
            self.slowest_finding_s
        )
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// One line a program, then one a rule.
pub fn table(verdicts: &[Verdict]) {
    println!(
        "  {:<30} {:<32} {:<7} named beside it",
        "program", "planted", "first"
    );
    for verdict in verdicts {
        let planted = if verdict.wanted.is_empty() {
            "(clean)".to_owned()
        } else {
            verdict.wanted.join(" ")
        };
        let first = verdict
            .first_finding_s
            .map_or_else(String::new, |seconds| format!("{seconds:.0} s"));
        let mut remarks: Vec<String> = verdict
            .misses()
            .iter()
            .map(|rule| format!("MISSED {rule}"))
            .collect();
        remarks.extend(verdict.false_alarms().iter().map(|rule| format!("FALSE {rule}")));
        remarks.extend(
            verdict
                .named
                .iter()
                .filter(|rule| verdict.allowed.contains(rule))
                .cloned(),
        );
        println!(
            "  {:<30} {planted:<32} {first:<7} {}",
            verdict.name,
            remarks.join(", ")
        );
    }
    let mut rules: BTreeMap<&String, [usize; 3]> = BTreeMap::new();
    for verdict in verdicts {
        for rule in &verdict.wanted {
            rules.entry(rule).or_default()[usize::from(!verdict.named.contains(rule))] += 1;
        }
        for rule in verdict.false_alarms() {
            rules.entry(rule).or_default()[2] += 1;
        }
    }
    println!("\n  {:<32} right  missed  false", "rule");
    for (rule, [right, missed, wrong]) in rules {
        println!("  {rule:<32} {right:>5} {missed:>7} {wrong:>6}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(wanted: &[&str], allowed: &[&str], named: &[&str]) -> Verdict {
        let own = |list: &[&str]| list.iter().map(|rule| (*rule).to_owned()).collect();
        Verdict {
            name: "x".into(),
            held_out: false,
            wanted: own(wanted),
            allowed: own(allowed),
            named: own(named),
            first_finding_s: None,
        }
    }

    #[test]
    fn allowed_ones_are_neither_right_nor_wrong() {
        let score = Score::of(&[
            verdict(&["a"], &["b"], &["a", "b"]),
            verdict(&["a"], &[], &["c"]),
            verdict(&[], &[], &[]),
        ]);
        assert_eq!(
            (score.hits, score.misses, score.false_alarms, score.clean_right),
            (1, 1, 1, 1)
        );
        assert!((score.precision() - 0.5).abs() < 1e-9 && score.below(0.95));
    }
}
