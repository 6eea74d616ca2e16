//! `flatout mcp` as clients meet it: good ones, bad ones, and the official Python client.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "run/support.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn server(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
    command
        .args(["--lang", "en", "mcp"])
        .args(arguments)
        .current_dir(folder)
        .env("FLATOUT_HOME", folder.join("home"));
    command
}

/// A client that says exactly what a test wants.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = server(folder, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// After the handshake.
    fn greeted(folder: &Path, arguments: &[&str]) -> Self {
        let mut client = Self::start(folder, arguments);
        let answer = client.ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(
            self.output.read_line(&mut line).unwrap() > 0,
            "the server is gone"
        );
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        self.read()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The structured answer of a call that works.
    fn answer(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 4000, "{tool} answers with {} bytes", text.len());
        let result = answer["result"]["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result);
        result
    }

    /// The words of a call that does not.
    fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Closes our end and waits for the server's.
    fn close(mut self) -> std::process::ExitStatus {
        drop(self.input.take());
        self.child.wait().unwrap()
    }
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/recordings")
        .join(name)
}

/// A project with records in it.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["h200-starved", "h200-steady"] {
        let to = folder.path().join(name);
        std::fs::create_dir(&to).unwrap();
        for file in std::fs::read_dir(recording(name)).unwrap().flatten() {
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    folder
}

#[test]
fn versions_are_negotiated_in_both_eras() {
    let folder = tempfile::tempdir().unwrap();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = Client::start(folder.path(), &[]);
        let answer = client.ask(
            "initialize",
            json!({"protocolVersion": asked, "capabilities": {}}),
        );
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
        assert!(client.close().success());
    }
    let mut client = Client::start(folder.path(), &[]);
    let meta = |version: &str| json!({"_meta": {VERSION: version, CAPABILITIES: {}}});
    let found = client.ask("server/discover", meta("2026-07-28"));
    assert_eq!(found["result"]["resultType"], "complete", "{found}");
    assert!(
        found["result"]["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28"))
    );
    let listed = client.ask("tools/list", meta("2026-07-28"));
    assert!(listed["result"]["ttlMs"].is_u64() && listed["result"]["tools"].as_array().unwrap().len() == 11);
    let refused = client.ask("tools/list", meta("2031-01-01"));
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    assert_eq!(refused["error"]["data"]["requested"], "2031-01-01");
    let half = client.ask("tools/list", json!({"_meta": {VERSION: "2026-07-28"}}));
    assert_eq!(half["error"]["code"], -32602, "{half}");
    assert_eq!(client.ask("ping", meta("2026-07-28"))["error"]["code"], -32601);
    assert!(client.close().success());
}

#[test]
fn bad_clients_get_reasons_and_the_server_goes_on() {
    let folder = project();
    let mut client = Client::start(folder.path(), &[]);
    // Half a protocol: no handshake.
    let early = client.call("runs", json!({}));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    assert!(early["error"]["message"].as_str().unwrap().contains("initialize"));
    assert_eq!(
        client.ask("initialize", json!({"protocolVersion": 3}))["error"]["code"],
        -32602
    );
    client.ask(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    );
    let nested = "[".repeat(100_000);
    for (line, code) in [
        (b"{not json".to_vec(), -32700),
        (nested.into_bytes(), -32700),
        (b"\xff\xfe{}".to_vec(), -32700),
        (b"42".to_vec(), -32600),
        (
            b"{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"ping\"}".to_vec(),
            -32600,
        ),
        (b"[]".to_vec(), -32600),
        (vec![b'x'; 3_000_000], -32600),
    ] {
        client.write(&line);
        let answer = client.read();
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["id"].is_null());
    }
    // Empty lines, responses and unknown notifications need no answer.
    client.write(b"");
    client.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/whatever", "params": {}}));
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12345}}),
    );
    assert_eq!(client.ask("resources/list", json!({}))["error"]["code"], -32601);
    let unknown = client.call("destroy", json!({}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"].as_str().unwrap().contains("diagnose"),
        "{unknown}"
    );
    let wrong = client.ask("tools/call", json!({"name": "runs", "arguments": [1]}));
    assert_eq!(wrong["error"]["code"], -32602);
    assert!(
        client
            .refusal("diagnose", json!({"rnu": "last"}))
            .contains("unknown field `rnu`")
    );
    assert!(
        client
            .refusal("diagnose", json!({"run": 5}))
            .contains("invalid arguments")
    );
    assert!(
        client
            .refusal("diagnose", json!({"max_bytes": 3}))
            .contains("max_bytes")
    );
    assert!(
        client
            .refusal("diagnose", json!({"run": "no such run"}))
            .contains("no such run")
    );
    assert!(
        client
            .refusal("diagnose", json!({"run": "h200-starved", "finding": "f999"}))
            .contains("f999")
    );
    assert!(client.refusal("job", json!({"job": "job1"})).contains("job1"));
    assert!(
        client
            .refusal("explain", json!({"rule": "loader-starvd"}))
            .contains("loader-starved")
    );
    assert!(client.answer("runs", json!({}))["runs"].is_array());
    assert!(client.close().success());
}

