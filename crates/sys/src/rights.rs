//! The permissions of this process, so that a missing one can be named in advance.

use crate::status;

/// Capabilities that punctual uses (capabilities(7)), by their bit in /proc/PID/status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capability {
    /// Signal and trace other processes.
    SysPtrace = 19,
    /// Cgroups, sysfs settings, many others.
    SysAdmin = 21,
    /// Real-time scheduling and other threads' affinity.
    SysNice = 23,
    /// Locking more memory than RLIMIT_MEMLOCK.
    IpcLock = 14,
    Perfmon = 38,
    Bpf = 39,
}

impl Capability {
    /// Its name in capabilities(7).
    pub fn name(self) -> &'static str {
        match self {
            Capability::SysPtrace => "CAP_SYS_PTRACE",
            Capability::SysAdmin => "CAP_SYS_ADMIN",
            Capability::SysNice => "CAP_SYS_NICE",
            Capability::IpcLock => "CAP_IPC_LOCK",
            Capability::Perfmon => "CAP_PERFMON",
            Capability::Bpf => "CAP_BPF",
        }
    }
}

/// The effective capabilities of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    effective: u64,
}

impl Capabilities {
    /// From the text of /proc/PID/status.
    pub fn parse(status: &str) -> Option<Capabilities> {
        status::parse_mask(status, "CapEff").map(|effective| Capabilities { effective })
    }
    /// Whether the process has this capability.
    pub fn has_capability(self, capability: Capability) -> bool {
        self.effective >> (capability as u32) & 1 == 1
    }
}
