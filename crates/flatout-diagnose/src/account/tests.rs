use super::*;
use crate::testing::Build;

const TORCH: &str = "/v/lib/python3.11/site-packages/torch";

fn backward() -> String {
    format!("backward ({TORCH}/_tensor.py:600)")
}

/// A loop that trains, waits for data and scores in Python.
fn scoring() -> RunData {
    let (step, backward) = (format!("step ({TORCH}/optim/adamw.py:9)"), backward());
    let mut data = Build::steady(20)
        .phase(Phase::Data, 0.2)
        .phase(Phase::Compute, 0.5)
        .phase(Phase::Other, 0.3)
        .stack_of(
            &["<module> (t.py:90)", "train (t.py:40)"],
            100,
            Some(Phase::Data),
            false,
        )
        .stack_of(
            &["<module> (t.py:90)", "train (t.py:42)", &backward],
            200,
            Some(Phase::Compute),
            false,
        )
        .stack_of(
            &["<module> (t.py:90)", "train (t.py:43)", &step],
            50,
            Some(Phase::Compute),
            false,
        )
        .stack_of(
            &["<module> (t.py:90)", "train (t.py:44)", "score (t.py:12)"],
            90,
            Some(Phase::Other),
            false,
        )
        .stack_of(
            &["<module> (t.py:90)", "train (t.py:44)", "score (t.py:13)"],
            60,
            Some(Phase::Other),
            false,
        )
        .done();
    for tick in &mut data.stacks {
        for stack in &mut tick.stacks {
            stack.gil = stack.phase == Some(Phase::Other);
        }
    }
    data
}

fn account(data: &RunData) -> Account {
    Account::new(data, &Window::find(data).unwrap()).unwrap()
}

#[test]
fn imports_are_no_part_of_a_loop_without_steps() {
    let import = format!("<module> ({TORCH}/__init__.py:9)");
    let build = Build::steady(0)
        .stack_of(&["<module> (t.py:3)", &import], 100, None, false)
        .stack_of(&["<module> (t.py:9)", "work (t.py:5)"], 60, None, false);
    let mut data = build.done();
    data.stacks[1].t = 20.0;
    let analysis = crate::Analysis::new(&data);
    let account = analysis.account.unwrap();
    assert_eq!(account.samples, 60);
    assert!(
        account
            .rows
            .iter()
            .all(|row| row.place.as_ref().is_none_or(|place| place.line != 3))
    );
}

#[test]
fn what_no_sample_could_be_read_for_was_python() {
    let build = |sampled_ms: f64| {
        let line = |number: u32, phase| {
            Build::steady(20).stack_of(&[&format!("<module> (t.py:{number})")], 200, phase, false)
        };
        let mut data = line(5, Some(Phase::Compute)).done();
        let other = line(6, Some(Phase::Compute)).done();
        data.stacks[0].stacks.extend(other.stacks[0].stacks.clone());
        // The line of stacks covers four seconds of steps.
        for (stack, ms) in data.stacks[0].stacks.iter_mut().zip([2000.0, sampled_ms]) {
            stack.ms = ms;
            stack.gil = stack.frames[0].ends_with(":6)");
        }
        data
    };
    let share = |sampled_ms: f64| {
        let account = account(&build(sampled_ms));
        let python = account.rows.iter().find(|row| row.activity == Activity::Python);
        python.unwrap().share
    };
    assert!((share(2000.0) - 0.5).abs() < 0.01, "{}", share(2000.0));
    assert!((share(1000.0) - 0.5).abs() < 0.03, "{}", share(1000.0));
}

#[test]
fn rows_add_up_to_the_wall_time() {
    let data = scoring();
    let account = account(&data);
    let sum: f64 = account.rows.iter().map(|row| row.seconds).sum();
    assert!((sum - account.wall_s).abs() < 1e-6 * account.wall_s);
    assert!((account.seconds(Activity::Python) / account.wall_s - 0.3).abs() < 1e-3);
    assert!((account.seconds(Activity::Operators) / account.wall_s - 0.5).abs() < 1e-3);
}

