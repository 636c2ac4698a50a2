//! U-Boot with extlinux.conf: a boot.scr that boots another configuration once.
//!
//! U-Boot's usual `distro_bootcmd` runs /boot.scr before it looks into /boot for
//! extlinux/extlinux.conf, but after /extlinux/extlinux.conf. The script removes a file, which
//! U-Boot can on FAT, and only then boots the trial: whatever happens to that, the next boot does
//! not find the file, and boots extlinux.conf. On other root file systems it is a variable of
//! U-Boot's environment, which the script saves without it first.

use super::words::Trial;
use super::{Loader, Way, find_installed, release_of};
use crate::check::CgroupMount;
use crate::files::Files;

/// The script, in the root of the file system.
pub(super) const SCRIPT: &str = "boot.scr";
/// The file that requests a trial, and its configuration.
pub(super) const ONCE: &str = "punctual/once";
pub(super) const TRIAL: &str = "punctual/trial.conf";
const USUAL: &str = "boot/extlinux/extlinux.conf";
/// A script that would run in the place of ours.
const OTHERS: [&str; 3] = ["boot.scr.uimg", "boot.scr", "extlinux/extlinux.conf"];

/// The root file system, from which paths are as from any mount point.
const ROOT: &str = ".";
/// The variable that requests a trial where U-Boot cannot remove a file.
pub(super) const VARIABLE: &str = "punctual_once";
/// The places of the environment for fw_setenv(8), and of that program.
const PLACES: &str = "/etc/fw_env.config";
const TOOLS: [&str; 4] =
    ["/usr/bin/fw_setenv", "/usr/sbin/fw_setenv", "/bin/fw_setenv", "/sbin/fw_setenv"];
/// The largest environment that is read, in bytes.
const MAX_ENVIRONMENT: usize = 1 << 20;

/// The mount points of FAT file systems, without the leading `/`, and the root.
pub(super) fn mount_points(files: &dyn Files) -> Vec<String> {
    let mounts = files.read("/proc/self/mounts").unwrap_or_default();
    let fat_mounts = mounts.lines().filter_map(CgroupMount::parse).filter(|of| of.kind == "vfat");
    let fat = fat_mounts.map(|mount| mount.point.trim_start_matches('/').to_owned());
    let root = files.exists(&format!("/{USUAL}")).then(|| ROOT.to_owned());
    fat.chain(root).collect()
}

/// A FAT file system with extlinux.conf below boot/, or the root file system with an environment.
pub(super) fn find_way(files: &dyn Files, _any: bool) -> Way {
    if !files.exists("/proc/device-tree") {
        return Way::Other;
    }
    let mounts = files.read("/proc/self/mounts").unwrap_or_default();
    let mounts: Vec<CgroupMount> = mounts.lines().filter_map(CgroupMount::parse).collect();
    let is_fat = |of: &&CgroupMount| {
        of.kind == "vfat" && files.exists(&format!("{}/{USUAL}", of.point.trim_end_matches('/')))
    };
    let is_other = |of: &CgroupMount| of.point == "/boot" || of.point == "/boot/extlinux";
    let is_on_root = files.exists(&format!("/{USUAL}")) && !mounts.iter().any(is_other);
    let (mount, environment) = match mounts.iter().find(is_fat) {
        Some(mount) => (Some(mount), false),
        // The last one mounted there is the one in use.
        None => (mounts.iter().rfind(|of| of.point == "/" && is_on_root), true),
    };
    let impossible = |why: &str| Way::Impossible(format!("U-Boot: {why}"));
    let Some(mount) = mount else {
        let elsewhere = ["/boot/extlinux/extlinux.conf", "/extlinux/extlinux.conf"];
        return match elsewhere.iter().find(|path| files.exists(path)) {
            Some(path) => impossible(&format!(
                "{path} is neither below boot/ of a FAT file system, where U-Boot can remove a \
                 file, nor of the root file system"
            )),
            None => Way::Other,
        };
    };
    let directory = match environment {
        true => ROOT.to_owned(),
        false => mount.point.trim_start_matches('/').to_owned(),
    };
    if mount.options.split(',').any(|option| option == "ro") {
        return impossible(&format!("{} is mounted read-only", mount.point));
    }
    let is_there = |name: &&&str| files.exists(&format!("/{directory}/{name}"));
    // Ours is there during a trial.
    let ours = files.exists(&format!("/{directory}/{TRIAL}"));
    let other_file = OTHERS.iter().filter(|name| !(ours && **name == SCRIPT)).find(is_there);
    if let Some(name) = other_file {
        let path = format!("/{directory}/{name}").replace("/./", "/");
        return impossible(&format!("{path} is there, and decides first"));
    }
    match environment.then(|| usable_environment(files)).transpose() {
        Ok(_) => {
            let configuration = USUAL.to_owned();
            Way::Found(Loader::UBoot { directory, configuration, environment })
        }
        Err(why) => impossible(&format!(
            "/{USUAL} is not on a FAT file system, where U-Boot can remove a file, and {why}"
        )),
    }
}

