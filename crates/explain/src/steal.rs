//! Steal: intervals in which the hypervisor or the firmware had taken all CPUs.
//!
//! A machine that does not run records nothing, and neither does an idle one. Timers distinguish
//! them: on an idle CPU its timers expire, and a CPU with interrupts disabled delays only its own
//! timer. Only a machine that does not run delays those of several CPUs through the same silence
//! and serves them when it ends.

use punctual_core::{CpuSet, Event, EventKind, MonotonicNs, Nanos};

/// A shorter delay of a timer may be an exit from idle: the deepest idle states take some hundred
/// microseconds.
const OVERDUE: Nanos = Nanos::from_millis(1);
/// The minimum length of a hole.
pub const SHORTEST: Nanos = OVERDUE;
/// The number of events of a CPU after the silence that are searched for the delayed timers.
const NEARBY: usize = 32;
/// The same over all CPUs: the first CPU to return may be busy before the second one is back.
const SEARCHED: usize = 8_192;
/// A CPU that takes longer to return has other reasons.
const RETURN: Nanos = Nanos::from_millis(50);

/// An interval in which nothing ran, on any recorded CPU or on one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hole {
    /// The CPU that was taken; `None`: all.
    pub cpu: Option<u16>,
    /// When the first overdue timer was due, or the last event before, if one came between; the
    /// machine may have been taken slightly earlier.
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The timers delayed through it, as ascending indices of the given events.
    pub evidence: Vec<usize>,
}

/// The holes in the recording of several CPUs; `events` in order of time. A single CPU proves
/// nothing.
pub(crate) fn find_holes(events: &[Event]) -> Vec<Hole> {
    let mut holes = Vec::new();
    let mut last: Option<MonotonicNs> = None;
    for (place, event) in events.iter().enumerate().filter(|(_, event)| event.cpu != Event::NO_CPU)
    {
        if last.is_some_and(|last| event.at - last >= OVERDUE) {
            holes.extend(last.and_then(|last| find_hole(events, last, place)));
        }
        last = Some(event.at);
    }
    holes
}

/// The hole that ends with the event at `place`, if timers prove one.
fn find_hole(events: &[Event], silent_from: MonotonicNs, place: usize) -> Option<Hole> {
    let to = events.get(place)?.at;
    let (mut cpus, mut looked) = (CpuSet::new(), std::collections::HashMap::<u16, usize>::new());
    let (mut evidence, mut from) = (Vec::new(), to);
    for (later, event) in events.iter().enumerate().skip(place).take(SEARCHED) {
        *looked.entry(event.cpu).or_default() += 1;
        if event.at - to > RETURN {
            break;
        }
        let EventKind::HrtimerExpireEntry { expires: Some(expires), .. } = event.what else {
            continue;
        };
        if *looked.entry(event.cpu).or_default() <= NEARBY
            && expires + OVERDUE >= silent_from
            && to - expires >= OVERDUE
        {
            cpus.insert(usize::from(event.cpu));
            evidence.push(later);
            from = from.min(expires.max(silent_from));
        }
    }
    (cpus.len() >= 2).then_some(Hole { cpu: None, from, to, evidence })
}

/// A timer of a CPU that was delayed through a silence of that CPU, by at least 1 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedTimer {
    /// The CPU of the timer.
    pub cpu: u16,
    /// When the timer was due, or the last event before, if one came between.
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The index of the timer's expiry.
    pub place: usize,
}

impl DelayedTimer {
    /// Whether both CPUs were taken for the same reason: their timers were overdue at the same time
    /// and expired together, within half of their delay, as a hypervisor returns CPUs one by one. A
    /// single CPU may have interrupts disabled; two that return together were not running. The
    /// accounting has the same rule (docs/reference/account.md).
    pub(crate) fn has_common_cause(&self, other: &DelayedTimer) -> bool {
        let distance = Nanos((self.to - other.to).ns().abs());
        self.cpu != other.cpu
            && distance.ns() * 2 <= (self.to - self.from).min(other.to - other.from).ns()
    }
}

/// The state of a CPU while its events are read.
#[derive(Clone, Copy)]
struct Silence {
    last: MonotonicNs,
    /// The last silence without a delayed timer so far, and the number of events since.
    silence: Option<(MonotonicNs, MonotonicNs, usize)>,
}

/// The timers delayed through a silence of their CPU; `events` in order of time.
pub(crate) fn delayed_timers(events: &[Event]) -> Vec<DelayedTimer> {
    let mut cpus = std::collections::HashMap::<u16, Silence>::new();
    let mut waits = Vec::new();
    for (place, event) in events.iter().enumerate().filter(|(_, event)| event.cpu != Event::NO_CPU)
    {
        let cpu_silence =
            cpus.entry(event.cpu).or_insert(Silence { last: event.at, silence: None });
        cpu_silence.silence = match cpu_silence.silence {
            // A CPU with missing events was not silent.
            _ if matches!(event.what, EventKind::Lost { .. }) => None,
            _ if event.at - cpu_silence.last >= OVERDUE => Some((cpu_silence.last, event.at, 0)),
            Some((from, to, since)) if since < NEARBY && event.at - to <= RETURN => {
                Some((from, to, since + 1))
            }
            _ => None,
        };
        cpu_silence.last = event.at;
        let EventKind::HrtimerExpireEntry { expires: Some(expires), .. } = event.what else {
            continue;
        };
        if let Some((from, to, _)) = cpu_silence.silence
            && to - expires.max(from) >= OVERDUE
        {
            waits.push(DelayedTimer { cpu: event.cpu, from: expires.max(from), to, place });
            cpu_silence.silence = None;
        }
    }
    waits
}

