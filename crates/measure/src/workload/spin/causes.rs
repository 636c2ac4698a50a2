//! The causes that took the CPU from a busy thread, from the kernel's own counts at the end of a
//! gap.
//!
//! Tracepoints of the CPU are counted (perf_event_open(2), one group, one read): a gap with a
//! scheduler switch belongs to another task, else one with a softirq to the softirq, else one with
//! an interrupt to the interrupt; if nothing was counted, the kernel did not cause it: firmware
//! (SMI), hardware, or the hypervisor did.

use punctual_core::{CauseKind, CpuSet, Nanos};
use punctual_record::gaps::{ServedGaps, ThreadGaps};
use punctual_record::perf::{GROUP_MAX, TracepointGroup, Whom};
use punctual_sys::attributes;

/// The cause of a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapCause {
    Task = 0,
    /// A softirq ran, and no other task.
    Softirq = 1,
    /// An interrupt was handled, and neither softirq nor task ran.
    Interrupt = 2,
    /// No event that the kernel counts: firmware, hypervisor.
    Observer = 3,
    Unknown = 4,
}

impl GapCause {
    /// All causes, in numeric order.
    pub const ALL: [GapCause; 5] = [
        GapCause::Task,
        GapCause::Softirq,
        GapCause::Interrupt,
        GapCause::Observer,
        GapCause::Unknown,
    ];

    pub fn to_words(self) -> &'static str {
        match self {
            GapCause::Task => "another task",
            GapCause::Softirq => CauseKind::Softirq.words(),
            GapCause::Interrupt => "interrupt",
            GapCause::Observer => "outside (firmware, hypervisor)",
            GapCause::Unknown => CauseKind::Unknown.words(),
        }
    }
}

/// The tracepoints, each with its cause. The vectors are those of x86; missing ones are omitted.
/// Other architectures have `irq_handler_entry` for their timers and `ipi_entry` for interrupts
/// between CPUs.
const EVENTS: [(&str, &str); 16] = [
    ("sched", "sched_switch"),
    ("irq", "softirq_entry"),
    ("irq", "irq_handler_entry"),
    ("irq_vectors", "local_timer_entry"),
    ("irq_vectors", "reschedule_entry"),
    ("irq_vectors", "call_function_entry"),
    ("irq_vectors", "call_function_single_entry"),
    ("irq_vectors", "irq_work_entry"),
    ("irq_vectors", "x86_platform_ipi_entry"),
    ("irq_vectors", "thermal_apic_entry"),
    ("irq_vectors", "threshold_apic_entry"),
    ("irq_vectors", "deferred_error_apic_entry"),
    ("irq_vectors", "error_apic_entry"),
    ("irq_vectors", "spurious_apic_entry"),
    ("ipi", "ipi_entry"),
    ("nmi", "nmi_handler"),
];

const SWITCH: usize = 0;
const SOFTIRQ: usize = 1;
const NMI: usize = EVENTS.len() - 1;

/// The counts since the last reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CausesCounts {
    pub switches: u64,
    pub softirqs: u64,
    pub interrupts: u64,
    /// Handlers of non-maskable interrupts: one interrupt may have several.
    pub nmis: u64,
}

impl CausesCounts {
    /// An upper bound of the switches away from the spinning thread: each return takes another
    /// switch.
    pub(crate) fn departures_max(self) -> u64 {
        self.switches.div_ceil(2)
    }
    /// The cause of the gap with these counts.
    pub(crate) fn gap_cause(self) -> GapCause {
        match self {
            CausesCounts { switches: 1.., .. } => GapCause::Task,
            CausesCounts { softirqs: 1.., .. } => GapCause::Softirq,
            CausesCounts { interrupts: 1.., .. } | CausesCounts { nmis: 1.., .. } => {
                GapCause::Interrupt
            }
            _ => GapCause::Observer,
        }
    }
    pub fn add(&mut self, more: CausesCounts) {
        self.switches += more.switches;
        self.softirqs += more.softirqs;
        self.interrupts += more.interrupts;
        self.nmis += more.nmis;
    }
}

/// The counts between two readings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CountDeltas {
    pub counts: CausesCounts,
    /// The CPU time of each cause, if the kernel reports it.
    pub served: Option<ServedGaps>,
}

/// Entering and leaving a handler or a switch, including the tracepoints themselves, takes less
/// than this. It is in none of the kernel's timestamps.
const ENTERING: i64 = 10_000;

