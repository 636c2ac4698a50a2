//! Measures the delays of punctual itself, from round to round, and where they arose.

use punctual_bundle::evidence::ControllerEvidence;
use punctual_core::{MonotonicNs, Nanos};
use punctual_host::files::{Files, Root};
use punctual_plan::{Length, PhasePlan};
use punctual_sys::clock;

/// How much longer than planned rounds may take besides their own work.
const ROUND: Nanos = Nanos::from_millis(100);

/// The times of the controller thread so far.
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadTimes {
    pub now: MonotonicNs,
    /// Its CPU time: on a slow machine a round takes long by its own work.
    pub ran: Nanos,
    /// The time that it was ready and waited for a CPU, if the kernel counts it.
    pub waited: Option<Nanos>,
}

impl ThreadTimes {
    /// Those of the calling thread.
    pub fn read(files: &Root) -> ThreadTimes {
        let schedstat = files.read("/proc/thread-self/schedstat").unwrap_or_default();
        let waited = schedstat.split_ascii_whitespace().nth(1).and_then(|ns| ns.parse().ok());
        ThreadTimes {
            now: clock::monotonic_now(),
            ran: clock::thread_time(),
            waited: waited.map(Nanos),
        }
    }

    fn waited_since(&self, before: &ThreadTimes) -> Option<Nanos> {
        Some(self.waited? - before.waited?)
    }
}

/// The parts of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RoundPart {
    Samples,
    Companions,
    Checkpoint,
    View,
    Pause,
}

impl RoundPart {
    fn to_phrase(self) -> &'static str {
        match self {
            RoundPart::Samples => "while it read samples",
            RoundPart::Companions => "while it served recorders, metrics and loads",
            RoundPart::Checkpoint => "while it made a checkpoint",
            RoundPart::View => "while it drew the view",
            RoundPart::Pause => "in the pause between two rounds",
        }
    }
}

/// The rounds so far.
#[derive(Default)]
pub(super) struct Punctuality {
    tick: Nanos,
    began: Option<MonotonicNs>,
    /// The begin of the last round.
    last: Option<ThreadTimes>,
    /// The current part of the round, and its begin.
    part: Option<(RoundPart, ThreadTimes)>,
    /// The part with the longest delay of this round.
    slowest: Option<(Nanos, RoundPart)>,
    /// The time that system calls of this round were blocked.
    blocked: Nanos,
    evidence: ControllerEvidence,
}

impl Punctuality {
    /// Expects rounds at this distance in a phase.
    pub fn new(tick: Nanos, phase: &PhasePlan) -> Punctuality {
        let lengths = phase.measures.iter().map(|measure| match measure.length {
            Length::Duration(span) => Some(span),
            Length::Samples(_) | Length::UntilInterrupted => None,
        });
        let all_lengths: Option<Vec<Nanos>> = lengths.collect();
        let asked_span = all_lengths.and_then(|all| all.into_iter().chain(phase.duration).max());
        let evidence = ControllerEvidence { asked: asked_span, ..ControllerEvidence::default() };
        Punctuality { tick, evidence, ..Punctuality::default() }
    }

    /// Notes the begin of a round.
    pub fn begin_round(&mut self, times: ThreadTimes) {
        self.begin_part(RoundPart::Samples, times);
        self.evidence.lasted = times.now - *self.began.get_or_insert(times.now);
        let (slowest, blocked) = (self.slowest.take(), std::mem::take(&mut self.blocked));
        let Some(last) = self.last.replace(times) else { return };
        let delay = times.now - last.now - self.tick - (times.ran - last.ran);
        if delay <= ROUND {
            return;
        }
        if delay > self.evidence.longest {
            self.evidence.longest = delay;
            self.evidence.place = slowest.map(|(_, part)| part.to_phrase().to_owned());
        }
        self.evidence.delayed += delay;
        self.evidence.blocked += blocked.min(delay);
        if let Some(waited) = times.waited_since(&last) {
            *self.evidence.waited.get_or_insert_default() += waited.min(delay);
        }
    }

