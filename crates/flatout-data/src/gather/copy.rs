//! The copy of a run, chosen once a batch: the library's, or one past the caches where the batch is so large that nothing of it would be
//! left there when it is used.

use super::LINE_BYTES;
use crate::block::Plain;

/// Batches from here on are written past the caches. Windows on a Zen 4 with 32 MB of shared cache: at 20 MB that is 0.95–1.05 of plain
/// copying against 0.7, at 2.5 MB it is 0.65 against 0.83.
const PAST_CACHES_BYTES: usize = 8 << 20;
/// Shorter runs have too few whole lines.
const SHORTEST_BYTES: usize = 256;

/// Copies so many bytes between places that do not overlap.
type Copy = unsafe fn(*const u8, *mut u8, usize);

pub struct Copier {
    copy: Copy,
    past_caches: bool,
}

impl Copier {
    pub fn new(batch_bytes: usize, run_bytes: usize) -> Self {
        let worth_it = batch_bytes >= PAST_CACHES_BYTES && run_bytes >= SHORTEST_BYTES;
        let past_caches = past_caches().filter(|_| worth_it);
        Self {
            past_caches: past_caches.is_some(),
            copy: past_caches.unwrap_or(plain),
        }
    }

    #[inline]
    pub fn copy<T: Plain>(&self, from: &[T], into: &mut [T]) {
        let bytes = size_of_val(from).min(size_of_val(into));
        // SAFETY: both slices have so many bytes, they cannot overlap, the values are plain, and the function was chosen for what this
        // processor has.
        unsafe { (self.copy)(from.as_ptr().cast(), into.as_mut_ptr().cast(), bytes) };
    }

    /// Makes what went past the caches visible to other threads: to be called before the batch is handed over.
    pub fn finish(&self) {
        #[cfg(target_arch = "x86_64")]
        if self.past_caches {
            // SAFETY: every processor that has the stores has the fence.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
}

unsafe fn plain(from: *const u8, into: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, into, bytes) };
}

#[cfg(not(target_arch = "x86_64"))]
fn past_caches() -> Option<Copy> {
    None
}

#[cfg(target_arch = "x86_64")]
fn past_caches() -> Option<Copy> {
    use std::arch::is_x86_feature_detected as has;
    if has!("avx512f") {
        return Some(x86::lines_of_512);
    }
    has!("avx2").then_some(x86::lines_of_256 as Copy)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LINE_BYTES, plain};
    use std::arch::x86_64::*;

    /// Bytes before the first whole line of `into`, and bytes of whole lines.
    fn parts(into: *mut u8, bytes: usize) -> (usize, usize) {
        let head = into.align_offset(LINE_BYTES).min(bytes);
        (head, (bytes - head) / LINE_BYTES * LINE_BYTES)
    }

    #[target_feature(enable = "avx512f")]
    pub unsafe fn lines_of_512(from: *const u8, into: *mut u8, bytes: usize) {
        let (head, lines) = parts(into, bytes);
        // SAFETY: head, lines and the rest together are `bytes`; from `head` on `into` is aligned.
        unsafe {
            plain(from, into, head);
            for offset in (head..head + lines).step_by(LINE_BYTES) {
                let line = _mm512_loadu_si512(from.add(offset).cast());
                _mm512_stream_si512(into.add(offset).cast(), line);
            }
            let done = head + lines;
            plain(from.add(done), into.add(done), bytes - done);
        }
    }

    #[target_feature(enable = "avx2")]
    pub unsafe fn lines_of_256(from: *const u8, into: *mut u8, bytes: usize) {
        let (head, lines) = parts(into, bytes);
        // SAFETY: head, lines and the rest together are `bytes`; from `head` on `into` is aligned.
        unsafe {
            plain(from, into, head);
            for offset in (head..head + lines).step_by(LINE_BYTES / 2) {
                let half = _mm256_loadu_si256(from.add(offset).cast());
                _mm256_stream_si256(into.add(offset).cast(), half);
            }
            let done = head + lines;
            plain(from.add(done), into.add(done), bytes - done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_copies_every_length_to_every_alignment() {
        let source: Vec<u8> = (0..1200u32).map(|value| (value % 251) as u8).collect();
        let mut ways: Vec<Copy> = past_caches().into_iter().chain([plain as Copy]).collect();
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            ways.push(x86::lines_of_256);
        }
        let lengths = [0, 1, 63, 64, 65, 256, 700];
        for copy in ways {
            let copier = Copier {
                copy,
                past_caches: true,
            };
            for (offset, length) in (0..70).flat_map(|offset| lengths.map(|length| (offset, length))) {
                let mut into = vec![255u8; 1000];
                let from = &source[offset * 3..][..length];
                copier.copy(from, &mut into[offset..offset + length]);
                copier.finish();
                assert_eq!(&into[offset..offset + length], from, "{offset} {length}");
                let rest = into[..offset].iter().chain(&into[offset + length..]);
                assert!(rest.copied().all(|byte| byte == 255), "{offset} {length}");
            }
        }
        assert!(!Copier::new(1000, 1000).past_caches);
        assert!(!Copier::new(1 << 30, 100).past_caches);
    }
}
