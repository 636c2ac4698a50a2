//! Events as pictures show them: spans, instants and values, each in its lane. Exports and the HTML
//! report draw the same marks, so that a thing has one name and one place in every format.
//!
//! Scheduling of a CPU is no mark: it is drawn from its own events. Everything else is here. A span
//! is emitted when it ends, so marks come in the order of their ends. If its beginning or its end
//! is missing (lost, or outside of the recording), the mark shows it; it is never guessed.

mod describe;
mod label;
mod lane;
mod open;
#[cfg(test)]
mod tests;

pub use lane::{Lane, SLOTS};
use open::OpenSpan;
use punctual_core::event::FunctionId;
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos, Tid};
use std::borrow::Cow;
use std::collections::HashMap;

/// The extent of a mark.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Extent {
    /// From its beginning to its end.
    Span(MonotonicNs, MonotonicNs),
    /// Begun, and not ended by the end of the recording.
    Begun(MonotonicNs),
    Instant(MonotonicNs),
    /// The value from this instant on.
    Value(MonotonicNs, i64),
}

/// A detail of a mark.
#[derive(Clone, PartialEq, Debug)]
pub enum Detail<'a> {
    Number(i64),
    Address(u64),
    Span(Nanos),
    /// A text, from punctual or from outside.
    Text(Cow<'a, str>),
}

pub type Details<'a> = Vec<(&'static str, Detail<'a>)>;

/// A shape with its lane, name and details.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark<'a> {
    pub lane: Lane,
    /// Its name; may hold any characters.
    pub name: Cow<'a, str>,
    pub shape: Extent,
    /// Further details.
    pub details: Details<'a>,
    /// For samples: the steps of the wake-up.
    pub wake: Option<Wake>,
    pub function: Option<FunctionId>,
}

pub struct Marks<'a> {
    names: &'a Names,
    open: HashMap<Lane, Vec<OpenSpan<'a>>>,
    requests: HashMap<(u32, u64), OpenSpan<'a>>,
    last_end: HashMap<Lane, Vec<MonotonicNs>>,
    wakes: Wakes,
}

impl<'a> Marks<'a> {
    pub fn new(names: &'a Names) -> Marks<'a> {
        Marks {
            names,
            open: HashMap::new(),
            requests: HashMap::new(),
            last_end: HashMap::new(),
            wakes: Wakes::default(),
        }
    }

    /// Takes the next event, in time order; appends its marks to `out`.
    pub fn describe_event(&mut self, event: &Event, out: &mut Vec<Mark<'a>>) {
        self.wakes.on_event(event);
        describe::describe_event(self, event, out);
    }

    /// Appends the marks that are still open at the end of the recording.
    pub fn finish(mut self, out: &mut Vec<Mark<'a>>) {
        let mut lanes: Vec<(Lane, Vec<OpenSpan<'a>>)> = self.open.drain().collect();
        lanes.sort_by_key(|(lane, _)| *lane);
        for (lane, spans) in lanes {
            out.extend(spans.into_iter().map(|open| open.into_open_mark(lane)));
        }
        let mut requests: Vec<((u32, u64), OpenSpan<'a>)> = self.requests.drain().collect();
        requests.sort_by_key(|(key, open)| (open.since, *key));
        for ((device, _), open) in requests {
            let lane = self.reserve_slot(
                |slot| Lane::Requests(device, slot),
                open.since,
                MonotonicNs(i64::MAX),
            );
            out.push(open.into_open_mark(lane));
        }
    }
}

impl<'a> Mark<'a> {
    pub(crate) fn new(lane: Lane, name: impl Into<Cow<'a, str>>, shape: Extent) -> Mark<'a> {
        Mark { lane, name: name.into(), shape, details: Vec::new(), wake: None, function: None }
    }

    pub(crate) fn with_details(mut self, details: Details<'a>) -> Mark<'a> {
        self.details.extend(details);
        self
    }
}

impl Extent {
    pub fn from(self) -> MonotonicNs {
        match self {
            Extent::Span(at, _)
            | Extent::Begun(at)
            | Extent::Instant(at)
            | Extent::Value(at, _) => at,
        }
    }
}

/// The steps from a timer's expiry to a running thread, if they were recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wake {
    /// Start of the handler of the timer that woke it: when, on which CPU.
    pub expired: Option<(MonotonicNs, u16)>,
    /// It was woken: when, on which CPU, and which thread ran there.
    pub woken: Option<(MonotonicNs, u16, Tid)>,
    /// It got a CPU: when, and which.
    pub ran: Option<(MonotonicNs, u16)>,
}

/// The latest wake-up of every thread.
#[derive(Default)]
pub struct Wakes {
    expiring: HashMap<u16, MonotonicNs>,
    latest: HashMap<Tid, Wake>,
}

impl Wakes {
    pub fn on_event(&mut self, event: &Event) {
        match event.what {
            EventKind::HrtimerExpireEntry { .. } => {
                self.expiring.insert(event.cpu, event.at);
            }
            EventKind::HrtimerExpireExit { .. } => {
                self.expiring.remove(&event.cpu);
            }
            EventKind::Waking { task, .. } => {
                let expired = self.expiring.get(&event.cpu).map(|at| (*at, event.cpu));
                let woken = Some((event.at, event.cpu, event.tid));
                self.latest.insert(task, Wake { expired, woken, ran: None });
            }
            EventKind::Switch { next, .. } if next != Tid::IDLE => {
                // The first run after the wake-up counts: later ones end preemptions.
                let ran = &mut self.latest.entry(next).or_default().ran;
                ran.get_or_insert((event.at, event.cpu));
            }
            EventKind::Exit => {
                self.latest.remove(&event.tid);
            }
            EventKind::Lost { .. } => self.expiring.clear(),
            _ => {}
        }
    }

    /// How the thread came to run; `None` if that was before `due`: then it never slept.
    pub(crate) fn wake_of(&self, tid: Tid, due: MonotonicNs) -> Option<Wake> {
        let wake = self.latest.get(&tid)?;
        let last = wake.ran.map(|(at, _)| at).or(wake.woken.map(|(at, ..)| at))?;
        (last >= due).then_some(*wake)
    }
}
