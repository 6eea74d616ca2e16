//! The pages: the list, a run, a comparison, and what is shown instead of one. Everything from a record is escaped by `markup!`.

use super::digests::{self, Kept};
use super::index::{Row, State, state_name};
use super::pulse::Pulse;
use crate::compare::{self, Comparison};
use crate::digest::Digest;
use crate::digest::marks::Marks;
use crate::page::frame::{Frame, Served};
use crate::page::{self, Markup, Writer, data, markup};
use crate::words;
use flatout_core::{Language, Message, message, units};
use flatout_record::utc;
use std::path::PathBuf;

/// Rows of one page; of more, the newest, and the search finds the others.
pub const MOST_ROWS: usize = 2000;
/// Longer commands are cut: a row is one or two lines.
const MOST_COMMAND: usize = 160;

/// A command from its program on: there is room for the program, not for the interpreter and its options as well.
fn program(command: &[String]) -> &[String] {
    let [interpreter, rest @ ..] = command else {
        return command;
    };
    if !interpreter
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with("python"))
    {
        return command;
    }
    let mut rest = rest;
    loop {
        rest = match rest {
            [option, _, more @ ..] if ["-W", "-X"].contains(&option.as_str()) => more,
            [option, more @ ..] if option.starts_with('-') && option != "-m" && option != "-c" => more,
            [] => return command,
            _ => return rest,
        };
    }
}

/// How the reader wants it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub language: Language,
    pub theme: Option<&'static str>,
}

impl View {
    pub fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    fn writer(self) -> Writer {
        Writer {
            language: self.language,
            pdf_ready: false,
        }
    }

    fn options(self) -> page::Options {
        page::Options {
            language: self.language,
            pdf_ready: false,
        }
    }

    fn frame(self, title: &str, body: Markup) -> Frame {
        Frame {
            title: format!("{title} – flatout"),
            body,
            data: data::json(&[], &Marks::default(), 0.0, self.language),
            language: self.language,
            pdf_ready: false,
            served: Some(Served { theme: self.theme }),
        }
    }

    /// The link to the other language; an address that begins with a question mark keeps the page.
    fn other_language(self, query: &str) -> Markup {
        let (tag, name) = match self.language {
            Language::English => ("zh-CN", "中文"),
            Language::Chinese => ("en", "English"),
        };
        markup!("<a href=\"?{}lang={}\" lang=\"{}\">{}</a>", query, tag, tag, name)
    }

    /// Shown by the script when the server does not answer.
    fn offline(self) -> Markup {
        let text = message!(
            en: "flatout serve is not responding. This is the last state it sent.",
            zh: "flatout serve 没有响应。这里显示的是它最后发送的状态。"
        );
        markup!(
            "<p id=\"offline\" class=\"defects\" hidden>{}</p>\n",
            self.say(&text)
        )
    }

    fn nav(self, links: Markup, query: &str) -> Markup {
        let all = message!(en: "← All runs", zh: "← 所有运行");
        markup!(
            "<nav><a href=\"/\">{}</a><span class=\"gap\"></span>{}{}</nav>\n",
            self.say(&all),
            links,
            self.other_language(query)
        ) + self.offline()
    }

    pub fn list(self, list: &List) -> String {
        let title = message!(en: "Runs", zh: "运行");
        let folders: Vec<String> = list.roots.iter().map(|root| root.display().to_string()).collect();
        let writer = self.writer();
        let mut body = markup!(
            "<header><div><h1>{}</h1><p class=\"soft\"><code>{}</code></p></div><div class=\"tools\">{}{}</div></header>\n",
            self.say(&title),
            folders.join(" · "),
            self.other_language(""),
            writer.theme_button()
        );
        body += self.offline();
        body += self.search(list);
        if list.rows.is_empty() {
            body += self.empty(list);
        }
        body += self.table(list);
        self.frame(self.say(&title), body).html()
    }

