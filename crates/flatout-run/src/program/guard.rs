//! A small process next to the program that does two things flatout cannot do itself.
//!
//! It outlives flatout: when flatout is killed, it ends what the program left behind and removes the run's folder.
//!
//! It tells signals apart: it is in the same process group and blocks every signal, so a signal that was sent to the group is
//! pending there, and one that was sent to flatout alone is not. Only the latter is forwarded; the program has the former already.

use super::tree;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Messages to the guard; others are signals to forget.
const DISMISSED: u8 = 255;
const STOPPING: u8 = 254;
/// The program has started; its number follows.
const STARTED: u8 = 253;

/// A training may write a checkpoint when it is asked to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a stopped program is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// For its helpers, after that.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

pub struct Guard {
    pid: libc::pid_t,
    socket: UnixStream,
}

/// What the guard looks after.
pub struct Charge {
    /// The run's private folder; every process of the program has its path in the environment.
    pub folder: Option<PathBuf>,
    /// Whether the program ends with flatout.
    pub ends_program: bool,
}

impl Guard {
    /// Before the program, so that nobody can kill flatout in between. `None` where no process can be made: the run goes on without.
    pub fn start(charge: &Charge) -> Option<Self> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        let session = tree::session(std::process::id());
        // SAFETY: the child is alone on its own copy of memory; glibc leaves malloc usable after fork, and nothing else that may be
        // locked is used. It never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            alone_with(theirs.as_raw_fd());
            let mut watch = Watch {
                socket: theirs,
                charge,
                session,
                program: None,
            };
            watch.run();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        (pid > 0).then_some(Self { pid, socket: ours })
    }

    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Which program it is.
    pub fn started(&self, program: u32) {
        let _ = (&self.socket).write_all(&[STARTED]);
        let _ = (&self.socket).write_all(&program.to_le_bytes());
    }

    /// Whether a signal that came to us was sent to the whole group.
    pub fn saw(&self, signal: i32) -> bool {
        // The kernel hands it to the members of a group one after the other, without a pause.
        std::thread::sleep(Duration::from_millis(1));
        let seen = tree::pending(self.pid(), signal);
        if seen {
            self.tell(signal as u8);
        }
        seen
    }

    /// We are about to stop as the program did; the guard wakes us when the program goes on.
    pub fn stopping(&self) {
        self.tell(STOPPING);
    }

    fn tell(&self, message: u8) {
        let mut answer = [0];
        let _ = (&self.socket).write_all(&[message]);
        let _ = (&self.socket).read_exact(&mut answer);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.socket.write_all(&[DISMISSED]);
        // SAFETY: waits for a child of ours that ends at once.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// Blocks all signals and lets go of everything that was inherited.
fn alone_with(socket: RawFd) {
    // SAFETY: plain system calls on this process. Files are closed by number, the socket's excepted: the program's pipes must not stay
    // open because of us.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"flatout-guard".as_ptr());
        libc::chdir(c"/".as_ptr());
        let close = |first: libc::c_uint, last: libc::c_uint| {
            if first <= last && libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
                for file in first..=last.min(4096) {
                    libc::close(file as RawFd);
                }
            }
        };
        let socket = socket as libc::c_uint;
        if socket > 0 {
            close(0, socket - 1);
        }
        close(socket + 1, libc::c_uint::MAX);
    }
}

/// The guard's own side.
struct Watch<'a> {
    socket: UnixStream,
    charge: &'a Charge,
    session: Option<libc::pid_t>,
    /// With when it began: numbers are used again.
    program: Option<(u32, Option<u64>)>,
}

impl Watch<'_> {
    fn run(&mut self) {
        // SAFETY: asks for our parent's number.
        let parent = unsafe { libc::getppid() };
        let mut message = [0];
        // Since when flatout is stopped, or about to be.
        let mut stopped: Option<Instant> = None;
        loop {
            if let Some(since) = stopped {
                if self.wakes(parent.unsigned_abs(), since) {
                    // SAFETY: continues our own parent; where it has gone on already, that does nothing.
                    unsafe { libc::kill(parent, libc::SIGCONT) };
                    stopped = None;
                }
                if !is_readable(&self.socket, LOOK) {
                    continue;
                }
            }
            match self.socket.read(&mut message) {
                Ok(1) if message[0] == DISMISSED => return,
                Ok(1) if message[0] == STOPPING => {
                    stopped = Some(Instant::now());
                    let _ = self.socket.write_all(&message);
                }
                Ok(1) if message[0] == STARTED => {
                    let mut number = [0; 4];
                    if self.socket.read_exact(&mut number).is_ok() {
                        let program = u32::from_le_bytes(number);
                        self.program = Some((program, tree::start_time(program)));
                    }
                }
                Ok(1) => {
                    forget(i32::from(message[0]));
                    let _ = self.socket.write_all(&message);
                }
                // Nobody is there to write any more.
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if self.charge.ends_program {
            self.end_program();
        }
        if let Some(folder) = &self.charge.folder
            && tree::marked(folder).is_empty()
        {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Whether flatout is to be continued: the program is not stopped any more. Between saying so and being stopped, flatout may
    /// take a moment.
    fn wakes(&self, parent: u32, since: Instant) -> bool {
        !self.program.is_some_and(|(program, _)| tree::is_stopped(program))
            && (tree::is_stopped(parent) || since.elapsed() > SHORT_PATIENCE)
    }

    /// The kernel has asked the program to end (SIGTERM, when flatout died). What is still there later is killed.
    fn end_program(&self) {
        let began = Instant::now();
        while self.is_program_alive() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
        }
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            let began = Instant::now();
            loop {
                let left = self.left();
                if left.is_empty() {
                    return;
                }
                for process in left {
                    // SAFETY: sends a signal to a process that carries this run's folder in its environment.
                    unsafe { libc::kill(process as libc::pid_t, signal) };
                }
                if began.elapsed() > SHORT_PATIENCE {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    fn is_program_alive(&self) -> bool {
        self.program
            .is_some_and(|(program, begun)| tree::is_alive(program) && tree::start_time(program) == begun)
    }

    /// The program and what it started, without what has a session of its own: a daemon stays.
    fn left(&self) -> Vec<u32> {
        let mut left = match &self.charge.folder {
            Some(folder) => tree::marked(folder),
            None => Vec::new(),
        };
        left.retain(|process| tree::session(*process) == self.session);
        if self.is_program_alive() {
            left.extend(self.program.map(|(program, _)| program));
        }
        left
    }
}

fn is_readable(socket: &UnixStream, within: Duration) -> bool {
    let mut asked = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one file, and the structure lives on this stack.
    unsafe { libc::poll(&mut asked, 1, within.as_millis() as i32) > 0 }
}

/// Takes a blocked signal away.
fn forget(signal: i32) {
    // SAFETY: all three live on this stack.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        let now: libc::timespec = std::mem::zeroed();
        libc::sigtimedwait(&set, std::ptr::null_mut(), &now);
    }
}

/// Removes the folders of runs whose flatout was killed together with its guard.
pub fn sweep(place: &Path, prefix: &str) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // `flatout-4f2c01aa-1234-XXXXXX`
        let owner = name.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('-'));
        let is_left = owner.is_some_and(|(owner, _)| flatout_core::leftover::is_gone(owner));
        if is_left && tree::marked(&entry.path()).is_empty() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
