//! A segment of a thread's time: the state of the thread, and the pieces without a relevant change.

use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use super::{StartKind, slack};
use crate::threads::{Interrupt, ThreadState};
use punctual_core::{Event, MonotonicNs, Tid};
use std::rc::Rc;

/// A segment of a thread's time, with the threads that wait for it.
pub struct Segment<'s> {
    pub timeline: &'s ThreadTimeline,
    pub kind: StartKind,
    /// The CPU on which its end was seen; [`Event::NO_CPU`] if unknown.
    pub cpu: u16,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The threads that wait for this one, beginning with that of the sample.
    pub waiting: Vec<Tid>,
    /// The priority of the thread of the sample.
    pub urgency: Option<i16>,
}

impl Segment<'_> {
    /// The state of the thread. If it is unknown until a wake-up, the thread was asleep.
    pub(crate) fn thread_state(&self, context: &TraceContext, at: MonotonicNs) -> ThreadState {
        match self.timeline.span_at(at).map(|span| span.doing) {
            _ if self.is_unseen(at) && self.is_woken_later(context, at) => ThreadState::Sleeping,
            Some(doing) => doing,
            None => ThreadState::Unknown,
        }
    }

    /// Whether no event shows the thread's state.
    pub(crate) fn is_unseen(&self, at: MonotonicNs) -> bool {
        self.timeline.span_at(at).is_none_or(|span| span.doing == ThreadState::Unknown)
    }

    /// The CPU of the wake-up; without one, the CPU where the thread was seen.
    pub(crate) fn waking_cpu(&self, at: MonotonicNs) -> u16 {
        let waking = self.timeline.wake_after(at).filter(|_| self.kind == StartKind::Timer);
        waking.map_or(self.cpu, |wake| wake.cpu)
    }

    /// Whether the thread's next event is its wake-up, with no event missing until then.
    fn is_woken_later(&self, context: &TraceContext, at: MonotonicNs) -> bool {
        let timeline = self.timeline;
        let Some(next) = timeline.wake_after(at).map(|wake| wake.at) else { return false };
        let event = |place: &u32| &context.events[*place as usize];
        let first = timeline.runs.partition_point(|place| event(place).at < at);
        let is_seen_before = timeline.runs.get(first).is_some_and(|place| event(place).at < next);
        !is_seen_before && !context.lanes.gaps.iter().any(|gap| gap.to >= at && gap.from <= next)
    }

    /// The thread of the softirq in which the timer expired that woke this one; none if the softirq
    /// followed an interrupt, as the waker is then the task that both interrupted.
    pub(crate) fn softirq_thread(
        &self,
        context: &TraceContext,
        at: MonotonicNs,
    ) -> Option<Rc<ThreadTimeline>> {
        let wake = self.timeline.wake_after(at).filter(|_| self.kind == StartKind::Timer)?;
        let is_soft = |what: &Interrupt| matches!(what, Interrupt::Soft(_));
        if !wake.interrupt.as_ref().is_some_and(is_soft)
            || wake.waker == Tid::IDLE
            || wake.waker == self.timeline.tid
        {
            return None;
        }
        let since = context.on_cpu(wake.cpu, wake.at)?.from;
        let served = context.served_interrupts(wake.cpu);
        let first = served.partition_point(|(from, ..)| *from < since);
        let mut served_since = served[first..].iter().take_while(|(from, ..)| *from <= wake.at);
        if served_since.all(|(_, _, what)| is_soft(what)) {
            context.thread_timeline(wake.waker)
        } else {
            None
        }
    }

    /// The pieces between the segment's ends without a change, and without gaps.
    pub(crate) fn constant_pieces(
        &self,
        context: &TraceContext,
    ) -> Vec<(MonotonicNs, MonotonicNs)> {
        let Segment { timeline, from, to, .. } = self;
        let (from, to) = (*from, *to);
        let mut cuts = vec![from, to];
        let ends = |span: &(MonotonicNs, MonotonicNs)| *span;
        collect_ends(&timeline.spans, from, to, |span| (span.from, span.to), &mut cuts);
        collect_ends(&timeline.reclaims, from, to, ends, &mut cuts);
        collect_ends(&timeline.held, from, to, |(from, to, _)| (*from, *to), &mut cuts);
        collect_ends(&timeline.faults, from, to, ends, &mut cuts);
        collect_ends(&timeline.switches, from, to, ends, &mut cuts);
        collect_ends(&context.holes, from, to, |hole| (hole.from, hole.to), &mut cuts);
        if let Some(lane) = context.lanes.threads.get(&timeline.tid) {
            collect_ends(&lane.syscalls, from, to, |span| (span.from, span.to), &mut cuts);
        }
        // These may overlap each other.
        cuts.extend(timeline.locks.iter().flat_map(|wait| [wait.from, wait.to]));
        cuts.extend(context.lanes.gaps.iter().flat_map(|gap| [gap.from, gap.to]));
        cuts.extend(timeline.changes_of_priority());
        cuts.extend(timeline.wakes.iter().map(|wake| wake.at));
        let slack =
            slack::find_slack(context, timeline, from).filter(|_| self.kind == StartKind::Timer);
        cuts.extend(slack.iter().flat_map(|slack| [slack.from, slack.to]));
        // While it waits for a CPU, so does the timer.
        let softirq = self.softirq_thread(context, from);
        cuts.extend(softirq.iter().flat_map(|thread| &thread.spans).map(|span| span.from));
        cuts.retain(|at| (from..=to).contains(at));
        cuts.sort_unstable();
        cuts.dedup();
        // Between these the thread's state is constant: the changes of its CPU matter.
        let mut all_cuts = cuts.clone();
        for pair in cuts.windows(2) {
            for cpu in self.relevant_cpus(context, pair[0]) {
                of_cpu(context, cpu, pair[0], pair[1], &mut all_cuts);
            }
        }
        all_cuts.sort_unstable();
        all_cuts.dedup();
        all_cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// The CPUs relevant to the thread's state at an instant.
    fn relevant_cpus(&self, context: &TraceContext, at: MonotonicNs) -> impl Iterator<Item = u16> {
        let doing = self.thread_state(context, at);
        let (one, other) = match doing {
            ThreadState::Running { cpu } | ThreadState::Ready { cpu: Some(cpu), .. } => (cpu, None),
            ThreadState::Waking => (self.waking_cpu(at), self.timeline.enqueued_after(at)),
            _ => (self.waking_cpu(at), None),
        };
        [Some(one), other].into_iter().flatten().filter(|cpu| *cpu != Event::NO_CPU)
    }
}

