//! A guest: what to boot, what to put into it, what to run there.

use crate::card;
use crate::contents::Contents;
use crate::exact;
use crate::outcome::Phase;
use crate::qemu::{self, Limits, Machine, Start};
use crate::saved;
use crate::{Arch, Board, GuestResult, Kernel, LabError};
use punctual_core::MadeOf;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::initramfs::Source;

/// What makes the guest's time go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accel {
    /// QEMU's translator, all CPUs in turn in one thread: for behaviour, not for latencies (those
    /// are the host's noise).
    Tcg,
    /// Time counted in guest instructions, 8 ns each (`-icount shift=3,sleep=off`), on one CPU,
    /// independent of the host. It compares software paths, not hardware: no caches, no
    /// frequency changes, no firmware interrupts. Two runs of the same guest agree to the last
    /// digit (docs/guests.md says why, and what was tried); whoever states a figure compares
    /// repeats.
    VirtualTime,
    /// This machine's own processor, at full speed; time is the host's with all its noise. Only for
    /// its own architecture, and only where /dev/kvm does what it promises: on some hosts no
    /// kernel reaches its first process.
    Kvm,
}

/// A file in the guest.
#[derive(Clone, Debug)]
pub struct GuestFile {
    /// Its absolute path there.
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
    /// What boots.
    pub kernel: Kernel,
    /// The board it has.
    pub board: Board,
    /// More words for the kernel's command line.
    pub cmdline_extra: String,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// How time goes.
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
    /// Whether the job sees this machine's whole file system (read-only, through 9p, with writes
    /// kept in the guest's memory above it), so that installed tools run as they are. Not in
    /// virtual time.
    pub share_host: bool,
    /// What runs.
    pub job: Job,
    /// How long it may take in all, in time that this machine gave it: what it waits for a CPU, or
    /// a hypervisor takes, does not count.
    pub timeout: Duration,
    /// How long of that may pass until its job starts without a word on the console.
    pub boot_silence: Duration,
    /// Where the files of the results are put instead of into memory: a directory that is there.
    pub results_to: Option<PathBuf>,
    /// Whether what it is made of is kept, so that it can run again ([`exact`]).
    pub keep: bool,
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

/// The progress of a guest, for those who watch it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// How far it has come.
    pub phase: Phase,
    /// How long it has been running, by this machine's clock.
    pub elapsed: Duration,
}

/// What a watcher requests of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// That it goes on.
    GoOn,
    /// That the job ends as by Ctrl-C (SIGINT) and what it has comes back.
    End,
    /// That it is ended at once; nothing more comes back.
    Kill,
}

/// What the kernel keeps for itself: 62 MiB of 368 with 6.1 on amd64 (its line `Memory:`), and some
/// more of more.
const MEMORY_BASE_MB: u64 = 80;
/// What the job may write beside the files that it finds.
const MEMORY_ROOM_MB: u64 = 16;

/// What a guest may take that has no limit of its own: far beyond what any takes, so that only one
/// that hangs reaches it.
const TIMEOUT: Duration = Duration::from_secs(600);
const BOOT_SILENCE: Duration = Duration::from_secs(300);