#[test]
fn paths_outside_the_folder_are_refused() {
    let outer = project();
    let inner = outer.path().join("project");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("train.py"), "import torch\n").unwrap();
    std::fs::write(outer.path().join("other.py"), "import torch\n").unwrap();
    let mut client = Client::greeted(&inner, &[]);
    let outside = outer.path().join("h200-starved");
    for (tool, arguments) in [
        ("lint", json!({"paths": ["../other.py"]})),
        ("lint", json!({"paths": ["/etc"]})),
        ("diagnose", json!({"run": outside})),
        ("diagnose", json!({"run": "../h200-starved"})),
        ("compare", json!({"runs": ["../h200-starved", "../h200-steady"]})),
        ("report", json!({"run": "last", "html": "../page.html"})),
        ("run", json!({"command": ["true"], "folder": ".."})),
        ("apply", json!({"findings": ["a@b:1"], "paths": ["../other.py"]})),
    ] {
        let words = client.refusal(tool, arguments.clone());
        assert!(words.contains("is outside"), "{tool} {arguments}: {words}");
    }
    assert!(!outer.path().join("page.html").exists());
    assert_eq!(client.answer("lint", json!({}))["files"], 1);
    assert!(client.close().success());
}

#[test]
fn answers_are_small_and_lead_on() {
    let folder = project();
    let mut client = Client::greeted(folder.path(), &[]);
    let diagnosed = client.answer("diagnose", json!({"run": "h200-starved"}));
    assert!(
        diagnosed["monitor"]["gpus"][0]["power"].is_object(),
        "{diagnosed}"
    );
    let id = diagnosed["findings"][0]["id"].as_str().unwrap().to_owned();
    let rule = diagnosed["findings"][0]["rule"].clone();
    let whole = client.answer("diagnose", json!({"run": "h200-starved", "finding": id}));
    assert_eq!(whole["finding"]["rule"], rule);
    assert_eq!(client.answer("explain", json!({"rule": rule}))["rule"], rule);
    let compared = client.answer("compare", json!({"runs": ["h200-starved", "h200-steady"]}));
    assert_eq!(compared["runs"][1]["letter"], "B");
    let saved = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["baseline", "save", "main", "h200-starved"])
        .current_dir(folder.path())
        .env("FLATOUT_HOME", folder.path().join("home"))
        .output()
        .unwrap();
    assert!(saved.status.success());
    let gated = client.answer("compare", json!({"baseline": "main", "runs": ["h200-steady"]}));
    assert_eq!(gated["figures"], compared["figures"]);
    let missing = client.refusal("compare", json!({"baseline": "other"}));
    assert!(missing.contains("available baselines: main"), "{missing}");
    let busy = compared["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["figure"] == "gpu_busy");
    assert_eq!(busy.unwrap()["changes"][0]["outcome"], "better", "{compared}");
    let report = client.answer("report", json!({"run": "h200-steady"}));
    assert!(
        report["figures"]
            .as_array()
            .is_some_and(|figures| !figures.is_empty())
    );
    assert!(!folder.path().join("page.html").exists());
    client.answer("report", json!({"run": "h200-steady", "html": "page.html"}));
    assert!(
        std::fs::read_to_string(folder.path().join("page.html"))
            .unwrap()
            .contains("<html")
    );
    assert!(client.close().success());
}

