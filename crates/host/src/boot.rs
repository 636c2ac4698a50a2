//! Boots of this machine with another kernel or other parameters, each once: the next boot after it
//! is the usual one, by itself, also if the kernel panics before any program runs.
//!
//! [`find_loader`] recognises the boot loader, and how it boots an entry once: a request that the
//! loader itself forgets before it obeys. The entries of the usual boot stay as they are; punctual
//! writes files of its own, and takes back the one setting of the next boot. What it writes is pure
//! text ([`grub`], [`systemd_boot`], [`raspberry`], [`u_boot`]). [`kept`] writes it so that it is
//! reverted byte for byte, wherever the process is killed, and in a later boot: its journal is
//! beside the loader's files. [`once`] are the commands `punctual boot`.
//!
//! A trial never becomes the usual boot that takes itself back: a kernel that panics before it does
//! would boot for ever.

mod files;
mod grub;
pub mod kept;
pub mod once;
mod raspberry;
mod systemd_boot;
mod u_boot;
mod words;

#[cfg(test)]
mod tests;

pub use files::{BootFiles, run_command};
pub use words::{MARK, Trial};

use crate::files::{FileError, Files};
use kept::Revert;
use serde::{Deserialize, Serialize};

/// Why a boot was not changed.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// It is not possible, or would be dangerous: nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// Something failed on the way; what was written is in the journal.
    #[error("{0}")]
    Failed(String),
}

impl From<FileError> for BootError {
    fn from(why: FileError) -> BootError {
        BootError::Failed(why.to_string())
    }
}

/// The boot loader, with the usual entry, as far as one is a text: trials are made from it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB 2, with its configuration in this directory; `body`: the booted entry without its
    /// title. `repeats`: it cannot clear the request, and boots the entry until that is reverted.
    Grub {
        directory: String,
        body: String,
        #[serde(default)]
        repeats: bool,
    },
    /// systemd-boot, with `loader/entries` in this directory; `body` is the booted entry.
    SystemdBoot { directory: String, body: String },
    /// The firmware of a Raspberry Pi, with config.txt in this directory. `tryboot`: it can read
    /// tryboot.txt once instead.
    RaspberryPi { directory: String, tryboot: bool },
    /// U-Boot that runs boot.scr of this file system before it reads this extlinux.conf, named from
    /// that file system's root. `environment`: a variable requests the trial, else a file on FAT.
    UBoot {
        directory: String,
        configuration: String,
        #[serde(default)]
        environment: bool,
    },
    /// None of these: the running kernel starts another one, and no file changes. `cmdline` is the
    /// command line of the usual boot, `release` its kernel.
    Kexec { cmdline: String, release: String },
}

impl Loader {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Loader::Grub { .. } => "GRUB",
            Loader::SystemdBoot { .. } => "systemd-boot",
            Loader::RaspberryPi { .. } => "Raspberry Pi firmware",
            Loader::UBoot { .. } => "U-Boot",
            Loader::Kexec { .. } => "kexec",
        }
    }

    /// The files that a trial writes, relative to the root, and how each is reverted.
    fn trial_files(&self) -> Vec<(String, Revert)> {
        let (directory, names): (&str, &[(&str, Revert)]) = match self {
            Loader::Grub { directory, .. } => (
                directory,
                &[("custom.cfg", Revert::GrubCustom), ("grubenv", Revert::GrubEnvironment)],
            ),
            Loader::SystemdBoot { directory, .. } => {
                (directory, &[(systemd_boot::FILE, Revert::Counted)])
            }
            Loader::RaspberryPi { directory, tryboot: true } => {
                (directory, &[(raspberry::CMDLINE, Revert::Own), (raspberry::TRYBOOT, Revert::Own)])
            }
            Loader::RaspberryPi { directory, tryboot: false } => (
                directory,
                &[(raspberry::CMDLINE, Revert::Own), (raspberry::CONFIG, Revert::Whole)],
            ),
            Loader::UBoot { directory, environment, .. } => {
                let all_files = &[
                    (u_boot::TRIAL, Revert::Own),
                    (u_boot::SCRIPT, Revert::Own),
                    (u_boot::ONCE, Revert::Own),
                ];
                (directory, if *environment { &all_files[..2] } else { all_files })
            }
            Loader::Kexec { .. } => return Vec::new(),
        };
        names.iter().map(|(name, how)| (format!("{directory}/{name}"), *how)).collect()
    }

    /// How the usual boot follows a trial.
    pub fn way_back(&self) -> &'static str {
        match self {
            Loader::Grub { repeats: true, .. } | Loader::RaspberryPi { tryboot: false, .. } => {
                "NONE: the trial boots again and again until `punctual boot restore`"
            }
            Loader::Grub { .. } | Loader::SystemdBoot { .. } | Loader::UBoot { .. } => {
                "the boot loader forgets the trial before it boots it"
            }
            Loader::RaspberryPi { .. } => "the firmware forgets the trial before it boots it",
            Loader::Kexec { .. } => "any reset or ordinary reboot is the usual boot",
        }
    }
}

