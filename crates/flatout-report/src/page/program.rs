//! The program: its loaders and processes, the checklist, its settings and versions.

use super::{Markup, Writer, markup};
use crate::digest::Digest;
use crate::digest::checklist::{Item, State};
use flatout_core::{Message, message, units};
use flatout_diagnose::analysis::loaders::Loader;
use flatout_record::Fact;

/// More processes than this (workers that are started again every epoch) are counted only.
const MOST_PROCESSES: usize = 40;

impl Writer {
    pub(crate) fn input(&self, digest: &Digest) -> Markup {
        let mut text = self.loaders(&digest.loaders);
        text += self.processes(digest);
        self.section(
            &message!(en: "DataLoaders and processes", zh: "DataLoader 与进程"),
            text,
        )
    }

    fn loaders(&self, loaders: &[Loader]) -> Markup {
        let used: Vec<&Loader> = loaders
            .iter()
            .filter(|loader| loader.batches + loader.eval_batches + loader.prepared > 0)
            .collect();
        if used.is_empty() {
            return Markup::default();
        }
        let head = [
            message!(en: "DataLoader", zh: "DataLoader"),
            message!(en: "workers", zh: "worker 数"),
            message!(en: "batch", zh: "batch 大小"),
            message!(en: "batches fetched", zh: "取用 batch 数"),
            message!(en: "wait per batch", zh: "每 batch 等待"),
            message!(en: "fetching per batch", zh: "每 batch 取样本"),
            message!(en: "collating per batch", zh: "每 batch collate"),
            message!(en: "created at", zh: "创建位置"),
        ];
        let mut rows = self.header_row(&head, 1);
        let unknown = || "?".to_owned();
        let count = |value: Option<u64>| value.map_or_else(unknown, |value| value.to_string());
        for loader in used.iter().take(MOST_PROCESSES) {
            let role = if loader.feeds_training {
                message!(en: "training", zh: "训练")
            } else if loader.eval_batches > 0 {
                message!(en: "evaluation", zh: "评估")
            } else {
                message!(en: "other", zh: "其他")
            };
            let each = |seconds: f64, batches: u64| {
                if batches == 0 {
                    return unknown();
                }
                units::duration(seconds / batches as f64)
            };
            let place = loader.place.as_ref().map(ToString::to_string).unwrap_or_default();
            let numbers = [
                count(loader.num_workers),
                count(loader.batch_size),
                (loader.batches + loader.eval_batches).to_string(),
                each(loader.wait_s, loader.batches),
                each(loader.fetch_s, loader.prepared),
                each(loader.collate_s, loader.prepared),
            ];
            rows += markup!("<tr><td>{}</td>", self.say(&role));
            for number in numbers {
                rows += markup!("<td class=\"number\">{}</td>", number);
            }
            rows += markup!("<td><code>{}</code></td></tr>\n", place);
        }
        self.table(rows)
    }

    fn processes(&self, digest: &Digest) -> Markup {
        if digest.processes.is_empty() {
            return Markup::default();
        }
        let head = [
            message!(en: "process", zh: "进程"),
            message!(en: "lifetime", zh: "存活"),
            message!(en: "CPUs", zh: "占用 CPU"),
            message!(en: "private memory", zh: "独占内存"),
            message!(en: "reads", zh: "读取"),
            message!(en: "waiting for disk", zh: "等待磁盘"),
            message!(en: "command", zh: "命令"),
        ];
        let mut rows = self.header_row(&head, 1);
        let unknown = || "?".to_owned();
        for process in digest.processes.iter().take(MOST_PROCESSES) {
            let role = process
                .role
                .as_deref()
                .map_or_else(String::new, |role| format!(" {}", self.say(&role_name(role))));
            let numbers = [
                units::duration((process.last_s - process.first_s).max(0.0)),
                process.cpus.map_or_else(unknown, units::significant),
                process
                    .private_bytes
                    .map_or_else(unknown, |bytes| units::bytes(bytes as f64)),
                process
                    .read_bytes_s
                    .map_or_else(unknown, |bytes| format!("{}/s", units::bytes(bytes))),
                process.disk_wait.map_or_else(unknown, units::percent),
            ];
            rows += markup!("<tr><td>{}{}</td>", process.pid, role);
            for number in numbers {
                rows += markup!("<td class=\"number\">{}</td>", number);
            }
            rows += markup!("<td><code>{}</code></td></tr>\n", process.command);
        }
        let mut text = self.table(rows);
        if let Some(more) = digest
            .processes
            .len()
            .checked_sub(MOST_PROCESSES)
            .filter(|more| *more > 0)
        {
            let more = message!(en: "and {more} more processes that used less", zh: "以及另外 {more} 个占用更少的进程");
            text += self.note(&more);
        }
        text
    }

