//! What to change in the next request, from what this one used. Thresholds after jobstats: a GPU below 15% is as good as idle.

use flatout_core::{Message, message, units};
use flatout_diagnose::verdict::Verdict;
use flatout_slurm::{JobAccount, is_over};

/// Below it a GPU is as good as idle (jobstats paints it red).
const GPU_IDLE: f64 = 0.15;
/// Below this share of what was asked for, less is enough; a second request is not to be tight either.
const MEMORY_LITTLE: f64 = 0.2;
const TIME_LITTLE: f64 = 0.1;
/// Room left above the measured peak in advice.
const ROOM: f64 = 1.3;
/// Shorter jobs say nothing about a request.
const LONG_ENOUGH_S: f64 = 60.0;
/// Of the granted CPUs' time.
const CPU_LITTLE: f64 = 0.25;

pub fn of(account: &JobAccount, verdicts: &[&Verdict]) -> Vec<Message> {
    let mut notes = Vec::new();
    match account.state.split(' ').next().unwrap_or("") {
        "TIMEOUT" => notes.push(message!(
            en: "the job hit its time limit: request more time (--time), and save checkpoints to resume from",
            zh: "作业因超时被终止：请申请更长时间（--time），并保存 checkpoint 以便续训"
        )),
        "OUT_OF_MEMORY" => notes.push(message!(
            en: "the job was killed for exceeding its memory: request more (--mem), or use fewer DataLoader \
            workers",
            zh: "作业因内存不足被终止：请申请更多内存（--mem），或减少 DataLoader 的 worker 数"
        )),
        _ => {}
    }
    let long_enough = account.elapsed_s.is_some_and(|elapsed| elapsed >= LONG_ENOUGH_S);
    if is_over(&account.state) && long_enough {
        notes.extend(time(account));
        notes.extend(memory(account));
        notes.extend(cpus(account));
    }
    notes.extend(gpus(account, verdicts));
    notes
}

fn time(account: &JobAccount) -> Option<Message> {
    let (used, asked) = (account.elapsed_s?, account.limit_s?);
    let completed = account.state == "COMPLETED";
    (completed && used < asked * TIME_LITTLE).then(|| {
        let (used, asked) = (units::duration(used), units::duration(asked));
        message!(
            en: "requested {asked}, used {used}: a shorter --time starts sooner",
            zh: "申请了 {asked}，实际用了 {used}：把 --time 调短，排队会更快"
        )
    })
}

fn memory(account: &JobAccount) -> Option<Message> {
    let (used, asked) = (account.memory_peak_bytes?, account.memory_bytes?);
    // The peak is one task's: with several, the sum is unknown.
    let one_task = account.tasks.is_none_or(|tasks| tasks == 1);
    (one_task && used > 0.0 && used < asked * MEMORY_LITTLE).then(|| {
        let enough = units::bytes(used * ROOM);
        let (used, asked) = (units::bytes(used), units::bytes(asked));
        message!(
            en: "requested {asked} of memory, used {used}: {enough} would be enough",
            zh: "申请了 {asked} 内存，峰值只用了 {used}：申请 {enough} 即可"
        )
    })
}

fn cpus(account: &JobAccount) -> Option<Message> {
    let (cpus, used, elapsed) = (account.cpus?, account.cpu_s?, account.elapsed_s?);
    let busy = used / elapsed;
    (cpus > 1 && used > 0.0 && busy < cpus as f64 * CPU_LITTLE).then(|| {
        let busy = units::significant(busy);
        message!(
            en: "allocated {cpus} CPUs, used {busy}: request fewer, or let the DataLoader use them \
            (num_workers)",
            zh: "分到 {cpus} 个 CPU，平均只用了 {busy} 个：请少申请一些，或让 DataLoader 用起来（num_workers）"
        )
    })
}

fn gpus(account: &JobAccount, verdicts: &[&Verdict]) -> Vec<Message> {
    let mut notes = Vec::new();
    let mut seen = 0u64;
    for (index, gpu) in verdicts.iter().flat_map(|verdict| &verdict.gpus) {
        let Some(utilisation) = &gpu.utilisation else {
            continue;
        };
        seen += 1;
        if utilisation.spread.max <= 0.0 {
            notes.push(
                message!(en: "GPU {index} was allocated but never used", zh: "GPU {index} 已分配但从未使用"),
            );
        } else if utilisation.spread.mean < GPU_IDLE {
            let mean = units::percent(utilisation.spread.mean);
            notes.push(message!(
                en: "GPU {index} was only {mean} busy: find out why with `flatout diagnose`",
                zh: "GPU {index} 平均利用率只有 {mean}：用 `flatout diagnose` 查原因"
            ));
        }
    }
    if seen == 0 && account.gpus.unwrap_or(0) > 0 && account.gpu_utilisation.is_none() {
        notes.push(message!(
            en: "GPU utilization is unknown: nothing recorded it",
            zh: "GPU 利用率未知：没有任何记录"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobAccount {
        JobAccount {
            state: "COMPLETED".into(),
            elapsed_s: Some(3600.0),
            limit_s: Some(7200.0),
            cpus: Some(8),
            cpu_s: Some(5.0 * 3600.0),
            memory_bytes: Some(64e9),
            memory_peak_bytes: Some(40e9),
            gpus: Some(1),
            gpu_utilisation: Some(0.8),
            ..JobAccount::default()
        }
    }

    #[test]
    fn a_fair_request_needs_no_word() {
        assert_eq!(of(&job(), &[]), []);
        assert_eq!(
            of(
                &JobAccount {
                    state: "RUNNING".into(),
                    ..JobAccount::default()
                },
                &[]
            ),
            []
        );
    }

    #[test]
    fn what_was_too_much_or_too_little_is_named() {
        let asked = JobAccount {
            limit_s: Some(360_000.0),
            memory_peak_bytes: Some(2e9),
            cpu_s: Some(3600.0),
            gpu_utilisation: None,
            ..job()
        };
        let notes: Vec<String> = of(&asked, &[]).into_iter().map(|note| note.en).collect();
        assert_eq!(notes.len(), 4, "{notes:?}");
        let out = of(
            &JobAccount {
                state: "OUT_OF_MEMORY".into(),
                ..job()
            },
            &[],
        );
        assert!(out[0].en.contains("--mem"), "{out:?}");
        // The peak of one task of many says nothing about the sum.
        let many = JobAccount {
            memory_peak_bytes: Some(2e9),
            tasks: Some(8),
            ..job()
        };
        assert_eq!(of(&many, &[]), []);
    }
}