impl CountDeltas {
    /// The parts of a gap, in the order of [`GapCause::ALL`]; they add up to its length. Time
    /// without any event of the operating system was taken from outside, even if an interrupt
    /// follows in the same gap: a tick that was due meanwhile always does.
    pub(crate) fn split_gap(self, length: i64) -> [i64; GapCause::ALL.len()] {
        let mut parts = [0; GapCause::ALL.len()];
        let Some(served) = self.served else {
            parts[self.counts.gap_cause() as usize] = length;
            return parts;
        };
        let mut left = length;
        let had = [
            (GapCause::Task, served.task),
            (GapCause::Softirq, served.softirq),
            (GapCause::Interrupt, served.interrupt),
        ];
        for (cause, had) in had {
            parts[cause as usize] = had.clamp(0, left);
            left -= parts[cause as usize];
        }
        let CausesCounts { switches, softirqs, interrupts, nmis } = self.counts;
        let entered = (switches + softirqs + interrupts + nmis).min(1_000) as i64;
        let rest_cause =
            if left <= ENTERING * entered { self.counts.gap_cause() } else { GapCause::Observer };
        parts[rest_cause as usize] += left;
        parts
    }
}

pub fn largest_part(parts: &[i64; GapCause::ALL.len()]) -> GapCause {
    let largest_cause = GapCause::ALL.into_iter().max_by_key(|cause| parts[*cause as usize]);
    largest_cause.unwrap_or(GapCause::Unknown)
}

/// Steal time of a CPU so far, from /proc/stat, in steps of a tick (proc_stat(5)).
pub fn read_steal(cpu: usize) -> Option<Nanos> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split(' ').next() == Some(&name))?;
    let ticks: i64 = line.split_ascii_whitespace().nth(8)?.parse().ok()?;
    // USER_HZ is 100 on every supported architecture.
    Some(Nanos(ticks.saturating_mul(10_000_000)))
}

/// The counters of a CPU.
pub struct CpuCounters {
    group: TracepointGroup,
    /// The CPU time of each cause, or why it is unknown.
    pub gaps: Result<ThreadGaps, String>,
    served: ServedGaps,
    /// The index in [`EVENTS`] of each member of the group.
    places: [Option<usize>; GROUP_MAX],
    last: [u64; GROUP_MAX],
}

impl CpuCounters {
    /// Opens them for the single CPU of a thread. The error is why gaps cannot be attributed.
    pub fn open(cpus: &CpuSet) -> Result<CpuCounters, String> {
        let cpu = cpus.first_cpu().filter(|_| cpus.len() == 1);
        let cpu =
            cpu.ok_or("the thread may run on several CPUs: measure with `threads = \"per-cpu\"`")?;
        let (group, places) = TracepointGroup::open_tracepoints(&EVENTS, Whom::Cpu(cpu as u32))?;
        let mut known_places = [None; GROUP_MAX];
        known_places.iter_mut().zip(places).for_each(|(known, place)| *known = Some(place));
        group.enable();
        let last = group.read();
        let gaps = ThreadGaps::start(cpu as u32, attributes::thread_id() as u32)
            .map_err(|why| why.to_string());
        let served = gaps.as_ref().map(ThreadGaps::served_gaps).unwrap_or_default();
        Ok(CpuCounters { group, gaps, served, places: known_places, last })
    }

    /// The counts since the last call. A system call; no allocation.
    pub(crate) fn read_deltas(&mut self) -> CountDeltas {
        let served = self.gaps.as_ref().ok().map(|gaps| {
            let now = gaps.served_gaps();
            let since = now - self.served;
            self.served = now;
            since
        });
        let now = self.group.read();
        let mut counts = CausesCounts::default();
        for ((now, last), place) in now.iter().zip(&self.last).zip(&self.places) {
            let new_events = now.saturating_sub(*last);
            match place {
                Some(SWITCH) => counts.switches += new_events,
                Some(SOFTIRQ) => counts.softirqs += new_events,
                Some(NMI) => counts.nmis += new_events,
                Some(_) => counts.interrupts += new_events,
                None => {}
            }
        }
        self.last = now;
        CountDeltas { counts, served }
    }
}

impl Drop for CpuCounters {
    fn drop(&mut self) {
        self.group.disable();
    }
}

/// Rows that do not count interrupts (MCP: polls; ERR and MIS: of the whole machine), those without
/// a tracepoint at their entry, and NMI, whose tracepoint is in each handler
/// (arch/x86/kernel/irq.c).
const UNTRACED: [&str; 13] =
    ["MCP", "ERR", "MIS", "NMI", "PMI", "RTR", "MCE", "HYP", "HRE", "HVS", "PIN", "NPI", "PIW"];

