//! Whole logs as the common tools write them.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> TrainingLog {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> TrainingLog {
    TrainingLog::from_reader(Box::new(std::io::Cursor::new(bytes.to_vec())))
}

fn epochs(text: &str) -> Vec<(u64, f64)> {
    read(text)
        .times
        .epochs
        .iter()
        .map(|epoch| (epoch.number, epoch.seconds))
        .collect()
}

#[test]
fn epochs_in_the_common_shapes() {
    for (log, expected) in [
        (
            "Epoch 1/30 - loss: 0.5 - 25.3s\nEpoch 2/30 - loss: 0.4 - 24.1s\n",
            vec![(1, 25.3), (2, 24.1)],
        ),
        ("Epoch [1/30], Loss: 0.5, Time: 25.3s\n", vec![(1, 25.3)]),
        (
            "| end of epoch   1 | time: 93.41s | valid loss  5.45\n",
            vec![(1, 93.41)],
        ),
        (
            "Epoch 1 completed in 25.3 seconds\nepoch 2 took 0:01:23\n",
            vec![(1, 25.3), (2, 83.0)],
        ),
        ("第1轮 训练损失 0.5 耗时 25.3秒\n", vec![(1, 25.3)]),
        (
            "Epoch: [0] Total time: 0:01:23 (0.2345 s / it)\n",
            vec![(0, 83.0)],
        ),
        (
            "Epoch 1/2\n1875/1875 [=====] - 5s 2ms/step - loss: 0.2\nEpoch 2/2\n1875/1875 [=====] - 4s 2ms/step\n",
            vec![(1, 5.0), (2, 4.0)],
        ),
        (
            "{\"epoch\": 3, \"epoch_time\": 25.1, \"loss\": 0.2}\n",
            vec![(3, 25.1)],
        ),
        ("epoch_time: 25.1\nepoch_time: 24.9\n", vec![(1, 25.1), (2, 24.9)]),
    ] {
        assert_eq!(epochs(log), expected, "{log}");
    }
}

#[test]
fn progress_bars_that_write_over_themselves() {
    let mut log = String::new();
    for epoch in 1..=2 {
        for percent in [10, 50, 100, 100] {
            log += &format!(
                "\rEpoch {epoch}: {percent:3}%|███ | {percent}0/1000 [00:{:02}<00:00, 39it/s]",
                percent / 4
            );
        }
        for percent in [50, 100, 100] {
            log += &format!("\rValidating: {percent:3}%|███ | {percent}/100 [00:03<00:00]");
        }
    }
    let log = read(&log);
    assert_eq!(
        log.times
            .epochs
            .iter()
            .map(|epoch| epoch.seconds)
            .collect::<Vec<_>>(),
        [25.0, 25.0]
    );
    let eval = log.times.parts[&Part::Eval];
    assert_eq!((eval.count, eval.sum_s), (2, 6.0));
}

#[test]
fn timestamps_measure_unreported_epochs() {
    let log = "2024-05-21 10:00:00,000 INFO Epoch 1 loss 0.5\n2024-05-21 10:00:25,500 INFO Epoch 2 loss 0.4\n2024-05-21 10:00:50,000 INFO Epoch 3 loss\n";
    assert_eq!(epochs(log), [(1, 25.5), (2, 24.5)]);
    assert_eq!(read(log).times.epochs[0].measured, Measured::Stamps);
    let jumped = "2024-05-21 10:00:00 Epoch 1\n2024-05-21 09:00:25 Epoch 2\n2024-05-21 09:00:50 Epoch 3\n";
    assert_eq!(
        (epochs(jumped), read(jumped).backward_steps),
        (vec![(2, 25.0)], 1)
    );
}

#[test]
fn a_step_is_not_taken_for_an_epoch() {
    for log in [
        "Epoch 3 step 100 loss 0.3 time 0.12\n",
        "Epoch 3 | Batch 10/500 | 0.1s\n",
        "{'loss': 0.3, 'time': 0.1, 'epoch': 0.52}\n",
        "Epoch 3 eta 5m\n",
        "Epoch 3 started at time 10:11:12\nstart time: 10:11:12\n",
        "Epoch 3 loss 0.25 lr 0.001\n",
        "--epochs 30 --time-limit 25s\n",
    ] {
        let timed = epochs(log);
        assert!(timed.is_empty() || log.contains("started at"), "{log}: {timed:?}");
    }
    let imagenet = read("Epoch: [3][100/500]\tTime  0.123 ( 0.120)\tData  0.003 ( 0.002)\tLoss 6.9\n");
    assert!(imagenet.times.epochs.is_empty());
    assert_eq!(imagenet.times.parts[&Part::Step].sum_s, 0.123);
    assert_eq!(imagenet.times.parts[&Part::Data].sum_s, 0.003);
}

