//! Puts the probe into a Python that runs already, through `sys.remote_exec` of Python 3.14: the interpreter writes a script's path into the
//! other process, which runs it at the next safe point of its main thread. The program's own interpreter does that, because both must be
//! of the same version. Earlier Pythons have no safe way, and none is tried.

use crate::probe::Runtime;
use flatout_core::{Message, message};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("put.py");
/// A program in one long call of C code reaches no safe point until it returns.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

const ASK: &str = "import sys
enabled = getattr(sys, 'is_remote_debug_enabled', lambda: False)()
print('%d.%d' % sys.version_info[:2], hasattr(sys, 'remote_exec'), enabled)";
const EXECUTE: &str = "import sys
sys.remote_exec(int(sys.argv[1]), sys.argv[2])";

/// A process with the probe in it.
pub struct Injected<'r> {
    pid: u32,
    python: PathBuf,
    user: Option<(u32, u32)>,
    runtime: &'r Runtime,
}

impl<'r> Injected<'r> {
    /// Puts the probe in, or says why that cannot be.
    pub fn put(pid: u32, runtime: &'r Runtime) -> Result<Self, Message> {
        let process = Path::new("/proc").join(pid.to_string());
        let python = python_of(&process)?;
        let owner = fs::metadata(&process).map_err(|_| gone(pid))?;
        let (uid, gid) = (owner.uid(), owner.gid());
        let injected = Self {
            pid,
            user: helper_user(&python, uid, gid),
            python,
            runtime,
        };
        injected.check_version()?;
        if uid != own_user() {
            give(runtime.folder(), uid, gid).map_err(|error| {
                message!(en: "failed to give the program's user access to the probe's folder: {error}", zh: "无法把探针目录交给程序的用户：{error}")
            })?;
        }
        injected.execute(false)?;
        Ok(injected)
    }

    /// Takes it out again. A program that does not answer keeps it, at rest at the next attach.
    pub fn take_out(&self) -> Result<(), Message> {
        self.execute(true)
    }

    fn helper(&self) -> Command {
        let mut command = Command::new(&self.python);
        // Nothing of the user's own packages is imported.
        command.args(["-I", "-S", "-c"]).stdin(Stdio::null());
        match self.user {
            Some((uid, gid)) => {
                command.uid(uid).gid(gid);
            }
            // Its libraries may be found only so. Never where we are somebody else: they could be anything.
            None => {
                let own = fs::metadata(Path::new("/proc").join(self.pid.to_string()));
                let libraries = environment_of(self.pid, "LD_LIBRARY_PATH");
                if let Some(libraries) = libraries.filter(|_| own.is_ok_and(|own| own.uid() == own_user())) {
                    command.env("LD_LIBRARY_PATH", libraries);
                }
            }
        }
        command
    }

    fn check_version(&self) -> Result<(), Message> {
        let mut ask = self.helper();
        ask.arg(ASK);
        let answer = finished(ask).map_err(|why| {
            message!(en: "the program's Python does not respond: {why}", zh: "程序的 Python 没有响应：{why}")
        })?;
        let words: Vec<&str> = answer.split_whitespace().collect();
        match words.as_slice() {
            [_, "True", "True"] => Ok(()),
            [_, "True", _] => Err(message!(
                en: "this Python was built or started with remote debugging disabled",
                zh: "该 Python 在构建或启动时关闭了远程调试"
            )),
            [version, ..] => Err(message!(
                en: "the program runs Python {version}; the probe can only be loaded into a running Python \
                3.14 or later",
                zh: "程序运行在 Python {version} 上，只有 3.14 及以上才能在运行中放入探针"
            )),
            [] => Err(message!(en: "the program is not a Python process", zh: "该程序不是 Python 进程")),
        }
    }

    fn execute(&self, takes_out: bool) -> Result<(), Message> {
        let folder = self.runtime.folder();
        let name = if takes_out { "out" } else { "put" };
        let (script, answer) = (
            folder.join(format!("{name}.py")),
            self.runtime.scratch().join(name),
        );
        // Whoever removes this file decides: the script before it begins, or flatout when it waits no longer.
        let wanted = self.runtime.scratch().join(format!("{name}.wanted"));
        let words = [
            folder.join("python"),
            self.runtime.rings(),
            answer.clone(),
            wanted.clone(),
        ];
        let words = words.map(|path| path.to_string_lossy().into_owned());
        // JSON's strings are Python's, and its two words for truth are not.
        let paths = serde_json::to_string(&words).unwrap_or_default();
        let truth = if takes_out { "True" } else { "False" };
        let arguments = format!("{}, {truth}]", paths.trim_end_matches(']'));
        let failed = |error: &dyn std::fmt::Display| message!(en: "failed to load the probe: {error}", zh: "无法载入探针：{error}");
        fs::write(&script, SCRIPT.replace("ARGUMENTS", &arguments)).map_err(|error| failed(&error))?;
        fs::write(&wanted, "").map_err(|error| failed(&error))?;
        if let Ok(owner) = fs::metadata(Path::new("/proc").join(self.pid.to_string()))
            && owner.uid() != own_user()
        {
            for path in [&script, &wanted] {
                let _ = chown(path, Some(owner.uid()), Some(owner.gid()));
            }
        }
        let mut execute = self.helper();
        execute.arg(EXECUTE).arg(self.pid.to_string()).arg(&script);
        finished(execute).map_err(|why| failed(&why))?;
        if let Some(answered) = self.wait_for(&answer) {
            return answered;
        }
        // Nobody would take the probe out again if it came in later.
        if fs::remove_file(&wanted).is_err()
            && let Some(answered) = self.wait_for(&answer)
        {
            return answered;
        }
        // The script's folder goes soon, and Python would report that it is missing in the program's own output.
        let mut nothing = self.helper();
        nothing.arg(EXECUTE).arg(self.pid.to_string()).arg("/dev/null");
        let _ = finished(nothing);
        let seconds = PATIENCE.as_secs();
        Err(message!(
            en: "the program reached no safe point within {seconds} s; it is in a single long call of C code",
            zh: "程序在 {seconds} 秒内没有到达安全点；它正处于一个很长的 C 调用中"
        ))
    }

