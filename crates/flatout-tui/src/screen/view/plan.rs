//! Who gets how many rows. GPUs come first: a card with a graph each where there is room, else one row each.

use ratatui_core::layout::Rect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No GPU: a few lines that say so.
    Nothing,
    Table,
    Cards {
        graph_rows: u16,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub header: Rect,
    pub gpus: Rect,
    pub form: Form,
    pub host: Rect,
    pub processes: Rect,
    pub footer: Rect,
}

/// A rule and three lines; below this height it is left out.
const HOST_ROWS: u16 = 4;
const HOST_FROM_HEIGHT: u16 = 16;
/// A rule, a head and some processes.
const PROCESS_ROWS: u16 = 5;
const FEWEST_PROCESS_ROWS: u16 = 3;
/// A card is a line of shares, the graph and a line of meters.
const CARD_LINES: u16 = 2;
const FEWEST_GRAPH_ROWS: u16 = 2;
const MOST_GRAPH_ROWS: u16 = 9;

impl Plan {
    pub fn new(area: Rect, gpus: usize) -> Self {
        let row = |y: u16, height: u16| Rect {
            x: area.x,
            y: area.y + y.min(area.height),
            width: area.width,
            height: height.min(area.height.saturating_sub(y)),
        };
        let inner = area.height.saturating_sub(2);
        let host_rows = if area.height >= HOST_FROM_HEIGHT {
            HOST_ROWS
        } else {
            0
        };
        let rest = inner.saturating_sub(host_rows);
        let (form, gpu_rows) = gpu_rows(rest, u16::try_from(gpus).unwrap_or(u16::MAX));
        let process_rows = rest.saturating_sub(gpu_rows);
        let process_rows = if process_rows < FEWEST_PROCESS_ROWS {
            0
        } else {
            process_rows
        };
        Self {
            header: row(0, 1),
            gpus: row(1, gpu_rows),
            form,
            host: row(1 + gpu_rows, host_rows),
            processes: row(1 + gpu_rows + host_rows, process_rows),
            footer: row(area.height.saturating_sub(1), 1),
        }
    }
}

fn gpu_rows(rest: u16, gpus: u16) -> (Form, u16) {
    if gpus == 0 {
        return (Form::Nothing, 5.min(rest));
    }
    let room = rest.saturating_sub(PROCESS_ROWS);
    let each = room.saturating_sub(1) / gpus;
    if each >= CARD_LINES + FEWEST_GRAPH_ROWS {
        let graph_rows = (each - CARD_LINES).min(MOST_GRAPH_ROWS);
        return (Form::Cards { graph_rows }, 1 + gpus * (CARD_LINES + graph_rows));
    }
    let wanted = gpus.saturating_add(2);
    (
        Form::Table,
        wanted
            .min(rest.saturating_sub(FEWEST_PROCESS_ROWS))
            .max(3)
            .min(rest),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(width: u16, height: u16, gpus: usize) -> Plan {
        Plan::new(Rect::new(0, 0, width, height), gpus)
    }

    #[test]
    fn one_and_two_gpus_get_graphs_eight_a_table_until_there_is_room() {
        assert!(matches!(plan(80, 24, 1).form, Form::Cards { graph_rows: 9 }));
        assert!(matches!(plan(80, 24, 2).form, Form::Cards { graph_rows: 4 }));
        assert!(matches!(plan(80, 24, 8).form, Form::Table));
        assert!(matches!(plan(200, 50, 8).form, Form::Cards { graph_rows: 2 }));
    }

    #[test]
    fn parts_follow_each_other_and_stay_inside_whatever_the_size() {
        for height in 0..60 {
            for gpus in [0, 1, 2, 3, 8, 16, 100] {
                let plan = plan(80, height, gpus);
                for part in [plan.header, plan.gpus, plan.host, plan.processes, plan.footer] {
                    assert!(part.y + part.height <= height, "{height} {gpus} {part:?}");
                }
                assert!(plan.gpus.bottom() <= plan.host.y || plan.host.height == 0);
                assert!(
                    plan.processes.height == 0 || plan.processes.bottom() <= plan.footer.y,
                    "{height} {gpus}"
                );
            }
        }
    }
}
