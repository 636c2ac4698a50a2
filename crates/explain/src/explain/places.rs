//! The function in which a delay was, where the lines of the function tracer show it.

use super::{Explanation, Part};
use punctual_core::event::CpuContext;
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos};
use std::collections::BTreeMap;

/// Between a function and its caller in the name of a place.
const CALLED_BY: &str = " ‹ ";
/// The inverse of the share of a latency from which on a place is worth naming.
const WORTH: i64 = 20;

/// The function with the longest time between its lines and the next ones on the delayed CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongestPlace<'n> {
    /// The function, `‹` and its caller.
    pub function: &'n str,
    pub cpu: u16,
    /// Its first line.
    pub from: MonotonicNs,
    pub time: Nanos,
    /// The lines of it; one alone where that has nearly all of its time.
    pub lines: u64,
    /// Whether interrupts were disabled at these lines and the next ones, or enabled; `None`: not
    /// known.
    pub irqs_off: Option<bool>,
    /// Whether a reschedule was requested at one line, and at the next; `None`: not known.
    pub requested: Option<[bool; 2]>,
}

impl LongestPlace<'_> {
    fn join_with(self, other: Self) -> Self {
        LongestPlace {
            time: self.time + other.time,
            lines: self.lines + other.lines,
            irqs_off: self.irqs_off.filter(|_| self.irqs_off == other.irqs_off),
            ..self
        }
    }
}

/// Where most of a delay was; `None` where no function is recorded, or none had a twentieth.
pub fn longest_place<'n>(
    explanation: &Explanation,
    names: &'n Names,
    events: &[Event],
) -> Option<LongestPlace<'n>> {
    let interval = explanation.interval;
    let longest: Option<&Part> = explanation.parts.iter().max_by_key(|part| part.duration());
    let cpu = longest.and_then(|part| part.cpu).unwrap_or(interval.cpu);
    let is_relevant = |event: &&Event| event.cpu == cpu && event.at <= interval.woke;
    let mut before: Option<(&Event, CpuContext, &'n str)> = None;
    // Of each function: all of its time, and the longest.
    let mut found: BTreeMap<&str, [LongestPlace<'n>; 2]> = BTreeMap::new();
    for event in events.iter().filter(is_relevant) {
        let context = match event.what {
            EventKind::Context { context, site, .. } => Some((context, site)),
            _ => None,
        };
        if let Some((first, at_first, function)) = before {
            let (from, to) = (first.at.max(interval.due), event.at);
            let off = |context: CpuContext| context.irqs_off.map(|off| off || context.hardirq);
            let irqs_off = off(at_first);
            let irqs_off = irqs_off.filter(|_| context.and_then(|of| off(of.0)) == irqs_off);
            let requested = |of: CpuContext| of.irqs_off.map(|_| of.need_resched);
            let requested = requested(at_first).zip(context.and_then(|of| requested(of.0)));
            let requested = requested.map(|(first, next)| [first, next]);
            let (time, lines) = (to - from, 1);
            let place = LongestPlace { function, cpu, from, time, lines, irqs_off, requested };
            if time > Nanos::ZERO && !matches!(event.what, EventKind::Lost { .. }) {
                let add = |[all, longest]: &mut [LongestPlace<'n>; 2]| {
                    *all = all.join_with(place);
                    *longest = if time > longest.time { place } else { *longest };
                };
                found.entry(function).and_modify(add).or_insert([place; 2]);
            }
        }
        before = context.and_then(|(context, site)| {
            let name = names.symbols.get(&site).filter(|name| name.contains(CALLED_BY))?;
            Some((event, context, name.as_str()))
        });
    }
    let [all, longest] = found.into_values().max_by_key(|[all, _]| all.time)?;
    let found = if longest.time.ns() / 9 >= all.time.ns() / 10 { longest } else { all };
    (found.time.ns().saturating_mul(WORTH) > explanation.latency().ns()).then_some(found)
}
