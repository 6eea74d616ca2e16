//! Several files into one set of arrays: one thread at a time takes the next block, all of them parse.

use super::blocks::{BLOCK_BYTES, BlockInfo, BlockReader};
use super::infer::{CsvSchema, check_header};
use super::parse::{Scratch, Shape, parse_block};
use crate::table::arrays::{Growing, RawArray};
use crate::table::{Arrays, BadRow, BadRows, ColumnType, EXAMPLES_KEPT, Layout, Skipped, TableRead};
use crate::text_list::{Dictionary, TextList};
use crate::{DataError, Result, parallel};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock};

#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    pub bad_rows: BadRows,
    pub infinite_is_missing: bool,
    pub threads: Option<usize>,
    /// Bytes parsed at a time; for tests, which want many blocks out of little text.
    pub block_bytes: Option<usize>,
}

/// Where the next block comes from.
struct Feed<'a> {
    files: &'a [PathBuf],
    schema: &'a CsvSchema,
    block_bytes: usize,
    file: usize,
    reader: Option<BlockReader>,
    next_row: usize,
    next_number: u64,
    text_bytes: u64,
    total_bytes: u64,
}

struct Ticket {
    file: usize,
    number: u64,
    first_row: usize,
    info: BlockInfo,
    /// Rows the whole job is likely to have.
    expected_rows: usize,
}

impl Feed<'_> {
    fn next(&mut self, block: &mut Vec<u8>) -> Result<Option<Ticket>> {
        loop {
            let Some(path) = self.files.get(self.file) else {
                return Ok(None);
            };
            let reader = match &mut self.reader {
                Some(reader) => reader,
                empty => {
                    let (reader, header) =
                        BlockReader::open_with(path, self.schema.encoding, self.block_bytes)?;
                    check_header(
                        &header,
                        self.schema.delimiter,
                        &self.schema.names,
                        path,
                        &self.files[0],
                    )?;
                    empty.insert(reader)
                }
            };
            let Some(info) = reader.next(block)? else {
                self.reader = None;
                self.file += 1;
                continue;
            };
            self.text_bytes += block.len() as u64;
            let ticket = Ticket {
                file: self.file,
                number: self.next_number,
                first_row: self.next_row,
                info,
                expected_rows: self.expected_rows(info.records),
            };
            self.next_number += 1;
            self.next_row += info.records;
            return Ok(Some(ticket));
        }
    }

    fn expected_rows(&self, records: usize) -> usize {
        let rows = (self.next_row + records) as f64;
        let scale = self.total_bytes as f64 / self.text_bytes.max(1) as f64;
        (rows * scale.max(1.0) * 1.05) as usize + 1024
    }
}

/// What the blocks leave behind, brought into the order of the blocks.
struct Harvest {
    gaps: Vec<Range<usize>>,
    bad: Vec<(u64, BadRow)>,
    bad_count: u64,
    rows_per_file: Vec<usize>,
    next: u64,
    waiting: BTreeMap<u64, (Range<usize>, Vec<TextList>)>,
    dictionaries: Vec<Dictionary>,
    /// The rows of a block and, for each category, the final code of each of its own.
    translations: Vec<(Range<usize>, Vec<Vec<i32>>)>,
}

impl Harvest {
    /// Takes over a block's dictionaries; those of consecutive blocks are merged at once, so that codes follow the order of
    /// first appearance whatever thread was faster.
    fn take_dictionaries(&mut self, number: u64, rows: Range<usize>, lists: Vec<TextList>) {
        self.waiting.insert(number, (rows, lists));
        while let Some((rows, lists)) = self.waiting.remove(&self.next) {
            self.next += 1;
            let translations: Vec<Vec<i32>> = lists
                .iter()
                .zip(&mut self.dictionaries)
                .map(|(list, dictionary)| {
                    let mut codes = Vec::with_capacity(list.len() + 1);
                    codes.push(0);
                    codes.extend((0..list.len()).map(|index| dictionary.code(list.bytes(index))));
                    codes
                })
                .collect();
            self.translations.push((rows, translations));
        }
    }
}

/// Reads all files into arrays laid out as `layout` says, whose slots are those of `schema`'s columns.
pub fn read(
    files: &[PathBuf],
    schema: &CsvSchema,
    layout: &Layout,
    options: &CsvOptions,
) -> Result<TableRead> {
    let total_bytes = files
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|metadata| metadata.len())
        .sum();
    let feed = Mutex::new(Feed {
        files,
        schema,
        block_bytes: options.block_bytes.unwrap_or(BLOCK_BYTES),
        file: 0,
        reader: None,
        next_row: 0,
        next_number: 0,
        text_bytes: 0,
        total_bytes,
    });
    let columns = schema.names.len();
    let harvest = Mutex::new(Harvest {
        gaps: Vec::new(),
        bad: Vec::new(),
        bad_count: 0,
        rows_per_file: vec![0; files.len()],
        next: 0,
        waiting: BTreeMap::new(),
        dictionaries: std::iter::repeat_with(Dictionary::default)
            .take(columns)
            .collect(),
        translations: Vec::new(),
    });
    let room: RwLock<(Growing, Vec<RawArray>)> = RwLock::new((Growing::new(layout), Vec::new()));
    let threads = parallel::threads(options.threads);
    parallel::for_each(threads, threads, |_| {
        work(&feed, &harvest, &room, schema, layout, options)
    })?;
    let rows = feed.into_inner().unwrap_or_else(PoisonError::into_inner).next_row;
    let (growing, _) = room.into_inner().unwrap_or_else(PoisonError::into_inner);
    let harvest = harvest.into_inner().unwrap_or_else(PoisonError::into_inner);
    finish(harvest, growing, rows, layout, options)
}

