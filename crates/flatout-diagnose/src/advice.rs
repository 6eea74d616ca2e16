//! Values to suggest, computed from what the program may use and what it needs. Never the machine's core count.

use crate::analysis::loaders::Loader;
use crate::analysis::{Analysis, Device, compiles};
use crate::candidate::Candidate;
use flatout_core::{Fix, message, shell};
use flatout_record::Phase;

/// Workers that would keep up with the steps, at most what the usable CPUs carry beside the training process, and no more than give the
/// same samples. `None` when the usable CPUs are unknown or leave no room for a worker.
pub fn workers(analysis: &Analysis, loader: &Loader) -> Option<u64> {
    let needed = workers_needed(analysis, loader)?;
    Some(needed.min(most_workers(loader).unwrap_or(needed)))
}

/// The same of a data set that its workers share.
pub fn workers_needed(analysis: &Analysis, loader: &Loader) -> Option<u64> {
    // Ranks on one machine share its CPUs.
    let usable = analysis.usable_cpus()? as u64 / analysis.local_ranks();
    if usable < 2 || on_the_device(analysis) {
        return None;
    }
    let window = analysis.window.as_ref()?;
    // Launching work for a GPU takes a CPU. A training on the CPU that waits for its input leaves more of them.
    let room = match analysis.device() {
        Device::Cpu => (usable as f64 * window.share(Phase::Data)).round() as u64,
        _ => 0,
    }
    .max(usable - 1);
    let rest_ms = (window.step_ms() - window.ms_per_step(Phase::Data)).max(1e-3);
    let prepare_ms = loader
        .prepare_ms()
        .unwrap_or_else(|| window.ms_per_step(Phase::Data));
    // One more than the average needs, because batches do not all cost the same.
    let needed = (prepare_ms / rest_ms).ceil() as u64 + 1;
    Some(needed.clamp(1, room))
}

/// With more workers than this the training would get other samples: each worker of an `IterableDataset` iterates over all of it, unless
/// it asks which worker it runs in.
pub fn most_workers(loader: &Loader) -> Option<u64> {
    loader.repeats_per_worker().then_some(1)
}

/// Why not more of them, and what to write first.
pub fn refuse_more_workers(candidate: Candidate, loader: &Loader) -> Candidate {
    if !loader.repeats_per_worker() {
        return candidate;
    }
    candidate
        .refused(
            "loader.num_workers",
            message!(
                en: "num_workers above 1: every worker of this IterableDataset would read all of it, and \
                samples would repeat",
                zh: "num_workers 大于 1：这个 IterableDataset 的每个 worker 都会读取全部数据，样本会重复"
            ),
        )
        .code(
            None,
            message!(
                en: "For more workers, first shard __iter__: info = get_worker_info(), then \
                islice(source, info.id, None, info.num_workers)",
                zh: "要用更多 worker，先在 __iter__ 中分片：info = get_worker_info()，再用 islice(source, info.id, None, info.num_workers)"
            ),
        )
}

/// Whether the data set hands out tensors that are on the GPU: a forked worker cannot use CUDA.
pub fn on_the_device(analysis: &Analysis) -> bool {
    let device = analysis.of_the_input("input.device");
    device.is_some_and(|fact| fact.value == "cuda")
}

/// Whether `torch.compile` is worth a try: where the program asked for it already, or it failed, other rules tell what became of it; recurrent
/// layers of torch are not compiled.
pub fn may_compile(analysis: &Analysis) -> bool {
    let facts = &analysis.facts;
    let asked = facts.switch("compile.called") == Some(true) || facts.switch("compile.applied") == Some(true);
    let recurrent = facts.switch("model.has_rnn") == Some(true);
    !asked && !recurrent && compiles::errors(analysis.data).count == 0
}

/// How long the window would take if input and steps overlapped perfectly.
pub struct Overlapped {
    /// Threads that only waited for work also used CPU: then the work is what one thread at a time did.
    pub best_s: f64,
    /// All CPU time the program used was work.
    pub worst_s: f64,
}

/// What workers that are spawned need: they run the program's beginning once more, and get the data set pickled.
pub fn spawned(candidate: Candidate, loader: &Loader) -> Candidate {
    if !loader.spawned {
        return candidate;
    }
    candidate.code(
        loader.place.as_ref(),
        message!(
            en: "Workers are spawned here, not forked: each imports PyTorch and your program again, so put the \
            training under if __name__ == \"__main__\":, keep the dataset picklable (no lambdas), and use \
            persistent_workers=True",
            zh: "这里的 worker 以 spawn 方式启动，而不是 fork：每个都会重新导入 PyTorch 和你的程序。请把训练放在 if __name__ == \"__main__\": 之下，保证数据集可以 pickle（不用 lambda），并设置 persistent_workers=True"
        ),
    )
}

