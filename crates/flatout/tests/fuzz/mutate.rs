//! Damaged inputs: the same seed gives the same ones everywhere.

/// xorshift64*: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64, index: u64) -> Self {
        Self((seed << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit.max(1)
    }
}

const WORDS: [&[u8]; 24] = [
    b"\xff",
    b"\0",
    b"\x1b[2J",
    b"1e999",
    b"-9223372036854775809",
    b"NaN",
    b"inf",
    b"\"",
    b"'",
    b"'''",
    b"(",
    b"[[[[",
    b"}",
    b"\n",
    b"\r\n",
    b",,,,",
    b"\t",
    b"- ",
    b": ",
    b"&a *a",
    b"null",
    b"{\"a\":",
    b"\xe2\x80\xae",
    b"lambda: ",
];

/// A few random edits.
pub fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(64)).min(bytes.len());
        match random.below(10) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let from = random.below(other.len() + 1);
                let part = &other[from..(from + random.below(256)).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())];
                let times = if random.below(20) == 0 { 3_000 } else { 1 };
                bytes.splice(at..at, word.repeat(times));
            }
            5..=7 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ if at < bytes.len() => bytes[at] = random.next() as u8,
            _ => {}
        }
    }
    bytes
}
