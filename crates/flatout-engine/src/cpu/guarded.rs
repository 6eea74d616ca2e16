//! A `RefCell` whose borrows may be looked at from several threads: operations borrow their buffers on one thread and hand
//! the slices to all workers. A borrow that contradicts another is a mistake in the plan and panics.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicIsize, Ordering};

/// −1 while written, else the number of readers.
pub struct Guarded<V> {
    borrows: AtomicIsize,
    value: UnsafeCell<V>,
}

// SAFETY: `borrows` lets either one writer or any number of readers in.
unsafe impl<V: Send + Sync> Sync for Guarded<V> {}

pub struct Reading<'a, V: ?Sized> {
    value: &'a V,
    borrows: &'a AtomicIsize,
}

pub struct Writing<'a, V: ?Sized> {
    value: &'a mut V,
    borrows: &'a AtomicIsize,
}

impl<V> Guarded<V> {
    pub fn new(value: V) -> Self {
        Self {
            borrows: AtomicIsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    pub fn borrow(&self) -> Reading<'_, V> {
        let before = self.borrows.fetch_add(1, Ordering::Acquire);
        assert!(before >= 0, "the plan reads a buffer that is being written");
        Reading {
            // SAFETY: no writer, and none can come while the count is above zero.
            value: unsafe { &*self.value.get() },
            borrows: &self.borrows,
        }
    }

    pub fn borrow_mut(&self) -> Writing<'_, V> {
        let free = self
            .borrows
            .compare_exchange(0, -1, Ordering::Acquire, Ordering::Relaxed);
        assert!(free.is_ok(), "the plan writes a buffer that is in use");
        Writing {
            // SAFETY: the count was zero and is now −1: nobody else is in.
            value: unsafe { &mut *self.value.get() },
            borrows: &self.borrows,
        }
    }
}

impl<'a, V: ?Sized> Reading<'a, V> {
    pub fn map<U: ?Sized>(self, part: impl FnOnce(&'a V) -> &'a U) -> Reading<'a, U> {
        let (value, borrows) = (self.value, self.borrows);
        std::mem::forget(self);
        Reading {
            value: part(value),
            borrows,
        }
    }
}

impl<'a, V: ?Sized> Writing<'a, V> {
    pub fn map<U: ?Sized>(self, part: impl FnOnce(&'a mut V) -> &'a mut U) -> Writing<'a, U> {
        let mut this = std::mem::ManuallyDrop::new(self);
        let borrows = this.borrows;
        let value: *mut V = &mut *this.value;
        Writing {
            // SAFETY: the guard is gone without a drop, so this is the only path to the value, for as long as 'a.
            value: part(unsafe { &mut *value }),
            borrows,
        }
    }
}

impl<V: ?Sized> Drop for Reading<'_, V> {
    fn drop(&mut self) {
        self.borrows.fetch_sub(1, Ordering::Release);
    }
}

impl<V: ?Sized> Drop for Writing<'_, V> {
    fn drop(&mut self) {
        self.borrows.store(0, Ordering::Release);
    }
}

impl<V: ?Sized> Deref for Reading<'_, V> {
    type Target = V;
    fn deref(&self) -> &V {
        self.value
    }
}

impl<V: ?Sized> Deref for Writing<'_, V> {
    type Target = V;
    fn deref(&self) -> &V {
        self.value
    }
}

impl<V: ?Sized> DerefMut for Writing<'_, V> {
    fn deref_mut(&mut self) -> &mut V {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_or_many_readers() {
        let cell = Guarded::new(vec![1, 2, 3]);
        {
            let (one, two) = (cell.borrow(), cell.borrow().map(|values| &values[1..]));
            assert_eq!((one.len(), two.len()), (3, 2));
            assert!(
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(cell.borrow_mut()))).is_err()
            );
        }
        cell.borrow_mut().map(|values| &mut values[..1])[0] = 9;
        assert_eq!(*cell.borrow(), [9, 2, 3]);
    }
}
