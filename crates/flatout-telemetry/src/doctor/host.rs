//! CPUs, memory, what the kernel tells, and whether a record can be written.

use super::{Area, Check, Health};
use crate::sampler::job_from_environment;
use flatout_core::cpus::UsableCpus;
use flatout_core::{Message, message, units};
use flatout_record::runs_folder;
use std::fs;
use std::path::Path;

/// Docker's default of 64 MiB is too little for loader workers; a gibibyte is enough for most.
const SMALL_SHARED_MEMORY: u64 = 1 << 30;

pub fn check(checks: &mut Vec<Check>) {
    checks.push(cpus());
    checks.extend(shared_memory());
    checks.push(pressure());
    checks.push(ptrace());
    checks.push(records());
    checks.extend(job());
}

fn cpus() -> Check {
    let cpus = UsableCpus::here();
    let (online, affinity, usable) = (cpus.online, cpus.affinity, cpus.count());
    let quota = cpus.quota.map_or_else(
        || message!(en: "none", zh: "无"),
        |quota| Message::verbatim(units::significant(quota)),
    );
    let text = Message {
        en: format!(
            "{usable} usable CPUs (machine {online}, affinity {affinity}, cgroup quota {})",
            quota.en
        ),
        zh: format!(
            "可用 CPU {usable} 个（机器 {online}，亲和性 {affinity}，cgroup 配额 {}）",
            quota.zh
        ),
    };
    let narrowed = usable < online;
    let health = if narrowed { Health::Note } else { Health::Good };
    let check = Check::new("cpus", Area::Host, health, text)
        .with("cpus", cpus)
        .with("usable", usable);
    if narrowed {
        check.cost(message!(
            en: "programs that set their workers by the machine's {online} cores start too many",
            zh: "按机器 {online} 个核心来开 worker 的程序会开得太多"
        ))
    } else {
        check
    }
}

fn shared_memory() -> Option<Check> {
    let (used, total) = crate::sources::host::shared_memory()?;
    let (shown_used, shown_total) = (units::bytes(used as f64), units::bytes(total as f64));
    let small = total < SMALL_SHARED_MEMORY;
    let health = if small { Health::Problem } else { Health::Good };
    let text = message!(en: "/dev/shm: {shown_used} of {shown_total} used", zh: "/dev/shm：已用 {shown_used}，共 {shown_total}");
    let check = Check::new("shared-memory", Area::Host, health, text)
        .with("used_bytes", used)
        .with("total_bytes", total);
    Some(if small {
        check
            .cost(message!(en: "DataLoader workers pass batches through it and die with a bus error when it is full", zh: "DataLoader worker 通过它传递 batch，写满时会因 bus error 退出"))
            .remedy(Message::verbatim("docker run --shm-size=16g …"))
    } else {
        check
    })
}

fn pressure() -> Check {
    let there = fs::read("/proc/pressure/io").is_ok();
    let (health, text) = if there {
        (
            Health::Good,
            message!(en: "pressure information (PSI) is available", zh: "可读取压力信息（PSI）"),
        )
    } else {
        (
            Health::Missing,
            message!(en: "no pressure information (PSI)", zh: "没有压力信息（PSI）"),
        )
    };
    let check = Check::new("pressure", Area::Host, health, text).with("psi", there);
    if there {
        return check;
    }
    check
        .cost(message!(en: "waits for disks and CPUs can only be inferred", zh: "对磁盘和 CPU 的等待只能间接看到"))
        .remedy(message!(en: "boot with the kernel parameter psi=1", zh: "内核启动参数加 psi=1"))
}

/// Reading a Python program's stacks needs the right to trace it; a parent may trace its child except at the strictest.
fn ptrace() -> Check {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .unwrap_or(0);
    // SAFETY: geteuid only reads a number.
    let root = unsafe { libc::geteuid() } == 0;
    let check = |health, text| {
        Check::new("ptrace", Area::Host, health, text)
            .with("ptrace_scope", scope)
            .with("root", root)
    };
    match scope {
        0 => check(Health::Good, message!(en: "stacks of your own processes can be read", zh: "可以读取自己进程的调用栈")),
        _ if root && scope < 3 => check(Health::Good, message!(en: "stacks of all processes can be read (root)", zh: "可以读取所有进程的调用栈（root）")),
        1 => check(Health::Note, message!(en: "stacks of programs started by flatout can be read", zh: "可以读取由 flatout 启动的程序的调用栈"))
            .cost(message!(en: "`flatout attach` cannot show Python lines of a running program", zh: "`flatout attach` \
            看不到运行中程序的 Python 行"))
            .remedy(message!(en: "start the program with `flatout run`, or run: sudo sysctl \
            kernel.yama.ptrace_scope=0", zh: "用 `flatout run` 启动，或 sudo sysctl kernel.yama.ptrace_scope=0")),
        _ => check(Health::Missing, message!(en: "stacks of other processes cannot be read (ptrace_scope {scope})", zh: "无法读取其他进程的调用栈（ptrace_scope {scope}）"))
            .cost(message!(en: "only the probe can show where a Python program waits", zh: "只能通过探针得知 Python 程序在哪里等待"))
            .remedy(Message::verbatim("sudo sysctl kernel.yama.ptrace_scope=1")),
    }
}

fn records() -> Check {
    let folder = runs_folder();
    // The folder may not be there yet: what counts is the nearest one that is.
    let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
    let there = absolute
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"));
    let shown = folder.display();
    let writable = writable(there);
    let health = if writable { Health::Good } else { Health::Problem };
    let text = if writable {
        message!(en: "records are written to {shown}", zh: "记录写入 {shown}")
    } else {
        message!(en: "records cannot be written to {shown}", zh: "无法向 {shown} 写入记录")
    };
    let check = Check::new("records", Area::Host, health, text).with("folder", &folder);
    if writable {
        return check;
    }
    check
        .cost(message!(en: "runs cannot be replayed, diagnosed or compared later", zh: "之后无法回放、诊断或比较"))
        .remedy(message!(en: "export FLATOUT_HOME=/your/own/folder", zh: "export FLATOUT_HOME=/你的/目录"))
}

fn writable(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: `path` is a zero-terminated text that lives through the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

fn job() -> Option<Check> {
    let job = job_from_environment()?;
    let (system, id) = (&job.system, &job.id);
    let text = message!(en: "inside {system} job {id}", zh: "位于 {system} 作业 {id} 中");
    Some(Check::new("job", Area::Host, Health::Note, text).with("job", &job))
}
