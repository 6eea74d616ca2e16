//! # memory-given-back
//!
//! ## What it detects
//! The training process returns memory to the kernel and requests it again at every step.
//!
//! ## Why it is slow
//! The tensors of a step (activations, gradients, batches in host memory) are freed when the step is done. The C library returns
//! large blocks to the kernel at once, so in the next step every page of them causes a page fault: the kernel finds a page, fills it
//! with zeros and maps it, while the step waits.
//!
//! ## Example
//! ```sh
//! python train.py
//! ```
//!
//! ## Use instead
//! ```sh
//! MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824 python train.py
//! ```
//!
//! ## Evidence
//! Page faults per second of the training process, minus those explained by its growth; the cost of a page fault on this machine,
//! which flatout measures when the run starts; and the process's CPU time in the kernel. The reported share is faults times cost, and
//! never more than the kernel's CPU time.
//!
//! ## Fix
//! Let the C library keep freed memory: `malloc.keep=on`, which calls `mallopt` before the program starts, or
//! `MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824` in the program's environment. The process then keeps the
//! most memory it ever needed. An older glibc rejects an `MMAP` threshold above 33554432; use `MALLOC_MMAP_MAX_=0` instead.
//!
//! ## When it is wrong
//! With another allocator than glibc's (jemalloc, tcmalloc) these settings have no effect. Mapping and unmapping files also causes
//! page faults, which no allocator setting avoids; flatout distinguishes them by their cost only. DataLoader workers are not
//! examined: their batches are in shared memory, where every page is new. If memory is short, keeping it may cost more than it saves.
//!
//! ## References
//! `mallopt(3)`: `M_TRIM_THRESHOLD` and `M_MMAP_THRESHOLD`. `proc_pid_stat(5)`: `minflt` and `stime`.
//! <https://man7.org/linux/man-pages/man3/mallopt.3.html>
//!
//! ---
//! ## 检测什么
//! 训练进程每一步都把内存归还给内核，下一步又重新申请。
//! ## 为什么慢
//! 一步中的 tensor（激活值、梯度、主机内存里的 batch）用完就释放。C 库会把大块内存立即还给内核；下一步再用到时，每一页都触发一次缺页：内核
//! 要找到空闲页、清零、写入页表，这期间训练在等待。
//! ## 证据
//! 训练进程每秒的缺页次数（减去内存增长对应的页数）；flatout 开始监控时在本机实测的单页开销；该进程 CPU 时间中内核所占的比例。页面开销为前两者的乘积，
//! 且不超过第三者。
//! ## 怎么改
//! 让 C 库保留已释放的内存：`malloc.keep=on`（在程序开始前调用 `mallopt`），或在程序的环境变量中设置
//! `MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824`。此后进程会一直占用它曾经用到的最大内存。
//! 较旧的 glibc 拒绝大于 33554432 的 `MMAP` 阈值；这时改用 `MALLOC_MMAP_MAX_=0`，效果相同。
//! ## 何时不成立
//! 使用 glibc 以外的内存分配器（jemalloc、tcmalloc）时，这些设置不起作用，应使用它们自己的选项。反复映射、释放文件也会缺页，分配器的设置对此无效，
//! 只能从单次开销上与新内存页区分。
//! 不检查 DataLoader 的 worker：它们的 batch 放在共享内存里，每个 batch 的页都是新的。内存紧张时，保留内存可能得不偿失。
//! ## 参考
//! `mallopt(3)` 中的 `M_TRIM_THRESHOLD` 和 `M_MMAP_THRESHOLD`。`proc_pid_stat(5)` 中的 `minflt` 和 `stime`。
//! <https://man7.org/linux/man-pages/man3/mallopt.3.html>

use crate::analysis::pages::Pages;
use crate::analysis::window::Window;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "memory-given-back";
pub const WORST: Severity = Severity::Critical;

