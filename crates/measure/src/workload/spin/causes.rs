//! What took the CPU from a busy thread, told by the kernel's own counts at the end of a gap.
//!
//! Tracepoints of the CPU are counted (perf_event_open(2), one group, one read): a gap in which the scheduler switched is another task's, else one
//! with a softirq is the softirq's, else one with an interrupt is that; where nothing was counted it was none of the kernel's doing: firmware (SMI),
//! hardware, or the hypervisor.

use crate::workload::perf::{GROUP_MAX, Group, Whom};
use punctual_core::CpuSet;

/// Who made a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Another task ran.
    Task = 0,
    /// A softirq ran, and no other task.
    Softirq = 1,
    /// An interrupt was handled, and neither softirq nor task ran.
    Interrupt = 2,
    /// Nothing that the kernel knows of.
    Outside = 3,
    /// Nobody looked.
    Unknown = 4,
}

impl Cause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Cause; 5] = [Cause::Task, Cause::Softirq, Cause::Interrupt, Cause::Outside, Cause::Unknown];

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Task => "another task",
            Cause::Softirq => "softirq",
            Cause::Interrupt => "interrupt",
            Cause::Outside => "outside (firmware, hypervisor)",
            Cause::Unknown => "not attributed",
        }
    }
}

/// The tracepoints, each with what it tells of. The vectors are those of x86; what is not there is left out. Others hold `irq_handler_entry` for
/// their timers and `ipi_entry` for interrupts between CPUs.
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

const fn cause_of(event: usize) -> Cause {
    match event {
        0 => Cause::Task,
        1 => Cause::Softirq,
        _ => Cause::Interrupt,
    }
}

/// What was counted since the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Switches of the scheduler.
    pub switches: u64,
    /// Softirqs.
    pub softirqs: u64,
    /// Interrupts.
    pub interrupts: u64,
}

impl Counts {
    /// Who made the gap in which these were counted.
    pub fn cause(self) -> Cause {
        match self {
            Counts { switches: 1.., .. } => Cause::Task,
            Counts { softirqs: 1.., .. } => Cause::Softirq,
            Counts { interrupts: 1.., .. } => Cause::Interrupt,
            _ => Cause::Outside,
        }
    }
    /// Adds up.
    pub fn add(&mut self, more: Counts) {
        self.switches += more.switches;
        self.softirqs += more.softirqs;
        self.interrupts += more.interrupts;
    }
}

/// The counters of a CPU.
pub struct Causes {
    group: Group,
    causes: [Option<Cause>; GROUP_MAX],
    last: [u64; GROUP_MAX],
}

impl Causes {
    /// Opens them for the one CPU of a thread. The error says why gaps cannot be attributed.
    pub fn open(cpus: &CpuSet) -> Result<Causes, String> {
        let cpu = cpus.first().filter(|_| cpus.len() == 1);
        let cpu = cpu.ok_or("the thread may run on several CPUs: measure with `threads = \"per-cpu\"`")?;
        let (group, places) = Group::tracepoints(&EVENTS, Whom::Cpu(cpu as u32))?;
        let mut causes = [None; GROUP_MAX];
        causes.iter_mut().zip(places).for_each(|(cause, place)| *cause = Some(cause_of(place)));
        group.enable();
        let last = group.read();
        Ok(Causes { group, causes, last })
    }

    /// What was counted since the last call. A system call; no allocation.
    pub fn since(&mut self) -> Counts {
        let now = self.group.read();
        let mut counts = Counts::default();
        for ((now, last), cause) in now.iter().zip(&self.last).zip(&self.causes) {
            let more = now.saturating_sub(*last);
            match cause {
                Some(Cause::Task) => counts.switches += more,
                Some(Cause::Softirq) => counts.softirqs += more,
                Some(Cause::Interrupt) => counts.interrupts += more,
                _ => {}
            }
        }
        self.last = now;
        counts
    }
}

impl Drop for Causes {
    fn drop(&mut self) {
        self.group.disable();
    }
}

/// Interrupts of a CPU so far by /proc/interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    /// Every row but TLB and those that count no interrupts (MCP, machine check polls; ERR, MIS).
    pub sure: u64,
    /// TLB shootdowns, which are function call interrupts: some kernels count them in that row (CAL) too, others take them out of it.
    pub shootdowns: u64,
}

impl Handled {
    /// Reads them.
    pub fn of(cpu: usize) -> Result<Handled, String> {
        let text = std::fs::read_to_string("/proc/interrupts").map_err(|why| format!("/proc/interrupts: {why}"))?;
        column(&text, cpu).ok_or_else(|| format!("/proc/interrupts has no column for CPU {cpu}"))
    }
    /// What came since an earlier reading.
    pub fn since(self, earlier: Handled) -> Handled {
        let shootdowns = self.shootdowns.saturating_sub(earlier.shootdowns);
        Handled { sure: self.sure.saturating_sub(earlier.sure), shootdowns }
    }
}

fn column(text: &str, cpu: usize) -> Option<Handled> {
    let mut lines = text.lines();
    let name = format!("CPU{cpu}");
    let place = lines.next()?.split_ascii_whitespace().position(|word| word == name)?;
    let mut handled = Handled::default();
    for line in lines {
        let Some((row, counts)) = line.split_once(':') else { continue };
        let Some(count) = counts.split_ascii_whitespace().nth(place).and_then(|n| n.parse::<u64>().ok()) else {
            continue;
        };
        match row.trim() {
            "MCP" | "ERR" | "MIS" => {}
            "TLB" => handled.shootdowns += count,
            _ => handled.sure += count,
        }
    }
    Some(handled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_disturbance_names_the_gap() {
        let counts = |switches, softirqs, interrupts| Counts { switches, softirqs, interrupts }.cause();
        assert_eq!(counts(2, 1, 1), Cause::Task);
        assert_eq!(counts(0, 1, 1), Cause::Softirq);
        assert_eq!(counts(0, 0, 3), Cause::Interrupt);
        assert_eq!(counts(0, 0, 0), Cause::Outside);
    }

    #[test]
    fn interrupts_of_a_cpu_are_summed() {
        let text = "           CPU0       CPU2       \n  1:          9          4  IO-APIC 1-edge i8042\nLOC:        100        200   Local \
                    timer\nMCP:          7          7   polls\nTLB: 5 6 shootdowns\nERR:          3\n";
        let handled = |sure, shootdowns| Some(Handled { sure, shootdowns });
        assert_eq!((column(text, 0), column(text, 2), column(text, 1)), (handled(109, 5), handled(204, 6), None));
    }
}
