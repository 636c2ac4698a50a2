//! The current cycle of a thread, from its value in the kernel.

use crate::wire::layout::{self as wire, Cycle as Wire};
use punctual_core::MonotonicNs;
use punctual_core::cycle::{OpenCycle, WaitingCall};
use punctual_sys::clock;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Decodes the value of a thread at `now`; `None` if it is neither in a wait nor in a cycle after
/// one.
pub(super) fn decode_open_cycle(value: &[u8], now: MonotonicNs) -> Option<OpenCycle> {
    let u32_at =
        |at: u64| Some(u64::from(u32::from_ne_bytes(*value.get(at as usize..)?.first_chunk()?)));
    let u64_at = |at: u64| Some(u64::from_ne_bytes(*value.get(at as usize..)?.first_chunk()?));
    let instant = |ns: u64| Some(MonotonicNs(i64::try_from(ns).ok().filter(|ns| *ns > 0)?));
    let cycle = Wire::read(value.get(wire::ATTACHED_CYCLE as usize..)?.first_chunk()?);
    let (phase, stage) = (u32_at(wire::ATTACHED_PHASE)?, u32_at(wire::ATTACHED_STAGE)?);
    let (release, returned) = match (phase, stage) {
        // Woken, but not yet in the sums.
        (wire::PHASE_WAITING, 1..) => {
            let at = instant(u64_at(wire::ATTACHED_POSTPONED)?)?;
            let due = instant(u64_at(wire::ATTACHED_POSTPONED + 8)?).filter(|due| *due < at);
            let has_returned = stage >= wire::RETURN_POSTPONED;
            let returned = instant(u64_at(wire::ATTACHED_RETURNED)?).filter(|_| has_returned);
            (Some(due.unwrap_or(at)), returned)
        }
        // The end of its sleep has passed without a wake-up.
        (wire::PHASE_WAITING, _) => {
            (instant(u64_at(wire::ATTACHED_ASKED)?).filter(|due| *due < now), None)
        }
        (wire::PHASE_WOKEN, 0) => (Some(instant(cycle.release)?), None),
        (wire::PHASE_OPEN, 0) => (Some(instant(cycle.release)?), instant(cycle.returned)),
        _ => return None,
    };
    let is_awake = u32_at(wire::ATTACHED_STATE)? != wire::STATE_ASLEEP;
    let is_again = u32_at(wire::ATTACHED_CALL)? == u64::from(cycle.call) + 1;
    let is_postponed = stage == wire::ENTRY_POSTPONED;
    let until = if is_postponed { wire::ATTACHED_AGAIN } else { wire::ATTACHED_ENTERED };
    let until = instant(u64_at(until)?);
    let until = until.filter(|_| returned.is_some() && is_awake && is_again);
    let call = WaitingCall {
        number: cycle.call,
        operation: cycle.operation,
        argument: cycle.argument,
        place: 0,
    };
    let (entered, elsewhere) = (instant(cycle.entered)?, cycle.elsewhere);
    Some(OpenCycle { call, entered, release, returned, until, elsewhere })
}

/// Reads until when a thread asked to sleep, where the value says no more than where that stands in
/// the thread's memory, and puts it in the value.
pub(super) fn read_sleep_end(value: &mut [u8], tid: u32) {
    let at = |place: u64| Some(u64::from_ne_bytes(*value.get(place as usize..)?.first_chunk()?));
    let Some(asks) = at(wire::ATTACHED_ASKS).filter(|asks| *asks != 0) else { return };
    let cycle = value.get(wire::ATTACHED_CYCLE as usize..).and_then(<[u8]>::first_chunk);
    let Some(cycle) = cycle.map(Wire::read) else { return };
    let mut time = [0; 16];
    let memory = File::open(format!("/proc/{tid}/mem"));
    if memory.and_then(|memory| memory.read_exact_at(&mut time, asks)).is_err() {
        return;
    }
    let word = |at: usize| time[at..].first_chunk().map_or(0, |word| i64::from_ne_bytes(*word));
    let ns = word(0).saturating_mul(1_000_000_000).saturating_add(word(8));
    let end = end_of_sleep(&cycle, ns, |clock| {
        clock::read(clock).saturating_sub(clock::read(libc::CLOCK_MONOTONIC))
    });
    let place = value.get_mut(wire::ATTACHED_ASKED as usize..).and_then(<[u8]>::first_chunk_mut);
    if let (Some(end), Some(place)) = (end, place) {
        *place = end.to_ne_bytes();
    }
}

