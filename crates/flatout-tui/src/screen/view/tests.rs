use crate::screen::{State, Theme, draw};
use crate::watch::{FeedTick, Moment};
use flatout_core::Language;
use flatout_core::cpus::UsableCpus;
use flatout_record::{GpuInfo, GpuProcess, GpuSample, HostInfo, HostSample, RunInfo, Sample};
use flatout_report::text::width::width as cells;
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;

const GIB: u64 = 1 << 30;

fn info(gpus: u32) -> RunInfo {
    let gpu = GpuInfo {
        name: Some("NVIDIA H200".into()),
        mem_total_bytes: Some(141 * GIB),
        sm_clock_max_mhz: Some(1980.0),
        ..GpuInfo::default()
    };
    let cpus = UsableCpus {
        online: 64,
        affinity: 16,
        quota: Some(14.0),
    };
    RunInfo {
        name: "resnet".into(),
        interval_s: Some(1.0),
        host: Some(HostInfo {
            name: "node7".into(),
            kernel: "6".into(),
            cpus,
            memory_bytes: None,
            page: None,
        }),
        gpus: (0..gpus).map(|index| (index, gpu.clone())).collect(),
        ..RunInfo::default()
    }
}

fn sample(second: u32, gpus: u32) -> Sample {
    let busy = second % 10 < 8;
    let gpu = |index: u32| GpuSample {
        util: Some(if busy { 0.97 } else { 0.04 }),
        sm_activity: Some(if busy { 0.5 } else { 0.0 }),
        tensor_activity: Some(0.41),
        dram_activity: None,
        mem_used_bytes: Some(61 * GIB),
        power_w: Some(598.0),
        power_limit_w: Some(700.0),
        temp_c: Some(71.0),
        sm_clock_mhz: Some(1755.0),
        throttle: Some(vec!["power-cap".into()]),
        processes: Some(vec![GpuProcess {
            pid: 4711,
            mem_bytes: Some(60 * GIB),
            sm_util: Some(0.9),
            command: Some(format!("python 训练.py --gpu {index}\x1b[2J")),
        }]),
        ..GpuSample::default()
    };
    let host = HostSample {
        cpu_util: Some(0.63),
        core_util: Some((0..16).map(|core| f64::from(core) / 15.0).collect()),
        iowait: Some(0.02),
        run_queue: Some(9.0),
        mem_total_bytes: Some(128 * GIB),
        mem_available_bytes: Some(87 * GIB),
        disk_read_bytes_s: Some(120e6),
        disk_write_bytes_s: Some(3e6),
        disk_busy: Some(0.12),
        ..HostSample::default()
    };
    Sample {
        t: f64::from(second),
        gpus: (0..gpus).map(|index| (index, gpu(index))).collect(),
        host,
        ..Sample::default()
    }
}

fn watched(gpus: u32, seconds: u32, language: Language, colour: bool) -> State {
    let mut state = State::new("monitor", language, Theme { colour });
    let info = info(gpus);
    for second in 0..seconds {
        let tick = FeedTick {
            sample: sample(second, gpus),
            described: second == 0,
            ..FeedTick::default()
        };
        state.take(&Moment {
            info: &info,
            tick: &tick,
            speed: None,
            remarks: &["runs/x".to_owned()],
        });
    }
    state
}

fn drawn(state: &State, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(state, frame.area(), frame.buffer_mut()))
        .unwrap();
    terminal
}

/// The screen's text; the cell behind a wide character is a part of it.
fn text(state: &State, width: u16, height: u16) -> String {
    let terminal = drawn(state, width, height);
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line += symbol;
            x += (cells(symbol) as u16).max(1);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Holds the screen against a file beside this one; `FLATOUT_BLESS=1` writes the file anew, to be looked at before it is kept.
#[track_caller]
fn expect(name: &str, shown: &str) {
    let path = format!("{}/src/screen/view/tests/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("FLATOUT_BLESS").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == expected, "{name} is now:\n{shown}\nand was:\n{expected}");
}

#[test]
fn screens_look_as_they_did() {
    let english = |gpus| watched(gpus, 40, Language::English, false);
    expect("one_gpu_80x24", &text(&english(1), 80, 24));
    expect("eight_gpus_80x24", &text(&english(8), 80, 24));
    expect("eight_gpus_200x50", &text(&english(8), 200, 50));
    expect(
        "two_gpus_chinese_80x24",
        &text(&watched(2, 40, Language::Chinese, false), 80, 24),
    );
}

#[test]
fn help_covers_the_screen() {
    let mut state = watched(2, 40, Language::English, false);
    state.help = true;
    let shown = text(&state, 80, 24);
    assert!(
        shown.contains("│ q Esc ^C  quit and print the verdict"),
        "{shown}"
    );
}

#[test]
fn without_colour_there_is_none_and_with_it_idle_sms_are_grey() {
    let colours = |state: &State| {
        let terminal = drawn(state, 80, 24);
        let cells = terminal.backend().buffer().content().to_vec();
        cells
            .into_iter()
            .map(|cell| cell.fg)
            .filter(|colour| *colour != Color::Reset)
            .collect::<Vec<_>>()
    };
    assert!(colours(&watched(2, 40, Language::English, false)).is_empty());
    let painted = colours(&watched(2, 40, Language::English, true));
    assert!(painted.contains(&Color::DarkGray) && painted.contains(&Color::Green));
}

#[test]
fn no_size_and_no_state_breaks_it() {
    for (width, height) in [
        (0, 0),
        (1, 1),
        (3, 2),
        (20, 5),
        (40, 12),
        (79, 23),
        (81, 25),
        (500, 120),
    ] {
        for gpus in [0, 1, 2, 8, 40] {
            for help in [false, true] {
                let mut state = watched(gpus, 3, Language::Chinese, true);
                state.help = help;
                state.scroll = 1000;
                drawn(&state, width, height);
            }
        }
        drawn(
            &State::new("monitor", Language::English, Theme { colour: true }),
            width,
            height,
        );
    }
}

#[test]
fn pause_freezes_the_screen_and_control_characters_are_removed() {
    let mut state = watched(1, 5, Language::English, false);
    let before = text(&state, 80, 24);
    assert!(
        !before.contains('\x1b') && before.contains("python 训练.py"),
        "{before}"
    );
    state.toggle_pause();
    let tick = FeedTick {
        sample: sample(9, 1),
        missed: 7,
        ..FeedTick::default()
    };
    state.take(&Moment {
        info: &info(1),
        tick: &tick,
        speed: None,
        remarks: &[],
    });
    let paused = text(&state, 80, 24);
    assert!(paused.contains("paused") && paused.contains("4 s"), "{paused}");
    state.toggle_pause();
    assert!(text(&state, 80, 24).contains("missed 7"));
}