/// The intervals in which one CPU was taken although others were not: a timer of another CPU was
/// overdue as well, and expired together with its own.
pub(crate) fn holes_of(cpu: u16, waits: &[DelayedTimer]) -> Vec<Hole> {
    let own_waits = waits.iter().filter(|wait| wait.cpu == cpu);
    let hole = |own: &DelayedTimer| {
        let other_wait = waits.iter().find(|other| own.has_common_cause(other))?;
        let evidence = vec![own.place.min(other_wait.place), own.place.max(other_wait.place)];
        Some(Hole { cpu: Some(cpu), from: own.from, to: own.to, evidence })
    };
    own_waits.filter_map(hole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testing::events;

    #[test]
    fn timers_of_two_cpus_that_wait_through_a_silence_prove_a_hole() {
        let events = events!(
            "0 cpu0 idle_enter; 10 cpu1 idle_enter
            20ms cpu0 hrtimer_entry 1 expires=1ms; 20.1ms cpu1 hrtimer_entry 1 expires=3ms
            21ms cpu0 idle_enter"
        );
        let hole = Hole {
            cpu: None,
            from: MonotonicNs(1_000_000),
            to: MonotonicNs(20_000_000),
            evidence: vec![2, 3],
        };
        assert_eq!(find_holes(&events), [hole]);
    }

    #[test]
    fn a_hole_is_found_although_one_cpu_resumes_long_before_the_other() {
        let busy = ["idle_enter"; 500].join("; +1us ");
        let events = events!(
            "0 cpu0 idle_enter; 10 cpu1 idle_enter; 20ms cpu0 hrtimer_entry 1 expires=1ms
            20_000_100 {busy}
            25ms cpu1 hrtimer_entry 1 expires=3ms"
        );
        assert_eq!(find_holes(&events).len(), 1);
    }

    #[test]
    fn a_timer_due_just_before_the_silence_counts_as_waiting() {
        let events = events!(
            "0 cpu0 idle_enter; 1.3ms cpu1 idle_enter
            20ms cpu0 hrtimer_entry 1 expires=1ms; 20.1ms cpu1 hrtimer_entry 1 expires=3ms"
        );
        let found = find_holes(&events);
        assert_eq!((found.len(), found[0].from), (1, MonotonicNs(1_300_000)));
    }

    #[test]
    fn two_cpus_that_resume_together_prove_a_hole_of_those_cpus() {
        // CPU 2 continues throughout, so the machine as a whole is never silent.
        let waits = |later: &str| {
            let busy = ["idle_enter"; 50].join("; +400us ");
            let mut events = events!(
                "0 cpu2 {busy}
                0 cpu0 idle_enter; 10 cpu1 idle_enter; 10ms cpu0 hrtimer_entry 1 expires=1ms
                {later}"
            );
            events.sort_by_key(|event| event.at);
            (find_holes(&events), delayed_timers(&events))
        };
        let (none, one) = waits("");
        assert_eq!((none, one.len(), holes_of(0, &one)), (vec![], 1, vec![]));
        let second = "11ms cpu1 hrtimer_entry 1 expires=2ms";
        let found = holes_of(0, &waits(second).1);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].cpu, found[0].from, found[0].to),
            (Some(0), MonotonicNs(1_000_000), MonotonicNs(10_000_000))
        );
        let (_, third) = waits(&format!("{second}; 19.9ms hrtimer_entry 1 expires=12ms"));
        assert_eq!(
            holes_of(0, &third).len(),
            1,
            "who comes back at another time says nothing of this one"
        );
    }

    #[test]
    fn one_silent_cpu_or_an_idle_machine_is_no_hole() {
        let one = events!(
            "0 cpu0 idle_enter; 10 cpu1 idle_enter
            20ms cpu0 hrtimer_entry 1 expires=1ms; 20.1ms cpu1 hrtimer_entry 1 expires=20.099ms"
        );
        assert_eq!(find_holes(&one), []);
        let other = events!(
            "0 cpu1 hrtimer_entry 1 expires=0; 0.9ms hrtimer_entry 1 expires=0.9ms
            1.8ms cpu0 hrtimer_entry 1 expires=10us"
        );
        assert_eq!(find_holes(&other), [], "the other CPU served its timers meanwhile");
        assert_eq!(find_holes(&[]), []);
    }
}