    /// `None` where the script did not answer.
    fn wait_for(&self, answer: &Path) -> Option<Result<(), Message>> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(text) = fs::read(answer) {
                let told: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
                return Some(match told.get("why").and_then(|why| why.as_str()) {
                    None => Ok(()),
                    Some(why) => {
                        Err(message!(en: "the probe refused to start: {why}", zh: "探针拒绝启动：{why}"))
                    }
                });
            }
            if !Path::new("/proc").join(self.pid.to_string()).exists() {
                return Some(Err(gone(self.pid)));
            }
            std::thread::sleep(POLL);
        }
        None
    }
}

/// The interpreter of a process, where we can start the same file.
fn python_of(process: &Path) -> Result<PathBuf, Message> {
    let python = fs::read_link(process.join("exe")).map_err(
        |_| message!(en: "no permission to read the program's file", zh: "没有读取程序文件的权限"),
    )?;
    let name = python.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with("python") {
        return Err(message!(en: "`{name}` is not a Python process", zh: "`{name}` 不是 Python 进程"));
    }
    let world = |process: &Path| fs::read_link(process.join("ns/mnt")).ok();
    if world(process) != world(Path::new("/proc/self")) {
        return Err(message!(
            en: "the program runs in a container; run flatout inside it",
            zh: "程序运行在容器中；请在容器内运行 flatout"
        ));
    }
    Ok(python)
}

/// Who starts the interpreter. As root we do not run what its owner could have changed.
fn helper_user(python: &Path, uid: u32, gid: u32) -> Option<(u32, u32)> {
    let trusted = fs::metadata(python).is_ok_and(|file| file.uid() == 0 && file.mode() & 0o022 == 0);
    (uid != own_user() && !trusted).then_some((uid, gid))
}

fn own_user() -> u32 {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The folder is our own and has no links.
fn give(folder: &Path, uid: u32, gid: u32) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            give(&path, uid, gid)?;
        } else {
            chown(&path, Some(uid), Some(gid))?;
        }
    }
    chown(folder, Some(uid), Some(gid))
}

fn environment_of(pid: u32, name: &str) -> Option<std::ffi::OsString> {
    use std::os::unix::ffi::OsStringExt;
    let all = fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).ok()?;
    let prefix = format!("{name}=");
    let found = all
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(prefix.as_bytes()))?;
    Some(std::ffi::OsString::from_vec(found.to_vec()))
}

/// What it printed; else the last line of its error.
fn finished(mut command: Command) -> Result<String, String> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("no answer".into());
            }
            None => std::thread::sleep(POLL),
        }
    };
    let (mut out, mut err) = (String::new(), String::new());
    if let Some(stream) = child.stdout.take() {
        let _ = stream.take(4096).read_to_string(&mut out);
    }
    if let Some(stream) = child.stderr.take() {
        let _ = stream.take(65_536).read_to_string(&mut err);
    }
    if status.success() {
        return Ok(out);
    }
    Err(err.lines().next_back().unwrap_or("it failed").to_owned())
}

fn gone(pid: u32) -> Message {
    message!(en: "process {pid} has ended", zh: "进程 {pid} 已结束")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_comes_too_late_does_nothing() {
        let Some(python) = flatout_testing::python() else {
            return;
        };
        let runtime = Runtime::create().unwrap();
        let folder = runtime.folder().join("python");
        let (answer, wanted) = (runtime.scratch().join("put"), runtime.scratch().join("wanted"));
        let words = [&folder, &runtime.rings(), &answer, &wanted].map(|path| path.display().to_string());
        let arguments = serde_json::to_string(&words).unwrap();
        let script = SCRIPT.replace(
            "ARGUMENTS",
            &format!("{}, False]", arguments.trim_end_matches(']')),
        );
        let run = || {
            let mut program = Command::new(&python);
            program.args(["-c", &format!("import sys\n{script}\nprint([type(one).__name__ for one in sys.meta_path].count('Hook'), '_flatout' in globals())")]);
            finished(program).unwrap()
        };
        assert_eq!(run(), "0 False\n");
        assert!(!answer.exists());
        fs::write(&wanted, "").unwrap();
        assert_eq!(run(), "1 False\n");
        assert!(answer.exists() && !wanted.exists());
    }
}
