//! DCMI, as `dcmi_interface_api.h` declares it. Its contracts: pointers are null or valid for what the function writes.

#![allow(clippy::missing_safety_doc, reason = "DCMI's own contract, named above")]

use crate::{DEVICES, fault, fill, lost};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong, c_void};

const OK: c_int = 0;
const INVALID_PARAMETER: c_int = -8001;
const INNER_ERROR: c_int = -8005;
const DEVICE_NOT_EXIST: c_int = -8008;
const NOT_SUPPORT: c_int = -8255;

/// The numbers of the cards, with a gap, as in a server that lacks one. Each has one NPU and a controller.
const CARDS: [c_int; DEVICES] = [1, 4];

#[repr(C)]
struct HbmInfo {
    memory_size: c_ulonglong,
    freq: c_uint,
    memory_usage: c_ulonglong,
    temp: c_int,
    bandwith_util_rate: c_uint,
}

#[repr(C)]
struct MemoryInfo {
    memory_size: c_ulonglong,
    memory_available: c_ulonglong,
    freq: c_uint,
    hugepagesize: c_ulong,
    hugepages_total: c_ulong,
    hugepages_free: c_ulong,
    utiliza: c_uint,
    reserve: [u8; 60],
}

#[repr(C)]
struct ChipInfo {
    chip_type: [u8; 32],
    chip_name: [u8; 32],
    chip_ver: [u8; 32],
    aicore_cnt: c_uint,
}

/// Writes an answer about an NPU.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn give<T>(card: c_int, device: c_int, out: *mut T, value: T) -> c_int {
    if !CARDS.contains(&card) || device != 0 || out.is_null() {
        return INVALID_PARAMETER;
    }
    if card == CARDS[1] && lost() {
        return DEVICE_NOT_EXIST;
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { out.write(value) };
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn dcmi_init() -> c_int {
    if fault("does-not-start") { INNER_ERROR } else { OK }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_driver_version(out: *mut c_char, length: c_uint) -> c_int {
    let mut text = [0; 16];
    fill(&mut text, "24.1.rc2");
    if out.is_null() || (length as usize) < text.len() {
        return INVALID_PARAMETER;
    }
    // SAFETY: the caller's buffer has `length` bytes.
    unsafe {
        out.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len())
    };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_card_list(count: *mut c_int, list: *mut c_int, length: c_int) -> c_int {
    let shown = if fault("no-devices") { 0 } else { CARDS.len() };
    let room = usize::try_from(length).unwrap_or(0);
    if count.is_null() || list.is_null() || room < shown {
        return INVALID_PARAMETER;
    }
    // SAFETY: the caller's list has `length` places.
    unsafe {
        count.write(c_int::try_from(shown).unwrap_or(0));
        list.copy_from_nonoverlapping(CARDS.as_ptr(), shown);
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_num_in_card(card: c_int, out: *mut c_int) -> c_int {
    // SAFETY: the caller's pointer. Two: the NPU and the controller.
    unsafe { give(card, 0, out, 2) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_type(card: c_int, device: c_int, out: *mut c_uint) -> c_int {
    let kind = if device == 0 { 0 } else { 1 };
    // SAFETY: the caller's pointer.
    unsafe { give(card, 0, out, kind) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_logic_id(out: *mut c_int, card: c_int, device: c_int) -> c_int {
    let number = CARDS.iter().position(|known| *known == card).unwrap_or(0);
    // SAFETY: the caller's pointer.
    unsafe { give(card, device, out, c_int::try_from(number).unwrap_or(0)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_chip_info(card: c_int, device: c_int, out: *mut c_void) -> c_int {
    let mut info = ChipInfo {
        chip_type: [0; 32],
        chip_name: [0; 32],
        chip_ver: [0; 32],
        aicore_cnt: 24,
    };
    fill(&mut info.chip_type, "Ascend");
    fill(&mut info.chip_name, "910B3");
    fill(&mut info.chip_ver, "V1");
    // SAFETY: the caller's structure.
    unsafe { give(card, device, out.cast(), info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_utilization_rate(
    card: c_int,
    device: c_int,
    kind: c_int,
    out: *mut c_uint,
) -> c_int {
    let percent = match kind {
        2 if fault("absurd") => 40_000,
        2 => 63,
        6 => 25,
        10 if !fault("no-hbm") => 31,
        // The whole NPU is unknown to this driver, as to most.
        _ => return NOT_SUPPORT,
    };
    // SAFETY: the caller's pointer.
    unsafe { give(card, device, out, percent) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_hbm_info(card: c_int, device: c_int, out: *mut c_void) -> c_int {
    if fault("no-hbm") {
        return NOT_SUPPORT;
    }
    let unit = if fault("old") { 1024 } else { 1 };
    let info = HbmInfo {
        memory_size: 65_536 * unit,
        freq: 1600,
        memory_usage: 16_384 * unit,
        temp: 55,
        bandwith_util_rate: 31,
    };
    // SAFETY: the caller's structure.
    unsafe { give(card, device, out.cast(), info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_memory_info_v3(
    card: c_int,
    device: c_int,
    out: *mut c_void,
) -> c_int {
    let info = MemoryInfo {
        memory_size: 21_527,
        memory_available: 10_000,
        freq: 1600,
        hugepagesize: 2048,
        hugepages_total: 0,
        hugepages_free: 0,
        utiliza: 50,
        reserve: [0; 60],
    };
    // SAFETY: the caller's structure.
    unsafe { give(card, device, out.cast(), info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_power_info(card: c_int, device: c_int, out: *mut c_int) -> c_int {
    let tenths = match () {
        () if fault("no-power") => return NOT_SUPPORT,
        () if fault("absurd") => 2_000_000_000,
        () => 3_124,
    };
    // SAFETY: the caller's pointer.
    unsafe { give(card, device, out, tenths) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_temperature(card: c_int, device: c_int, out: *mut c_int) -> c_int {
    // SAFETY: the caller's pointer.
    unsafe { give(card, device, out, 58) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcmi_get_device_frequency(
    card: c_int,
    device: c_int,
    kind: c_uint,
    out: *mut c_uint,
) -> c_int {
    let megahertz = match kind {
        6 => 1600,
        7 => 1650,
        9 => 1800,
        _ => return NOT_SUPPORT,
    };
    // SAFETY: the caller's pointer.
    unsafe { give(card, device, out, megahertz) }
}
