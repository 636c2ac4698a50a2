//! `irq`: from raising an interrupt to the first instruction of its handler, and on to the thread
//! that waits for it.

use crate::form::{count_form, duration_form, optional_form, path_form, text_form, word_form};
use crate::kind::{HistogramPlan, Kind, KindFacts, ParameterProblems, parameters, words};
use crate::limits::MAX_PERIOD;
use crate::values;
use punctual_core::Nanos;
use std::path::PathBuf;

words! {
    /// The source of the interrupt.
    IrqSource {
        /// A timer of this CPU: programmed expiry, timer interrupt, expiry of the high-resolution
        /// timer, thread.
        Timer = "timer",
        /// An interrupt that the CPU sends to itself.
        SelfIpi = "self-ipi",
        /// membarrier(2) to another CPU.
        Membarrier = "membarrier",
        /// A device under /dev/uioN.
        Uio = "uio",
        /// QEMU's `edu` PCI device, bound to uio_pci_generic.
        Edu = "edu",
        /// The strobe of a parallel port: QEMU's `isa-parallel`, or a wire from pin 1 to pin 10.
        Parport = "parport",
        /// A line of a GPIO chip wired to another one.
        Gpio = "gpio",
    }
}

parameters! {
    /// Interrupts, raised one by one.
    IrqPlan, IrqSpec {
        /// What raises it: `timer`, `self-ipi`, `membarrier`, `uio`, `edu` (QEMU's PCI device
        /// through uio_pci_generic), `parport` (the strobe of a parallel port) or `gpio`.
        source: IrqSource = IrqSource::Timer, word_form("a source of interrupts");
        /// The distance between two interrupts.
        period: Nanos = Nanos::MILLI, duration_form(Nanos::from_micros(20), MAX_PERIOD);
        /// The CPU that `membarrier` interrupts; without it the first other CPU of the measure,
        /// else the first other one that is allowed.
        target_cpu: Option<u32> = None, optional_form(count_form(0, 8_191));
        /// The device of `uio` (`/dev/uio0`), `edu` (its directory in sysfs), `gpio`
        /// (`/dev/gpiochip0`) or `parport`, where it is `/dev/parport0` unless it is given.
        device: Option<PathBuf> = None, optional_form(path_form());
        /// The GPIO line that is driven.
        out_line: Option<u32> = None, optional_form(count_form(0, 65_535));
        /// The GPIO line that is watched.
        in_line: Option<u32> = None, optional_form(count_form(0, 65_535));
        /// Another board with Zephyr's latmon, by its address, `192.168.1.5` or with a port: it
        /// raises `in_line` and times by its own clock when `out_line` falls.
        witness: Option<String> = None, optional_form(text_form("ADDRESS", values::check_remark));
    }
}

impl IrqPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        validated_by: "/proc/interrupts, or the device's own count",
        ..KindFacts::new("irq", "from an interrupt to its handler and to the waiting thread")
    };
}

impl Kind for IrqPlan {
    fn series_parts(&self) -> Vec<String> {
        let hops: &[&str] = match self.source {
            IrqSource::Timer => &["to-handler", "handler-to-expiry", "expiry-to-thread", "whole"],
            // The time at which the device raised it is unknown.
            IrqSource::Uio => &["handler-to-thread"],
            IrqSource::Gpio if self.witness.is_some() => &["handler-to-thread"],
            _ => &["to-handler", "handler-to-thread", "whole"],
        };
        hops.iter().map(|hop| (*hop).to_owned()).collect()
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::MILLI, resolution: Nanos(100) }
    }
    fn sample_period(&self) -> Option<Nanos> {
        Some(self.period)
    }
}

impl IrqSpec {
    pub(crate) fn check_conflicts(&self, plan: &IrqPlan, problems: &mut ParameterProblems) {
        let usual = IrqPlan::default();
        if problems.threads != 1 {
            problems.report_conflict(
                &self.source,
                "one thread raises the interrupts",
                "leave `threads` out",
            );
        }
        let has_device = matches!(
            plan.source,
            IrqSource::Uio | IrqSource::Edu | IrqSource::Gpio | IrqSource::Parport
        );
        if !has_device {
            problems.report_unused("device", &self.device, &usual.device, "this source has none");
        }
        if matches!(plan.source, IrqSource::Uio | IrqSource::Gpio) && plan.device.is_none() {
            let help = "write `device = \"/dev/uio0\"` or `device = \"/dev/gpiochip0\"`";
            problems.report_conflict(&self.source, "this source needs a device", help);
        }
        if plan.source != IrqSource::Membarrier {
            problems.report_unused(
                "target_cpu",
                &self.target_cpu,
                &usual.target_cpu,
                "only `membarrier` interrupts another CPU",
            );
        }
        if plan.source != IrqSource::Gpio {
            problems.report_unused(
                "out_line",
                &self.out_line,
                &usual.out_line,
                "only a GPIO chip has lines",
            );
            problems.report_unused(
                "in_line",
                &self.in_line,
                &usual.in_line,
                "only a GPIO chip has lines",
            );
            problems.report_unused(
                "witness",
                &self.witness,
                &usual.witness,
                "only lines of a GPIO chip lead to another board",
            );
        } else if plan.out_line.is_none() || plan.in_line.is_none() || plan.out_line == plan.in_line
        {
            let help =
                "write `out_line = 17` and `in_line = 27`, two lines that are wired together";
            problems.report_conflict(&self.out_line, "a GPIO loop needs two different lines", help);
        }
        let witnessed = Nanos::MILLI..=Nanos::SECOND;
        if plan.witness.is_some() && !witnessed.contains(&plan.period) {
            let help = "write a period from 1ms to 1s";
            problems.report_conflict(&self.period, "too short or too long for a witness", help);
        }
    }
}