    fn search(self, list: &List) -> Markup {
        let label = message!(en: "Search runs", zh: "搜索运行");
        let hint = message!(en: "Search: name, command, GPU, finding …", zh: "搜索：名称、命令、GPU、诊断……");
        let filters = [
            ("", message!(en: "All", zh: "全部")),
            ("running", message!(en: "Running", zh: "运行中")),
            ("failed", message!(en: "Failed", zh: "失败")),
        ];
        let chips: Markup = filters
            .iter()
            .map(|(state, name)| {
                let pressed = if state.is_empty() { "true" } else { "false" };
                markup!(
                    "<button type=\"button\" class=\"chip\" data-filter=\"{}\" aria-pressed=\"{}\">{}</button>",
                    *state,
                    pressed,
                    self.say(name)
                )
            })
            .collect();
        markup!(
            "<form class=\"search\" action=\"/\" role=\"search\"><input type=\"search\" name=\"q\" id=\"q\" value=\"{}\" placeholder=\"{}\" aria-label=\"{}\" autocomplete=\"off\"><span class=\"chips\">{}</span><span id=\"count\" class=\"soft\" aria-live=\"polite\"></span></form>\n",
            list.query,
            self.say(&hint),
            self.say(&label),
            chips
        )
    }

    fn empty(self, list: &List) -> Markup {
        if !list.query.is_empty() {
            let none = message!(en: "No runs match. ", zh: "没有匹配的运行。");
            let all = message!(en: "Show all", zh: "显示全部");
            return markup!(
                "<p class=\"empty\">{}<a href=\"/\">{}</a></p>\n",
                self.say(&none),
                self.say(&all)
            );
        }
        let none = message!(en: "No runs yet. This page shows a run as soon as it starts:", zh: "这里还没有运行。运行一开始就会显示在此页：");
        markup!(
            "<div class=\"empty\"><p>{}</p><p><code>flatout run -- python train.py</code></p></div>\n",
            self.say(&none)
        )
    }

    fn table(self, list: &List) -> Markup {
        let head = [
            message!(en: "Run", zh: "运行"),
            message!(en: "Started", zh: "开始"),
            message!(en: "Duration", zh: "时长"),
            message!(en: "GPU busy", zh: "GPU 忙碌"),
            message!(en: "Throughput", zh: "吞吐"),
            message!(en: "Main finding", zh: "主要诊断"),
        ];
        let choose = message!(en: "Compare", zh: "对比");
        let mut cells = markup!("<th><span class=\"unseen\">{}</span></th>", self.say(&choose));
        for (index, title) in head.iter().enumerate() {
            let class = if (2..5).contains(&index) { "number" } else { "" };
            cells += markup!("<th class=\"{}\">{}</th>", class, self.say(title));
        }
        let rows: Markup = list.rows.iter().map(|row| self.row(row)).collect();
        let compare = message!(en: "Compare", zh: "对比");
        let tick = message!(en: "Select two runs to compare them.", zh: "勾选两个运行即可对比。");
        let mut text = markup!(
            "<form action=\"/compare\" id=\"list\" data-version=\"{}\" data-query=\"{}\">\n<table class=\"runs\"><thead><tr>{}</tr></thead>\n<tbody id=\"rows\">\n{}</tbody></table>\n",
            list.version,
            list.query,
            cells,
            rows
        );
        if list.more > 0 {
            let (shown, more) = (list.rows.len(), list.more);
            let note = message!(
                en: "Showing the newest {shown}. {more} older ones can be found by search: press Enter.",
                zh: "显示最新的 {shown} 个。另有 {more} 个较早的运行，可搜索后按回车查找。"
            );
            text += markup!("<p class=\"soft\">{}</p>\n", self.say(&note));
        }
        text += markup!(
            "<div class=\"dock\" id=\"dock\"><span class=\"soft\">{}</span><button type=\"submit\" id=\"compare\">{}</button></div>\n</form>\n",
            self.say(&tick),
            self.say(&compare)
        );
        text
    }

