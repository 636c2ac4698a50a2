//! Moments that a trace is about: its wake-ups, and what is known of moments that it points at
//! where no switches show who ran.

#[cfg(test)]
mod tests;

use crate::explain::{Cause, CpuMode, Explanation, LatencyInterval, Part, StartKind};
use crate::threads::{Interrupt, may_be_in_switch};
use punctual_core::event::{MomentSource, Noise, NoiseKind, TaskState, TraceMoment};
use punctual_core::{Event, EventKind, MAX_RT_PRIO, MonotonicNs, Names, Nanos, Tid};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Wake-ups that are kept: of real-time threads, and of others.
const KEPT_WAKEUPS: usize = 64;
/// Threads that are followed at once.
const THREADS: usize = 1 << 16;

/// Selects moments of a trace.
#[derive(Clone, Default, Debug)]
pub struct MomentFilter {
    /// Threads by their ids; `None`: all.
    pub threads: Option<Vec<Tid>>,
    /// Those that this interval touches.
    pub within: Option<(MonotonicNs, MonotonicNs)>,
    pub min_latency: Nanos,
}

impl MomentFilter {
    /// Whether a moment is asked for.
    pub fn is_wanted(&self, moment: &TraceMoment) -> bool {
        self.wants_thread(moment.tid)
            && moment.duration() >= self.min_latency
            && self.within.is_none_or(|(from, to)| moment.from <= to && moment.to >= from)
    }

    fn wants_thread(&self, tid: Tid) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&tid))
    }
}

/// A wake-up under way: since when, for which CPU, and the priority of the thread.
#[derive(Clone, Copy)]
struct Woken {
    at: MonotonicNs,
    cpu: u16,
    prio: i16,
}

/// The longest wake-ups of a trace, in one pass: from the decision to wake a thread to the switch
/// to it.
#[derive(Default)]
pub struct WakeUps {
    filter: MomentFilter,
    woken: HashMap<Tid, Woken>,
    running: BTreeMap<u16, Tid>,
    /// The task that the last event of a CPU, a switch, left.
    leaving: BTreeMap<u16, Tid>,
    /// Of real-time threads, and of others.
    worst: [Vec<TraceMoment>; 2],
    /// All that were seen, of those that are wanted.
    pub count: u64,
    now: Option<MonotonicNs>,
}

impl WakeUps {
    pub fn new(filter: MomentFilter) -> WakeUps {
        WakeUps { filter, ..WakeUps::default() }
    }

    /// Takes the next event in the order of time.
    pub fn push(&mut self, event: &Event) {
        self.now = Some(self.now.map_or(event.at, |now| now.max(event.at)));
        match event.what {
            EventKind::Lost { .. } => {
                self.woken.clear();
                self.running.clear();
            }
            EventKind::Waking { task, prio, target }
            | EventKind::Wakeup { task, prio, target, new: false } => {
                self.note_running(event);
                self.on_wakeup(event.at, task, prio, target);
            }
            EventKind::Switch { prev_state, next, next_prio, .. } => {
                self.note_running(event);
                self.running.insert(event.cpu, next);
                self.leaving.insert(event.cpu, event.tid);
                self.end_wakeup(next, event, Some(next_prio));
                if prev_state == TaskState::Dead {
                    self.woken.remove(&event.tid);
                }
            }
            _ if event.what.group().is_some() => self.note_running(event),
            _ => {}
        }
    }

    /// An event of a thread shows that it has a CPU, where the kernel hides the switch to it.
    fn note_running(&mut self, event: &Event) {
        let leaves = self.leaving.remove(&event.cpu) == Some(event.tid);
        if leaves && may_be_in_switch(&event.what) {
            self.leaving.insert(event.cpu, event.tid);
            return;
        }
        if event.cpu != Event::NO_CPU && self.running.get(&event.cpu) != Some(&event.tid) {
            self.running.insert(event.cpu, event.tid);
            self.end_wakeup(event.tid, event, None);
        }
    }

    fn on_wakeup(&mut self, at: MonotonicNs, task: Tid, prio: i16, cpu: u16) {
        // One that runs goes on without a switch.
        let runs = self.running.values().any(|running| *running == task);
        if task == Tid::IDLE || runs || !self.filter.wants_thread(task) {
            return;
        }
        if let Some(woken) = self.woken.get_mut(&task) {
            woken.cpu = cpu;
        } else if self.woken.len() < THREADS {
            self.woken.insert(task, Woken { at, cpu, prio });
        }
    }

