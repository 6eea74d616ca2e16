//! Draws a [`State`] into a buffer of cells. Knows no terminal, so that tests can look at what it draws.

mod canvas;
mod cards;
mod chrome;
mod graph;
mod help;
mod host;
mod plan;
mod processes;
mod table;

use super::State;
use canvas::Canvas;
use plan::{Form, Plan};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

pub fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let mut canvas = Canvas::new(buffer, area, state.theme);
    let gpus = state.picture().history.len();
    let plan = Plan::new(area, gpus);
    chrome::header(state, &mut canvas, plan.header);
    match plan.form {
        Form::Nothing => chrome::no_gpu(state, &mut canvas, plan.gpus),
        Form::Table => table::draw(state, &mut canvas, plan.gpus),
        Form::Cards { graph_rows } => cards::draw(state, &mut canvas, plan.gpus, graph_rows),
    }
    if plan.host.height > 0 {
        host::draw(state, &mut canvas, plan.host);
    }
    if plan.processes.height > 0 {
        processes::draw(state, &mut canvas, plan.processes);
    }
    chrome::footer(state, &mut canvas, plan.footer);
    if state.help {
        help::draw(state, &mut canvas, area);
    }
}

#[cfg(test)]
mod tests;