    pub fn row(self, row: &Row) -> Markup {
        let info = &row.info;
        let name = words::run_name(info);
        let id = row
            .folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let choose = message!(en: "Compare {name}", zh: "对比 {name}");
        let mut about: String = if info.command.is_empty() {
            id.clone()
        } else {
            program(&info.command).join(" ")
        };
        if about.chars().count() > MOST_COMMAND {
            about = about.chars().take(MOST_COMMAND).chain(['…']).collect();
        }
        if let Some(job) = &info.job {
            about = format!("{} {} · {about}", job.system, job.id);
        }
        let started = utc(info.started_unix_ms / 1000);
        let started = match info.started_unix_ms {
            0 => markup!("–"),
            // What a browser reads as a time, shown in the reader's own time zone by the script.
            _ => markup!(
                "<time datetime=\"{}\">{}</time>",
                started.trim_end_matches(" UTC").replace(' ', "T") + "Z",
                started
            ),
        };
        let lasted = row.length_s.map_or_else(|| "–".to_owned(), units::duration);
        let headline = row.headline.clone().unwrap_or_default();
        let busy = headline.gpu_busy.map_or_else(|| "–".to_owned(), units::percent);
        let rate = headline.rate.as_ref().map_or("–", |rate| self.say(rate));
        let found = match (&row.problem, &headline.finding) {
            (Some(problem), _) => markup!("<span class=\"soft\">{}</span>", self.say(problem)),
            (None, Some((class, title))) => {
                markup!("<span class=\"dot {}\"></span>{}", *class, self.say(title))
            }
            (None, None) => markup!(""),
        };
        let pending = if row.headline.is_none() && row.problem.is_none() {
            "pending"
        } else {
            ""
        };
        // What cannot be read cannot be compared.
        let tick = match row.problem {
            Some(_) => markup!("<input type=\"checkbox\" disabled>"),
            None => markup!(
                "<input type=\"checkbox\" name=\"run\" value=\"{}\" aria-label=\"{}\">",
                row.key,
                self.say(&choose)
            ),
        };
        markup!(
            "<tr id=\"r-{}\" class=\"{}\" data-state=\"{}\"><td class=\"tick\">{}</td>\
             <td class=\"what\"><a href=\"/run/{}\">{}</a> <span class=\"state s-{}\">{}</span><small title=\"{}\">{}</small></td>\
             <td class=\"began\">{}</td><td class=\"number lasted\">{}</td><td class=\"number busy\">{}</td><td class=\"number rate\">{}</td><td class=\"found\">{}</td></tr>\n",
            row.key,
            pending,
            row.state.class(),
            tick,
            row.key,
            name,
            row.state.class(),
            self.say(&state_name(row)),
            id,
            about,
            started,
            lasted,
            busy,
            rate,
            found
        )
    }

    pub fn run(self, row: &Row, kept: &Kept, pulse: Option<&Pulse>) -> String {
        let save = message!(en: "Save this report", zh: "保存此报告");
        let links = markup!("<a href=\"/report/{}\" download>{}</a>", row.key, self.say(&save));
        let mut body = self.nav(links, "");
        let live = if row.state == State::Running {
            "true"
        } else {
            "false"
        };
        body += markup!(
            "<div id=\"run\" data-key=\"{}\" data-live=\"{}\" data-version=\"{}\">\n<div id=\"now\" aria-live=\"off\">{}</div>\n<div id=\"report\">\n{}</div>\n</div>\n",
            row.key,
            live,
            kept.version,
            self.now(row, kept, pulse),
            page::body(&kept.digest, self.options())
        );
        let mut frame = self.frame(digests::name(&kept.digest), body);
        frame.data = page::script_data(&kept.digest, self.language);
        frame.html()
    }

    /// What changes all the time while a run goes on.
    pub fn now(self, row: &Row, kept: &Kept, pulse: Option<&Pulse>) -> Markup {
        let Some(pulse) = pulse.filter(|_| row.state == State::Running) else {
            return Markup::default();
        };
        let mut tiles = Markup::default();
        let mut tile = |value: Option<String>, name: Message| {
            if let Some(value) = value {
                tiles += markup!("<li><b>{}</b><span>{}</span></li>\n", value, self.say(&name));
            }
        };
        tile(
            row.length_s.map(units::duration),
            message!(en: "running", zh: "已运行"),
        );
        tile(
            pulse.steps.map(|steps| steps.to_string()),
            message!(en: "steps", zh: "步"),
        );
        let rate = pulse.samples_per_s.map(units::count);
        if rate.is_some() {
            tile(rate, message!(en: "samples/s", zh: "样本/秒"));
        } else {
            tile(
                pulse.steps_per_s.map(units::count),
                message!(en: "steps/s", zh: "步/秒"),
            );
        }
        tile(
            pulse.gpu_util.map(units::percent),
            message!(en: "GPU utilization", zh: "GPU 利用率"),
        );
        tile(pulse.cpu_util.map(units::percent), message!(en: "CPU", zh: "CPU"));
        tile(
            pulse.loss.map(units::significant),
            message!(en: "loss", zh: "损失"),
        );
        let title = message!(en: "Now", zh: "此刻");
        let note = message!(en: "means of the last 30 s", zh: "最近 30 秒的均值");
        markup!(
            "<section class=\"now\"><p><span class=\"state s-running\">{}</span> <span class=\"soft\">{} · {}</span></p>\n<ul class=\"tiles\">\n{}</ul></section>\n",
            self.say(&title),
            self.say(&note),
            self.say(&digests::age(kept)),
            tiles
        )
    }