#[test]
fn phases_and_the_whole() {
    let log = read(
        "Epoch 1 train time 20.5s val time 3.5s\nCheckpoint saved in 1.5 s\nValidation took 4.5s\n{'eval_runtime': 12.0, 'epoch': 1.0}\n{'train_runtime': 123.5, 'epoch': 3.0}\nTotal training time: 0:10:00\n",
    );
    let part = |part| log.times.parts.get(&part).copied().unwrap_or_default();
    assert_eq!(part(Part::Train).sum_s, 20.5);
    assert_eq!((part(Part::Eval).count, part(Part::Eval).sum_s), (3, 20.0));
    assert_eq!(part(Part::Checkpoint).sum_s, 1.5);
    assert_eq!(log.times.total_s, Some(600.0));
}

#[test]
fn lists_each_problem_once_with_a_count() {
    let mut text = String::new();
    for step in 0..3 {
        text += &format!("2024-05-21 10:00:0{step} WARNING step {step}: slow\n");
        text += &format!("step {step} loss=nan\n");
    }
    text += "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 12, in step\n[rank0]:     loss.backward()\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
    text +=
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nValueError: no\n";
    text += "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-05-21T10:00:00 DUE TO TIME LIMIT ***\n";
    let problems = read(&text).problems;
    let shown: Vec<_> = problems
        .list
        .iter()
        .map(|problem| (problem.kind, problem.count))
        .collect();
    assert_eq!(
        shown,
        [
            (ProblemKind::OutOfMemory, 1),
            (ProblemKind::Traceback, 1),
            (ProblemKind::Error, 1),
            (ProblemKind::NotANumber, 3),
            (ProblemKind::Warning, 3),
        ]
    );
    assert_eq!(problems.list[0].place.as_deref(), Some("train.py:12 in step"));
    assert_eq!(problems.list[4].text, "WARNING step 0: slow");
    assert_eq!((problems.list[3].first_line, problems.list[3].last_line), (2, 6));
}

#[test]
fn other_encodings_are_read_and_counted() {
    let gbk = [
        &b"Epoch 1 \xd3\xc3\xca\xb1 time 25.5s\n"[..],
        b"Epoch 2 time 24.5s\n\xff\xfe\xfd\n",
    ]
    .concat();
    let log = bytes(&gbk);
    assert_eq!((log.foreign_lines, log.times.epochs.len()), (2, 2));
    let wide: Vec<u8> = "Epoch 1 耗时 25.5秒\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(bytes(&wide).times.epochs.len(), 1);
}

#[test]
fn colour_codes_hide_nothing() {
    let log = read("\x1b[31mERROR\x1b[0m disk full\n\x1b[1mEpoch 1\x1b[0m took 25s\n");
    assert_eq!(
        (log.problems.list[0].text.as_str(), log.times.epochs.len()),
        ("ERROR disk full", 1)
    );
}

#[test]
fn little_is_enough() {
    let empty = read("");
    assert_eq!(
        (empty.lines, empty.stamped_s, empty.times.last_epoch),
        (0, None, None)
    );
    let one = read("Epoch 1/3");
    assert_eq!(
        (one.lines, one.times.last_epoch, one.times.planned_epochs),
        (1, Some(1), Some(3))
    );
}

/// Pieces that logs are made of, in any order, broken anywhere.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"Epoch ",
        b"epoch",
        b"12",
        b"/30 ",
        b" took ",
        b"25.3s",
        b"0:01:23",
        b"time: ",
        b"\n",
        b"\r",
        b"100%|",
        b"[00:25<",
        b"nan",
        b"Traceback (most recent call last):\n",
        b"  File \"a.py\", line 3, in f\n",
        b"ValueError: x\n",
        b"WARNING ",
        b"\x1b[31m",
        b"\x1b",
        b"2024-05-21 10:11:12",
        b"[rank0]: ",
        b"\xff\xfe",
        b"1/1 ",
        b"/step",
        b"error:",
        b"][",
        b"99999999999999999999",
        b":",
        b".",
        "第".as_bytes(),
        "轮".as_bytes(),
        "耗时".as_bytes(),
        "秒".as_bytes(),
        b" in ",
        b"batch",
        b"loss=",
        b"-",
        b"(",
    ];
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_log_makes_it_panic_or_invent(text in pieces(), noise in prop::collection::vec(any::<u8>(), 0..40)) {
        for bytes in [text.clone(), [&text[..], &noise].concat(), noise] {
            let log = super::tests::bytes(&bytes);
            prop_assert!(log.times.epochs.iter().all(|epoch| epoch.seconds > 0.0 && epoch.seconds.is_finite()));
            prop_assert!(log.times.parts.values().all(|part| part.min_s <= part.max_s && part.count > 0));
            prop_assert!(log.problems.list.iter().all(|problem| problem.count > 0 && !problem.text.chars().any(char::is_control)));
        }
    }

    #[test]
    fn what_is_printed_comes_back(seconds in prop::collection::vec(0.1f64..1e5, 1..40)) {
        let text: String = seconds.iter().enumerate().map(|(index, seconds)| format!("Epoch {}/99 | loss 0.5 | time {seconds:.2}s\n", index + 1)).collect();
        let back: Vec<String> = read(&text).times.epochs.iter().map(|epoch| format!("{:.2}", epoch.seconds)).collect();
        let expected: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.2}")).collect();
        prop_assert_eq!(back, expected);
    }
}