#[test]
fn large_projects_and_hostile_names_still_fit() {
    let folder = project();
    let code = "import torch\nfrom torch.utils.data import DataLoader\n".to_owned()
        + &"loader = DataLoader(data, num_workers=2)\nfor x in loader:\n    model(x.cuda())\n    loss.backward()\n    loss.item()\n".repeat(60);
    for index in 0..20 {
        std::fs::write(folder.path().join(format!("train{index}\u{1b}[31m.py")), &code).unwrap();
    }
    let info = folder.path().join("h200-steady/run.json");
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&info).unwrap()).unwrap();
    run["name"] = json!("\u{1b}]0;owned\u{7}\u{202e}".to_owned() + &"long ".repeat(5000));
    std::fs::write(&info, run.to_string()).unwrap();
    let mut client = Client::greeted(folder.path(), &[]);
    let linted = client.answer("lint", json!({}));
    assert!(linted["left_out"]["findings"].as_u64().unwrap() > 0, "{linted}");
    let more = client.call("lint", json!({"max_bytes": 20_000}));
    let more = more["result"]["structuredContent"]["findings"]
        .as_array()
        .unwrap()
        .len();
    assert!(more > linted["findings"].as_array().unwrap().len());
    for (tool, arguments) in [
        ("report", json!({"run": "h200-steady"})),
        ("diagnose", json!({"run": "h200-steady"})),
        ("compare", json!({"runs": ["h200-starved", "h200-steady"]})),
    ] {
        let answer = client.answer(tool, arguments).to_string();
        assert!(
            !answer.contains("\\u001b") && !answer.contains('\u{202e}'),
            "{answer}"
        );
    }
    assert!(client.close().success());
}

const FIXABLE: &str = "import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(4096, 16), torch.randn(4096, 1))
loader = DataLoader(data, batch_size=64, num_workers=2)
model = torch.nn.Linear(16, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(10):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
";

#[test]
fn changes_source_only_with_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    std::fs::write(&path, FIXABLE).unwrap();
    let text = || std::fs::read_to_string(&path).unwrap();
    let mut reader = Client::greeted(folder.path(), &["--read-only"]);
    let linted = reader.answer("lint", json!({}));
    let findings = linted["findings"].as_array().unwrap();
    let id = findings.iter().find(|one| one["fix"] == "safe").unwrap()["id"].clone();
    let shown = reader.answer("apply", json!({"findings": [id]}));
    assert!(
        shown["diff"].as_str().unwrap().contains("pin_memory=True"),
        "{shown}"
    );
    assert_eq!((&shown["written"], text()), (&json!(false), FIXABLE.to_owned()));
    assert!(
        reader
            .refusal("apply", json!({"findings": [id], "write": true}))
            .contains("read-only")
    );
    assert!(
        reader
            .refusal("report", json!({"html": "page.html"}))
            .contains("read-only")
    );
    let run = reader.call("run", json!({"command": ["true"]}));
    assert_eq!(run["error"]["code"], -32602, "{run}");
    assert_eq!(text(), FIXABLE);
    assert!(reader.close().success());
    let mut client = Client::greeted(folder.path(), &[]);
    assert!(client.refusal("apply", json!({})).contains("nothing to apply"));
    assert!(
        client
            .refusal("apply", json!({"findings": ["x@train.py:1"]}))
            .contains("x@train.py:1")
    );
    let done = client.answer("apply", json!({"findings": [id], "write": true}));
    assert_eq!(
        (&done["written"], &done["files"]),
        (&json!(true), &json!(["train.py"]))
    );
    assert!(text().contains("pin_memory=True"));
    let backup = folder.path().join("train.py.flatout-backup");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), FIXABLE);
    assert!(client.close().success());
}

