//! A table of text: columns as wide as their widest cell, the last one unpadded, aligned also in Chinese.

use super::width::{pad, pad_left, width};
use super::{Paint, Tone};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
    indent: usize,
}

#[derive(Clone, Debug)]
struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Table {
    pub fn new(columns: &[Align]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
            indent: 0,
        }
    }

    #[must_use]
    pub fn indented(mut self, cells: usize) -> Self {
        self.indent = cells;
        self
    }

    pub fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.toned_row(cells.map(|text| (text, None)));
    }

    pub fn toned_row<const N: usize>(&mut self, cells: [(&str, Option<Tone>); N]) {
        let cells = cells.into_iter().map(|(text, tone)| Cell {
            text: text.to_owned(),
            tone,
        });
        self.rows.push(cells.collect());
    }

    /// For a number of columns that is known only at run time.
    pub fn toned_cells(&mut self, cells: impl Iterator<Item = (String, Option<Tone>)>) {
        self.rows
            .push(cells.map(|(text, tone)| Cell { text, tone }).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn render(&self, paint: Paint) -> String {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(&cell.text)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(widest).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for ((cell, align), cells) in row.iter().zip(&self.columns).zip(&widths) {
                let padded = match align {
                    Align::Left => pad(&cell.text, *cells),
                    Align::Right => pad_left(&cell.text, *cells),
                };
                line += &cell
                    .tone
                    .map_or_else(|| padded.clone(), |tone| paint.tone(tone, &padded));
                line += "  ";
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_in_both_languages() {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]).indented(1);
        table.row(["power", "98 W", "ok"]);
        table.row(["利用率", "3%", "低"]);
        assert_eq!(
            table.render(Paint { colour: false }),
            " power   98 W  ok\n 利用率    3%  低\n"
        );
    }
}
