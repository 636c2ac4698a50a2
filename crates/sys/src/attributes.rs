//! Scheduling policy, priority, affinity and timer slack of the calling thread (sched_setattr(2),
//! sched_setaffinity(2), prctl(2)).

use crate::check_result;
use punctual_core::{CpuSet, Nanos, Policy, Priority};
use std::fmt;
use std::io;

/// The parameters of SCHED_DEADLINE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlineAttributes {
    pub runtime: Nanos,
    /// The deadline, from the start of the period.
    pub deadline: Nanos,
    pub period: Nanos,
}

/// The scheduling of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheduling {
    pub policy: Policy,
    pub priority: Option<Priority>,
    /// For SCHED_OTHER and SCHED_BATCH: -20 (most) to 19.
    pub nice: i32,
    pub deadline: Option<DeadlineAttributes>,
}

impl Scheduling {
    /// A policy with only its priority.
    pub fn new(policy: Policy, priority: Option<Priority>) -> Scheduling {
        Scheduling { policy, priority, nice: 0, deadline: None }
    }
}

/// `SCHED_FIFO 80`, `SCHED_OTHER nice 5`, `SCHED_DEADLINE 1ms/5ms/10ms`.
impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.policy.fmt(f)?;
        match (self.priority, self.deadline) {
            (Some(priority), _) => write!(f, " {priority}"),
            (_, Some(d)) => write!(f, " {}/{}/{}", d.runtime, d.deadline, d.period),
            _ if self.nice != 0 => write!(f, " nice {}", self.nice),
            _ => Ok(()),
        }
    }
}

/// `struct sched_attr` in its first version (include/uapi/linux/sched/types.h).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    sched_policy: u32,
    sched_flags: u64,
    sched_nice: i32,
    sched_priority: u32,
    sched_runtime: u64,
    sched_deadline: u64,
    sched_period: u64,
}

const POLICIES: [(Policy, i32); 6] = [
    (Policy::Other, libc::SCHED_OTHER),
    (Policy::Fifo, libc::SCHED_FIFO),
    (Policy::Rr, libc::SCHED_RR),
    (Policy::Batch, libc::SCHED_BATCH),
    (Policy::Idle, libc::SCHED_IDLE),
    (Policy::Deadline, libc::SCHED_DEADLINE),
];

/// The policy by the kernel's number (include/uapi/linux/sched.h).
pub fn policy_from_number(number: u32) -> Option<Policy> {
    POLICIES.iter().find(|(_, n)| *n as u32 == number).map(|(policy, _)| *policy)
}

/// Sets a thread's scheduling (`tid` 0: the caller). EPERM: no CAP_SYS_NICE and RLIMIT_RTPRIO too
/// low, a cgroup without real-time bandwidth, or SCHED_DEADLINE with an affinity that is not a
/// whole root domain.
pub fn set_scheduling(tid: i32, scheduling: &Scheduling) -> io::Result<()> {
    let number =
        POLICIES.iter().find(|(policy, _)| *policy == scheduling.policy).map_or(0, |(_, n)| *n);
    let deadline = scheduling.deadline;
    let span = |pick: fn(&DeadlineAttributes) -> Nanos| {
        deadline.as_ref().map_or(0, |d| pick(d).ns().max(0) as u64)
    };
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        sched_policy: number as u32,
        sched_flags: 0,
        sched_nice: scheduling.nice,
        sched_priority: scheduling.priority.map_or(0, |p| u32::from(p.get())),
        sched_runtime: span(|d| d.runtime),
        sched_deadline: span(|d| d.deadline),
        sched_period: span(|d| d.period),
    };
    // SAFETY: `attr` is a sched_attr of the size that it states; the kernel only reads it.
    check_result(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &attr, 0) }).map(drop)
}

