//! Runs a guest: writes its contents, starts and watches QEMU, collects the results.

use crate::accel::Accel;
use crate::board::{RASPI_CPUS, RASPI_MEMORY_MB};
use crate::contents::Contents;
use crate::guest::{Guest, to_absolute};
use crate::progress::{GuestControl, GuestProgress};
use crate::qemu::{self, Limits, QemuMachine, Start};
use crate::{Arch, GuestBoard, GuestResult, LabError, card, exact, saved_boot};
use punctual_core::MadeOf;
use std::path::Path;

/// The memory of the kernel itself: 62 MiB of 368 with 6.1 on amd64 (its line `Memory:`), and more
/// on larger machines.
const MEMORY_BASE_MB: u64 = 80;
/// Room for the files that the job writes.
const MEMORY_ROOM_MB: u64 = 16;

/// The maximum number of boots of a guest if faults of QEMU end it before its job begins.
const BOOTS_MAX: u32 = 3;

impl Guest {
    /// Boots the guest, runs the job, and returns when all is over. Blocks the calling thread; the
    /// guest is killed when that thread or this process dies.
    ///
    /// # Errors
    /// The guest could not be run at all or its results not be read; how the guest itself ended is
    /// in [`GuestResult::outcome`].
    pub fn run(&self) -> Result<GuestResult, LabError> {
        self.run_watched(&mut |_| GuestControl::GoOn)
    }

    /// Like [`Guest::run`], with a watcher, called several times a second, that may end the guest.
    pub fn run_watched(
        &self,
        watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
    ) -> Result<GuestResult, LabError> {
        if self.accel == Accel::VirtualTime {
            self.check_virtual_time()?;
        }
        self.check_board()?;
        let dir = tempfile::Builder::new().prefix("punctual-guest-").tempdir();
        let dir = dir.map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let resumes = self.write_contents(dir.path())?;
        if self.accel == Accel::Kvm {
            check_kvm(self.kernel.arch)?;
        }
        let kernel = to_absolute(&self.kernel.image)?;
        let mut machine = self.build_machine(&kernel)?;
        let limits = Limits { total: self.timeout, boot_silence: self.boot_silence };
        let made_of = self.keep.then(|| exact::store_files(&machine, dir.path(), resumes));
        let mut ended = saved_boot::prepare_boot(&mut machine, dir.path(), resumes, limits, watch)?;
        let mut boots = 0;
        loop {
            boots += 1;
            let ended = match ended.take() {
                Some(ended) => ended,
                None => qemu::run_qemu(&machine, dir.path(), limits, watch)?,
            };
            if self.board == GuestBoard::Raspi3b {
                card::unload_parts(dir.path())?;
            }
            let mut result =
                GuestResult::from_directory(dir.path(), ended, boots, self.results_to.as_deref())?;
            result.cmdline = machine.command_line()?;
            match &made_of {
                None => {}
                Some(Ok(made_of)) => result.made_of = Some(made_of.clone()),
                // A full disk must not lose the measured results.
                Some(Err(why)) => {
                    let message = format!("the inputs of the run are not kept: {why}");
                    result.problems.push(message);
                }
            }
            if boots == BOOTS_MAX || !result.is_torn_patch() {
                return Ok(result);
            }
        }
    }

    /// Stores the files of the guest without running it: for a run in which every instruction is
    /// seen ([`exact::Replay`]).
    ///
    /// # Errors
    /// Those of [`Guest::run`]; or the guest does not have one CPU in virtual time, on a usual
    /// board.
    pub fn store_for_replay(&self) -> Result<MadeOf, LabError> {
        if self.accel != Accel::VirtualTime || self.board != GuestBoard::Usual {
            return Err(LabError::Request(
                "only guests in virtual time can be traced by instruction, and no imitated boards"
                    .to_owned(),
            ));
        }
        self.check_virtual_time()?;
        let dir = tempfile::Builder::new().prefix("punctual-guest-").tempdir();
        let dir = dir.map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let resumes = self.write_contents(dir.path())?;
        let kernel = to_absolute(&self.kernel.image)?;
        exact::store_files(&self.build_machine(&kernel)?, dir.path(), resumes)
    }

    /// Writes the contents of the guest into its working directory. Returns whether it resumes from
    /// its saved boot.
    fn write_contents(&self, dir: &Path) -> Result<bool, LabError> {
        let contents = Contents::from_guest(self)?;
        let base = contents.base.write(&dir.join(qemu::INITRAMFS))?;
        self.check_memory(base + contents.job.write(&dir.join(qemu::JOB))?)?;
        if !contents.resumes {
            saved_boot::append_job(dir)?;
        }
        Ok(contents.resumes)
    }

    fn build_machine<'a>(&'a self, kernel: &'a Path) -> Result<QemuMachine<'a>, LabError> {
        Ok(QemuMachine {
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

    /// Refuses requests that its board cannot meet.
    fn check_board(&self) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Request(format!("a Raspberry Pi 3 {what}")));
        match self {
            _ if self.board == GuestBoard::Usual => Ok(()),
            Guest { kernel, .. } if kernel.arch != Arch::Arm64 => {
                wrong(format!("runs arm64 kernels, not {}", kernel.arch.debian_name()))
            }
            Guest { cpus, .. } if !(1..=RASPI_CPUS).contains(cpus) => {
                wrong(format!("has 1 to {RASPI_CPUS} CPUs, not {cpus}"))
            }
            Guest { memory_mb, .. } if *memory_mb != RASPI_MEMORY_MB => {
                wrong(format!("has {RASPI_MEMORY_MB} MiB of memory, not {memory_mb}"))
            }
            Guest { accel: Accel::Kvm, .. } => wrong("cannot be emulated with kvm".to_owned()),
            Guest { share_host: true, .. } => {
                wrong("has no virtio devices to share this machine's files".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Refuses requests that would make virtual time unrepeatable, or change its meaning.
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

    /// The unpacked files, and those written by the job, may fill at most half of the memory
    /// (Documentation/filesystems/tmpfs.rst): of the memory left beside the kernel and the packed
    /// files, because the limit is set before these are freed. Files beyond it are truncated, and
    /// programs among them die of SIGBUS or SIGSEGV.
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

/// Checks that a guest of this architecture may use /dev/kvm; only booting shows whether it works.
fn check_kvm(arch: Arch) -> Result<(), LabError> {
    if Arch::from_host()? != arch {
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
