//! Where the time of a late sample went: disjoint parts that add up to its latency, each with the events that prove it.
//!
//! The instants between `due` and `woke` are cut wherever something that matters changes: what the thread did, who had its CPU, which
//! interrupt was served there. Each piece has one [`Cause`]; what no event proves is [`Cause::Unknown`], never spread over the others.
//! The rules stand in `classify`; the events that a piece rests on in `evidence`.

mod classify;
mod evidence;
mod scene;
#[cfg(test)]
mod tests;

use crate::gaps::Gaps;
use crate::threads::{Coverage, Interrupt};
use punctual_core::{Event, MonotonicNs, Nanos, Tid};
use scene::Scene;

/// A sample that came late, or any interval that took long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// The thread that waited.
    pub tid: Tid,
    /// The CPU on which it was seen at the end; [`Event::NO_CPU`] where that is not known.
    pub cpu: u16,
    /// When it should have come, or began.
    pub due: MonotonicNs,
    /// When it came.
    pub woke: MonotonicNs,
    /// What it waited for.
    pub kind: Kind,
}

/// What the beginning of an interval is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A timer was programmed to wake the thread at `due`: until somebody woke it, the timer's interrupt was late.
    Timer,
    /// The thread passed a point at `due`: it may wait for whatever it likes.
    Interval,
}

/// What took the time of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The timer's interrupt had not come, although a task ran that could have been interrupted: interrupts were off, or the hardware was late.
    TimerLate {
        /// Who ran.
        running: Tid,
        /// In which system call, where that is known.
        syscall: Option<u32>,
    },
    /// An interrupt or a softirq was served on the thread's CPU.
    Interrupt(Interrupt),
    /// The CPU was idle and had to wake up.
    IdleExit {
        /// From which state, where that is known.
        state: Option<u32>,
    },
    /// It was decided to wake the thread, and it was not yet on a runqueue.
    Waking,
    /// It was ready, of higher priority than who ran, and was not switched to: preemption was off, or the kernel is not preemptible there.
    NotSwitched {
        /// Who went on running.
        running: Tid,
        /// In which system call, where that is known.
        syscall: Option<u32>,
    },
    /// It was ready, and a task of higher priority ran.
    Preempted {
        /// Which.
        by: Tid,
        /// Its priority, as the kernel's `prio`.
        prio: i16,
    },
    /// It was ready, and the scheduler chose a task of lower priority: real-time throttling, a cgroup's quota, or the server that keeps time for others.
    Throttled {
        /// Who was chosen instead.
        running: Tid,
    },
    /// It was ready, and a task of the same rank, or of unknown rank, ran.
    Runqueue {
        /// Which.
        behind: Tid,
    },
    /// It was being moved to another CPU.
    Migration {
        /// The task that moved it.
        by: Tid,
    },
    /// It waited for a lock.
    Lock {
        /// Who let it go on, where that was seen: the holder, or the last of several.
        released_by: Option<Tid>,
        /// Whether the lock is one inside the kernel.
        kernel: bool,
    },
    /// It waited for a block device.
    Io {
        /// Which.
        device: u32,
    },
    /// It waited for a page.
    PageFault,
    /// It reclaimed memory itself.
    Reclaim,
    /// It waited for something of its own choice, that was not recorded.
    Sleeping,
    /// It ran itself.
    Itself {
        /// In which system call, where that is known.
        syscall: Option<u32>,
    },
    /// No event tells.
    Unknown,
}

/// One piece of a latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What took the time.
    pub cause: Cause,
    /// Its beginning.
    pub from: MonotonicNs,
    /// Its end.
    pub to: MonotonicNs,
    /// The CPU that it concerns, where it concerns one.
    pub cpu: Option<u16>,
    /// The events that prove it, as places in the events given, ascending. Empty for [`Cause::Unknown`] alone.
    pub evidence: Vec<usize>,
}

impl Part {
    /// How long it took.
    pub fn span(&self) -> Nanos {
        self.to - self.from
    }
}

/// Where the time went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// Of what.
    pub late: Late,
    /// One after the other, without holes, from `due` to `woke`; none where the sample was not late.
    pub parts: Vec<Part>,
    /// For a wait for a lock: who was waited for, then who that one waited for, and so on.
    pub chain: Vec<Tid>,
    /// Events that are missing within the interval.
    pub lost: u64,
    /// What of this rests on an incomplete record; empty where nothing does.
    pub doubts: Vec<Doubt>,
}

/// Why an explanation may be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Events are missing within the interval.
    Lost,
    /// Events contradict each other.
    Contradiction,
    /// The record begins after the sample was due.
    BeginsLate,
    /// More than a twentieth of the latency is unknown.
    MuchUnknown,
}

impl Explanation {
    /// How late it was; 0 where it was not.
    pub fn latency(&self) -> Nanos {
        Nanos((self.late.woke - self.late.due).ns().max(0))
    }

    /// The time by cause, the longest first.
    pub fn totals(&self) -> Vec<(Cause, Nanos)> {
        let mut totals: std::collections::BTreeMap<Cause, Nanos> = Default::default();
        self.parts.iter().for_each(|part| *totals.entry(part.cause).or_default() += part.span());
        let mut totals: Vec<(Cause, Nanos)> = totals.into_iter().collect();
        totals.sort_by_key(|(cause, span)| (std::cmp::Reverse(*span), *cause));
        totals
    }
}

/// Explains one sample from the events around it, in the order of time: those from a little before `due` (so that it is known who ran then)
/// to `woke`. `coverage` says what was recorded; its instants are not looked at.
pub fn explain(late: Late, events: &[Event], coverage: &Coverage, gaps: &Gaps) -> Explanation {
    let scene = Scene::of(late, events, coverage, gaps);
    let mut parts: Vec<Part> = Vec::new();
    for (from, to) in scene.pieces() {
        let (cause, cpu) = classify::cause(&scene, from);
        let evidence = if cause == Cause::Unknown { Vec::new() } else { evidence::of(&scene, cause, cpu, from, to) };
        // What no event proves is not known.
        let (cause, cpu) = if evidence.is_empty() { (Cause::Unknown, None) } else { (cause, cpu) };
        match parts.last_mut().filter(|last| last.cause == cause && last.cpu == cpu) {
            Some(last) => {
                last.to = to;
                last.evidence.extend(evidence);
                last.evidence.sort_unstable();
                last.evidence.dedup();
            }
            None => parts.push(Part { cause, from, to, cpu, evidence }),
        }
    }
    let mut explanation = Explanation { late, parts, chain: scene.chain(), lost: scene.lost(), doubts: Vec::new() };
    explanation.doubts = doubts(&scene, &explanation);
    explanation
}

fn doubts(scene: &Scene, explanation: &Explanation) -> Vec<Doubt> {
    let unknown = explanation.parts.iter().filter(|part| part.cause == Cause::Unknown).map(Part::span);
    let unknown = unknown.fold(Nanos::ZERO, |sum, span| sum + span);
    let all = [
        (explanation.lost > 0, Doubt::Lost),
        (scene.contradictions > 0, Doubt::Contradiction),
        (scene.begins_late(), Doubt::BeginsLate),
        (unknown * 20 > explanation.latency(), Doubt::MuchUnknown),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, doubt)| doubt).collect()
}
