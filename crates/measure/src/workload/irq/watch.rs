//! Compares interrupts with independent counts: /proc/interrupts, and those of devices.

use super::raiser::AwaitableInterrupt;
use super::rows::{self, InterruptRows, RowMatch};
use crate::workload::Observer;
use punctual_core::{Fact, Notes, Tolerance, Validation};
use punctual_plan::Word;
use punctual_plan::kinds::IrqSource;
use punctual_record::interrupt::InterruptStamps;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of interrupts, for display and comparison.
#[derive(Clone, Debug)]
pub struct InterruptSource {
    pub word: &'static str,
    pub what: &'static str,
    /// The call in which the thread waits.
    pub waits: &'static str,
    /// The remedy if no interrupt comes.
    pub check: &'static str,
    /// Why timestamps are missing.
    pub unstamped: &'static str,
    /// Whether all of these interrupts belong to this workload.
    pub own: bool,
    pub device: Option<String>,
    pub irq: Option<u32>,
    /// Handlers of the same interrupt.
    pub sharers: usize,
}

impl InterruptSource {
    pub(crate) fn from_source(source: IrqSource) -> InterruptSource {
        let (what, waits, check) = match source {
            IrqSource::Timer => ("a timer of this CPU", "clock_nanosleep(2)", ""),
            IrqSource::SelfIpi => (
                "irq_work of this CPU",
                "poll(2) on a BPF ring buffer",
                "does this CPU have a local APIC?",
            ),
            IrqSource::Membarrier => (
                "a function call on another CPU",
                "membarrier(2), which does not sleep",
                "see `target_cpu`",
            ),
            IrqSource::Uio => ("the device itself", "read(2) of the UIO device", ""),
            IrqSource::Edu => (
                "QEMU's edu device",
                "read(2) of the UIO device",
                "is the interrupt of the device enabled? See `dmesg`",
            ),
            IrqSource::Parport => (
                "the strobe of a parallel port",
                "poll(2) of the parallel port",
                "does the strobe raise the interrupt? QEMU's isa-parallel does so, others need a \
                 wire from pin 1 to pin 10",
            ),
            IrqSource::Gpio => (
                "an edge on a GPIO line",
                "read(2) of the GPIO line",
                "are the two lines wired together?",
            ),
        };
        let is_device = matches!(
            source,
            IrqSource::Edu | IrqSource::Uio | IrqSource::Gpio | IrqSource::Parport
        );
        let unstamped = match source {
            IrqSource::Timer => "/proc/interrupts has no row of the timer (arch_timer)",
            IrqSource::Gpio => "the kernel itself stamps an edge of a GPIO line",
            _ => "neither sysfs nor /proc/interrupts shows the number of the device's interrupt",
        };
        InterruptSource {
            word: source.word(),
            what,
            waits,
            check,
            unstamped,
            own: is_device,
            device: None,
            irq: None,
            sharers: 1,
        }
    }

    /// The same for a device.
    pub(crate) fn with_device(self, device: String, irq: Option<u32>) -> InterruptSource {
        let sharers = irq.map_or(1, rows::read_sharers);
        InterruptSource { device: Some(device), irq, sharers, ..self }
    }
}

/// All counts at about one instant: the file was read after `entries`, and before `entries_after`.
#[derive(Clone, Debug)]
struct CountsReading {
    entries: u64,
    row: Result<u64, String>,
    shootdowns: u64,
    entries_after: u64,
    raised: u64,
    line: Option<(&'static str, u64)>,
}

pub struct InterruptWatch {
    own: bool,
    sharers: u64,
    raises: bool,
    stamps: Result<Arc<InterruptStamps>, String>,
    rows: InterruptRows,
    raised: Arc<AtomicU64>,
    line: Option<Arc<dyn AwaitableInterrupt>>,
    before: Option<CountsReading>,
}

impl InterruptWatch {
    pub fn new(
        source: &InterruptSource,
        stamps: Result<Arc<InterruptStamps>, String>,
        rows: InterruptRows,
        raised: Arc<AtomicU64>,
        line: Option<Arc<dyn AwaitableInterrupt>>,
    ) -> InterruptWatch {
        let raises = line.as_ref().is_none_or(|line| line.is_raised());
        InterruptWatch {
            own: source.own,
            sharers: source.sharers.max(1) as u64,
            raises,
            stamps,
            rows,
            raised,
            line,
            before: None,
        }
    }

