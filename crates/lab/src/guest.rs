//! A guest: its machine, its contents, its job.

use crate::accel::Accel;
use crate::{Arch, BootKernel, GuestBoard, LabError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::initramfs::FileSource;

/// A file for the guest, besides its programs.
#[derive(Clone, Debug)]
pub struct GuestFile {
    pub path: String,
    /// The bytes of the file.
    pub source: FileSource,
    /// The permission bits (octal `0o755` for a program).
    pub mode: u32,
}

/// The job of the guest, run as root, with /results for the files to return (`$PUNCTUAL_RESULTS`).
#[derive(Clone, Debug)]
pub enum Job {
    /// A program of the guest with its arguments.
    Command(Vec<String>),
    /// A script for `sh`: the host's if its files are shared, else busybox's, which prefers its own
    /// programs to those of the same name in the guest (call these by their path).
    Script(String),
}

/// A guest to run. Create one with [`Guest::new`] and change the fields.
#[derive(Clone, Debug)]
pub struct Guest {
    pub kernel: BootKernel,
    pub board: GuestBoard,
    /// Additional words for the kernel's command line.
    pub cmdline_extra: String,
    pub cpus: u32,
    pub memory_mb: u32,
    pub accel: Accel,
    /// Files for the guest.
    pub files: Vec<GuestFile>,
    /// Programs of this machine to copy to the same path, with the shared libraries they need; for
    /// a guest of another architecture the same programs from Debian's packages for it.
    pub programs: Vec<PathBuf>,
    /// Symbolic links to create if no file exists: the link's absolute path, and its target.
    pub links: Vec<(String, String)>,
    /// Kernel modules to load before the job, with their dependencies.
    pub modules: Vec<String>,
    /// Own modules to load after them, by name and content.
    pub drivers: Vec<(String, Vec<u8>)>,
    /// Whether the job sees this machine's whole file system (read-only, through 9p, with writes
    /// kept in the guest's memory above it), so that installed tools run unchanged. Not in virtual
    /// time.
    pub share_host: bool,
    pub job: Job,
    /// The time limit, in time that this machine gave it: waits for a CPU, and steal of a
    /// hypervisor, do not count.
    pub timeout: Duration,
    /// The maximum of that time without console output until its job starts.
    pub boot_silence: Duration,
    /// An existing directory for the result files, instead of memory.
    pub results_to: Option<PathBuf>,
    /// Whether the guest's files are stored, so that it can run again ([`crate::exact`]).
    pub keep: bool,
    /// Whether to boot from the first instruction, even if its boot may be saved.
    pub whole_boot: bool,
    /// The size of a meaningless file: in virtual time each size is another timeline.
    pub padding: usize,
    /// Additional arguments for QEMU (`-device`, `edu`). Files in them need absolute paths.
    pub qemu_args: Vec<String>,
}

impl GuestFile {
    /// A world-readable text file.
    pub fn from_text(path: impl Into<String>, text: impl Into<String>) -> GuestFile {
        GuestFile {
            path: path.into(),
            source: FileSource::Bytes(text.into().into_bytes()),
            mode: 0o644,
        }
    }
    /// A copy of a file of this machine, with its permissions.
    pub fn from_host_file(
        host: impl Into<PathBuf>,
        path: impl Into<String>,
    ) -> Result<GuestFile, LabError> {
        let host = host.into();
        let meta = host.metadata().map_err(LabError::io("read", &host))?;
        if !meta.is_file() {
            return Err(LabError::malformed(host, "only regular files can be copied into a guest"));
        }
        Ok(GuestFile {
            path: path.into(),
            mode: meta.permissions().mode(),
            source: FileSource::Host(host),
        })
    }
}

/// The default time limit of a guest: far above any need, so that only a hanging one reaches it.
const TIMEOUT: Duration = Duration::from_secs(600);
const BOOT_SILENCE: Duration = Duration::from_secs(300);

impl Guest {
    /// A guest with 2 CPUs, 512 MiB, plain TCG, ten minutes, and only busybox in it.
    pub fn new(kernel: BootKernel, job: Job) -> Guest {
        Guest {
            kernel,
            board: GuestBoard::default(),
            cmdline_extra: String::new(),
            cpus: 2,
            memory_mb: 512,
            accel: Accel::Tcg,
            files: Vec::new(),
            programs: Vec::new(),
            links: Vec::new(),
            modules: Vec::new(),
            drivers: Vec::new(),
            share_host: false,
            job,
            boot_silence: BOOT_SILENCE,
            results_to: None,
            keep: false,
            whole_boot: false,
            timeout: TIMEOUT,
            padding: 0,
            qemu_args: Vec::new(),
        }
    }

    /// Whether its boot may be saved. QEMU does not save some devices (`edu`).
    pub(crate) fn can_resume(&self) -> bool {
        self.accel == Accel::VirtualTime
            && self.board == GuestBoard::Usual
            && self.kernel.arch == Arch::Amd64
            && self.qemu_args.is_empty()
            && !self.whole_boot
    }
}

impl Job {
    /// The text that the guest's shell runs.
    pub(crate) fn to_script(&self) -> String {
        match self {
            Job::Command(words) => format!("exec {}\n", shell_words::join(words)),
            Job::Script(text) => text.clone(),
        }
    }
}

/// Relative to this process's directory: QEMU runs in another.
pub(crate) fn to_absolute(path: &Path) -> Result<PathBuf, LabError> {
    std::path::absolute(path).map_err(LabError::io("find", path))
}
