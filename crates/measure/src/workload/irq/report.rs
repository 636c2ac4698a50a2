//! Validations, figures and findings of awaited interrupts.

use super::lanes::{InterruptCounts, IrqLanes};
use super::{Trigger, Waiter, threads};
use crate::workload::clock_cost;
use crate::workload::measurement_loop::Monotonic;
use punctual_core::notes::Absent;
use punctual_core::{
    Cell, Column, Fact, Figure, Finding, Nanos, Notes, Severity, Table, Tolerance, Validation,
};
use punctual_record::perf::{PerfCounter, Whom};

/// Interrupts that perf counts too, after the measured ones: counting takes some 100 ns in each
/// handler.
const COUNTED: u64 = 100;

pub(crate) fn collect_notes(waiter: &mut Waiter) -> Notes {
    let mut notes = Notes { clock_cost: Fact::Known(clock_cost(&Monotonic)), ..Notes::default() };
    add_figures(waiter, &mut notes);
    notes.tables.push(source_table(waiter));
    add_findings(waiter, &mut notes);
    notes.absent = absent_series(waiter);
    if matches!(waiter.way, Trigger::Timer) && waiter.stamps.is_ok() {
        let book = interrupt_counts(waiter);
        let counted = Fact::Known(book.taken - book.unstamped);
        let missed = waiter.stamps.as_ref().map_or(0, |stamps| stamps.missed_entries());
        let tolerance = Tolerance::EXACT
            .allow_fewer(
                book.passed,
                "instants that had passed when the thread went to sleep: no timer is needed",
            )
            .allow_fewer(missed, "times that the kernel skipped the BPF program");
        let source = "timer:hrtimer_expire_entry, of this thread and this very instant";
        let what = "timers of this thread that expired";
        notes
            .validations
            .push(Validation::compare_counts(what, book.taken, counted, source, tolerance));
    }
    if let Some(seen) = &waiter.witnessed {
        notes.figures.extend(seen.clock_figures());
        notes.validations.push(seen.validate_count(interrupt_counts(waiter).taken));
    }
    notes.validations.extend(by_perf(waiter));
    notes
}

fn interrupt_counts(waiter: &Waiter) -> InterruptCounts {
    waiter.lanes.as_ref().map(|lanes| lanes.book).unwrap_or_default()
}

fn add_figures(waiter: &Waiter, notes: &mut Notes) {
    let book = interrupt_counts(waiter);
    let mut count = |name: &str, title: &str, value: u64| {
        notes.figures.push(Figure::new(name, title, value as f64, "count"));
    };
    count("interrupts", "interrupts that were waited for", book.taken);
    if matches!(waiter.way, Trigger::Timer) && waiter.stamps.is_ok() {
        count(
            "served-early",
            "served by an interrupt that had begun before the expiry",
            book.early,
        );
    }
    for (name, title, value) in [
        (
            "mixed",
            "came together with others of the kind, so that the stamp may be another's",
            book.mixed,
        ),
        ("unstamped", "whose handler was not stamped", book.unstamped),
        ("in-vain", "times that the other CPU was not ready or needed no interrupt", book.vain),
        ("passed", "instants that had passed when the thread went to sleep", book.passed),
        (
            "skipped-periods",
            "periods in which none was raised, because the last was late",
            book.skipped,
        ),
    ] {
        if value > 0 {
            count(name, title, value);
        }
    }
    if let Ok(stamps) = &waiter.stamps
        && let Ok(cost) = stamps.measure_stamp_cost()
    {
        let title = "cost of a time stamp in the handler: reading the clock and writing, without \
                     the entry into the BPF program";
        notes.figures.push(Figure::new("stamp-cost", title, cost.ns() as f64, "ns"));
    }
}

fn source_table(waiter: &Waiter) -> Table {
    let text = |text: Option<String>| text.map_or(Cell::Nothing, Cell::from);
    let stamped = match (&waiter.stamps, &waiter.way) {
        (Ok(stamps), _) => {
            let names: Vec<&str> = stamps.tracepoints().iter().map(|(_, name)| *name).collect();
            Some(names.join(", "))
        }
        (Err(_), Trigger::Raised { line, .. }) if line.handler_entry().is_some() => {
            Some("by the kernel, in the handler".to_owned())
        }
        (Err(_), _) => None,
    };
    let on = waiter
        .lanes
        .as_ref()
        .map(IrqLanes::handled_on)
        .filter(|cpus| !cpus.is_empty())
        .map(|cpus| cpus.to_string());
    let source = &waiter.source;
    let raises = matches!(&waiter.way, Trigger::Raised { line, .. } if line.is_raised());
    let raiser =
        raises.then(|| threads::scheduling_below(waiter.scheduling, &waiter.handlers).to_string());
    let cells: [(&str, Cell); 9] = [
        ("source", source.word.into()),
        ("raised by", source.what.into()),
        ("device", text(source.device.clone())),
        ("interrupt", text(source.irq.map(|irq| irq.to_string()))),
        ("handler stamped at", text(stamped)),
        ("handled on CPU", text(on)),
        ("handled in", text(handled_by(waiter))),
        ("raiser scheduled as", text(raiser)),
        ("waits in", source.waits.into()),
    ];
    let rows = cells
        .into_iter()
        .filter(|(_, cell)| *cell != Cell::Nothing)
        .map(|(name, cell)| vec![name.into(), cell]);
    let title = "The interrupt; a handler's stamp is some instructions after its first".to_owned();
    let columns = vec![Column::new("what", ""), Column::new("which", "")];
    Table { name: "interrupt".to_owned(), title, columns, rows: rows.collect() }
}

