//! The cycle that a thread is in, from its value in the kernel.

use crate::wire::layout::{self as wire, Cycle as Wire};
use punctual_core::MonotonicNs;
use punctual_core::cycle::{OpenCycle, WaitingCall};

/// Reads the value of a thread at `now`; `None` where it is no wait, and no cycle after one.
pub(super) fn decode(value: &[u8], now: MonotonicNs) -> Option<OpenCycle> {
    let u32_at =
        |at: u64| Some(u64::from(u32::from_ne_bytes(*value.get(at as usize..)?.first_chunk()?)));
    let u64_at = |at: u64| Some(u64::from_ne_bytes(*value.get(at as usize..)?.first_chunk()?));
    let instant = |ns: u64| Some(MonotonicNs(i64::try_from(ns).ok().filter(|ns| *ns > 0)?));
    let cycle = Wire::read(value.get(wire::ATTACHED_CYCLE as usize..)?.first_chunk()?);
    let (phase, stage) = (u32_at(wire::ATTACHED_PHASE)?, u32_at(wire::ATTACHED_STAGE)?);
    let (release, returned) = match (phase, stage) {
        // Woken, and the sums know nothing of it yet.
        (wire::PHASE_WAITING, 1..) => {
            let at = instant(u64_at(wire::ATTACHED_POSTPONED)?)?;
            let due = instant(u64_at(wire::ATTACHED_POSTPONED + 8)?).filter(|due| *due < at);
            let has_returned = stage >= wire::RETURN_POSTPONED;
            let returned = instant(u64_at(wire::ATTACHED_RETURNED)?).filter(|_| has_returned);
            (Some(due.unwrap_or(at)), returned)
        }
        // The end of its sleep has passed, and it was not woken.
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
    let call =
        WaitingCall { number: cycle.call, operation: cycle.operation, argument: cycle.argument };
    Some(OpenCycle { call, entered: instant(cycle.entered)?, release, returned, until })
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
    fn each_phase_shows_whether_a_cycle_is_open_and_since_when() {
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
            let open = decode(&value(phase, stage, asked), NOW).expect("it is known");
            let of = |at: Option<MonotonicNs>| at.map(MonotonicNs::ns);
            assert_eq!(
                (of(open.release), of(open.returned)),
                (release, returned),
                "{phase} {stage}"
            );
            assert_eq!((open.entered, open.call.number), (MonotonicNs(100), 230));
        }
        // In the same call again it may sleep there, as the end of its cycle, or do so already.
        let mut again = value(wire::PHASE_OPEN, 0, 0);
        again[wire::ATTACHED_CALL as usize..][..4].copy_from_slice(&231u32.to_ne_bytes());
        again[wire::ATTACHED_ENTERED as usize..][..8].copy_from_slice(&800u64.to_ne_bytes());
        let until = |value: &[u8]| decode(value, NOW).expect("it is open").until;
        assert_eq!(until(&again), Some(MonotonicNs(800)));
        let mut postponed = value(wire::PHASE_WAITING, wire::ENTRY_POSTPONED, 0);
        postponed[wire::ATTACHED_CALL as usize..][..4].copy_from_slice(&231u32.to_ne_bytes());
        assert_eq!(until(&postponed), Some(MonotonicNs(260)));
        again[wire::ATTACHED_STATE as usize] = wire::STATE_ASLEEP as u8;
        assert_eq!(until(&again), None, "for another file");
        assert_eq!(until(&value(wire::PHASE_OPEN, 0, 0)), None);
        assert_eq!(decode(&value(0, 0, 0), NOW), None, "no wait was seen");
        assert_eq!(decode(&[0; 64], NOW), None, "it is cut off");
    }
}
