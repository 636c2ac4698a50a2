//! /proc/interrupts and /proc/softirqs (Documentation/filesystems/proc.rst).

use crate::files::Files;
use punctual_core::Fact;
use punctual_core::cpuset::MAX_CPUS;
use serde::{Deserialize, Serialize};

/// Lines beyond this number are counted but not stored. The largest machines have some thousands.
const MAX_LINES: usize = 4096;
/// Counts beyond this number are not stored either: lines times CPUs of the largest machines.
const MAX_COUNTS: usize = 1 << 20;
/// A description is cut at this many characters; a name comes from a driver.
const MAX_DESCRIPTION: usize = 200;

/// The count of each interrupt on each CPU since boot.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Interrupts {
    /// The CPUs of the columns: the online ones.
    pub cpus: Vec<usize>,
    pub lines: Vec<InterruptLine>,
    /// Lines that exceeded the limit, or were not understood.
    pub left_out: usize,
}

/// One interrupt.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InterruptLine {
    /// A number, or the kernel's short name of an interrupt without number (`LOC`, `RES`,
    /// `NET_RX`).
    pub id: String,
    /// The counts, by [`Interrupts::cpus`]; a system-wide count (`ERR`) is a single one.
    pub counts: Vec<u64>,
    /// Controller, trigger and requester, as the kernel prints them: `IO-APIC 4-edge ttyS0`.
    pub description: String,
}

impl Interrupts {
    /// Reads one of the two files.
    pub fn read(files: &dyn Files, path: &str) -> Fact<Interrupts> {
        match files.read(path) {
            Ok(text) => parse(&text).map(Fact::Known).unwrap_or_else(|| {
                Fact::Unavailable(format!("{path} does not begin with a line of CPUs"))
            }),
            Err(why) => Fact::Unavailable(why.to_string()),
        }
    }

    /// The count of an interrupt on a CPU.
    pub fn count_on(&self, line: &InterruptLine, cpu: usize) -> Option<u64> {
        line.counts.get(self.cpus.iter().position(|c| *c == cpu)?).copied()
    }
}

impl InterruptLine {
    /// The interrupt's number, if it has one.
    pub fn irq_number(&self) -> Option<u32> {
        self.id.parse().ok()
    }
    /// The requester: the description without controller, hardware number and trigger
    /// (kernel/irq/proc.c, show_interrupts); several are separated by `, `.
    pub fn requester_name(&self) -> String {
        let mut words = self.description.split_whitespace().peekable();
        if self.irq_number().is_none() {
            return self.description.clone();
        }
        words.next();
        words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        words.next_if(|word| ["Edge", "Level", "edge", "level"].contains(word));
        words.collect::<Vec<_>>().join(" ")
    }
}

fn parse(text: &str) -> Option<Interrupts> {
    let mut lines = text.lines();
    let column = |word: &str| word.strip_prefix("CPU")?.parse().ok();
    let cpus: Vec<usize> =
        lines.next()?.split_whitespace().map(column).take(MAX_CPUS).collect::<Option<_>>()?;
    if cpus.is_empty() {
        return None;
    }
    let mut interrupts = Interrupts { cpus, ..Interrupts::default() };
    let mut room = MAX_COUNTS;
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match parse_line(line, interrupts.cpus.len()) {
            Some(line) if interrupts.lines.len() < MAX_LINES && line.counts.len() <= room => {
                room -= line.counts.len();
                interrupts.lines.push(line);
            }
            _ => interrupts.left_out += 1,
        }
    }
    Some(interrupts)
}

fn parse_line(line: &str, cpus: usize) -> Option<InterruptLine> {
    let (id, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace().peekable();
    let mut counts = Vec::new();
    while counts.len() < cpus
        && let Some(count) = words.peek().and_then(|word| word.parse().ok())
    {
        counts.push(count);
        words.next();
    }
    let description = words.collect::<Vec<_>>().join(" ");
    let description = description.chars().take(MAX_DESCRIPTION).collect();
    let id = id.trim();
    (!id.is_empty() && id.len() <= 16 && !counts.is_empty()).then(|| InterruptLine {
        id: id.into(),
        counts,
        description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interrupt_lines_of_several_architectures_are_parsed() {
        let text = "           CPU0       CPU2\n24:          1          7   IO-APIC   5-edge      \
                    ACPI:Ged\n36:          0     142507 PCI-MSIX-0000:00:02.0   1-edge      \
                    virtio1-req.0\n11:       3421       3390     GICv2  27 Level     \
                    arch_timer\n16:          0          0  IO-APIC  16-fasteoi   ehci_hcd:usb1, \
                    ata_piix\nLOC:      35908      53096   Local timer interrupts\nERR:          \
                    3\nnonsense\n";
        let interrupts = parse(text).expect("it has its line of CPUs");
        assert_eq!(
            (interrupts.cpus.as_slice(), interrupts.lines.len(), interrupts.left_out),
            (&[0, 2][..], 6, 1)
        );
        let names: Vec<String> =
            interrupts.lines.iter().map(InterruptLine::requester_name).collect();
        let expected = [
            "ACPI:Ged",
            "virtio1-req.0",
            "arch_timer",
            "ehci_hcd:usb1, ata_piix",
            "Local timer interrupts",
            "",
        ];
        assert_eq!(names, expected);
        assert_eq!(interrupts.count_on(&interrupts.lines[1], 2), Some(142_507));
        assert_eq!(
            interrupts.count_on(&interrupts.lines[1], 1),
            None,
            "an offline CPU has no column"
        );
        assert_eq!(
            interrupts.count_on(&interrupts.lines[5], 2),
            None,
            "ERR is of the whole system"
        );
    }

    #[test]
    fn malformed_proc_interrupts_is_refused() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("CPU0 CPUx\n"), None);
        assert_eq!(parse("\n 1: 0 x"), None);
    }

    #[test]
    fn interrupt_lines_beyond_the_limit_are_counted() {
        let mut text = String::from("CPU0\n");
        (0..MAX_LINES + 5).for_each(|n| text.push_str(&format!("{n}: 1 chip 1-edge x\n")));
        let interrupts = parse(&text).expect("it has its line of CPUs");
        assert_eq!((interrupts.lines.len(), interrupts.left_out), (MAX_LINES, 5));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(CPU0 CPU1\n)?[ -~\n:0-9é]{0,200}") {
            if let Some(interrupts) = parse(&text) {
                interrupts.lines.iter().for_each(|line| { line.requester_name(); });
            }
        }
    }
}
