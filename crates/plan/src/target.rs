//! The target of an experiment: `[target]` as written ([`TargetSpec`]) and as resolved
//! ([`TargetPlan`]).

use crate::form::{count_form, duration_form, path_text, size_form, text_form, word_form};
use crate::limits::{MAX_DURATION, MAX_VM_CPUS, MAX_VM_MEMORY, MIN_VM_MEMORY};
use crate::parameter::word_parameter;
use crate::section::{FileSection, section};
use crate::text::{Setting, to_list_setting, to_setting};
use crate::values;
use crate::words::{ByteSize, SshAddress, Word};
use punctual_core::Nanos;
use std::path::PathBuf;

/// The kinds of target, each with its word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TargetKind {
    /// This system.
    Host,
    /// A virtual machine on this system.
    Vm,
    /// Another system, reached by ssh(1).
    Ssh,
}

impl Word for TargetKind {
    const WORDS: &'static [(&'static str, TargetKind)] =
        &[("host", TargetKind::Host), ("vm", TargetKind::Vm), ("ssh", TargetKind::Ssh)];
}
word_parameter!(TargetKind);

/// The source of time in a virtual machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acceleration {
    /// Time counted in guest instructions: deterministic, one CPU.
    VirtualTime,
    /// Translated code, in the host's time.
    Tcg,
    /// Executed by the host's processor.
    Kvm,
}

impl Word for Acceleration {
    const WORDS: &'static [(&'static str, Acceleration)] = &[
        ("virtual-time", Acceleration::VirtualTime),
        ("tcg", Acceleration::Tcg),
        ("kvm", Acceleration::Kvm),
    ];
}
word_parameter!(Acceleration);

/// The processor architecture of a virtual machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Architecture {
    /// 64-bit PCs.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Word for Architecture {
    const WORDS: &'static [(&'static str, Architecture)] =
        &[("x86_64", Architecture::X86_64), ("aarch64", Architecture::Aarch64)];
}
word_parameter!(Architecture);

/// The board that a virtual machine imitates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Board {
    /// The PC of x86_64.
    Pc,
    /// QEMU's own board for Arm.
    Virt,
    /// The Raspberry Pi 3 B.
    Raspi3b,
}

impl Word for Board {
    const WORDS: &'static [(&'static str, Board)] =
        &[("pc", Board::Pc), ("virt", Board::Virt), ("raspi3b", Board::Raspi3b)];
}
word_parameter!(Board);

/// A device that a virtual machine gets for a workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Device {
    /// A virtio disk with an ext4 file system, mounted at /mnt/storage.
    Storage,
    /// QEMU's edu device, which raises an interrupt on request; at /dev/uio0.
    Edu,
    /// QEMU's parallel port, whose strobe raises its interrupt; at /dev/parport0.
    Parport,
}

impl Word for Device {
    const WORDS: &'static [(&'static str, Device)] =
        &[("storage", Device::Storage), ("edu", Device::Edu), ("parport", Device::Parport)];
}
word_parameter!(Device);

