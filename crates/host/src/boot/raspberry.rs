//! The firmware of a Raspberry Pi: `reboot "0 tryboot"` has it read tryboot.txt instead of
//! config.txt once. It forgets the request before it starts the trial, so that a crash or a reset
//! boots config.txt again (raspberrypi.com, *config.txt: tryboot*).
//!
//! The request is set by Raspberry Pi's kernels as they restart; mainline kernels do not, and then
//! the reboot is the usual one. Without it only config.txt itself could name the trial, and the
//! board would boot that until config.txt is restored.

use super::words::Trial;
use super::{Loader, Way, find_installed};
use crate::files::Files;

/// The mount points of the firmware's partition: since Debian 12, and before.
pub(super) const DIRECTORIES: [&str; 2] = ["boot/firmware", "boot"];
/// The command line of a trial.
pub(super) const CMDLINE: &str = "cmdline.punctual";
/// The configuration of a trial.
pub(super) const TRYBOOT: &str = "tryboot.txt";
pub(super) const CONFIG: &str = "config.txt";
/// A file of Raspberry Pi's own kernels, which set the request.
const DOWNSTREAM: &str = "/sys/devices/platform/soc/soc:firmware/get_throttled";
/// What the firmware says about the present boot.
const FLAG: &str = "/proc/device-tree/chosen/bootloader/tryboot";

/// The directory of config.txt. `any`: also where a trial would be repeated.
pub(super) fn find_way(files: &dyn Files, any: bool) -> Way {
    let compatible = files.read("/proc/device-tree/compatible").unwrap_or_default();
    let has_config = |directory: &&&str| files.exists(&format!("/{directory}/{CONFIG}"));
    let directory =
        DIRECTORIES.iter().find(has_config).filter(|_| compatible.contains("raspberrypi,"));
    let Some(directory) = directory else { return Way::Other };
    let autoboot = files.read(&format!("/{directory}/autoboot.txt")).unwrap_or_default();
    let no_tryboot = if autoboot.lines().any(|line| line.trim() == "tryboot_a_b=1") {
        Some("autoboot.txt has tryboot_a_b=1: tryboot switches partitions here")
    } else if files.exists(DOWNSTREAM) {
        None
    } else {
        Some(
            "this kernel does not request a tryboot from the firmware (those of Raspberry Pi OS \
             do, mainline kernels do not)",
        )
    };
    match no_tryboot {
        Some(why) if !any => Way::Impossible(format!("Raspberry Pi firmware: {why}")),
        why => Way::Found(Loader::RaspberryPi {
            directory: (*directory).to_owned(),
            tryboot: why.is_none(),
        }),
    }
}

/// The configuration and the command line of a trial.
///
/// # Errors
/// The usual ones cannot be read, or the kernel is not beside them.
pub(super) fn trial_files(
    files: &dyn Files,
    directory: &str,
    usual: &str,
    trial: &Trial,
) -> Result<(String, String), String> {
    let read = |name: &str| {
        let text = files.read(&format!("/{directory}/{name}"));
        text.map_err(|why| format!("Raspberry Pi firmware: {why}"))
    };
    let setting = |key: &str| {
        let mut assignments = usual.lines().filter_map(|line| line.trim().split_once('='));
        assignments.rfind(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
    };
    if usual.lines().any(|line| line.trim().starts_with("include ")) {
        return Err("Raspberry Pi firmware: config.txt includes other files".to_owned());
    }
    let prefix = setting("os_prefix").unwrap_or_default();
    let name = setting("cmdline").unwrap_or_else(|| "cmdline.txt".to_owned());
    let cmdline = read(&format!("{prefix}{name}"))?;
    let mut config = usual.trim_end_matches('\n').to_owned();
    config += &format!("\n\n# Added by punctual for one boot.\n[all]\ncmdline={CMDLINE}\n");
    if !prefix.is_empty() {
        // The firmware ignores a prefix without a kernel in it.
        return Err(format!("Raspberry Pi firmware: config.txt has os_prefix={prefix}"));
    }
    if let Some(release) = &trial.kernel {
        let (kernel, initrd) = find_installed(files, &format!("/{directory}"), release)
            .ok_or_else(|| format!("there is no kernel {release} in /{directory}"))?;
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        config += &format!("kernel={}\n", name(&kernel));
        match initrd {
            Some(initrd) => config += &format!("initramfs {} followkernel\n", name(&initrd)),
            None => config += "auto_initramfs=0\n",
        }
    }
    let line = cmdline.lines().next().unwrap_or_default();
    Ok((config, format!("{}\n", trial.apply_to(line))))
}

/// Whether the firmware says that this boot is one of tryboot.txt; `None` if it says nothing.
pub(super) fn is_tryboot(files: &dyn Files) -> Option<bool> {
    let bytes = files.read_bytes(FLAG).ok()?;
    Some(bytes.iter().any(|byte| *byte != 0))
}
