//! One contiguous run of numbers: what a trainer uploads in one copy.

use std::ops::Deref;

/// Numbers in one piece, read-only once built.
#[derive(Debug)]
pub struct Block<T> {
    storage: Vec<T>,
}

impl<T> Block<T> {
    /// The numbers for writing.
    pub fn to_mut(&mut self) -> &mut [T] {
        &mut self.storage
    }

    pub fn into_vec(self) -> Vec<T> {
        self.storage
    }

    pub fn size_bytes(&self) -> usize {
        std::mem::size_of_val(&self[..])
    }
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Block<T> {
    fn from(storage: Vec<T>) -> Self {
        Self { storage }
    }
}

impl<T> Deref for Block<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.storage
    }
}
