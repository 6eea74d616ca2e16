//! What `flatout attach` saw.

use super::{Align, Paint, Table, Tone};
use flatout_core::{Language, message, units};
use flatout_diagnose::rules::host::memory_given_back::ID;
use flatout_diagnose::seen::Seen;

pub fn seen(seen: &Seen, language: Language, colour: bool) -> String {
    let paint = Paint { colour };
    let (stacks, seconds) = (seen.stacks, units::duration(seen.seconds));
    let head = message!(
        en: "Where the main thread was ({stacks} samples in {seconds})",
        zh: "主线程停在哪里（{seconds} 内采样 {stacks} 次）"
    );
    let mut text = format!("{}\n", paint.tone(Tone::Strong, head.get(language)));
    if seen.lines.is_empty() {
        let none = message!(
            en: "no Python code of the program was seen: it is not a Python program, it cannot be read, or \
            it is a launcher whose child process trains",
            zh: "没有看到程序自己的 Python 代码行：它不是 Python 程序，或不允许读取，或只是启动器，真正训练的是它的子进程"
        );
        text += &format!("  {}\n", none.get(language));
    }
    let mut table = Table::new(&[Align::Right, Align::Left, Align::Left]).indented(2);
    for line in &seen.lines {
        let function: String = line.function.chars().filter(|c| !c.is_control()).collect();
        table.row([&units::percent(line.share), &function, &line.place.to_string()]);
    }
    text += &table.render(paint);
    let processes = seen.processes;
    let tree = message!(en: "processes: {processes}", zh: "进程数：{processes}");
    let gpu = match seen.gpu_util.map(units::percent) {
        Some(busy) => {
            message!(en: "the busiest GPU was busy {busy} of the time", zh: "最忙的 GPU 有 {busy} 的时间在工作")
        }
        None => message!(en: "no GPU was seen", zh: "没有看到 GPU"),
    };
    text += &format!("{}; {}\n", tree.get(language), gpu.get(language));
    if let Some(share) = seen.on_pages.map(units::percent) {
        let pages = message!(
            en: "{share} of its CPU time goes to memory that it frees and faults in again: flatout explain \
            {ID}",
            zh: "{share} 的 CPU 时间花在释放后又重新申请的内存上：flatout explain {ID}"
        );
        text += &format!("{}\n", pages.get(language));
    }
    let more = message!(
        en: "Steps, phases and findings need the probe: flatout run -- COMMAND",
        zh: "步、阶段和诊断需要探针：flatout run -- 命令"
    );
    text += &format!("{}\n", paint.tone(Tone::Quiet, more.get(language)));
    text
}