section! {
    /// The target of the experiment, as written: the keys of all kinds.
    TargetSpec {
        /// This system, a virtual machine on it (QEMU), or another system that is reached by
        /// ssh(1).
        key kind: TargetKind,
            word_form("a kind of target"),
            [needed "this target has no kind", "write `kind = \"vm\"`, `\"ssh\"` or `\"host\"`"];
        /// For a virtual machine, where it is required: Debian's kernel by name (`"6.1"`,
        /// `"6.1-rt"`, `"6.12"`, `"6.12-rt"`, or another series that one of Debian's suites has
        /// now, as `"7.2"`), fetched and verified by apt(8) into a cache, or the path of an image,
        /// with a `/` in it. For another system: the release of a kernel installed there, which it
        /// boots for the run.
        key kernel: String, text_form("STRING", values::check_path), [""];
        /// The directory of the modules for a kernel given by path, *…/lib/modules/RELEASE*.
        key modules: String, path_text(), ["everything needed is built in"];
        /// More words for the kernel's command line, at most 1024 bytes (vm; another system boots
        /// with them for the run).
        key cmdline: String, text_form("STRING", values::kernel_words), [= String::new()];
        /// How many CPUs it has; with virtual time 1.
        key cpus: u32, count_form(1, MAX_VM_CPUS), [= 1];
        /// The memory of the virtual machine, in whole MiB.
        key memory: ByteSize,
            size_form(MIN_VM_MEMORY, MAX_VM_MEMORY, values::vm_memory),
            [= ByteSize(1 << 30)];
        /// Its time base: counted in instructions, the same at each run (`virtual-time`); the
        /// host's, translated by QEMU (`tcg`); the host's, on its own processor (`kvm`).
        key accel: Acceleration,
            word_form("an acceleration"),
            ["`\"virtual-time\"` with one CPU, else `\"tcg\"`"];
        /// The processor architecture of the virtual machine.
        key arch: Architecture,
            word_form("an architecture"),
            ["that of the `machine`, else `\"x86_64\"`"];
        /// Its board; `raspi3b` is the Raspberry Pi 3 (docs/targets.md).
        key machine: Board, word_form("a machine"), ["`\"pc\"` of x86_64, `\"virt\"` of aarch64"];
        /// `"storage"`: a disk with an ext4 file system, mounted at */mnt/storage*; `"edu"`: a
        /// device that raises interrupts on request, at */dev/uio0*; `"parport"`: a parallel port
        /// whose strobe raises its interrupt, at */dev/parport0*.
        list devices: Device, word_form("a device"), ["none"];
        /// Kernel modules of your own, loaded before the run in this order: files *.ko* that were
        /// built for this kernel, or files *.c* beside a Makefile that builds them (`obj-m`), which
        /// are built for it with Debian's headers.
        list drivers: String, path_text(), ["none"];
        /// How long it may run, by this system's clock, not counting the time that it waits for a
        /// CPU or that a hypervisor takes, so that no machine is ended because this system is busy.
        key timeout: Nanos,
            duration_form(Nanos::SECOND, MAX_DURATION),
            ["ten minutes and twenty times the estimated time"];
        /// punctual for the target, a static program of the target's architecture (vm and ssh).
        key binary: String,
            path_text(),
            ["the running program where it fits, else one that was built beside it"];
        /// For another system, where it is required: its name or address.
        key host: String, text_form("STRING", values::remote_name), [""];
        /// Several equal boards instead of one host, each as `[USER@]HOST[:PORT]`; the other keys
        /// are those of all. The cells of a lab are distributed over them, and those of a board
        /// that is lost move to the others; a single run takes the first one.
        list hosts: SshAddress, text_form("ADDRESS", values::remote_address), ["`host` alone"];
        /// A command that cuts the power of a board that does not come back in time from a boot.
        /// sh(1) runs it on this system, with the board in `PUNCTUAL_HOST` and `PUNCTUAL_PORT`, for
        /// at most a minute; `power_on` follows after 5s.
        key power_off: String, text_form("COMMAND", values::shell_command), ["none"];
        /// The command that gives power again, or resets the board; it is then awaited once more.
        key power_on: String, text_form("COMMAND", values::shell_command), ["none"];
        /// How long a board may take from its restart to a login, before it counts as lost or is
        /// switched off and on.
        key boot_time: Nanos, duration_form(Nanos::SECOND, MAX_DURATION), [= Nanos::from_secs(300)];
        /// The user there.
        key user: String, text_form("STRING", values::remote_name), ["what ssh(1) takes"];
        /// The port there.
        key port: u16, count_form(1, u64::from(u16::MAX)), ["what ssh(1) takes"];
        /// The file of the private key.
        key identity: String, path_text(), ["what ssh(1) takes"];
        /// The file of the host keys that are trusted.
        key known_hosts: String, path_text(), ["what ssh(1) takes"];
    }
}

