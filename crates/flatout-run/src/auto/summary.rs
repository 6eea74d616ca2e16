//! What `--auto` prints at the end.

use super::{Auto, Change, State, changes, lines, total};
use crate::applied;
use crate::session::Ended;
use flatout_core::{Message, message, shell, units};
use flatout_diagnose::Analysis;
use flatout_record::RunData;

/// One line per change, the time saved, and how to have the changes always. `command` is the program's own; of what was not changed,
/// `most` reasons are given, those of changes that were tried first.
pub fn summary(data: &RunData, command: &[String], most: usize) -> Vec<Message> {
    let all = changes(data);
    let kept: Vec<&Change> = all.iter().filter(|change| change.state == State::Kept).collect();
    let mut told = vec![headline(&kept, data)];
    told.extend(kept.iter().map(|change| kept_line(change)));
    let mut others = others(&all);
    others.sort_by_key(|change| change.state == State::LeftAlone);
    told.extend(others.iter().take(most).map(|change| other_line(change)));
    let hidden = others.len().saturating_sub(most);
    if hidden > 0 {
        told.push(message!(
            en: "  and {hidden} more not in effect (`flatout run -v --auto` prints why)",
            zh: "  另有 {hidden} 项未生效（`flatout run -v --auto` 会给出原因）"
        ));
    }
    if !kept.is_empty() {
        told.push(message!(en: "To keep these changes:", zh: "要长期使用这些更改："));
        let analysis = Analysis::new(data);
        told.extend(kept.iter().filter_map(|change| lines::of(change, &analysis)));
        told.extend(without_an_edit(&kept, &data.info.apply, command));
    }
    told
}

fn headline(kept: &[&Change], data: &RunData) -> Message {
    let count = kept.len();
    if count == 0 {
        return message!(
            en: "--auto changed nothing: no change made the steps faster",
            zh: "--auto 没有更改任何设置：没有更改能让训练更快"
        );
    }
    match total(data).map(|total| units::duration(total.saved_s.max(0.0))) {
        Some(saved) => message!(
            en: "--auto saved {saved}; changes kept: {count}",
            zh: "--auto 节省 {saved}；保留的更改：{count} 项"
        ),
        None => message!(
            en: "--auto changes kept: {count}",
            zh: "--auto 保留的更改：{count} 项"
        ),
    }
}

/// What is not in force; one line where several values of a setting have the same reason.
fn others(all: &[Change]) -> Vec<&Change> {
    let mut found: Vec<&Change> = Vec::new();
    for change in all.iter().filter(|change| change.state != State::Kept) {
        let told = |known: &&Change| known.key() == change.key() && known.reason == change.reason;
        if change.state != State::LeftAlone || !found.iter().any(told) {
            found.push(change);
        }
    }
    found
}

fn kept_line(change: &Change) -> Message {
    let (setting, step) = (&change.setting, change.step);
    let gain = gain(change);
    if change.key() == "loader.batch_size" {
        return message!(
            en: "  {setting}: {gain} samples/s, kept at step {step}",
            zh: "  {setting}：每秒样本数 {gain}，第 {step} 步起保留"
        );
    }
    message!(
        en: "  {setting}: {gain} steps/s, kept at step {step}",
        zh: "  {setting}：每秒步数 {gain}，第 {step} 步起保留"
    )
}

fn gain(change: &Change) -> String {
    change.gain.map_or_else(
        || "?".to_owned(),
        |[low, middle, high]| format!("{middle:.2}× ({low:.2}–{high:.2}×)"),
    )
}

fn other_line(change: &Change) -> Message {
    let (setting, reason) = (
        named(change),
        applied::reason(change.reason.as_deref().or(Some("not-measured"))),
    );
    let measured = change
        .gain
        .map_or_else(String::new, |_| format!(" {}", gain(change)));
    let (en, zh) = (reason.en, reason.zh);
    match change.state {
        State::TakenBack => Message {
            en: format!("  {setting} reverted:{measured} {en}"),
            zh: format!("  {setting} 已撤回：{measured} {zh}"),
        },
        State::Tried => Message {
            en: format!("  {setting} was being tried when the program ended"),
            zh: format!("  程序结束时正在试用 {setting}"),
        },
        State::LeftAlone | State::Kept => Message {
            en: format!("  {setting} not tried: {en}"),
            zh: format!("  {setting} 未试用：{zh}"),
        },
    }
}

