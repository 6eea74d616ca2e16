//! Huffman codes with their values, looked up together: one look tells how many bits the code and its value take and how many
//! coefficients it stands for.

use super::Reason;

const LOOK_BITS: u32 = 10;
/// What an end-of-block advances by: more than any other way of leaving a block.
pub const END_OF_BLOCK: usize = 128;

/// A code's length with its value's (bits 0–7), the coefficients it advances by (8–15), the length of the value (16–23) and of
/// the code (24–31). 0: no such code, or a longer one than the table looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry(u32);

impl Entry {
    fn new(code_bits: u32, symbol: u8) -> Self {
        let (run, value_bits) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        let advance = match (run, value_bits) {
            (15, 0) => 16,
            (_, 0) => END_OF_BLOCK as u32,
            _ => run + 1,
        };
        Self((code_bits + value_bits) | (advance << 8) | (value_bits << 16) | (code_bits << 24))
    }

    #[inline(always)]
    pub fn advance(self) -> usize {
        ((self.0 >> 8) & 0xFF) as usize
    }
}

/// Bits that stepping over looks at: wide enough for two codes as a rule, small enough for the first cache.
const RUN_BITS: u32 = 12;

/// As many whole codes with their values as fit `RUN_BITS`: their bits (0–3), the coefficients they advance by (4–11), and whether an
/// end of block closes them (12). 0: not even one fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Run(u16);

impl Run {
    fn advance(self) -> usize {
        usize::from((self.0 >> 4) & 0xFF)
    }

    fn ends(self) -> bool {
        self.0 >> 12 != 0
    }
}

pub struct Table {
    /// The definition, to see that the next picture has the same.
    counts: [u8; 16],
    symbols: Vec<u8>,
    fast: Box<[Entry; 1 << LOOK_BITS]>,
    runs: Box<[Run; 1 << RUN_BITS]>,
    /// Whether `runs` are those of this definition.
    has_runs: bool,
    /// For each length the first code behind those of this length, and what leads from a code to its symbol.
    limits: [i32; 17],
    offsets: [i32; 17],
}

impl Default for Table {
    fn default() -> Self {
        Self {
            counts: [0; 16],
            symbols: Vec::new(),
            fast: Box::new([Entry(0); 1 << LOOK_BITS]),
            runs: Box::new([Run(0); 1 << RUN_BITS]),
            has_runs: false,
            limits: [0; 17],
            offsets: [0; 17],
        }
    }
}

impl Table {
    pub fn is_defined(&self) -> bool {
        !self.symbols.is_empty()
    }

    pub fn define(&mut self, counts: &[u8], symbols: &[u8]) -> Result<(), Reason> {
        if self.counts == counts && self.symbols == symbols {
            return Ok(());
        }
        self.symbols.clear();
        self.counts.copy_from_slice(counts);
        self.fast.fill(Entry(0));
        self.runs.fill(Run(0));
        self.has_runs = false;
        let (mut code, mut index) = (0usize, 0usize);
        for (bits, &count) in (1u32..).zip(counts) {
            let count = usize::from(count);
            if code + count > 1 << bits {
                return Err("its Huffman tables are damaged".into());
            }
            self.offsets[bits as usize] = index as i32 - code as i32;
            for &symbol in &symbols[index..index + count] {
                if bits <= LOOK_BITS {
                    let shift = LOOK_BITS - bits;
                    self.fast[code << shift..(code + 1) << shift].fill(Entry::new(bits, symbol));
                }
                code += 1;
            }
            index += count;
            self.limits[bits as usize] = if count > 0 { code as i32 } else { 0 };
            code <<= 1;
        }
        self.symbols.extend_from_slice(symbols);
        Ok(())
    }

