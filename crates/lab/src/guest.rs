//! A guest: what to boot, what to put into it, what to run there.

use crate::accel::Accel;
use crate::{Arch, Board, Kernel, LabError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::initramfs::Source;

/// What is put into the guest beside its programs.
#[derive(Clone, Debug)]
pub struct GuestFile {
    pub path: String,
    /// Its bytes.
    pub source: Source,
    /// Its permission bits (octal `0o755` for a program).
    pub mode: u32,
}

/// What runs in the guest, as root, with /results for the files to bring back
/// (`$PUNCTUAL_RESULTS`).
#[derive(Clone, Debug)]
pub enum Job {
    /// A program of the guest with its arguments.
    Command(Vec<String>),
    /// A script for `sh`: the host's where its files are shared, else busybox's, to which its own
    /// programs come before those of the same name given to the guest (call these by their
    /// path).
    Script(String),
}

/// A guest to run. Make one with [`Guest::new`] and change the fields.
#[derive(Clone, Debug)]
pub struct Guest {
    pub kernel: Kernel,
    pub board: Board,
    /// More words for the kernel's command line.
    pub cmdline_extra: String,
    pub cpus: u32,
    pub memory_mb: u32,
    pub accel: Accel,
    /// Files to put into it.
    pub files: Vec<GuestFile>,
    /// Programs of this machine to put into it at the same path, with the shared libraries they
    /// need; for a guest of another architecture the same programs out of Debian's packages
    /// for that.
    pub programs: Vec<PathBuf>,
    /// Symbolic links to make where there is no file: the link's absolute path, and where it
    /// points.
    pub links: Vec<(String, String)>,
    /// Kernel modules to load before the job, with what they need.
    pub modules: Vec<String>,
    /// Modules of one's own to load after them, by name and content.
    pub drivers: Vec<(String, Vec<u8>)>,
    /// Whether the job sees this machine's whole file system (read-only, through 9p, with writes
    /// kept in the guest's memory above it), so that installed tools run as they are. Not in
    /// virtual time.
    pub share_host: bool,
    pub job: Job,
    /// How long it may take in all, in time that this machine gave it: what it waits for a CPU, or
    /// a hypervisor takes, does not count.
    pub timeout: Duration,
    /// How long of that may pass until its job starts without a word on the console.
    pub boot_silence: Duration,
    /// Where the files of the results are put instead of into memory: a directory that is there.
    pub results_to: Option<PathBuf>,
    /// Whether what it is made of is kept, so that it can run again ([`crate::exact`]).
    pub keep: bool,
    /// Whether it boots from its first instruction on, though its boot may be saved.
    pub whole_boot: bool,
    /// Bytes of a file that means nothing: in virtual time each number is another timeline.
    pub padding: usize,
    /// More arguments for QEMU (`-device`, `edu`). Files in them need absolute paths.
    pub qemu_args: Vec<String>,
}

impl GuestFile {
    /// A text file that anyone may read.
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> GuestFile {
        GuestFile {
            path: path.into(),
            source: Source::Bytes(text.into().into_bytes()),
            mode: 0o644,
        }
    }
    /// A copy of a file of this machine, with its permissions.
    pub fn copy(host: impl Into<PathBuf>, path: impl Into<String>) -> Result<GuestFile, LabError> {
        let host = host.into();
        let meta = host.metadata().map_err(LabError::io("read", &host))?;
        if !meta.is_file() {
            return Err(LabError::malformed(host, "only regular files can be copied into a guest"));
        }
        Ok(GuestFile {
            path: path.into(),
            mode: meta.permissions().mode(),
            source: Source::Host(host),
        })
    }
}

/// What a guest may take that has no limit of its own: far beyond what any takes, so that only one
/// that hangs reaches it.
const TIMEOUT: Duration = Duration::from_secs(600);
const BOOT_SILENCE: Duration = Duration::from_secs(300);

impl Guest {
    /// A guest with 2 CPUs, 512 MiB, plain TCG, ten minutes, and nothing in it but busybox.
    pub fn new(kernel: Kernel, job: Job) -> Guest {
        Guest {
            kernel,
            board: Board::default(),
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

    /// Whether its boot may be saved. QEMU saves nothing of some devices (`edu`).
    pub(crate) fn can_resume(&self) -> bool {
        self.accel == Accel::VirtualTime
            && self.board == Board::Usual
            && self.kernel.arch == Arch::Amd64
            && self.qemu_args.is_empty()
            && !self.whole_boot
    }
}

impl Job {
    /// The text that the guest's shell runs.
    pub(crate) fn script(&self) -> String {
        match self {
            Job::Command(words) => format!("exec {}\n", shell_words::join(words)),
            Job::Script(text) => text.clone(),
        }
    }
}

/// From this process's directory: QEMU runs in another.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, LabError> {
    std::path::absolute(path).map_err(LabError::io("find", path))
}
