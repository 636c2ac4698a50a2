//! `syscall`: one system call, timed from the instruction before it to the one after.

use crate::form::{any_number, count_form, duration_form, list_form, optional_form, word_form};
use crate::kind::{HistogramPlan, Kind, KindFacts, ParameterProblems, parameters, words};
use crate::limits::{MAX_PERIOD, MIN_PERIOD};
use punctual_core::Nanos;
use punctual_core::event::Group;

words! {
    /// The system call.
    Call {
        /// getpid(2): does almost nothing.
        Getpid = "getpid",
        /// gettid(2).
        Gettid = "gettid",
        /// clock_gettime(2) of CLOCK_MONOTONIC by the system call, not the vDSO.
        ClockGettime = "clock-gettime",
        /// read(2) of one byte (of an eventfd: eight).
        Read = "read",
        /// write(2) of one byte (to an eventfd: eight).
        Write = "write",
        /// futex(2) FUTEX_WAKE without a waiter.
        FutexWake = "futex-wake",
        /// sched_yield(2).
        SchedYield = "sched-yield",
        /// The call with this `number`.
        Number = "number",
    }
}

words! {
    /// The file of read and write.
    Target {
        /// /dev/null
        Null = "null",
        /// pipe(2), never full, never empty.
        Pipe = "pipe",
        /// eventfd(2), never full, never empty.
        Eventfd = "eventfd",
    }
}

parameters! {
    /// One system call, repeated.
    SyscallPlan, SyscallSpec {
        /// Which one: `clock-gettime` reads CLOCK_MONOTONIC, bypassing the vDSO; `read` and `write`
        /// transfer one byte, eight for an eventfd; `futex-wake` has no waiter; `number` is any
        /// call, by its number.
        call: Call = Call::Getpid, word_form("a system call known by name");
        /// What `read` and `write` work on: `null`, `pipe` or `eventfd`; they never block, because
        /// an untimed call prepares each of them.
        target: Target = Target::Null, word_form("something to read and write");
        /// With `call = "number"`: the number of the call on this machine. Refused without force,
        /// except for a few that only return a value.
        number: Option<u32> = None, optional_form(count_form(0, MAX_NUMBER));
        /// The constant arguments of a call given by its number.
        arguments: Vec<i64> = Vec::new(), list_form(0, 6, any_number());
        /// The time from one call to the next; without it the calls are back to back.
        period: Option<Nanos> = None, optional_form(duration_form(MIN_PERIOD, MAX_PERIOD));
        /// Without a period, how long it sleeps after every 10ms: a real-time thread that never
        /// sleeps is throttled.
        rest: Nanos = Nanos::from_millis(1), duration_form(Nanos::ZERO, Nanos::SECOND);
    }
}

/// Above the highest number of any architecture (except x32 and the Arm private calls), to detect
/// mistakes.
const MAX_NUMBER: u64 = 1_023;

impl SyscallPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        validated_by: "perf at `raw_syscalls:sys_enter`",
        explained_by: &[Group::Lock],
        times_calls: true,
        ..KindFacts::new("syscall", "one system call")
    };
}

impl Kind for SyscallPlan {
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_micros(100), resolution: Nanos(10) }
    }
    fn sample_period(&self) -> Option<Nanos> {
        self.period
    }
    fn is_spinning(&self) -> bool {
        self.period.is_none() && self.rest == Nanos::ZERO
    }
}

impl SyscallSpec {
    pub(crate) fn check_conflicts(&self, plan: &SyscallPlan, problems: &mut ParameterProblems) {
        let usual = SyscallPlan::default();
        if !matches!(plan.call, Call::Read | Call::Write) {
            problems.report_unused(
                "target",
                &self.target,
                &usual.target,
                "only `read` and `write` have one",
            );
        }
        if plan.call != Call::Number {
            problems.report_unused(
                "number",
                &self.number,
                &usual.number,
                "the call is named; set `call = \"number\"` to give its number",
            );
            problems.report_unused(
                "arguments",
                &self.arguments,
                &usual.arguments,
                "only a call given by its number takes arguments",
            );
        }
        if plan.period.is_some() {
            problems.report_unused(
                "rest",
                &self.rest,
                &usual.rest,
                "with a period it sleeps anyway",
            );
        }
        match (plan.call, plan.number) {
            (Call::Number, None) => {
                problems.report_conflict(
                    &self.call,
                    "the number of the system call is missing",
                    "write `number = 39`",
                );
            }
            (Call::Number, Some(number)) if NEVER_TIMED.contains(&number) => {
                let message = format!(
                    "system call {number} does not return to its caller: it cannot be timed"
                );
                problems.report_conflict(&self.number, message, "choose another call");
            }
            (Call::Number, Some(number)) if !is_harmless(number) => {
                let message = format!("system call {number} is not known to be harmless");
                let help = "to call it anyway, use --force (in a file: `force = true` in \
                            [experiment])";
                problems.report_danger(&self.number, message, help);
            }
            _ => {}
        }
    }
}

/// exit, exit_group, rt_sigreturn, execve, execveat, fork, vfork, clone, clone3: they end, replace
/// or duplicate the caller.
#[cfg(target_arch = "x86_64")]
const NEVER_TIMED: &[u32] = &[60, 231, 15, 59, 322, 57, 58, 56, 435];
/// The same in the generic table of newer architectures.
#[cfg(not(target_arch = "x86_64"))]
const NEVER_TIMED: &[u32] = &[93, 94, 139, 221, 281, 220, 435];

/// Calls that only return a property of the caller: they take only numbers, and change nothing. All
/// others can end, stop or change something (reboot, kill, mount, exit, …), and are not
/// distinguished.
/// distinguished.
#[cfg(target_arch = "x86_64")]
const HARMLESS: &[u32] = &[
    24,  // sched_yield
    39,  // getpid
    102, // getuid
    104, // getgid
    107, // geteuid
    108, // getegid
    110, // getppid
    111, // getpgrp
    121, // getpgid
    124, // getsid
    140, // getpriority
    145, // sched_getscheduler
    146, // sched_get_priority_max
    147, // sched_get_priority_min
    186, // gettid
];

/// The generic table of newer architectures (include/uapi/asm-generic/unistd.h).
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "loongarch64"))]
const HARMLESS: &[u32] = &[
    120, // sched_getscheduler
    124, // sched_yield
    125, // sched_get_priority_max
    126, // sched_get_priority_min
    141, // getpriority
    155, // getpgid
    156, // getsid
    172, // getpid
    173, // getppid
    174, // getuid
    175, // geteuid
    176, // getgid
    177, // getegid
    178, // gettid
];

/// 32-bit Arm (arch/arm/tools/syscall.tbl).
#[cfg(target_arch = "arm")]
const HARMLESS: &[u32] = &[
    20,  // getpid
    64,  // getppid
    65,  // getpgrp
    96,  // getpriority
    132, // getpgid
    147, // getsid
    157, // sched_getscheduler
    158, // sched_yield
    159, // sched_get_priority_max
    160, // sched_get_priority_min
    199, // getuid32
    200, // getgid32
    201, // geteuid32
    202, // getegid32
    224, // gettid
];

/// The numbers of other architectures are unknown.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "arm",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64"
)))]
const HARMLESS: &[u32] = &[];

fn is_harmless(number: u32) -> bool {
    HARMLESS.contains(&number)
}
