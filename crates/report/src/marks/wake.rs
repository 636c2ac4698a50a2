//! How a thread came to run: which timer expired, who woke it, when it got a CPU.

use punctual_core::{Event, EventKind, MonotonicNs, Tid};
use std::collections::HashMap;

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
    pub fn see(&mut self, event: &Event) {
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
    pub fn of(&self, tid: Tid, due: MonotonicNs) -> Option<Wake> {
        let wake = self.latest.get(&tid)?;
        let last = wake.ran.map(|(at, _)| at).or(wake.woken.map(|(at, ..)| at))?;
        (last >= due).then_some(*wake)
    }
}
