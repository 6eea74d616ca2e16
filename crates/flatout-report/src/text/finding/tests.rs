use super::*;
use flatout_core::Gain;
use flatout_core::Place;

fn starved() -> Finding {
    let mut finding = Finding::new(
        "loader-starved",
        Severity::Critical,
        message!(en: "The GPU waits for data 61% of the time", zh: "GPU 有 61% 的时间在等数据"),
    );
    finding.detail = message!(
        en: "The main thread prepares every batch itself, and the GPU has nothing to do until it is there. Two CPUs are idle meanwhile.",
        zh: "主线程自己准备每个 batch，在准备好之前 GPU 无事可做。与此同时有两个 CPU 空闲。"
    );
    finding.evidence = vec![
        Evidence::new(message!(en: "waiting for batches", zh: "等待 batch"), 61.0, "%")
            .against(10.0)
            .over(5.0, 35.0),
        Evidence::new(message!(en: "step", zh: "每步"), 12.34, "ms"),
    ];
    finding.places.push(Place::new("train.py", 12));
    finding.fixes = vec![
        Fix::Setting {
            setting: "loader.num_workers".into(),
            from: Some("0".into()),
            to: "2".into(),
            say: message!(en: "as many as there are usable CPUs", zh: "与可用 CPU 数相同"),
        },
        Fix::Command {
            command: "flatout tune -- python train.py".into(),
            say: message!(en: "or let it be measured:", zh: "或者让它实测："),
        },
        Fix::Refused {
            setting: "loader.pin_memory".into(),
            say: message!(en: "copies take 0.4% of the step", zh: "拷贝只占每步的 0.4%"),
        },
    ];
    finding.gain = Some(Gain::estimate(1.33, 2.0));
    finding
}

#[test]
fn a_finding_in_english() {
    let expected = "\
✗ CRITICAL  The GPU waits for data 61% of the time  [loader-starved]
  The main thread prepares every batch itself, and the GPU has nothing to do
  until it is there. Two CPUs are idle meanwhile.
  measured   waiting for batches      61%  limit 10%  5–35 s
             step                 12.3 ms
  where      train.py:12
  do         loader.num_workers: 0 → 2
             as many as there are usable CPUs
  do         or let it be measured:
             $ flatout tune -- python train.py
  ruled out  loader.pin_memory
             copies take 0.4% of the step
  gain       throughput 1.33× – 2.00×, estimated from this run
  confidence high · cause
";
    assert_eq!(findings(&[starved()], Language::English, 80, false), expected);
}

#[test]
fn a_finding_in_chinese_lines_up() {
    let expected = "\
✗ 严重  GPU 有 61% 的时间在等数据  [loader-starved]
  主线程自己准备每个 batch，在准备好之前 GPU 无事可做。与此同时有两个 CPU 空闲。
  实测       等待 batch      61%  阈值 10%  5–35 s
             每步        12.3 ms
  位置       train.py:12
  建议       loader.num_workers: 0 → 2
             与可用 CPU 数相同
  建议       或者让它实测：
             $ flatout tune -- python train.py
  不适用     loader.pin_memory
             拷贝只占每步的 0.4%
  收益       吞吐 1.33× – 2.00×（由本次运行估算）
  把握       高 · 原因
";
    assert_eq!(findings(&[starved()], Language::Chinese, 80, false), expected);
}

#[test]
fn no_line_is_wider_than_asked_for_and_colour_changes_no_letter() {
    for language in [Language::English, Language::Chinese] {
        let plain = findings(&[starved(), starved()], language, 60, false);
        assert!(plain.lines().all(|line| width(line) <= 60), "{plain}");
        let painted = findings(&[starved(), starved()], language, 60, true);
        let painted = flatout_core::text::visible(&painted).into_owned();
        assert!(painted.contains("\x1b[1;31m"));
        let mut stripped = painted.clone();
        for code in ["1;31", "36", "33", "2", "1", "0"] {
            stripped = stripped.replace(&format!("\x1b[{code}m"), "");
        }
        let trimmed = |text: &str| {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(trimmed(&stripped), trimmed(&plain));
    }
}

#[test]
fn a_bare_finding_is_short_and_an_absurd_value_is_unknown() {
    let mut finding = Finding::new(
        "nothing-wrong",
        Severity::Information,
        message!(en: "Nothing is wrong", zh: "没有问题"),
    );
    finding.kind = Kind::Verdict;
    assert_eq!(
        findings(&[finding.clone()], Language::English, 80, false),
        "· NOTE  Nothing is wrong  [nothing-wrong]\n  confidence high\n"
    );
    finding
        .evidence
        .push(Evidence::new(Message::verbatim("x"), f64::NAN, "ms"));
    assert!(findings(&[finding], Language::English, 80, false).contains("? ms"));
    assert_eq!(findings(&[], Language::English, 80, false), "");
}

#[test]
fn findings_are_counted() {
    let mut warning = starved();
    warning.severity = Severity::Warning;
    let all = [starved(), starved(), warning];
    assert_eq!(count(&all, Language::English), "2 critical, 1 warning");
    assert_eq!(count(&all, Language::Chinese), "2 项严重问题，1 项警告");
    assert_eq!(count(&[], Language::English), "");
}