#[test]
fn names_the_hottest_line_and_the_line_of_the_loop() {
    let data = scoring();
    let account = account(&data);
    let centers = center::centers(&account, &data, |span| span.activity == Activity::Python);
    assert_eq!(centers.len(), 1);
    assert_eq!((centers[0].hot.line, centers[0].site.line), (12, 44));
    assert!((centers[0].seconds / account.wall_s - 0.3).abs() < 1e-3);
}

#[test]
fn splits_the_loop_by_its_lines() {
    let data = scoring();
    let account = account(&data);
    let sites: Vec<u32> = center::centers(&account, &data, |_| true)
        .iter()
        .map(|center| center.site.line)
        .collect();
    assert_eq!(sites, [42, 44, 40, 43]);
}

#[test]
fn counts_time_without_a_cpu_apart() {
    let mut data = scoring();
    for tick in &mut data.stacks {
        tick.descheduled_ms = Some((100.0, 1000.0));
    }
    let account = account(&data);
    let share = account.seconds(Activity::Descheduled) / account.wall_s;
    assert!((share - 0.1).abs() < 1e-3, "{share}");
    let sum: f64 = account.rows.iter().map(|row| row.seconds).sum();
    assert!((sum - account.wall_s).abs() < 1e-6 * account.wall_s);
}

#[test]
fn phases_without_samples_keep_their_activity() {
    let data = Build::steady(20)
        .phase(Phase::Data, 0.4)
        .phase(Phase::Compute, 0.6)
        .stack_of(&["<module> (t.py:9)"], 100, Some(Phase::Compute), false)
        .done();
    let share = account(&data).seconds(Activity::Unexplained) / account(&data).wall_s;
    assert!(share < 1e-6, "what the phase is, is known: {share}");
    let share = account(&data).seconds(Activity::WaitingForBatch) / account(&data).wall_s;
    assert!((share - 0.4).abs() < 1e-3, "{share}");
}

#[test]
fn traced_samples_split_the_time_by_what_the_gpu_did() {
    let mut data = scoring();
    let stack = |line: u32, gpu: GpuState, count: u64| StackCount {
        frames: vec!["<module> (t.py:90)".into(), format!("train (t.py:{line})")],
        count,
        ms: count as f64,
        phase: Some(Phase::Compute),
        gil: true,
        gpu: Some(gpu),
        ..StackCount::default()
    };
    data.windows.push(flatout_record::GpuWindow {
        t: 8.0,
        wall_ms: 1000.0,
        computing_ms: 300.0,
        idle_ms: 700.0,
        stacks: vec![stack(42, GpuState::Computing, 40), stack(47, GpuState::Idle, 60)],
        ..flatout_record::GpuWindow::default()
    });
    let account = account(&data);
    let share = |activity| account.seconds(activity) / account.wall_s;
    // Half of the time is in the step's phase, and of it the traces know the shares exactly.
    assert!((share(Activity::GpuComputing) - 0.5 * 0.3).abs() < 1e-3);
    let sum: f64 = account.rows.iter().map(|row| row.seconds).sum();
    assert!((sum - account.wall_s).abs() < 1e-6 * account.wall_s);
    let idle = center::centers(&account, &data, |span| span.gpu == Some(GpuState::Idle));
    assert_eq!(idle[0].hot.line, 47);
}

