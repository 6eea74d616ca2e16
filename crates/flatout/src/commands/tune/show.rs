//! What a search found, for people and for programs.

use crate::context::Context;
use flatout_core::{Finding, Fix, Kind, Message, message, shell, units};
use flatout_lint::patch::Patch;
use flatout_report::text::{Align, Paint, Table, Tone, width};
use flatout_run::trial::Route;
use flatout_tune::advise::{self, Advice, Form};
use flatout_tune::guard::{self, Guarded};
use flatout_tune::search::{Found, Options, Progress, Row, Verdict};
use flatout_tune::trial::{Measurement, Rate, Settings};
use flatout_vocabulary::settings;
use serde_json::{Value, json};
use std::fmt::Write;

/// The version of the JSON form.
const SCHEMA: u32 = 1;
/// Findings that are listed.
const MOST_FAULTS: usize = 3;

/// One line when a trial begins, one when it has ended.
pub fn progress(progress: &Progress, options: &Options, context: &Context) {
    match progress {
        Progress::Begins {
            number,
            changes,
            predicted,
        } => {
            let most = options.most_trials;
            let what = if changes.is_empty() && *number > 1 {
                // The baseline or the best, which the table shows.
                context
                    .say(&message!(en: "repeating an earlier trial", zh: "重复之前的一次试验"))
                    .to_owned()
            } else {
                what(changes, context)
            };
            let expected = predicted
                .map(|gain| message!(en: ", expected {gain:.2}×", zh: "，预期 {gain:.2}×"))
                .unwrap_or_default();
            let expected = context.say(&expected);
            eprintln!("{}", context.say(&message!(en: "trial {number} of at most {most}: {what}{expected} …", zh: "试验 {number}（最多 {most}）：{what}{expected} ……")));
        }
        Progress::Row(row) => {
            let (score, verdict) = (score(row, options, context), verdict(row, context).0);
            eprintln!("    {score}  {verdict}");
        }
    }
}

fn what(changes: &Settings, context: &Context) -> String {
    if changes.is_empty() {
        return context
            .say(&message!(en: "the program unchanged", zh: "程序原样"))
            .to_owned();
    }
    changes.to_string().replace(',', ", ")
}

fn samples(row: &Row) -> bool {
    row.measured
        .as_ref()
        .is_none_or(|measured| measured.samples.is_some())
}

fn score(row: &Row, options: &Options, context: &Context) -> String {
    let Some(score) = row.score else {
        return "–".into();
    };
    let unit = options.objective.unit(samples(row));
    format!("{} {}", interval(score), context.say(&unit))
}

/// `12.3k (11.9k–12.7k)`
fn interval(rate: Rate) -> String {
    format!(
        "{} ({}–{})",
        units::count(rate.mean),
        units::count(rate.low),
        units::count(rate.high)
    )
}

fn verdict(row: &Row, context: &Context) -> (String, Tone) {
    let (words, tone) = match &row.verdict {
        Verdict::Start => (message!(en: "baseline", zh: "基线"), Tone::Name),
        Verdict::Kept { gain } => (
            message!(en: "kept: {gain:.2}×", zh: "保留：{gain:.2}×"),
            Tone::Good,
        ),
        Verdict::Smaller => (
            message!(en: "kept: a smaller batch, as fast within 3%", zh: "保留：更小的 batch，差距在 3% 以内"),
            Tone::Good,
        ),
        Verdict::Repeated => (message!(en: "measured again", zh: "重复测量"), Tone::Quiet),
        Verdict::Refused { why } => (
            Message {
                en: format!("rejected: {}", why.en),
                zh: format!("放弃：{}", why.zh),
            },
            Tone::Quiet,
        ),
        Verdict::OutOfMemory { .. } => (
            message!(en: "out-of-memory errors", zh: "内存不足"),
            Tone::Warning,
        ),
    };
    (width::printable(context.say(&words)), tone)
}

/// The table of trials, the result in every form, and what no setting can fix.
pub fn text(found: &Found, options: &Options, route: &Route, patch: &Patch, context: &Context) -> String {
    let paint = Paint {
        colour: context.colour_on_stdout(),
    };
    let mut text = table(found, options, context).render(paint);
    text += "\n";
    if found.interrupted {
        let _ = writeln!(
            text,
            "{}",
            context.say(&message!(en: "Interrupted; this is the best so far. \
        Continue with `--resume`.", zh: "已中断：以下是目前最好的结果。加 --resume 可继续。"))
        );
    }
    text += &not_in_force(found, context);
    let gain = found.gain().mean;
    let promises_more = |fault: &&Finding| fault.gain.is_some_and(|more| more.low > gain);
    let code_first = found.changed && found.code_faults().iter().any(promises_more);
    let code = code(found, context);
    if code_first {
        text += code.trim_start();
        text += "\n";
    }
    text += &result(found, options, route, context);
    text += &super::source::text(patch, context);
    text += &noisy(found, context);
    text += &behind(found, context);
    text += &unguarded(found, context);
    if !code_first {
        text += &code;
    }
    text += &unfixed(found, context);
    text
}