    /// Tables of runs take some microseconds to fill: worth it for a large picture, and for the many that share one table.
    pub fn prepare_runs(&mut self) {
        if std::mem::replace(&mut self.has_runs, true) {
            return;
        }
        for (index, run) in self.runs.iter_mut().enumerate() {
            let (mut bits, mut advance, mut ends) = (0u32, 0usize, false);
            while !ends && advance < 64 {
                let rest = (index << bits) & ((1 << RUN_BITS) - 1);
                let entry = self.fast[rest >> (RUN_BITS - LOOK_BITS)];
                let total = entry.0 & 0xFF;
                if entry.0 == 0 || bits + total > RUN_BITS {
                    break;
                }
                bits += total;
                ends = entry.advance() == END_OF_BLOCK;
                advance += if ends { 0 } else { entry.advance() };
            }
            *run = Run((bits | ((advance as u32) << 4) | (u32::from(ends) << 12)) as u16);
        }
    }

    #[inline(always)]
    fn look(&self, buffer: u64) -> Entry {
        let entry = self.fast[(buffer >> (64 - LOOK_BITS)) as usize];
        if entry.0 == 0 {
            self.look_longer(buffer)
        } else {
            entry
        }
    }

    #[cold]
    fn look_longer(&self, buffer: u64) -> Entry {
        for bits in LOOK_BITS + 1..=16 {
            let code = (buffer >> (64 - bits)) as i32;
            if code < self.limits[bits as usize] {
                let index = code + self.offsets[bits as usize];
                return self
                    .symbols
                    .get(index as usize)
                    .map_or(Entry(0), |&symbol| Entry::new(bits, symbol));
            }
        }
        Entry(0)
    }
}

/// Bits of a segment, the next one on top of the buffer. Behind the end come zeros; `overrun` tells.
pub struct Bits<'a> {
    bytes: &'a [u8],
    length: usize,
    at: usize,
    buffer: u64,
    count: u32,
}

/// Zeros that a segment needs behind its end.
pub const PADDING: usize = 8;

impl<'a> Bits<'a> {
    /// `bytes` are a segment and its padding.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            length: bytes.len().saturating_sub(PADDING),
            at: 0,
            buffer: 0,
            count: 0,
        }
    }

    /// Whether more bits were taken than there are.
    pub fn overrun(&self) -> bool {
        self.at * 8 > self.length * 8 + self.count as usize
    }

    /// At least 56 bits.
    #[inline(always)]
    fn refill(&mut self) {
        let word = match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => 0,
        };
        self.buffer |= word >> self.count;
        self.at += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    /// The next code with its value. A code that does not exist is an empty entry, which advances nothing.
    #[inline(always)]
    pub fn next(&mut self, table: &Table) -> (Entry, i32) {
        // Always, since a branch on the bits left would be guessed wrong every few codes.
        self.refill();
        let entry = table.look(self.buffer);
        let (value_bits, code_bits) = ((entry.0 >> 16) & 0xFF, entry.0 >> 24);
        let rest = self.buffer << code_bits;
        let raw = (rest >> 1 >> (63 - value_bits)) as i32;
        // A value whose first bit is 0 is negative.
        let value = raw - (((1 << value_bits) - 1) & ((rest >> 63) as i32 - 1));
        self.drop(entry.0 & 0xFF);
        (entry, value)
    }

    /// Steps over the next code and its value.
    #[inline(always)]
    pub fn skip(&mut self, table: &Table) -> Entry {
        self.refill();
        let entry = table.look(self.buffer);
        self.drop(entry.0 & 0xFF);
        entry
    }

    /// Steps over the coefficients from `index` to the end of the block; `false` when it has no proper end.
    #[inline(always)]
    pub fn skip_block(&mut self, table: &Table, mut index: usize) -> bool {
        while index < 64 {
            self.refill();
            // Four runs take at most 48 of the 56 bits.
            for _ in 0..4 {
                let run = table.runs[(self.buffer >> (64 - RUN_BITS)) as usize];
                let next = index + run.advance();
                if run == Run(0) || next >= 64 {
                    // A long code, or one that may be the block's last: the run's others would be the next block's.
                    let advance = self.skip(table).advance();
                    if advance == 0 {
                        return false;
                    }
                    index += advance;
                    break;
                }
                self.drop(u32::from(run.0 & 15));
                if run.ends() {
                    return true;
                }
                index = next;
            }
        }
        // A run that led past the block is damage.
        index == 64 || index >= END_OF_BLOCK
    }

    #[inline(always)]
    fn drop(&mut self, bits: u32) {
        self.buffer <<= bits;
        self.count -= bits;
    }
}
