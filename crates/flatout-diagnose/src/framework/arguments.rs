//! Arguments of frameworks that no setting of ours stands for: how often they evaluate, save and log, and what else costs time inside of them.

use crate::analysis::Analysis;
use crate::rules::device::padded_batches;
use crate::rules::interruptions::{checkpoint_too_often, evaluation_too_often};
use crate::rules::lines::{hidden_synchronization, logging_every_step};
use crate::rules::memory::recomputing_with_free_memory;
use crate::rules::sync::sync_every_step;
use flatout_vocabulary::Framework;

/// Steps between two lines of a log: Lightning's own default.
const LOG_STEPS: u64 = 50;

/// What to write for the cause that this rule names; `within`: it is inside the framework, not in a line of the user's.
pub fn of_rule(analysis: &Analysis, framework: Framework, rule: &str, within: bool) -> Option<String> {
    let hugging_face = framework == Framework::Transformers;
    let lightning = framework == Framework::Lightning;
    match rule {
        evaluation_too_often::ID if hugging_face => {
            let steps = evaluation_too_often::wanted_steps(analysis)?;
            // Renamed in 4.41.
            let old = version(analysis).is_some_and(|version| version < (4, 41));
            let strategy = if old {
                "evaluation_strategy"
            } else {
                "eval_strategy"
            };
            Some(format!("{strategy}=\"steps\", eval_steps={steps}"))
        }
        evaluation_too_often::ID if lightning => {
            let steps = evaluation_too_often::wanted_steps(analysis)?;
            Some(validation_of_lightning(
                steps * batches_per_step(analysis),
                epoch(analysis),
            ))
        }
        checkpoint_too_often::ID if hugging_face => {
            let steps = checkpoint_too_often::wanted_steps(analysis)?;
            Some(format!("save_strategy=\"steps\", save_steps={steps}"))
        }
        checkpoint_too_often::ID if lightning => {
            let steps = checkpoint_too_often::wanted_steps(analysis)?;
            Some(format!(
                "callbacks=[ModelCheckpoint(every_n_train_steps={steps})]"
            ))
        }
        logging_every_step::ID if hugging_face && within => Some(format!("logging_steps={LOG_STEPS}")),
        logging_every_step::ID if lightning && within => Some(format!("log_every_n_steps={LOG_STEPS}")),
        // Its trainer looks at every loss for values that are not numbers.
        sync_every_step::ID | hidden_synchronization::ID if hugging_face && within => {
            Some("logging_nan_inf_filter=False".to_owned())
        }
        padded_batches::ID if hugging_face && !padded_batches::trims(analysis) => {
            let argument = match version(analysis)? {
                version if version >= (5, 0) => "train_sampling_strategy=\"group_by_length\"",
                _ => "group_by_length=True",
            };
            Some(argument.to_owned())
        }
        recomputing_with_free_memory::ID if hugging_face => Some("gradient_checkpointing=False".to_owned()),
        _ => None,
    }
}