    fn end_wakeup(&mut self, tid: Tid, event: &Event, prio: Option<i16>) {
        let Some(woken) = self.woken.remove(&tid) else { return };
        self.add(
            tid,
            Woken { prio: prio.unwrap_or(woken.prio), cpu: event.cpu, ..woken },
            event.at,
            false,
        );
    }

    fn add(&mut self, tid: Tid, woken: Woken, to: MonotonicNs, at_least: bool) {
        let took = to - woken.at;
        let moment = TraceMoment::from_end(MomentSource::WakeUp, to, took, tid);
        let moment = TraceMoment { cpu: Some(woken.cpu), at_least, ..moment };
        if !self.filter.is_wanted(&moment) {
            return;
        }
        self.count += 1;
        let worst = &mut self.worst[usize::from(woken.prio >= MAX_RT_PRIO)];
        let place = worst.partition_point(|other| other.duration() >= took);
        if place < KEPT_WAKEUPS {
            worst.insert(place, moment);
            worst.truncate(KEPT_WAKEUPS);
        }
    }

    /// The longest ones, those of real-time threads first. The file ends where some had not ended:
    /// these are lower bounds.
    pub fn finish(mut self) -> (Vec<TraceMoment>, u64) {
        let mut open: Vec<(Tid, Woken)> = self.woken.drain().collect();
        open.sort_by_key(|(tid, _)| *tid);
        if let Some(now) = self.now {
            open.into_iter().for_each(|(tid, woken)| self.add(tid, woken, now, true));
        }
        let [real_time, others] = self.worst;
        (real_time.into_iter().chain(others).collect(), self.count)
    }
}

/// When a thread was due whose sample of this length ended before `moment.to`: its own timer shows
/// it, which the sample was measured from. `events` are those of the thread before.
pub fn anchor_to_timer(moment: &TraceMoment, events: &[Event]) -> TraceMoment {
    let took = moment.duration();
    let of_thread = || events.iter().rev().filter(|of| of.tid == moment.tid && of.at <= moment.to);
    let expiry = of_thread().find_map(|event| match event.what {
        EventKind::HrtimerStart { expires, .. } if expires + took <= moment.to => Some(expires),
        _ => None,
    });
    // Without its timers: its wait ended when it got the CPU.
    let got = || {
        events.iter().rev().filter(|event| event.at <= moment.to).find_map(|event| {
            let arrives =
                matches!(event.what, EventKind::Switch { next, .. } if next == moment.tid);
            arrives.then_some(MonotonicNs(event.at.0.saturating_sub(took.ns())))
        })
    };
    let Some(from) = expiry.or_else(got) else { return moment.clone() };
    TraceMoment { from, to: from + took, ..moment.clone() }
}

/// Explains a moment by what its source states of it, where no switches are recorded.
pub fn explain_stated(moment: &TraceMoment, events: &[Event]) -> Explanation {
    let (from, to) = (moment.from, moment.to.max(moment.from));
    let cpu = moment.cpu.unwrap_or(Event::NO_CPU);
    let cpu_places: Vec<usize> = (0..events.len())
        .filter(|place| {
            let event = &events[*place];
            event.cpu == cpu && event.at >= from && event.at <= to
        })
        .collect();
    let running = moment.timer.map_or(moment.tid, |timer| timer.running);
    let of_running = events.iter().filter(|event| event.cpu == cpu && event.tid == running);
    let stack = of_running.filter_map(|event| match event.what {
        EventKind::Stack { stack } => Some((event.at, stack)),
        _ => None,
    });
    let stack = stack.filter(|(at, _)| *at >= to).map(|(_, stack)| stack).next();
    let part = |cause: Cause, from, to| Part {
        cause,
        from,
        to,
        cpu: moment.cpu,
        prio: None,
        stack: stack.filter(|_| cause.responsible_task() == Some(running)),
        evidence: if cause == Cause::Unknown { Vec::new() } else { cpu_places.clone() },
        meanwhile: Vec::new(),
    };
    let mut parts: Vec<Part> = Vec::new();
    let whole = stated_causes(moment, cpu_places.iter().map(|place| &events[*place]));
    for (cause, from, to) in divide_interval(&moment.noises, &whole, from, to) {
        match parts.last_mut().filter(|last| last.cause == cause) {
            Some(last) => last.to = to,
            None => parts.push(part(cause, from, to)),
        }
    }
    let kind = StartKind::Interval;
    Explanation {
        interval: LatencyInterval { tid: moment.tid, cpu, due: from, woke: to, kind },
        parts,
        chain: Vec::new(),
        wakeups: Vec::new(),
        lost: 0,
        warnings: Vec::new(),
        not_recorded: Vec::new(),
        moment: Some(moment.clone()),
    }
}