    fn read(&self) -> CountsReading {
        let entries = || self.stamps.as_ref().map_or(0, |stamps| stamps.entry_count());
        let shootdowns = || {
            InterruptRows { row: RowMatch::Described("TLB shootdowns"), ..self.rows.clone() }
                .read_count()
                .unwrap_or(0)
        };
        let is_call = self.rows.row == RowMatch::Described("Function call interrupts");
        CountsReading {
            entries: entries(),
            row: self.rows.read_count(),
            shootdowns: if is_call { shootdowns() } else { 0 },
            entries_after: entries(),
            raised: self.raised.load(Ordering::Acquire),
            line: self.line.as_ref().and_then(|line| line.independent_count()),
        }
    }
}

impl Observer for InterruptWatch {
    fn on_start(&mut self) {
        self.before = Some(self.read());
    }

    fn on_end(&mut self) -> Notes {
        let Some(before) = self.before.take() else { return Notes::default() };
        let after = self.read();
        let mut notes = Notes::default();
        let row = before
            .row
            .clone()
            .and_then(|before| after.row.clone().map(|after| after.saturating_sub(before)));
        let raised = after.raised.saturating_sub(before.raised);
        if let Ok(stamps) = &self.stamps {
            let entries = after.entries.saturating_sub(before.entries) / self.sharers;
            let shared = |around: u64| around.div_ceil(self.sharers);
            let shootdowns = after.shootdowns.saturating_sub(before.shootdowns);
            let names: Vec<String> = stamps
                .tracepoints()
                .iter()
                .map(|(group, name)| format!("{group}:{name}"))
                .collect();
            let what = format!("handlers entered ({})", names.join(", "));
            let mut words = "claimed: the BPF program's own count, warm-up and segments that were \
                             not measured included"
                .to_owned();
            if self.sharers > 1 {
                words += &format!(
                    "; {} handlers share this interrupt, and each is entered",
                    self.sharers
                );
            }
            let ends = if self.own && self.raises { 0 } else { 2 };
            let tolerance = Tolerance::EXACT
                .allow_fewer(
                    shared(before.entries_after - before.entries),
                    "while the file was read at the beginning",
                )
                .allow_more(
                    shared(after.entries_after - after.entries),
                    "while the file was read at the end",
                )
                .allow_more(
                    stamps.missed_entries(),
                    "times that the kernel skipped the BPF program, which was already running",
                )
                .allow_either(
                    shootdowns,
                    "TLB shootdowns, in this row or in one of their own, which depends on the \
                     kernel",
                )
                .allow_either(ends, "one at each end may be in one count and not yet in the other");
            let counted = Fact::from(row.clone());
            let validation = Validation::compare_counts(
                what,
                entries,
                counted,
                self.rows.to_string(),
                tolerance,
            );
            notes.validations.push(validation.with_explanation(words));
        }
        if self.raises {
            let tolerance = match self.own {
                true => Tolerance::EXACT,
                false => Tolerance::EXACT.any_more(
                    "others raise such interrupts, and so do warm-up and segments that were not \
                     measured",
                ),
            };
            let words = if self.own { "warm-up included" } else { "at least" };
            let source = self.rows.to_string();
            let validation = Validation::compare_counts(
                "interrupts raised",
                raised,
                Fact::from(row),
                source,
                tolerance,
            );
            notes.validations.push(validation.with_explanation(words));
        }
        if let (Some((who, after)), Some((_, before))) = (after.line, before.line) {
            let counted = Fact::Known(after.saturating_sub(before));
            let claimed =
                if self.raises { raised } else { counted.known_value().copied().unwrap_or(0) };
            if self.raises {
                notes.validations.push(Validation::compare_counts(
                    "interrupts raised",
                    claimed,
                    counted,
                    who,
                    Tolerance::EXACT,
                ));
            }
        }
        notes
    }
}
