//! The input of the rules.

use super::ProcessFacts;
use super::cgroups::Cgroups;
use super::outcome::{
    CheckOutcome, Fix, RuleVerdict, format_evidence, not_applicable, unknown_outcome,
};
use super::tasks::{self, CheckedTask};
use crate::environment::{
    BootList, CpuInfo, Environment, KernelCommandLine, KernelConfig, ListReader,
    capture_environment,
};
use crate::files::Files;
use punctual_core::{CpuSet, Fact};
use std::cell::OnceCell;

/// How the CPUs for real time were chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    Named,
    /// They are isolated: by `isolcpus=` or a partition.
    Isolated,
    /// No CPU is isolated, so all are judged.
    All,
}

/// The system that is checked. Facts that only some rules need are read on first use.
pub struct Context<'a> {
    files: &'a dyn Files,
    pub environment: Environment,
    /// The CPUs that are for real time.
    pub cpus: CpuSet,
    pub chosen: Chosen,
    /// A directory on the file system of the results.
    pub output: String,
    /// The owner of cpusets, and the partitions.
    pub(super) cgroups: Cgroups,
    process: OnceCell<ProcessFacts>,
    tasks: OnceCell<Fact<Vec<CheckedTask>>>,
}

impl<'a> Context<'a> {
    /// A system with its environment captured now. `cpus` are the ones for real time; by default
    /// the isolated ones, and without these all online CPUs.
    pub fn new(files: &'a dyn Files, cpus: Option<CpuSet>) -> Context<'a> {
        Context::from_environment(files, capture_environment(files), cpus)
    }

    /// A system with an environment captured earlier.
    pub fn from_environment(
        files: &'a dyn Files,
        environment: Environment,
        cpus: Option<CpuSet>,
    ) -> Context<'a> {
        let cgroups = Cgroups::read(files);
        let mut isolated = environment.topology.isolated.known_value().cloned().unwrap_or_default();
        isolated = isolated.union(&cgroups.partitioned);
        let (cpus, chosen) = match cpus {
            Some(cpus) => (cpus, Chosen::Named),
            None if !isolated.is_empty() => (isolated, Chosen::Isolated),
            None => (
                environment.topology.online.known_value().cloned().unwrap_or_default(),
                Chosen::All,
            ),
        };
        let (process, tasks, output) = (OnceCell::new(), OnceCell::new(), "/".to_owned());
        Context { files, environment, cpus, chosen, output, cgroups, process, tasks }
    }

