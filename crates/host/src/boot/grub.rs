//! GRUB 2: the text of an entry for one boot.
//!
//! `next_entry` in its environment block names the entry of the next boot; its configuration clears
//! it before booting it (util/grub.d/00_header.in), so that a machine that does not come up boots
//! the usual entry next. That requires a disk that GRUB can write to. The usual entry is one of
//! grub.cfg, or of files in loader/entries (the Boot Loader Specification, Fedora's `blscfg`).

use super::words::Trial;
use super::{Loader, Way, release_of, systemd_boot};
use crate::files::Files;

/// The title and the id of the entry.
pub const ENTRY: &str = "punctual-once";
const BEGIN: &str = "\n# punctual: an entry for one boot: begin\n";
const END: &str = "# punctual: end\n";
const HEAD: &str = "# GRUB Environment Block\n";

/// The directories of the configuration: Debian's and Fedora's.
pub(super) const DIRECTORIES: [&str; 2] = ["boot/grub", "boot/grub2"];
/// The entries of the Boot Loader Specification.
const SPECIFIED: &str = "/boot/loader/entries";
/// File systems that overwrite files in place, so that GRUB can write to its block (not btrfs and
/// zfs, which copy on write).
const PLAIN: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "vfat"];
/// Disks and partitions, not compound or encrypted devices.
const DISKS: [&str; 6] = ["/dev/sd", "/dev/vd", "/dev/xvd", "/dev/hd", "/dev/nvme", "/dev/mmcblk"];

/// The directory of its configuration and the booted entry. `any`: also where GRUB would repeat it.
pub(super) fn find_way(files: &dyn Files, any: bool) -> Way {
    let mut directories =
        DIRECTORIES.iter().filter(|path| files.exists(&format!("/{path}/grub.cfg")));
    let Some(directory) = directories.next() else { return Way::Other };
    match identify_loader(files, directory, any) {
        Ok(loader) => Way::Found(loader),
        Err(why) => Way::Impossible(format!("GRUB: {why}")),
    }
}

fn identify_loader(files: &dyn Files, directory: &str, any: bool) -> Result<Loader, String> {
    let read = |path: &str| files.read(path).map_err(|why| why.to_string());
    let configuration = read(&format!("/{directory}/grub.cfg"))?;
    for word in ["next_entry", "/custom.cfg"] {
        if !configuration.contains(word) {
            return Err(format!("/{directory}/grub.cfg does not look at {word}"));
        }
    }
    let environment = format!("/{directory}/grubenv");
    if files.read_link(&environment).is_ok() {
        return Err(format!("{environment} is a link"));
    }
    let block = read(&environment)?;
    next_entry(&block).map_err(|why| format!("{environment}: {why}"))?;
    let repeats = match check_writable(&read("/proc/self/mountinfo")?, directory) {
        Err(why) if !any => return Err(format!("it cannot write to its disk: {why}")),
        writes => writes.is_err(),
    };
    let cmdline = read("/proc/cmdline")?;
    let body = find_booted_body(&all_entries(files, &configuration, &block)?, &cmdline)?;
    Ok(Loader::Grub { directory: directory.to_owned(), body, repeats })
}

/// The usual entry with the changes of a trial, from the whole configuration if it is another
/// kernel's.
///
/// # Errors
/// There is no entry of that kernel.
pub(super) fn trial_body(
    files: &dyn Files,
    directory: &str,
    usual: &str,
    trial: &Trial,
) -> Result<String, String> {
    let body = match &trial.kernel {
        None => usual.to_owned(),
        Some(release) if is_of(usual, release) => usual.to_owned(),
        Some(release) => {
            let configuration = files
                .read(&format!("/{directory}/grub.cfg"))
                .map_err(|why| format!("GRUB: {why}"))?;
            let block = files.read(&format!("/{directory}/grubenv")).unwrap_or_default();
            let all_bodies = all_entries(files, &configuration, &block)?;
            let words = words_of_entry(usual);
            let likeness = |body: &&String| {
                let words_of_body = words_of_entry(body);
                let same = words_of_body.iter().filter(|word| words.contains(word)).count();
                // Of equal ones the one with fewer words: not that of a rescue system.
                (same, usize::MAX - words_of_body.len())
            };
            let mut of_kernel: Vec<&String> =
                all_bodies.iter().filter(|body| is_of(body, release)).collect();
            // Of equal ones the first one.
            of_kernel.reverse();
            let best = of_kernel.into_iter().max_by_key(likeness);
            best.ok_or_else(|| format!("GRUB: no entry boots a kernel {release}"))?.clone()
        }
    };
    Ok(with_words(&body, trial))
}

/// Whether an entry boots the kernel of this release.
fn is_of(body: &str, release: &str) -> bool {
    let kernel = body.lines().find_map(kernel_words);
    kernel.is_some_and(|words| release_of(words[0]) == Some(release))
}

/// The words that an entry gives its kernel.
fn words_of_entry(body: &str) -> Vec<&str> {
    body.lines().find_map(kernel_words).map(|mut words| words.split_off(1)).unwrap_or_default()
}

