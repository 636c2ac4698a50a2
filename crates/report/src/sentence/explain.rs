//! An explained sample in sentences: its latency, its CPU, and its causes in time order.

use crate::format::{self, counted, micros, plain};
use crate::sentence::listed;
use punctual_bundle::answer::AnsweredDelay;
use punctual_core::event::{MomentSource, TraceMoment};
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos, Tid};
use punctual_explain::explain::{
    Budget, Cause, Confidence, CpuMode, Culprit, Explanation, Part, StartKind, WaitKind, WakeUp,
    Waker, device_name, is_enabled, longest_place,
};
use punctual_explain::moments::{NoiseOriginator, originators};
use punctual_explain::threads::Interrupt;

/// At most this many causes are listed individually; the rest are summed up.
const LISTED_CAUSES: usize = 6;
/// Task names are cut at this many columns: the kernel's own are far shorter.
const NAME: usize = 60;
/// Tracers of times in which nothing could be scheduled.
const TRACERS: [MomentSource; 2] = [MomentSource::IrqsoffTracer, MomentSource::PreemptoffTracer];
/// At most this many functions of a kernel stack are named, innermost first.
const FRAMES: usize = 5;

/// All parts of a sample with the same reason.
#[derive(Clone, PartialEq, Debug)]
pub struct PartsReason<'e> {
    /// The first of its parts.
    pub part: &'e Part,
    /// The number of parts.
    pub parts: u64,
    pub time: Nanos,
}

/// The reasons of an explanation, in the order of their beginnings.
pub fn reasons(explanation: &Explanation) -> Vec<PartsReason<'_>> {
    let mut reasons: Vec<PartsReason<'_>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for part in &explanation.parts {
        let cpu = part.cpu.filter(|_| names_cpu(part.cause));
        let place = *known.entry((part.cause, cpu)).or_insert(reasons.len());
        match reasons.get_mut(place) {
            Some(reason) => {
                reason.parts += 1;
                reason.time += part.span();
            }
            None => reasons.push(PartsReason { part, parts: 1, time: part.span() }),
        }
    }
    reasons
}

/// Whether the words of a cause name the CPU: other causes are one reason across all CPUs.
fn names_cpu(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Steal
            | Cause::Hardware
            | Cause::IdleExit { .. }
            | Cause::Wakeup { .. }
            | Cause::Runqueue { .. }
            | Cause::TaskNoise { .. }
            | Cause::Inversion { .. }
    )
}

/// The main cause of a sample.
pub fn most(explanation: &Explanation, names: &Names) -> Option<AnsweredDelay> {
    let most = reasons(explanation).into_iter().max_by_key(|reason| reason.time)?;
    let who = who(most.part.cause, most.part.prio, names);
    let who = (!who.is_empty()).then_some(who);
    let (cause, share) = (most.part.cause, share(most.time, explanation.latency()));
    Some(AnsweredDelay::new(cause.id(), title(cause), who, share))
}

/// A share of a latency; 0 for a latency of 0.
pub fn share(time: Nanos, latency: Nanos) -> f64 {
    if latency <= Nanos::ZERO { 0.0 } else { time.ns() as f64 / latency.ns() as f64 }
}

/// A paragraph about a sample. Latencies are in µs.
pub fn paragraph(explanation: &Explanation, names: &Names, events: &[Event]) -> String {
    let describer = Describer { names, events, explanation };
    let mut text = vec![describer.opening()];
    text.extend(explanation.moment.as_ref().and_then(moment));
    let latency = explanation.latency();
    let all = reasons(explanation);
    let mut by_time: Vec<&PartsReason<'_>> = all.iter().collect();
    by_time.sort_by_key(|reason| std::cmp::Reverse(reason.time));
    let chosen: Vec<&PartsReason<'_>> = by_time
        .iter()
        .enumerate()
        .filter(|(rank, reason)| {
            *rank < LISTED_CAUSES && (*rank == 0 || share(reason.time, latency) >= 0.02)
        })
        .map(|(_, reason)| *reason)
        .collect();
    let is_chosen =
        |reason: &PartsReason<'_>| chosen.iter().any(|other| std::ptr::eq(*other, reason));
    let causes: Vec<String> = all
        .iter()
        .filter(|reason| is_chosen(reason))
        .map(|reason| describer.describe(reason))
        .collect();
    if !causes.is_empty() {
        text.push(format!("For {}.", causes.join("; for ")));
    }
    let rest: Vec<&PartsReason<'_>> = all.iter().filter(|reason| !is_chosen(reason)).collect();
    if !rest.is_empty() {
        let time = rest.iter().fold(Nanos::ZERO, |sum, reason| sum + reason.time);
        text.push(format!(
            "The other {} µs are {}.",
            micros(time),
            counted(rest.len() as u64, "shorter part")
        ));
    }
    text.extend(explanation.moment.iter().flat_map(|of| originated(of, names)));
    text.extend(describer.function());
    text.extend(chosen.iter().find_map(|reason| describer.stack(reason)));
    text.extend(not_recorded(explanation));
    text.extend(warnings(explanation));
    text.join(" ")
}

