//! Runtime verification monitors of the kernel (Documentation/trace/rv): reports of the enabled
//! ones about the measured threads.

use punctual_core::event::{NamedTracepoint, RecordBytes, TracepointFormat};
use punctual_core::format;
use punctual_core::{CpuSet, Event, EventKind, Finding, Severity};
use punctual_host::files::Files;
use punctual_record::{Backend, Recorder, Request, wire};
use std::collections::BTreeMap;

const RV: &str = "/sys/kernel/tracing/rv";
/// The monitor of real-time applications.
const RTAPP: &str = "rtapp";
const BUFFER: usize = 64 << 10;
/// Threads and monitors whose errors are counted.
const COUNTED: usize = 4096;

/// Errors of the monitors that were enabled at the start.
#[derive(Default)]
pub struct Monitors {
    recorder: Option<Recorder>,
    formats: Vec<TracepointFormat>,
    /// The number of errors by thread and tracepoint, with the fields of the first error.
    errors: BTreeMap<(u32, String), (u64, String)>,
    /// The kernel's monitors, if none is enabled.
    idle: Vec<String>,
    trouble: Option<String>,
}

impl Monitors {
    /// Records their errors on these CPUs; does nothing on a kernel without monitors.
    pub fn start(files: &dyn Files, cpus: &CpuSet) -> Monitors {
        let mut monitors = Monitors::default();
        let Ok(available) = files.read(&format!("{RV}/available_monitors")) else {
            return monitors;
        };
        let enabled = files.read(&format!("{RV}/enabled_monitors")).unwrap_or_default();
        let tracepoints = error_tracepoints(&enabled, &|name| {
            files.exists(&format!("/sys/kernel/tracing/events/rv/{name}"))
        });
        if tracepoints.is_empty() {
            monitors.idle = available.lines().map(|line| line.trim().to_owned()).collect();
            return monitors;
        }
        let request = Request {
            buffer: BUFFER,
            backend: Backend::Tracefs,
            tracepoints,
            ..Request::new(&[], cpus.clone())
        };
        match Recorder::start(request) {
            Ok(recorder) => {
                monitors.formats = recorder.names().tracepoints;
                monitors.recorder = Some(recorder);
            }
            Err(why) => monitors.trouble = Some(why.to_string()),
        }
        monitors
    }

    pub fn drain(&mut self) {
        let Some(recorder) = &mut self.recorder else { return };
        let (formats, errors) = (&self.formats, &mut self.errors);
        recorder.drain(&mut |_, bytes| {
            for event in wire::decode(bytes).flatten() {
                let Some((tid, name, fields)) = error_of(&event, formats) else { continue };
                if errors.len() < COUNTED || errors.contains_key(&(tid, name.clone())) {
                    errors.entry((tid, name)).or_insert((0, fields)).0 += 1;
                }
            }
        });
    }

    /// The findings about threads that `label` has a name for.
    pub fn findings<'l>(
        &self,
        phase: &str,
        label: impl Fn(u32) -> Option<&'l str>,
    ) -> Vec<Finding> {
        let of = |((tid, name), (count, fields)): (&(u32, String), &(u64, String))| {
            Some(violation(&format!("{phase}/{}", label(*tid)?), name, *count, fields))
        };
        // Other monitors are about the kernel alone.
        let idle = self.idle.iter().any(|name| name == RTAPP).then(|| {
            let message = "the kernel has runtime verification monitors, and none is enabled";
            Finding::new("rv-monitors-off", Severity::Note, phase, message)
                .evidence(format!("available_monitors: {}", self.idle.join(", ")))
                .remedy(format!("echo {RTAPP} >{RV}/enabled_monitors"))
        });
        let trouble = self.trouble.iter().map(|why| {
            let message = "errors of runtime verification monitors are not recorded";
            Finding::new("rv-not-recorded", Severity::Note, phase, message).evidence(why)
        });
        self.errors.iter().filter_map(of).chain(idle).chain(trouble).collect()
    }
}

/// The error tracepoints of `enabled_monitors`: a nested monitor is `rtapp:sleep` there, and its
/// tracepoint `error_sleep`; a container has none.
fn error_tracepoints(enabled: &str, exists: &dyn Fn(&str) -> bool) -> Vec<NamedTracepoint> {
    let name = |line: &str| {
        let monitor = line.trim().rsplit(':').next()?;
        Some(format!("error_{monitor}")).filter(|name| exists(name))
    };
    let of = |name| NamedTracepoint { group: "rv".to_owned(), name, filter: String::new() };
    let mut all: Vec<_> = enabled.lines().filter_map(name).map(of).collect();
    all.sort();
    all.dedup();
    all.truncate(NamedTracepoint::MAX);
    all
}

