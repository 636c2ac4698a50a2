//! How the time of an ordinary cycle is divided, by the instants that its record has: as
//! bpf/attach.bpf.c (`work_out_all`) does where the cycle turned out to be none.

use crate::wire::layout::{self as wire, Cycle as Wire, Ordinary};
use punctual_core::MAX_RT_PRIO;

/// As in bpf/account.h.
const IDLE: u64 = 1;
const SOFT: u64 = 2;
const HARD: u64 = 3;
const REAL_TIME: i32 = MAX_RT_PRIO as i32;
/// The name of the idle task.
const SWAPPER: &[u8; 7] = b"swapper";

type AttachSums = [u64; wire::CYCLE_PARTS as usize];

fn add(parts: &mut AttachSums, part: u64, ns: u64) {
    parts[part as usize] = parts[part as usize].wrapping_add(ns);
}

/// The record that the whole division would have made.
pub(super) fn divide_ordinary(of: &Ordinary) -> Wire {
    let mut cycle = Wire::read(&[0; Wire::SIZE]);
    cycle.release = of.expires.min(of.woken);
    (cycle.entered, cycle.woken, cycle.returned) = (of.entered, of.woken, of.returned);
    (cycle.again, cycle.argument, cycle.timer) = (of.again, of.argument, of.timer);
    (cycle.written, cycle.calls, cycle.faults) = (of.written, of.calls, of.faults);
    (cycle.call, cycle.operation, cycle.by) = (of.call, of.operation, of.by as u8);
    (cycle.within, cycle.waker, cycle.syscalls) = (of.within as u8, of.waker, 1);
    cycle.waker_comm = of.waker_comm;
    if of.waker == 0 {
        cycle.waker_comm = [0; 16];
        cycle.waker_comm[..SWAPPER.len()].copy_from_slice(SWAPPER);
    }
    cycle.wake = until_woken(of, cycle.release);
    // Who had the CPU until the thread was switched to.
    let (mut at, keeper) = ((of.woken, of.hard, of.soft), delay_part(of));
    let took =
        add_time(&mut at, (of.arrived, of.arrived_hard, of.arrived_soft), keeper, &mut cycle.wake);
    if keeper != wire::PART_IDLE_EXIT && took > 0 && of.before > 0 {
        (cycle.culprit, cycle.culprit_ns, cycle.culprit_comm) = (of.before, took, of.before_comm);
        cycle.culprit_behind = if keeper == wire::PART_NOT_SWITCHED { 0 } else { took };
    }
    at.0 = of.arrived;
    let returned = (of.returned, of.returned_hard, of.returned_soft);
    add_time(&mut at, returned, wire::PART_SWITCH, &mut cycle.wake);
    let next_wait = (of.again, of.again_hard, of.again_soft);
    add_time(&mut at, next_wait, wire::PART_ITSELF, &mut cycle.run);
    cycle
}

/// Until it was woken: what its own call took before it slept, the slack of its timer, and what the
/// timer's CPU did from then on.
fn until_woken(of: &Ordinary, release: u64) -> AttachSums {
    let mut parts = [0; wire::CYCLE_PARTS as usize];
    let entered = of.entered.min(of.woken);
    add(&mut parts, wire::PART_OVERRUN, entered.saturating_sub(release));
    let at = release.max(of.entered);
    add(&mut parts, wire::PART_KERNEL, of.slept.min(of.woken).saturating_sub(at));
    let mut begin = at.max(of.slept);
    if of.slack_end > begin && begin < of.woken {
        let end = of.slack_end.min(of.woken);
        add(&mut parts, wire::PART_SLACK, end - begin);
        begin = end;
    }
    if begin >= of.woken {
        return parts;
    }
    let (mut end, [before, doing_before, last, doing]) = (of.woken, of.changes);
    for (since, doing) in [(last, doing), (before, doing_before)] {
        let part = match doing {
            HARD => wire::PART_HARDIRQ,
            SOFT => wire::PART_SOFTIRQ,
            IDLE => wire::PART_IDLE_EXIT,
            _ => wire::PART_TIMER_LATE,
        };
        let at = since.max(begin);
        add(&mut parts, part, end.saturating_sub(at));
        end = end.min(at);
        if since <= begin {
            break;
        }
    }
    add(&mut parts, wire::PART_UNKNOWN, end.saturating_sub(begin));
    parts
}

/// Adds the time since `at` to the part, without interrupts and softirqs. How long that was.
fn add_time(
    at: &mut (u64, u64, u64),
    to: (u64, u64, u64),
    part: u64,
    parts: &mut AttachSums,
) -> u64 {
    let whole = to.0.saturating_sub(at.0);
    let hard = to.1.saturating_sub(at.1).min(whole);
    let soft = to.2.saturating_sub(at.2).min(whole - hard);
    add(parts, wire::PART_HARDIRQ, hard);
    add(parts, wire::PART_SOFTIRQ, soft);
    add(parts, part, whole - hard - soft);
    *at = (to.0.max(at.0), to.1, to.2);
    whole - hard - soft
}

fn delay_part(of: &Ordinary) -> u64 {
    if of.ran == 0 {
        wire::PART_IDLE_EXIT
    } else if of.ran_prio < of.prio && of.ran_prio < REAL_TIME {
        wire::PART_PREEMPTED
    } else if of.ran_prio > of.prio && of.prio < REAL_TIME {
        wire::PART_NOT_SWITCHED
    } else {
        wire::PART_RUNQUEUE
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Moments, read};
    use super::*;
    use crate::bpf::simulated;
    use punctual_core::MonotonicNs;
    use punctual_core::cycle::Cycle;
    use std::process::Command;

    /// Each line of the simulated kernel is an instant and a record that begins after it.
    fn cycle(line: &str) -> Option<Cycle> {
        let mut words = line.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap());
        let base = words.next().unwrap() as i64;
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let mut found = None;
        read(&bytes, &mut |cycle| found = Some(cycle), &mut Moments::default());
        let at = |instant: MonotonicNs| MonotonicNs(instant.ns() - base);
        found.map(|of| Cycle {
            release: at(of.release),
            entered: at(of.entered),
            woken: at(of.woken),
            returned: at(of.returned),
            again: at(of.again),
            ..of
        })
    }

    #[test]
    fn short_and_full_cycle_records_decode_to_the_same_cycle() {
        let Some((program, _place)) = simulated::compile_test("cycles") else { return };
        let out = Command::new(program).arg("pairs").output().expect("it was just compiled");
        let out = String::from_utf8(out.stdout).expect("numbers");
        let lines: Vec<&str> = out.lines().collect();
        let (pairs, rest) = lines.as_chunks::<2>();
        assert!(pairs.len() == 400 && rest.is_empty(), "{} lines", lines.len());
        let words = 3 + Ordinary::SIZE / 8;
        let short = pairs.iter().filter(|[short, _]| short.split(' ').count() == words).count();
        assert!(short >= 300, "{short} of {} are ordinary", pairs.len());
        for [short, full] in pairs {
            let (short, full) = (cycle(short).expect("a cycle"), cycle(full).expect("a cycle"));
            assert_eq!(short, full);
        }
    }
}
