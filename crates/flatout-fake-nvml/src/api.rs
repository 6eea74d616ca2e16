//! NVML's functions. Their contracts are NVML's own: pointers are null or valid for what the function writes.

#![allow(clippy::missing_safety_doc, reason = "NVML's own contract, said above")]
#![allow(non_snake_case, non_upper_case_globals, reason = "NVML's own names")]

mod device;
mod gpm;
mod identity;
mod processes;
mod samples;
mod system;

use crate::fault::Field;
use crate::trace::Frame;
use crate::world::{Code, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NO_DATA, Now, SUCCESS, now};
use nvml_wrapper_sys::bindings::nvmlDevice_t;
use std::ffi::{c_char, c_uint};

/// Writes an answer to where the caller wants it.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn give<T>(out: *mut T, answer: Result<T, Code>) -> Code {
    match answer {
        Err(code) => code,
        Ok(_) if out.is_null() => INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: not null, and the caller vouches for the rest.
            unsafe { out.write(value) };
            SUCCESS
        }
    }
}

/// Writes a text with its closing zero.
///
/// # Safety
/// `out` is null or valid for `length` bytes.
unsafe fn give_text(out: *mut c_char, length: c_uint, answer: Result<&str, Code>) -> Code {
    let text = match answer {
        Err(code) => return code,
        Ok(text) => text,
    };
    if out.is_null() {
        return INVALID_ARGUMENT;
    }
    if text.len() >= length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: `text` and its zero fit into `length` bytes, which the caller vouches for; the two do not overlap.
    unsafe {
        out.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        out.add(text.len()).write(0);
    }
    SUCCESS
}

/// Fills a caller's list the way NVML does: with no room, the number needed and a code that says so.
///
/// # Safety
/// `count` is null or valid; `out` is null or valid for `*count` items.
unsafe fn give_list<T: Copy>(count: *mut c_uint, out: *mut T, answer: Result<Vec<T>, Code>) -> Code {
    let items = match answer {
        Err(code) => return code,
        Ok(items) => items,
    };
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    let needed = c_uint::try_from(items.len()).unwrap_or(c_uint::MAX);
    // SAFETY: `count` is not null and valid; where `out` is written to, it has room for `*count`, which is enough.
    unsafe {
        let room = count.read();
        count.write(needed);
        if needed == 0 {
            return SUCCESS;
        }
        if out.is_null() || room < needed {
            return INSUFFICIENT_SIZE;
        }
        out.copy_from_nonoverlapping(items.as_ptr(), items.len());
    }
    SUCCESS
}

/// A value of the frame that is played now.
fn read<T>(
    device: nvmlDevice_t,
    field: Field,
    value: impl FnOnce(&Now<'_>, &Frame) -> Option<T>,
) -> Result<T, Code> {
    let now = now(device, field)?;
    let frame = now.frame().ok_or(NO_DATA)?;
    value(&now, frame).ok_or(NO_DATA)
}

/// `0.97` as 97.
fn percent(share: f32) -> c_uint {
    (share * 100.0).round() as c_uint
}
