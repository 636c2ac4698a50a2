//! What the kernel lets this process do, so that a missing right is named before it is missed.

use crate::files::{FileError, Files};

/// Capabilities that punctual has a use for (capabilities(7)), by their bit in /proc/PID/status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capability {
    /// Send signals to and trace others.
    SysPtrace = 19,
    /// Cgroups, sysfs settings, many others.
    SysAdmin = 21,
    /// Real-time scheduling and other threads' affinity.
    SysNice = 23,
    /// Locking more memory than RLIMIT_MEMLOCK.
    IpcLock = 14,
    /// Performance events and tracepoints.
    Perfmon = 38,
    /// Loading BPF programs.
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

/// The effective capabilities of this process.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    effective: u64,
}

impl Rights {
    /// Reads them from /proc/self/status.
    pub fn read(files: &dyn Files) -> Result<Rights, FileError> {
        let text = files.read("/proc/self/status")?;
        let hex = text.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
        let effective = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        effective.map(|effective| Rights { effective }).ok_or_else(|| FileError {
            action: "find CapEff in",
            path: "/proc/self/status".to_owned(),
            source: std::io::ErrorKind::InvalidData.into(),
        })
    }
    /// Whether the process has it.
    pub fn has(self, capability: Capability) -> bool {
        self.effective >> (capability as u32) & 1 == 1
    }
}
