//! A periodic timerfd (timerfd_create(2)): each read returns the number of expiries since the last
//! one.

use super::{LoopPlan, Wakeups};
use punctual_sys::{clock, descriptor};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

pub struct Timerfd {
    fd: OwnedFd,
    period: i64,
    due: i64,
    expiries: u64,
}

impl Timerfd {
    pub fn new(plan: &LoopPlan) -> io::Result<Timerfd> {
        // SAFETY: takes numbers alone, and makes a descriptor.
        let fd = unsafe {
            descriptor::own_descriptor(libc::timerfd_create(plan.clock, libc::TFD_CLOEXEC))?
        };
        clock::arm_timerfd(fd.as_fd(), plan.first_due, plan.period.ns())?;
        Ok(Timerfd { fd, period: plan.period.ns(), due: plan.first_due, expiries: 1 })
    }
}

impl Wakeups for Timerfd {
    #[inline(always)]
    fn await_expiry(&mut self) -> io::Result<i64> {
        let mut expiries = 0u64;
        // SAFETY: eight bytes are read into eight bytes.
        let n = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut expiries).cast(), 8) };
        if n != 8 {
            return Err(io::Error::last_os_error());
        }
        self.expiries = expiries;
        Ok(self.due)
    }
    #[inline(always)]
    fn arm_next(&mut self, _due: i64, _woke: i64) -> u64 {
        self.due += self.period * self.expiries as i64;
        self.expiries - 1
    }
    #[inline(always)]
    fn next_due(&self) -> i64 {
        self.due
    }
}