/// Interrupts of a CPU so far, from /proc/interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Handled {
    /// All rows whose interrupts have a tracepoint at their entry ([`EVENTS`]).
    pub sure: u64,
    /// The surplus of handlers of shared interrupts.
    pub shared: u64,
    /// TLB shootdowns, which are function call interrupts: some kernels also count them in that row
    /// (CAL), others subtract them from it.
    pub shootdowns: u64,
}

impl Handled {
    pub(crate) fn read_for_cpu(cpu: usize) -> Result<Handled, String> {
        let text = std::fs::read_to_string("/proc/interrupts")
            .map_err(|why| format!("/proc/interrupts: {why}"))?;
        parse_column(&text, cpu)
            .ok_or_else(|| format!("/proc/interrupts has no column for CPU {cpu}"))
    }
    /// The interrupts since an earlier reading.
    pub(crate) fn subtract(self, earlier: Handled) -> Handled {
        let shootdowns = self.shootdowns.saturating_sub(earlier.shootdowns);
        let shared = self.shared.saturating_sub(earlier.shared);
        Handled { sure: self.sure.saturating_sub(earlier.sure), shared, shootdowns }
    }
}

fn parse_column(text: &str, cpu: usize) -> Option<Handled> {
    let mut lines = text.lines();
    let name = format!("CPU{cpu}");
    let place = lines.next()?.split_ascii_whitespace().position(|word| word == name)?;
    let mut handled = Handled::default();
    for line in lines {
        let Some((row, counts)) = line.split_once(':') else { continue };
        let Some(count) =
            counts.split_ascii_whitespace().nth(place).and_then(|n| n.parse::<u64>().ok())
        else {
            continue;
        };
        match row.trim() {
            name if UNTRACED.contains(&name) => {}
            "TLB" => handled.shootdowns += count,
            _ => {
                handled.sure += count;
                // The names of the handlers are at the end, separated by commas.
                handled.shared += count * counts.matches(", ").count() as u64;
            }
        }
    }
    Some(handled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_a_tick_follows_is_divided() {
        let counts = CausesCounts { softirqs: 1, interrupts: 1, ..CausesCounts::default() };
        let of = |length, interrupt, softirq, task| {
            let served = Some(ServedGaps { interrupt, softirq, task });
            let parts = CountDeltas { counts, served }.split_gap(length);
            assert_eq!(parts.iter().sum::<i64>(), length, "{parts:?}");
            (parts, largest_part(&parts))
        };
        // 4.2 ms in which the vCPU did not run, and the tick that was due meanwhile.
        let (parts, cause) = of(4_200_000, 6_000, 9_000, 0);
        assert_eq!((parts, cause), ([0, 9_000, 6_000, 4_185_000, 0], GapCause::Observer));
        // A tick alone: its entry and exit belong to it.
        let (parts, cause) = of(21_000, 6_000, 9_000, 0);
        assert_eq!((parts, cause), ([0, 15_000, 6_000, 0, 0], GapCause::Softirq));
        // A long softirq is a softirq.
        assert_eq!(of(900_000, 5_000, 890_000, 0).1, GapCause::Softirq);
        // The kernel's timestamps may begin before the gap does: no part is longer than the gap.
        assert_eq!(of(5_000, 6_000, 0, 0).0, [0, 0, 5_000, 0, 0]);
        let undivided = CountDeltas { counts, served: None }.split_gap(4_200_000);
        assert_eq!(largest_part(&undivided), GapCause::Softirq);
    }

    #[test]
    fn the_deepest_cause_names_the_gap() {
        let counts = |switches, softirqs, interrupts| {
            CausesCounts { switches, softirqs, interrupts, nmis: 0 }.gap_cause()
        };
        assert_eq!(counts(2, 1, 1), GapCause::Task);
        assert_eq!(counts(0, 1, 1), GapCause::Softirq);
        assert_eq!(counts(0, 0, 3), GapCause::Interrupt);
        assert_eq!(counts(0, 0, 0), GapCause::Observer);
    }

    #[test]
    fn interrupts_of_a_cpu_are_summed() {
        let text = "           CPU0       CPU2       \n  1:          9          4  IO-APIC 1-edge \
                    i8042\nLOC:        100        200   Local timer\nMCP:          7          7   \
                    polls\nTLB: 5 6 shootdowns\nERR:          3\nNMI: 8 8 NMIs\n 16: 10 20 \
                    IO-APIC 16-fasteoi uhci, ehci\n";
        let handled = |sure, shared, shootdowns| Some(Handled { sure, shared, shootdowns });
        assert_eq!(parse_column(text, 0), handled(119, 10, 5));
        assert_eq!((parse_column(text, 2), parse_column(text, 1)), (handled(224, 20, 6), None));
    }
}