/// The series that need a timestamp, if there is none.
fn absent_series(waiter: &Waiter) -> Vec<Absent> {
    let Err(why) = &waiter.stamps else { return Vec::new() };
    if interrupt_counts(waiter).stamped > 0 {
        return Vec::new();
    }
    let unmeasured = waiter.series.iter().take(waiter.series.len().saturating_sub(1));
    unmeasured.map(|series| Absent { series: series.clone(), why: why.clone() }).collect()
}

fn add_findings(waiter: &Waiter, notes: &mut Notes) {
    let book = interrupt_counts(waiter);
    let mut note = |id: &str, message: &str, evidence: String| {
        notes
            .findings
            .push(Finding::new(id, Severity::Note, &*waiter.name, message).with_evidence(evidence));
    };
    if book.early > 0 {
        let message = "timers were served by interrupts that had begun before they expired: these \
                       samples are only in the series `expiry-to-thread` and `whole`";
        note("irq-served-early", message, format!("{} of {}", book.early, book.taken));
    }
    if book.mixed > 0 {
        let message = "interrupts came together with others of the same kind: these samples are \
                       only in the series `whole`";
        note("irq-mixed", message, format!("{} of {}", book.mixed, book.taken));
    }
    if let Some(threads) =
        handled_by(waiter).filter(|_| matches!(waiter.way, Trigger::Raised { .. }))
    {
        let message = "the device's handler runs in a thread: the time stamp is of the handler \
                       that wakes it, and handler-to-thread includes it";
        let own_scheduling = waiter.scheduling;
        note(
            "irq-threaded",
            message,
            format!("{threads}; the thread that waits is {own_scheduling}"),
        );
    }
}

/// The threads that run the handler, if any.
fn handled_by(waiter: &Waiter) -> Option<String> {
    let threads: Vec<String> = waiter.handlers.iter().map(ToString::to_string).collect();
    (!threads.is_empty()).then(|| threads.join(", "))
}

/// Further interrupts, while perf counts entries of the handler.
fn by_perf(waiter: &mut Waiter) -> Option<Validation> {
    let stamps = waiter.stamps.as_ref().ok().cloned()?;
    // The device counts its own interrupts; perf would count those of all devices.
    let cpu = match &waiter.way {
        Trigger::Membarrier { cpu, .. } => *cpu,
        Trigger::Timer => waiter.cpu?,
        Trigger::Raised { .. } if waiter.source.own => return None,
        Trigger::Raised { .. } => waiter.cpu?,
    };
    let (mut entries, mut around) = (0, 0);
    let counted = (|| {
        let tracepoints = stamps.tracepoints().iter();
        let counters = tracepoints
            .map(|(group, name)| PerfCounter::open_tracepoint(group, name, Whom::Cpu(cpu)));
        let counters = counters.collect::<Result<Vec<PerfCounter>, String>>()?;
        let outer = stamps.entry_count();
        counters.iter().for_each(PerfCounter::enable);
        let before = stamps.entry_count();
        let outcome = waiter.run_unmeasured(COUNTED, Nanos::MILLI);
        entries = stamps.entry_count() - before;
        counters.iter().for_each(PerfCounter::disable);
        around = stamps.entry_count() - outer - entries;
        outcome.map_err(|why| why.to_string())?;
        counters
            .iter()
            .map(|counter| counter.read().map_err(|why| why.to_string()))
            .sum::<Result<u64, String>>()
    })();
    let source = format!("perf_event_open: the same tracepoints on CPU {cpu}");
    let explanation = format!(
        "while {COUNTED} more were raised after the measured ones; claimed: the BPF program's \
         count"
    );
    let tolerance = Tolerance::EXACT
        .allow_more(around, "while the perf counters were enabled and disabled")
        .allow_more(stamps.missed_entries(), "times that the kernel skipped the BPF program")
        .allow_either(2, "one at each end may be in one count and not yet in the other");
    let what = "handlers entered, in a separate segment";
    Some(
        Validation::compare_counts(what, entries, Fact::from(counted), source, tolerance)
            .with_explanation(explanation),
    )
}