/// As for the garbage collector: PyTorch's own plugin speaks at 5%.
const SHARE: f64 = 0.05;
/// From here on it is a warning.
const WARNED: f64 = 0.2;
/// Steps lose more than the kernel's time, because a fresh page is also cold in the processor's caches and tables: with the memory kept, five
/// programs lost 1.06 to 1.26 × the kernel's share of their CPU time, and a sixth 2.8 ×.
const MORE_THAN_KERNEL: f64 = 1.5;
/// Of the kernel's time, what fresh pages must explain: where it is less, the faults are of another kind. Measured: 0.45 to 0.98 where freed
/// memory was given back, 0.2 where a file was mapped anew for every batch, whose faults bring many pages each.
const OF_KERNEL: f64 = 1.0 / 3.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let (window, pages) = (analysis.window.as_ref()?, analysis.pages.as_ref()?);
    // What is left although memory is kept, keeping cannot mend.
    if analysis.facts.is_applied("malloc.keep") {
        return None;
    }
    let (certain_s, possible_s) = seconds(analysis, window, pages);
    let share = pages.share();
    if !matters(pages) || possible_s / window.wall_s() < SHARE {
        return None;
    }
    let (shown, rate) = (units::percent(share), units::count(pages.again_s));
    let candidate = Candidate::new(
        ID,
        // Below that it is worth a try, not a warning: most trainings on a CPU give some memory back.
        severity_of(share).min(if share < WARNED {
            Severity::Information
        } else {
            WORST
        }),
        message!(
            en: "{shown} of CPU time goes to memory freed and faulted in again: {rate} pages/s",
            zh: "{shown} 的 CPU 时间花在释放后又重新申请的内存上：每秒 {rate} 页"
        ),
    )
    .confidence(Confidence::Medium)
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "CPU time spent on page faults", zh: "处理缺页的 CPU 时间"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        ),
    )
    .evidence(analysis.in_window(Evidence::new(
        message!(en: "pages faulted in again per second", zh: "每秒重新申请的页数"),
        pages.again_s.round(),
        "",
    )))
    .evidence(Evidence::new(
        message!(en: "cost of a page fault on this machine", zh: "本机单次缺页开销"),
        pages.page_us,
        "µs",
    ))
    .evidence(analysis.in_window(Evidence::new(
        message!(en: "CPU time in the kernel", zh: "内核所用的 CPU 时间"),
        pages.kernel_cpus / pages.cpus * 100.0,
        "%",
    )));
    Some(claiming(analysis, candidate, certain_s, possible_s).setting(
        "malloc.keep",
        None,
        "on",
        message!(
            en: "makes the C library keep freed memory; by hand: MALLOC_TRIM_THRESHOLD_=1073741824 \
            MALLOC_MMAP_THRESHOLD_=1073741824 in the program's environment",
            zh: "让 C 库保留已释放的内存；手动设置：在程序的环境变量中加入 MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824"
        ),
    ))
}

/// Whether pages take a visible part of the CPU time, and are what the kernel's time goes to.
pub fn matters(pages: &Pages) -> bool {
    pages.share() >= SHARE && pages.pages_cpus() >= pages.kernel_cpus * OF_KERNEL
}

/// Seconds of the window that surely go, and that may go: as many as the pages cost here at least, and as all of the kernel's time with what
/// comes on top. Threads that are not the one that waits spin meanwhile, so the part of the CPU time is the part of the step.
fn seconds(analysis: &Analysis, window: &Window, pages: &Pages) -> (f64, f64) {
    let of_wall =
        |cpus: f64| (cpus / pages.cpus.max(1.0) * window.wall_s()).min(delaying_s(analysis, window));
    (
        of_wall(pages.pages_cpus()),
        of_wall(pages.kernel_cpus * MORE_THAN_KERNEL),
    )
}

/// The time in which what this process does delays the steps: on a GPU only while the device waits for it.
fn delaying_s(analysis: &Analysis, window: &Window) -> f64 {
    let computing_s = match analysis.device() {
        Device::Cuda => analysis.dispatch_idle_s().unwrap_or(0.0),
        _ => window.seconds(Phase::Compute),
    };
    let rest = [Phase::Other, Phase::Eval].map(|phase| window.seconds(phase));
    let loading_s = if loads_itself(analysis) {
        window.seconds(Phase::Data)
    } else {
        0.0
    };
    computing_s + loading_s + rest.iter().sum::<f64>() + window.unexplained_s()
}

