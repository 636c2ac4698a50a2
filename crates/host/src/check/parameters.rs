//! Who reads each word of the kernel's command line.
//!
//! The kernel gives words that it does not know to init: `name=value` in its environment, others as
//! its arguments, and since Linux 5.13 names them in its log (init/main.c,
//! print_unknown_bootoptions).
//! A word with a dot is taken for a parameter of a module, and dropped in silence if there is none
//! (unknown_bootoption).

use crate::files::Files;
use punctual_core::words::nearest_word;
use std::collections::BTreeSet;

/// Words beyond this are not examined.
const MAX_WORDS: usize = 256;

/// Who reads a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reader {
    /// The kernel, or a program that reads /proc/cmdline.
    Some,
    /// Nobody; what was meant, if a known word is near.
    Nobody(Option<String>),
    /// Not known, for this reason.
    Unknown(String),
}

/// Words often written and read by no kernel, with what is meant.
const MISTAKEN: [(&str, &str); 8] = [
    ("network.disable_ipv6", "ipv6.disable=1"),
    ("isolcpu", "isolcpus="),
    ("rcu_nocb", "rcu_nocbs="),
    ("irqaffinty", "irqaffinity="),
    ("irq_affinity", "irqaffinity="),
    ("nohzfull", "nohz_full="),
    ("threadirq", "threadirqs"),
    ("intel_pstates", "intel_pstate="),
];

/// Words of latency, and usual others, that kernels know (kernel-parameters.txt).
const KNOWN: &str = "\
    acpi acpi_osi amd_iommu amd_pstate apparmor audit audit_backlog_limit boot_delay bootmem_debug \
    cgroup_disable cgroup_enable cgroup_no_v1 clocksource clock console console_msg_format \
    crashkernel debug default_hugepagesz dis_ucode_ldr dyndbg earlycon earlyprintk efi elevator \
    fbcon force_grub gpt hpet hugepages hugepagesz idle init initcall_blacklist initcall_debug \
    initrd intel_iommu intel_pstate iommu ip irqaffinity irqpoll isolcpus kasan kgdboc \
    kthread_cpus loglevel lockdown log_buf_len lpj maxcpus mce mem memmap mitigations \
    module_blacklist nfsroot nmi_watchdog no_console_suspend noapic nohalt nohlt nohz nohz_full \
    nokaslr nolapic nomodeset noresume nosmap nosmp nosmt nosoftlockup nospectre_v1 nospectre_v2 \
    notsc nowatchdog nr_cpus numa numa_balancing panic pci pcie_aspm pcie_ports pcie_port_pm pnp \
    preempt printk.devkmsg psi pti quiet raid rcu_nocb_poll rcu_nocbs rdinit reboot resume ro root \
    rootdelay rootflags rootfstype rootwait rt_group_sched rw security selinux skew_tick \
    slab_nomerge \
    slub_debug smt softlockup_panic spectre_v2 swiotlb threadirqs tp_printk trace_event \
    transparent_hugepage tsc tsx usbcore vga video vt.handoff watchdog_thresh workqueue \
    x2apic_phys zswap cgroup.memory highres hrtimer skip_duc intremap kvm-intel consoleblank \
    delayacct net.ifnames fips lsm nopti retbleed tsx_async_abort mds l1tf";

/// Words for programs, which the kernel does not know: bootloader, initramfs, systemd, udev,
/// plymouth, cloud-init (kernel-command-line(7), dracut.cmdline(7), initramfs-tools(7)).
const PROGRAMS: &str = "\
    BOOT_IMAGE BOOTIF auto autoinstall biosdevname boot break cloud-config-url cryptdevice \
    cryptopts \
    ds emergency fastboot forcefsck forcequotacheck fsck.mode fsck.repair live-config live-media \
    locale modules_load net.ifnames net.naming-scheme netcfg noeject noprompt noresume ostree \
    overlayroot persistent preseed priority quiet recovery rescue rhgb single snd_bcm2835 splash \
    toram url vc.font vc.keymap verbose";
const PROGRAM_PREFIXES: [&str; 15] = [
    "punctual",
    "systemd",
    "rd",
    "udev",
    "luks",
    "fsck",
    "quotacheck",
    "plymouth",
    "vconsole",
    "locale",
    "net",
    "modprobe",
    "ostree",
    "ignition",
    "cloud-init",
];
/// Words with a dot that are no module's (__setup in kernel/printk/printk.c, mm/memcontrol.c;
/// fs/proc/proc_sysctl.c).
const DOTTED: [&str; 3] = ["printk.devkmsg", "cgroup.memory", "sysctl."];

/// What the kernel gave to init and said in its log, and the modules of this kernel.
pub(super) struct Readers<'a> {
    files: &'a dyn Files,
    modules: Option<String>,
    /// The words given to init.
    passed: BTreeSet<String>,
    /// Whether all of them would be there.
    complete: Result<(), String>,
}

/// The log of the boot, where a distribution keeps it as a file.
const LOG: &str = "/var/log/dmesg";
const LOG_BEGINS: &str = "Unknown kernel command line parameters \"";