/// The target of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum TargetPlan {
    /// Here, in this process.
    #[default]
    Host,
    /// In a virtual machine.
    Vm(VmPlan),
    /// On another system.
    Ssh(SshPlan),
}

impl TargetPlan {
    /// The `kind` of `[target]`.
    pub fn kind(&self) -> TargetKind {
        match self {
            TargetPlan::Host => TargetKind::Host,
            TargetPlan::Vm(_) => TargetKind::Vm,
            TargetPlan::Ssh(_) => TargetKind::Ssh,
        }
    }
}

/// The kernel of a virtual machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelChoice {
    /// A distribution's kernel, by name: `6.1-rt`. The lab knows the valid names.
    Named(String),
    /// A kernel by path.
    Image {
        /// The bzImage, Image or ELF file.
        image: PathBuf,
        /// The directory of its modules, `…/lib/modules/RELEASE`.
        modules: Option<PathBuf>,
    },
}

/// A virtual machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VmPlan {
    /// The kernel to boot.
    pub kernel: KernelChoice,
    /// More words for the kernel's command line.
    pub cmdline: String,
    /// Virtual CPUs, 1 with virtual time.
    pub cpus: u32,
    /// Memory; whole MiB.
    pub memory: ByteSize,
    /// The source of its time.
    pub accel: Acceleration,
    /// Its processors.
    pub arch: Architecture,
    /// Its board, one of the architecture's.
    pub machine: Board,
    /// Its devices for workloads, each once, in order.
    pub devices: Vec<Device>,
    /// Kernel modules to load: a module, or its source file.
    pub drivers: Vec<PathBuf>,
    /// The limit of its run time by the host's clock; `None`: derived from the estimated time.
    pub timeout: Option<Nanos>,
    /// punctual for its architecture; `None`: the running one, or one that was built beside it.
    pub binary: Option<PathBuf>,
}

/// A system reached by ssh(1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SshPlan {
    /// Its name or address; never empty, never beginning with `-`.
    pub host: String,
    /// The user; `None`: ssh's default.
    pub user: Option<String>,
    /// The port; `None`: ssh's default.
    pub port: Option<u16>,
    /// The file of the private key; `None`: ssh's default.
    pub identity: Option<PathBuf>,
    /// The file of host keys; `None`: ssh's default.
    pub known_hosts: Option<PathBuf>,
    /// punctual for its architecture; `None`: the running one.
    pub binary: Option<PathBuf>,
    /// The boot that it runs in; `None`: any.
    pub boot: Option<SshBoot>,
    /// Equal boards, of which this is the first one; none: it is the only one.
    pub pool: Vec<SshAddress>,
    /// The commands that switch a board that does not come back off (if there is one), and on.
    pub power: Option<(Option<String>, String)>,
    /// How long it may take from a restart to a login.
    pub boot_time: Nanos,
}

impl SshPlan {
    /// A plan for each board of the pool, or this one.
    pub fn plan_per_board(&self) -> Vec<SshPlan> {
        let one = |address: &SshAddress| self.with_address(address.clone());
        match self.pool.is_empty() {
            true => vec![self.clone()],
            false => self.pool.iter().map(one).collect(),
        }
    }

    /// This plan on another board.
    pub(crate) fn with_address(&self, SshAddress { user, host, port }: SshAddress) -> SshPlan {
        SshPlan { user, host, port, pool: Vec::new(), ..self.clone() }
    }

    /// Its address alone.
    pub fn ssh_address(&self) -> SshAddress {
        SshAddress { user: self.user.clone(), host: self.host.clone(), port: self.port }
    }
}

/// A boot of another system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SshBoot {
    /// The release of a kernel installed there; `None`: its usual one.
    pub kernel: Option<String>,
    /// Words added to its usual command line.
    pub cmdline: String,
}

