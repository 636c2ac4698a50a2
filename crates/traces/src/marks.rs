//! The moments that a trace points at: marks of cyclictest, samples of the osnoise, timerlat and
//! hwlat tracers, heads of the latency tracers.

use crate::clock::Head;
use crate::meaning::{Meaning, Values, to_tid};
use punctual_core::event::{
    LateTimer, MomentSource, Noise, NoiseKind, Tid, TraceMoment, marker_of_cyclictest,
};
use punctual_core::{MonotonicNs, Nanos};
use std::collections::{HashMap, VecDeque};

/// The longest moments that are kept, of each source.
const MOMENTS: usize = 256;
/// Noises of a CPU that are kept until a sample is about them.
const NOISES: usize = 256;
const CPUS: usize = 1 << 12;
/// Characters of a trace's own words that are kept.
const WORDS: usize = 200;
/// The stamp of a sample's record may be this much before its own end: text has microseconds.
const STEP: i64 = 1_000;

/// The moments of a trace so far.
#[derive(Default, Debug)]
pub(crate) struct MomentMarks {
    moments: Vec<TraceMoment>,
    /// Of each CPU the latest ones.
    noises: HashMap<u16, VecDeque<Noise>>,
    /// The latest interrupt of timerlat's timer on each CPU, with the number of its activation.
    timers: HashMap<u16, (u64, LateTimer)>,
}

impl MomentMarks {
    /// In the order of their instants.
    pub(crate) fn sorted_moments(&self) -> Vec<TraceMoment> {
        let mut sorted_moments = self.moments.clone();
        sorted_moments.sort_by_key(|moment| (moment.from, moment.to));
        sorted_moments
    }

    /// Of each source the longest are kept.
    pub(crate) fn add(&mut self, moment: TraceMoment) {
        let of_source = |other: &&TraceMoment| other.source == moment.source;
        if self.moments.iter().filter(of_source).count() >= MOMENTS {
            let places = self.moments.iter().enumerate();
            let same = places.filter(|(_, other)| other.source == moment.source);
            let shortest = same.min_by_key(|(_, other)| other.duration());
            match shortest.map(|(place, other)| (place, other.duration())) {
                Some((place, span)) if span < moment.duration() => self.moments.swap_remove(place),
                _ => return,
            };
        }
        self.moments.push(moment);
    }

    /// A record whose tracepoint is about moments.
    pub(crate) fn on_record(&mut self, meaning: Meaning, head: Head, values: &Values<'_>) {
        let n = |slot: usize| values.numbers[slot];
        let noise = |what: NoiseKind, from: Option<i64>, own: Option<i64>| {
            let (from, own) = (MonotonicNs(from?), Nanos(own.filter(|own| *own >= 0)?));
            Some(Noise { what, from, own })
        };
        let found = match meaning {
            Meaning::Print => return self.on_marker(head, values.texts[0]),
            Meaning::SampleThreshold => return self.of_osnoise(head, n(0), n(1)),
            Meaning::NmiNoise => noise(NoiseKind::Nmi, n(0), n(1)),
            Meaning::IrqNoise => n(0)
                .and_then(|irq| u32::try_from(irq).ok())
                .and_then(|irq| noise(NoiseKind::Irq(irq), n(2), n(3))),
            Meaning::SoftirqNoise => n(0)
                .and_then(|of| u8::try_from(of).ok())
                .and_then(|of| noise(NoiseKind::Softirq(of), n(1), n(2))),
            Meaning::ThreadNoise => {
                n(1).and_then(to_tid).and_then(|tid| noise(NoiseKind::Thread(tid), n(2), n(3)))
            }
            _ => None,
        };
        let room = self.noises.len() < CPUS || self.noises.contains_key(&head.cpu);
        if let Some(noise) = found.filter(|_| room) {
            let of_cpu = self.noises.entry(head.cpu).or_default();
            if of_cpu.len() >= NOISES {
                of_cpu.pop_front();
            }
            of_cpu.push_back(noise);
        }
    }

    fn on_marker(&mut self, head: Head, text: &[u8]) {
        let Some((latency, _)) = marker_of_cyclictest(text) else { return };
        let Some(tid) = head.tid else { return };
        let took = Nanos(latency.saturating_mul(1_000));
        let text = String::from_utf8_lossy(text);
        let words = shorten_words(text.find("hit latency").map_or("", |at| &text[at..]));
        let until = TraceMoment::from_end(MomentSource::Marker, MonotonicNs(head.at), took, tid);
        self.add(TraceMoment { cpu: Some(head.cpu), words, ..until });
    }

