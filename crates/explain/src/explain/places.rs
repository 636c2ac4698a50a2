//! The function in which a delay was, where the lines of the function tracer show it.

use super::{Explanation, Part};
use punctual_core::event::CpuContext;
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos};

/// Between a function and its caller in the name of a place.
const CALLED_BY: &str = " ‹ ";
/// The inverse of the share of a latency from which on a place is worth naming.
const WORTH: i64 = 20;

/// The longest time between two lines on the delayed CPU, the first of which names a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongestPlace<'n> {
    /// The function, `‹` and its caller.
    pub function: &'n str,
    pub cpu: u16,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// Whether interrupts were disabled at both lines, or enabled; `None`: not known.
    pub irqs_off: Option<bool>,
}

impl LongestPlace<'_> {
    pub fn span(&self) -> Nanos {
        self.to - self.from
    }
}

/// Where most of a delay was; `None` where no function is recorded, or none had a twentieth.
pub fn longest_place<'n>(
    explanation: &Explanation,
    names: &'n Names,
    events: &[Event],
) -> Option<LongestPlace<'n>> {
    let interval = explanation.interval;
    let longest: Option<&Part> = explanation.parts.iter().max_by_key(|part| part.span());
    let cpu = longest.and_then(|part| part.cpu).unwrap_or(interval.cpu);
    let here = |event: &&Event| event.cpu == cpu && event.at <= interval.woke;
    let mut before: Option<(&Event, CpuContext, &'n str)> = None;
    let mut found: Option<LongestPlace<'n>> = None;
    for event in events.iter().filter(here) {
        let context = match event.what {
            EventKind::Context { context, site, .. } => Some((context, site)),
            _ => None,
        };
        if let Some((first, at_first, function)) = before {
            let (from, to) = (first.at.max(interval.due), event.at);
            let off = |context: CpuContext| context.irqs_off.map(|off| off || context.hardirq);
            let irqs_off = off(at_first);
            let irqs_off = irqs_off.filter(|_| context.and_then(|of| off(of.0)) == irqs_off);
            if to > from && found.is_none_or(|found| to - from > found.span()) {
                found = Some(LongestPlace { function, cpu, from, to, irqs_off });
            }
        }
        before = context.and_then(|(context, site)| {
            let name = names.symbols.get(&site).filter(|name| name.contains(CALLED_BY))?;
            Some((event, context, name.as_str()))
        });
    }
    found.filter(|found| found.span().ns().saturating_mul(WORTH) > explanation.latency().ns())
}
