//! The saved boot of a guest in virtual time. A job of a second takes most of its guest's
//! instructions for booting, and a lab boots the same machine for each of its cells: it boots once,
//! pauses itself at an instruction of its own (init.sh), is saved by QEMU, and each job resumes
//! from there. The same machine boots the same way each time, so a saved boot can be recreated.

use crate::LabError;
use crate::artefacts::Artefacts;
use crate::emulator::Emulator;
use crate::progress::{GuestControl, GuestPhase, GuestProgress};
use crate::qemu::{self, Limits, QemuEnd, QemuMachine, Start};
use crate::ssh::digest_of;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two checks whether another process has saved the same boot.
const POLL: Duration = Duration::from_millis(20);

/// A saved boot.
pub struct SavedBoot {
    image: PathBuf,
    console: PathBuf,
}

/// Prepares a machine whose first file system and job are in its directory: to resume from its
/// saved boot if possible, else to boot with both. If it ended while it should be saved, it has
/// nothing to resume from, and the end is returned.
pub(crate) fn prepare_boot(
    machine: &mut QemuMachine,
    dir: &Path,
    resumes: bool,
    limits: Limits,
    watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
) -> Result<Option<QemuEnd>, LabError> {
    if !resumes {
        return Ok(None);
    }
    match SavedBoot::find_or_create(machine, dir, limits, watch)? {
        Boot::Saved(saved) => {
            machine.start = Start::Resume;
            saved.copy_into(dir).map(|()| None)
        }
        Boot::Ended(ended) => Ok(Some(ended)),
    }
}

/// Adds the job to the first file system, as a second archive after the first: its files replace
/// those (Documentation/driver-api/early-userspace/buffer-format.rst).
pub(crate) fn append_job(dir: &Path) -> Result<(), LabError> {
    let initramfs = dir.join(qemu::INITRAMFS);
    let job = dir.join(qemu::JOB);
    let mut job = fs::File::open(&job).map_err(LabError::io("open", &job))?;
    let file = fs::OpenOptions::new().append(true).open(&initramfs);
    let mut file = file.map_err(LabError::io("open", &initramfs))?;
    io::copy(&mut job, &mut file).map(drop).map_err(LabError::io("write", &initramfs))
}

/// The result of the attempt to save a boot.
pub enum Boot {
    /// The machine can resume from here.
    Saved(SavedBoot),
    /// The guest ended, or was killed, before it asked to be saved.
    Ended(QemuEnd),
}

impl SavedBoot {
    /// The saved boot of the machine in this directory, with its first file system there; created
    /// if not stored.
    pub(crate) fn find_or_create(
        machine: &QemuMachine,
        dir: &Path,
        limits: Limits,
        watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
    ) -> Result<Boot, LabError> {
        let store = Artefacts::open()?;
        let machine = QemuMachine { start: Start::Save, ..machine.clone() };
        let key = boot_key(&machine, dir)?;
        let [image, console] = ["saved", "console"].map(|kind| format!("{key}.{kind}"));
        // Of two processes that need the same boot, the second waits for the first.
        let _one = loop {
            match store.try_lock(&key)? {
                Some(lock) => break lock,
                None if watch(booting_progress()) == GuestControl::Kill => {
                    let how = qemu::QemuEnding::Killed;
                    let emulator = Emulator::find(machine.arch)?.version;
                    let elapsed = Duration::ZERO;
                    return Ok(Boot::Ended(QemuEnd { how, elapsed, saved: false, emulator }));
                }
                None => std::thread::sleep(POLL),
            }
        };
        if let (Some(image), Some(console)) =
            (store.find_by_name(&image)?, store.find_by_name(&console)?)
        {
            return Ok(Boot::Saved(SavedBoot { image, console }));
        }
        let file = dir.join(qemu::SAVED);
        write_empty_image(&file)?;
        let ended = qemu::run_qemu(&machine, dir, limits, watch)?;
        if !ended.saved {
            return Ok(Boot::Ended(ended));
        }
        settle_clock(&file)?;
        Ok(Boot::Saved(SavedBoot {
            image: store.store_as(&image, &file)?,
            console: store.store_as(&console, &dir.join(qemu::CONSOLE))?,
        }))
    }

    /// Copies the saved boot into the directory of a resuming machine: QEMU writes into its image.
    pub(crate) fn copy_into(&self, dir: &Path) -> Result<(), LabError> {
        for (file, name) in [(&self.image, qemu::SAVED), (&self.console, qemu::CONSOLE)] {
            fs::copy(file, dir.join(name)).map_err(LabError::io("copy", file))?;
        }
        Ok(())
    }
}

fn booting_progress() -> GuestProgress {
    GuestProgress { phase: GuestPhase::Booting, elapsed: Duration::ZERO }
}

/// Equal machines have equal keys: their kernel, first file system, QEMU and its arguments.
fn boot_key(machine: &QemuMachine, dir: &Path) -> Result<String, LabError> {
    let digest =
        |path: &Path| fs::File::open(path).and_then(digest_of).map_err(LabError::io("read", path));
    let kernel = digest(machine.kernel)?;
    let initramfs = digest(&dir.join(qemu::INITRAMFS))?;
    let emulator = Emulator::find(machine.arch)?.version;
    let no_path = QemuMachine { kernel: Path::new(""), ..machine.clone() };
    let text = format!("{kernel} {initramfs} {emulator} {:?}", no_path.to_args()?);
    // Reading from memory cannot fail.
    Ok(digest_of(text.as_bytes()).unwrap_or_default())
}