    /// Sets the directory for results (absolute).
    pub fn with_output(mut self, directory: impl Into<String>) -> Context<'a> {
        self.output = directory.into();
        self
    }

    pub fn files(&self) -> &dyn Files {
        self.files
    }

    /// The CPUs reserved for real time; the rule does not apply if there are none.
    pub(crate) fn dedicated_cpus(&self) -> Result<&CpuSet, CheckOutcome> {
        match self.chosen {
            Chosen::Named | Chosen::Isolated => Ok(&self.cpus),
            Chosen::All => Err(match &self.environment.topology.online {
                Fact::Known(online) => not_applicable(
                    "no CPU is isolated for real time",
                    format!("CPUs {online} are alike"),
                ),
                _ => unknown_outcome(unknown_reason(&self.environment.topology.online)),
            }),
        }
    }

    /// The online CPUs that are not for real time.
    pub(crate) fn housekeeping_cpus(&self) -> Result<CpuSet, CheckOutcome> {
        Ok(require_known(&self.environment.topology.online)?.difference(&self.cpus))
    }

    /// Facts of the checked CPUs.
    pub(crate) fn cpu_infos(&self) -> Result<Vec<&CpuInfo>, CheckOutcome> {
        let all_cpus = require_known(&self.environment.cpus)?;
        let conclude: Vec<&CpuInfo> =
            all_cpus.iter().filter(|info| self.cpus.contains(info.cpu)).collect();
        if conclude.is_empty() {
            return Err(unknown_outcome(format!("none of the CPUs {} is online", self.cpus)));
        }
        Ok(conclude)
    }

    /// One of [`crate::environment::SETTINGS`].
    pub fn read_setting(&self, path: &str) -> Result<String, CheckOutcome> {
        require_known(&self.environment.settings.get(path)).cloned()
    }

    /// A setting that is a number.
    pub fn read_number(&self, path: &str) -> Result<i64, CheckOutcome> {
        as_number(path, &self.read_setting(path)?)
    }

    /// A setting of an optional part of the kernel; the rule does not apply if it is not built in.
    pub(crate) fn setting_of(&self, path: &str, option: &str) -> Result<String, CheckOutcome> {
        self.read_setting(path).map_err(|unread| {
            match self.environment.kernel.config.known_value() {
                Some(config) if !config.has_option(option) => not_applicable(
                    format!("the kernel has no CONFIG_{option}"),
                    format!("{} has it not set", config.source.0),
                ),
                _ => unread,
            }
        })
    }

    /// The same for a number.
    pub fn number_of(&self, path: &str, option: &str) -> Result<i64, CheckOutcome> {
        as_number(path, &self.setting_of(path, option)?)
    }

    /// The whole text of a file.
    pub fn read(&self, path: &str) -> Result<String, CheckOutcome> {
        self.files.read_trimmed(path).map_err(|why| unknown_outcome(why.to_string()))
    }

    pub(crate) fn kernel_config(&self) -> Result<&KernelConfig, CheckOutcome> {
        require_known(&self.environment.kernel.config)
    }

    pub fn command_line(&self) -> Result<&KernelCommandLine, CheckOutcome> {
        require_known(&self.environment.kernel.command_line)
    }

    /// The limits and capabilities of this process.
    pub(super) fn process_facts(&self) -> &ProcessFacts {
        self.process.get_or_init(|| ProcessFacts::read(self.files))
    }

    /// The tasks of the system.
    pub(super) fn checked_tasks(&self) -> Result<&[CheckedTask], CheckOutcome> {
        require_known(self.tasks.get_or_init(|| tasks::read(self.files))).map(Vec::as_slice)
    }

    /// Ends a rule that applies to x86 only. The kernel names its architecture since Linux 6.1;
    /// before, only x86 has a vendor in /proc/cpuinfo (arch/x86/kernel/cpu/proc.c), and arm64 and
    /// riscv64 have their own lines.
    pub(crate) fn only_x86(&self) -> Result<(), CheckOutcome> {
        let (kernel, machine) = (&self.environment.kernel, &self.environment.machine);
        let evidence = match (&kernel.architecture, &machine.vendor, &machine.cpu_model) {
            (Fact::Known(name), ..) if is_x86(name) => return Ok(()),
            (Fact::Known(name), ..) => format_evidence("/proc/sys/kernel/arch", name),
            (_, Fact::Known(_), _) => return Ok(()),
            (_, _, Fact::Known(model)) => {
                format!("/proc/cpuinfo has no vendor_id; the processor is `{model}`")
            }
            (_, vendor, _) => return Err(unknown_outcome(unknown_reason(vendor))),
        };
        Err(not_applicable("this is not an x86", evidence))
    }

    /// Whether the architecture is known not to be x86.
    pub(crate) fn is_no_x86(&self) -> bool {
        self.only_x86().is_err_and(|outcome| !outcome.applies)
    }

    /// The CPUs that may be isolated: those for real time, if others remain. No remedy isolates all
    /// CPUs, or CPUs that the user did not choose, or the first one, which the rule
    /// `housekeeping-cpus` excludes.
    pub(crate) fn to_isolate(&self) -> Option<CpuSet> {
        let has_other_cpus = self.housekeeping_cpus().is_ok_and(|rest| !rest.is_empty());
        let cpus = self.cpus.difference(&CpuSet::from_cpu(0));
        Some(cpus).filter(|cpus| self.chosen != Chosen::All && has_other_cpus && !cpus.is_empty())
    }

    /// A parameter of the kernel's command line: to be added, or to replace those of the same name
    /// with other values. `None` if it is already present, in force or not.
    pub(crate) fn boot_parameter(&self, name: &str, value: &str) -> Option<Fix> {
        let word = |value: &str| match value {
            "" => name.to_owned(),
            value => format!("{name}={value}"),
        };
        let line = self.environment.kernel.command_line.known_value();
        let present_values = line.map_or(Vec::new(), |line| line.values_of(name));
        if present_values.iter().any(|there| there == value) {
            return None;
        }
        let wanted = word(value);
        let change =
            match present_values.iter().map(|value| word(value)).collect::<Vec<_>>().join(" ") {
                none if none.is_empty() => format!("add `{wanted}` to the kernel's command line"),
                others => format!("replace `{others}` by `{wanted}` on the kernel's command line"),
            };
        let place = match () {
            () if self.files.exists("/etc/default/grub") => " (GRUB_CMDLINE_LINUX, update-grub)",
            () if self.files.exists("/boot/firmware/cmdline.txt") => {
                " (/boot/firmware/cmdline.txt)"
            }
            () => "",
        };
        Some(Fix::by_hand(format!("{change}{place} and reboot")))
    }

    /// Creates a partition of them.
    pub(crate) fn isolation_fix(&self) -> Option<Fix> {
        self.to_isolate().map(|cpus| Fix::by_hand(format!("punctual isolate create {cpus}")))
    }

    /// The words of the command line with this name, if any.
    pub(crate) fn asked_for(&self, name: &str) -> Option<String> {
        let values = self.environment.kernel.command_line.known_value()?.values_of(name);
        let words = values.iter().map(|value| format!("{name}={value}"));
        Some(words.collect::<Vec<_>>().join(" ")).filter(|words| !words.is_empty())
    }

    /// Parses a list of CPUs of the command line like this kernel.
    pub(crate) fn boot_list(&self, list: &str) -> BootList {
        let possible = self.environment.topology.possible.known_value();
        ListReader { release: self.environment.kernel.release_numbers(), possible }.read(list)
    }

    /// Whether this is known to be a guest.
    pub fn is_guest(&self) -> bool {
        self.environment.machine.hypervisor.known_value().is_some_and(|h| h.present)
    }

    /// In a guest, the host controls the hardware: a rule about a missing file does not apply.
    pub(crate) fn unless_guest<T>(
        &self,
        value: Result<T, CheckOutcome>,
        what: &str,
    ) -> Result<T, CheckOutcome> {
        value.map_err(|unread| {
            if self.is_guest() {
                not_applicable(format!("{what} is controlled by the host"), unread.evidence)
            } else {
                unread
            }
        })
    }

    /// A file that is absent because the kernel was built without its option is nothing unknown.
    pub(super) fn or_not_configured(&self, outcome: CheckOutcome) -> CheckOutcome {
        let Some(config) = self.environment.kernel.config.known_value() else { return outcome };
        let is_absent = outcome.verdict == RuleVerdict::Unknown
            && outcome.evidence.starts_with("cannot read")
            && outcome.evidence.contains("No such file");
        let lacks = |(path, option): &&(&str, &str)| {
            outcome.evidence.contains(path) && !config.has_option(option)
        };
        match CONFIGURED.iter().find(lacks).filter(|_| is_absent) {
            Some((_, option)) => not_applicable(
                format!("not configured: the kernel has no CONFIG_{option}"),
                format!("{} has it not set; {}", config.source.0, outcome.evidence),
            ),
            None => outcome,
        }
    }

    fn no_tracefs(&self, evidence: String) -> CheckOutcome {
        match self.environment.kernel.config.known_value() {
            Some(config) if !config.has_option("FTRACE") => not_applicable(
                "the kernel has no CONFIG_FTRACE",
                format!("{} has it not set", config.source.0),
            ),
            _ => unknown_outcome(evidence).with_fix(Fix::by_hand(
                "mount -t tracefs tracefs /sys/kernel/tracing, and run as root",
            )),
        }
    }

    /// A file of tracefs, which has two possible mount points; returns the path too.
    pub(crate) fn read_tracefs(&self, name: &str) -> Result<(String, String), CheckOutcome> {
        let (first, second) =
            (format!("/sys/kernel/tracing/{name}"), format!("/sys/kernel/debug/tracing/{name}"));
        match (self.files.read_trimmed(&first), self.files.read_trimmed(&second)) {
            (Ok(text), _) => Ok((first, text)),
            (_, Ok(text)) => Ok((second, text)),
            (Err(a), Err(b)) => Err(self.no_tracefs(format!("{a}; {b}"))),
        }
    }
}