fn of_cpu(
    context: &TraceContext,
    cpu: u16,
    from: MonotonicNs,
    to: MonotonicNs,
    cuts: &mut Vec<MonotonicNs>,
) {
    let Some(lane) = context.lanes.cpus.get(&cpu) else { return };
    let first = cuts.len();
    collect_ends(&lane.ran, from, to, |span| (span.from, span.to), cuts);
    collect_ends(&lane.idle, from, to, |span| (span.from, span.to), cuts);
    collect_ends(context.served_interrupts(cpu), from, to, |(from, to, _)| (*from, *to), cuts);
    let mut place = 0;
    cuts.retain(|at| {
        place += 1;
        place <= first || (from..=to).contains(at)
    });
}

/// The ends of those spans that share an instant with `from..=to`; the spans are in order of time
/// and do not overlap.
fn collect_ends<T>(
    spans: &[T],
    from: MonotonicNs,
    to: MonotonicNs,
    ends: impl Fn(&T) -> (MonotonicNs, MonotonicNs),
    cuts: &mut Vec<MonotonicNs>,
) {
    let first = spans.partition_point(|span| ends(span).1 < from);
    let end = spans.partition_point(|span| ends(span).0 <= to);
    let shared = spans.get(first..end).unwrap_or_default();
    cuts.extend(shared.iter().map(&ends).flat_map(|(from, to)| [from, to]));
}