/// An entry whose kernel has the words of a trial.
fn with_words(body: &str, trial: &Trial) -> String {
    let mut entry = String::new();
    for line in body.lines() {
        match kernel_words(line) {
            Some(_) => {
                let words = trial.without_removed(line);
                entry += format!("{words} {}", trial.add).trim_end();
            }
            None => entry += line,
        }
        entry.push('\n');
    }
    entry
}

/// Whether the entries are files of the Boot Loader Specification.
fn is_specified(configuration: &str) -> bool {
    configuration.lines().any(|line| line.trim() == "blscfg")
}

/// The bodies of all entries, wherever they are.
fn all_entries(files: &dyn Files, configuration: &str, block: &str) -> Result<Vec<String>, String> {
    match is_specified(configuration) {
        true => specified_all(files, block),
        false => Ok(list_entries(configuration).into_iter().map(str::to_owned).collect()),
    }
}

/// All of them, as bodies of menu entries.
fn specified_all(files: &dyn Files, block: &str) -> Result<Vec<String>, String> {
    let names = files.list(SPECIFIED).map_err(|why| why.to_string())?;
    let uuid = uuid_of_boot(files)?;
    let variable = |name: &str| {
        let assignment = format!("{name}=");
        let lines = split_environment(block).unwrap_or_default();
        lines
            .iter()
            .find_map(|line| line.strip_prefix(&assignment))
            .map(|value| value.trim().to_owned())
    };
    let mut entry_bodies = Vec::new();
    for name in names.iter().filter(|name| name.ends_with(".conf")) {
        let Ok(text) = files.read(&format!("{SPECIFIED}/{name}")) else { continue };
        let value = |key: &str| text.lines().find_map(|line| systemd_boot::value_of_key(line, key));
        let Some(kernel) = value("linux") else { continue };
        let mut options = Vec::new();
        for line in text.lines().filter_map(|line| systemd_boot::value_of_key(line, "options")) {
            for word in line.split_whitespace() {
                // The variables of Fedora, which grub2-mkconfig writes into the block.
                match word.strip_prefix('$') {
                    Some(name) => options.extend(variable(name)),
                    None => options.push(word.to_owned()),
                }
            }
        }
        let mut body = format!("\tsearch --no-floppy --fs-uuid --set=root {uuid}\n");
        body += &format!("\tlinux {kernel} {}\n", options.join(" "));
        let initrds: Vec<&str> = text
            .lines()
            .filter_map(|line| systemd_boot::value_of_key(line, "initrd"))
            .flat_map(str::split_whitespace)
            .filter(|word| !word.starts_with('$'))
            .collect();
        if !initrds.is_empty() {
            body += &format!("\tinitrd {}\n", initrds.join(" "));
        }
        entry_bodies.push(body);
    }
    Ok(entry_bodies)
}

/// The id of the file system with /boot, on which these entries name their files.
fn uuid_of_boot(files: &dyn Files) -> Result<String, String> {
    let mounts = files.read("/proc/self/mountinfo").map_err(|why| why.to_string())?;
    let source = mount_above(&mounts, "/boot").map(|mount| mount.source);
    let device = source.as_deref().and_then(|path| path.strip_prefix("/dev/")).unwrap_or_default();
    const PLACE: &str = "/dev/disk/by-uuid";
    let names = files.list(PLACE).map_err(|why| why.to_string())?;
    let is_it = |name: &&String| {
        let to = files.read_link(&format!("{PLACE}/{name}")).unwrap_or_default();
        !device.is_empty() && to.rsplit('/').next() == Some(device)
    };
    let plain = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let found = names.iter().filter(plain).find(is_it);
    found.cloned().ok_or_else(|| "the id of the file system of /boot is not known".to_owned())
}

/// A mount: its type, and its device.
struct BootMount {
    kind: String,
    source: String,
}

/// The mount that holds a path.
fn mount_above(mounts: &str, path: &str) -> Option<BootMount> {
    // proc_pid_mountinfo(5): ID, parent, device, root, mount point, options, … - type, source.
    let mount = |line: &str| -> Option<(String, BootMount)> {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.to_owned();
        let mut after = after.split(' ');
        let (kind, source) = (after.next()?.to_owned(), after.next()?.to_owned());
        Some((point, BootMount { kind, source }))
    };
    let is_above =
        |point: &str| point == "/" || path == point || path.starts_with(&format!("{point}/"));
    let above = mounts.lines().filter_map(mount).filter(|(point, _)| is_above(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, mount)| mount)
}

/// Whether GRUB could clear `next_entry`.
fn check_writable(mounts: &str, directory: &str) -> Result<(), String> {
    let path = format!("/{directory}");
    let Some(BootMount { kind, source }) = mount_above(mounts, &path) else {
        return Err(format!("the mount of {path} is not known"));
    };
    if !PLAIN.contains(&kind.as_str()) {
        return Err(format!("{path} is on {kind}"));
    }
    match DISKS.iter().any(|disk| source.starts_with(disk)) {
        true => Ok(()),
        false => Err(format!("{path} is on {source}, which is not a plain disk")),
    }
}