/// The words of a trace on its moment; `None` where they add nothing.
fn moment(of: &TraceMoment) -> Option<String> {
    let words = (!of.words.is_empty()).then(|| format!("The trace says: {}.", plain(&of.words)));
    let step = of.step.map(|step| {
        let step = micros(step);
        format!(
            "Its clock advances by {step} µs at once: the figure may be up to as much too long."
        )
    });
    let bound = "It had not ended where the trace ends: its latency is a lower bound.";
    let all: Vec<String> =
        words.into_iter().chain(step).chain(of.at_least.then(|| bound.into())).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// A sentence for each interrupt that other noises of a moment follow from.
fn originated(moment: &TraceMoment, names: &Names) -> Vec<String> {
    let task = |(tid, time)| format!("{} for {} µs", task(tid, None, names), micros(time));
    let sentence = |one: NoiseOriginator| {
        let after = one.after.map_or(String::new(), |after| {
            format!(
                ", and directly after that {} (no event shows who queued its work)",
                task(after)
            )
        });
        let irq = plain(&names.irq(one.irq));
        format!("It began with the interrupt {irq}: its thread ran, {}{after}.", task(one.thread))
    };
    originators(&moment.noises, names).into_iter().map(sentence).collect()
}

/// The groups of events that could explain the rest; `None` if all of them were recorded.
pub fn not_recorded(explanation: &Explanation) -> Option<String> {
    let groups: Vec<&str> = explanation.not_recorded.iter().map(|group| group.word()).collect();
    (!groups.is_empty()).then(|| format!("Unrecorded events may show why: {}.", groups.join(", ")))
}

/// The reasons for reduced confidence; `None` if there are none.
pub fn warnings(explanation: &Explanation) -> Option<String> {
    let confidence = explanation.confidence();
    if confidence == Confidence::High {
        return None;
    }
    let why: Vec<&str> = explanation.warnings.iter().map(|warning| warning.sentence()).collect();
    Some(format!("Confidence: {}. {}", confidence.word(), why.join(" ")))
}

/// The chain of wake-ups, a line for each step with the event that proves it; empty if neither a
/// task nor a network packet woke the thread.
pub fn wake_ups(explanation: &Explanation, names: &Names, events: &[Event]) -> Vec<String> {
    let shown = |step: &&WakeUp| matches!(step.by, Waker::Task(_)) || step.packet.is_some();
    if explanation.wakeups.first().filter(shown).is_none() {
        return Vec::new();
    }
    let due = explanation.interval.due;
    let line = |step: &WakeUp| {
        let event = events.get(step.evidence)?;
        let waited = step.waited.map(|time| format!(" for {} µs", micros(time)));
        let task = |tid| task(tid, prio_at(events, step.evidence, tid), names);
        let by = match step.by {
            Waker::Task(tid) => task(tid),
            Waker::Interrupt(_) => format!("the interrupt {}", plain(&step.by.name(names))),
        };
        Some(format!(
            "{} {}{}, until {by} woke it at {} µs ({}, CPU {}){}",
            task(step.task),
            waited_for(step.wait),
            waited.unwrap_or_default(),
            micros(step.at - due),
            event.what.name(),
            step.cpu,
            packet(step, due, names).unwrap_or_default()
        ))
    };
    explanation.wakeups.iter().filter_map(line).collect()
}

/// The path of the packet, with the time of each step.
fn packet(step: &WakeUp, due: MonotonicNs, names: &Names) -> Option<String> {
    let packet = step.packet?;
    let mut steps: Vec<String> = Vec::new();
    steps.extend(packet.irq.map(|(irq, at)| {
        format!(
            "its packet raised the interrupt {} at {} µs",
            plain(&Waker::Interrupt(Interrupt::Hard(irq)).name(names)),
            micros(at - due)
        )
    }));
    if packet.irq.is_none() && packet.delivery.is_some() {
        steps.push("its packet raised no interrupt of a device".to_owned());
    }
    let polled = packet
        .poll
        .map(|(_, packets)| format!(", in a poll (NAPI) of {}", counted(packets.into(), "packet")))
        .unwrap_or_default();
    steps.extend(packet.delivery.map(|at| {
        format!(
            "NET_RX began at {} µs and took {} µs to the socket's wake-up{polled}",
            micros(at - due),
            micros(step.at - at)
        )
    }));
    steps.extend(packet.received.map(|of| {
        format!(
            "{} received the packet ({}) at {} µs{}",
            plain(&of.device.to_string()),
            counted(of.bytes.into(), "byte"),
            micros(of.at - due),
            if packet.delivery.is_none() { polled.as_str() } else { "" }
        )
    }));
    steps.extend(
        packet.socket.map(|of| {
            format!("its {} socket had the data at {} µs", of.name(), micros(of.at - due))
        }),
    );
    Some(format!(": {}", steps.join(", ")))
}

fn waited_for(wait: WaitKind) -> &'static str {
    match wait {
        WaitKind::Lock => "waited for a lock",
        WaitKind::Reclaim => "waited in memory reclaim",
        WaitKind::PageFault => "waited for a page",
        WaitKind::Uninterruptible => "slept uninterruptibly",
        WaitKind::Sleep => "slept",
    }
}