/// Whether a program whose command line has this word runs.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.first() == Some(&b"sleep".as_slice()) && words.get(1) == Some(&word.as_bytes())
    })
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn programs_are_waited_for_stopped_and_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::greeted(folder.path(), &[]);
    let started = client.answer(
        "run",
        json!({"command": ["sleep", "7351.5"], "name": "nap", "wait_s": 0}),
    );
    assert_eq!(
        (&started["state"], &started["job"]),
        (&json!("running"), &json!("job1"))
    );
    until("the program starts", || runs("7351.5"));
    let busy = client.refusal("run", json!({"command": ["true"]}));
    assert!(busy.contains("job1 is still running"), "{busy}");
    let stopped = client.answer("job", json!({"job": "job1", "stop": true}));
    assert_eq!(stopped["state"], "ended", "{stopped}");
    assert!(stopped["run"].is_string() && !runs("7351.5"), "{stopped}");
    // A cancelled call gets no answer, and its program goes on until it is stopped.
    let call = json!({"name": "run", "arguments": {"command": ["sleep", "7352.5"]}});
    client.send(&json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call}));
    until("the program starts", || runs("7352.5"));
    assert_eq!(
        client.ask("ping", json!({}))["result"],
        json!({}),
        "a ping is answered meanwhile"
    );
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}));
    let asked = client.answer("job", json!({"job": "job2", "wait_s": 0.5}));
    assert_eq!(asked["state"], "running", "{asked}");
    assert!(runs("7352.5"));
    let stopped = client.answer("job", json!({"job": "job2", "stop": true}));
    assert_eq!(stopped["state"], "ended", "{stopped}");
    assert!(!runs("7352.5"));
    // No shell reads the words of a command.
    let failed = client.answer(
        "run",
        json!({"command": ["no-such-program; touch x", "$(touch x)"]}),
    );
    assert_ne!(failed["exit_code"], 0, "{failed}");
    assert!(
        failed["output_tail"]
            .as_str()
            .unwrap()
            .contains("no-such-program"),
        "{failed}"
    );
    assert!(!folder.path().join("x").exists());
    assert!(
        client
            .refusal("run", json!({"command": []}))
            .contains("list of strings")
    );
    assert!(
        client
            .refusal("run", json!({"command": ["python train.py"]}))
            .contains("list of strings")
    );
    let unset = client.answer(
        "run",
        json!({"command": ["true"], "settings": ["no_such_setting=1"]}),
    );
    assert!(
        unset["output_tail"].as_str().unwrap().contains("no_such_setting"),
        "{unset}"
    );
    // A client that leaves takes its program with it.
    client.answer("run", json!({"command": ["sleep", "7353.5"], "wait_s": 0}));
    until("the program starts", || runs("7353.5"));
    assert!(client.close().success());
    until("the program ends", || !runs("7353.5"));
}

#[test]
fn a_killed_server_leaves_no_program_running() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::greeted(folder.path(), &[]);
    client.answer("run", json!({"command": ["sleep", "7354.5"], "wait_s": 0}));
    until("the program starts", || runs("7354.5"));
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    until("the program ends", || !runs("7354.5"));
}

#[test]
fn batches_are_answered_in_the_revisions_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "runs"}},
        5,
    ]);
    let mut client = Client::start(folder.path(), &[]);
    client.ask(
        "initialize",
        json!({"protocolVersion": "2025-03-26", "capabilities": {}}),
    );
    client.send(&batch);
    let answers = client.read();
    let mut ids: Vec<String> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "null"]);
    assert!(client.close().success());
    let mut client = Client::greeted(folder.path(), &[]);
    client.send(&batch);
    assert_eq!(client.read()["error"]["code"], -32600);
    assert!(client.close().success());
}

/// The official client of the protocol, from PyPI, in both eras.
#[test]
fn the_official_python_client_gets_from_run_to_proof() {
    let Some(python) = flatout_testing::python_with("mcp", &["mcp", "torch"]) else {
        return;
    };
    let folder = project();
    std::fs::write(folder.path().join("fixable.py"), FIXABLE).unwrap();
    // One `tune` at a time holds the lock in the temporary folder; a folder of its own keeps other tests' tunes out.
    let temporary = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
    let output = Command::new(&python)
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_flatout"))
        .arg(folder.path())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.ends_with("all answered\n"), "{out}\n{err}");
}
