//! What a few steps under PyTorch's profiler showed.

use super::{Align, Paint, Table, Tone};
use flatout_core::{Language, Message, message, units};
use flatout_record::{DeviceProfile, Profile};

/// Lines of the costliest kernels or operators; the longest name shown.
const TOP: usize = 5;
const LONGEST_NAME: usize = 60;

pub fn profile(profile: &Profile, language: Language, colour: bool) -> String {
    let paint = Paint { colour };
    let (steps, span) = (profile.steps, units::duration(profile.span_ms / 1e3));
    let head = message!(en: "Profile of {steps} steps, {span}", zh: "{steps} 步的 profile，共 {span}");
    let mut text = format!("{}\n", paint.tone(Tone::Strong, head.get(language)));
    if let Some(device) = &profile.device {
        text += &device_table(profile, device, language).render(paint);
        for line in device_lines(device) {
            text += &format!("  {}\n", line.get(language));
        }
    }
    let calls = profile.operator_calls / profile.steps.max(1);
    let line =
        message!(en: "{calls} operator calls per step on the CPU", zh: "CPU 上每步 {calls} 次算子调用");
    text += &format!("  {}\n", line.get(language));
    text += &costliest(profile, language).render(paint);
    if profile.cut_short || profile.partial {
        let line = message!(
            en: "The trace is truncated or too large: these figures cover its first part only.",
            zh: "trace 不完整或过大：以上数字只来自它的前一部分。"
        );
        text += &format!("  {}\n", line.get(language));
    }
    text
}

fn device_table(profile: &Profile, device: &DeviceProfile, language: Language) -> Table {
    let idle = &device.idle;
    let rows = [
        (message!(en: "GPU working", zh: "GPU 在工作"), device.busy_ms),
        (
            message!(en: "GPU idle: next kernel not launched yet", zh: "GPU 空闲：下一个 kernel 尚未下发"),
            idle.host_ms,
        ),
        (
            message!(en: "GPU idle: the CPU waited for a batch", zh: "GPU 空闲：CPU 在等 batch"),
            idle.data_ms,
        ),
        (
            message!(en: "GPU idle: the CPU had waited for the GPU", zh: "GPU 空闲：CPU 刚等待过 GPU"),
            idle.sync_ms,
        ),
        (
            message!(en: "GPU idle between launched kernels", zh: "GPU 空闲：已下发的 kernel 之间"),
            idle.queued_ms,
        ),
    ];
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]).indented(2);
    for (name, ms) in rows.iter().filter(|(_, ms)| profile.share(*ms) >= 0.001) {
        table.row([
            name.get(language),
            &units::duration(ms / 1e3),
            &units::percent(profile.share(*ms)),
        ]);
    }
    table
}

fn device_lines(device: &DeviceProfile) -> Vec<Message> {
    let mut lines = Vec::new();
    let mean = units::duration(device.kernel_ms / 1e3 / device.kernels.max(1) as f64);
    let kernels = device.kernels;
    lines.push(message!(en: "{kernels} kernels, {mean} on average", zh: "{kernels} 个 kernel，平均 {mean}"));
    if let Some(share) = device.tensor_core_share().map(units::percent) {
        lines.push(message!(
            en: "tensor cores account for {share} of matrix kernel time",
            zh: "矩阵类 kernel 的时间中有 {share} 使用 tensor core"
        ));
    }
    for copy in &device.copies {
        let (direction, memory, count) = (&copy.direction, &copy.memory, copy.count);
        let (bytes, time) = (units::bytes(copy.bytes as f64), units::duration(copy.ms / 1e3));
        lines.push(message!(
            en: "copies {direction}, {memory} memory: {count}, {bytes} in {time}",
            zh: "拷贝 {direction}，{memory} 内存：{count} 次，{bytes}，用时 {time}"
        ));
    }
    lines
}

fn costliest(profile: &Profile, language: Language) -> Table {
    let kernels = profile.device.as_ref().map_or(&[][..], |device| &device.top);
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]).indented(2);
    let times = message!(en: "calls", zh: "次数");
    for time in kernels.iter().take(TOP).chain(profile.operators.iter().take(TOP)) {
        let name: String = time
            .name
            .chars()
            .filter(|c| !c.is_control())
            .take(LONGEST_NAME)
            .collect();
        let count = format!("{} {}", time.count, times.get(language));
        table.row([&name, &units::duration(time.ms / 1e3), &count]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{Copy, Idle, NamedTime};

    #[test]
    fn every_part_of_a_profile_is_shown() {
        let shown = Profile {
            steps: 5,
            span_ms: 100.0,
            operator_calls: 500,
            cut_short: true,
            operators: vec![NamedTime {
                name: "aten::mm\u{1b}[31m".into(),
                count: 9,
                ms: 3.0,
            }],
            device: Some(DeviceProfile {
                kernels: 50,
                busy_ms: 40.0,
                kernel_ms: 45.0,
                matrix_ms: 20.0,
                tensor_core_ms: 5.0,
                idle: Idle {
                    host_ms: 60.0,
                    ..Idle::default()
                },
                copies: vec![Copy {
                    direction: "HtoD".into(),
                    memory: "pageable".into(),
                    count: 5,
                    bytes: 5 << 20,
                    ms: 2.0,
                }],
                top: Vec::new(),
            }),
            ..Profile::default()
        };
        let text = profile(&shown, Language::English, false);
        for part in [
            "5 steps",
            "60%",
            "25%",
            "pageable",
            "100 operator calls",
            "aten::mm",
            "is truncated",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(profile(&shown, Language::Chinese, false).contains("尚未下发"));
    }
}
