//! Which address shows what. Every one only reads.

use super::digests::{Digests, headline};
use super::guard::{Admission, Guard};
use super::http::{Request, Response};
use super::index::{Index, Key, Row, State};
use super::pages::{List, MOST_ROWS, View, matches};
use super::pulse::{Follower, Pulse};
use crate::digest::Digest;
use crate::page;
use flatout_core::{Language, message};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Runs in one comparison: a curve per run has a color of its own.
const MOST_COMPARED: usize = 6;
/// Rows whose headline is asked for at one time.
const MOST_SEEN: usize = 60;
/// A job that nobody looked at for so long is no longer followed.
const FORGOTTEN: Duration = Duration::from_secs(60);

const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"3\" fill=\"#1d5fd1\"/><path d=\"M2 12h3V8h3V5h3V3h3v9z\" fill=\"#fff\"/></svg>";

/// Everything that the threads of the server share.
pub struct Site {
    pub roots: Vec<PathBuf>,
    pub language: Language,
    pub guard: Guard,
    pub digests: Digests,
    index: Mutex<Index>,
    followers: Mutex<HashMap<Key, (Follower, Instant)>>,
    wanted: Mutex<VecDeque<Key>>,
    wake: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Site {
    pub fn new(roots: Vec<PathBuf>, language: Language, guard: Guard, digests: Digests) -> Self {
        Self {
            index: Mutex::new(Index::new(roots.clone())),
            roots,
            language,
            guard,
            digests,
            followers: Mutex::default(),
            wanted: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// How many runs there are now.
    pub fn count(&self) -> usize {
        let mut index = lock(&self.index);
        index.refresh();
        index.rows().len()
    }

    pub fn answer(&self, request: &Request) -> Response {
        let view = self.view(request);
        if !["GET", "HEAD"].contains(&request.method.as_str()) {
            return Response::plain("405 Method Not Allowed", "only GET\n").with("Allow: GET, HEAD".into());
        }
        match self.guard.admit(request) {
            Admission::Granted => {}
            Admission::WrongHost => {
                return Response::plain("403 Forbidden", "this server answers as localhost only\n");
            }
            Admission::NoToken => return Response::html("401 Unauthorized", view.login()),
            Admission::Redirect { cookie, to } => {
                return Response::plain("303 See Other", "")
                    .with(format!("Location: {to}"))
                    .with(format!("Set-Cookie: {cookie}"));
            }
        }
        let response = self.page(request, view);
        // The choice of a language holds for the next pages, too.
        match request.value("lang").and_then(Language::parse) {
            Some(language) => response.with(format!(
                "Set-Cookie: flatout-lang={}; Path=/; Max-Age=31536000; SameSite=Strict",
                language.tag()
            )),
            None => response,
        }
    }

    fn view(&self, request: &Request) -> View {
        let asked = request.value("lang").and_then(Language::parse);
        let kept = request.cookie("flatout-lang").and_then(Language::parse);
        View {
            language: asked.or(kept).unwrap_or(self.language),
            theme: match request.cookie("flatout-theme") {
                Some("dark") => Some("dark"),
                Some("light") => Some("light"),
                _ => None,
            },
        }
    }

    fn page(&self, request: &Request, view: View) -> Response {
        let parts: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        match parts.as_slice() {
            [""] => self.list(request, view),
            ["rows"] => self.rows(request, view),
            ["run", key] => self.run(key, view),
            ["run", key, "live"] => self.live(key, request, view),
            ["report", key] => self.report(key, view),
            ["compare"] => self.compare(request, view),
            ["icon.svg"] | ["favicon.ico"] => Response {
                kind: "image/svg+xml",
                ..Response::plain("200 OK", ICON)
            },
            _ => not_found(view),
        }
    }

    fn list(&self, request: &Request, view: View) -> Response {
        let query = request.value("q").unwrap_or("");
        let mut index = lock(&self.index);
        index.refresh();
        let mut rows: Vec<&Row> = index
            .rows()
            .into_iter()
            .filter(|row| matches(row, query))
            .collect();
        let more = rows.len().saturating_sub(MOST_ROWS);
        rows.truncate(MOST_ROWS);
        let list = List {
            roots: &self.roots,
            rows,
            more,
            query,
            version: index.version(),
        };
        Response::html("200 OK", view.list(&list))
    }

    /// The rows that changed since a version, in their order.
    fn rows(&self, request: &Request, view: View) -> Response {
        let since = request
            .value("since")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let query = request.value("q").unwrap_or("");
        let mut index = lock(&self.index);
        index.refresh();
        let seen = request.value("see").unwrap_or("").split(',').take(MOST_SEEN);
        self.want(
            seen.filter_map(|key| index.row(key))
                .filter(|row| row.wants_headline()),
        );
        let mut changed: Vec<Value> = Vec::new();
        let mut before: Option<&str> = None;
        for row in index
            .rows()
            .into_iter()
            .filter(|row| matches(row, query))
            .take(MOST_ROWS)
        {
            if row.version > since {
                changed.push(json!({ "key": row.key, "after": before, "html": view.row(row).into_string() }));
            }
            before = Some(&row.key);
        }
        let gone: Vec<&str> = index.gone_since(since).collect();
        Response::json(&json!({ "version": index.version(), "rows": changed, "gone": gone }))
    }

    /// Puts rows in the line for a headline.
    fn want<'a>(&self, rows: impl Iterator<Item = &'a Row>) {
        let mut wanted = lock(&self.wanted);
        for row in rows {
            if !wanted.contains(&row.key) && wanted.len() < 2 * MOST_SEEN {
                wanted.push_back(row.key.clone());
            }
        }
        self.wake.notify_one();
    }

    /// Makes the headlines that browsers ask for, one after the other; called by a thread of its own.
    pub fn make_headlines(&self) {
        loop {
            let key = {
                let mut wanted = lock(&self.wanted);
                loop {
                    if let Some(key) = wanted.pop_front() {
                        break key;
                    }
                    wanted = self.wake.wait(wanted).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let Some(row) = self.row(&key) else { continue };
            let began = Instant::now();
            let made = self.digests.read(&row.folder).map(|digest| headline(&digest));
            // One that cannot be read is not tried again and again.
            lock(&self.index).set_headline(&key, made.unwrap_or_default(), began.elapsed());
        }
    }

    fn row(&self, key: &str) -> Option<Row> {
        let mut index = lock(&self.index);
        index.refresh();
        index.row(key).cloned()
    }

    fn run(&self, key: &str, view: View) -> Response {
        let Some(row) = self.row(key) else {
            return not_found(view);
        };
        match self.digests.get(key, &row.folder, row.state) {
            Ok(kept) => {
                let pulse = self.pulse(&row);
                Response::html("200 OK", view.run(&row, &kept, pulse.as_ref()))
            }
            Err(problem) => unreadable(&row, problem, view),
        }
    }

    fn live(&self, key: &str, request: &Request, view: View) -> Response {
        let Some(row) = self.row(key) else {
            return Response::plain("404 Not Found", "no such run\n");
        };
        let kept = match self.digests.get(key, &row.folder, row.state) {
            Ok(kept) => kept,
            // Being written, or gone in this moment: the page stays as it is.
            Err(_) => return Response::plain("503 Service Unavailable", "not readable now\n"),
        };
        let pulse = self.pulse(&row);
        let mut value = json!({
            "running": row.state == State::Running,
            "version": kept.version,
            "now": view.now(&row, &kept, pulse.as_ref()).into_string(),
        });
        let shown: Option<u64> = request.value("version").and_then(|text| text.parse().ok());
        if shown != Some(kept.version) {
            let (body, data) = view.report_body(&kept.digest);
            value["body"] = body.into();
            value["data"] = data.into();
        }
        Response::json(&value)
    }

    fn pulse(&self, row: &Row) -> Option<Pulse> {
        let mut followers = lock(&self.followers);
        followers.retain(|_, (_, used)| used.elapsed() < FORGOTTEN);
        if row.state != State::Running {
            followers.remove(&row.key);
            return None;
        }
        let entry = followers
            .entry(row.key.clone())
            .or_insert_with(|| (Follower::new(&row.folder), Instant::now()));
        entry.1 = Instant::now();
        Some(entry.0.look())
    }

    /// The report as a file, as `flatout report` writes it.
    fn report(&self, key: &str, view: View) -> Response {
        let Some(row) = self.row(key) else {
            return not_found(view);
        };
        let kept = match self.digests.get(key, &row.folder, row.state) {
            Ok(kept) => kept,
            Err(problem) => return unreadable(&row, problem, view),
        };
        let options = page::Options {
            language: view.language,
            pdf_ready: false,
        };
        let name: String = row
            .info
            .id
            .chars()
            .filter(|character| character.is_ascii_alphanumeric() || "._-".contains(*character))
            .take(80)
            .collect();
        Response::html("200 OK", page::html(&kept.digest, options)).with(format!(
            "Content-Disposition: attachment; filename=\"report-{name}.html\""
        ))
    }

    fn compare(&self, request: &Request, view: View) -> Response {
        let mut rows: Vec<Row> = Vec::new();
        for key in request.values("run").take(2 * MOST_COMPARED) {
            match self.row(key) {
                Some(row) if rows.iter().all(|known| known.key != row.key) => rows.push(row),
                Some(_) => {}
                None => return not_found(view),
            }
        }
        if rows.len() < 2 || rows.len() > MOST_COMPARED {
            let title = message!(en: "Choose two runs", zh: "请选择两个运行");
            let text = message!(
                en: "A comparison takes 2 to {MOST_COMPARED} runs. Select them in the list.",
                zh: "对比需要 2 到 {MOST_COMPARED} 个运行。请在列表中勾选。"
            );
            return Response::html("400 Bad Request", view.problem(&title, &text));
        }
        // The oldest is the baseline, unless another one is asked for.
        rows.sort_by(|a, b| (a.info.started_unix_ms, &a.folder).cmp(&(b.info.started_unix_ms, &b.folder)));
        if let Some(base) = request.value("base") {
            rows.sort_by_key(|row| row.key != base);
        }
        let mut digests: Vec<Digest> = Vec::new();
        for row in &rows {
            match self.digests.read(&row.folder) {
                Ok(digest) => digests.push(digest),
                Err(problem) => return unreadable(row, problem, view),
            }
        }
        let rows: Vec<&Row> = rows.iter().collect();
        Response::html("200 OK", view.compare(&rows, &digests))
    }
}

fn not_found(view: View) -> Response {
    let title = message!(en: "Page not found", zh: "页面不存在");
    let text = message!(
        en: "There is no run at this address. It may have been deleted or moved.",
        zh: "此地址没有运行。它可能已被删除或移动。"
    );
    Response::html("404 Not Found", view.problem(&title, &text))
}

fn unreadable(row: &Row, problem: flatout_core::Message, view: View) -> Response {
    let problem = row.problem.clone().unwrap_or(problem);
    let title = message!(en: "This run cannot be read", zh: "无法读取该运行");
    Response::html("200 OK", view.problem(&title, &problem))
}
