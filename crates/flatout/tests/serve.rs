//! `flatout serve` as a user opens it: in a real Chromium, and over plain sockets for what no browser would send.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "serve/browser.rs"]
mod browser;
#[path = "serve/live.rs"]
mod live;

use browser::{Browser, chromium};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies a recorded run, as one of this name that began this many seconds after the first.
fn copy(runs: &Path, from: &str, name: &str, after_s: u64) -> PathBuf {
    let folder = runs.join(format!("20261118-{after_s:06}"));
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(root().join("faults").join(from)).unwrap().flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    let path = folder.join("run.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    info["name"] = name.into();
    info["started_unix_ms"] = (1_794_960_000_000 + after_s * 1000).into();
    info["exit"] = json!({ "t": 30.0, "code": 0 });
    fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    folder
}

pub struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT/…`, as printed.
    pub link: String,
    _stderr: BufReader<std::process::ChildStderr>,
}

impl Served {
    fn start(runs: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
        command.arg("serve").arg(runs).args(more);
        if !more.contains(&"--listen") {
            command.args(["--listen", "0"]);
        }
        command
            .env("LANG", "C")
            .env_remove("LC_ALL")
            .env_remove("FLATOUT_TOKEN");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let link = line
            .split(" at ")
            .nth(1)
            .unwrap_or_else(|| panic!("{line}"))
            .trim()
            .to_owned();
        Self {
            child,
            link,
            _stderr: stderr,
        }
    }

    fn address(&self) -> &str {
        let rest = self.link.strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap()
    }

    /// Sends this text and gives all that comes back.
    fn send(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A server that is busy closes the connection without reading.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, target: &str) -> String {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three runs with names of all kinds, and folders that are none.
fn several(runs: &Path) {
    copy(runs, "gpu_waits_for_python_items/record", "baseline", 1);
    copy(runs, "lines/point_sets/record-gpu", "workers=8", 2);
    copy(
        runs,
        "loss_read_every_step/record",
        "<script>alert(1)</script>\u{1b}[31m",
        3,
    );
    fs::create_dir(runs.join("torn")).unwrap();
    fs::write(runs.join("torn/run.json"), "{\"schema\":1,\"id\":\"to").unwrap();
    fs::create_dir(runs.join("empty")).unwrap();
}

const ROWS: &str = "[...document.querySelectorAll('#rows tr')].filter((row) => !row.hidden)";
/// What sticks out of a window, apart from tables that scroll by themselves.
const TOO_WIDE: &str = "[...document.querySelectorAll('main *')].filter((one) => !one.closest('.scroll table, svg, .unseen') && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 200)).join('\\n')";

#[test]
fn chromium_lists_searches_opens_and_compares() {
    let Some(program) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    several(folder.path());
    let served = Served::start(folder.path(), &[]);
    let mut browser = Browser::start(program);
    browser.size(1200, 900);
    browser.dark(false);
    browser.open(&served.link);
    assert_eq!(browser.value(&format!("{ROWS}.length")), 4);
    // The findings of the rows that are seen come by themselves.
    browser.until(
        "[...document.querySelectorAll('#rows tr[data-state=done]')].every((row) => row.querySelector('.found').textContent.length > 10)",
        "headlines",
    );
    browser.picture("list");
    let hostile = browser.text("document.querySelector('#rows tr .what a').textContent");
    assert_eq!(hostile, "<script>alert(1)</script>\u{fffd}[31m");
    let torn = browser.text("document.querySelector('#rows tr[data-state=unreadable]').innerText");
    assert!(torn.contains("torn") && torn.contains("run.json"), "{torn}");

    browser.type_text("#q", "BASE");
    browser.until(&format!("{ROWS}.length === 1"), "the search");
    assert_eq!(
        browser.text("document.querySelector('#count').textContent"),
        "1 / 4"
    );
    browser.value("document.querySelector('#q').value = ''");
    browser.type_text("#q", " ");
    browser.until(&format!("{ROWS}.length === 4"), "everything again");
    browser.click(".chip[data-filter=failed]");
    browser.until(&format!("{ROWS}.length === 1"), "the filter");
    browser.click(".chip[data-filter='']");

    let find = |name: &str| {
        format!(
            "[...document.querySelectorAll('#rows tr')].find((row) => row.querySelector('a').textContent === '{name}')"
        )
    };
    browser.value(&format!("{}.querySelector('a').id = 'one'", find("workers=8")));
    browser.click("#one");
    browser.until(
        "location.pathname.startsWith('/run/') && document.readyState === 'complete'",
        "the run opens",
    );
    assert_eq!(
        browser.text("document.querySelector('h1').textContent"),
        "workers=8"
    );
    for part in ["#chart-wait svg .line", "#draw-flame rect", "article.finding"] {
        assert_eq!(
            browser.value(&format!("document.querySelectorAll('{part}').length > 0")),
            true,
            "{part}"
        );
    }
    browser.picture("run");
    browser.click("nav a");
    browser.until(
        "location.pathname === '/' && document.querySelector('#compare')",
        "the list again",
    );
    assert_eq!(browser.value("document.querySelector('#compare').disabled"), true);
    for name in ["baseline", "workers=8"] {
        browser.value(&format!("{}.querySelector('input').id = 'two'", find(name)));
        browser.click("#two");
        browser.value("document.querySelector('#two').id = ''");
    }
    browser.until("!document.querySelector('#compare').disabled", "two ticks");
    browser.click("#compare");
    browser.until(
        "location.pathname === '/compare' && document.readyState === 'complete'",
        "the comparison",
    );
    // The older one is the baseline.
    assert_eq!(
        browser.text("document.querySelector('h1').textContent"),
        "baseline → workers=8"
    );
    assert_eq!(
        browser.value("document.querySelectorAll('#chart-wait svg .line').length"),
        2
    );
    browser.picture("compare");
    browser.value("[...document.querySelectorAll('nav a')].find((link) => link.textContent.includes('Swap')).id = 'swap'");
    browser.click("#swap");
    browser.until(
        "document.querySelector('h1')?.textContent === 'workers=8 → baseline'",
        "the other way round",
    );

    let own = format!("http://{}/", served.address());
    let foreign: Vec<&String> = browser
        .requests
        .iter()
        .filter(|address| !address.starts_with(&own))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn chromium_shows_it_on_a_phone_dark_and_in_chinese() {
    let Some(program) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    several(folder.path());
    copy(
        folder.path(),
        "hot_card/record",
        "a_name_without_a_space_".repeat(8).as_str(),
        4,
    );
    let served = Served::start(folder.path(), &[]);
    let mut browser = Browser::start(program);
    for (width, dark, language) in [
        (390, false, "en"),
        (390, true, "zh-CN"),
        (1200, true, "en"),
        (1200, false, "zh-CN"),
    ] {
        browser.size(width, 844);
        browser.dark(dark);
        let name = |page: &str| {
            format!(
                "{page}-{width}-{}-{language}",
                if dark { "dark" } else { "light" }
            )
        };
        browser.open(&format!("{}?lang={language}", served.link));
        browser.until("!document.querySelector('#rows tr.pending')", "headlines");
        browser.picture(&name("list"));
        let mut wide = browser.text(TOO_WIDE);
        let paper = browser.text("getComputedStyle(document.body).backgroundColor");
        assert_eq!(paper == "rgb(255, 255, 255)", !dark, "{paper}");
        let keys =
            browser.value("[...document.querySelectorAll('#rows input[name]')].map((box) => box.value)");
        for page in [
            format!("run/{}", keys[0].as_str().unwrap()),
            format!("run/{}", keys[2].as_str().unwrap()),
            format!(
                "compare?run={}&run={}",
                keys[2].as_str().unwrap(),
                keys[3].as_str().unwrap()
            ),
        ] {
            browser.open(&format!("{}{page}", served.link));
            // The cookie keeps the language.
            assert_eq!(browser.text("document.documentElement.lang"), language);
            browser.picture(&name(
                page.split(['?']).next().unwrap().replace('/', "-").as_str(),
            ));
            wide += &browser.text(TOO_WIDE);
        }
        assert_eq!(wide, "", "{width} {language}");
    }
    // The button's choice holds on the next page, against the system's wish.
    browser.dark(true);
    browser.open(&served.link);
    browser.click("#theme");
    browser.open(&served.link);
    assert_eq!(
        browser.text("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn chromium_opens_a_thousand_runs() {
    let Some(program) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let first = copy(folder.path(), "never_moved/record", "run-0001", 1);
    let info: Value = serde_json::from_slice(&fs::read(first.join("run.json")).unwrap()).unwrap();
    for number in 2..=1000u64 {
        let run = folder.path().join(format!("20261118-{number:06}"));
        fs::create_dir(&run).unwrap();
        let mut info = info.clone();
        info["name"] = format!("run-{number:04}").into();
        info["started_unix_ms"] = (1_794_960_000_000 + number * 1000).into();
        fs::write(run.join("run.json"), serde_json::to_vec(&info).unwrap()).unwrap();
    }
    let served = Served::start(folder.path(), &[]);
    let mut browser = Browser::start(program);
    browser.size(1200, 900);
    browser.open(&served.link);
    let took = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
    eprintln!("1,000 runs: the page was loaded after {took} ms");
    assert_eq!(browser.value(&format!("{ROWS}.length")), 1000);
    assert_eq!(
        browser.text("document.querySelector('#rows a').textContent"),
        "run-1000"
    );
    browser.type_text("#q", "run-077");
    browser.until(&format!("{ROWS}.length === 10"), "the search");
    browser.until(
        &format!("{ROWS}.every((row) => !row.classList.contains('pending'))"),
        "headlines of what is seen",
    );
    // A run that appears, and one that goes, without loading the page again.
    copy(folder.path(), "never_moved/record", "run-077-again", 5000);
    fs::remove_dir_all(folder.path().join("20261118-000770")).unwrap();
    browser.until(
        &format!("{ROWS}[0].textContent.includes('run-077-again') && {ROWS}.length === 10"),
        "the new run",
    );
}

#[test]
fn answers_only_what_may_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path());
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let served = Served::start(folder.path(), &[]);
    let page = served.get("/");
    assert!(
        page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("workers=8"),
        "{page}"
    );
    for header in [
        "X-Content-Type-Options: nosniff",
        "frame-ancestors 'none'",
        "default-src 'none'",
        "Cache-Control: no-store",
    ] {
        assert!(page.contains(header), "{header}");
    }
    for target in [
        "/../../secret",
        "/run/..%2f..%2fsecret",
        "/run/%2e%2e/secret",
        "/report/../secret",
        "/secret",
        "/run/",
        "/run/0000000000000000",
        "/run/x/live",
        "/compare?run=/etc/passwd&run=../secret",
    ] {
        let answer = served.get(target);
        assert!(answer.starts_with("HTTP/1.1 404"), "{target}: {answer}");
        assert!(
            !answer.contains("root:x:") && !answer.ends_with("secret"),
            "{target}"
        );
    }
    for (request, status) in [
        ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("DELETE /run/x HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\n\r\n", "403"),
        (
            "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "400",
        ),
        ("\u{1}\u{2}\r\n\r\n", "400"),
        ("GET /?lang=%0d%0aX: HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
    ] {
        let answer = served.send(request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{request}: {answer}"
        );
        assert!(!answer.contains("workers=8"), "{request}");
    }
    let head = served.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    // A client that says nothing, and many at once, keep nobody out for long.
    let idle: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(served.address()).unwrap())
        .collect();
    drop(idle);
    let again = || served.get("/").starts_with("HTTP/1.1 200");
    assert!((0..100).any(|_| again() || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        false
    }));
}

#[test]
fn reports_are_saved_under_harmless_names() {
    let folder = tempfile::tempdir().unwrap();
    let run = copy(folder.path(), "never_moved/record", "name", 1);
    let path = run.join("run.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    info["id"] = "../\"\r\nX-Evil: 1\r\n\u{202e}id".into();
    fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    let served = Served::start(folder.path(), &[]);
    let list = served.get("/");
    let key = list
        .split("/run/")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let report = served.get(&format!("/report/{key}"));
    let head = report.split("\r\n\r\n").next().unwrap();
    assert!(head.contains("filename=\"report-..X-Evil1id.html\""), "{head}");
    assert!(!head.contains("\r\nX-Evil"), "{head}");
    // The file asks nobody for anything, as `flatout report` writes it.
    assert!(!report.contains("connect-src") && !report.contains("/icon.svg"));
}

#[test]
fn hostile_records_do_not_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let piped = copy(runs, "never_moved/record", "piped", 1);
    for name in ["samples.jsonl", "profile.json"] {
        let _ = fs::remove_file(piped.join(name));
        pipe(&piped.join(name));
    }
    let garbage = copy(runs, "never_moved/record", "garbage", 2);
    fs::write(
        garbage.join("steps.jsonl"),
        b"\xff\xfe{}\n[[[[\n{\"t\":1e308,\"dt\":-1,\"steps\":18446744073709551615}\n",
    )
    .unwrap();
    fs::write(garbage.join("samples.0000.jsonl.zst"), b"not zstd").unwrap();
    let cut = copy(runs, "lines/point_sets/record-gpu", "cut", 3);
    for entry in fs::read_dir(&cut)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name() != "run.json")
    {
        let bytes = fs::read(entry.path()).unwrap();
        fs::write(entry.path(), &bytes[..bytes.len() * 2 / 3]).unwrap();
    }
    fs::create_dir(runs.join("pipe")).unwrap();
    pipe(&runs.join("pipe/run.json"));
    let served = Served::start(runs, &[]);
    let list = served.get("/");
    let keys: Vec<&str> = list
        .split("href=\"/run/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(keys.len(), 4);
    for key in &keys {
        let page = served.get(&format!("/run/{key}"));
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    }
    let compared = served.get(&format!("/compare?run={}&run={}", keys[0], keys[1]));
    assert!(compared.starts_with("HTTP/1.1 200"), "{compared}");
    assert!(served.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn other_addresses_ask_for_a_token() {
    let folder = tempfile::tempdir().unwrap();
    several(folder.path());
    for served in [
        Served::start(folder.path(), &["--listen", "0.0.0.0:0"]),
        Served::start(folder.path(), &["--token"]),
    ] {
        let token = served.link.split("?token=").nth(1).unwrap().to_owned();
        for target in ["/", "/rows?since=0", "/?token=wrong"] {
            let answer = served.get(target);
            assert!(
                answer.starts_with("HTTP/1.1 401") && !answer.contains("workers=8"),
                "{answer}"
            );
        }
        let redirect = served.get(&format!("/?token={token}"));
        assert!(
            redirect.starts_with("HTTP/1.1 303") && redirect.contains("Location: /\r\n"),
            "{redirect}"
        );
        let cookie = redirect
            .split("Set-Cookie: ")
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let page = served.send(&format!(
            "GET / HTTP/1.1\r\nHost: any.example\r\nCookie: {cookie}\r\n\r\n"
        ));
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains("workers=8"),
            "{page}"
        );
        assert!(!page.contains(&token));
    }
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
        command
            .arg("serve")
            .args(arguments)
            .current_dir(folder.path())
            .env("LANG", "C")
            .env_remove("LC_ALL");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(serve(&["nowhere"]).contains("`nowhere` is not a folder"));
    assert!(serve(&["--listen", "here:there"]).contains("is not a valid listen address"));
    assert!(serve(&["--listen", "0", "--token", "1234"]).contains("too easy to guess"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = serve(&["--listen", &address]);
    assert!(
        text.contains("already in use") && text.contains("--listen 0"),
        "{text}"
    );
}
