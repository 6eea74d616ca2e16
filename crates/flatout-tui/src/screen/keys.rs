//! What the keys do.

use super::state::State;
use crate::watch::Wish;
use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    Nothing,
    Redraw(Wish),
}

pub fn press(state: &mut State, key: KeyEvent) -> Answer {
    if key.kind == KeyEventKind::Release {
        return Answer::Nothing;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if control => return Answer::Redraw(Wish::Quit),
        _ if state.help => state.help = false,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Answer::Redraw(Wish::Quit),
        KeyCode::Char('p' | ' ') => return Answer::Redraw(Wish::Pause(state.toggle_pause())),
        KeyCode::Char('s') => state.sort = state.sort.next(),
        KeyCode::Char('h' | '?') => state.help = true,
        KeyCode::Char('+' | '=') => return Answer::Redraw(Wish::Faster(2.0)),
        KeyCode::Char('-') => return Answer::Redraw(Wish::Faster(0.5)),
        KeyCode::Down | KeyCode::Char('j') => state.scroll = state.scroll.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k') => state.scroll = state.scroll.saturating_sub(1),
        KeyCode::Home => state.scroll = 0,
        _ => return Answer::Nothing,
    }
    Answer::Redraw(Wish::GoOn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::{Sort, Theme};
    use flatout_core::Language;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn keys_quit_pause_sort_and_help() {
        let mut state = State::new("monitor", Language::English, Theme { colour: false });
        let none = KeyModifiers::NONE;
        assert_eq!(
            press(&mut state, key(KeyCode::Char('p'), none)),
            Answer::Redraw(Wish::Pause(true))
        );
        assert!(state.is_paused());
        assert_eq!(
            press(&mut state, key(KeyCode::Char(' '), none)),
            Answer::Redraw(Wish::Pause(false))
        );
        press(&mut state, key(KeyCode::Char('s'), none));
        assert_eq!(state.sort, Sort::SmShare);
        press(&mut state, key(KeyCode::Char('?'), none));
        assert!(state.help);
        assert_eq!(
            press(&mut state, key(KeyCode::Char('q'), none)),
            Answer::Redraw(Wish::GoOn),
            "closes the help first"
        );
        assert_eq!(
            press(&mut state, key(KeyCode::Char('q'), none)),
            Answer::Redraw(Wish::Quit)
        );
        assert_eq!(
            press(&mut state, key(KeyCode::Char('c'), KeyModifiers::CONTROL)),
            Answer::Redraw(Wish::Quit)
        );
        assert_eq!(press(&mut state, key(KeyCode::F(7), none)), Answer::Nothing);
    }
}
