//! Converts from the clocks of timers to the clock of the trace.
//!
//! `hrtimer_expire_entry` states the instant `now` of the timer's own clock, some hundreds of
//! nanoseconds before its own instant on the trace's clock. The smallest difference within a second
//! or two is the offset between both clocks. Timers may be on several clocks (CLOCK_REALTIME is
//! decades ahead of CLOCK_MONOTONIC), each with its own offset.

use crate::ClockRelation;
use punctual_core::MonotonicNs;
use punctual_core::event::{Event, EventKind};
use std::collections::VecDeque;

/// Converts the instants of timers.
#[derive(Debug, Default)]
pub(crate) struct Bridge {
    /// The trace is on CLOCK_MONOTONIC.
    stated: bool,
    bases: Vec<Base>,
    /// Events held from the first timer start until the first expiry.
    held: VecDeque<Event>,
    holding: bool,
    timers: bool,
    /// Timer starts with an expiry that cannot be converted.
    pub(crate) unconverted: u64,
}

/// A clock of timers.
#[derive(Clone, Copy, Debug)]
struct Base {
    /// The minima of the current and the previous period, as clocks drift.
    current: i64,
    before: i64,
    since: i64,
}

impl Base {
    fn least_distance(&self) -> i64 {
        self.current.min(self.before)
    }
}

/// Clocks that differ by less are the same.
const SAME: i64 = 1_000_000_000;
/// The time that a minimum counts.
const PERIOD: i64 = 1_000_000_000;
/// The maximum number of timer clocks: the kernel has four, and they may be set.
const MOST_BASES: usize = 16;
/// The maximum number of events held until the first expiry, of 48 bytes each.
const MOST_HELD: usize = 1 << 17;
/// The maximum time from reading an expiry to its event, on usable machines: a smaller difference
/// is not an offset of clocks. Text has only microseconds.
const ONE_CLOCK: i64 = 10_000;
/// Ten years: no timer is set for later.
const FAR: i64 = 10 * 365 * 86_400 * 1_000_000_000;

impl Bridge {
    /// `distance` is stated by the file: trace clock minus CLOCK_MONOTONIC.
    pub(crate) fn new(distance: Option<i64>) -> Bridge {
        let base = |distance| Base { current: distance, before: distance, since: i64::MAX };
        Bridge {
            stated: distance == Some(0),
            bases: distance.map(base).into_iter().collect(),
            ..Bridge::default()
        }
    }

    /// Takes the events of `from` in order, and appends those that are ready.
    pub(crate) fn pass_events(&mut self, from: &mut VecDeque<Event>, out: &mut VecDeque<Event>) {
        for event in from.drain(..) {
            self.on_event(event, out);
        }
    }

    pub(crate) fn flush(&mut self, out: &mut VecDeque<Event>) {
        self.release_held(out);
    }

    fn on_event(&mut self, mut event: Event, out: &mut VecDeque<Event>) {
        match event.what {
            EventKind::HrtimerStart { .. } => {
                self.timers = true;
                self.holding |= self.bases.is_empty();
            }
            EventKind::HrtimerExpireEntry { now: Some(now), .. } => {
                self.timers = true;
                let at = event.at.0;
                self.learn_base(at, at.saturating_sub(now.0));
                self.release_held(out);
                if let EventKind::HrtimerExpireEntry { now, expires, .. } = &mut event.what {
                    *now = now.and_then(|now| self.to_trace_clock(now, at));
                    *expires = expires.and_then(|expires| self.to_trace_clock(expires, at));
                }
            }
            _ => {}
        }
        if self.holding {
            self.held.push_back(event);
            if self.held.len() >= MOST_HELD {
                self.release_held(out);
            }
        } else {
            self.emit_event(event, out);
        }
    }

    fn release_held(&mut self, out: &mut VecDeque<Event>) {
        self.holding = false;
        for event in std::mem::take(&mut self.held) {
            self.emit_event(event, out);
        }
    }

    fn emit_event(&mut self, mut event: Event, out: &mut VecDeque<Event>) {
        if let EventKind::HrtimerStart { expires, .. } = &mut event.what {
            match self.to_trace_clock(*expires, event.at.0) {
                Some(converted) => *expires = converted,
                None => {
                    self.unconverted += 1;
                    return;
                }
            }
        }
        out.push_back(event);
    }

    /// Learns from an expiry that was read `distance` before its event.
    fn learn_base(&mut self, at: i64, distance: i64) {
        let full = self.bases.len() >= MOST_BASES;
        let known_base =
            self.bases.iter_mut().find(|base| is_near(base.least_distance(), distance));
        match known_base {
            // This offset is stated by the file.
            Some(base) if base.since == i64::MAX => {}
            Some(base) if at.saturating_sub(base.since) > PERIOD => {
                *base = Base { current: distance, before: base.current, since: at };
            }
            Some(base) => base.current = base.current.min(distance),
            None if !full => {
                self.bases.push(Base { current: distance, before: distance, since: at });
            }
            None => {}
        }
    }

