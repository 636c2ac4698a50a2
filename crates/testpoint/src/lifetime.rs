//! Handles forks and the end of a process.

use crate::process::PROCESS;
use crate::{sys, thread};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// Gives a forked child its own file, and marks the end of the process in its file.
pub fn watch_forks() {
    // SAFETY: functions that exist as long as this library is loaded.
    unsafe {
        sys::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        libc::atexit(ended);
    }
}

thread_local! {
    static SIGNALS: UnsafeCell<MaybeUninit<libc::sigset_t>> =
        const { UnsafeCell::new(MaybeUninit::uninit()) };
}

// A handler that recorded in the child before `in_child` has finished would write to the parent's
// ring: signals are blocked until then.
unsafe extern "C" fn before_fork() {
    let signals = sys::block_signals();
    // SAFETY: belongs to this thread, and no signal handler reads it.
    SIGNALS.with(|place| unsafe { (*place.get()).write(signals) });
}

unsafe extern "C" fn after_fork() {
    // SAFETY: belongs to this thread, and `before_fork` wrote it.
    SIGNALS.with(|place| unsafe { sys::restore_signals((*place.get()).assume_init_ref()) });
}

unsafe extern "C" fn in_child() {
    let errno = sys::KeptErrno::new();
    thread::forget_rings();
    PROCESS.renew_in_child();
    drop(errno);
    // SAFETY: as for the parent.
    unsafe { after_fork() };
}

extern "C" fn ended() {
    if let Some(control) = PROCESS.control_page() {
        control.ended.store(1, Ordering::Release);
    }
}