/// The cause's name in tables and pictures.
pub fn title(cause: Cause) -> &'static str {
    cause.kind().words()
}

/// The culprit and its place: `stress-ng-fork (SCHED_OTHER) in clone()`. Empty if the cause is
/// sufficient. Escaped for output.
pub fn who(cause: Cause, prio: Option<i16>, names: &Names) -> String {
    match cause {
        Cause::Inversion { holder, by } => {
            format!("{}; {} held the lock", task(by, prio, names), task(holder, None, names))
        }
        Cause::OwnExecution { mode: CpuMode::Syscall(number) } => {
            format!("in {}()", plain(&names.syscall(number)))
        }
        Cause::OwnExecution { mode: CpuMode::User } => "in user mode".to_owned(),
        cause => match (cause.task(), cause.mode()) {
            (Some(tid), Some(mode)) => format!("{}{}", task(tid, prio, names), place(mode, names)),
            (Some(tid), None) => task(tid, prio, names),
            (None, _) => cause.who(names).map(|who| plain(&who)).unwrap_or_default(),
        },
    }
}

/// The name of a culprit over many samples.
pub fn blamed(culprit: &Culprit) -> String {
    culprit.who.as_deref().map(plain).unwrap_or_default()
}

/// ` in clone()`, ` in user mode`, or empty.
fn place(mode: CpuMode, names: &Names) -> String {
    match mode {
        CpuMode::Syscall(number) => format!(" in {}()", plain(&names.syscall(number))),
        CpuMode::Fault => " in a page fault".to_owned(),
        CpuMode::User => " in user mode".to_owned(),
        CpuMode::Unknown => String::new(),
    }
}

/// A task with its scheduling: `stress-ng-fork (SCHED_OTHER)`.
pub fn task(tid: Tid, prio: Option<i16>, names: &Names) -> String {
    let name = format::clipped(&names.task(tid), NAME, false);
    if tid == Tid::IDLE {
        return name;
    }
    // The stored policy was read once; the event's priority belongs to its instant, and takes
    // precedence if they differ.
    let known = names.tasks.get(&tid).and_then(|task| task.scheduling.as_deref());
    let known = known.filter(|known| prio.is_none_or(|prio| agrees(known, prio))).map(plain);
    match known.or_else(|| prio.map(scheduling)) {
        Some(scheduling) => format!("{name} ({scheduling})"),
        None => name,
    }
}

/// Whether a textual policy is consistent with the kernel's `prio`.
fn agrees(scheduling: &str, prio: i16) -> bool {
    let is = |policies: &[&str]| policies.iter().any(|policy| scheduling.starts_with(policy));
    let last = || scheduling.split_whitespace().next_back().and_then(|word| word.parse().ok());
    match prio {
        ..0 => is(&["SCHED_DEADLINE"]),
        0..100 => is(&["SCHED_FIFO", "SCHED_RR"]) && last() == Some(99 - prio),
        _ if scheduling.contains("nice") => last() == Some(prio - 120),
        _ => {
            !is(&["SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"])
                && (prio == 120 || is(&["SCHED_IDLE"]))
        }
    }
}