/// The boot loader of this machine. `any`: also one that has no way back by itself.
///
/// # Errors
/// Why each of them cannot boot an entry once.
pub(crate) fn find_loader(files: &dyn Files, any: bool) -> Result<Loader, Vec<String>> {
    let mut impossible_reason = None;
    let ways: [fn(&dyn Files, bool) -> Way; 4] =
        [raspberry::find_way, systemd_boot::find_way, grub::find_way, u_boot::find_way];
    for way in ways {
        match way(files, any) {
            Way::Found(loader) => return Ok(loader),
            Way::Other => {}
            // If one of them booted this system, files of the next ones are leftovers.
            Way::Impossible(why) => {
                impossible_reason = Some(why);
                break;
            }
        }
    }
    find_kexec(files)
        .map_err(|why| vec![impossible_reason.unwrap_or_else(|| NO_LOADER.to_owned()), why])
}

const NO_LOADER: &str = "there are no files of GRUB, systemd-boot, a Raspberry Pi's firmware, or \
                         U-Boot with extlinux.conf";

/// Whether a boot loader is this machine's.
enum Way {
    Found(Loader),
    /// There is nothing of it.
    Other,
    /// It is this machine's, and cannot boot an entry once.
    Impossible(String),
}

/// The programs that load another kernel.
const KEXEC: [&str; 2] = ["/usr/sbin/kexec", "/sbin/kexec"];

fn find_kexec(files: &dyn Files) -> Result<Loader, String> {
    if !files.exists("/sys/kernel/kexec_loaded") {
        return Err("kexec: this kernel has none".to_owned());
    }
    if !KEXEC.iter().any(|path| files.exists(path)) {
        return Err("kexec: kexec-tools is not installed".to_owned());
    }
    let model = files.read("/proc/device-tree/model").unwrap_or_default();
    if model.contains("Raspberry Pi 5") {
        return Err("kexec: it fails on a Raspberry Pi 5".to_owned());
    }
    let read = |path: &str| files.read_trimmed(path).map_err(|why| format!("kexec: {why}"));
    let cmdline = read("/proc/cmdline")?;
    if words::is_trial(&cmdline) {
        return Err("kexec: this boot is a trial; reboot first".to_owned());
    }
    // Words of other boot loaders, which kexec would repeat.
    let is_loaders = |word: &&str| word.starts_with("BOOT_IMAGE=") || word.starts_with("initrd=");
    let words: Vec<&str> = cmdline.split_whitespace().filter(|word| !is_loaders(word)).collect();
    Ok(Loader::Kexec { cmdline: words.join(" "), release: read("/proc/sys/kernel/osrelease")? })
}

/// The file of an installed kernel, and that of its initial file system, below a directory.
fn find_installed(
    files: &dyn Files,
    directory: &str,
    release: &str,
) -> Option<(String, Option<String>)> {
    let existing = |names: &[&str], end: &str| {
        let paths = names.iter().map(|name| format!("{directory}/{name}-{release}{end}"));
        paths.into_iter().find(|path| files.exists(path))
    };
    let kernel = existing(&IMAGES, "").or_else(|| existing(&["kernel"], ".img"))?;
    let initrd = existing(&["initrd.img", "initrd"], "");
    Some((kernel, initrd.or_else(|| existing(&["initramfs"], ".img"))))
}

/// The names of kernels, before `-` and the release.
const IMAGES: [&str; 6] = ["vmlinuz", "vmlinux", "Image", "zImage", "bzImage", "kernel"];

/// The release that the name of a kernel's file says.
fn release_of(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    IMAGES.iter().find_map(|image| name.strip_prefix(image)?.strip_prefix('-'))
}
