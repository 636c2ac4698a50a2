//! The explained samples of a bundle, for terminal, report and JSON.

use crate::explain::{CpuMode, Explanation, Part, Socket, WakeUp, longest_place};
use crate::occupancy::interrupt_name;
use crate::threads::Interrupt;
use punctual_bundle::explanation::{
    EVIDENCE_SHOWN, EXPLAIN_SCHEMA, EventSource, ExplainDocument, ExplainedFunction,
    ExplainedPacket, ExplainedPart, ExplainedSample, ExplainedWakeUp, PartEvidence,
};
use punctual_bundle::intervals::Coincidences;
use punctual_bundle::windows::{KeptRule, SeriesWindows};
use punctual_core::event::Recorded;
use punctual_core::{CpuSet, Event, Finding, MonotonicNs, Names, Nanos, Severity};

/// An explained sample with the events around it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Its phase; empty if it does not belong to a run.
    pub phase: String,
    /// Its series, or the pair or function of the interval.
    pub series: String,
    pub explanation: Explanation,
    /// The events of the window in order of time, which [`crate::explain::Part::evidence`] refers
    /// to.
    pub events: Vec<Event>,
    /// CPUs whose recorded events are not included.
    pub left_out: CpuSet,
}

/// The requested explanations of a bundle.
#[derive(Clone, Debug)]
pub struct Explanations {
    /// The source of the events.
    pub source: EventSource,
    /// The rule for keeping windows, if they are from windows.
    pub rule: Option<KeptRule>,
    pub recorded: Recorded,
    /// The names of the numbers in events.
    pub names: Names,
    /// The windows of each series, if any.
    pub series: Vec<SeriesWindows>,
    /// The samples by series in the bundle's order, in each the highest latency first.
    pub samples: Vec<Explained>,
    /// The events of long samples and of ordinary ones; `None` if those are not known.
    pub coincidences: Option<Vec<Coincidences>>,
    pub findings: Vec<Finding>,
}

impl Explained {
    /// Whether the parts are consistent: from the due time to the arrival without gaps, so that
    /// they add up to the latency. Anything else is a bug, and reported as such.
    pub fn adds_up(&self) -> bool {
        let (interval, parts) = (self.explanation.interval, &self.explanation.parts);
        if interval.woke <= interval.due {
            return parts.is_empty();
        }
        let sum = parts.iter().fold(Nanos::ZERO, |sum, part| sum + part.duration());
        let follow = parts.windows(2).all(|pair| pair[0].to == pair[1].from);
        let ends = parts.first().map(|first| first.from) == Some(interval.due)
            && parts.last().map(|last| last.to) == Some(interval.woke);
        follow && ends && sum == self.explanation.latency()
    }
}

impl Explanations {
    /// A finding about samples whose parts do not add up, which would be a bug.
    pub fn contradiction_finding(&self) -> Option<Finding> {
        let wrong: Vec<&Explained> =
            self.samples.iter().filter(|sample| !sample.adds_up()).collect();
        let first = wrong.first()?;
        let message = format!(
            "the parts of {} samples do not add up to their latency: this is a bug in punctual",
            wrong.len()
        );
        let subject = format!("{}/{}", first.phase, first.series);
        let evidence = format!("the sample due at {} ns", first.explanation.interval.due.ns());
        let finding = Finding::new("parts-do-not-add-up", Severity::Bad, subject, message)
            .with_evidence(evidence);
        Some(
            finding
                .with_remedy("do not rely on these explanations; please report it with the bundle"),
        )
    }

    /// The document printed by `punctual explain --json`.
    pub fn to_document(&self) -> ExplainDocument {
        ExplainDocument {
            schema: EXPLAIN_SCHEMA.to_owned(),
            source: self.source,
            rule: self.rule,
            series: self.series.clone(),
            samples: self.samples.iter().map(|sample| self.describe_sample(sample)).collect(),
            coincidences: self.coincidences.clone(),
            findings: self.findings.clone(),
        }
    }