/// The priority of a task at an event, from the last event up to it that states it.
fn prio_at(events: &[Event], place: usize, tid: Tid) -> Option<i16> {
    events.get(..=place)?.iter().rev().find_map(|event| match event.what {
        EventKind::Switch { next, next_prio, .. } if next == tid => Some(next_prio),
        EventKind::Switch { prev_prio, .. } if event.tid == tid => Some(prev_prio),
        EventKind::Waking { task, prio, .. } | EventKind::Wakeup { task, prio, .. }
            if task == tid =>
        {
            Some(prio)
        }
        _ => None,
    })
}

/// The policy of the kernel's `prio`: SCHED_FIFO and SCHED_RR share their numbers
/// (include/linux/sched/prio.h).
fn scheduling(prio: i16) -> String {
    match prio {
        ..0 => "SCHED_DEADLINE".to_owned(),
        0..100 => format!("real-time priority {}", 99 - prio),
        120 => "SCHED_OTHER".to_owned(),
        prio => format!("SCHED_OTHER, nice {}", i32::from(prio) - 120),
    }
}

struct Describer<'a> {
    names: &'a Names,
    events: &'a [Event],
    explanation: &'a Explanation,
}

impl Describer<'_> {
    fn opening(&self) -> String {
        let interval = self.explanation.interval;
        let latency = micros(self.explanation.latency());
        let cpu = if interval.cpu == Event::NO_CPU {
            String::new()
        } else {
            format!(" on CPU {}", interval.cpu)
        };
        match interval.kind {
            StartKind::Timer => format!("Latency {latency} µs{cpu}."),
            StartKind::Interval => format!("{latency} µs{cpu}."),
        }
    }

    /// The function in which most of it was.
    fn function(&self) -> Option<String> {
        let place = longest_place(self.explanation, self.names, self.events)?;
        let interrupts = match place.irqs_off {
            Some(true) if place.lines > 1 => ", with interrupts disabled at all",
            Some(false) if place.lines > 1 => ", with interrupts enabled at all",
            Some(true) => ", with interrupts disabled at both",
            Some(false) => ", with interrupts enabled at both",
            None => "",
        };
        let (lines, on) = match place.lines {
            1 => ("between two lines".to_owned(), "on"),
            lines => (format!("after {} lines", format::count(lines)), "on each time"),
        };
        let moment = self.explanation.moment.as_ref();
        let of_tracer = moment.filter(|of| TRACERS.contains(&of.source));
        let requested = match place.requested.filter(|_| place.lines == 1).and(of_tracer) {
            Some(_) if place.requested == Some([false, true]) => {
                "; a reschedule was requested meanwhile"
            }
            Some(_) if place.requested == Some([false; 2]) && place.irqs_off != Some(true) => {
                "; no reschedule was requested at either"
            }
            _ => "",
        };
        let missing = moment.filter(|of| of.missing > 0).map_or(String::new(), |of| {
            let missing = counted(of.missing, "line");
            format!(" This text lacks {missing} of the trace, perhaps from there.")
        });
        Some(format!(
            "{} of it ({} µs) were {lines} of CPU {}, from {} {on}{interrupts}{requested}.\
             {missing}",
            format::percent(share(place.time, self.explanation.latency())),
            micros(place.time),
            place.cpu,
            plain(place.function)
        ))
    }

    /// `1,480 µs stress-ng-fork (SCHED_OTHER) ran on in clone() …`, to be placed after "for".
    fn describe(&self, reason: &PartsReason<'_>) -> String {
        let times = if reason.parts > 1 {
            format!(" ({} times)", format::count(reason.parts))
        } else {
            String::new()
        };
        format!("{} µs {}{times}", micros(reason.time), self.what(reason.part))
    }

    /// A cause that the tracer states itself: no other event has to prove it.
    fn of_tracer(&self, part: &Part) -> Option<String> {
        let moment = self.explanation.moment.as_ref()?;
        let task = |tid| task(tid, part.prio, self.names);
        let on = part.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        match (moment.source, part.cause) {
            (MomentSource::IrqsoffTracer, Cause::TimerIrqDelay { running, .. }) => {
                let has_flags = |event: &Event| matches!(event.what, EventKind::Context { .. });
                let off = match moment.words.starts_with("preempt") {
                    true if !self.evidence(part).any(has_flags) => "interrupts or preemption",
                    _ => "interrupts",
                };
                Some(format!("{} ran{on} with {off} disabled", task(running)))
            }
            (MomentSource::IrqsoffTracer, Cause::NonPreemptible { running, .. }) => Some(format!(
                "{} ran{on} with preemption disabled and interrupts enabled",
                task(running)
            )),
            (MomentSource::PreemptoffTracer, Cause::NonPreemptible { running, .. }) => {
                Some(format!("{} ran{on} with preemption disabled", task(running)))
            }
            _ => None,
        }
    }

    fn what(&self, part: &Part) -> String {
        if let Some(stated) = self.of_tracer(part) {
            return stated;
        }
        let task = |tid| task(tid, part.prio, self.names);
        let on = part.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        match part.cause {
            Cause::Steal if part.cpu.is_some() => format!(
                "the hypervisor had taken {}: {}",
                part.cpu.map_or(String::new(), |cpu| format!("CPU {cpu}")),
                self.proof_of_steal(part)
            ),
            Cause::Hardware => format!(
                "the hardware, firmware or hypervisor had taken the CPU{on}, on which hwlat polled \
                 with interrupts disabled"
            ),
            Cause::Steal => "the hypervisor or the firmware had taken the whole machine: timers \
                             of several CPUs were overdue when it continued"
                .to_owned(),
            Cause::TimerIrqDelay { running, mode } => {
                self.timer_irq_delay(part, &task(running), mode)
            }
            Cause::CpuStall { running, mode } => format!(
                "the CPU stalled while {} ran{} with interrupts enabled{}",
                task(running),
                place(mode, self.names),
                self.site(part)
            ),
            Cause::Switch => {
                format!("the CPU was within the context switch to it{}", self.inside(part))
            }
            Cause::Interrupt(what) => self.interrupt(what),
            Cause::IdleExit { state } => {
                let state = state
                    .and_then(|_| part.cause.who(self.names))
                    .map_or(String::new(), |state| format!(" in {}", plain(&state)));
                format!(
                    "{} was idle{state} and had to leave its idle state",
                    part.cpu.map_or("the CPU".to_owned(), |cpu| format!("CPU {cpu}"))
                )
            }
            Cause::Wakeup { running: None } => "the wake-up was in progress".to_owned(),
            Cause::Wakeup { running: Some(running) } => {
                format!("the wake-up was in progress, to {} that ran{on}", task(running))
            }
            Cause::NonPreemptible { running, mode } => self.non_preemptible(&task(running), mode),
            Cause::Preempted { by, .. } => format!("{} ran with a higher priority", task(by)),
            Cause::Throttled { running, budget } => throttled(running, &task(running), budget),
            Cause::Runqueue { behind } => {
                format!("{} ran{on} with the same priority", task(behind))
            }
            Cause::TaskNoise { by } => format!("{} ran{on}", task(by)),
            Cause::Migration { by } => format!("{} moved it to another CPU", task(by)),
            Cause::Lock { holder, kernel } => self.lock(part, holder, kernel),
            Cause::Inversion { holder, by } => format!(
                "{}, of lower priority than the thread, ran{on} and kept {}, which held the lock, \
                 from running: a priority inversion",
                task(by),
                self.holder(part, holder)
            ),
            Cause::Io { device } => format!(
                "it waited for {}{}",
                plain(&device_name(device, self.names)),
                self.request(part)
            ),
            Cause::PageFault => format!("{} handled", self.faults(part)),
            Cause::Reclaim => "it had to reclaim memory".to_owned(),
            Cause::Waiting { woken_by: Some(waker) } => {
                format!("it waited until {} woke it{}", task(waker), self.meanwhile(part))
            }
            Cause::Waiting { woken_by: None } => {
                "it waited for something that was not recorded".to_owned()
            }
            Cause::OwnSleep { call } => {
                format!("it slept by its own {}()", plain(&self.names.syscall(call)))
            }
            Cause::Timeout { call } => format!(
                "what it waited for did not come in time: its own {}() returned at the timeout",
                plain(&self.names.syscall(call))
            ),
            Cause::TimerSlack => {
                "its timer was due, and might expire later by the timer slack of the thread"
                    .to_owned()
            }
            Cause::Stopped { by, continued_by } => {
                let by = by.map_or(String::new(), |by| format!(" by {}", task(by)));
                let until = continued_by
                    .map_or(String::new(), |by| format!(" until {} let it go on", task(by)));
                format!("it was stopped{by}{until}")
            }
            Cause::OwnExecution { mode: CpuMode::Unknown } => "the thread itself ran".to_owned(),
            Cause::OwnExecution { mode } => {
                format!("the thread itself ran{}", place(mode, self.names))
            }
            Cause::Observer { task: own } => {
                format!("by punctual itself: its thread {} ran{on}", task(own))
            }
            Cause::Unknown => "no event proves a cause".to_owned(),
        }
    }

    /// The proof that one CPU was stolen: timers of two CPUs among the evidence, else the steal
    /// clock.
    fn proof_of_steal(&self, part: &Part) -> &'static str {
        let expiries = part.evidence.iter().filter_map(|place| self.events.get(*place));
        let cpus: std::collections::BTreeSet<u16> = expiries
            .filter(|event| matches!(event.what, EventKind::HrtimerExpireEntry { .. }))
            .map(|event| event.cpu)
            .collect();
        match cpus.len() {
            2.. => "a timer of another CPU was overdue as well, and expired together with its own",
            _ => "its steal clock advanced by as much",
        }
    }

    fn timer_irq_delay(&self, part: &Part, running: &str, mode: CpuMode) -> String {
        let place = place(mode, self.names);
        if mode == CpuMode::User {
            return format!(
                "the timer interrupt was delayed although {running} ran{place}, where interrupts \
                 are never disabled: the timer hardware or a hypervisor delayed it"
            );
        }
        let while_it_ran = format!("the timer interrupt was delayed while {running} ran{place}");
        let is_begin = |event: &&Event| match event.what {
            EventKind::Context { context, section, .. } => {
                section && context.irqs_off == Some(true)
            }
            _ => false,
        };
        if self.evidence(part).any(|event| is_begin(&event)) {
            return format!("{while_it_ran} with interrupts disabled{}", self.site(part));
        }
        let known = self.evidence(part).find(|event| is_enabled(event) && event.at <= part.from);
        let known = known.map_or(String::new(), |event| {
            let before = micros(self.explanation.interval.due - event.at);
            let likely = match event.what {
                // Such sections do not disable interrupts.
                EventKind::Context { context, .. }
                    if context.softirqs_off || context.preempt_depth > 0 =>
                {
                    "; a stall is likely, such as a register read that waits for all earlier \
                     writes"
                }
                _ => "",
            };
            let site = self.site(part);
            format!(" (interrupts were enabled {before} µs before it was due{site}){likely}")
        });
        format!("{while_it_ran}: interrupts disabled or the CPU stalled, not known which{known}")
    }

    fn evidence(&self, part: &Part) -> impl Iterator<Item = &Event> {
        part.evidence.iter().filter_map(|place| self.events.get(*place))
    }

    /// `, in igb_set_rx_mode+0x4f8/0x5a0`, as in the evidence.
    fn site(&self, part: &Part) -> String {
        let site = self.evidence(part).find_map(|event| match event.what {
            EventKind::Context { site, .. } => self.names.symbols.get(&site),
            _ => None,
        });
        site.map_or(String::new(), |site| format!(", in {}", plain(site)))
    }

    /// `, until tlb_flush`, if an event inside of the switch bounds it.
    fn inside(&self, part: &Part) -> String {
        let last = self.evidence(part).filter(|event| event.at >= part.to).last();
        match last.map(|event| event.what) {
            Some(EventKind::Context { site, .. }) => self
                .names
                .symbols
                .get(&site)
                .map_or(String::new(), |name| format!(", until {}", plain(name))),
            Some(EventKind::SyscallExit { number, .. }) => {
                format!(", up to the return of {}()", plain(&self.names.syscall(number)))
            }
            _ => String::new(),
        }
    }

    fn interrupt(&self, what: Interrupt) -> String {
        match what {
            Interrupt::Hard(irq) => {
                format!("the interrupt {} was handled", plain(&self.names.irq(irq)))
            }
            Interrupt::Vector(vector) => {
                format!("the CPU's own interrupt {} was handled", plain(&self.names.vector(vector)))
            }
            Interrupt::Soft(vector) => {
                format!("the softirq {} ran", plain(&self.names.softirq(vector)))
            }
        }
    }

    fn non_preemptible(&self, running: &str, mode: CpuMode) -> String {
        let place = place(mode, self.names);
        match mode {
            CpuMode::Syscall(_) | CpuMode::Fault => {
                format!(
                    "{running} was not preempted{place}: preemption was disabled, or this kernel \
                     is not preemptible there"
                )
            }
            CpuMode::User => format!(
                "{running} was not preempted outside of any system call: it was in an exception, \
                 or a hypervisor had the CPU"
            ),
            CpuMode::Unknown => format!(
                "{running} was not preempted although it has the lower priority: preemption was \
                 disabled, or this kernel is not preemptible there"
            ),
        }
    }

    /// The holder of a lock, with its priority at the last event of the evidence.
    fn holder(&self, part: &Part, holder: Tid) -> String {
        let last = part.evidence.iter().max();
        let prio = last.and_then(|place| prio_at(self.events, *place, holder));
        task(holder, prio, self.names)
    }

    fn lock(&self, part: &Part, holder: Option<Tid>, kernel: bool) -> String {
        let lock = if kernel { "a lock in the kernel" } else { "a lock (futex)" };
        match holder {
            Some(holder) => {
                format!(
                    "it waited for {lock} that {} held{}",
                    self.holder(part, holder),
                    self.meanwhile(part)
                )
            }
            None => format!("it waited for {lock}"),
        }
    }

    /// `; meanwhile that task ran for 3.20 µs and …`: causes of at least a twentieth of the wait.
    fn meanwhile(&self, part: &Part) -> String {
        let mut sums: Vec<(&Part, Nanos)> = Vec::new();
        for other in &part.meanwhile {
            match sums.iter_mut().find(|(known, _)| known.cause == other.cause) {
                Some((_, time)) => *time += other.span(),
                None => sums.push((other, other.span())),
            }
        }
        sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let kept_off: Vec<&(&Part, Nanos)> =
            sums.iter().filter(|(other, _)| is_kept_off(other.cause)).collect();
        let long = |time: Nanos| share(time, part.span()) >= 0.05;
        let others = sums.iter().filter(|(other, time)| {
            long(*time) && other.cause != Cause::Unknown && !is_kept_off(other.cause)
        });
        let mut sentences: Vec<String> =
            others.take(LISTED_CAUSES).map(|(other, time)| self.briefly(other, *time)).collect();
        let sum = kept_off.iter().fold(Nanos::ZERO, |sum, (_, time)| sum + *time);
        if let Some((most, _)) = kept_off.first().filter(|_| long(sum)) {
            let by = who(most.cause, most.prio, self.names);
            let more = if kept_off.len() > 1 { " and others" } else { "" };
            sentences
                .insert(0, format!("was kept from running by {by}{more} for {} µs", micros(sum)));
        }
        if sentences.is_empty() {
            String::new()
        } else {
            format!("; meanwhile that task {}", listed(&sentences))
        }
    }

    /// The state of another thread: `was kept waiting by mid (SCHED_FIFO 50) for 4,900 µs`.
    fn briefly(&self, part: &Part, time: Nanos) -> String {
        let (who, time) = (who(part.cause, part.prio, self.names), micros(time));
        match part.cause {
            Cause::OwnExecution { .. } => {
                format!("ran{}{who} for {time} µs", if who.is_empty() { "" } else { " " })
            }
            Cause::Lock { .. } if !who.is_empty() => {
                format!("waited for a lock of {who} for {time} µs")
            }
            Cause::Waiting { woken_by: None } => format!("slept for {time} µs"),
            Cause::OwnSleep { .. } => format!("slept by its own {who}() for {time} µs"),
            Cause::Stopped { .. } => format!("was stopped for {time} µs"),
            Cause::TimerSlack => format!("was left asleep for {time} µs by its timer slack"),
            Cause::Waiting { .. } => format!("waited for {who} for {time} µs"),
            Cause::Io { .. } => format!("waited for {who} for {time} µs"),
            cause if who.is_empty() => format!("had {time} µs of {}", title(cause)),
            cause => format!("had {time} µs of {} ({who})", title(cause)),
        }
    }

    /// `: a write of 4 KiB`, if the request's beginning or end is among the evidence.
    fn request(&self, part: &Part) -> String {
        let evidence = || part.evidence.iter().filter_map(|place| self.events.get(*place));
        let issued = evidence().find_map(|event| match event.what {
            EventKind::BlockIssue { bytes, write, .. } => {
                Some(format!(": a {} of {}", if write { "write" } else { "read" }, size(bytes)))
            }
            _ => None,
        });
        let done = || {
            evidence().find_map(|event| match event.what {
                EventKind::BlockComplete { bytes, .. } if bytes > 0 => {
                    Some(format!(": a request of {}", size(bytes)))
                }
                EventKind::BlockComplete { .. } => Some(": its cache was written back".to_owned()),
                _ => None,
            })
        };
        issued.or_else(done).unwrap_or_default()
    }

    fn faults(&self, part: &Part) -> String {
        let (from, to): (MonotonicNs, MonotonicNs) =
            (self.explanation.interval.due, self.explanation.interval.woke);
        let own = |event: &&Event| {
            event.tid == self.explanation.interval.tid && event.at >= from && event.at < to
        };
        let faults = self
            .events
            .iter()
            .filter(own)
            .filter(|event| matches!(event.what, EventKind::PageFault { .. }))
            .count();
        let faults = faults.max(usize::from(part.span() > Nanos::ZERO)) as u64;
        format!("{} {}", counted(faults, "page fault"), if faults == 1 { "was" } else { "were" })
    }

    /// The kernel's work for the running task: the stack below the interrupt that sampled it.
    fn stack(&self, reason: &PartsReason<'_>) -> Option<String> {
        let same = self.explanation.parts.iter().filter(|part| part.cause == reason.part.cause);
        let frames = self.names.stack(same.filter_map(|part| part.stack).next()?);
        let who = plain(&self.names.task(reason.part.cause.task()?));
        let entry = frames.iter().rposition(|frame| frame.starts_with("asm_"));
        let below: Vec<String> = frames[entry.map_or(0, |entry| entry + 1)..]
            .iter()
            .take(FRAMES)
            .map(|f| plain(f))
            .collect();
        match (below.is_empty(), entry) {
            (true, Some(_)) => Some(format!(
                "The kernel stack shows {who} in user mode at the interrupt: the interrupt itself \
                 was delayed, as under a hypervisor."
            )),
            (true, None) => None,
            (false, _) => {
                let when = match self.explanation.moment.as_ref().map(|of| of.source) {
                    Some(source) if TRACERS.contains(&source) => "at its end",
                    Some(MomentSource::Timerlat) => "at the timer's interrupt",
                    _ => "at that time",
                };
                Some(format!("Kernel stack of {who} {when}: {}.", below.join(" < ")))
            }
        }
    }
}