/// Checks that fw_setenv(8) would change U-Boot's environment: without a valid one it writes a
/// default in its place.
fn usable_environment(files: &dyn Files) -> Result<(), String> {
    if !TOOLS.iter().any(|path| files.exists(path)) {
        return Err("fw_setenv is not installed".to_owned());
    }
    let text = files.read(PLACES).map_err(|why| why.to_string())?;
    let copies: Vec<&str> =
        text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    // With two copies each has a flag after its sum.
    let head = if copies.len() > 1 { 5 } else { 4 };
    let is_valid = |line: &&str| -> Option<bool> {
        let mut words = line.split_whitespace();
        let (device, offset, size) = (words.next()?, words.next()?, words.next()?);
        let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let offset = match offset.strip_prefix("0x") {
            Some(digits) => hexadecimal(digits)?,
            None => offset.parse().ok()?,
        };
        let size = usize::try_from(hexadecimal(size)?).ok().filter(|n| *n <= MAX_ENVIRONMENT)?;
        let bytes = files.read_at(device, offset, size).ok().filter(|of| of.len() == size)?;
        let sum = bytes.get(..4)?.try_into().map(u32::from_le_bytes).ok()?;
        Some(crc32fast::hash(bytes.get(head..)?) == sum)
    };
    match copies.iter().any(|line| is_valid(line) == Some(true)) {
        true => Ok(()),
        false => Err(format!("{PLACES} names no valid environment")),
    }
}

/// The configuration of a trial, from extlinux.conf.
///
/// # Errors
/// It has no usual entry, or none of that kernel.
pub(super) fn trial_configuration(
    files: &dyn Files,
    directory: &str,
    usual: &str,
    trial: &Trial,
) -> Result<String, String> {
    let labels = parse_labels(usual);
    let default = usual.lines().find_map(|line| value_of_key(line, "default"));
    let usual = match default {
        Some(name) => labels.iter().find(|label| label.name == name),
        None => labels.first(),
    };
    let Some(usual) = usual else {
        return Err("U-Boot: extlinux.conf has no usual entry".to_owned());
    };
    let mut label = usual.clone();
    if let Some(release) = &trial.kernel
        && label.kernel_release() != Some(release)
    {
        match labels.iter().find(|label| label.kernel_release() == Some(release)) {
            Some(of_kernel) => label = of_kernel.clone(),
            None => label.take_kernel(files, directory, release)?,
        }
    }
    let mut text = String::from("# Written by punctual for one boot, which removes it.\n");
    text += "DEFAULT punctual\nPROMPT 0\nTIMEOUT 1\nLABEL punctual\n";
    let mut append = String::new();
    for (key, given) in &label.lines {
        match key.as_str() {
            "append" => append = given.clone(),
            "menu" => {}
            key => text += &format!("\t{} {given}\n", key.to_ascii_uppercase()),
        }
    }
    Ok(text + &format!("\tAPPEND {}\n", trial.apply_to(&append)))
}

/// An entry of extlinux.conf.
#[derive(Clone)]
struct Label {
    name: String,
    /// Its lines: a lower-case word, and the rest, with files by absolute names.
    lines: Vec<(String, String)>,
}

const KERNELS: [&str; 3] = ["kernel", "linux", "fit"];
const FILES: [&str; 9] = [
    "kernel",
    "linux",
    "fit",
    "initrd",
    "fdt",
    "devicetree",
    "fdtdir",
    "devicetreedir",
    "fdtoverlays",
];

impl Label {
    fn kernel_release(&self) -> Option<&str> {
        let kernel = self.lines.iter().find(|(key, _)| KERNELS.contains(&key.as_str()));
        kernel.and_then(|(_, path)| release_of(path))
    }