/// Whether the command that tries a fix would run: first workers that are spawned end a program that is not made for them.
pub fn may_try(analysis: &Analysis, fix: &Fix) -> bool {
    let first_workers = matches!(fix, Fix::Setting { setting, from, .. }
        if setting == "loader.num_workers" && from.as_deref() == Some("0"));
    let may_fail = |loader: &Loader| loader.spawned && loader.can_spawn != Some(true);
    !first_workers || !analysis.train_loader().is_some_and(may_fail)
}

/// Neither below the steps' own time nor below the CPU work spread over the usable CPUs. How much of the CPU time was work
/// cannot be told: PyTorch's idle threads spin.
pub fn overlapped(analysis: &Analysis) -> Option<Overlapped> {
    let window = analysis.window.as_ref()?;
    let wall_s = window.wall_s();
    let without_data = wall_s - window.seconds(Phase::Data);
    let spread = |cpus: f64| match analysis.usable_cpus() {
        Some(usable) => (cpus * wall_s / usable as f64).max(without_data).min(wall_s),
        None => without_data,
    };
    let used = analysis.host.tree_cpus.unwrap_or(1.0);
    Some(Overlapped {
        best_s: spread(used.min(1.0)),
        worst_s: spread(used),
    })
}

/// Whether `flatout run --apply` can put it in force without an edit, and soon.
fn applies(setting: &str) -> bool {
    let known = flatout_vocabulary::find(setting).filter(|known| known.key == setting);
    known.is_some_and(|known| known.applies && !known.is_slow)
}

/// The command that tries a finding's settings on the same program, without an edit and with what was `applied` this time. `None` when there
/// is nothing to try.
pub fn trial(fixes: &[Fix], command: &[String], applied: &[String]) -> Option<Fix> {
    let mut settings: Vec<String> = Vec::new();
    for fix in fixes {
        match fix {
            // Half precision needs a scaler in the program itself.
            Fix::Setting {
                setting, from, to, ..
            } if applies(setting) && to != "fp16" => {
                settings.push(format!("{setting}={to}"));
                if setting == "loader.num_workers" && from.as_deref() == Some("0") {
                    // As the fix says: the first workers stay between epochs.
                    settings.push("loader.persistent_workers=true".into());
                }
            }
            _ => {}
        }
    }
    if let Some(own) = own_command(command) {
        return own_trial(fixes, own);
    }
    if settings.is_empty() || command.is_empty() {
        return None;
    }
    let key = |setting: &String| setting.split('=').next().map(str::to_owned);
    let kept: Vec<String> = applied
        .iter()
        .filter(|before| !settings.iter().any(|now| key(now) == key(before)))
        .cloned()
        .collect();
    let settings = [kept, settings].concat();
    Some(Fix::Command {
        command: format!(
            "flatout run --apply {} -- {}",
            shell::word(&settings.join(",")),
            shell::line(command)
        ),
        say: message!(en: "try it without editing the program", zh: "不改代码，先试一次"),
    })
}

/// What our own trainer takes as a flag.
const OWN_FLAGS: [(&str, &str); 4] = [
    ("loader.batch_size", "--batch-size"),
    ("amp", "--amp"),
    ("eval.interval", "--eval-interval"),
    ("checkpoint.interval", "--checkpoint-interval"),
];

/// The words behind `flatout`, of a program that is flatout itself.
fn own_command(command: &[String]) -> Option<&[String]> {
    let (program, rest) = command.split_first()?;
    let is_own = std::path::Path::new(program).file_name()? == "flatout";
    is_own.then_some(rest)
}

