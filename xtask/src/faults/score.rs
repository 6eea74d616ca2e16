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
    /// What the record so far named first, if that was wrong: `flatout run` would have said it.
    pub rash: Vec<String>,
}

impl Verdict {
    fn hits(&self) -> usize {
        self.wanted
            .iter()
            .filter(|rule| self.named.contains(rule))
            .count()
    }

    pub fn misses(&self) -> Vec<&String> {
        self.wanted
            .iter()
            .filter(|rule| !self.named.contains(rule))
            .collect()
    }

    /// Everything planted was named and nothing else.
    pub fn is_right(&self) -> bool {
        self.misses().is_empty() && self.false_alarms().is_empty()
    }

    fn false_alarms(&self) -> Vec<&String> {
        self.named
            .iter()
            .filter(|rule| !self.wanted.contains(rule) && !self.allowed.contains(rule))
            .collect()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Score {
    hits: usize,
    misses: usize,
    false_alarms: usize,
    clean: usize,
    clean_right: usize,
    /// After the first step, of each program whose cause was named.
    first_findings_s: Vec<f64>,
    rash: usize,
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
            score.first_findings_s.extend(verdict.first_finding_s);
            score.rash += usize::from(!verdict.rash.is_empty());
        }
        score.first_findings_s.sort_by(f64::total_cmp);
        score
    }

    fn precision(&self) -> f64 {
        share(self.hits, self.hits + self.false_alarms)
    }

    fn recall(&self) -> f64 {
        share(self.hits, self.hits + self.misses)
    }

    pub fn below(&self, wanted: f64) -> bool {
        self.precision() < wanted || self.recall() < wanted
    }

    pub fn line(&self) -> String {
        let quantile = |share: f64| flatout_core::stats::quantile(&self.first_findings_s, share);
        format!(
            "precision {:.1}% ({} right, {} false alarms), recall {:.1}% ({} missed), clean twins {}/{}; first finding \
             {:.0} s after the first step (median), {:.0} s (slowest), {} said something wrong before",
            self.precision() * 100.0,
            self.hits,
            self.false_alarms,
            self.recall() * 100.0,
            self.misses,
            self.clean_right,
            self.clean,
            quantile(0.5),
            quantile(1.0),
            self.rash,
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
        remarks.extend(verdict.rash.iter().map(|rule| format!("at first: {rule}")));
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
    confusion(verdicts);
}

/// A line of the confusion table.
#[derive(Default)]
struct Row {
    right: usize,
    missed: usize,
    wrong: usize,
    /// What was named in its place, and in whose place it was named.
    instead: Vec<String>,
}

/// Each rule against all others: where it was planted and named, planted and not named, named and not planted.
fn confusion(verdicts: &[Verdict]) {
    let mut rules: BTreeMap<&str, Row> = BTreeMap::new();
    let list = |rules: Vec<&String>| match rules.as_slice() {
        [] => "nothing".to_owned(),
        some => some
            .iter()
            .map(|rule| rule.as_str())
            .collect::<Vec<_>>()
            .join(" "),
    };
    for verdict in verdicts {
        for rule in &verdict.wanted {
            let row = rules.entry(rule).or_default();
            if verdict.named.contains(rule) {
                row.right += 1;
            } else {
                row.missed += 1;
                row.instead
                    .push(format!("named: {}", list(verdict.named.iter().collect())));
            }
        }
        for rule in verdict.false_alarms() {
            let row = rules.entry(rule).or_default();
            row.wrong += 1;
            row.instead
                .push(format!("planted: {}", list(verdict.wanted.iter().collect())));
        }
    }
    println!("\n  {:<32} right  missed  false", "rule");
    for (rule, row) in rules {
        let Row {
            right,
            missed,
            wrong,
            instead,
        } = row;
        println!(
            "  {rule:<32} {right:>5} {missed:>7} {wrong:>6}  {}",
            instead.join("; ")
        );
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
            rash: Vec::new(),
        }
    }

    #[test]
    fn allowed_findings_are_not_scored() {
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
