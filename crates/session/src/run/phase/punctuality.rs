//! Measures the delays of punctual itself, from round to round.

use punctual_bundle::evidence::ControllerEvidence;
use punctual_core::{MonotonicNs, Nanos};
use punctual_plan::{Length, PhasePlan};

/// How much longer than planned rounds may take besides their own work.
const ROUND: Nanos = Nanos::from_millis(100);

/// The rounds so far.
#[derive(Default)]
pub(super) struct Punctuality {
    tick: Nanos,
    began: Option<MonotonicNs>,
    /// The last round, with the thread's CPU time then.
    last: Option<(MonotonicNs, Nanos)>,
    evidence: ControllerEvidence,
}

impl Punctuality {
    /// Expects rounds at this distance in a phase.
    pub fn new(tick: Nanos, phase: &PhasePlan) -> Punctuality {
        let lengths = phase.measures.iter().map(|measure| match measure.length {
            Length::Duration(span) => Some(span),
            Length::Samples(_) | Length::UntilInterrupted => None,
        });
        let all: Option<Vec<Nanos>> = lengths.collect();
        let asked = all.and_then(|all| all.into_iter().chain(phase.duration).max());
        let evidence = ControllerEvidence { asked, ..ControllerEvidence::default() };
        Punctuality { tick, evidence, ..Punctuality::default() }
    }

    /// Notes a round at `now`, with the CPU time `ran` so far: on a slow machine a round takes long
    /// by its own work.
    pub fn note(&mut self, now: MonotonicNs, ran: Nanos) {
        self.evidence.lasted = now - *self.began.get_or_insert(now);
        let Some((last, before)) = self.last.replace((now, ran)) else { return };
        let delay = now - last - self.tick - (ran - before);
        if delay > ROUND {
            self.evidence.delayed += delay;
            self.evidence.longest = self.evidence.longest.max(delay);
        }
    }

    pub fn evidence(&self) -> ControllerEvidence {
        self.evidence.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_controller_rounds_are_delays_but_long_ones_are_not() {
        let mut own = Punctuality { tick: Nanos::from_millis(100), ..Punctuality::default() };
        for at in [0, 100, 290, 390, 2_890, 2_990, 4_000] {
            own.note(MonotonicNs(at * 1_000_000), Nanos::ZERO);
        }
        // The thread has the CPU for all of this round.
        own.note(MonotonicNs(6_000_000_000), Nanos::from_secs(2));
        let ControllerEvidence { lasted, delayed, longest, .. } = own.evidence();
        let all = [lasted, delayed, longest].map(|span| span.ns() / 1_000_000);
        assert_eq!(all, [6_000, 2_400 + 910, 2_400]);
    }
}