/// Settings of the start that the program was given and did not take.
fn not_in_force(found: &Found, context: &Context) -> String {
    let start = found
        .rows
        .iter()
        .find(|row| matches!(row.verdict, Verdict::Start));
    let told = start
        .and_then(|row| row.measured.as_ref())
        .map(|measured| measured.not_in_force.as_slice());
    let mut text = String::new();
    for (key, why) in told.unwrap_or_default() {
        let why = context.say(why);
        let _ = writeln!(
            text,
            "{}",
            context.say(&message!(en: "not in effect: {key} ({why})", zh: "未生效：{key}（{why}）"))
        );
    }
    text
}

fn table(found: &Found, options: &Options, context: &Context) -> Table {
    let mut table = Table::new(&[
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ]);
    let unit = options.objective.unit(found.measured.samples.is_some());
    let heads = [
        Message::verbatim("#"),
        message!(en: "trial", zh: "试验"),
        unit,
        message!(en: "predicted", zh: "预测"),
        message!(en: "memory", zh: "内存"),
        message!(en: "power", zh: "功率"),
        message!(en: "verdict", zh: "结论"),
    ];
    table.row([0, 1, 2, 3, 4, 5, 6].map(|index: usize| context.say(&heads[index])));
    for row in &found.rows {
        let measured = row.measured.as_ref();
        let number = row.number.to_string();
        let what = what(&row.changes, context);
        let score = row.score.map_or("–".into(), interval);
        let unknown = || {
            row.knob.as_ref().map_or(String::new(), |_| {
                context.say(&message!(en: "unknown", zh: "未知")).to_owned()
            })
        };
        let predicted = row.predicted.map_or_else(unknown, |gain| format!("{gain:.2}×"));
        let memory = measured
            .and_then(|measured| measured.memory_bytes)
            .map_or(String::new(), |bytes| units::bytes(bytes as f64));
        let power = measured
            .and_then(|measured| measured.power_w)
            .map_or(String::new(), |watts| format!("{watts:.0} W"));
        let (words, tone) = verdict(row, context);
        table.toned_row([
            (&number, None),
            (&what, None),
            (&score, None),
            (&predicted, None),
            (&memory, None),
            (&power, None),
            (&words, Some(tone)),
        ]);
    }
    table
}