/// The same training with other flags; it takes each flag once.
fn own_trial(fixes: &[Fix], words: &[String]) -> Option<Fix> {
    if words.first().is_none_or(|word| word != "train") {
        return None;
    }
    let mut words = words.to_vec();
    let mut changed = false;
    for fix in fixes {
        let Fix::Setting { setting, to, .. } = fix else {
            continue;
        };
        let Some((_, flag)) = OWN_FLAGS.iter().find(|(name, _)| name == setting) else {
            continue;
        };
        let same = |word: &String| word.split('=').next().unwrap_or_default().replace('_', "-") == *flag;
        while let Some(at) = words.iter().position(same) {
            let alone = !words[at].contains('=');
            words.remove(at);
            if alone && at < words.len() {
                words.remove(at);
            }
        }
        words.extend([(*flag).to_owned(), to.clone()]);
        changed = true;
    }
    changed.then(|| Fix::Command {
        command: format!("flatout {}", shell::line(&words)),
        say: message!(en: "train again with this setting", zh: "用新设置再训练一次"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use serde_json::json;

    fn starved(cpus: usize, data_share: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, data_share)
            .phase(Phase::Compute, 1.0 - data_share)
            .cpus(cpus)
            .loader(0, json!({"num_workers": 0}))
    }

    fn suggested_for(build: Build) -> Option<u64> {
        let data = build.done();
        let analysis = Analysis::new(&data);
        workers(&analysis, analysis.train_loader()?)
    }

    fn suggested(cpus: usize, data_share: f64) -> Option<u64> {
        suggested_for(starved(cpus, data_share))
    }

    #[test]
    fn compiling_is_not_offered_where_it_was_tried() {
        let may = |build: Build| may_compile(&Analysis::new(&build.done()));
        assert!(may(Build::steady(20)));
        assert!(!may(Build::steady(20)
            .fact("compile.called", true)
            .fact("compile.applied", false)));
        assert!(!may(Build::steady(20).fact("model.has_rnn", true)));
    }

    #[test]
    fn a_training_on_the_cpu_that_waits_leaves_its_cpu_to_a_worker() {
        assert_eq!(suggested_for(starved(2, 0.9).fact("device", "cpu")), Some(2));
        assert_eq!(suggested_for(starved(2, 0.3).fact("device", "cpu")), Some(1));
    }

    #[test]
    fn spinning_threads_widen_the_bounds_only() {
        let data = Build::steady(20)
            .phase(Phase::Data, 0.8)
            .phase(Phase::Compute, 0.2)
            .cpus(2)
            .workers(0, 2.0, 0)
            .done();
        let analysis = Analysis::new(&data);
        let wall_s = analysis.window.as_ref().unwrap().wall_s();
        let bounds = overlapped(&analysis).unwrap();
        assert!((bounds.best_s - wall_s / 2.0).abs() < 1e-6 && (bounds.worst_s - wall_s).abs() < 1e-6);
    }

    #[test]
    fn a_trial_is_one_line_for_the_shell() {
        let fix = |setting: &str, to: &str| Fix::Setting {
            setting: setting.into(),
            from: None,
            to: to.into(),
            say: flatout_core::Message::default(),
        };
        let command: Vec<String> = ["python", "my train.py", "--name", "it's"]
            .map(str::to_owned)
            .to_vec();
        let own = command;
        let Some(Fix::Command { command, .. }) =
            trial(&[fix("loader.num_workers", "3"), fix("compile", "on")], &own, &[])
        else {
            panic!("no trial");
        };
        assert_eq!(
            command,
            r"flatout run --apply loader.num_workers=3 -- python 'my train.py' --name 'it'\''s'"
        );
        assert!(trial(&[fix("compile", "on")], &["python".into()], &[]).is_none());
        assert!(trial(&[fix("tf32", "on")], &[], &[]).is_none());
        // What was in force stays so, and the first workers stay between epochs.
        let applied = ["amp=bf16".to_owned(), "loader.num_workers=0".to_owned()];
        let first = Fix::Setting {
            setting: "loader.num_workers".into(),
            from: Some("0".into()),
            to: "2".into(),
            say: flatout_core::Message::default(),
        };
        let Some(Fix::Command { command, .. }) = trial(&[first], &["python".into()], &applied) else {
            panic!("no trial");
        };
        assert_eq!(
            command,
            "flatout run --apply amp=bf16,loader.num_workers=2,loader.persistent_workers=true -- python"
        );
    }

    #[test]
    fn an_unsharded_iterable_dataset_gets_one_worker_at_most() {
        let of = |facts| {
            let build = Build::steady(20)
                .phase(Phase::Data, 0.75)
                .phase(Phase::Compute, 0.25);
            suggested_for(build.cpus(16).loader(0, facts))
        };
        assert_eq!(
            of(json!({"num_workers": 0, "iterable": true, "sharded": false})),
            Some(1)
        );
        assert_eq!(of(json!({"num_workers": 0, "iterable": true})), Some(1));
        assert_eq!(
            of(json!({"num_workers": 0, "iterable": true, "sharded": true})),
            Some(4)
        );
    }

    #[test]
    fn enough_but_never_more_than_the_cpus() {
        assert_eq!(suggested(16, 0.75), Some(4));
        assert_eq!(suggested(4, 0.99), Some(3));
        assert_eq!(suggested(1, 0.9), None);
        assert_eq!(suggested(2, 0.9), Some(1));
    }
}