fn work(
    feed: &Mutex<Feed<'_>>,
    harvest: &Mutex<Harvest>,
    room: &RwLock<(Growing, Vec<RawArray>)>,
    schema: &CsvSchema,
    layout: &Layout,
    options: &CsvOptions,
) -> Result<()> {
    let unassigned = layout.unassigned();
    let shape = Shape {
        names: &schema.names,
        slots: &layout.slots,
        unassigned: &unassigned,
        delimiter: schema.delimiter,
        infinite_is_missing: options.infinite_is_missing,
    };
    let (mut block, mut scratch) = (Vec::new(), Scratch::default());
    loop {
        let (ticket, path) = {
            let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(ticket) = feed.next(&mut block)? else {
                return Ok(());
            };
            let path = feed.files[ticket.file].clone();
            (ticket, path)
        };
        let end_row = ticket.first_row + ticket.info.records;
        let parse = |arrays: &[RawArray], scratch: &mut Scratch| {
            parse_block(&block, ticket.info, ticket.first_row, &shape, arrays, scratch);
        };
        let held = room.read().unwrap_or_else(PoisonError::into_inner);
        if held.0.capacity() >= end_row {
            parse(&held.1, &mut scratch);
            drop(held);
        } else {
            drop(held);
            let mut held = room.write().unwrap_or_else(PoisonError::into_inner);
            if held.0.capacity() < end_row {
                let wanted = ticket.expected_rows.max(end_row + end_row / 4);
                held.0.reserve(wanted);
                held.1 = held.0.raw();
            }
            drop(held);
            // Others may grow it further, never shrink it.
            let held = room.read().unwrap_or_else(PoisonError::into_inner);
            parse(&held.1, &mut scratch);
        }
        let mut harvest = harvest.lock().unwrap_or_else(PoisonError::into_inner);
        harvest.rows_per_file[ticket.file] +=
            ticket.info.records - scratch.gaps.iter().map(ExactSizeIterator::len).sum::<usize>();
        harvest.gaps.append(&mut scratch.gaps);
        for (line, problem) in scratch.bad.drain(..) {
            let row = BadRow {
                path: path.clone(),
                line: ticket.info.first_line + line,
                problem,
            };
            if options.bad_rows == BadRows::Error {
                // No new blocks; those before this one are in work already, so the first bad row of all will be known.
                feed.lock().unwrap_or_else(PoisonError::into_inner).file = usize::MAX;
            }
            harvest.bad_count += 1;
            // Blocks arrive out of order: keep enough of each that the first ones are among them.
            if harvest.bad.len() < 1000 {
                harvest.bad.push((ticket.number, row));
            }
        }
        let lists = scratch
            .dictionaries
            .iter_mut()
            .map(|dictionary| std::mem::take(dictionary).into_texts())
            .collect();
        harvest.take_dictionaries(ticket.number, ticket.first_row..end_row, lists);
    }
}

fn finish(
    mut harvest: Harvest,
    growing: Growing,
    rows: usize,
    layout: &Layout,
    options: &CsvOptions,
) -> Result<TableRead> {
    harvest.bad.sort_by_key(|(number, row)| (*number, row.line));
    if options.bad_rows == BadRows::Error && !harvest.bad.is_empty() {
        return Err(DataError::BadRow(harvest.bad.swap_remove(0).1));
    }
    harvest.gaps.sort_by_key(|gap| gap.start);
    let mut growing = growing;
    translate(
        &growing.raw(),
        &harvest.translations,
        layout,
        parallel::threads(options.threads),
    )?;
    // SAFETY: every block wrote all its rows but those it reported as gaps.
    let (rows, arrays) = unsafe { growing.finish(rows, &harvest.gaps) };
    Ok(TableRead {
        arrays: Arrays {
            rows,
            arrays,
            dictionaries: harvest
                .dictionaries
                .into_iter()
                .map(Dictionary::into_texts)
                .collect(),
        },
        skipped: Skipped {
            count: harvest.bad_count,
            examples: harvest
                .bad
                .into_iter()
                .map(|(_, row)| row)
                .take(EXAMPLES_KEPT)
                .collect(),
        },
        rows_per_file: harvest.rows_per_file,
    })
}

/// From each block's own codes to the common ones.
fn translate(
    arrays: &[RawArray],
    translations: &[(Range<usize>, Vec<Vec<i32>>)],
    layout: &Layout,
    threads: usize,
) -> Result<()> {
    parallel::for_each(translations.len(), threads, |index| {
        let (rows, by_column) = &translations[index];
        for (slot, codes) in layout.slots.iter().zip(by_column) {
            let Some(slot) = slot.filter(|slot| slot.kind == ColumnType::Category) else {
                continue;
            };
            if codes
                .iter()
                .enumerate()
                .all(|(own, &common)| own as i32 == common)
            {
                continue;
            }
            let array = arrays[slot.array];
            for row in rows.clone() {
                // SAFETY: the rows were reserved for this block alone; gaps may hold any number, hence the checked look-up.
                unsafe {
                    let place = array.pointer.cast::<i32>().add(row * array.width + slot.offset);
                    let own = place.read();
                    place.write(
                        usize::try_from(own)
                            .ok()
                            .and_then(|own| codes.get(own))
                            .copied()
                            .unwrap_or(0),
                    );
                }
            }
        }
        Ok(())
    })
}
