//! Rows of a table as samples. Blocks of lines are read by several threads and put together in their order.

mod assemble;
mod clock;
pub mod parse;

use super::columns::Header;
use super::in_order::in_order;
use super::lines::LineReader;
use super::{Format, Report};
use assemble::{Assembler, current};
use flatout_record::Sample;
use parse::{Block, Parser};
use std::sync::{Arc, Mutex};

pub struct TableReader {
    lines: LineReader,
    format: Format,
    header: Header,
    /// A first line that is a row already.
    first: Option<Vec<u8>>,
    interval_s: f64,
}

impl TableReader {
    pub fn new(lines: LineReader, header: Header, format: Format, interval_s: f64, first: Vec<u8>) -> Self {
        Self {
            lines,
            format,
            first: (!header.is_line).then_some(first),
            header,
            interval_s,
        }
    }

    /// Calls `see` with every sample in its turn.
    pub fn each(self, mut see: impl FnMut(&Sample)) -> Report {
        let Self {
            mut lines,
            format,
            mut first,
            interval_s,
            header,
        } = self;
        let lines_before = lines.number() - u64::from(first.is_some());
        let header = Mutex::new(Arc::new(header));
        let mut assembler = Assembler::new(format, interval_s, &header, lines_before);
        let mut broken_off = None;
        let mut fill = |block: &mut Block| {
            if let Some(first) = first.take() {
                block.text = first;
                return true;
            }
            lines.next_lines(&mut block.text).unwrap_or_else(|error| {
                broken_off = Some(error.to_string());
                false
            })
        };
        let worker = || {
            let mut parser = Parser::new(format);
            let header = &header;
            move |block: &mut Block| parser.parse(block, &current(header))
        };
        in_order(&mut fill, worker, |block| assembler.take(block, &mut see));
        assembler.finish(&mut see);
        let line = assembler.lines();
        let mut report = assembler.report;
        report.broken_off(line, broken_off);
        report
    }
}