/// Advances the guest's clock to the same value in each such boot. When the guest has paused
/// itself, QEMU's main loop stops the machine; doing so, it may take it for idle and skip to its
/// next timer (icount_start_warp_timer): seen in one of four boots on busy CPUs. The rest of the
/// state is the same. Skipped time is a separate part of the state, `qemu_icount_bias` in ns: zero,
/// or one tick if the boot was never idle; it is set to one second, as if the CPU had been stopped
/// that long.
fn settle_clock(image: &Path) -> Result<(), LabError> {
    /// The preceding bytes: the length of the part's name, the name, and its version.
    const PART: &[u8] = b"\x0ctimer/icount\0\0\0\x01";
    /// The state of devices follows that of the memory.
    const END: u64 = 4 << 20;
    const SECOND: u64 = 1_000_000_000;
    let settle = || -> io::Result<bool> {
        let mut file = fs::OpenOptions::new().read(true).write(true).open(image)?;
        let begin = file.metadata()?.len().saturating_sub(END);
        file.seek(SeekFrom::Start(begin))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let part = end.windows(PART.len()).rposition(|bytes| bytes == PART);
        let at = part.map(|at| at + PART.len());
        let Some(bias) = at.and_then(|at| end.get(at..at + 8)?.try_into().ok()) else {
            return Ok(false);
        };
        let settled = (u64::from_be_bytes(bias) / SECOND + 1) * SECOND;
        file.seek(SeekFrom::Start(begin + at.unwrap_or_default() as u64))?;
        file.write_all(&settled.to_be_bytes())?;
        Ok(true)
    };
    match settle().map_err(LabError::io("change", image))? {
        true => Ok(()),
        false => Err(LabError::malformed(
            image,
            "QEMU's saved state has no part `timer/icount`, version 1",
        )),
    }
}

/// The smallest image in which QEMU can save a machine: 1 MiB, empty (docs/interop/qcow2.rst of
/// QEMU: the header; the table of reference counts in the second cluster, its first block in the
/// third; the first table of clusters in the fourth).
fn write_empty_image(path: &Path) -> Result<(), LabError> {
    const CLUSTER: usize = 1 << 16;
    let mut image = vec![0u8; 4 * CLUSTER];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        image[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(b"QFI\xfb");
    put(&2u32.to_be_bytes());
    // No backing file: offset and length of its name.
    put(&0u64.to_be_bytes());
    put(&0u32.to_be_bytes());
    // Bits of a cluster, the size of the disk, no encryption, one entry in the first table.
    put(&16u32.to_be_bytes());
    put(&(1u64 << 20).to_be_bytes());
    put(&0u32.to_be_bytes());
    put(&1u32.to_be_bytes());
    put(&(3 * CLUSTER as u64).to_be_bytes());
    put(&(CLUSTER as u64).to_be_bytes());
    put(&1u32.to_be_bytes());
    image[CLUSTER..CLUSTER + 8].copy_from_slice(&(2 * CLUSTER as u64).to_be_bytes());
    // Four clusters are in use, once each.
    for cluster in 0..4 {
        image[2 * CLUSTER + 2 * cluster + 1] = 1;
    }
    fs::write(path, image).map_err(LabError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &[u8] = b"\x0ctimer/icount\0\0\0\x01";

    fn image(bias: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_empty_image(file.path()).unwrap();
        let mut whole = fs::read(file.path()).unwrap();
        // The first is the guest's memory, with arbitrary contents.
        for bias in [7, bias] {
            whole.extend([NAME, &bias.to_be_bytes(), b"and more"].concat());
        }
        fs::write(file.path(), whole).unwrap();
        file
    }

    fn biases(file: &tempfile::NamedTempFile) -> Vec<u64> {
        let whole = fs::read(file.path()).unwrap();
        let at = whole.windows(NAME.len()).enumerate().filter(|(_, bytes)| *bytes == NAME);
        at.map(|(at, _)| whole[at + NAME.len()..][..8].try_into().unwrap())
            .map(u64::from_be_bytes)
            .collect()
    }

    #[test]
    fn the_clock_of_a_saved_guest_is_advanced_to_the_next_second() {
        for (bias, settled) in
            [(0, 1), (210_584, 1), (3_999_999, 1), (1_000_000_000, 2), (1_003_999_999, 2)]
        {
            let file = image(bias);
            let before = fs::read(file.path()).unwrap().len();
            settle_clock(file.path()).unwrap();
            assert_eq!(biases(&file), [7, settled * 1_000_000_000], "{bias}");
            assert_eq!(fs::read(file.path()).unwrap().len(), before);
        }
    }

    #[test]
    fn a_state_without_a_clock_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_empty_image(file.path()).unwrap();
        assert!(matches!(settle_clock(file.path()), Err(LabError::Malformed { .. })));
        let bytes = fs::read(file.path()).unwrap();
        // The header: its magic and version, and the cluster that its table of clusters is in.
        assert_eq!((&bytes[..8], bytes[45]), (&b"QFI\xfb\0\0\0\x02"[..], 0x03));
        assert_eq!(bytes.len(), 4 << 16);
    }
}
