//! The terminal screen. [`Screen`] owns the terminal and the keys; [`state`] is what is shown; [`view`] draws it and nothing else.

mod keys;
mod state;
mod terminal;
mod theme;
mod view;

pub use state::{Sort, State};
pub use theme::Theme;
pub use view::draw;

use crate::watch::{Moment, View, Wish};
use flatout_core::interrupt::Interrupt;
use keys::Answer;
use ratatui_crossterm::crossterm::event::{self, Event};
use std::io;
use std::time::{Duration, Instant};
use terminal::{Guard, Keyboard};

/// Drawing more often than this shows nobody more and costs the program that is watched.
const SHORTEST_FRAME: Duration = Duration::from_millis(95);
/// A signal sent from elsewhere is noticed after at most this long.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(250);

pub struct Screen {
    guard: Guard,
    state: State,
    interrupt: Interrupt,
    keyboard: Keyboard,
    drawn: Option<Instant>,
    /// The terminal is gone; nothing more can be shown.
    gone: bool,
}

impl Screen {
    /// Takes the terminal over and shows the first, still empty frame.
    pub fn open(state: State) -> io::Result<Self> {
        let interrupt = Interrupt::catch_on_screen();
        let mut screen = Self {
            guard: Guard::enter()?,
            state,
            interrupt,
            keyboard: Keyboard::open(),
            drawn: None,
            gone: false,
        };
        screen.redraw();
        screen.drawn = None;
        Ok(screen)
    }

    fn redraw(&mut self) {
        let state = &self.state;
        let drawn = self
            .guard
            .terminal
            .draw(|frame| draw(state, frame.area(), frame.buffer_mut()));
        self.gone |= drawn.is_err();
        self.drawn = Some(Instant::now());
    }

    /// The next key or resize within the time, taken in and shown.
    fn next_event(&mut self, at_most: Duration) -> io::Result<Wish> {
        // Asked before every reading: of a terminal that is gone, crossterm reads the end of the file in an endless loop.
        if !self.keyboard.wait(at_most) {
            self.gone = true;
            terminal::let_go();
            return Ok(Wish::Quit);
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(Wish::GoOn);
        }
        let answer = match event::read()? {
            Event::Key(key) => keys::press(&mut self.state, key),
            Event::Resize(..) => Answer::Redraw(Wish::GoOn),
            _ => Answer::Nothing,
        };
        Ok(match answer {
            Answer::Nothing => Wish::GoOn,
            Answer::Redraw(wish) => {
                self.redraw();
                wish
            }
        })
    }
}

impl View for Screen {
    fn show(&mut self, moment: &Moment) {
        self.state.take(moment);
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= SHORTEST_FRAME) {
            self.redraw();
        }
    }

    fn wait(&mut self, at_most: Duration) -> Wish {
        let started = Instant::now();
        loop {
            if self.gone {
                terminal::let_go();
            }
            if self.gone || self.interrupt.came() {
                return Wish::Quit;
            }
            let left = at_most.saturating_sub(started.elapsed());
            match self.next_event(left.min(SIGNAL_PATIENCE)) {
                Err(_) => return Wish::Quit,
                Ok(Wish::GoOn) if started.elapsed() < at_most => {}
                Ok(wish) => return wish,
            }
        }
    }
}