/// The body of the booted entry: the one that loads this kernel with this command line.
fn find_booted_body(all: &[String], cmdline: &str) -> Result<String, String> {
    let words: Vec<&str> = cmdline.split_whitespace().collect();
    let image = words.iter().find_map(|word| word.strip_prefix("BOOT_IMAGE="));
    let Some(image) = image.map(file_of) else {
        return Err("the command line does not say what it booted (BOOT_IMAGE=)".to_owned());
    };
    let mut found: Option<(usize, &String)> = None;
    for entry in all {
        let Some(mut kernel) = entry.lines().find_map(kernel_words) else { continue };
        let entry_words: Vec<&str> = kernel.split_off(1);
        let is_this = file_of(kernel[0]) == image;
        // The values of GRUB's variables are not known here.
        let mut plain = entry_words.iter().filter(|word| !word.contains('$'));
        let matching = entry_words.iter().filter(|word| words.contains(word)).count();
        if is_this
            && plain.all(|word| words.contains(word))
            && found.is_none_or(|(most, _)| matching > most)
        {
            found = Some((matching, entry));
        }
    }
    match found {
        // Words after `--` are for init; added parameters would be, too.
        Some(_) if words.contains(&"--") => Err("the command line has a `--`".to_owned()),
        Some((_, entry)) => Ok(entry.clone()),
        None => Err(format!("no entry of grub.cfg loads {image} with this command line")),
    }
}

/// The path of a file without its disk.
fn file_of(path: &str) -> &str {
    path.rsplit(')').next().unwrap_or(path)
}

/// The kernel file and its words, from the line that loads it.
fn kernel_words(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace();
    let loads = ["linux", "linux16", "linuxefi"].contains(&words.next()?);
    let words: Vec<&str> = words.collect();
    (loads && !words.is_empty()).then_some(words)
}

/// The text in the braces of each entry, also of those in submenus.
fn list_entries(configuration: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut begins, mut at) = (None, 0);
    for line in configuration.split_inclusive('\n') {
        let trimmed = line.trim();
        let end = at + line.len();
        match begins {
            None if trimmed.starts_with("menuentry ") && trimmed.ends_with('{') => {
                begins = Some(end);
            }
            Some(from) if trimmed == "}" => {
                found.push(&configuration[from..at]);
                begins = None;
            }
            _ => {}
        }
        at = end;
    }
    found
}

/// The text of custom.cfg with the entry, added or replaced.
pub(super) fn with_entry(custom: &str, body: &str) -> String {
    let head = format!("menuentry '{ENTRY}' --unrestricted --id '{ENTRY}' {{\n");
    format!("{}{BEGIN}{head}{body}}}\n{END}", without_entry(custom))
}

/// Whether custom.cfg has the entry.
pub(super) fn has_entry(custom: &str) -> bool {
    custom.contains(BEGIN)
}

/// The text of custom.cfg without the entry.
pub(super) fn without_entry(custom: &str) -> String {
    let Some((before, rest)) = custom.split_once(BEGIN) else { return custom.to_owned() };
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{after}")
}

/// The entry of the next boot in the environment block.
///
/// # Errors
/// The text is not an environment block.
pub(super) fn next_entry(environment: &str) -> Result<Option<String>, String> {
    let lines = split_environment(environment)?;
    let value = lines.iter().find_map(|line| line.strip_prefix("next_entry="));
    Ok(value.map(|value| value.trim_end_matches('\n').to_owned()))
}

/// The environment block with another entry for the next boot: of the same length, as GRUB writes
/// to the existing blocks of the file.
///
/// # Errors
/// The text is not an environment block, or has no room.
pub(super) fn with_next_entry(environment: &str, entry: Option<&str>) -> Result<String, String> {
    let mut lines: Vec<String> =
        split_environment(environment)?.into_iter().map(str::to_owned).collect();
    let place = lines.iter().position(|line| line.starts_with("next_entry="));
    match (place, entry) {
        (Some(place), Some(entry)) => lines[place] = format!("next_entry={entry}\n"),
        (None, Some(entry)) => lines.push(format!("next_entry={entry}\n")),
        (Some(place), None) => drop(lines.remove(place)),
        (None, None) => {}
    }
    let text = lines.concat();
    match environment.len().checked_sub(text.len()) {
        Some(left) => Ok(text + &"#".repeat(left)),
        None => Err("it is full".to_owned()),
    }
}

fn split_environment(environment: &str) -> Result<Vec<&str>, String> {
    let text = environment.trim_end_matches('#');
    // The format that GRUB reads: at least 512 bytes; every tool writes 1024.
    let is_one = environment.starts_with(HEAD)
        && text.ends_with('\n')
        && environment.len().is_multiple_of(512);
    match is_one {
        true => Ok(text.split_inclusive('\n').collect()),
        false => Err("it is not an environment block".to_owned()),
    }
}