/// A change without a value of its own is named by its key.
fn named(change: &Change) -> &str {
    change.setting.strip_suffix("=auto").unwrap_or(&change.setting)
}

/// `None` where `--apply` knows none of them. What was `applied` this time stays.
fn without_an_edit(kept: &[&Change], applied: &[String], command: &[String]) -> Option<Message> {
    let mine: Vec<&str> = kept
        .iter()
        .map(|change| change.setting.as_str())
        .filter(|setting| crate::apply::checked(&[(*setting).to_owned()]).is_ok())
        .collect();
    if mine.is_empty() {
        return None;
    }
    let key = |setting: &str| setting.split('=').next().map(str::to_owned);
    let before = applied.iter().map(String::as_str);
    let before = before.filter(|setting| !mine.iter().any(|one| key(one) == key(setting)));
    let settings: Vec<&str> = before.chain(mine.iter().copied()).collect();
    let (settings, command) = (shell::word(&settings.join(",")), shell::line(command));
    Some(message!(
        en: "  without editing the program: flatout run --apply {settings} -- {command}",
        zh: "  不改代码：flatout run --apply {settings} -- {command}"
    ))
}

/// The change that may have ended the program, and how to run without it.
pub fn ended_badly(data: &RunData, asked: &Auto, command: &[String], ended: Ended) -> Option<Message> {
    // Ctrl-C and `kill` are not the change's doing.
    let how = match ended {
        Ended::Code(0) | Ended::Signal(libc::SIGINT | libc::SIGTERM | libc::SIGHUP) => return None,
        Ended::Code(code) => {
            message!(en: "The program ended with exit code {code}", zh: "程序以退出码 {code} 结束")
        }
        Ended::Signal(signal) => {
            message!(en: "The program was killed by signal {signal}", zh: "程序被信号 {signal} 终止")
        }
    };
    let all = changes(data);
    let tried = all.iter().find(|change| change.state == State::Tried);
    let in_force = tried.or_else(|| all.iter().rev().find(|change| change.state == State::Kept))?;
    let (setting, command) = (named(in_force), shell::line(command));
    let mut options = String::new();
    if !asked.allow.is_empty() {
        options += &format!(" --allow {}", asked.allow.join(","));
    }
    let without: Vec<&str> = asked
        .without
        .iter()
        .map(String::as_str)
        .chain([in_force.key()])
        .collect();
    options += &format!(" --without {}", shell::word(&without.join(",")));
    let (how_en, how_zh) = (how.en, how.zh);
    Some(Message {
        en: format!(
            "{how_en} while {setting} was in effect. To run without it: flatout run --auto{options} \
            -- {command}"
        ),
        zh: format!("{how_zh}，当时 {setting} 已生效。不使用它：flatout run --auto{options} -- {command}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::tests::data;
    use serde_json::json;

    fn command() -> Vec<String> {
        ["python", "train.py", "--lr", "1"].map(str::to_owned).to_vec()
    }

    fn run() -> RunData {
        data(&[
            (
                "auto.loader.batched",
                json!({"state": "kept", "setting": "loader.batched=on", "step": 40, "gain": [4.1, 4.2, 4.3]}),
            ),
            (
                "auto.loader.num_workers",
                json!({"state": "taken-back", "setting": "loader.num_workers=2", "reason": "slower", "gain": [0.7, 0.8, 0.9]}),
            ),
            ("auto.total", json!({"saved_s": 12.34})),
        ])
    }

    #[test]
    fn every_change_has_a_line_and_a_way_to_keep_it() {
        let told: Vec<String> = summary(&run(), &command(), 9)
            .into_iter()
            .map(|line| line.en)
            .collect();
        let text = told.join("\n");
        for part in [
            "--auto saved 12.3 s; changes kept: 1",
            "loader.batched=on: 4.20× (4.10–4.30×)",
            "loader.num_workers=2 reverted: 0.80× (0.70–0.90×) it made the steps slower",
            "flatout run --apply loader.batched=on -- python train.py --lr 1",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_program_that_dies_is_given_the_command_without_the_change() {
        let told = ended_badly(&run(), &Auto::default(), &command(), Ended::Signal(libc::SIGKILL)).unwrap();
        assert!(
            told.en
                .ends_with("flatout run --auto --without loader.batched -- python train.py --lr 1"),
            "{}",
            told.en
        );
        let failed = ended_badly(&run(), &Auto::default(), &command(), Ended::Code(1)).unwrap();
        assert!(
            failed
                .en
                .starts_with("The program ended with exit code 1 while loader.batched=on was in effect.")
        );
        assert!(ended_badly(&run(), &Auto::default(), &command(), Ended::Signal(libc::SIGINT)).is_none());
        assert!(ended_badly(&run(), &Auto::default(), &command(), Ended::Code(0)).is_none());
    }

    #[test]
    fn only_what_can_be_applied_is_offered_and_words_are_quoted() {
        let kept = |setting: &str| json!({"state": "kept", "setting": setting, "gain": [1.1, 1.2, 1.3]});
        let one = data(&[("auto.copy.non_blocking", kept("copy.non_blocking=on"))]);
        let text: Vec<String> = summary(&one, &command(), 9)
            .into_iter()
            .map(|line| line.en)
            .collect();
        assert!(!text.iter().any(|line| line.contains("--apply")), "{text:?}");
        let mut two = data(&[
            ("auto.copy.non_blocking", kept("copy.non_blocking=on")),
            ("auto.gc.freeze", kept("gc.freeze=on")),
        ]);
        two.info.apply = vec!["amp=bf16".into(), "gc.freeze=off".into()];
        let spaced = ["python", "my train.py"].map(str::to_owned);
        let text: Vec<String> = summary(&two, &spaced, 9)
            .into_iter()
            .map(|line| line.en)
            .collect();
        let last = text.last().unwrap();
        assert!(
            last.ends_with("flatout run --apply amp=bf16,gc.freeze=on -- python 'my train.py'"),
            "{last}"
        );
    }

    #[test]
    fn what_was_asked_for_is_asked_for_again() {
        let asked = Auto {
            allow: vec!["precision".into()],
            without: vec!["gc.freeze".into()],
        };
        let told = ended_badly(&run(), &asked, &command(), Ended::Code(1)).unwrap();
        assert!(
            told.en.ends_with(
                "flatout run --auto --allow precision --without gc.freeze,loader.batched -- python train.py --lr 1"
            ),
            "{}",
            told.en
        );
    }

    #[test]
    fn larger_batches_gain_samples() {
        let kept =
            json!({"state": "kept", "setting": "loader.batch_size=128", "step": 40, "gain": [1.4, 1.5, 1.6]});
        let text: Vec<String> = summary(&data(&[("auto.loader.batch_size", kept)]), &command(), 9)
            .into_iter()
            .map(|line| line.en)
            .collect();
        assert!(text[1].contains("1.50× (1.40–1.60×) samples/s"), "{text:?}");
        assert!(
            text.iter()
                .any(|line| line.ends_with("DataLoader(…, batch_size=128)")),
            "{text:?}"
        );
    }

    #[test]
    fn reasons_that_do_not_fit_are_counted() {
        let left =
            |key: &str| json!({"state": "left-alone", "setting": format!("{key}=on"), "reason": "too-short"});
        let tried = json!({"state": "taken-back", "setting": "tf32=on", "reason": "slower"});
        let data = data(&[
            ("auto.gc.freeze", left("gc.freeze")),
            ("auto.malloc.keep", left("malloc.keep")),
            ("auto.tf32", tried),
        ]);
        let lines = |most| -> Vec<String> {
            let told = summary(&data, &command(), most);
            told.into_iter().map(|line| line.en).collect()
        };
        let two = lines(1);
        assert!(
            two.len() == 3 && two[1].contains("tf32=on reverted") && two[2].contains("and 2 more"),
            "{two:?}"
        );
        assert_eq!(lines(usize::MAX).len(), 4);
    }

    #[test]
    fn nothing_changed_is_reported() {
        let told = summary(&RunData::default(), &command(), 9);
        assert!(told.len() == 1 && told[0].en.contains("changed nothing"));
    }
}