/// The current scheduling of a thread (`tid` 0: the caller).
pub fn read_scheduling(tid: i32) -> io::Result<Scheduling> {
    let mut attr = SchedAttr::default();
    // SAFETY: `attr` has the stated size; the kernel writes at most that much.
    check_result(unsafe {
        libc::syscall(libc::SYS_sched_getattr, tid, &mut attr, size_of::<SchedAttr>() as u32, 0)
    })?;
    let policy = policy_from_number(attr.sched_policy)
        .ok_or_else(|| io::Error::other(format!("policy {} is not known", attr.sched_policy)))?;
    let deadline = (policy == Policy::Deadline).then_some(DeadlineAttributes {
        runtime: Nanos(attr.sched_runtime as i64),
        deadline: Nanos(attr.sched_deadline as i64),
        period: Nanos(attr.sched_period as i64),
    });
    let priority = u8::try_from(attr.sched_priority).ok().and_then(Priority::new);
    Ok(Scheduling { policy, priority, nice: attr.sched_nice, deadline })
}

/// The deadline of the calling SCHED_DEADLINE thread's running period, on CLOCK_MONOTONIC in ns
/// (SCHED_GETATTR_FLAG_DL_DYNAMIC, from Linux 7.1 on). EINVAL: an older kernel, or another policy.
#[inline(always)]
pub fn absolute_deadline() -> io::Result<i64> {
    const DL_DYNAMIC: u32 = 1;
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>() as u32;
    // SAFETY: `attr` has the stated size; the kernel writes at most that much.
    check_result(unsafe {
        libc::syscall(libc::SYS_sched_getattr, 0, &mut attr, size, DL_DYNAMIC)
    })?;
    Ok(attr.sched_deadline as i64)
}

/// Restricts a thread to these CPUs (`tid` 0: the caller). EINVAL: none of them is online, or in
/// the thread's cpuset.
pub fn set_affinity(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; punctual_core::cpuset::MAX_CPUS / 64];
    cpus.iter().for_each(|cpu| mask[cpu / 64] |= 1 << (cpu % 64));
    // SAFETY: the mask is as long as stated; the kernel only reads it and ignores bits beyond its
    // own CPUs.
    check_result(unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, tid, size_of_val(&mask), mask.as_ptr())
    })
    .map(drop)
}

/// The CPUs that a thread may run on (`tid` 0: the caller).
pub fn read_affinity(tid: i32) -> io::Result<CpuSet> {
    let mut mask = [0u64; punctual_core::cpuset::MAX_CPUS / 64];
    // SAFETY: the mask is as long as stated; the kernel writes no further and returns the length.
    let bytes = check_result(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask), mask.as_mut_ptr())
    })?;
    let bits = (bytes as usize * 8).min(punctual_core::cpuset::MAX_CPUS);
    Ok((0..bits).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// Sets the calling thread's timer slack: by how much the kernel may delay its timers. Real-time
/// policies have none in any case (prctl(2), PR_SET_TIMERSLACK).
pub fn set_timer_slack(slack: Nanos) -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches no memory of ours. 0 would mean "the
    // default", hence the 1.
    check_result(unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, slack.ns().max(1) as libc::c_ulong)
    })
    .map(drop)
}

/// The kernel's id of the calling thread: a system call each time.
pub fn thread_id() -> i32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// The current CPU of the caller. No system call if glibc has registered rseq(2) or the vDSO has
/// getcpu.
#[inline(always)]
pub fn current_cpu() -> u32 {
    // SAFETY: sched_getcpu has no arguments; it fails on no supported kernel.
    unsafe { libc::sched_getcpu() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_and_policy_are_read_back_as_set() {
        std::thread::spawn(|| {
            let allowed = read_affinity(0).unwrap();
            let one = CpuSet::from_cpu(allowed.iter().last().unwrap());
            set_affinity(0, &one).unwrap();
            assert_eq!(read_affinity(0).unwrap(), one);
            assert_eq!(Some(current_cpu() as usize), one.first_cpu());
            let batch = Scheduling { nice: 3, ..Scheduling::new(Policy::Batch, None) };
            set_scheduling(0, &batch).unwrap();
            assert_eq!(read_scheduling(0).unwrap(), batch);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn real_time_scheduling_is_read_back_if_permitted() {
        std::thread::spawn(|| {
            let fifo = Scheduling::new(Policy::Fifo, Priority::new(7));
            match set_scheduling(0, &fifo) {
                Ok(()) => assert_eq!(read_scheduling(0).unwrap(), fifo),
                Err(why) => println!("SKIPPED: SCHED_FIFO is unavailable: {why} (CAP_SYS_NICE)"),
            }
        })
        .join()
        .unwrap();
    }
}