#[test]
fn computing_belongs_to_the_line_that_launched_it() {
    use flatout_record::{GpuWindow, KernelKind, KindTime, LaunchStack};
    let mut data = scoring();
    let stack = |line: u32, gpu: GpuState, count: u64| StackCount {
        frames: vec!["<module> (t.py:90)".into(), format!("train (t.py:{line})")],
        count,
        ms: count as f64,
        phase: Some(Phase::Compute),
        gpu: Some(gpu),
        ..StackCount::default()
    };
    let launch = |line: u32, kind, ms| LaunchStack {
        frames: vec!["<module> (t.py:90)".into(), format!("train (t.py:{line})")],
        kinds: vec![KindTime {
            ms,
            ..KindTime::none(kind)
        }],
        ..LaunchStack::default()
    };
    // The host waits at line 47 while the GPU works off what lines 42 and 43 launched.
    data.windows.push(GpuWindow {
        wall_ms: 1000.0,
        computing_ms: 900.0,
        idle_ms: 100.0,
        stacks: vec![stack(47, GpuState::Computing, 90), stack(47, GpuState::Idle, 10)],
        kinds: vec![KindTime {
            ms: 900.0,
            ..KindTime::none(KernelKind::MatrixFp32)
        }],
        launches: vec![
            launch(42, KernelKind::MatrixFp32, 200.0),
            launch(43, KernelKind::Softmax, 100.0),
        ],
        ..GpuWindow::default()
    });
    let account = account(&data);
    let of = |line: u32| {
        let rows = account
            .rows
            .iter()
            .filter(|row| row.activity == Activity::GpuComputing);
        let mut found = rows.filter(|row| row.place.as_ref().is_some_and(|place| place.line == line));
        found.next().map(|row| (row.seconds, row.kernel))
    };
    let (first, kernel) = of(42).unwrap();
    let (second, other) = of(43).unwrap();
    assert!((first - 2.0 * second).abs() < 1e-9 * first && of(47).is_none());
    assert_eq!(
        (kernel, other),
        (Some(KernelKind::MatrixFp32), Some(KernelKind::Softmax))
    );
    let sum: f64 = account.rows.iter().map(|row| row.seconds).sum();
    assert!((sum - account.wall_s).abs() < 1e-6 * account.wall_s);
    assert_eq!(account.gpu_kinds[0].kind, KernelKind::MatrixFp32);
}

#[test]
fn needs_samples() {
    let data = Build::steady(20).done();
    assert!(Account::new(&data, &Window::find(&data).unwrap()).is_none());
}

fn python_loop() -> Build {
    Build::steady(20).phase(Phase::Compute, 1.0).stack_of(
        &["<module> (t.py:90)", "train (t.py:44)"],
        300,
        Some(Phase::Compute),
        false,
    )
}

/// The stacks hold the interpreter's lock.
fn with_lock(mut data: RunData) -> RunData {
    for stack in data.stacks.iter_mut().flat_map(|tick| &mut tick.stacks) {
        stack.gil = true;
    }
    data
}

fn collecting() -> Build {
    python_loop().each_second(|| flatout_record::EventKind::GarbageCollection {
        count: 10,
        duration_ms: 250.0,
    })
}

#[test]
fn collections_have_a_row_of_their_own() {
    let account = account(&with_lock(collecting().done()));
    let share = account.seconds(Activity::CollectingGarbage) / account.wall_s;
    assert!((share - 0.25).abs() < 0.03, "{share}");
    let sum: f64 = account.rows.iter().map(|row| row.seconds).sum();
    assert!((sum - account.wall_s).abs() < 1e-6 * account.wall_s);
}

#[test]
fn collections_that_the_program_asks_for_stay_at_their_line() {
    let asked = collecting().source_line(44, "gc.collect()").done();
    let account = account(&with_lock(asked));
    assert_eq!(account.seconds(Activity::CollectingGarbage), 0.0);
    assert!((account.seconds(Activity::Python) / account.wall_s - 1.0).abs() < 1e-6);
}

#[test]
fn page_faults_have_a_row_of_their_own() {
    let account = account(&with_lock(python_loop().pages(200_000.0, 0.5, 2.0).done()));
    let share = account.seconds(Activity::FaultingPages) / account.wall_s;
    assert!((share - 0.2).abs() < 0.01, "{share}");
}
