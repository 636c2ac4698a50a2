//! Compares written data with the kernel's counts, and reports failures.

use super::file::{RecordBuffer, RecordFile, describe_failure};
use crate::workload::measurement_loop::Monotonic;
use punctual_core::{Fact, Figure, Finding, Notes, Severity, Tolerance, Validation};
use punctual_record::perf::{PerfCounter, Whom};

/// Records written while the kernel counts the calls: few, because forcing may take long.
const COUNTED: u64 = 8;

/// Reports on a file, in the thread that has written it, with its byte counts before and after.
pub(crate) fn report_file(
    record_file: &mut RecordFile,
    subject: &str,
    before: Result<u64, String>,
    after: Result<u64, String>,
) -> Notes {
    let count = record_file.count;
    let mut notes = Notes::default();
    let bytes = before.and_then(|before| after.map(|after| after.saturating_sub(before)));
    let bytes = if record_file.is_uring() {
        Err("writes through io_uring are not in wchar".to_owned())
    } else {
        bytes
    };
    let source = "/proc/thread-self/io: wchar";
    notes.validations.push(Validation::compare_counts(
        "bytes written",
        count.bytes,
        Fact::from(bytes),
        source,
        Tolerance::EXACT,
    ));
    let size = record_file.file_size().map_err(|why| why.to_string());
    let explanation = match count.restarts {
        0 => "the largest offset written".to_owned(),
        restarts => format!(
            "the largest offset written; writing restarted at 0 {restarts} times, over existing \
             data"
        ),
    };
    let size = Validation::compare_counts(
        "size of the file",
        record_file.end,
        Fact::from(size),
        "fstat(2): st_size",
        Tolerance::EXACT,
    );
    notes.validations.push(size.with_explanation(explanation));
    for (name, value, title) in [
        ("records", count.records, "records (batches, of the writer) that were tried"),
        ("bytes", count.bytes, "bytes that the kernel accepted"),
    ] {
        notes.figures.push(Figure::new(
            name,
            title,
            value as f64,
            if name == "bytes" { "bytes" } else { "count" },
        ));
    }
    if count.restarts > 0 {
        let title = "how often writing restarted at 0, at `file_max`";
        notes.figures.push(Figure::new("file-restarts", title, count.restarts as f64, "count"));
    }
    if count.failed > 0 {
        let last = count.last.map_or_else(String::new, describe_failure);
        let message = "records could not be written: a part of the samples measures a failing call";
        let finding = Finding::new("storage-failed", Severity::Warning, subject, message);
        notes.findings.push(
            finding
                .with_evidence(format!("{} of {}, the last: {last}", count.failed, count.records))
                .with_remedy("give the file system room for `file_max`, or set a smaller one"),
        );
        let figure = Figure::new(
            "failed-records",
            "records of which a step failed",
            count.failed as f64,
            "count",
        );
        notes.figures.push(figure.with_count(count.records));
    }
    notes
}

/// Reports records that a task has collected for the writer: those of the unwritten last batch, and
/// those dropped for lack of room.
pub(crate) fn report_unwritten(notes: &mut Notes, subject: &str, held: u64, dropped: u64) {
    let message = "safe-write is the writer's, with time-sharing scheduling; CPU and scheduling \
                   in the table are the task's";
    notes.findings.push(Finding::new("storage-writer", Severity::Note, subject, message));
    let title = "records of the last batch, which was not full and not written";
    notes.figures.push(Figure::new("unwritten-records", title, held as f64, "count"));
    if dropped > 0 {
        let message = "records were dropped: the writer was slower than the task";
        let finding = Finding::new("storage-dropped", Severity::Warning, subject, message);
        notes.findings.push(
            finding
                .with_evidence(format!("{dropped} records found no room"))
                .with_remedy("set a longer `period` or a larger `batch`, or a faster disk"),
        );
    }
    notes.figures.push(Figure::new(
        "dropped-records",
        "records that found no room",
        dropped as f64,
        "count",
    ));
}

/// Further records, while the kernel counts this thread's calls: counting slows every call, so it
/// is not done during the measurement.
pub(crate) fn validate_calls(
    record_file: &mut RecordFile,
    record: &RecordBuffer,
) -> Vec<Validation> {
    let source =
        |call: &str| format!("perf_event_open: tracepoint syscalls:sys_enter_{call}, this thread");
    let explanation = format!("{COUNTED} records more, after the measured ones");
    let names = record_file.call_names();
    let mut counted = |call: &str| {
        // Seen once in thousands of runs: a tracepoint that other processes disable and enable at
        // the same time stays disabled.
        for _ in 0..3 {
            let counter = PerfCounter::open_tracepoint(
                "syscalls",
                &format!("sys_enter_{call}"),
                Whom::ThisThread,
            )?;
            counter.enable();
            for _ in 0..COUNTED {
                record_file.write(&Monotonic, record.as_bytes());
            }
            counter.disable();
            match counter.read() {
                Ok(0) => {}
                counted => return counted.map_err(|why| why.to_string()),
            }
        }
        Err(format!("the tracepoint syscalls:sys_enter_{call} stayed off"))
    };
    names
        .iter()
        .map(|call| {
            let (what, counted) = (format!("{call} calls"), Fact::from(counted(call)));
            Validation::compare_counts(what, COUNTED, counted, source(call), Tolerance::EXACT)
                .with_explanation(explanation.clone())
        })
        .collect()
}