/// What the source of a moment states of it, and from when on.
fn stated_causes<'e>(
    moment: &TraceMoment,
    events: impl Iterator<Item = &'e Event>,
) -> Vec<(MonotonicNs, Cause)> {
    let (from, mode) = (moment.from, CpuMode::Unknown);
    let off = |running| Cause::TimerIrqDelay { running, mode };
    let not_preempted = Cause::NonPreemptible { running: moment.tid, mode };
    match (moment.source, moment.timer) {
        // preemptirqsoff is of both: the flags of its lines tell them apart.
        (MomentSource::IrqsoffTracer, _) => {
            let by_flags = events.filter_map(|event| match event.what {
                EventKind::Context { context, .. } => {
                    let is_off = context.irqs_off? || context.hardirq;
                    Some((event.at, if is_off { off(moment.tid) } else { not_preempted }))
                }
                _ => None,
            });
            let of_both = moment.words.starts_with("preempt");
            let mut flag_causes: Vec<_> = by_flags.filter(|_| of_both).collect();
            let first = flag_causes.first().map_or(off(moment.tid), |(_, cause)| *cause);
            flag_causes.insert(0, (from, first));
            flag_causes
        }
        (MomentSource::PreemptoffTracer, _) => vec![(from, not_preempted)],
        (MomentSource::Hwlat, _) => vec![(from, Cause::Hardware)],
        (MomentSource::Timerlat, Some(timer)) if timer.running != Tid::IDLE => {
            vec![(from, off(timer.running)), (from + timer.late, Cause::Unknown)]
        }
        (MomentSource::Timerlat, Some(timer)) => {
            let state = None;
            vec![(from, Cause::IdleExit { state }), (from + timer.late, Cause::Unknown)]
        }
        _ => vec![(from, Cause::Unknown)],
    }
}

/// A noise with its end: its own time, and that of what interrupted it.
struct NoiseSpan {
    what: NoiseKind,
    from: MonotonicNs,
    to: MonotonicNs,
}

impl NoiseSpan {
    /// What this can interrupt is lower; interrupts, other interrupts, too.
    fn interrupt_level(what: NoiseKind) -> u8 {
        match what {
            NoiseKind::Thread(_) => 0,
            NoiseKind::Softirq(_) => 1,
            NoiseKind::Irq(_) => 2,
            NoiseKind::Nmi => 3,
        }
    }
}

/// Nested noises in the order of time: one ends after its own time and that of what interrupts it.
fn noise_spans(noises: &[Noise]) -> Vec<NoiseSpan> {
    let mut sorted: Vec<&Noise> = noises.iter().collect();
    sorted.sort_by_key(|noise| (noise.from, Reverse(noise.own)));
    let bare = |noise: &&Noise| NoiseSpan { what: noise.what, from: noise.from, to: noise.from };
    let mut spans: Vec<NoiseSpan> = sorted.iter().map(bare).collect();
    // The ends of what may be within are known: of interrupts the last ones first.
    let mut order: Vec<usize> = (0..sorted.len()).collect();
    order.sort_by_key(|place| Reverse((NoiseSpan::interrupt_level(sorted[*place].what), *place)));
    for place in order {
        let noise = sorted[place];
        let (mut to, mut counted) = (noise.from + noise.own, noise.from);
        for (other, span) in spans.iter().enumerate() {
            let [inner, outer] = [span.what, noise.what].map(NoiseSpan::interrupt_level);
            let nested = matches!(noise.what, NoiseKind::Irq(_)) && inner == outer && other > place;
            if (inner > outer || nested) && span.from < to && span.to > counted {
                to = to + (span.to - span.from.max(counted));
                counted = span.to;
            }
        }
        spans[place].to = to;
    }
    spans
}