    pub(crate) fn checklist(&self, items: &[Item]) -> Markup {
        let lines: Markup = items
            .iter()
            .map(|item| {
                let (class, sign, word) = match item.state {
                    State::Done => ("done", "✓", message!(en: "done", zh: "已做到")),
                    State::ToDo => ("to-do", "✗", message!(en: "to do", zh: "待改进")),
                    State::Unknown => ("unknown", "?", message!(en: "unknown", zh: "未知")),
                };
                let rule = item.rule.as_deref().map_or_else(Markup::default, |rule| {
                    markup!(" <code class=\"soft\">{}</code>", rule)
                });
                markup!(
                    "<li class=\"{}\"><b title=\"{}\">{}</b><span>{}{}</span></li>\n",
                    class,
                    self.say(&word),
                    sign,
                    self.say(&item.name),
                    rule
                )
            })
            .collect();
        let hint = message!(en: "✓ done · ✗ to do · ? not in the record", zh: "✓ 已做到 · ✗ 待改进 · ? 记录中没有相关信息");
        let text = markup!("<ul class=\"checklist\">\n{}</ul>\n", lines) + self.note(&hint);
        self.section(&message!(en: "Checklist", zh: "检查清单"), text)
    }

    pub(crate) fn settings(&self, digest: &Digest) -> Markup {
        let mut text = Markup::default();
        if !digest.facts.is_empty() {
            let rows: Markup = digest.facts.iter().map(fact_row).collect();
            let count = digest.facts.len();
            text += self.folded(
                &message!(en: "{count} settings in effect", zh: "实际生效的 {count} 项设置"),
                self.settings_table(rows),
            );
        }
        let mut rows = Markup::default();
        let mut row = |name: &str, value: &str| {
            rows += markup!("<tr><td>{}</td><td>{}</td></tr>\n", name, value);
        };
        for (name, version) in &digest.info.versions {
            row(name, version);
        }
        if let Some(host) = &digest.info.host {
            row("kernel", &host.kernel);
        }
        for reason in &digest.info.unknown {
            row(
                message!(en: "could not be read", zh: "未能读取").get(self.language),
                reason,
            );
        }
        if !rows.is_empty() {
            text += self.settings_table(rows);
        }
        self.section(&message!(en: "Settings and versions", zh: "设置与版本"), text)
    }
}

fn fact_row(fact: &Fact) -> Markup {
    let value = match &fact.value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "?".to_owned(),
        other => other.to_string(),
    };
    let place = fact.place.as_ref().map(ToString::to_string).unwrap_or_default();
    markup!(
        "<tr><td><code>{}</code></td><td class=\"soft\">{}</td><td>{}</td><td class=\"soft\"><code>{}</code></td></tr>\n",
        fact.key,
        fact.scope.as_deref().unwrap_or(""),
        value,
        place
    )
}

fn role_name(role: &str) -> Message {
    match role {
        "main" => message!(en: "main", zh: "主进程"),
        "loader-worker" => message!(en: "worker", zh: "数据 worker"),
        other => Message::verbatim(other),
    }
}