    fn of_osnoise(&mut self, head: Head, start: Option<i64>, duration: Option<i64>) {
        let (Some(start), Some(took), Some(tid)) = (start, duration, head.tid) else { return };
        let Some(end) = start.checked_add(took).filter(|end| *end >= start) else { return };
        let (from, to) = (MonotonicNs(start), MonotonicNs(end));
        let until = TraceMoment::from_end(MomentSource::Osnoise, to, to - from, tid);
        self.add(TraceMoment {
            cpu: Some(head.cpu),
            noises: self.noises_between(head.cpu, from, to),
            ..until
        });
    }

    /// The noises of a CPU that began within an interval.
    fn noises_between(&self, cpu: u16, from: MonotonicNs, to: MonotonicNs) -> Vec<Noise> {
        let of_cpu = self.noises.get(&cpu).into_iter().flatten();
        of_cpu.filter(|noise| noise.from >= from && noise.from < to).copied().collect()
    }

    /// A line that a tracer writes without the name of an event: `#1001 context thread
    /// timer_latency 11700 ns` of timerlat, `#1 inner/outer(us): 11/12 ts:… count:6` of hwlat.
    pub(crate) fn line_of_tracer(&mut self, head: Head, text: &[u8]) -> bool {
        let (Ok(text), Some(tid)) = (std::str::from_utf8(text), head.tid) else { return false };
        let mut words = text.strip_prefix('#').into_iter().flat_map(str::split_ascii_whitespace);
        let Some(Ok(number)) = words.next().map(str::parse::<u64>) else { return false };
        let (source, took) = match words.next() {
            Some("context") => {
                let of_thread = words.next() == Some("thread");
                let took = words.nth(1).and_then(|ns| ns.parse().ok());
                if !of_thread {
                    let late = took.filter(|took| *took >= 0).map(Nanos);
                    let timer = late.map(|late| (number, LateTimer { late, running: tid }));
                    if self.timers.len() < CPUS || self.timers.contains_key(&head.cpu) {
                        timer.map(|timer| self.timers.insert(head.cpu, timer));
                    }
                    return took.is_some();
                }
                (MomentSource::Timerlat, took)
            }
            Some("inner/outer(us):") => {
                let longest = |pair: &str| {
                    let (inner, outer) = pair.split_once('/')?;
                    let longest = inner.parse::<i64>().ok()?.max(outer.parse().ok()?);
                    longest.checked_mul(1_000)
                };
                (MomentSource::Hwlat, words.next().and_then(longest))
            }
            _ => return false,
        };
        let Some(took) = took.filter(|took| *took >= 0) else { return false };
        let (cpu, to) = (head.cpu, MonotonicNs(head.at));
        let until = TraceMoment::from_end(source, to, Nanos(took), tid);
        let noises = self.noises_between(cpu, MonotonicNs(until.from.0 - STEP), to);
        let of_timerlat = source == MomentSource::Timerlat;
        let timer = self.timers.get(&cpu).filter(|(of, _)| of_timerlat && *of == number);
        let (timer, words) = (timer.map(|(_, timer)| *timer), shorten_words(text));
        self.add(TraceMoment { cpu: Some(cpu), words, noises, timer, ..until });
        true
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The first words of a text.
fn shorten_words(text: &str) -> String {
    text.trim().chars().take(WORDS).collect()
}

/// The head of a latency tracer (kernel/trace/trace.c: print_trace_header).
#[derive(Default, Debug)]
pub(crate) struct LatencyHead {
    pub(crate) tracer: String,
    latency: Option<(Nanos, Option<u16>)>,
    /// The moment that it states, once its task is known.
    pub(crate) moment: Option<TraceMoment>,
    /// Whose wake-up its first line shows: the task that ran with its priority, and the priority
    /// of the task that was woken.
    woken: Option<(Tid, i16, i16)>,
    switched: bool,
    /// The last task on its CPU.
    last: Option<Tid>,
    /// The entries that it counts, and the lines that there are.
    entries: (u64, u64),
    /// The greatest common divisor of the stamps.
    step: i64,
}

/// From this step on a clock is too coarse for latencies: jiffies.
const COARSE: i64 = 1_000_000;
/// So many lines show the step of the clock.
const LINES: u64 = 6;

impl LatencyHead {
    pub(crate) fn from_tracer(tracer: &str) -> LatencyHead {
        LatencyHead { tracer: shorten_words(tracer), ..LatencyHead::default() }
    }

    fn moment_source(&self) -> Option<MomentSource> {
        match self.tracer.to_ascii_lowercase().as_str() {
            "wakeup" | "wakeup_rt" | "wakeup_dl" => Some(MomentSource::WakeupTracer),
            "irqsoff" | "preemptirqsoff" => Some(MomentSource::IrqsoffTracer),
            "preemptoff" => Some(MomentSource::PreemptoffTracer),
            _ => None,
        }
    }

    /// A line of the head behind `#`; whether it completes the moment.
    pub(crate) fn read_comment(&mut self, text: &str) -> bool {
        let Some(source) = self.moment_source() else { return false };
        if let Some(rest) = text.strip_prefix("latency:") {
            let number = rest.split_ascii_whitespace().next().and_then(|us| us.parse().ok());
            let cpu = rest.split_once("CPU#").map(|(_, cpu)| cpu);
            let cpu = cpu.and_then(|cpu| cpu.split(|of: char| !of.is_ascii_digit()).next());
            let entries = rest.split_once(", #").and_then(|(_, of)| of.split('/').next());
            self.entries.0 = entries.and_then(|of| of.parse().ok()).unwrap_or(0);
            let ns = number.and_then(|us: i64| us.checked_mul(1_000)).filter(|ns| *ns > 0);
            self.latency = ns.map(|ns| (Nanos(ns), cpu.and_then(|cpu| cpu.parse().ok())));
        }
        let task = text.strip_prefix("| task:").filter(|_| self.moment.is_none());
        if let (Some(task), Some((took, cpu))) = (task, self.latency) {
            let name = task.rsplit_once(" (uid").map_or(task, |(name, _)| name);
            let pid = name.trim().rsplit_once('-').and_then(|(_, pid)| pid.parse().ok());
            let Some(tid) = pid.and_then(to_tid) else { return false };
            let until = TraceMoment::from_end(source, MonotonicNs(took.ns()), took, tid);
            let words = format!("{}: {} us", self.tracer, took.ns() / 1_000);
            self.moment = Some(TraceMoment { cpu, words, ..until });
            return true;
        }
        // `=> started at: …`, `=> ended at: …` of irqsoff and preemptoff.
        if let (Some(moment), Some(place)) = (&mut self.moment, text.strip_prefix("=> "))
            && moment.words.len() < WORDS
        {
            moment.words = format!("{}, {}", moment.words, shorten_words(place));
            return true;
        }
        false
    }

    /// A line of it: `88:120:R + [004] 8238: 0:R`, or another.
    pub(crate) fn on_line(&mut self, head: Head, meaning: Option<Meaning>, values: &Values<'_>) {
        let Some(moment) = &self.moment else { return };
        self.entries.1 += 1;
        self.step = gcd(self.step, head.at);
        let tid_at = |slot: usize| values.numbers[slot].and_then(to_tid);
        let prio = |slot: usize| values.numbers[slot].and_then(|prio| i16::try_from(prio).ok());
        match meaning {
            Some(Meaning::Wakeup) if tid_at(1) == Some(moment.tid) => {
                self.woken = tid_at(4).zip(prio(5)).zip(prio(2)).map(|((a, b), c)| (a, b, c));
            }
            Some(Meaning::Switch) => self.switched |= tid_at(5) == Some(moment.tid),
            _ => {}
        }
        self.last = if Some(head.cpu) == moment.cpu { head.tid } else { self.last };
    }

    /// The instant of its first line, where this is the wake-up that it is about: what it counts
    /// from; its line is written later.
    pub(crate) fn wakes_at(&self, meaning: Meaning) -> Option<i64> {
        let moment = self.moment.as_ref().filter(|of| of.source == MomentSource::WakeupTracer)?;
        let is_first = self.entries.1 == 1 && self.woken.is_some() && meaning == Meaning::Wakeup;
        is_first.then_some(moment.from.0)
    }

    /// The moment, with what its lines say of it; it is over.
    pub(crate) fn take_moment(&mut self) -> Option<TraceMoment> {
        let mut moment = self.moment.take()?;
        let (stated, found) = self.entries;
        moment.missing = stated.saturating_sub(found);
        let divides = |step: &i64| *step >= COARSE && moment.duration().ns() % step == 0;
        moment.step = Some(self.step).filter(divides).filter(|_| found >= LINES).map(Nanos);
        Some(moment)
    }

    /// The switch that ends the moment of a wakeup tracer, where the file does not have its end
    /// and the same task ran until then: the tracer writes the head in that switch.
    pub(crate) fn missing_switch(&self) -> Option<(Head, Values<'static>)> {
        let moment = self.moment.as_ref().filter(|of| of.source == MomentSource::WakeupTracer)?;
        let (prev, prev_prio, prio) = self.woken.filter(|(prev, ..)| self.last == Some(*prev))?;
        let cpu = moment.cpu.filter(|_| !self.switched)?;
        let mut values = Values::default();
        let next = i64::from(moment.tid.0);
        values.numbers = [
            None,
            Some(prev.0.into()),
            Some(prev_prio.into()),
            None,
            None,
            Some(next),
            Some(prio.into()),
        ];
        let at = moment.to.0;
        Some((Head { at, cpu, tid: Some(prev), context: None, site: 0 }, values))
    }
}