/// Files that only a kernel with an option has.
const CONFIGURED: [(&str, &str); 8] = [
    ("/sys/devices/system/cpu/nohz_full", "NO_HZ_FULL"),
    ("/proc/sys/vm/compact", "COMPACTION"),
    ("/cpufreq/", "CPU_FREQ"),
    ("/sys/devices/system/cpu/cpuidle", "CPU_IDLE"),
    ("/sys/kernel/mm/transparent_hugepage", "TRANSPARENT_HUGEPAGE"),
    ("/sys/kernel/mm/ksm", "KSM"),
    ("/sys/kernel/security/lockdown", "SECURITY_LOCKDOWN_LSM"),
    ("/sys/devices/system/machinecheck", "X86_MCE"),
];

/// A known value, or the end of the rule.
pub(crate) fn require_known<T>(fact: &Fact<T>) -> Result<&T, CheckOutcome> {
    fact.known_value().ok_or_else(|| unknown_outcome(unknown_reason(fact)))
}

/// Why a value is unknown.
pub(crate) fn unknown_reason<T>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Unavailable(why) => why.clone(),
        Fact::NotAsked => "not requested".into(),
        Fact::Known(_) => String::new(),
    }
}

/// A number, or the end of the rule.
pub(crate) fn as_number(path: &str, text: &str) -> Result<i64, CheckOutcome> {
    text.trim()
        .parse()
        .map_err(|_| unknown_outcome(format!("{}, not a number", format_evidence(path, text))))
}

/// The names of uname(2): `x86_64`, `i686`.
fn is_x86(architecture: &str) -> bool {
    architecture == "x86_64" || architecture.starts_with('i') && architecture.ends_with("86")
}

/// A CPU mask, or the end of the rule.
pub(crate) fn as_mask(path: &str, text: &str) -> Result<CpuSet, CheckOutcome> {
    CpuSet::from_mask(text).map_err(|why| unknown_outcome(format!("{path}: {why}")))
}
