//! A recording in Chrome's Trace Event Format (JSON): for chrome://tracing, Perfetto, speedscope
//! and whatever else reads it.
//!
//! The format knows processes and threads and nothing else, and spans of one thread must nest. So
//! every lane is a "thread" of its own, named after what it shows, in the process that it belongs
//! to; CPUs, storage and losses are "processes". Times are microseconds of CLOCK_MONOTONIC with
//! three decimals. Not in it: states of threads, arrows between wake-ups.

use super::RecordingInput;
use crate::marks::{Detail, Details, Lane, Mark, Marks, Shape};
use punctual_bundle::Timebase;
use punctual_core::event::Recorded;
use punctual_core::{Event, EventKind, MonotonicNs, Names, Tid};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// "Processes" that are none: numbers that no process has.
const CPUS: i64 = -1;
const STORAGE: i64 = -2;
const LOSSES: i64 = -3;

/// Writes the whole document. Events come in the order of time.
pub fn write(
    RecordingInput { recorded, names, timebase, .. }: RecordingInput<'_>,
    events: impl IntoIterator<Item = Event>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut trace =
        Trace { names, out, first: true, lanes: HashMap::new(), running: BTreeMap::new() };
    write!(
        trace.out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[",
        about(recorded, timebase)
    )?;
    for (pid, name) in [(CPUS, "CPUs"), (STORAGE, "Storage"), (LOSSES, "Lost events")] {
        trace.name("process_name", pid, 0, name)?;
    }
    for (tid, task) in names.tasks.iter().filter(|(tid, task)| tid.0 == task.process) {
        trace.name("process_name", i64::from(tid.0), 0, &task.comm)?;
    }
    let mut marks = Marks::new(names);
    let mut drawn = Vec::new();
    for event in events {
        trace.runs(&event)?;
        marks.describe(&event, &mut drawn);
        drawn.drain(..).try_for_each(|mark| trace.mark(&mark, recorded.ended))?;
    }
    marks.finish(&mut drawn);
    drawn.drain(..).try_for_each(|mark| trace.mark(&mark, recorded.ended))?;
    trace.losses(recorded)?;
    write!(trace.out, "\n]}}\n")
}

fn about(recorded: &Recorded, timebase: Timebase) -> Value {
    let mut about = json!({
        "tool": "punctual", "recorder": recorded.recorder, "clock": "CLOCK_MONOTONIC",
        "lost": recorded.lost(),
    });
    if let Some(mark) = timebase.mark() {
        about["timebase"] = mark.into();
    }
    about
}

struct Trace<'a, 'w> {
    names: &'a Names,
    out: &'w mut dyn Write,
    first: bool,
    /// The number of each lane, which stands for a thread.
    lanes: HashMap<Lane, i64>,
    /// Who runs on each CPU, since when.
    running: BTreeMap<u16, (Tid, MonotonicNs)>,
}

impl Trace<'_, '_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.out.write_all(comma.as_bytes())?;
        serde_json::to_writer(&mut self.out, event).map_err(io::Error::from)
    }

    fn name(&mut self, kind: &str, pid: i64, tid: i64, name: &str) -> io::Result<()> {
        self.put(
            &json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": { "name": name } }),
        )
    }

    /// Who ran on a CPU, from switch to switch.
    fn runs(&mut self, event: &Event) -> io::Result<()> {
        match event.what {
            EventKind::Switch { next, .. } => {
                let before = self.running.insert(event.cpu, (next, event.at));
                match before {
                    Some((tid, since)) if tid == event.tid && tid != Tid::IDLE => {
                        let shape = Shape::Span(since, event.at);
                        let name = self.names.task(tid);
                        let place = (CPUS, i64::from(event.cpu));
                        self.span(place, &name, shape, json!({ "tid": tid.0 }), event.at)
                    }
                    Some(_) => Ok(()),
                    None => self.name(
                        "thread_name",
                        CPUS,
                        event.cpu.into(),
                        &format!("CPU {}", event.cpu),
                    ),
                }
            }
            // Who ran after a gap is unknown.
            EventKind::Lost { .. } => {
                self.running.insert(event.cpu, (Tid::IDLE, event.at));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn mark(&mut self, mark: &Mark<'_>, ended: MonotonicNs) -> io::Result<()> {
        let place = self.place(mark.lane)?;
        self.span(place, &mark.name, mark.shape, Value::Object(arguments(&mark.details)), ended)
    }

    fn span(
        &mut self,
        (pid, tid): (i64, i64),
        name: &str,
        shape: Shape,
        args: Value,
        ended: MonotonicNs,
    ) -> io::Result<()> {
        let ts = micros(shape.from().ns());
        let until = |to: MonotonicNs| micros((to - shape.from()).ns());
        self.put(&match shape {
            Shape::Span(_, to) => {
                json!({
                    "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": until(to),
                    "args": args,
                })
            }
            Shape::Begun(from) => {
                let dur = until(ended.max(from));
                json!({
                    "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
                    "args": args, "cname": "grey",
                })
            }
            Shape::Instant(_) => {
                json!({
                    "ph": "i", "s": "t", "name": name, "pid": pid, "tid": tid, "ts": ts,
                    "args": args,
                })
            }
            Shape::Value(_, value) => {
                json!({
                    "ph": "C", "name": name, "id": tid, "pid": pid, "tid": tid, "ts": ts,
                    "args": { "value": value },
                })
            }
        })
    }

    fn place(&mut self, lane: Lane) -> io::Result<(i64, i64)> {
        let process = |tid: Tid| self.names.tasks.get(&tid).map_or(tid.0, |task| task.process);
        let pid = match (lane.thread(), lane.cpu()) {
            (Some(tid), _) => process(tid).into(),
            (None, Some(_)) => CPUS,
            (None, None) => STORAGE,
        };
        // After the numbers of CPUs, which are threads of their own.
        let next = i64::from(u16::MAX) + 1 + self.lanes.len() as i64;
        let number = *self.lanes.entry(lane).or_insert(next);
        if number == next {
            let title = match lane.thread() {
                Some(tid) => {
                    format!("{} ({}) {}", self.names.task(tid), tid.0, lane.title(self.names))
                }
                None => lane.title(self.names),
            };
            self.name("thread_name", pid, number, &title)?;
        }
        Ok((pid, number))
    }

    fn losses(&mut self, recorded: &Recorded) -> io::Result<()> {
        for source in recorded.sources.iter().filter(|source| source.lost > 0 || source.torn > 0) {
            let args =
                json!({ "lost": source.lost, "torn": source.torn, "recorded": source.recorded });
            self.span(
                (LOSSES, 0),
                &source.name,
                Shape::Instant(recorded.ended),
                args,
                recorded.ended,
            )?;
        }
        Ok(())
    }
}

fn arguments(details: &Details<'_>) -> Map<String, Value> {
    let value = |detail: &Detail<'_>| match detail {
        Detail::Number(n) => json!(n),
        Detail::Address(at) => json!(format!("{at:#x}")),
        Detail::Span(span) => json!(span.ns()),
        Detail::Text(text) => json!(text),
    };
    let unit = |detail: &Detail<'_>| if matches!(detail, Detail::Span(_)) { " (ns)" } else { "" };
    details
        .iter()
        .map(|(name, detail)| (format!("{name}{}", unit(detail)), value(detail)))
        .collect()
}

/// A double holds nanoseconds exactly for 104 days since boot, and the format has nothing better.
fn micros(ns: i64) -> f64 {
    ns as f64 / 1e3
}
