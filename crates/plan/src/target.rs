//! Where an experiment runs: `[target]` as written ([`TargetSpec`]) and as resolved
//! ([`TargetPlan`]).

use crate::text::{At, Setting, Span};
use crate::words::{ByteSize, Word};
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

/// What makes the time of a virtual machine go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acceleration {
    /// Time counted in guest instructions: deterministic, one CPU.
    VirtualTime,
    /// Translated, in the host's time.
    Tcg,
    /// Run by the host's processor.
    Kvm,
}

impl Word for Acceleration {
    const WORDS: &'static [(&'static str, Acceleration)] = &[
        ("virtual-time", Acceleration::VirtualTime),
        ("tcg", Acceleration::Tcg),
        ("kvm", Acceleration::Kvm),
    ];
}

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

/// A device that a virtual machine gets for a workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Device {
    /// A virtio disk with an ext4 file system, mounted at /mnt/storage.
    Storage,
    /// QEMU's edu device, which raises an interrupt on request; at /dev/uio0.
    Edu,
}

impl Word for Device {
    const WORDS: &'static [(&'static str, Device)] =
        &[("storage", Device::Storage), ("edu", Device::Edu)];
}

/// `[target]`, as written: the keys of all kinds.
#[derive(Clone, Debug, Default)]
pub struct TargetSpec {
    /// The section's header.
    pub span: Span,
    /// `kind`
    pub kind: Setting<TargetKind>,
    /// `kernel` of a virtual machine: a name, or the path of an image.
    pub kernel: Setting<String>,
    /// `modules`: the directory of the modules of an image by path.
    pub modules: Setting<String>,
    /// `cmdline`: more words for the kernel.
    pub cmdline: Setting<String>,
    /// `cpus`: how many.
    pub cpus: Setting<u32>,
    /// `memory`
    pub memory: Setting<ByteSize>,
    /// `accel`
    pub accel: Setting<Acceleration>,
    /// `arch`
    pub arch: Setting<Architecture>,
    /// `machine`
    pub machine: Setting<Board>,
    /// `devices`
    pub devices: Setting<Vec<At<Device>>>,
    /// `timeout`, by the host's clock.
    pub timeout: Setting<Nanos>,
    /// `binary`: punctual for the target.
    pub binary: Setting<String>,
    /// `host` of ssh.
    pub host: Setting<String>,
    /// `user` there.
    pub user: Setting<String>,
    /// `port` there.
    pub port: Setting<u16>,
    /// `identity`: the file of the private key.
    pub identity: Setting<String>,
    /// `known_hosts`: the file of host keys.
    pub known_hosts: Setting<String>,
}

/// Where a plan runs.
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
    /// Its kind.
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
    /// A distribution's, by name: `6.1-rt`. Which names there are, the lab knows.
    Named(String),
    /// By path.
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
    /// What boots.
    pub kernel: KernelChoice,
    /// More words for the kernel's command line.
    pub cmdline: String,
    /// Virtual CPUs, 1 with virtual time.
    pub cpus: u32,
    /// Memory; whole MiB.
    pub memory: ByteSize,
    /// How its time goes on.
    pub accel: Acceleration,
    /// Its processors.
    pub arch: Architecture,
    /// Its board, one of the architecture's.
    pub machine: Board,
    /// What it has for workloads, each once, in order.
    pub devices: Vec<Device>,
    /// How long it may run by the host's clock; `None`: what the estimated time suggests.
    pub timeout: Option<Nanos>,
    /// punctual for its architecture; `None`: the running one, or one that was built beside it.
    pub binary: Option<PathBuf>,
}

/// A system reached by ssh(1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SshPlan {
    /// Its name or address; never empty, never beginning with `-`.
    pub host: String,
    /// The user; `None`: what ssh takes.
    pub user: Option<String>,
    /// The port; `None`: what ssh takes.
    pub port: Option<u16>,
    /// The file of the private key; `None`: what ssh takes.
    pub identity: Option<PathBuf>,
    /// The file of host keys; `None`: what ssh takes.
    pub known_hosts: Option<PathBuf>,
    /// punctual for its architecture; `None`: the running one.
    pub binary: Option<PathBuf>,
}