    pub fn report_body(self, digest: &Digest) -> (String, String) {
        let data = page::script_data(digest, self.language);
        (
            page::body(digest, self.options()).into_string(),
            data.as_str().to_owned(),
        )
    }

    pub fn compare(self, rows: &[&Row], digests: &[Digest]) -> String {
        let comparison = Comparison::of(digests);
        let served = Some(Served { theme: self.theme });
        let mut frame = compare::html::frame(&comparison, digests, self.options(), served);
        let runs: String = rows.iter().map(|row| format!("run={}&", row.key)).collect();
        let mut links = Markup::default();
        for (run, row) in comparison.runs.iter().zip(rows) {
            links += markup!("<a href=\"/run/{}\">{}</a>", row.key, run.letter);
        }
        if let [_, second] = rows {
            let swap = message!(en: "Swap A and B", zh: "交换 A 和 B");
            links += markup!(
                "<a href=\"/compare?{}base={}\">{}</a>",
                runs,
                second.key,
                self.say(&swap)
            );
        }
        // The first one stays the baseline in the other language.
        let query = format!("{runs}base={}&", rows.first().map_or("", |row| row.key.as_str()));
        frame.body = self.nav(links, &query) + frame.body;
        frame.html()
    }

    /// A page that says why there is no other.
    pub fn problem(self, title: &Message, text: &Message) -> String {
        let body = self.nav(Markup::default(), "")
            + markup!(
                "<header><div><h1>{}</h1><p>{}</p></div></header>\n",
                self.say(title),
                self.say(text)
            );
        self.frame(self.say(title), body).html()
    }

    /// Asks for the token. Nothing of a run is on it.
    pub fn login(self) -> String {
        let title = message!(en: "Token required", zh: "需要令牌");
        let text = message!(
            en: "Open the link that flatout serve printed, or enter its token here.",
            zh: "请打开 flatout serve 打印的链接，或在此输入令牌。"
        );
        let open = message!(en: "Open", zh: "打开");
        let body = markup!(
            "<header><div><h1>{}</h1><p>{}</p></div></header>\n<form class=\"search\" action=\"/\"><input type=\"password\" name=\"token\" aria-label=\"token\" autocomplete=\"off\"><button type=\"submit\">{}</button></form>\n",
            self.say(&title),
            self.say(&text),
            self.say(&open)
        );
        self.frame(self.say(&title), body).html()
    }
}

/// What the list shows.
pub struct List<'a> {
    pub roots: &'a [PathBuf],
    pub rows: Vec<&'a Row>,
    /// Rows that match and are not shown.
    pub more: usize,
    pub query: &'a str,
    pub version: u64,
}

/// Whether every word of a search is somewhere in the row, in any language.
pub fn matches(row: &Row, query: &str) -> bool {
    if query.trim().is_empty() {
        return true;
    }
    let info = &row.info;
    let state = state_name(row);
    let mut text = [info.name.as_str(), &info.id, &info.kind, &state.en, &state.zh].join(" ");
    for part in &info.command {
        text += " ";
        text += part;
    }
    let gpus = info.gpus.values().filter_map(|gpu| gpu.name.as_deref());
    let host = info.host.as_ref().map(|host| host.name.as_str());
    let job = info.job.as_ref().map(|job| job.id.as_str());
    let finding = row
        .headline
        .as_ref()
        .and_then(|headline| headline.finding.as_ref());
    let finding = finding.map(|(_, title)| [title.en.as_str(), &title.zh]);
    for part in gpus.chain(host).chain(job).chain(finding.into_iter().flatten()) {
        text += " ";
        text += part;
    }
    let text = text.to_lowercase();
    query
        .to_lowercase()
        .split_whitespace()
        .all(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn a_row_shows_the_program_without_its_interpreter() {
        let shown = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            program(&words).join(" ")
        };
        assert_eq!(
            shown("python3 -W ignore -u a/train.py --lr 1"),
            "a/train.py --lr 1"
        );
        assert_eq!(shown("/usr/bin/python3.11 -m package.train"), "-m package.train");
        assert_eq!(shown("python -c pass"), "-c pass");
        for whole in ["torchrun --nproc 2 train.py", "./train.sh", "python", "python -u"] {
            assert_eq!(shown(whole), whole);
        }
    }
}
