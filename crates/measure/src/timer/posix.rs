//! A periodic POSIX timer (timer_create(2)) whose signal the thread waits for with sigwaitinfo(2):
//! no handler runs.

use super::{LoopPlan, Wakeups};
use punctual_sys::attributes::thread_id;
use punctual_sys::{check_result, clock, signals};
use std::io;

pub struct PosixTimer {
    timer: libc::timer_t,
    signals: libc::sigset_t,
    period: i64,
    due: i64,
    overrun: i64,
}

/// The signal of the timers; blocked in every thread that uses one, so several threads can use the
/// same.
fn timer_signal() -> libc::c_int {
    libc::SIGRTMIN() + 1
}

impl PosixTimer {
    pub fn new(plan: &LoopPlan) -> io::Result<PosixTimer> {
        let signals = signals::set_of(&[timer_signal()]);
        signals::block_signals(&signals);
        // SAFETY: all zeroes is a valid sigevent.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = timer_signal();
        event.sigev_notify_thread_id = thread_id();
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: `event` and `timer` are valid; the thread named is this one.
        check_result(unsafe { libc::timer_create(plan.clock, &mut event, &mut timer) })?;
        let posix_timer = PosixTimer {
            timer,
            signals,
            period: plan.period.ns(),
            due: plan.first_due,
            overrun: 0,
        };
        // SAFETY: the timer was just made.
        unsafe { clock::arm_timer(timer, plan.first_due, plan.period.ns())? };
        Ok(posix_timer)
    }
}

impl Wakeups for PosixTimer {
    #[inline(always)]
    fn await_expiry(&mut self) -> io::Result<i64> {
        // SAFETY: the set is valid; all zeroes is a valid siginfo_t to be written over.
        let (got, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::sigwaitinfo(&self.signals, &mut info), info)
        };
        check_result(got)?;
        // SAFETY: the only sender of this signal to this thread is our timer, so the timer's fields
        // of the union are the valid ones.
        self.overrun = i64::from(unsafe { info.si_overrun() }.max(0));
        Ok(self.due)
    }
    #[inline(always)]
    fn arm_next(&mut self, _due: i64, _woke: i64) -> u64 {
        self.due += self.period * (self.overrun + 1);
        self.overrun as u64
    }
    #[inline(always)]
    fn next_due(&self) -> i64 {
        self.due
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is not used afterwards; a pending signal is removed so that
        // the thread ends as it began.
        unsafe {
            libc::timer_delete(self.timer);
            let zero_timeout = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            while libc::sigtimedwait(&self.signals, std::ptr::null_mut(), &zero_timeout) > 0 {}
        }
    }
}
