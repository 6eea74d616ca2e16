//! What the kernel tells about other processes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A field of `/proc/PID/stat`, counted from the state, which is 0.
fn stat(process: u32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may hold anything, parentheses as well.
    let rest = text.rsplit_once(") ")?.1;
    rest.split_whitespace().nth(field).map(str::to_owned)
}

/// There and not a zombie.
pub fn is_alive(process: u32) -> bool {
    stat(process, 0).is_some_and(|state| state != "Z" && state != "X")
}

pub fn is_stopped(process: u32) -> bool {
    stat(process, 0).is_some_and(|state| state == "T")
}

pub fn session(process: u32) -> Option<libc::pid_t> {
    stat(process, 3)?.parse().ok()
}

/// In ticks since the machine started: with the number, the same process.
pub fn start_time(process: u32) -> Option<u64> {
    stat(process, 19)?.parse().ok()
}

/// Whether a signal waits for a process that blocks it.
pub fn pending(process: u32, signal: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut masks = text
        .lines()
        .filter_map(|line| line.strip_prefix("ShdPnd:").or(line.strip_prefix("SigPnd:")));
    masks.any(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask >> (signal - 1) & 1 == 1))
}

/// Processes of the run that has this folder: the environment of each names it, whoever their parent is by now.
pub fn marked(folder: &Path) -> Vec<u32> {
    let mark = folder.as_os_str().as_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| number(&entry.file_name()));
    numbers
        .filter(|process| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            is_alive(*process) && environment.windows(mark.len()).any(|part| part == mark)
        })
        .collect()
}

fn number(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_read_right() {
        let own = std::process::id();
        assert!(is_alive(own) && !is_stopped(own) && start_time(own).is_some());
        // SAFETY: asks for our own session.
        assert_eq!(session(own), Some(unsafe { libc::getsid(0) }));
        assert!(!is_alive(u32::MAX) && !pending(own, libc::SIGUSR1));
        let folder = tempfile::tempdir().unwrap();
        assert!(marked(folder.path()).is_empty());
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .env("FLATOUT_RING", folder.path().join("rings"))
            .spawn()
            .unwrap();
        // A process that has just begun may not show its environment yet.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while marked(folder.path()).is_empty() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = marked(folder.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [child.id()]);
    }
}