impl TargetSpec {
    /// The settings that are made, as (key, place), but for `kind`.
    pub(crate) fn keys(&self) -> Vec<(&'static str, Span)> {
        let at = |key, span: Option<Span>| span.map(|span| (key, span));
        let spans = [
            at("kernel", self.kernel.as_ref().map(|at| at.span)),
            at("modules", self.modules.as_ref().map(|at| at.span)),
            at("cmdline", self.cmdline.as_ref().map(|at| at.span)),
            at("cpus", self.cpus.map(|at| at.span)),
            at("memory", self.memory.map(|at| at.span)),
            at("accel", self.accel.map(|at| at.span)),
            at("arch", self.arch.map(|at| at.span)),
            at("machine", self.machine.map(|at| at.span)),
            at("devices", self.devices.as_ref().map(|at| at.span)),
            at("timeout", self.timeout.map(|at| at.span)),
            at("binary", self.binary.as_ref().map(|at| at.span)),
            at("host", self.host.as_ref().map(|at| at.span)),
            at("user", self.user.as_ref().map(|at| at.span)),
            at("port", self.port.map(|at| at.span)),
            at("identity", self.identity.as_ref().map(|at| at.span)),
            at("known_hosts", self.known_hosts.as_ref().map(|at| at.span)),
        ];
        spans.into_iter().flatten().collect()
    }

    /// This, completed by `base`; only this where `base` is of another kind.
    pub(crate) fn over(self, base: &TargetSpec) -> TargetSpec {
        if self.kind.map(|at| at.value) != base.kind.map(|at| at.value) {
            return self;
        }
        let modules = if self.kernel.is_some() {
            self.modules
        } else {
            self.modules.or(base.modules.clone())
        };
        TargetSpec {
            span: self.span,
            kind: self.kind,
            kernel: self.kernel.or(base.kernel.clone()),
            modules,
            cmdline: self.cmdline.or(base.cmdline.clone()),
            cpus: self.cpus.or(base.cpus),
            memory: self.memory.or(base.memory),
            accel: self.accel.or(base.accel),
            arch: self.arch.or(base.arch),
            machine: self.machine.or(base.machine),
            devices: self.devices.or(base.devices.clone()),
            timeout: self.timeout.or(base.timeout),
            binary: self.binary.or(base.binary.clone()),
            host: self.host.or(base.host.clone()),
            user: self.user.or(base.user.clone()),
            port: self.port.or(base.port),
            identity: self.identity.or(base.identity.clone()),
            known_hosts: self.known_hosts.or(base.known_hosts.clone()),
        }
    }
}

impl TargetPlan {
    /// The section that sets all of it; none for the host.
    pub(crate) fn to_spec(&self) -> Option<TargetSpec> {
        let kind = set(self.kind());
        match self {
            TargetPlan::Host => None,
            TargetPlan::Vm(vm) => Some(TargetSpec { kind, ..vm.to_spec() }),
            TargetPlan::Ssh(ssh) => Some(TargetSpec {
                kind,
                host: set(ssh.host.clone()),
                user: ssh.user.clone().and_then(set),
                port: ssh.port.and_then(set),
                identity: path(ssh.identity.as_ref()),
                known_hosts: path(ssh.known_hosts.as_ref()),
                binary: path(ssh.binary.as_ref()),
                ..TargetSpec::default()
            }),
        }
    }
}

impl VmPlan {
    fn to_spec(&self) -> TargetSpec {
        let (kernel, modules) = match &self.kernel {
            KernelChoice::Named(name) => (set(name.clone()), None),
            KernelChoice::Image { image, modules } => (path(Some(image)), path(modules.as_ref())),
        };
        TargetSpec {
            kernel,
            modules,
            cmdline: set(self.cmdline.clone()),
            cpus: set(self.cpus),
            memory: set(self.memory),
            accel: set(self.accel),
            arch: set(self.arch),
            machine: set(self.machine),
            devices: set(self
                .devices
                .iter()
                .map(|device| At::new(Span::default(), *device))
                .collect()),
            timeout: self.timeout.and_then(set),
            binary: path(self.binary.as_ref()),
            ..TargetSpec::default()
        }
    }
}

fn set<T>(value: T) -> Setting<T> {
    Some(At::new(Span::default(), value))
}

fn path(path: Option<&PathBuf>) -> Setting<String> {
    path.and_then(|path| set(path.to_string_lossy().into_owned()))
}
