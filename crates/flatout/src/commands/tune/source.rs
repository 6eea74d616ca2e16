//! The result as a patch to the program's source, by the machinery of `flatout lint --fix`.

use crate::context::Context;
use flatout_core::{Result, message};
use flatout_diagnose::Analysis;
use flatout_lint::patch::{self, Patch, Wanted};
use flatout_report::text::width;
use flatout_run::trial::Route;
use flatout_telemetry::Record;
use flatout_tune::search::Found;
use std::fmt::Write;

/// What the source would need to say, for what neither the command nor a configuration file carries.
pub fn patch(found: &Found, route: &Route) -> Result<Patch> {
    let data = Record::open(&found.measured.record)?.load();
    let analysis = Analysis::new(&data);
    let loader = analysis.train_loader().and_then(|loader| loader.place.clone());
    let optimizer = analysis.facts.place("optimizer.class");
    let changes = found.changes();
    let wanted: Vec<Wanted> = changes
        .0
        .iter()
        .filter(|(key, _)| !route.carries(key))
        .map(|(key, value)| {
            let place = if key.starts_with("loader.") { loader.clone() } else { optimizer.clone() };
            Wanted { key: key.clone(), value: value.clone(), place }
        })
        .collect();
    if wanted.is_empty() || (loader.is_none() && optimizer.is_none()) {
        return Ok(Patch::default());
    }
    Ok(patch::patch(&wanted)?)
}

/// The difference, and what has to be done by hand.
pub fn text(patch: &Patch, context: &Context) -> String {
    if patch.files.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", patch.diff.lines().map(|line| width::printable(line) + "\n").collect::<String>());
    for (key, why) in &patch.left {
        let why = context.say(why);
        let _ = writeln!(text, "{}", context.say(&message!(en: "not in the source: {key} ({why})", zh: "未写入源码：{key}（{why}）")));
    }
    text
}

/// Into the files; their old texts are kept beside them.
pub fn write(patch: &Patch, context: &Context) -> Result<()> {
    patch::write(patch)?;
    for (path, _, _) in &patch.files {
        let (backup, path) = (flatout_lint::fix::backup_path(path), path.display());
        let backup = backup.display();
        eprintln!("{}", context.say(&message!(en: "wrote {path}; the old one is {backup}", zh: "已写入 {path}；原文件保存为 {backup}")));
    }
    Ok(())
}