/// A task that ran directly after an interrupt's thread began this much later at most.
const DIRECTLY: Nanos = Nanos::from_micros(5);

/// Noises that follow from one another: an interrupt, its thread, and a kworker that ran directly
/// after this. No event shows that the thread queued its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoiseOriginator {
    pub irq: u32,
    pub thread: (Tid, Nanos),
    pub after: Option<(Tid, Nanos)>,
}

/// The originators among the noises of a moment, in the order of time.
pub fn noise_originators(noises: &[Noise], names: &Names) -> Vec<NoiseOriginator> {
    let task = |noise: &Noise| match noise.what {
        NoiseKind::Thread(tid) => Some((tid, noise.own)),
        _ => None,
    };
    let is_called = |tid: Tid, begin: &str| names.task_name(tid).starts_with(begin);
    let spans = noise_spans(noises);
    let mut sorted_noises: Vec<&Noise> = noises.iter().collect();
    sorted_noises.sort_by_key(|noise| (noise.from, Reverse(noise.own)));
    let originator_of = |(place, noise): (usize, &&Noise)| {
        let NoiseKind::Irq(irq) = noise.what else { return None };
        let mut later =
            (place + 1..sorted_noises.len()).filter(|later| task(sorted_noises[*later]).is_some());
        // Until the interrupt comes again, its next thread is that of this one.
        let next_same =
            sorted_noises[place + 1..].iter().position(|other| other.what == noise.what);
        let thread_prefix = format!("irq/{irq}-");
        let thread = later.find(|later| {
            next_same.is_none_or(|again| *later < place + 1 + again)
                && task(sorted_noises[*later])
                    .is_some_and(|(tid, _)| is_called(tid, &thread_prefix))
        })?;
        let after = later.next().filter(|after| {
            sorted_noises[*after].from - spans[thread].to <= DIRECTLY
                && task(sorted_noises[*after]).is_some_and(|(tid, _)| is_called(tid, "kworker/"))
        });
        let after = after.and_then(|after| task(sorted_noises[after]));
        Some(NoiseOriginator { irq, thread: task(sorted_noises[thread])?, after })
    };
    sorted_noises.iter().enumerate().filter_map(originator_of).collect()
}

fn noise_cause(what: NoiseKind) -> Cause {
    match what {
        NoiseKind::Nmi => Cause::Interrupt(Interrupt::Vector(NMI)),
        NoiseKind::Irq(irq) => Cause::Interrupt(Interrupt::Hard(irq)),
        NoiseKind::Softirq(vector) => Cause::Interrupt(Interrupt::Soft(vector)),
        NoiseKind::Thread(by) => Cause::TaskNoise { by },
    }
}

/// The vector of the non-maskable interrupt (arch/x86/include/asm/trapnr.h).
const NMI: u8 = 2;

/// An interval, divided among noises: what can interrupt the others has the time, among these what
/// began last, and without one the cause of the whole.
fn divide_interval(
    noises: &[Noise],
    whole: &[(MonotonicNs, Cause)],
    from: MonotonicNs,
    to: MonotonicNs,
) -> Vec<(Cause, MonotonicNs, MonotonicNs)> {
    let spans = noise_spans(noises);
    let mut cuts: Vec<MonotonicNs> = spans.iter().flat_map(|span| [span.from, span.to]).collect();
    cuts.extend(whole.iter().map(|(at, _)| *at).chain([from, to]));
    cuts.retain(|cut| *cut >= from && *cut <= to);
    cuts.sort_unstable();
    cuts.dedup();
    let cause_at = |at: MonotonicNs| {
        let inner = spans.iter().filter(|span| span.from <= at && at < span.to);
        let inner = inner.max_by_key(|span| NoiseSpan::interrupt_level(span.what));
        let of_whole = || whole.iter().rev().find(|(since, _)| *since <= at);
        match inner {
            Some(span) => noise_cause(span.what),
            None => of_whole().map_or(Cause::Unknown, |(_, cause)| *cause),
        }
    };
    cuts.windows(2).map(|pair| (cause_at(pair[0]), pair[0], pair[1])).collect()
}
