//! `flatout report` as a user runs it, and its page in a real Chromium: drawn, zoomable, light and dark, wide and narrow.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use flatout_testing::chromium;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A recording of an H200 that waits for Python items.
fn recording() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("faults/gpu_waits_for_python_items/record")
}

/// A copy whose run has another name.
fn named(folder: &Path, name: &str) -> PathBuf {
    let copy = folder.join("record");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(recording()).unwrap().flatten() {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let path = copy.join("run.json");
    let mut info: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    info["name"] = name.into();
    fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    copy
}

fn flatout(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(arguments)
        .env("LANG", "C")
        .env_remove("LC_ALL")
        .output()
        .unwrap()
}

fn page(record: &Path, path: &Path, more: &[&str]) {
    let (record, path) = (record.to_str().unwrap(), path.to_str().unwrap());
    let arguments = [&["report", record, "--html", path], more].concat();
    let output = flatout(&arguments);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn prints_the_summary_and_writes_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let record = named(folder.path(), "train");
    let output = flatout(&["report", record.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("train\n") && text.contains("samples per second"),
        "{text}"
    );
    assert!(record.join("report.html").exists());
    assert!(String::from_utf8_lossy(&output.stderr).contains("report.html"));
}

#[test]
fn markdown_is_all_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let record = named(folder.path(), "train");
    let output = flatout(&["report", record.to_str().unwrap(), "--md"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("# train\n") && text.contains("## Findings"),
        "{text}"
    );
    assert!(!record.join("report.html").exists());
}

#[test]
fn what_is_not_a_record_is_named() {
    let output = flatout(&["report", "no-such-run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-run"));
}

/// The document after its scripts ran.
fn dom(chromium: &str, folder: &Path, page: &Path, width: u32) -> String {
    let output = Command::new(chromium)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--virtual-time-budget=2000")
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn chromium_draws_every_chart_and_runs_no_script_of_a_record() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = named(folder.path(), "<script>alert(1)</script>");
    let path = folder.path().join("report.html");
    page(&record, &path, &[]);
    let dom = dom(chromium, folder.path(), &path, 1280);
    assert_eq!(dom.matches("<script").count(), 2);
    for chart in [
        "busy",
        "rate",
        "wait",
        "memory",
        "power",
        "temperature",
        "clocks",
        "cpu",
    ] {
        let part = dom
            .split(&format!("id=\"chart-{chart}\""))
            .nth(1)
            .unwrap_or_else(|| panic!("{chart} is missing"));
        let part = part.split("class=\"chart\"").next().unwrap();
        assert!(part.contains("class=\"line c0"), "{chart} has no curve: {part}");
    }
}

/// What the page's own script cannot tell: run beside it, with the policy that forbids it taken out.
const LOOK: &str = r##"<script>addEventListener("load", () => {
  const said = {};
  const plot = document.querySelector("#chart-power svg.plot");
  const at = (kind, share) => {
    const box = plot.getBoundingClientRect();
    const place = { clientX: box.left + box.width * share, clientY: box.top + 40, bubbles: true, button: 0, pointerId: 1 };
    plot.dispatchEvent(new PointerEvent(kind, place));
  };
  SVGElement.prototype.setPointerCapture = () => {};
  const ticks = () => [...plot.querySelectorAll("text")].map((text) => text.textContent).join("|");
  const legend = () => document.querySelector("#chart-power .legend").textContent;
  said.before = ticks();
  at("pointermove", 0.5);
  said.read = legend();
  at("pointerdown", 0.3); at("pointermove", 0.6); at("pointerup", 0.6);
  said.zoomed = ticks();
  plot.dispatchEvent(new MouseEvent("dblclick"));
  said.after = ticks();
  // A headless window is never narrower than 500 px: the phone's width is given to the body.
  document.body.style.width = "360px";
  const shown = [...document.querySelectorAll("main *")].filter((one) => !one.closest(".scroll table, svg *"));
  said.widest = Math.ceil(Math.max(...shown.map((one) => one.getBoundingClientRect().right)));
  said.paper = getComputedStyle(document.body).backgroundColor;
  document.getElementById("theme").click();
  said.toggled = getComputedStyle(document.body).backgroundColor;
  document.body.dataset.said = JSON.stringify(said);
});</script></body>"##;

fn look(chromium: &str, width: u32, more: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    page(&recording(), &path, more);
    let html = fs::read_to_string(&path).unwrap();
    let open = html
        .replace("Content-Security-Policy", "x-none")
        .replace("</body>", LOOK);
    fs::write(&path, open).unwrap();
    let dom = dom(chromium, folder.path(), &path, width);
    let said = dom
        .split("data-said=\"")
        .nth(1)
        .expect("the page's script failed");
    let said = said.split('"').next().unwrap().replace("&quot;", "\"");
    serde_json::from_str(&said.replace("&amp;", "&")).unwrap()
}

#[test]
fn chromium_zooms_reads_values_and_turns_dark() {
    let Some(chromium) = chromium() else { return };
    let said = look(chromium, 1280, &[]);
    assert_ne!(said["before"], said["zoomed"], "{said}");
    assert_eq!(said["before"], said["after"], "{said}");
    assert!(said["read"].as_str().unwrap().contains(" W"), "{said}");
    assert_eq!(said["paper"], "rgb(255, 255, 255)", "{said}");
    assert_eq!(said["toggled"], "rgb(20, 23, 27)", "{said}");
}

#[test]
fn chromium_shows_nothing_wider_than_a_phone_in_both_languages() {
    let Some(chromium) = chromium() else { return };
    for language in ["en", "zh-CN"] {
        let said = look(chromium, 500, &["--lang", language]);
        assert!(said["widest"].as_u64().unwrap() <= 360, "{language}: {said}");
    }
}

#[test]
fn a_run_is_exported_for_trace_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let record = named(folder.path(), "train");
    let timeline = serde_json::json!({
        "t": 5.0, "us": 4000.0, "steps": 1,
        "stacks": [["main (train.py:9)"]],
        "host": [{"at": 0.0, "us": 4000.0, "stack": 0, "phase": "compute"}],
        "names": ["</script><script>alert(1)"],
        "gpu": [{"at": 10.0, "us": 5.0, "stream": 7, "name": 0, "kind": "tensor-core"}],
    });
    fs::write(record.join("timeline.jsonl"), format!("{timeline}\n")).unwrap();
    let out = folder.path().join("trace.json");
    let output = flatout(&[
        "trace",
        "export",
        record.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{output:?}");
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |pid: u64| {
        events
            .iter()
            .filter(move |event| event["ph"] == "X" && event["pid"] == pid)
    };
    assert_eq!((of(1).count(), of(2).count()), (2, 1));
    // The same step in the page, where no name of a kernel can end the script.
    let path = folder.path().join("report.html");
    page(&record, &path, &[]);
    let html = fs::read_to_string(&path).unwrap();
    assert!(html.contains("One step, 4 ms") && html.contains("draw-timeline"));
    assert_eq!(html.matches("<script").count(), 2);
    let Some(chromium) = chromium() else { return };
    let drawn = dom(chromium, folder.path(), &path, 1280);
    let boxes = drawn.split("draw-timeline").nth(1).unwrap();
    assert!(
        boxes.contains("g-matmul") && boxes.contains("p-compute"),
        "{boxes}"
    );
}