    /// Replaces its kernel by one that is installed without an entry.
    fn take_kernel(
        &mut self,
        files: &dyn Files,
        directory: &str,
        release: &str,
    ) -> Result<(), String> {
        let base = format!("/{directory}");
        let places = [format!("{base}/boot"), base.clone()];
        let found = places.iter().find_map(|place| find_installed(files, place, release));
        let Some((kernel, initrd)) = found else {
            return Err(format!(
                "U-Boot: no entry boots a kernel {release}, and none is in {base}"
            ));
        };
        let inside = |path: &str| path.strip_prefix(&base).unwrap_or(path).to_owned();
        self.lines.retain(|(key, _)| !KERNELS.contains(&key.as_str()) && key != "initrd");
        self.lines.insert(0, ("linux".to_owned(), inside(&kernel)));
        if let Some(initrd) = initrd {
            self.lines.push(("initrd".to_owned(), inside(&initrd)));
        }
        Ok(())
    }
}

fn parse_labels(configuration: &str) -> Vec<Label> {
    let mut parsed_labels: Vec<Label> = Vec::new();
    for line in configuration.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some((key, rest)) = line.split_once(char::is_whitespace) else { continue };
        let (key, rest) = (key.to_ascii_lowercase(), rest.trim());
        match (key.as_str(), parsed_labels.last_mut()) {
            ("label", _) => parsed_labels.push(Label { name: rest.to_owned(), lines: Vec::new() }),
            ("default" | "timeout" | "prompt", _) | (_, None) => {}
            (_, Some(label)) => {
                let is_file = FILES.contains(&key.as_str());
                let absolute = |path: &str| match path.starts_with('/') {
                    true => path.to_owned(),
                    false => format!("/boot/extlinux/{path}"),
                };
                let paths = || rest.split_whitespace().map(absolute).collect::<Vec<_>>().join(" ");
                label.lines.push((key, if is_file { paths() } else { rest.to_owned() }));
            }
        }
    }
    parsed_labels
}

fn value_of_key<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (word, rest) = line.trim().split_once(char::is_whitespace)?;
    word.eq_ignore_ascii_case(key).then(|| rest.trim())
}

/// boot.scr: a script with U-Boot's header (include/image.h, `legacy_img_hdr`).
pub(super) fn build_script(configuration: &str, environment: bool) -> Vec<u8> {
    let at = "${devtype} ${devnum}:${distro_bootpart}";
    let boot = |path: &str| format!("sysboot {at} any ${{pxefile_addr_r}} /{path}");
    let trial = boot(TRIAL);
    let once = match environment {
        true => format!(
            "if test \"${{{VARIABLE}}}\" = 1; then\n\
             \tsetenv {VARIABLE}\n\
             \tif saveenv; then\n\
             \t\t{trial}\n\
             \tfi\n\
             fi\n"
        ),
        false => format!(
            "if test -e {at} /{ONCE}; then\n\
             \tif fatrm {at} /{ONCE}; then\n\
             \t\tif test -e {at} /{ONCE}; then echo punctual: the request stays; else\n\
             \t\t\t{trial}\n\
             \t\tfi\n\
             \tfi\n\
             fi\n"
        ),
    };
    let usual = boot(configuration);
    script_image(
        format!("# Written by punctual for one boot, which removes it.\n{once}{usual}\n")
            .as_bytes(),
    )
}

/// A script of U-Boot: its length, 0, its text.
fn script_image(text: &[u8]) -> Vec<u8> {
    const MAGIC: u32 = 0x2705_1956;
    const LINUX: u8 = 5;
    const SCRIPT_TYPE: u8 = 6;
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut data = [length.to_be_bytes(), [0; 4]].concat();
    data.extend_from_slice(text);
    let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut name = [0u8; 32];
    name[..8].copy_from_slice(b"punctual");
    let header = |sum: u32| {
        let numbers = [MAGIC, sum, 0, size, 0, 0, crc32fast::hash(&data)];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        // Any architecture takes a script: U-Boot looks at the type alone.
        bytes.extend_from_slice(&[LINUX, 0, SCRIPT_TYPE, 0]);
        bytes.extend_from_slice(&name);
        bytes
    };
    let sum = crc32fast::hash(&header(0));
    [header(sum), data].concat()
}