/// The thread, the tracepoint and the text of an error.
fn error_of(event: &Event, formats: &[TracepointFormat]) -> Option<(u32, String, String)> {
    let EventKind::Tracepoint { tracepoint, record } = &event.what else { return None };
    let format = formats.get(tracepoint.0 as usize)?;
    let tid = thread_of(format, record).unwrap_or(event.tid.0);
    Some((tid, format.name.clone(), format.describe(record)))
}

/// Monitors of linear temporal logic have the thread in `pid`, automata of tasks in `id`. A monitor
/// of a CPU means the thread that runs there.
fn thread_of(format: &TracepointFormat, record: &RecordBytes) -> Option<u32> {
    let field = format.fields.iter().find(|field| ["pid", "id"].contains(&field.name.as_str()))?;
    field.value(record)?.parse().ok()
}

fn violation(subject: &str, tracepoint: &str, count: u64, fields: &str) -> Finding {
    let monitor = tracepoint.trim_start_matches("rv:error_");
    let message = format!(
        "the kernel's monitor `{monitor}` reports {} of this thread",
        format::counted(count, "violation")
    );
    let remedy = match monitor {
        "pagefault" => "call mlockall(MCL_CURRENT | MCL_FUTURE) before the first cycle",
        "sleep" => {
            "sleep by clock_nanosleep(2) with TIMER_ABSTIME on CLOCK_MONOTONIC, and wait for locks \
             with priority inheritance alone"
        }
        _ => "Documentation/trace/rv of the kernel describes what the monitor allows",
    };
    Finding::new("rv-violation", Severity::Warning, subject, message)
        .evidence(format!("{tracepoint}, the first one: {fields}"))
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::MonotonicNs;
    use punctual_core::event::{FieldKind, RecordField, Tid, TracepointId};

    /// The format of `events/rv/error_sleep/format`: `__data_loc char[] comm`, `pid_t pid`.
    fn sleep_format() -> TracepointFormat {
        let field =
            |name: &str, offset, kind| RecordField { name: name.to_owned(), offset, size: 4, kind };
        let fields = vec![field("comm", 8, FieldKind::TextAt), field("pid", 12, FieldKind::Signed)];
        TracepointFormat { name: "rv:error_sleep".to_owned(), fields }
    }

    fn error(pid: i32) -> Event {
        let mut record = Vec::new();
        record.extend((6u32 << 16 | 16).to_le_bytes());
        record.extend(pid.to_le_bytes());
        record.extend(b"servo\0");
        let what = EventKind::Tracepoint {
            tracepoint: TracepointId(0),
            record: RecordBytes::new(&record),
        };
        Event { at: MonotonicNs(1), cpu: 0, tid: Tid(9), what }
    }

    #[test]
    fn monitor_errors_are_assigned_to_the_recorded_thread() {
        let formats = [sleep_format()];
        let found = error_of(&error(4711), &formats);
        let fields = "comm=servo pid=4711".to_owned();
        assert_eq!(found, Some((4711, "rv:error_sleep".to_owned(), fields)));
        let none = TracepointFormat { fields: Vec::new(), ..sleep_format() };
        assert_eq!(error_of(&error(4711), &[none]).map(|(tid, ..)| tid), Some(9));
        assert_eq!(error_of(&error(4711), &[]), None);
    }

    #[test]
    fn errors_of_measured_threads_are_findings() {
        let mut monitors = Monitors::default();
        let key = |tid| (tid, "rv:error_sleep".to_owned());
        monitors.errors.insert(key(4711), (3, "comm=servo pid=4711".to_owned()));
        monitors.errors.insert(key(1), (9, "comm=init pid=1".to_owned()));
        let found = monitors.findings("attached", |tid| (tid == 4711).then_some("servo"));
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(
            (finding.id.as_str(), finding.subject.as_str()),
            ("rv-violation", "attached/servo")
        );
        assert!(finding.message.contains("`sleep` reports 3 violations"), "{finding:#?}");
    }

    #[test]
    fn only_available_monitors_are_recommended() {
        let found = |available: &[&str]| {
            let idle = available.iter().map(|name| (*name).to_owned()).collect();
            Monitors { idle, ..Monitors::default() }.findings("attached", |_| None)
        };
        assert!(found(&[]).is_empty() && found(&["wip", "wwnr"]).is_empty());
        let remedy = found(&["wwnr", "rtapp", "rtapp:sleep"]).remove(0).remedy.expect("a remedy");
        assert!(remedy.starts_with("echo rtapp >/sys/"), "{remedy}");
    }

    #[test]
    fn tracepoints_are_derived_from_enabled_monitors() {
        let exists = |name: &str| name != "error_rtapp";
        let found = error_tracepoints("rtapp\nrtapp:sleep\nrtapp:pagefault\n", &exists);
        let names: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["rv:error_pagefault", "rv:error_sleep"]);
        assert!(error_tracepoints("", &exists).is_empty());
    }
}
