//! Taking the terminal over and giving it back, whatever happens in between.

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, BufWriter, Stdout};
use std::sync::Once;

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
