//! An explained sample in sentences: its latency, its CPU, and its causes in time order.

use crate::format::{self, count_with_noun, escape_unsafe, micros_text};
use crate::sentence::join_words;
use punctual_bundle::answer::AnsweredDelay;
use punctual_core::event::{MomentSource, TraceMoment};
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos, Tid};
use punctual_explain::explain::{
    Budget, Cause, Confidence, CpuMode, Culprit, Explanation, Part, StartKind, WaitKind, WakeUp,
    Waker, device_name, is_enabled, longest_place,
};
use punctual_explain::moments::{NoiseOriginator, noise_originators};
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
pub(crate) struct PartsReason<'e> {
    /// The first of its parts.
    pub part: &'e Part,
    /// The number of parts.
    pub parts: u64,
    pub time: Nanos,
}

/// The reasons of an explanation, in the order of their beginnings.
pub(crate) fn group_reasons(explanation: &Explanation) -> Vec<PartsReason<'_>> {
    let mut reasons: Vec<PartsReason<'_>> = Vec::new();
    let mut known_places = std::collections::HashMap::new();
    for part in &explanation.parts {
        let cpu = part.cpu.filter(|_| names_cpu(part.cause));
        let place = *known_places.entry((part.cause, cpu)).or_insert(reasons.len());
        match reasons.get_mut(place) {
            Some(reason) => {
                reason.parts += 1;
                reason.time += part.duration();
            }
            None => reasons.push(PartsReason { part, parts: 1, time: part.duration() }),
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
pub fn main_delay(explanation: &Explanation, names: &Names) -> Option<AnsweredDelay> {
    let most = group_reasons(explanation).into_iter().max_by_key(|reason| reason.time)?;
    let who = format_culprit(most.part.cause, most.part.prio, names);
    let who = (!who.is_empty()).then_some(who);
    let (cause, share) = (most.part.cause, share_of_latency(most.time, explanation.latency()));
    Some(AnsweredDelay::new(cause.id(), cause_title(cause), who, share))
}

/// A share of a latency; 0 for a latency of 0.
pub(crate) fn share_of_latency(time: Nanos, latency: Nanos) -> f64 {
    if latency <= Nanos::ZERO { 0.0 } else { time.ns() as f64 / latency.ns() as f64 }
}

/// A paragraph about a sample. Latencies are in µs.
pub fn sample_paragraph(explanation: &Explanation, names: &Names, events: &[Event]) -> String {
    let describer = Describer { names, events, explanation };
    let mut text = vec![describer.opening_sentence()];
    text.extend(explanation.moment.as_ref().and_then(describe_moment));
    let latency = explanation.latency();
    let all_reasons = group_reasons(explanation);
    let mut by_time: Vec<&PartsReason<'_>> = all_reasons.iter().collect();
    by_time.sort_by_key(|reason| std::cmp::Reverse(reason.time));
    let chosen: Vec<&PartsReason<'_>> = by_time
        .iter()
        .enumerate()
        .filter(|(rank, reason)| {
            *rank < LISTED_CAUSES && (*rank == 0 || share_of_latency(reason.time, latency) >= 0.02)
        })
        .map(|(_, reason)| *reason)
        .collect();
    let is_chosen =
        |reason: &PartsReason<'_>| chosen.iter().any(|other| std::ptr::eq(*other, reason));
    let causes: Vec<String> = all_reasons
        .iter()
        .filter(|reason| is_chosen(reason))
        .map(|reason| describer.describe_reason(reason))
        .collect();
    if !causes.is_empty() {
        text.push(format!("For {}.", causes.join("; for ")));
    }
    let rest: Vec<&PartsReason<'_>> =
        all_reasons.iter().filter(|reason| !is_chosen(reason)).collect();
    if !rest.is_empty() {
        let time = rest.iter().fold(Nanos::ZERO, |sum, reason| sum + reason.time);
        text.push(format!(
            "The other {} µs are {}.",
            micros_text(time),
            count_with_noun(rest.len() as u64, "shorter part")
        ));
    }
    text.extend(explanation.moment.iter().flat_map(|of| describe_originators(of, names)));
    text.extend(describer.function_sentence());
    text.extend(chosen.iter().find_map(|reason| describer.stack_sentence(reason)));
    text.extend(not_recorded(explanation));
    text.extend(format_confidence(explanation));
    text.join(" ")
}

/// The words of a trace on its moment; `None` where they add nothing.
fn describe_moment(of: &TraceMoment) -> Option<String> {
    let words =
        (!of.words.is_empty()).then(|| format!("The trace says: {}.", escape_unsafe(&of.words)));
    let step = of.step.map(|step| {
        let step = micros_text(step);
        format!(
            "Its clock advances by {step} µs at once: the figure may be up to as much too long."
        )
    });
    let bound = "It had not ended where the trace ends: its latency is a lower bound.";
    let all_sentences: Vec<String> =
        words.into_iter().chain(step).chain(of.at_least.then(|| bound.into())).collect();
    (!all_sentences.is_empty()).then(|| all_sentences.join(" "))
}

/// A sentence for each interrupt that other noises of a moment follow from.
fn describe_originators(moment: &TraceMoment, names: &Names) -> Vec<String> {
    let task =
        |(tid, time)| format!("{} for {} µs", format_task(tid, None, names), micros_text(time));
    let sentence = |one: NoiseOriginator| {
        let after = one.after.map_or(String::new(), |after| {
            format!(
                ", and directly after that {} (no event shows who queued its work)",
                task(after)
            )
        });
        let irq = escape_unsafe(&names.irq_name(one.irq));
        format!("It began with the interrupt {irq}: its thread ran, {}{after}.", task(one.thread))
    };
    noise_originators(&moment.noises, names).into_iter().map(sentence).collect()
}

/// The groups of events that could explain the rest; `None` if all of them were recorded.
pub fn not_recorded(explanation: &Explanation) -> Option<String> {
    let groups: Vec<&str> = explanation.not_recorded.iter().map(|group| group.word()).collect();
    (!groups.is_empty()).then(|| format!("Unrecorded events may show why: {}.", groups.join(", ")))
}

/// The reasons for reduced confidence; `None` if there are none.
pub(crate) fn format_confidence(explanation: &Explanation) -> Option<String> {
    let confidence = explanation.confidence();
    if confidence == Confidence::High {
        return None;
    }
    let warning_texts: Vec<&str> =
        explanation.warnings.iter().map(|warning| warning.as_sentence()).collect();
    Some(format!("Confidence: {}. {}", confidence.as_str(), warning_texts.join(" ")))
}

/// The chain of wake-ups, a line for each step with the event that proves it; empty if neither a
/// task nor a network packet woke the thread.
pub fn wake_ups(explanation: &Explanation, names: &Names, events: &[Event]) -> Vec<String> {
    let is_shown = |step: &&WakeUp| matches!(step.by, Waker::Task(_)) || step.packet.is_some();
    if explanation.wakeups.first().filter(is_shown).is_none() {
        return Vec::new();
    }
    let due = explanation.interval.due;
    let line = |step: &WakeUp| {
        let event = events.get(step.evidence)?;
        let waited = step.waited.map(|time| format!(" for {} µs", micros_text(time)));
        let task = |tid| format_task(tid, prio_at(events, step.evidence, tid), names);
        let waker = match step.by {
            Waker::Task(tid) => task(tid),
            Waker::Interrupt(_) => {
                format!("the interrupt {}", escape_unsafe(&step.by.waker_name(names)))
            }
        };
        Some(format!(
            "{} {}{}, until {waker} woke it at {} µs ({}, CPU {}){}",
            task(step.task),
            waited_for(step.wait),
            waited.unwrap_or_default(),
            micros_text(step.at - due),
            event.what.event_name(),
            step.cpu,
            describe_packet(step, due, names).unwrap_or_default()
        ))
    };
    explanation.wakeups.iter().filter_map(line).collect()
}

/// The path of the packet, with the time of each step.
fn describe_packet(step: &WakeUp, due: MonotonicNs, names: &Names) -> Option<String> {
    let packet = step.packet?;
    let mut steps: Vec<String> = Vec::new();
    steps.extend(packet.irq.map(|(irq, at)| {
        format!(
            "its packet raised the interrupt {} at {} µs",
            escape_unsafe(&Waker::Interrupt(Interrupt::Hard(irq)).waker_name(names)),
            micros_text(at - due)
        )
    }));
    if packet.irq.is_none() && packet.delivery.is_some() {
        steps.push("its packet raised no interrupt of a device".to_owned());
    }
    let polled = packet
        .poll
        .map(|(_, packets)| {
            format!(", in a poll (NAPI) of {}", count_with_noun(packets.into(), "packet"))
        })
        .unwrap_or_default();
    steps.extend(packet.delivery.map(|at| {
        format!(
            "NET_RX began at {} µs and took {} µs to the socket's wake-up{polled}",
            micros_text(at - due),
            micros_text(step.at - at)
        )
    }));
    steps.extend(packet.received.map(|of| {
        format!(
            "{} received the packet ({}) at {} µs{}",
            escape_unsafe(&of.device.to_string()),
            count_with_noun(of.bytes.into(), "byte"),
            micros_text(of.at - due),
            if packet.delivery.is_none() { polled.as_str() } else { "" }
        )
    }));
    steps.extend(packet.socket.map(|of| {
        format!("its {} socket had the data at {} µs", of.kind_name(), micros_text(of.at - due))
    }));
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
pub(crate) fn cause_title(cause: Cause) -> &'static str {
    cause.kind().words()
}

/// The culprit and its place: `stress-ng-fork (SCHED_OTHER) in clone()`. Empty if the cause is
/// sufficient. Escaped for output.
pub(crate) fn format_culprit(cause: Cause, prio: Option<i16>, names: &Names) -> String {
    match cause {
        Cause::Inversion { holder, by } => {
            format!(
                "{}; {} held the lock",
                format_task(by, prio, names),
                format_task(holder, None, names)
            )
        }
        Cause::OwnExecution { mode: CpuMode::Syscall(number) } => {
            format!("in {}()", escape_unsafe(&names.syscall_name(number)))
        }
        Cause::OwnExecution { mode: CpuMode::User } => "in user mode".to_owned(),
        cause => match (cause.responsible_task(), cause.cpu_mode()) {
            (Some(tid), Some(mode)) => {
                format!("{}{}", format_task(tid, prio, names), format_mode(mode, names))
            }
            (Some(tid), None) => format_task(tid, prio, names),
            (None, _) => {
                cause.responsible_name(names).map(|who| escape_unsafe(&who)).unwrap_or_default()
            }
        },
    }
}

/// The name of a culprit over many samples.
pub fn culprit_name(culprit: &Culprit) -> String {
    culprit.who.as_deref().map(escape_unsafe).unwrap_or_default()
}

/// ` in clone()`, ` in user mode`, or empty.
fn format_mode(mode: CpuMode, names: &Names) -> String {
    match mode {
        CpuMode::Syscall(number) => format!(" in {}()", escape_unsafe(&names.syscall_name(number))),
        CpuMode::Fault => " in a page fault".to_owned(),
        CpuMode::User => " in user mode".to_owned(),
        CpuMode::Unknown => String::new(),
    }
}

/// A task with its scheduling: `stress-ng-fork (SCHED_OTHER)`.
pub(crate) fn format_task(tid: Tid, prio: Option<i16>, names: &Names) -> String {
    let name = format::clip_name(&names.task_name(tid), NAME, false);
    if tid == Tid::IDLE {
        return name;
    }
    // The stored policy was read once; the event's priority belongs to its instant, and takes
    // precedence if they differ.
    let stored_policy = names.tasks.get(&tid).and_then(|task| task.scheduling.as_deref());
    let valid_policy = stored_policy
        .filter(|known| prio.is_none_or(|prio| is_consistent_policy(known, prio)))
        .map(escape_unsafe);
    match valid_policy.or_else(|| prio.map(policy_of_prio)) {
        Some(scheduling) => format!("{name} ({scheduling})"),
        None => name,
    }
}

/// Whether a textual policy is consistent with the kernel's `prio`.
fn is_consistent_policy(scheduling: &str, prio: i16) -> bool {
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
fn policy_of_prio(prio: i16) -> String {
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
    fn opening_sentence(&self) -> String {
        let interval = self.explanation.interval;
        let latency = micros_text(self.explanation.latency());
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
    fn function_sentence(&self) -> Option<String> {
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
            lines => (format!("after {} lines", format::count_text(lines)), "on each time"),
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
            let missing = count_with_noun(of.missing, "line");
            format!(" This text lacks {missing} of the trace, perhaps from there.")
        });
        Some(format!(
            "{} of it ({} µs) were {lines} of CPU {}, from {} {on}{interrupts}{requested}.\
             {missing}",
            format::percent_text(share_of_latency(place.time, self.explanation.latency())),
            micros_text(place.time),
            place.cpu,
            escape_unsafe(place.function)
        ))
    }

    /// `1,480 µs stress-ng-fork (SCHED_OTHER) ran on in clone() …`, to be placed after "for".
    fn describe_reason(&self, reason: &PartsReason<'_>) -> String {
        let times = if reason.parts > 1 {
            format!(" ({} times)", format::count_text(reason.parts))
        } else {
            String::new()
        };
        format!("{} µs {}{times}", micros_text(reason.time), self.describe_part(reason.part))
    }

    /// A cause that the tracer states itself: no other event has to prove it.
    fn of_tracer(&self, part: &Part) -> Option<String> {
        let moment = self.explanation.moment.as_ref()?;
        let task = |tid| format_task(tid, part.prio, self.names);
        let on = part.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        match (moment.source, part.cause) {
            (MomentSource::IrqsoffTracer, Cause::TimerIrqDelay { running, .. }) => {
                let has_flags = |event: &Event| matches!(event.what, EventKind::Context { .. });
                let off = match moment.words.starts_with("preempt") {
                    true if !self.evidence_events(part).any(has_flags) => {
                        "interrupts or preemption"
                    }
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

    fn describe_part(&self, part: &Part) -> String {
        if let Some(stated) = self.of_tracer(part) {
            return stated;
        }
        let task = |tid| format_task(tid, part.prio, self.names);
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
                format_mode(mode, self.names),
                self.format_site(part)
            ),
            Cause::Switch => {
                format!("the CPU was within the context switch to it{}", self.switch_bound(part))
            }
            Cause::Interrupt(what) => self.describe_interrupt(what),
            Cause::IdleExit { state } => {
                let state = state
                    .and_then(|_| part.cause.responsible_name(self.names))
                    .map_or(String::new(), |state| format!(" in {}", escape_unsafe(&state)));
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
            Cause::Throttled { running, budget } => {
                describe_throttling(running, &task(running), budget)
            }
            Cause::Runqueue { behind } => {
                format!("{} ran{on} with the same priority", task(behind))
            }
            Cause::TaskNoise { by } => format!("{} ran{on}", task(by)),
            Cause::Migration { by } => format!("{} moved it to another CPU", task(by)),
            Cause::Lock { holder, kernel } => self.describe_lock(part, holder, kernel),
            Cause::Inversion { holder, by } => format!(
                "{}, of lower priority than the thread, ran{on} and kept {}, which held the lock, \
                 from running: a priority inversion",
                task(by),
                self.format_holder(part, holder)
            ),
            Cause::Io { device } => format!(
                "it waited for {}{}",
                escape_unsafe(&device_name(device, self.names)),
                self.format_request(part)
            ),
            Cause::PageFault => format!("{} handled", self.format_faults(part)),
            Cause::Reclaim => "it had to reclaim memory".to_owned(),
            Cause::Waiting { woken_by: Some(waker) } => {
                format!("it waited until {} woke it{}", task(waker), self.holder_activity(part))
            }
            Cause::Waiting { woken_by: None } => {
                "it waited for something that was not recorded".to_owned()
            }
            Cause::OwnSleep { call } => {
                format!("it slept by its own {}()", escape_unsafe(&self.names.syscall_name(call)))
            }
            Cause::Timeout { call } => format!(
                "what it waited for did not come in time: its own {}() returned at the timeout",
                escape_unsafe(&self.names.syscall_name(call))
            ),
            Cause::TimerSlack => {
                "its timer was due, and might expire later by the timer slack of the thread"
                    .to_owned()
            }
            Cause::Stopped { by, continued_by } => {
                let stopper = by.map_or(String::new(), |by| format!(" by {}", task(by)));
                let until = continued_by
                    .map_or(String::new(), |by| format!(" until {} let it go on", task(by)));
                format!("it was stopped{stopper}{until}")
            }
            Cause::OwnExecution { mode: CpuMode::Unknown } => "the thread itself ran".to_owned(),
            Cause::OwnExecution { mode } => {
                format!("the thread itself ran{}", format_mode(mode, self.names))
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
        let place = format_mode(mode, self.names);
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
        if self.evidence_events(part).any(|event| is_begin(&event)) {
            return format!("{while_it_ran} with interrupts disabled{}", self.format_site(part));
        }
        let enabled_event =
            self.evidence_events(part).find(|event| is_enabled(event) && event.at <= part.from);
        let enabled_words = enabled_event.map_or(String::new(), |event| {
            let before = micros_text(self.explanation.interval.due - event.at);
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
            let site = self.format_site(part);
            format!(" (interrupts were enabled {before} µs before it was due{site}){likely}")
        });
        format!(
            "{while_it_ran}: interrupts disabled or the CPU stalled, not known which{enabled_words}"
        )
    }

    fn evidence_events(&self, part: &Part) -> impl Iterator<Item = &Event> {
        part.evidence.iter().filter_map(|place| self.events.get(*place))
    }

    /// `, in igb_set_rx_mode+0x4f8/0x5a0`, as in the evidence.
    fn format_site(&self, part: &Part) -> String {
        let site = self.evidence_events(part).find_map(|event| match event.what {
            EventKind::Context { site, .. } => self.names.symbols.get(&site),
            _ => None,
        });
        site.map_or(String::new(), |site| format!(", in {}", escape_unsafe(site)))
    }

    /// `, until tlb_flush`, if an event inside of the switch bounds it.
    fn switch_bound(&self, part: &Part) -> String {
        let last = self.evidence_events(part).filter(|event| event.at >= part.to).last();
        match last.map(|event| event.what) {
            Some(EventKind::Context { site, .. }) => self
                .names
                .symbols
                .get(&site)
                .map_or(String::new(), |name| format!(", until {}", escape_unsafe(name))),
            Some(EventKind::SyscallExit { number, .. }) => {
                format!(
                    ", up to the return of {}()",
                    escape_unsafe(&self.names.syscall_name(number))
                )
            }
            _ => String::new(),
        }
    }

    fn describe_interrupt(&self, what: Interrupt) -> String {
        match what {
            Interrupt::Hard(irq) => {
                format!("the interrupt {} was handled", escape_unsafe(&self.names.irq_name(irq)))
            }
            Interrupt::Vector(vector) => {
                format!(
                    "the CPU's own interrupt {} was handled",
                    escape_unsafe(&self.names.vector_name(vector))
                )
            }
            Interrupt::Soft(vector) => {
                format!("the softirq {} ran", escape_unsafe(&self.names.softirq_name(vector)))
            }
        }
    }

    fn non_preemptible(&self, running: &str, mode: CpuMode) -> String {
        let place = format_mode(mode, self.names);
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
    fn format_holder(&self, part: &Part, holder: Tid) -> String {
        let last = part.evidence.iter().max();
        let prio = last.and_then(|place| prio_at(self.events, *place, holder));
        format_task(holder, prio, self.names)
    }

    fn describe_lock(&self, part: &Part, holder: Option<Tid>, kernel: bool) -> String {
        let lock = if kernel { "a lock in the kernel" } else { "a lock (futex)" };
        match holder {
            Some(holder) => {
                format!(
                    "it waited for {lock} that {} held{}",
                    self.format_holder(part, holder),
                    self.holder_activity(part)
                )
            }
            None => format!("it waited for {lock}"),
        }
    }

    /// `; meanwhile that task ran for 3.20 µs and …`: causes of at least a twentieth of the wait.
    fn holder_activity(&self, part: &Part) -> String {
        let mut sums: Vec<(&Part, Nanos)> = Vec::new();
        for other in &part.meanwhile {
            match sums.iter_mut().find(|(known, _)| known.cause == other.cause) {
                Some((_, time)) => *time += other.duration(),
                None => sums.push((other, other.duration())),
            }
        }
        sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let kept_off: Vec<&(&Part, Nanos)> =
            sums.iter().filter(|(other, _)| is_kept_off(other.cause)).collect();
        let long = |time: Nanos| share_of_latency(time, part.duration()) >= 0.05;
        let other_sums = sums.iter().filter(|(other, time)| {
            long(*time) && other.cause != Cause::Unknown && !is_kept_off(other.cause)
        });
        let mut sentences: Vec<String> = other_sums
            .take(LISTED_CAUSES)
            .map(|(other, time)| self.describe_other_state(other, *time))
            .collect();
        let sum = kept_off.iter().fold(Nanos::ZERO, |sum, (_, time)| sum + *time);
        if let Some((most, _)) = kept_off.first().filter(|_| long(sum)) {
            let first_culprit = format_culprit(most.cause, most.prio, self.names);
            let and_others = if kept_off.len() > 1 { " and others" } else { "" };
            sentences.insert(
                0,
                format!(
                    "was kept from running by {first_culprit}{and_others} for {} µs",
                    micros_text(sum)
                ),
            );
        }
        if sentences.is_empty() {
            String::new()
        } else {
            format!("; meanwhile that task {}", join_words(&sentences))
        }
    }

    /// The state of another thread: `was kept waiting by mid (SCHED_FIFO 50) for 4,900 µs`.
    fn describe_other_state(&self, part: &Part, time: Nanos) -> String {
        let (who, time) = (format_culprit(part.cause, part.prio, self.names), micros_text(time));
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
            cause if who.is_empty() => format!("had {time} µs of {}", cause_title(cause)),
            cause => format!("had {time} µs of {} ({who})", cause_title(cause)),
        }
    }

    /// `: a write of 4 KiB`, if the request's beginning or end is among the evidence.
    fn format_request(&self, part: &Part) -> String {
        let evidence = || part.evidence.iter().filter_map(|place| self.events.get(*place));
        let issued = evidence().find_map(|event| match event.what {
            EventKind::BlockIssue { bytes, write, .. } => Some(format!(
                ": a {} of {}",
                if write { "write" } else { "read" },
                format_size(bytes)
            )),
            _ => None,
        });
        let done = || {
            evidence().find_map(|event| match event.what {
                EventKind::BlockComplete { bytes, .. } if bytes > 0 => {
                    Some(format!(": a request of {}", format_size(bytes)))
                }
                EventKind::BlockComplete { .. } => Some(": its cache was written back".to_owned()),
                _ => None,
            })
        };
        issued.or_else(done).unwrap_or_default()
    }

    fn format_faults(&self, part: &Part) -> String {
        let (from, to): (MonotonicNs, MonotonicNs) =
            (self.explanation.interval.due, self.explanation.interval.woke);
        let is_own = |event: &&Event| {
            event.tid == self.explanation.interval.tid && event.at >= from && event.at < to
        };
        let faults = self
            .events
            .iter()
            .filter(is_own)
            .filter(|event| matches!(event.what, EventKind::PageFault { .. }))
            .count();
        let faults = faults.max(usize::from(part.duration() > Nanos::ZERO)) as u64;
        format!(
            "{} {}",
            count_with_noun(faults, "page fault"),
            if faults == 1 { "was" } else { "were" }
        )
    }

    /// The kernel's work for the running task: the stack below the interrupt that sampled it.
    fn stack_sentence(&self, reason: &PartsReason<'_>) -> Option<String> {
        let same = self.explanation.parts.iter().filter(|part| part.cause == reason.part.cause);
        let frames = self.names.stack_functions(same.filter_map(|part| part.stack).next()?);
        let who = escape_unsafe(&self.names.task_name(reason.part.cause.responsible_task()?));
        let entry = frames.iter().rposition(|frame| frame.starts_with("asm_"));
        let below: Vec<String> = frames[entry.map_or(0, |entry| entry + 1)..]
            .iter()
            .take(FRAMES)
            .map(|f| escape_unsafe(f))
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

fn describe_throttling(running: Tid, task: &str, budget: Budget) -> String {
    let reason = match budget {
        Budget::RealTime => "RT throttling, or the fair server ran other tasks",
        Budget::Deadline => "its SCHED_DEADLINE runtime was used up",
        Budget::Group => "CFS bandwidth: the quota of its control group was used up",
    };
    let instead =
        if running == Tid::IDLE { "its CPU idled".to_owned() } else { format!("{task} ran") };
    format!("it was throttled and {instead} instead: {reason}")
}

fn format_size(bytes: u32) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", format::count_text(u64::from(bytes / 1024)))
    } else {
        count_with_noun(u64::from(bytes), "byte")
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
        let shown = |stored, prio| format_task(THREAD, prio, &names(stored));
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