    fn describe_sample(&self, sample: &Explained) -> ExplainedSample {
        let Explained { phase, series, explanation, events, left_out } = sample;
        let interval = explanation.interval;
        ExplainedSample {
            phase: phase.clone(),
            series: series.clone(),
            at: interval.due.ns(),
            latency_ns: explanation.latency().ns(),
            cpu: known_cpu(interval.cpu),
            tid: interval.tid.0,
            task: self.names.task_name(interval.tid),
            parts: explanation.parts.iter().map(|part| self.describe_part(part, events)).collect(),
            chain: explanation.chain.iter().map(|tid| self.names.task_name(*tid)).collect(),
            wakeups: explanation
                .wakeups
                .iter()
                .filter_map(|step| self.wake_up(step, events))
                .collect(),
            lost: explanation.lost,
            confidence: explanation.confidence().as_str().to_owned(),
            warnings: explanation
                .warnings
                .iter()
                .map(|warning| warning.as_str().to_owned())
                .collect(),
            not_recorded: explanation
                .not_recorded
                .iter()
                .map(|group| group.word().to_owned())
                .collect(),
            left_out: left_out.iter().map(|cpu| cpu as u16).collect(),
            moment: explanation.moment.clone(),
            function: longest_place(explanation, &self.names, events).map(|place| {
                ExplainedFunction {
                    function: place.function.to_owned(),
                    cpu: place.cpu,
                    from: place.from.ns(),
                    ns: place.time.ns(),
                    lines: place.lines,
                    irqs_off: place.irqs_off,
                }
            }),
        }
    }

    fn wake_up(&self, step: &WakeUp, events: &[Event]) -> Option<ExplainedWakeUp> {
        Some(ExplainedWakeUp {
            tid: step.task.0,
            task: self.names.task_name(step.task),
            wait: step.wait.as_str().to_owned(),
            waited_ns: step.waited.map(Nanos::ns),
            by: step.by.waker_name(&self.names),
            packet: step.packet.map(|packet| ExplainedPacket {
                irq: packet.irq.map(|(irq, _)| interrupt_name(Interrupt::Hard(irq), &self.names).1),
                irq_at: packet.irq.map(|(_, at)| at.ns()),
                delivery: packet.delivery.map(MonotonicNs::ns),
                device: packet.received.map(|of| of.device.to_string()),
                received: packet.received.map(|of| of.at.ns()),
                bytes: packet.received.map(|of| of.bytes),
                socket: packet.socket.map(Socket::kind_name),
                socket_at: packet.socket.map(|of| of.at.ns()),
                poll_end: packet.poll.map(|(at, _)| at.ns()),
                polled: packet.poll.map(|(_, packets)| packets),
            }),
            evidence: describe_evidence(events.get(step.evidence)?),
        })
    }

    fn describe_part(&self, part: &Part, events: &[Event]) -> ExplainedPart {
        let shown_events =
            part.evidence.iter().take(EVIDENCE_SHOWN).filter_map(|place| events.get(*place));
        ExplainedPart {
            cause: part.cause.id().to_owned(),
            who: part.cause.responsible_name(&self.names),
            tid: part.cause.responsible_task().map(|tid| tid.0),
            ns: part.duration().ns(),
            from: part.from.ns(),
            cpu: part.cpu,
            syscall: match part.cause.cpu_mode() {
                Some(CpuMode::Syscall(number)) => Some(self.names.syscall_name(number)),
                _ => None,
            },
            prio: part.prio,
            stack: part.stack.map(|stack| self.names.stack_functions(stack)).unwrap_or_default(),
            meanwhile: part.meanwhile.iter().map(|part| self.describe_part(part, events)).collect(),
            evidence: shown_events.map(describe_evidence).collect(),
            evidence_count: part.evidence.len() as u64,
        }
    }
}

fn describe_evidence(event: &Event) -> PartEvidence {
    PartEvidence {
        at: event.at.ns(),
        cpu: known_cpu(event.cpu),
        tid: event.tid.0,
        event: event.what.event_name().to_owned(),
    }
}

fn known_cpu(cpu: u16) -> Option<u16> {
    Some(cpu).filter(|cpu| *cpu != Event::NO_CPU)
}