impl<'a> Readers<'a> {
    pub(super) fn read(files: &'a dyn Files, release: Option<&str>, words: &[String]) -> Self {
        let mut passed_words = BTreeSet::new();
        let log = files.read(LOG).unwrap_or_default();
        let logged = log.lines().find_map(|line| line.split_once(LOG_BEGINS));
        if let Some((_, rest)) = logged {
            let list = rest.split_once('"').map_or(rest, |(list, _)| list);
            passed_words.extend(list.split_whitespace().map(str::to_owned));
        }
        let (environment, arguments) = ("/proc/1/environ", "/proc/1/cmdline");
        let mut read_error = None;
        for path in [environment, arguments] {
            match files.read(path) {
                Ok(text) => passed_words.extend(text.split('\0').map(str::to_owned)),
                Err(error) => read_error = Some(error.to_string()),
            }
        }
        // GRUB's own word is unknown to every kernel: where it arrived, all did.
        let arrived =
            words.iter().any(|w| w.starts_with("BOOT_IMAGE=") && passed_words.contains(w));
        let complete = match read_error {
            _ if logged.is_some() || arrived => Ok(()),
            Some(why) => Err(why),
            None => Err(format!("{environment} has no word of the kernel's command line")),
        };
        // A release is a name, not a path.
        let release = release.filter(|release| !release.contains('/'));
        let modules = release.and_then(|release| {
            let places = ["/lib/modules", "/usr/lib/modules"].map(|at| format!("{at}/{release}"));
            places.into_iter().find(|at| files.exists(&format!("{at}/modules.builtin")))
        });
        Readers { files, modules, passed: passed_words, complete }
    }

    /// Who reads a word of the command line.
    pub(super) fn find_reader(&self, word: &str) -> Reader {
        let name = word.split('=').next().unwrap_or(word);
        let is_listed =
            |list: &str| list.split_whitespace().any(|one| is_same_parameter(one, name));
        if let Some((_, meant)) = MISTAKEN.iter().find(|(wrong, _)| is_same_parameter(wrong, name))
        {
            return Reader::Nobody(Some((*meant).to_owned()));
        }
        if is_listed(PROGRAMS) || DOTTED.iter().any(|one| name.starts_with(one)) {
            return Reader::Some;
        }
        if let Some((module, parameter)) = name.split_once('.') {
            if PROGRAM_PREFIXES.contains(&module) {
                return Reader::Some;
            }
            return self.of_module(module, parameter);
        }
        let near = || {
            nearest_word(name, KNOWN.split_whitespace())
                .filter(|near| !is_same_parameter(near, name))
        };
        match &self.complete {
            _ if self.passed.contains(word) => Reader::Nobody(near().map(str::to_owned)),
            Ok(()) => Reader::Some,
            Err(_) if is_listed(KNOWN) => Reader::Some,
            Err(why) => Reader::Unknown(match near() {
                Some(near) => format!("{why}; is `{near}` meant?"),
                None => why.clone(),
            }),
        }
    }

    /// A parameter is shown in /sys unless it is hidden; those of built-in modules are in a list.
    fn of_module(&self, module: &str, parameter: &str) -> Reader {
        let plain =
            |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if !plain(module) || !plain(parameter) {
            return Reader::Unknown(format!("`{module}` is no name of a module"));
        }
        let (module, parameter) = (module.replace('-', "_"), parameter.replace('-', "_"));
        let directory = format!("/sys/module/{module}");
        if self.files.exists(&format!("{directory}/parameters/{parameter}")) {
            return Reader::Some;
        }
        let is_there = self.files.exists(&directory);
        let Some(modules) = &self.modules else {
            return Reader::Unknown(format!("this kernel's modules.builtin is not in {MODULES}"));
        };
        let read = |name: &str| self.files.read(&format!("{modules}/{name}"));
        let info = read("modules.builtin.modinfo").unwrap_or_default();
        let prefix = format!("{module}.parmtype=");
        let of_list = info.split('\0').filter_map(|line| line.strip_prefix(&prefix));
        let built_in: Vec<&str> =
            of_list.map(|line| line.split(':').next().unwrap_or(line)).collect();
        if built_in.iter().any(|one| is_same_parameter(one, &parameter)) {
            return Reader::Some;
        }
        if !built_in.is_empty() {
            let near = nearest_word(&parameter, built_in.iter().copied());
            return Reader::Nobody(near.map(|near| format!("{module}.{near}")));
        }
        let Ok(installed) = read("modules.dep") else {
            return Reader::Unknown(format!("{modules}/modules.dep cannot be read"));
        };
        let has = |list: &str| {
            list.lines().any(|line| {
                let file = line.split(':').next().unwrap_or(line).rsplit('/').next();
                file.and_then(|file| file.split('.').next())
                    .is_some_and(|stem| is_same_parameter(stem, &module))
            })
        };
        if is_there || has(&installed) || has(&read("modules.builtin").unwrap_or_default()) {
            let reason = format!("{module} is there, and its hidden parameters are listed nowhere");
            return Reader::Unknown(reason);
        }
        Reader::Nobody(None)
    }
}

const MODULES: &str = "/lib/modules";

/// The words to ask for.
pub(super) fn words_to_check(words: &[String]) -> impl Iterator<Item = &String> {
    words.iter().take(MAX_WORDS)
}

/// The kernel takes `-` for `_` (kernel/params.c, parameqn).
fn is_same_parameter(one: &str, other: &str) -> bool {
    one.replace('-', "_") == other.replace('-', "_")
}
