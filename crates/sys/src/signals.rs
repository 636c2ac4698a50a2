//! Signals: the threads that receive them, and one that only wakes a sleeper.

use crate::{check_result, status};
use std::io;

/// The signal that interrupts a sleeping thread without other effect.
fn waking_signal() -> libc::c_int {
    libc::SIGRTMIN() + 2
}

/// The set of these signals.
pub fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a sigset_t is plain integers, which sigemptyset makes valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

/// Blocks these signals in the calling thread, in addition to those already blocked.
pub fn block_signals(set: &libc::sigset_t) {
    // SAFETY: a valid set; it concerns only this thread.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, std::ptr::null_mut()) };
}

/// Installs an empty handler for a signal, with these flags (sigaction(2)).
fn install_handler(signal: libc::c_int, flags: libc::c_int) -> io::Result<()> {
    extern "C" fn return_at_once(_: libc::c_int) {}
    // SAFETY: all zeroes is a valid sigaction; the handler is async-signal-safe because it does
    // nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = return_at_once as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        check_result(libc::sigaction(signal, &action, std::ptr::null_mut())).map(drop)
    }
}

/// Makes [`wake_thread`] work: without a handler its signal would end the process. Without
/// SA_RESTART, so that sleeps return EINTR.
pub fn prepare_waking() -> io::Result<()> {
    install_handler(waking_signal(), 0)
}

/// Whether this process ignores a signal, for example when started by `nohup` (SigIgn in
/// /proc/self/status, proc_pid_status(5)).
pub fn is_ignored(signal: libc::c_int) -> bool {
    let mask = status::read().ok().and_then(|status| status::parse_mask(&status, "SigIgn"));
    mask.is_some_and(|mask| (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1)
}

/// Makes a write beyond the limit on file sizes (RLIMIT_FSIZE, `ulimit -f`) fail with EFBIG:
/// without a handler SIGXFSZ would end the process. Programs started by this one have the default
/// again.
pub fn survive_file_limit() -> io::Result<()> {
    install_handler(libc::SIGXFSZ, libc::SA_RESTART)
}

/// Interrupts the sleep of a thread of this process. ESRCH: it has ended.
pub fn wake_thread(tid: i32) -> io::Result<()> {
    // SAFETY: tgkill takes only numbers; naming our own process protects a recycled tid elsewhere.
    check_result(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, waking_signal()) })
        .map(drop)
}

/// Blocks every signal but the waking one in the calling thread: the controller thread receives
/// them.
pub fn leave_to_others() {
    // SAFETY: the set is made valid by sigfillset before use; it concerns only this thread.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigdelset(&mut set, waking_signal());
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// Has the calling process killed when its parent dies, or immediately if it has already died
/// (prctl(2), PR_SET_PDEATHSIG).
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    signalled_with_parent(parent, libc::SIGKILL)
}

/// Has the calling process terminated (SIGTERM) when its parent dies, or immediately if it has
/// already died.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    signalled_with_parent(parent, libc::SIGTERM)
}

fn signalled_with_parent(parent: u32, signal: i32) -> io::Result<()> {
    // SAFETY: prctl, getppid and raise take only numbers and are async-signal-safe: usable between
    // fork and exec.
    unsafe {
        check_result(libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong))?;
        if libc::getppid() as u32 != parent {
            libc::raise(signal);
        }
    }
    Ok(())
}

/// Unblocks every signal, as a program expects at its start. Async-signal-safe.
pub fn allow_all() {
    // SAFETY: a valid set; it concerns only this thread.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set_of(&[]), std::ptr::null_mut()) };
}