/// The end of a sleep on CLOCK_MONOTONIC; `ahead`: by how much another clock is ahead of it. As in
/// bpf/attach.bpf.c (`base_of`).
fn end_of_sleep(cycle: &Wire, ns: i64, ahead: impl Fn(libc::clockid_t) -> i64) -> Option<u64> {
    let is_absolute = cycle.operation & 1 != 0;
    let clock = match cycle.argument as libc::clockid_t {
        _ if !is_absolute => return cycle.entered.checked_add(u64::try_from(ns).ok()?),
        libc::CLOCK_MONOTONIC => return u64::try_from(ns).ok(),
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_ALARM => libc::CLOCK_REALTIME,
        libc::CLOCK_BOOTTIME | libc::CLOCK_BOOTTIME_ALARM => libc::CLOCK_BOOTTIME,
        libc::CLOCK_TAI => libc::CLOCK_TAI,
        _ => return None,
    };
    u64::try_from(ns.saturating_sub(ahead(clock))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: MonotonicNs = MonotonicNs(900);

    /// A thread that entered its wait at 100; it may be woken at 210 by a timer due at 200, and
    /// return at 250.
    fn value(phase: u64, stage: u64, asked: u64) -> Vec<u8> {
        let mut value = vec![0; wire::ATTACHED_ASKED as usize + 8];
        let mut put = |at: u64, bytes: &[u8]| {
            value[at as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        let mut cycle = [0; Wire::SIZE];
        let written =
            Wire { release: 150, entered: 100, returned: 170, call: 230, ..Wire::read(&cycle) };
        written.write(&mut cycle);
        put(wire::ATTACHED_CYCLE, &cycle);
        put(wire::ATTACHED_PHASE, &(phase as u32).to_ne_bytes());
        put(wire::ATTACHED_STAGE, &(stage as u32).to_ne_bytes());
        put(wire::ATTACHED_POSTPONED, &210u64.to_ne_bytes());
        put(wire::ATTACHED_POSTPONED + 8, &200u64.to_ne_bytes());
        put(wire::ATTACHED_RETURNED, &250u64.to_ne_bytes());
        put(wire::ATTACHED_AGAIN, &260u64.to_ne_bytes());
        put(wire::ATTACHED_ASKED, &asked.to_ne_bytes());
        value
    }

    #[test]
    fn open_cycles_are_decoded_in_every_phase() {
        for (phase, stage, asked, release, returned) in [
            (wire::PHASE_WAITING, 0, 0, None, None),
            (wire::PHASE_WAITING, 0, 1_000, None, None),
            (wire::PHASE_WAITING, 0, 300, Some(300), None),
            (wire::PHASE_WAITING, 1, 0, Some(200), None),
            (wire::PHASE_WAITING, 3, 0, Some(200), Some(250)),
            (wire::PHASE_WAITING, 4, 0, Some(200), Some(250)),
            (wire::PHASE_WOKEN, 0, 0, Some(150), None),
            (wire::PHASE_OPEN, 0, 0, Some(150), Some(170)),
        ] {
            let open = decode_open_cycle(&value(phase, stage, asked), NOW).expect("it is known");
            let of = |at: Option<MonotonicNs>| at.map(MonotonicNs::ns);
            assert_eq!(
                (of(open.release), of(open.returned)),
                (release, returned),
                "{phase} {stage}"
            );
            assert_eq!((open.entered, open.call.number), (MonotonicNs(100), 230));
        }
        // In the same call again it may be about to sleep, as the end of its cycle, or asleep
        // already.
        let mut again = value(wire::PHASE_OPEN, 0, 0);
        again[wire::ATTACHED_CALL as usize..][..4].copy_from_slice(&231u32.to_ne_bytes());
        again[wire::ATTACHED_ENTERED as usize..][..8].copy_from_slice(&800u64.to_ne_bytes());
        let until = |value: &[u8]| decode_open_cycle(value, NOW).expect("it is open").until;
        assert_eq!(until(&again), Some(MonotonicNs(800)));
        let mut postponed = value(wire::PHASE_WAITING, wire::ENTRY_POSTPONED, 0);
        postponed[wire::ATTACHED_CALL as usize..][..4].copy_from_slice(&231u32.to_ne_bytes());
        assert_eq!(until(&postponed), Some(MonotonicNs(260)));
        again[wire::ATTACHED_STATE as usize] = wire::STATE_ASLEEP as u8;
        assert_eq!(until(&again), None, "for another file");
        assert_eq!(until(&value(wire::PHASE_OPEN, 0, 0)), None);
        assert_eq!(decode_open_cycle(&value(0, 0, 0), NOW), None, "no wait was seen");
        assert_eq!(decode_open_cycle(&[0; 64], NOW), None, "it is cut off");
    }

    #[test]
    fn the_end_of_a_sleep_is_read_from_the_memory_of_its_thread() {
        let until: [i64; 2] = [3, 700];
        let mut value = value(wire::PHASE_WAITING, 0, 0);
        value.resize(value.len() + 8, 0);
        let mut put = |at: u64, bytes: &[u8]| {
            value[at as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        let mut cycle = [0; Wire::SIZE];
        let written = Wire { entered: 100, operation: 1, argument: 1, ..Wire::read(&cycle) };
        written.write(&mut cycle);
        put(wire::ATTACHED_CYCLE, &cycle);
        put(wire::ATTACHED_ASKS, &(until.as_ptr() as u64).to_ne_bytes());
        let now = MonotonicNs(4_000_000_000);
        assert_eq!(decode_open_cycle(&value, now).expect("it waits").release, None);
        read_sleep_end(&mut value, std::process::id());
        assert_eq!(
            decode_open_cycle(&value, now).unwrap().release,
            Some(MonotonicNs(3_000_000_700))
        );
        let end = |operation, clock: libc::clockid_t| {
            let of = Wire { operation, argument: clock as u64, ..written };
            end_of_sleep(&of, 900, |_| 250)
        };
        assert_eq!(
            (end(0, libc::CLOCK_REALTIME), end(1, libc::CLOCK_REALTIME)),
            (Some(1_000), Some(650))
        );
        assert_eq!(
            (end(1, libc::CLOCK_TAI), end(1, libc::CLOCK_PROCESS_CPUTIME_ID)),
            (Some(650), None)
        );
    }
}
