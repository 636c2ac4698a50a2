//! futex(2): sleeps until another thread changes a word.

use crate::check_result;
use std::io;
use std::sync::atomic::AtomicU32;

/// The processes that share the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum FutexScope {
    Shared = 0,
    /// Only this process (FUTEX_PRIVATE_FLAG), which is faster.
    Private = libc::FUTEX_PRIVATE_FLAG,
}

/// Wakes at most `count` waiters of this word.
#[inline(always)]
pub fn wake(word: &AtomicU32, count: u32, scope: FutexScope) -> io::Result<()> {
    let what = libc::FUTEX_WAKE | scope as i32;
    // SAFETY: the word is borrowed; waking takes numbers beside it.
    check_result(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, count) }).map(drop)
}

/// Sleeps until woken, or for this time, if the word still has the expected value. EAGAIN: it has
/// not; EINTR: a signal came; ETIMEDOUT.
#[inline(always)]
pub fn wait(
    word: &AtomicU32,
    expected: u32,
    scope: FutexScope,
    timeout: Option<&libc::timespec>,
) -> io::Result<()> {
    let what = libc::FUTEX_WAIT | scope as i32;
    let timeout = timeout.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is borrowed, and the timeout is a timespec or null.
    check_result(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, expected, timeout) })
        .map(drop)
}

/// Waits until this thread owns the word, with priority inheritance: the word then holds its id, or
/// is free (FUTEX_LOCK_PI).
pub fn lock_pi(word: &AtomicU32, scope: FutexScope) -> io::Result<()> {
    let (what, none) = (libc::FUTEX_LOCK_PI | scope as i32, std::ptr::null::<libc::timespec>());
    // SAFETY: the word is borrowed; without a timeout nothing else is read.
    check_result(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, 0, none) }).map(drop)
}

/// Passes the word, which holds this thread's id, to the next waiter (FUTEX_UNLOCK_PI).
pub fn unlock_pi(word: &AtomicU32, scope: FutexScope) -> io::Result<()> {
    let what = libc::FUTEX_UNLOCK_PI | scope as i32;
    // SAFETY: the word is borrowed; nothing else is read.
    check_result(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futex_waits_return_on_a_changed_word_or_at_their_timeout() {
        let word = AtomicU32::new(1);
        let wait = |expected, scope| {
            let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            wait(&word, expected, scope, Some(&time)).unwrap_err().raw_os_error()
        };
        for scope in [FutexScope::Shared, FutexScope::Private] {
            assert_eq!(wait(0, scope), Some(libc::EAGAIN));
            assert_eq!(wait(1, scope), Some(libc::ETIMEDOUT));
            wake(&word, 1, scope).unwrap();
        }
    }
}
