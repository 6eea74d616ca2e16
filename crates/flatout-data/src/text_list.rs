//! Many short texts in one piece of memory, and a dictionary that numbers them.

use crate::random::mix;
use hashbrown::HashTable;

/// Texts one after the other. A million of them are two allocations, not a million.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextList {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl TextList {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u64);
    }

    /// The bytes of text `index`; empty behind the end.
    pub fn bytes(&self, index: usize) -> &[u8] {
        let Some(&end) = self.ends.get(index) else {
            return &[];
        };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..end as usize]
    }

    /// The text, with anything that is not UTF-8 replaced.
    pub fn get(&self, index: usize) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(index))
    }

    pub fn iter(&self) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The texts and where each ends, as they lie in memory.
    pub(crate) fn parts(&self) -> (&[u8], &[u64]) {
        (&self.bytes, &self.ends)
    }

    /// `None` when the ends do not rise to the length of the texts.
    pub(crate) fn from_parts(bytes: Vec<u8>, ends: Vec<u64>) -> Option<Self> {
        let rising = ends.windows(2).all(|pair| pair[0] <= pair[1]);
        (rising && ends.last().copied().unwrap_or(0) == bytes.len() as u64).then_some(Self { bytes, ends })
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.len() + 8 * self.ends.len()
    }
}

impl<S: AsRef<str>> FromIterator<S> for TextList {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut list = Self::default();
        texts
            .into_iter()
            .for_each(|text| list.push(text.as_ref().as_bytes()));
        list
    }
}

/// Numbers texts in the order of their first appearance, from 1; 0 stands for "unseen or missing".
#[derive(Debug, Default)]
pub struct Dictionary {
    texts: TextList,
    table: HashTable<u32>,
}

impl Dictionary {
    /// A dictionary that already knows `texts`.
    pub fn from_texts(texts: &TextList) -> Self {
        let mut dictionary = Self::default();
        (0..texts.len()).for_each(|index| {
            dictionary.code(texts.bytes(index));
        });
        dictionary
    }

    /// The code of a text, given out now if it is new.
    #[inline]
    pub fn code(&mut self, text: &[u8]) -> i32 {
        let hash = hash(text);
        if let Some(&index) = self
            .table
            .find(hash, |&index| self.texts.bytes(index as usize) == text)
        {
            return index as i32 + 1;
        }
        let index = self.texts.len() as u32;
        self.texts.push(text);
        let texts = &self.texts;
        self.table
            .insert_unique(hash, index, |&index| self::hash(texts.bytes(index as usize)));
        index as i32 + 1
    }

    /// The code of a known text, 0 for any other.
    #[inline]
    pub fn find(&self, text: &[u8]) -> i32 {
        self.table
            .find(hash(text), |&index| self.texts.bytes(index as usize) == text)
            .map_or(0, |&index| index as i32 + 1)
    }

    pub fn texts(&self) -> &TextList {
        &self.texts
    }

    pub fn into_texts(self) -> TextList {
        self.texts
    }

    pub fn clear(&mut self) {
        self.texts.bytes.clear();
        self.texts.ends.clear();
        self.table.clear();
    }
}

/// Eight bytes at a time: identifiers are short.
#[inline]
fn hash(text: &[u8]) -> u64 {
    let mut state = text.len() as u64;
    let mut chunks = text.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes([
            chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
        ]);
        state = mix(state ^ word);
    }
    let mut last = 0u64;
    for &byte in chunks.remainder() {
        last = last << 8 | u64::from(byte);
    }
    mix(state.rotate_left(17) ^ last.wrapping_add(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn behaves_like_a_map(texts in prop::collection::vec("[a-c]{0,9}", 0..200)) {
            let (mut dictionary, mut expected) = (Dictionary::default(), HashMap::new());
            for text in &texts {
                let next = expected.len() as i32 + 1;
                let code = *expected.entry(text.clone()).or_insert(next);
                prop_assert_eq!(dictionary.code(text.as_bytes()), code);
            }
            for (text, &code) in &expected {
                prop_assert_eq!(dictionary.find(text.as_bytes()), code);
                prop_assert_eq!(dictionary.texts().get(code as usize - 1), text.as_str());
            }
            prop_assert_eq!(dictionary.find(b"zzz"), 0);
        }
    }
}
