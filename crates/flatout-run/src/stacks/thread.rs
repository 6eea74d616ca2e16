//! What the operating system knows of one thread: whether it runs, what it is blocked in, how long it waited for a CPU.

use flatout_record::Blocked;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// One thread of another process. The files of `/proc` stay open, so that a look costs two reads.
pub struct Thread {
    stat: File,
    /// Missing where the kernel does not show it.
    syscall: Option<File>,
    schedstat: Option<File>,
}

impl Thread {
    /// `None` when the thread has ended.
    pub fn open(pid: u32, tid: u32) -> Option<Self> {
        let file = |name: &str| File::open(format!("/proc/{pid}/task/{tid}/{name}")).ok();
        Some(Self {
            stat: file("stat")?,
            syscall: file("syscall"),
            schedstat: file("schedstat"),
        })
    }

    /// What the thread is blocked in; `None` while it runs, or when that cannot be read.
    pub fn blocked(&self) -> Option<Blocked> {
        let mut buffer = [0; 512];
        let length = self.stat.read_at(&mut buffer, 0).ok()?;
        match state(&buffer[..length])? {
            b'S' | b'D' => {}
            _ => return None,
        }
        let Some(file) = &self.syscall else {
            return Some(Blocked::Kernel);
        };
        let length = file.read_at(&mut buffer, 0).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        match text.split_whitespace().next()?.parse::<i64>() {
            Ok(number) => Some(meaning(number)),
            // `running`: it went on between the two reads.
            Err(_) if text.starts_with("running") => None,
            Err(_) => Some(Blocked::Kernel),
        }
    }

    /// Nanoseconds the thread was ready to run while no CPU was free.
    pub fn waited_for_cpu_ns(&self) -> Option<u64> {
        let mut buffer = [0; 128];
        let length = self.schedstat.as_ref()?.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..length]).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    }
}

/// The CPU time of a whole process.
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// `None` where it may not be read.
    pub fn of(pid: u32) -> Option<Self> {
        let mut clock = 0;
        // SAFETY: the call writes one clock id to this stack.
        let code = unsafe { libc::clock_getcpuclockid(i32::try_from(pid).ok()?, &mut clock) };
        (code == 0).then_some(Self(clock))
    }

    /// CPU time used so far by all threads of the process.
    pub fn used(&self) -> Option<Duration> {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call fills the struct on this stack.
        let code = unsafe { libc::clock_gettime(self.0, &mut now) };
        (code == 0).then(|| Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
    }
}

/// The third field of `stat`; the second, the name, may contain anything, also parentheses.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

fn meaning(number: i64) -> Blocked {
    match number {
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_openat
        | libc::SYS_close
        | libc::SYS_newfstatat
        | libc::SYS_fstat
        | libc::SYS_getdents64
        | libc::SYS_unlinkat
        | libc::SYS_renameat
        | libc::SYS_sendfile => Blocked::File,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_msync | libc::SYS_sync => Blocked::Flush,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Blocked::Sleep,
        libc::SYS_futex => Blocked::Lock,
        libc::SYS_ppoll
        | libc::SYS_pselect6
        | libc::SYS_epoll_pwait
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_accept4
        | libc::SYS_connect => Blocked::Poll,
        libc::SYS_wait4 | libc::SYS_waitid => Blocked::Process,
        number => on_this_machine(number),
    }
}

/// System calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
fn on_this_machine(number: i64) -> Blocked {
    match number {
        libc::SYS_open | libc::SYS_stat | libc::SYS_lstat | libc::SYS_unlink | libc::SYS_rename => {
            Blocked::File
        }
        libc::SYS_poll | libc::SYS_select | libc::SYS_epoll_wait => Blocked::Poll,
        _ => Blocked::Kernel,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn on_this_machine(_number: i64) -> Blocked {
    Blocked::Kernel
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    #[test]
    fn reads_the_state_after_an_odd_name() {
        assert_eq!(state(b"12 (a) b (c)) S 1 2 3"), Some(b'S'));
        assert_eq!(state(b"12 python"), None);
        assert_eq!(state(b"12 (a)"), None);
    }

    #[test]
    fn reads_the_cpu_time_of_a_process() {
        let clock = CpuClock::of(std::process::id()).unwrap();
        let before = clock.used().unwrap();
        let until = Instant::now() + Duration::from_millis(30);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        assert!(clock.used().unwrap() > before);
    }

    #[test]
    fn tells_a_sleeping_thread_from_a_running_one() {
        let mut sleeper = Command::new("sleep").arg("20").spawn().unwrap();
        let thread = Thread::open(sleeper.id(), sleeper.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while thread.blocked() != Some(Blocked::Sleep) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(thread.blocked(), Some(Blocked::Sleep));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(thread.blocked(), None, "it has ended");
    }
}
