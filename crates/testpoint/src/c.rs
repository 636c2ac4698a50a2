//! What the C header calls. The fast path, the control page and the thread's pointer to its ring are in C: `c/testpoint.c`.

use crate::layout::{Control, FLIGHT, STREAM};
use crate::mode::Off;
use crate::process::{PROCESS, Publish};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicU32;

/// A site, as the header lays it out.
#[repr(C)]
pub struct CPoint {
    id: AtomicU32,
    reserved: u32,
    name: *const c_char,
}

/// Called by the constructor in `testpoint.c`.
///
/// # Safety
/// `page` is [`crate::point::CONTROL_PAGE`] bytes of static memory, aligned to as much, zero; this is called once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_testpoint_start(page: *mut Control, publish: Publish) {
    PROCESS.start(page, Some(publish));
}

/// Everything that the header's fast path leaves aside.
///
/// # Safety
/// `point` is a site whose name is null or ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_testpoint_slow(point: *const CPoint, bits: u32, a: i64, b: i64) {
    // SAFETY: the caller's promise.
    let (id, name) = unsafe {
        let point = &*point;
        (&point.id, if point.name.is_null() { c"" } else { CStr::from_ptr(point.name) })
    };
    crate::slow::slow(id, name.to_bytes(), bits, [a, b]);
}

/// 0 and what is to be recorded when no collector asks (0 nothing, 1 stream, 2 flight recorder); -1 for any other mode.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_testpoint_record(mode: c_int) -> c_int {
    match u32::try_from(mode) {
        Ok(mode @ (0 | STREAM | FLIGHT)) => PROCESS.ask(mode),
        _ => return -1,
    }
    0
}

/// The path of this process's file, or null.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_testpoint_path() -> *const c_char {
    PROCESS.path().map_or(std::ptr::null(), CStr::as_ptr)
}

/// Why there is no file; null if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_testpoint_refusal() -> *const c_char {
    PROCESS.path().map_or_else(|refusal| Off::new(refusal).reason().as_ptr(), |_| std::ptr::null())
}
