//! The timebase of a run's figures, and the remarks that must accompany each of them.

use crate::ran_on::RanOn;
use serde::{Deserialize, Serialize};

/// The time that a run was measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timebase {
    /// The time of the measured system.
    #[default]
    Own,
    /// Counted in the instructions of a virtual machine.
    Virtual,
    /// The time of this system, in a machine that it translates.
    Emulated,
    /// The time of this system, in a machine on its processor.
    Guest,
    /// Several timebases.
    Mixed,
}

impl Timebase {
    /// The timebases of virtual machines, with the suffixes of their target names.
    const NAMED: [(Timebase, &'static str); 3] = [
        (Timebase::Virtual, "virtual time"),
        (Timebase::Emulated, "tcg"),
        (Timebase::Guest, "kvm"),
    ];

    /// The timebase of a run on a target, or of a local one without.
    pub fn from_target(target: Option<&RanOn>) -> Timebase {
        target
            .filter(|target| target.kind == "vm")
            .map_or(Timebase::Own, |target| Timebase::of_machine(&target.name))
    }

    /// The timebase of a virtual machine of this name. If the name does not show it, it is at least
    /// not real time.
    pub fn of_machine(name: &str) -> Timebase {
        Timebase::NAMED
            .iter()
            .find(|(_, word)| name.ends_with(word))
            .map_or(Timebase::Guest, |(time, _)| *time)
    }

    /// The common timebase.
    pub fn common_timebase(all: impl IntoIterator<Item = Timebase>) -> Timebase {
        let join = |one, other| if one == other { one } else { Timebase::Mixed };
        all.into_iter().reduce(join).unwrap_or_default()
    }

    /// The suffix of target names.
    pub fn target_suffix(self) -> &'static str {
        Timebase::NAMED.iter().find(|(time, _)| *time == self).map_or("", |(_, word)| word)
    }

    /// The word before every unit: `virtual` of `virtual µs`.
    pub fn unit_prefix(self) -> Option<&'static str> {
        match self {
            Timebase::Own => None,
            Timebase::Virtual => Some("virtual"),
            Timebase::Emulated => Some("emulated"),
            Timebase::Guest => Some("guest"),
            Timebase::Mixed => Some("mixed"),
        }
    }

    /// A unit in this timebase: `virtual µs`.
    pub fn format_unit(self, unit: &str) -> String {
        self.unit_prefix().map_or(unit.to_owned(), |word| format!("{word} {unit}"))
    }

    /// Two words shown below every table and plot of a page, so that copied parts still state it.
    pub fn clock_note(self) -> Option<&'static str> {
        match self {
            Timebase::Own => None,
            Timebase::Virtual => Some("virtual time"),
            Timebase::Emulated => Some("emulated time"),
            Timebase::Guest => Some("a guest's time"),
            Timebase::Mixed => Some("times of several clocks"),
        }
    }

    /// Its meaning in one line, shown once.
    pub fn short_meaning(self) -> Option<&'static str> {
        match self {
            Timebase::Own => None,
            Timebase::Virtual => {
                Some("virtual time: 8 ns an instruction; it compares software paths, not hardware")
            }
            Timebase::Emulated => Some(
                "emulated (tcg): the noise of QEMU and of its host is in these figures; they are \
                 not those of any hardware",
            ),
            Timebase::Guest => {
                Some("guest (virtual machine): the figures include what its host did meanwhile")
            }
            Timebase::Mixed => Some(
                "mixed: some of these times are virtual or of a virtual machine, and do not \
                 compare with the others",
            ),
        }
    }

    /// The meaning and limits of figures in it, at length.
    pub fn full_meaning(self) -> Option<&'static str> {
        match self {
            Timebase::Own | Timebase::Mixed => None,
            Timebase::Virtual => Some(
                "virtual time: 1 instruction = 8 ns; no caches, no frequency changes, no firmware \
                 interrupts, no second CPU: these figures compare software paths (preemption \
                 model, lock, driver, configuration), they are not the latencies of any hardware; \
                 any change of the kernel's command line, of memory or of files in the guest is \
                 another timeline: a claim about a kernel needs several seeds",
            ),
            Timebase::Emulated => Some(
                "translated by QEMU in this system's time (tcg), not deterministic: these figures \
                 include the noise of the host and of QEMU, milliseconds in the worst case on \
                 every kernel; they show behaviour, not the latencies of any hardware",
            ),
            Timebase::Guest => Some(
                "a virtual machine in this system's time (kvm), not deterministic: the figures \
                 include what the host and its hypervisor did meanwhile",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timebase_is_derived_from_the_name_of_the_target() {
        for (time, _) in Timebase::NAMED {
            assert_eq!(
                Timebase::of_machine(&format!("the kernel 6.1-rt, {}", time.target_suffix())),
                time
            );
        }
        assert_eq!(Timebase::of_machine("something new"), Timebase::Guest);
        assert_eq!(Timebase::from_target(None), Timebase::Own);
    }

    #[test]
    fn different_times_together_are_mixed() {
        use Timebase::{Mixed, Own, Virtual};
        assert_eq!(Timebase::common_timebase([]), Own);
        assert_eq!(Timebase::common_timebase([Virtual, Virtual]), Virtual);
        assert_eq!(Timebase::common_timebase([Virtual, Own, Own]), Mixed);
        assert_eq!(Timebase::common_timebase([Virtual, Own, Virtual]), Mixed);
    }

    #[test]
    fn every_timebase_but_the_systems_own_has_a_mark() {
        for time in [Timebase::Virtual, Timebase::Emulated, Timebase::Guest, Timebase::Mixed] {
            assert!(
                time.short_meaning()
                    .is_some_and(|mark| mark.starts_with(time.unit_prefix().unwrap()))
            );
        }
        assert_eq!((Timebase::Own.unit_prefix(), Timebase::Own.short_meaning()), (None, None));
    }
}