fn result(found: &Found, options: &Options, route: &Route, context: &Context) -> String {
    let trials = found.rows.len();
    let time = units::duration(found.seconds);
    let mended = found
        .mended
        .as_ref()
        .map(|settings| mended(settings, context))
        .unwrap_or_default();
    if !found.changed {
        let words = if found.is_answered_by_code() {
            message!(
                en: "No setting makes this program faster: its own code takes the time ({trials} trials in \
                {time}).",
                zh: "没有设置能让该程序更快：时间花在它自己的代码里（{time} 内 {trials} 次试验）。"
            )
        } else {
            message!(
                en: "Keep your settings: nothing tried was measurably better ({trials} trials in {time}).",
                zh: "保持现有设置：没有测到更好的（{time} 内 {trials} 次试验）。"
            )
        };
        return format!("{}\n", context.say(&words));
    }
    let gain = found.gain();
    let (mean, low, high) = (gain.mean, gain.low, gain.high);
    let unit = options.objective.unit(found.measured.samples.is_some());
    let (before, after) = (
        units::count(found.start_score.mean),
        units::count(found.score.mean),
    );
    let words = message!(
        en: "{mean:.2}× ({low:.2}–{high:.2}): {before} → {after}",
        zh: "{mean:.2}×（{low:.2}–{high:.2}）：{before} → {after}"
    );
    let predicted = found
        .predicted()
        .map_or("–".into(), |predicted| format!("{predicted:.2}×"));
    let more = message!(en: "; predicted {predicted}; {trials} trials in {time}", zh: "；预测 {predicted}；{time} 内 {trials} 次试验");
    let mut text = mended;
    if found.mended.as_ref() == Some(&found.settings) {
        let words = message!(
            en: "{after} {} with these settings; nothing else tried was measurably better ({trials} trials \
            in {time}).",
            zh: "使用这些设置为 {after} {}；没有测到更好的（{time} 内 {trials} 次试验）。",
            context.say(&unit)
        );
        let _ = writeln!(text, "{}", context.say(&words));
    } else {
        let _ = writeln!(
            text,
            "{} {}{}",
            context.say(&words),
            context.say(&unit),
            context.say(&more)
        );
    }
    let changes = found.changes();
    let _ = writeln!(text, "\n  flags    {}", flags(&changes).trim_end());
    let applied: Settings = changes
        .0
        .iter()
        .filter(|(key, _)| !route.carries(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let command = shell::line(&route.filled(&found.settings));
    if !applied.is_empty() {
        let _ = writeln!(
            text,
            "  apply    flatout run --apply {} -- {command}",
            shell::word(&applied.to_string())
        );
    } else {
        let _ = writeln!(text, "  command  {command}");
    }
    if let Some((path, before, after)) = route
        .patched(&found.settings)
        .filter(|(_, before, after)| before != after)
    {
        let _ = writeln!(text, "\n{}", diff(&path.display().to_string(), before, &after));
    }
    text
}

/// What everything is held against then.
fn mended(settings: &Settings, context: &Context) -> String {
    let what = what(settings, context);
    let words = message!(
        en: "The unchanged program runs out of memory. It trains if each batch is split into parts, with the \
        same number of samples per step: {what}.",
        zh: "程序原样会内存不足。把 batch 分成几份、每步总量不变即可训练：{what}。"
    );
    format!("{}\n", context.say(&words))
}

fn flags(changes: &Settings) -> String {
    let advice: Vec<Advice> = changes
        .0
        .iter()
        .filter_map(|(key, value)| {
            Some(Advice {
                key: settings::find(key)?.key,
                value: value.clone(),
                reason: Message::default(),
            })
        })
        .collect();
    advise::render(&advice, Form::Flags, flatout_core::Language::English)
}

/// Only values changed, so line numbers stay the same.
fn diff(path: &str, before: &str, after: &str) -> String {
    let mut text = format!("--- {path}\n+++ {path}\n");
    for (index, (old, new)) in before
        .lines()
        .zip(after.lines())
        .enumerate()
        .filter(|(_, (old, new))| old != new)
    {
        let line = index + 1;
        let _ = writeln!(
            text,
            "@@ -{line} +{line} @@\n-{}\n+{}",
            width::printable(old),
            width::printable(new)
        );
    }
    text
}

/// A machine that others use measures little.
fn noisy(found: &Found, context: &Context) -> String {
    let noise = found.start_score.noise();
    if noise < 0.25 {
        return String::new();
    }
    let percent = units::percent(noise);
    let words = message!(
        en: "The same program varies by ±{percent} here, because something else uses this machine. Measure \
        again when it is idle.",
        zh: "同一程序在此机器上波动 ±{percent}：有其他任务在占用。请在空闲时重新测量。"
    );
    format!("\n{}\n", context.say(&words))
}

/// Settings that change the numbers, of a program whose losses nobody saw: the guard could not look at them.
fn unguarded(found: &Found, context: &Context) -> String {
    let changes = found.changes();
    let numbers = changes
        .0
        .iter()
        .filter(|(key, _)| settings::find(key).is_some_and(|setting| setting.changes_losses));
    let numbers: Vec<String> = numbers.map(|(key, value)| format!("{key}={value}")).collect();
    let first = found.rows.iter().find_map(|row| row.measured.as_ref());
    let seen = first.is_some_and(|first| guard::guard(first, &found.measured, 1.0) != Guarded::Unknown);
    if numbers.is_empty() || seen {
        return String::new();
    }
    let what = numbers.join(", ");
    let words = message!(
        en: "Too few losses were seen to compare: check that {what} does not hurt the training.",
        zh: "看到的 loss 太少，无法比较：请确认 {what} 不影响训练效果。"
    );
    format!("\n{}\n", context.say(&words))
}

/// A larger batch makes fewer updates: offered, never done in silence.
fn behind(found: &Found, context: &Context) -> String {
    let Some(batch) = found
        .changes()
        .get("loader.batch_size")
        .and_then(|value| value.parse::<f64>().ok())
    else {
        return String::new();
    };
    if found.settings.get("optimizer.lr_scale").is_some() {
        return String::new();
    }
    let first = found.rows.iter().find_map(|row| row.measured.as_ref());
    let Some(before) = first.and_then(Measurement::samples_a_step) else {
        return String::new();
    };
    if batch <= before {
        return String::new();
    }
    let factor = units::significant(batch / before);
    let words = message!(
        en: "A {factor}× larger batch makes {factor}× fewer updates per epoch: consider scaling the learning \
        rate (--scale-lr tries that).",
        zh: "batch 增大 {factor} 倍，每轮更新次数减少到 1/{factor}：请考虑同比放大学习率（--scale-lr 会这样试）。"
    );
    format!("\n{}\n", context.say(&words))
}

/// The lines that only the user can change, each with what to do there.
fn code(found: &Found, context: &Context) -> String {
    let mut faults = found.code_faults();
    faults.truncate(MOST_FAULTS);
    if faults.is_empty() {
        return String::new();
    }
    let head = message!(en: "These need a change in the code; no setting can fix them:", zh: "请修改代码，这些不是设置能解决的：");
    let mut text = format!("\n{}\n", context.say(&head));
    for finding in faults {
        text += &named(finding, context);
        let fix = finding.fixes.iter().find_map(|fix| match fix {
            Fix::Code { say, .. } | Fix::Edits { say, .. } => Some(say),
            _ => None,
        });
        if let Some(say) = fix {
            let _ = writeln!(text, "    {}", width::printable(context.say(say)));
        }
    }
    text
}

/// Other causes that the best run has.
fn unfixed(found: &Found, context: &Context) -> String {
    let code = found.code_faults();
    let mut causes: Vec<&Finding> = found.findings.iter().collect();
    causes.retain(|finding| finding.kind == Kind::Cause && !code.contains(finding));
    causes.truncate(MOST_FAULTS);
    if causes.is_empty() {
        return String::new();
    }
    let head = message!(en: "Remaining findings of the best run:", zh: "最好的一次运行仍有的问题：");
    let lines: String = causes.iter().map(|finding| named(finding, context)).collect();
    format!("\n{}\n{lines}", context.say(&head))
}

/// `  Title (train.py:12) [flatout explain rule]`
fn named(finding: &Finding, context: &Context) -> String {
    let place = finding
        .places
        .first()
        .map(|place| format!(" ({place})"))
        .unwrap_or_default();
    format!(
        "  {}{} [flatout explain {}]\n",
        width::printable(context.say(&finding.title)),
        width::printable(&place),
        finding.rule
    )
}

pub fn json(found: &Found, options: &Options, route: &Route, patch: &Patch) -> String {
    let rows: Vec<Value> = found
        .rows
        .iter()
        .map(|row| {
            let mut value = serde_json::to_value(row).unwrap_or_default();
            if let Some(measured) = &row.measured {
                value["memory_bytes"] = json!(measured.memory_bytes);
                value["power_w"] = json!(measured.power_w);
                value["steps"] = json!(measured.steps);
                value["samples"] = json!(measured.samples);
                value["seconds"] = json!(measured.seconds);
                value["wait_s"] = json!(measured.wait_s);
                value["aside_s"] = json!(measured.aside_s);
                value["on_pages"] = json!(measured.on_pages);
                value["sizes"] = json!(measured.sizes);
                value["fed"] = json!(measured.fed);
                value["supply"] = json!(measured.supply);
                value["variants"] = json!(measured.variants);
                value["cut"] = json!(measured.cut);
                value["not_in_force"] = json!(measured.not_in_force);
            }
            value
        })
        .collect();
    let gain = found.gain();
    let whole = json!({
        "schema": SCHEMA,
        "unit": options.objective.unit(found.measured.samples.is_some()).en,
        "changed": found.changed,
        "interrupted": found.interrupted,
        "seconds": found.seconds,
        "start": {"settings": found.start, "score": found.start_score},
        "best": {"settings": found.settings, "score": found.score, "apply": found.changes().to_string(), "flags": flags(&found.changes()).trim_end(), "command": route.filled(&found.settings)},
        "gain": {"mean": gain.mean, "low": gain.low, "high": gain.high, "predicted": found.predicted()},
        "patch": patch.diff,
        "not_in_source": patch.left.iter().map(|(key, why)| json!({"key": key, "why": why})).collect::<Vec<_>>(),
        "trials": rows,
        "code": found.code_faults(),
        "left": found.findings.iter().filter(|finding| finding.kind == Kind::Cause).collect::<Vec<_>>(),
    });
    format!("{}\n", serde_json::to_string_pretty(&whole).unwrap_or_default())
}
