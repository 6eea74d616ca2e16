//! Taking the terminal over and giving it back, whatever happens in between.

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout};
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::time::Duration;

/// A frame is a few thousand bytes; unbuffered, each change would be a write of its own.
type Backend = CrosstermBackend<BufWriter<Stdout>>;

pub struct Guard {
    pub terminal: Terminal<Backend>,
}

impl Guard {
    pub fn enter() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen).and_then(|()| {
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(
                1 << 15,
                io::stdout(),
            )))
        });
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

/// Where keys come from: stdin, or the terminal itself where stdin is a pipe; the same choice as crossterm's.
pub struct Keyboard {
    terminal: Option<File>,
}

impl Keyboard {
    pub fn open() -> Self {
        let piped = !io::stdin().is_terminal();
        Self {
            terminal: piped.then(|| File::open("/dev/tty").ok()).flatten(),
        }
    }

    /// Waits for a key, a signal or the time; false where the terminal is gone.
    pub fn wait(&self, at_most: Duration) -> bool {
        let file = self
            .terminal
            .as_ref()
            .map_or(libc::STDIN_FILENO, AsRawFd::as_raw_fd);
        let mut asked = libc::pollfd {
            fd: file,
            events: libc::POLLIN,
            revents: 0,
        };
        let milliseconds = at_most.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
        // SAFETY: one valid pollfd is passed.
        unsafe { libc::poll(&mut asked, 1, milliseconds) };
        asked.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) == 0
    }
}

/// The terminal is gone: what is still printed goes nowhere, instead of failing.
pub fn let_go() {
    let Ok(nowhere) = File::options().write(true).open("/dev/null") else {
        return;
    };
    for file in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: asks about an open file and puts another in its place.
        unsafe {
            if libc::isatty(file) == 1 || *libc::__errno_location() == libc::EIO {
                libc::dup2(nowhere.as_raw_fd(), file);
            }
        }
    }
}

fn restore() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// A panic's message would be lost on the alternate screen, and the shell left without echo.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    #[test]
    fn a_terminal_that_is_gone_is_noticed_at_once() {
        let (mut ours, mut theirs) = (-1, -1);
        let nothing = std::ptr::null_mut();
        // SAFETY: fills two descriptors, which become files of ours.
        let (master, slave) = unsafe {
            assert_eq!(
                libc::openpty(
                    &mut ours,
                    &mut theirs,
                    nothing,
                    std::ptr::null(),
                    std::ptr::null()
                ),
                0
            );
            (File::from_raw_fd(ours), File::from_raw_fd(theirs))
        };
        let keyboard = Keyboard {
            terminal: Some(slave),
        };
        assert!(keyboard.wait(Duration::ZERO));
        drop(master);
        assert!(!keyboard.wait(Duration::from_secs(600)));
    }
}