    /// Notes the begin of a part of the round, and with it the end of the part before.
    pub(super) fn begin_part(&mut self, part: RoundPart, times: ThreadTimes) {
        let Some((before, since)) = self.part.replace((part, times)) else { return };
        let off_cpu = times.now - since.now - (times.ran - since.ran);
        let late = if before == RoundPart::Pause { off_cpu - self.tick } else { off_cpu };
        if self.slowest.is_none_or(|(longest, _)| late > longest) {
            self.slowest = Some((late, before));
        }
        // Where the kernel does not count run delay, a blocked call looks like a wait for a CPU.
        if before != RoundPart::Pause
            && let Some(waited) = times.waited_since(&since)
        {
            self.blocked += (off_cpu - waited).max(Nanos::ZERO);
        }
    }

    pub(crate) fn to_evidence(&self) -> ControllerEvidence {
        self.evidence.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(at: i64, ran: i64, waited: Option<i64>) -> ThreadTimes {
        let ms = Nanos::from_millis;
        ThreadTimes { now: MonotonicNs(ms(at).ns()), ran: ms(ran), waited: waited.map(ms) }
    }

    fn punctuality() -> Punctuality {
        Punctuality { tick: Nanos::from_millis(100), ..Punctuality::default() }
    }

    #[test]
    fn late_controller_rounds_are_delays_but_long_ones_are_not() {
        let mut own = punctuality();
        for at in [0, 100, 290, 390, 2_890, 2_990, 4_000] {
            own.begin_round(times(at, 0, None));
        }
        // The thread has the CPU for all of this round.
        own.begin_round(times(6_000, 2_000, None));
        let ControllerEvidence { lasted, delayed, longest, waited, blocked, .. } =
            own.to_evidence();
        let spans = [lasted, delayed, longest, blocked].map(|span| span.ns() / 1_000_000);
        assert_eq!((spans, waited), ([6_000, 2_400 + 910, 2_400, 0], None));
    }

    #[test]
    fn a_delay_is_a_wait_for_a_cpu_a_blocked_call_or_of_unknown_origin() {
        let mut own = punctuality();
        own.begin_round(times(0, 0, Some(0)));
        own.begin_part(RoundPart::View, times(5, 5, Some(0)));
        // 8 s in a call, during which it ran for 5 ms more and waited for 5 ms.
        own.begin_part(RoundPart::Pause, times(8_015, 10, Some(5)));
        own.begin_round(times(8_115, 10, Some(5)));
        let place = own.to_evidence().place;
        // 2 s on a run queue, after the pause.
        own.begin_part(RoundPart::Pause, times(8_116, 11, Some(5)));
        own.begin_round(times(10_216, 11, Some(2_005)));
        // 1 s of sleep more than requested: it was stopped.
        own.begin_part(RoundPart::Pause, times(10_217, 12, Some(2_005)));
        own.begin_round(times(11_317, 12, Some(2_005)));
        let ControllerEvidence { delayed, waited, blocked, .. } = own.to_evidence();
        let spans = [delayed, waited.expect("counted"), blocked].map(|span| span.ns() / 1_000_000);
        assert_eq!(spans, [8_005 + 2_000 + 1_000, 2_005, 8_000]);
        assert_eq!(place.as_deref(), Some("while it drew the view"));
        assert_eq!(own.to_evidence().place, place, "that of the longest");
    }

    #[test]
    fn a_long_sleep_is_a_delay_in_the_pause() {
        let mut own = punctuality();
        own.begin_round(times(0, 0, None));
        own.begin_part(RoundPart::Pause, times(20, 20, None));
        own.begin_round(times(3_120, 20, None));
        let evidence = own.to_evidence();
        assert_eq!(evidence.place.as_deref(), Some("in the pause between two rounds"));
        assert_eq!((evidence.waited, evidence.blocked), (None, Nanos::ZERO));
    }
}
