//! Settings of a boot: parameters of the kernel's command line, tried in a virtual machine that
//! boots for each block.

use super::offer::Offer;
use super::setting::Setting;
use punctual_core::CpuSet;
use punctual_plan::lab::with_command_line;
use punctual_plan::{KernelChoice, VmPlan};
use punctual_session::exit::Failure;
use std::path::Path;

/// A name, its words, and its purpose.
type BootParameter = (&'static str, &'static str, &'static str);

/// All are in Documentation/admin-guide/kernel-parameters.txt. A value that is the kernel's default
/// turns out to have no effect.
const PARAMETERS: [BootParameter; 15] = [
    ("threaded-irqs", "threadirqs", "interrupt handlers are threads, which have priorities"),
    ("preempt-none", "preempt=none", "the kernel is preempted where it returns to user space"),
    ("preempt-voluntary", "preempt=voluntary", "the kernel is preempted where it asks for it"),
    ("preempt-full", "preempt=full", "the kernel is preempted wherever it holds no lock"),
    ("preempt-lazy", "preempt=lazy", "real-time tasks preempt at once, others at the tick"),
    ("skewed-tick", "skew_tick=1", "ticks of the CPUs come one after the other"),
    (
        "no-tick-stop",
        "nohz=off",
        "the tick continues while a CPU is idle: no exit from tickless \
                                  idle",
    ),
    ("idle-poll", "idle=poll", "idle CPUs spin, and are there at once"),
    ("shallow-idle", "processor.max_cstate=1", "idle CPUs sleep lightly"),
    ("no-hugepages", "transparent_hugepage=never", "pages are not merged and compacted"),
    ("expedited-rcu", "rcupdate.rcu_expedited=1", "grace periods end at once, by interrupts"),
    ("local-timers", "sysctl.kernel.timer_migration=0", "timers stay on their CPU"),
    ("slow-statistics", "sysctl.vm.stat_interval=120", "memory statistics are collected rarely"),
    ("no-watchdogs", "nowatchdog", "no detectors of lockups, which take their time each second"),
    ("mitigations-off", "mitigations=off", "no mitigations of faults of processors"),
];

/// The parameters to try; with CPUs to keep free and others beside them, also those that move work.
pub(crate) fn offer_parameters(kept_free: Option<&CpuSet>, all: &CpuSet) -> Offer {
    let mut offer = Offer::default();
    let setting = |name: &str, words: String, why: &str| Setting {
        name: name.to_owned(),
        why: why.to_owned(),
        source: "Documentation/admin-guide/kernel-parameters.txt".to_owned(),
        writes: Vec::new(),
        boot: words,
    };
    for (name, words, why) in PARAMETERS {
        offer.settings.push(setting(name, words.to_owned(), why));
    }
    let (Some(cpus), Some(first)) = (kept_free, kept_free.and_then(CpuSet::first_cpu)) else {
        return offer;
    };
    let other_cpus = all.difference(cpus);
    let further = [
        ("isolated-cpus", format!("isolcpus={cpus}"), "the scheduler moves no task there"),
        ("no-tick", format!("nohz_full={cpus}"), "no tick where one task runs alone"),
        ("callbacks-elsewhere", format!("rcu_nocbs={cpus}"), "RCU callbacks run elsewhere"),
        ("interrupts-elsewhere", format!("irqaffinity={other_cpus}"), "interrupts go elsewhere"),
    ];
    // The first CPU keeps the time for all others.
    let kept = further.into_iter().filter(|(name, ..)| *name != "no-tick" || first != 0);
    offer.settings.extend(kept.map(|(name, words, why)| setting(name, words, why)));
    offer
}

/// The name of a virtual machine, as `vm:6.12-rt`.
pub fn machine_name(vm: &VmPlan) -> String {
    match &vm.kernel {
        KernelChoice::Named(name) => format!("vm:{name}"),
        KernelChoice::Image { image, .. } => format!("vm:{}", image.display()),
    }
}

/// Writes the experiment of a block, with the words of the settings in force.
///
/// # Errors
/// The file cannot be written.
pub fn write_experiment(of: &Path, words: &[&str], to: &Path) -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::failed(format!("cannot write {}: {why}", to.display()))
    };
    let text = std::fs::read_to_string(of).map_err(|why| failed(&why))?;
    let text = with_command_line(&text, &words.join(" ")).map_err(|why| failed(&why))?;
    std::fs::write(to, text).map_err(|why| failed(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_parameters_are_offered_only_if_other_cpus_remain() {
        let cpus = |list: &str| -> CpuSet { list.parse().expect("a list") };
        let words = |offer: Offer| -> Vec<String> {
            offer.settings.into_iter().map(|setting| setting.boot).collect()
        };
        let one = words(offer_parameters(None, &cpus("0")));
        assert!(!one.iter().any(|words| words.starts_with("isolcpus")), "{one:?}");
        let two = words(offer_parameters(Some(&cpus("1")), &cpus("0-1")));
        for word in ["isolcpus=1", "nohz_full=1", "rcu_nocbs=1", "irqaffinity=0"] {
            assert!(two.iter().any(|words| words == word), "{word}: {two:?}");
        }
        let first = words(offer_parameters(Some(&cpus("0")), &cpus("0-1")));
        assert!(!first.iter().any(|words| words.starts_with("nohz_full")), "{first:?}");
    }

    /// Two values of one parameter exclude each other; two parameters do not.
    #[test]
    fn values_of_one_parameter_exclude_each_other() {
        let all = offer_parameters(None, &"0".parse().expect("a list")).settings;
        let candidates = Setting::to_candidates(&all);
        let excluded: Vec<usize> =
            candidates.iter().map(|candidate| candidate.excludes.len()).collect();
        assert_eq!(excluded.iter().filter(|n| **n == 3).count(), 4, "{excluded:?}");
        assert_eq!(excluded.iter().filter(|n| **n == 0).count(), all.len() - 4);
        assert_eq!(candidates[0].value, "threadirqs");
    }

    #[test]
    fn the_experiment_of_a_block_boots_with_the_chosen_parameters() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("experiment.toml");
        let text = "[target]\nkind = \"vm\"\nkernel = \"6.12\"\n[[measure]]\nkind = \"timer\"\n";
        std::fs::write(&file, text).expect("written");
        let block = place.path().join("00001.toml");
        write_experiment(&file, &["threadirqs", "preempt=full"], &block).expect("written");
        let text = std::fs::read_to_string(&block).expect("a file");
        assert!(text.contains("cmdline = \"threadirqs preempt=full\""), "{text}");
        assert!(write_experiment(&place.path().join("none"), &[], &block).is_err());
    }
}