impl SshBoot {
    /// It in a few words.
    pub fn to_words(&self) -> String {
        let kernel = self.kernel.as_deref().map(|kernel| format!("Linux {kernel}"));
        let cmdline = Some(self.cmdline.clone()).filter(|words| !words.is_empty());
        let parts: Vec<String> = kernel.into_iter().chain(cmdline).collect();
        if parts.is_empty() { "its usual kernel".to_owned() } else { parts.join(", ") }
    }
}

impl TargetSpec {
    /// This, completed by `base`; only this if `base` is of another kind.
    pub(crate) fn complete_from_same_kind(self, base: &TargetSpec) -> TargetSpec {
        if self.kind.map(|at| at.value) != base.kind.map(|at| at.value) {
            return self;
        }
        let modules = self.kernel.as_ref().map(|_| self.modules.clone());
        let whole = self.complete_from(base);
        // Modules belong to their kernel.
        TargetSpec { modules: modules.unwrap_or(whole.modules), ..whole }
    }
}

impl TargetPlan {
    /// The section that sets all of it; `None` for the host.
    pub(crate) fn to_spec(&self) -> Option<TargetSpec> {
        let kind = to_setting(self.kind());
        match self {
            TargetPlan::Host => None,
            TargetPlan::Vm(vm) => Some(TargetSpec { kind, ..vm.to_spec() }),
            // The addresses of a pool are whole.
            TargetPlan::Ssh(ssh) if !ssh.pool.is_empty() => {
                let alone = TargetPlan::Ssh(SshPlan { pool: Vec::new(), ..ssh.clone() });
                let hosts = to_list_setting(ssh.pool.iter().cloned());
                let (host, user, port) = (None, None, None);
                alone.to_spec().map(|spec| TargetSpec { hosts, host, user, port, ..spec })
            }
            TargetPlan::Ssh(ssh) => Some(TargetSpec {
                kind,
                host: to_setting(ssh.host.clone()),
                power_off: ssh.power.clone().and_then(|(off, _)| to_setting(off?)),
                power_on: ssh.power.clone().and_then(|(_, on)| to_setting(on)),
                boot_time: to_setting(ssh.boot_time),
                user: ssh.user.clone().and_then(to_setting),
                port: ssh.port.and_then(to_setting),
                identity: path_setting(ssh.identity.as_ref()),
                known_hosts: path_setting(ssh.known_hosts.as_ref()),
                binary: path_setting(ssh.binary.as_ref()),
                kernel: ssh.boot.as_ref().and_then(|boot| to_setting(boot.kernel.clone()?)),
                cmdline: ssh.boot.as_ref().and_then(|boot| to_setting(boot.cmdline.clone())),
                ..TargetSpec::default()
            }),
        }
    }
}

impl VmPlan {
    fn to_spec(&self) -> TargetSpec {
        let (kernel, modules) = match &self.kernel {
            KernelChoice::Named(name) => (to_setting(name.clone()), None),
            KernelChoice::Image { image, modules } => {
                (path_setting(Some(image)), path_setting(modules.as_ref()))
            }
        };
        TargetSpec {
            kernel,
            modules,
            cmdline: to_setting(self.cmdline.clone()),
            cpus: to_setting(self.cpus),
            memory: to_setting(self.memory),
            accel: to_setting(self.accel),
            arch: to_setting(self.arch),
            machine: to_setting(self.machine),
            devices: to_list_setting(self.devices.iter().copied()),
            drivers: to_list_setting(
                self.drivers.iter().map(|path| path.to_string_lossy().into_owned()),
            ),
            timeout: self.timeout.and_then(to_setting),
            binary: path_setting(self.binary.as_ref()),
            ..TargetSpec::default()
        }
    }
}

fn path_setting(path: Option<&PathBuf>) -> Setting<String> {
    path.and_then(|path| to_setting(path.to_string_lossy().into_owned()))
}
