//! Stretches in which the whole machine stood still: a hypervisor had taken its CPUs, or firmware had.
//!
//! A machine that does not run records nothing, and an idle one neither. What tells them apart are timers: an idle CPU serves its timers,
//! a CPU with interrupts off lets its own timer wait, and only a machine that does not run lets those of several CPUs wait through the
//! same silence and serves them when it ends.

use punctual_core::{CpuSet, Event, MonotonicNs, Nanos, What};

/// A timer that waited less may have waited for an idle CPU to wake up: the deepest idle states take some hundred microseconds.
const LATE: Nanos = Nanos::from_millis(1);
/// No shorter hole is found.
pub const SHORTEST: Nanos = LATE;
/// So many events of a CPU after the silence are looked through for the timers that waited.
const NEARBY: usize = 32;
/// So many events of all CPUs are: the first that comes back may do much before the second does.
const LOOKED: usize = 8_192;
/// A CPU that takes longer to come back has reasons of its own.
const RETURN: Nanos = Nanos::from_millis(50);

/// A stretch in which nothing ran on any of the recorded CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hole {
    /// When the first of the timers was due that nobody served, or the last event before, if one came between; the machine may have stood still from a
    /// little before on.
    pub from: MonotonicNs,
    /// The first event afterwards.
    pub to: MonotonicNs,
    /// The timers that waited through it, as places in the events given, ascending.
    pub evidence: Vec<usize>,
}

/// The holes in what was recorded of several CPUs; `events` in the order of time. Of one CPU nothing can be said, and nothing is.
pub fn holes(events: &[Event]) -> Vec<Hole> {
    let mut holes = Vec::new();
    let mut last: Option<MonotonicNs> = None;
    for (place, event) in events.iter().enumerate().filter(|(_, event)| event.cpu != Event::NO_CPU) {
        if last.is_some_and(|last| event.at - last >= LATE) {
            holes.extend(last.and_then(|last| hole(events, last, place)));
        }
        last = Some(event.at);
    }
    holes
}

/// The hole that ends with the event at `place`, if timers prove one.
fn hole(events: &[Event], silent_from: MonotonicNs, place: usize) -> Option<Hole> {
    let to = events.get(place)?.at;
    let (mut cpus, mut looked) = (CpuSet::new(), std::collections::HashMap::<u16, usize>::new());
    let (mut evidence, mut from) = (Vec::new(), to);
    for (later, event) in events.iter().enumerate().skip(place).take(LOOKED) {
        *looked.entry(event.cpu).or_default() += 1;
        if event.at - to > RETURN {
            break;
        }
        let What::HrtimerExpireEntry { expires: Some(expires), .. } = event.what else { continue };
        if *looked.entry(event.cpu).or_default() <= NEARBY && expires + LATE >= silent_from && to - expires >= LATE {
            cpus.insert(usize::from(event.cpu));
            evidence.push(later);
            from = from.min(expires.max(silent_from));
        }
    }
    (cpus.len() >= 2).then_some(Hole { from, to, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Tid;

    fn expiry(at: i64, cpu: u16, expires: i64) -> Event {
        let what =
            What::HrtimerExpireEntry { timer: 1, now: Some(MonotonicNs(at)), expires: Some(MonotonicNs(expires)) };
        Event { at: MonotonicNs(at), cpu, tid: Tid(0), what }
    }

    fn idle(at: i64, cpu: u16) -> Event {
        Event { at: MonotonicNs(at), cpu, tid: Tid(0), what: What::IdleEnter { state: 1 } }
    }

    #[test]
    fn timers_of_two_cpus_that_wait_through_a_silence_prove_a_hole() {
        let events = [
            idle(0, 0),
            idle(10, 1),
            expiry(20_000_000, 0, 1_000_000),
            expiry(20_100_000, 1, 3_000_000),
            idle(21_000_000, 0),
        ];
        let hole = Hole { from: MonotonicNs(1_000_000), to: MonotonicNs(20_000_000), evidence: vec![2, 3] };
        assert_eq!(holes(&events), [hole]);
    }

    #[test]
    fn the_first_cpu_that_comes_back_may_do_much_before_the_second() {
        let busy = (0..500).map(|k| idle(20_000_100 + k * 1_000, 0));
        let mut events = vec![idle(0, 0), idle(10, 1), expiry(20_000_000, 0, 1_000_000)];
        events.extend(busy);
        events.push(expiry(25_000_000, 1, 3_000_000));
        assert_eq!(holes(&events).len(), 1);
    }

    #[test]
    fn a_timer_that_was_due_just_before_the_silence_waited_through_it_too() {
        let events =
            [idle(0, 0), idle(1_300_000, 1), expiry(20_000_000, 0, 1_000_000), expiry(20_100_000, 1, 3_000_000)];
        let found = holes(&events);
        assert_eq!((found.len(), found[0].from), (1, MonotonicNs(1_300_000)));
    }

    #[test]
    fn one_cpu_or_an_idle_machine_proves_nothing() {
        let one = [idle(0, 0), idle(10, 1), expiry(20_000_000, 0, 1_000_000), expiry(20_100_000, 1, 20_099_000)];
        assert_eq!(holes(&one), []);
        let other = [expiry(0, 1, 0), expiry(900_000, 1, 900_000), expiry(1_800_000, 0, 10_000)];
        assert_eq!(holes(&other), [], "the other CPU served its timers meanwhile");
        assert_eq!(holes(&[]), []);
    }
}