/// Whether batches are made in the training process.
fn loads_itself(analysis: &Analysis) -> bool {
    analysis
        .train_loader()
        .is_none_or(|loader| loader.num_workers == Some(0))
}

/// Faults do not tell the phase they fell into.
fn claiming(analysis: &Analysis, candidate: Candidate, certain_s: f64, possible_s: f64) -> Candidate {
    let computing = match analysis.device() {
        Device::Cuda => Stretch::Dispatch,
        _ => Stretch::Device,
    };
    let candidate = candidate
        // The line that allocates is narrower.
        .claims(computing, Reach::General, certain_s, possible_s)
        .or_in(Stretch::Other);
    let candidate = if loads_itself(analysis) {
        candidate.or_in(Stretch::Data)
    } else {
        candidate
    };
    candidate.or_in(Stretch::Eval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;
    use serde_json::json;

    /// 0.4 of two CPUs for pages of 2 µs.
    fn faulting() -> Build {
        Build::steady(20).fact("device", "cpu").pages(200_000.0, 0.5, 2.0)
    }

    #[test]
    fn fires() {
        let found = run(check, faulting()).unwrap();
        assert!(
            (found.evidence[0].value - 20.0).abs() < 1e-6,
            "{:?}",
            found.evidence
        );
        assert!(
            found
                .fixes
                .iter()
                .any(|fix| matches!(fix, Fix::Setting { setting, .. } if setting == "malloc.keep"))
        );
        assert_eq!(causes(faulting()), [ID]);
    }

    #[test]
    fn gain_is_bounded_by_page_cost_and_kernel_time() {
        let gain = crate::diagnose(&faulting().done()).findings[0].gain.unwrap();
        assert!((gain.low - 1.0 / 0.8).abs() < 1e-6, "{gain:?}");
        assert!(
            (gain.high - 1.0 / (1.0 - 0.25 * MORE_THAN_KERNEL)).abs() < 1e-6,
            "{gain:?}"
        );
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(20).pages(500.0, 0.02, 2.0)).is_none());
        // The kernel is busy with something else, or the faults are other than fresh pages.
        assert!(run(check, Build::steady(20).pages(500.0, 1.0, 2.0)).is_none());
        assert!(run(check, Build::steady(20).pages(200_000.0, 0.02, 2.0)).is_none());
        assert!(run(check, Build::steady(20).pages(100_000.0, 0.8, 2.0)).is_none());
        assert!(run(check, faulting().fact("apply.malloc.keep", true)).is_none());
    }

    #[test]
    fn quiet_where_memory_grows() {
        let mut data = faulting().done();
        for (second, sample) in data.samples.iter_mut().enumerate() {
            sample.processes.get_mut(&100).unwrap().rss_bytes = Some(second as u64 * 200_000 * 4096);
        }
        assert!(check(&Analysis::new(&data)).is_none());
    }

    #[test]
    fn quiet_where_the_start_took_the_pages() {
        let mut data = Build::steady(20).pages(0.0, 0.5, 2.0).done();
        for sample in &mut data.samples[..3] {
            sample.processes.get_mut(&100).unwrap().faults_s = Some(400_000.0);
        }
        assert!(check(&Analysis::new(&data)).is_none());
    }

    #[test]
    fn a_gpu_that_computes_meanwhile_waits_for_nothing() {
        let on_gpu = |busy: f64| faulting().gpu(|gpu| gpu.util = Some(busy)).busy(busy);
        assert!(run(check, on_gpu(0.98)).is_none());
        let gain = run(check, on_gpu(0.3)).is_some();
        assert!(gain, "the host is what the device waits for");
    }

    #[test]
    fn batches_that_workers_make_are_not_waited_for_because_of_it() {
        let waiting = |workers: u64| {
            faulting()
                .phase(Phase::Data, 0.98)
                .phase(Phase::Compute, 0.02)
                .loader(0, json!({"num_workers": workers}))
                .loader_use(0, 100, 980.0)
        };
        assert!(run(check, waiting(0)).is_some());
        assert!(run(check, waiting(2)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
        let mut data = faulting().done();
        data.info.host.as_mut().unwrap().page = None;
        assert!(check(&Analysis::new(&data)).is_none());
    }
}
