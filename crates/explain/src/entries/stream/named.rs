//! Tracepoints needed for entries that no event kind covers: recorded by name, read by the names of
//! their fields.

use punctual_core::Nanos;
use punctual_core::event::{RecordBytes, RecordField, TracepointFormat, TracepointId};

/// The tracepoints to record by name, as `SYSTEM:NAME`. The last is for kernels without `csd`.
pub const TRACEPOINTS: [&str; 16] = {
    let mut names = [""; ALL.len()];
    let mut place = 0;
    while place < ALL.len() {
        names[place] = ALL[place].0;
        place += 1;
    }
    names
};

/// The content of such an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventContent {
    Ipi { target: u32, callback: u64 },
    CallQueued { target: u32, call: u64 },
    CallEntry { function: u64, call: u64 },
    CallExit { call: u64 },
    TlbFlush { reason: u64 },
    TimerStart { timer: u64, function: u64 },
    TimerEntry { timer: u64, function: u64 },
    TimerExit,
    TickStop { success: bool, dependency: u32 },
    WorkQueued { work: u64 },
    WorkEntry { work: u64, function: u64 },
    WorkExit,
    Nmi { handler: u64, took: Nanos },
}

/// Decodes the values of its fields.
type DecodeFn = fn([u64; 2]) -> EventContent;

const ALL: [(&str, [&str; 2], DecodeFn); 16] = [
    ("ipi:ipi_send_cpu", ["cpu", "callback"], |[cpu, callback]| EventContent::Ipi {
        target: cpu as u32,
        callback,
    }),
    ("csd:csd_queue_cpu", ["cpu", "csd"], |[cpu, call]| EventContent::CallQueued {
        target: cpu as u32,
        call,
    }),
    ("csd:csd_function_entry", ["func", "csd"], |[function, call]| EventContent::CallEntry {
        function,
        call,
    }),
    ("csd:csd_function_exit", ["csd", ""], |[call, _]| EventContent::CallExit { call }),
    ("timer:timer_start", ["timer", "function"], read_start),
    ("timer:timer_expire_entry", ["timer", "function"], read_entry),
    ("timer:timer_expire_exit", ["timer", ""], |_| EventContent::TimerExit),
    ("timer:hrtimer_start", ["hrtimer", "function"], read_start),
    ("timer:hrtimer_expire_entry", ["hrtimer", "function"], read_entry),
    ("timer:hrtimer_expire_exit", ["hrtimer", ""], |_| EventContent::TimerExit),
    ("timer:tick_stop", ["success", "dependency"], |[success, dependency]| {
        EventContent::TickStop { success: success as u32 != 0, dependency: dependency as u32 }
    }),
    ("workqueue:workqueue_queue_work", ["work", ""], |[work, _]| EventContent::WorkQueued { work }),
    ("workqueue:workqueue_execute_start", ["work", "function"], |[work, function]| {
        EventContent::WorkEntry { work, function }
    }),
    ("workqueue:workqueue_execute_end", ["work", ""], |_| EventContent::WorkExit),
    ("nmi:nmi_handler", ["handler", "delta_ns"], |[handler, took]| EventContent::Nmi {
        handler,
        took: Nanos((took as i64).max(0)),
    }),
    ("tlb:tlb_flush", ["reason", ""], |[reason, _]| EventContent::TlbFlush {
        reason: reason as u32 as u64,
    }),
];

fn read_start([timer, function]: [u64; 2]) -> EventContent {
    EventContent::TimerStart { timer, function }
}

fn read_entry([timer, function]: [u64; 2]) -> EventContent {
    EventContent::TimerEntry { timer, function }
}

/// The positions of their fields on this kernel, by the index of their format.
pub(super) struct NamedFields(Vec<Option<(DecodeFn, [Option<RecordField>; 2])>>);

impl NamedFields {
    /// A format that lacks a field is ignored.
    pub(super) fn from_formats(formats: &[TracepointFormat]) -> NamedFields {
        let one = |format: &TracepointFormat| {
            let (_, names, read) = ALL.iter().find(|(name, ..)| *name == format.name)?;
            let field = |name: &str| format.fields.iter().find(|field| field.name == name).cloned();
            let fields = names.map(field);
            let is_whole =
                names.iter().zip(&fields).all(|(name, field)| name.is_empty() || field.is_some());
            is_whole.then_some((*read, fields))
        };
        NamedFields(formats.iter().map(one).collect())
    }

    pub(super) fn read(
        &self,
        tracepoint: TracepointId,
        record: &RecordBytes,
    ) -> Option<EventContent> {
        let (read, fields) = self.0.get(tracepoint.0 as usize)?.as_ref()?;
        let mut values = [0; 2];
        for (value, field) in values.iter_mut().zip(fields) {
            if let Some(field) = field {
                *value = field.read_number(record)?;
            }
        }
        Some(read(values))
    }
}

/// Each tracepoint with its fields.
#[cfg(test)]
pub(super) fn tracepoint_fields() -> impl Iterator<Item = (&'static str, [&'static str; 2])> {
    ALL.iter().map(|(name, fields, _)| (*name, *fields))
}