/// How often a guest is booted that fell victim to QEMU's own fault before its job began.
const BOOTS_MAX: u32 = 3;

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
            share_host: false,
            job,
            boot_silence: BOOT_SILENCE,
            results_to: None,
            keep: false,
            timeout: TIMEOUT,
            qemu_args: Vec::new(),
        }
    }

    /// Boots the guest, runs the job, and comes back when all is over. Blocks the calling thread;
    /// the guest is ended when that thread or this process dies.
    ///
    /// # Errors
    /// Only what kept the guest from being run at all or its results from being read; how the guest
    /// itself ended is in [`GuestResult::outcome`].
    pub fn run(&self) -> Result<GuestResult, LabError> {
        self.run_watched(&mut |_| Control::GoOn)
    }

    /// The same, with a watcher that is called some times a second and may end it.
    pub fn run_watched(
        &self,
        watch: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<GuestResult, LabError> {
        if self.accel == Accel::VirtualTime {
            self.check_virtual_time()?;
        }
        self.board.check(self)?;
        let dir = tempfile::Builder::new().prefix("punctual-guest-").tempdir();
        let dir = dir.map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let resumes = self.write_contents(dir.path())?;
        if self.accel == Accel::Kvm {
            check_kvm(self.kernel.arch)?;
        }
        let kernel = absolute(&self.kernel.image)?;
        let mut machine = self.machine(&kernel)?;
        let limits = Limits { total: self.timeout, boot_silence: self.boot_silence };
        let made_of = self.keep.then(|| exact::keep(&machine, dir.path(), resumes));
        let mut ended = saved::prepare(&mut machine, dir.path(), resumes, limits, watch)?;
        let mut boots = 0;
        loop {
            boots += 1;
            let ended = match ended.take() {
                Some(ended) => ended,
                None => qemu::run(&machine, dir.path(), limits, watch)?,
            };
            if self.board == Board::Raspi3b {
                card::unload(dir.path())?;
            }
            let mut result =
                GuestResult::collect(dir.path(), ended, boots, self.results_to.as_deref())?;
            result.cmdline = machine.command_line()?;
            match &made_of {
                None => {}
                Some(Ok(made_of)) => result.made_of = Some(made_of.clone()),
                // A full disk is no reason to lose what was measured.
                Some(Err(why)) => {
                    let message = format!("what the run was made of is not kept: {why}");
                    result.problems.push(message);
                }
            }
            if boots == BOOTS_MAX || !result.is_torn_patch() {
                return Ok(result);
            }
        }
    }

    /// Keeps what the guest is made of, and runs nothing: for a run of which every instruction is
    /// seen ([`exact::Replay`]).
    ///
    /// # Errors
    /// As [`Guest::run`]; and a guest that is not of one CPU in virtual time, on a usual x86-64
    /// board.
    pub fn prepared(&self) -> Result<MadeOf, LabError> {
        let usual = self.board == Board::Usual && self.kernel.arch == Arch::Amd64;
        if self.accel != Accel::VirtualTime || !usual {
            return Err(LabError::Request(
                "only x86-64 guests in virtual time can be seen instruction by instruction"
                    .to_owned(),
            ));
        }
        self.check_virtual_time()?;
        let dir = tempfile::Builder::new().prefix("punctual-guest-").tempdir();
        let dir = dir.map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let resumes = self.write_contents(dir.path())?;
        let kernel = absolute(&self.kernel.image)?;
        exact::keep(&self.machine(&kernel)?, dir.path(), resumes)
    }

    /// Writes what is in the guest into the directory that it runs in. Whether it goes on from its
    /// saved boot is the answer.
    fn write_contents(&self, dir: &Path) -> Result<bool, LabError> {
        let contents = Contents::of(self)?;
        let base = contents.base.write(&dir.join(qemu::INITRAMFS))?;
        self.check_memory(base + contents.job.write(&dir.join(qemu::JOB))?)?;
        if !contents.resumes {
            saved::append_job(dir)?;
        }
        Ok(contents.resumes)
    }

    /// Whether its boot may be saved. QEMU saves nothing of some devices (`edu`).
    pub(crate) fn can_resume(&self) -> bool {
        self.accel == Accel::VirtualTime
            && self.board == Board::Usual
            && self.kernel.arch == Arch::Amd64
            && self.qemu_args.is_empty()
    }

    fn machine<'a>(&'a self, kernel: &'a Path) -> Result<Machine<'a>, LabError> {
        Ok(Machine {
            arch: self.kernel.arch,
            board: self.board,
            device_tree: self.board.device_tree(&self.kernel)?,
            accel: self.accel,
            cpus: self.cpus,
            memory_mb: self.memory_mb,
            kernel,
            cmdline_extra: &self.cmdline_extra,
            share_host: self.share_host,
            start: Start::Boot,
            extra_args: &self.qemu_args,
        })
    }

    /// What would make virtual time differ from run to run, or mean something else than it says.
    fn check_virtual_time(&self) -> Result<(), LabError> {
        if self.cpus != 1 {
            return Err(LabError::Request(format!(
                "virtual time needs 1 CPU, not {}: QEMU runs several CPUs in turn in one thread, \
                 and under load the latencies are the lengths of those turns",
                self.cpus
            )));
        }
        if self.share_host {
            return Err(LabError::Request(
                "virtual time and the host's shared files exclude each other: QEMU completes a \
                 read when this machine has done it, at a different guest instruction each time, \
                 so runs differ; copy the programs into the guest"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The unpacked files, and what the job writes, may fill half of the memory at most
    /// (Documentation/filesystems/tmpfs.rst): of that which is left beside the kernel and the
    /// packed files, because the limit is set before these are freed. Files beyond it are cut
    /// short, and programs among them die of SIGBUS or SIGSEGV.
    fn check_memory(&self, initramfs_bytes: u64) -> Result<(), LabError> {
        let files_mb = initramfs_bytes.div_ceil(1 << 20);
        let needed = files_mb + 2 * (files_mb + MEMORY_ROOM_MB) + MEMORY_BASE_MB;
        if u64::from(self.memory_mb) < needed {
            return Err(LabError::Request(format!(
                "{files_mb} MiB of files for a guest with {} MiB of memory: give it at least \
                 {needed} MiB",
                self.memory_mb
            )));
        }
        Ok(())
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

/// Whether a guest of this architecture may use /dev/kvm; whether it then gets anywhere shows only
/// when it boots.
fn check_kvm(arch: Arch) -> Result<(), LabError> {
    if Arch::native()? != arch {
        let message = format!(
            "kvm runs guests of this machine's own architecture only, not {}",
            arch.debian_name()
        );
        return Err(LabError::Request(format!("{message}; use tcg or virtual time")));
    }
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    opened.map(drop).map_err(|why| {
        LabError::missing(
            format!("/dev/kvm that can be used ({why})"),
            "modprobe kvm_amd or kvm_intel (in a virtual machine: nested virtualisation), join \
             the group kvm, or use accel = \"virtual-time\" or \"tcg\"",
        )
    })
}

/// From this process's directory: QEMU runs in another.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, LabError> {
    std::path::absolute(path).map_err(LabError::io("find", path))
}
