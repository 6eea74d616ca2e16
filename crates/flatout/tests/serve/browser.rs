//! A real Chromium, driven over its debugging pipe: two descriptors, JSON messages that end with a zero byte.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A loaded machine takes its time; nothing is judged by it.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Browser {
    child: Child,
    to: File,
    from: std::sync::mpsc::Receiver<Value>,
    next: u64,
    session: String,
    /// Every address that the page asked for.
    pub requests: Vec<String>,
    /// What the browser complained about: exceptions, and what the policy forbade.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

pub use flatout_testing::chromium;

fn pipe() -> (RawFd, RawFd) {
    let mut ends = [-1; 2];
    // SAFETY: pipe2 fills two descriptors.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    (ends[0], ends[1])
}

impl Browser {
    pub fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let ((theirs_in, ours_out), (ours_in, theirs_out)) = (pipe(), pipe());
        let mut command = Command::new(program);
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: only dup2 and fcntl are called between fork and exec. The ends are moved out of the way first: they may be 3 or 4.
        unsafe {
            command.pre_exec(move || {
                let input = libc::fcntl(theirs_in, libc::F_DUPFD, 10);
                let output = libc::fcntl(theirs_out, libc::F_DUPFD, 10);
                libc::dup2(input, 3);
                libc::dup2(output, 4);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // SAFETY: these descriptors are ours; the other two are the child's now.
        let (to, from) = unsafe {
            libc::close(theirs_in);
            libc::close(theirs_out);
            (File::from_raw_fd(ours_out), File::from_raw_fd(ours_in))
        };
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message)
                    && send.send(value).is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            to,
            from: receive,
            next: 0,
            session: String::new(),
            requests: Vec::new(),
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self
                .from
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => self.requests.push(text(&details["request"]["url"])),
            "Runtime.exceptionThrown" => self.complaints.push(details["exceptionDetails"].to_string()),
            "Log.entryAdded" if details["entry"]["level"] == "error" => {
                self.complaints.push(text(&details["entry"]["text"]));
            }
            _ => {}
        }
    }

    pub fn size(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub fn dark(&mut self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", feature);
    }

    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.until(
            "document.readyState === 'complete' && location.protocol === 'http:'",
            "the page loads",
        );
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A page that is just being left has no values.
            let asked = json!({ "expression": format!("Boolean({expression})"), "returnByValue": true });
            let answer = self.call("Runtime.evaluate", asked);
            if answer["result"]["value"] == true {
                return;
            }
            if Instant::now() > deadline {
                let page = self.text("document.body.innerText.slice(0, 3000)");
                panic!("waited in vain: {what}\n{expression}\n{page}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A click as a person makes it: at a point of the window.
    pub fn click(&mut self, selector: &str) {
        let find = format!(
            "(() => {{ const one = document.querySelector({}); one.scrollIntoView({{ block: 'center' }}); const box = one.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; }})()",
            json!(selector)
        );
        let point = self.value(&find);
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": point[0], "y": point[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    pub fn type_text(&mut self, selector: &str, text: &str) {
        self.value(&format!("document.querySelector({}).focus()", json!(selector)));
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Kept where `FLATOUT_SCREENSHOTS` names a folder, for a person to look at.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("FLATOUT_SCREENSHOTS") else {
            return;
        };
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = decode(shot["data"].as_str().unwrap());
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn decode(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for value in text.bytes().filter_map(value) {
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