/// Whether another task had the CPU.
fn is_kept_off(cause: Cause) -> bool {
    matches!(cause, Cause::Preempted { .. } | Cause::Runqueue { .. } | Cause::NonPreemptible { .. })
}

fn throttled(running: Tid, task: &str, budget: Budget) -> String {
    let why = match budget {
        Budget::RealTime => "RT throttling, or the fair server ran other tasks",
        Budget::Deadline => "its SCHED_DEADLINE runtime was used up",
        Budget::Group => "CFS bandwidth: the quota of its control group was used up",
    };
    let instead =
        if running == Tid::IDLE { "its CPU idled".to_owned() } else { format!("{task} ran") };
    format!("it was throttled and {instead} instead: {why}")
}

fn size(bytes: u32) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", format::count(u64::from(bytes / 1024)))
    } else {
        counted(u64::from(bytes), "byte")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::event::TaskName;
    use punctual_testing::events;

    const THREAD: Tid = Tid(7);

    fn names(scheduling: Option<&str>) -> Names {
        let scheduling = scheduling.map(str::to_owned);
        let name = TaskName { process: 7, comm: "worker".into(), scheduling };
        Names { tasks: [(THREAD, name)].into(), ..Names::default() }
    }

    #[test]
    fn the_priority_of_an_event_wins_over_a_stored_policy() {
        let shown = |stored, prio| task(THREAD, prio, &names(stored));
        // 99 - 80: the thread became real-time after its policy was read, or inherits.
        assert_eq!(shown(Some("SCHED_OTHER"), Some(19)), "worker (real-time priority 80)");
        assert_eq!(shown(Some("SCHED_FIFO 80"), Some(19)), "worker (SCHED_FIFO 80)");
        assert_eq!(shown(Some("SCHED_RR 80"), Some(19)), "worker (SCHED_RR 80)");
        assert_eq!(shown(Some("SCHED_FIFO 40"), Some(19)), "worker (real-time priority 80)");
        assert_eq!(shown(Some("SCHED_FIFO 80"), Some(120)), "worker (SCHED_OTHER)");
        assert_eq!(shown(Some("SCHED_BATCH"), Some(120)), "worker (SCHED_BATCH)");
        assert_eq!(shown(Some("SCHED_OTHER nice 5"), Some(125)), "worker (SCHED_OTHER nice 5)");
        assert_eq!(shown(Some("SCHED_OTHER"), None), "worker (SCHED_OTHER)");
        assert_eq!(shown(None, None), "worker");
    }

    #[test]
    fn a_task_in_a_wake_up_chain_has_its_priority_at_that_time() {
        let events = events!(
            "0 1 switch S -> 7; 0 7/19 switch S -> 1; 0 1 waking 7/19; 0 1 switch S -> 7/49"
        );
        let prio = |place| prio_at(&events, place, THREAD);
        assert_eq!([prio(0), prio(1), prio(2), prio(3)], [Some(120), Some(19), Some(19), Some(49)]);
        assert_eq!((prio(9), prio_at(&events, 2, Tid(5))), (None, None));
    }
}
