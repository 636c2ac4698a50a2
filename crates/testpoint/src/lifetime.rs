//! What a process does where it forks and where it ends.

use crate::process::PROCESS;
use crate::{sys, thread};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// Has a child of this process get a file of its own, and the end of the process marked in its
/// file.
pub fn watch() {
    // SAFETY: functions that stay as long as this library is loaded.
    unsafe {
        sys::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        libc::atexit(ended);
    }
}

thread_local! {
    static SIGNALS: UnsafeCell<MaybeUninit<libc::sigset_t>> =
        const { UnsafeCell::new(MaybeUninit::uninit()) };
}

// In the child a handler that records before `in_child` is through would write the parent's ring:
// no signal comes before.
unsafe extern "C" fn before_fork() {
    let signals = sys::block_signals();
    // SAFETY: this thread's, and no signal handler reads it.
    SIGNALS.with(|place| unsafe { (*place.get()).write(signals) });
}

unsafe extern "C" fn after_fork() {
    // SAFETY: this thread's, and `before_fork` wrote it.
    SIGNALS.with(|place| unsafe { sys::restore_signals((*place.get()).assume_init_ref()) });
}

unsafe extern "C" fn in_child() {
    let errno = sys::KeptErrno::new();
    thread::forget();
    PROCESS.renew();
    drop(errno);
    // SAFETY: as for the parent.
    unsafe { after_fork() };
}

extern "C" fn ended() {
    if let Some(control) = PROCESS.control() {
        control.ended.store(1, Ordering::Release);
    }
}