    /// Converts an instant of a timer's clock to the clock of the trace, by the timer clock that
    /// gives the nearest result.
    fn to_trace_clock(&self, instant: MonotonicNs, at: i64) -> Option<MonotonicNs> {
        let on = |base: &Base| {
            let distance = match base.least_distance() {
                distance if (0..ONE_CLOCK).contains(&distance) => 0,
                distance => distance,
            };
            instant.0.saturating_add(distance)
        };
        let converted = self.bases.iter().map(on).min_by_key(|converted| converted.abs_diff(at))?;
        (converted.abs_diff(at) < FAR as u64).then_some(MonotonicNs(converted))
    }

    /// The relation of the trace's clock to that of timers.
    pub(crate) fn clock_relation(&self) -> ClockRelation {
        let together = |base: &Base| (0..ONE_CLOCK).contains(&base.least_distance());
        match () {
            () if self.stated => ClockRelation::Monotonic,
            () if self.bases.iter().any(together) => ClockRelation::Monotonic,
            () if !self.bases.is_empty() => ClockRelation::Bridged,
            () => ClockRelation::Unknown,
        }
    }

    /// Whether the trace holds timers.
    pub(crate) fn has_timers(&self) -> bool {
        self.timers
    }
}

fn is_near(a: i64, b: i64) -> bool {
    a.abs_diff(b) < SAME as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testing::events;

    fn expiries(bridge: &mut Bridge, events: &[Event]) -> Vec<i64> {
        let mut out = VecDeque::new();
        bridge.pass_events(&mut events.iter().copied().collect(), &mut out);
        bridge.flush(&mut out);
        assert!(out.iter().zip(out.iter().skip(1)).all(|(a, b)| a.at <= b.at));
        let instants = out.iter().filter_map(|event| match event.what {
            EventKind::HrtimerStart { expires, .. } => Some(expires.0),
            EventKind::HrtimerExpireEntry { now, .. } => now.map(|now| now.0),
            _ => None,
        });
        instants.collect()
    }

    const OFF: i64 = 5_000_000_000;
    const WALL: i64 = 1_700_000_000_000_000_000;

    #[test]
    fn a_timer_expiry_reveals_the_clock_offset() {
        let mut bridge = Bridge::new(None);
        let events = events!(
            "1ms hrtimer_start 1 expires={}; 1.1ms hrtimer_start 1 expires={}
            2_000_700 hrtimer_entry 1 now={}; 3_000_900 hrtimer_entry 1 now={}
            4ms hrtimer_start 1 expires={}; 4ms hrtimer_start 1 expires={}
            5_000_600 hrtimer_entry 1 now={}",
            2_000_000 - OFF,
            3_000_000 + WALL,
            2_000_200 - OFF,
            3_000_100 + WALL,
            5_000_000 - OFF,
            5_000_000 + WALL,
            5_000_100 - OFF
        );
        let found = expiries(&mut bridge, &events);
        // The error is the shortest time from an expiry to its event so far. A timer of
        // CLOCK_REALTIME that started before any expiry is dropped.
        let expected = [2_000_500, 2_000_700, 3_000_900, 5_000_500, 5_000_800, 5_000_600];
        assert_eq!(found, expected);
        assert_eq!((bridge.clock_relation(), bridge.unconverted), (ClockRelation::Bridged, 1));
    }

    #[test]
    fn monotonic_timestamps_are_not_converted() {
        let events = events!(
            "1000 hrtimer_start 1 expires=2000; 2900 hrtimer_entry 1 now=2100
            3000 hrtimer_start 1 expires=9000"
        );
        let unchanged = [2_000, 2_100, 9_000];
        for stated in [Some(0), None] {
            let mut bridge = Bridge::new(stated);
            assert_eq!(expiries(&mut bridge, &events), unchanged);
            assert_eq!(bridge.clock_relation(), ClockRelation::Monotonic);
        }
    }

    #[test]
    fn without_a_timer_expiry_other_clocks_are_not_converted() {
        let mut bridge = Bridge::new(None);
        let events =
            events!("1000 hrtimer_start 1 expires=2000; 3000 hrtimer_start 1 expires=9000");
        assert!(expiries(&mut bridge, &events).is_empty());
        assert_eq!((bridge.clock_relation(), bridge.unconverted), (ClockRelation::Unknown, 2));
    }

    #[test]
    fn the_clock_offset_follows_a_drift() {
        let mut bridge = Bridge::new(None);
        // 50 µs per second.
        let events: Vec<Event> = (1..100i64)
            .flat_map(|n| {
                let (at, drift) = (n * 100_000_000, n * 5_000);
                let now = at - OFF - drift;
                events!(
                    "{at} exec; +400 hrtimer_entry 1 now={now}; +100 hrtimer_start 1 expires={}",
                    now + 1_000
                )
            })
            .collect();
        let found = expiries(&mut bridge, &events);
        let last = found[found.len() - 1] - (99 * 100_000_000 + 1_000);
        assert!((-110_000..=500).contains(&last), "{last}");
    }
}