/// Major and minor of the transformers that the program imported.
fn version(analysis: &Analysis) -> Option<(u32, u32)> {
    let text = analysis.facts.text("transformers.version")?;
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Lightning counts batches, and refuses more of them than an epoch has unless it is told to count across epochs.
fn validation_of_lightning(batches: u64, epoch: Option<u64>) -> String {
    match epoch {
        Some(epoch) if batches < epoch => format!("val_check_interval={batches}"),
        Some(epoch) if epoch > 0 => format!("check_val_every_n_epoch={}", batches.div_ceil(epoch)),
        _ => format!("val_check_interval={batches}, check_val_every_n_epoch=None"),
    }
}

/// Batches of an epoch, where the loader knows its length.
fn epoch(analysis: &Analysis) -> Option<u64> {
    let loader = analysis.train_loader()?;
    Some(
        loader
            .length?
            .div_ceil(loader.batch_size.filter(|size| *size > 0)?),
    )
}

/// More than one where gradients are accumulated.
fn batches_per_step(analysis: &Analysis) -> u64 {
    let taken = analysis.train_loader().map(|loader| loader.batches).unwrap_or(0);
    let steps = analysis.window.as_ref().map_or(0, |window| window.steps);
    ((taken as f64 / steps.max(1) as f64).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_core::{Finding, Fix};
    use flatout_record::{EventKind, Phase, RunData, SourceLine};
    use serde_json::json;

    #[test]
    fn lightning_is_told_how_to_count() {
        assert_eq!(validation_of_lightning(50, Some(80)), "val_check_interval=50");
        assert_eq!(
            validation_of_lightning(200, Some(80)),
            "check_val_every_n_epoch=3"
        );
        assert_eq!(
            validation_of_lightning(200, None),
            "val_check_interval=200, check_val_every_n_epoch=None"
        );
    }

    /// A program of this framework, half of whose time goes to evaluating and half to saving.
    fn framework(file: &str, call: &str, phase: Phase) -> RunData {
        let inside = format!("loop (/v/lib/python3.11/site-packages/{file}:99)");
        let mut data = Build::steady(20)
            .phase(phase, 0.5)
            .phase(Phase::Compute, 0.5)
            .loader(0, json!({"num_workers": 2, "batch_size": 8, "length": 80_000}))
            .loader_use(0, 100, 1.0)
            .each_second(move || {
                let duration_ms = 500.0;
                match phase {
                    Phase::Eval => EventKind::Eval {
                        duration_ms,
                        batches: Some(4),
                        place: None,
                    },
                    _ => EventKind::Checkpoint {
                        duration_ms,
                        bytes: Some(1),
                        place: None,
                    },
                }
            })
            .stack_of(&["<module> (t.py:50)", &inside], 100, Some(Phase::Compute), false)
            .done();
        let line = |line, text: &str| SourceLine {
            file: "t.py".into(),
            line,
            text: text.to_owned(),
            ..SourceLine::default()
        };
        data.lines = vec![line(40, call), line(50, "trainer.train()")];
        data
    }

    fn fix(data: &RunData, rule: &str) -> String {
        let found = crate::diagnose(data).findings;
        let finding: &Finding = found.iter().find(|finding| finding.rule == rule).unwrap();
        let mut words = finding.fixes.iter().filter_map(|fix| match fix {
            Fix::Code { say, place } if say.en.contains("(…, ") => Some(format!(
                "{} {}",
                place.as_ref().map_or(0, |place| place.line),
                say.en
            )),
            _ => None,
        });
        words.next_back().unwrap_or_default()
    }

    #[test]
    fn how_often_is_an_argument_of_the_framework() {
        let hugging_face = |phase| framework("transformers/trainer.py", "args = TrainingArguments(", phase);
        let lightning = |phase| framework("lightning/pytorch/loops/fit.py", "trainer = Trainer(", phase);
        assert_eq!(
            fix(&hugging_face(Phase::Eval), evaluation_too_often::ID),
            "40 TrainingArguments(…, eval_strategy=\"steps\", eval_steps=1900)"
        );
        assert_eq!(
            fix(&hugging_face(Phase::Checkpoint), checkpoint_too_often::ID),
            "40 TrainingArguments(…, save_strategy=\"steps\", save_steps=1900)"
        );
        assert_eq!(
            fix(&lightning(Phase::Eval), evaluation_too_often::ID),
            "40 Trainer(…, val_check_interval=1900)"
        );
        assert_eq!(
            fix(&lightning(Phase::Checkpoint), checkpoint_too_often::ID),
            "40 Trainer(…, callbacks=[ModelCheckpoint(every_n_train_steps=1900)])"
        );
    }

    #[test]
    fn a_line_of_the_users_own_is_no_argument() {
        let data = Build::steady(20).done();
        let analysis = Analysis::new(&data);
        let of = |framework, rule, within| of_rule(&analysis, framework, rule, within);
        let rule = logging_every_step::ID;
        assert_eq!(
            of(Framework::Transformers, rule, true).unwrap(),
            "logging_steps=50"
        );
        assert_eq!(
            of(Framework::Lightning, rule, true).unwrap(),
            "log_every_n_steps=50"
        );
        assert!(of(Framework::Transformers, rule, false).is_none());
        assert!(of(Framework::Accelerate, rule, true).is_none());
        let rule = recomputing_with_free_memory::ID;
        assert_eq!(
            of(Framework::Transformers, rule, false).unwrap(),
            "gradient_checkpointing=False"
        );
        // Its name depends on the version.
        assert!(of(Framework::Transformers, padded_batches::ID, false).is_none());
        for (version, argument) in [
            ("4.57.1", "group_by_length=True"),
            ("5.2.0", "train_sampling_strategy=\"group_by_length\""),
        ] {
            let data = Build::steady(20).fact("transformers.version", version).done();
            let found = of_rule(
                &Analysis::new(&data),
                Framework::Transformers,
                padded_batches::ID,
                false,
            );
            assert_eq!(found.unwrap(), argument);
        }
    }
}
