//! GRUB 2: the text of an entry for one boot.
//!
//! `next_entry` in its environment block names the entry of the next boot; its configuration clears
//! it before booting it (util/grub.d/00_header.in), so that a machine that does not come up boots
//! the usual entry next. That requires a disk that GRUB can write to.

use punctual_host::files::Files;

/// The title and the id of the entry.
pub const ENTRY: &str = "punctual-tune";
const BEGIN: &str = "\n# punctual tune: begin\n";
const END: &str = "# punctual tune: end\n";
const HEAD: &str = "# GRUB Environment Block\n";

/// The directories of the configuration: Debian's and Fedora's.
pub(crate) const DIRECTORIES: [&str; 2] = ["boot/grub", "boot/grub2"];
/// File systems that overwrite files in place, so that GRUB can write to its block (not btrfs and
/// zfs, which copy on write).
const PLAIN: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "vfat"];
/// Disks and partitions, not compound or encrypted devices.
const DISKS: [&str; 6] = ["/dev/sd", "/dev/vd", "/dev/xvd", "/dev/hd", "/dev/nvme", "/dev/mmcblk"];

/// The directory of its configuration and the booted entry.
///
/// # Errors
/// Why an entry for one boot cannot be made.
pub fn find(files: &dyn Files) -> Result<(String, String), String> {
    let mut there = DIRECTORIES.iter().filter(|path| files.exists(&format!("/{path}/grub.cfg")));
    let Some(directory) = there.next() else {
        return Err("GRUB: there is no grub.cfg in /boot/grub or /boot/grub2".to_owned());
    };
    let read = |path: &str| files.read(path).map_err(|why| format!("GRUB: {why}"));
    let configuration = read(&format!("/{directory}/grub.cfg"))?;
    for word in ["next_entry", "/custom.cfg"] {
        if !configuration.contains(word) {
            return Err(format!("GRUB: /{directory}/grub.cfg does not look at {word}"));
        }
    }
    let environment = format!("/{directory}/grubenv");
    if files.read_link(&environment).is_ok() {
        return Err(format!("GRUB: {environment} is a link"));
    }
    next_entry(&read(&environment)?).map_err(|why| format!("GRUB: {environment}: {why}"))?;
    let mounts = read("/proc/self/mountinfo")?;
    can_write(&mounts, directory).map_err(|why| format!("GRUB cannot write to its disk: {why}"))?;
    let body =
        body(&configuration, &read("/proc/cmdline")?).map_err(|why| format!("GRUB: {why}"))?;
    Ok(((*directory).to_owned(), body))
}

/// Whether GRUB could clear `next_entry`.
fn can_write(mounts: &str, directory: &str) -> Result<(), String> {
    let path = format!("/{directory}");
    // proc_pid_mountinfo(5): ID, parent, device, root, mount point, options, … - type, source.
    let mount = |line: &str| -> Option<(String, String, String)> {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.to_owned();
        let mut after = after.split(' ');
        Some((point, after.next()?.to_owned(), after.next()?.to_owned()))
    };
    let is_above =
        |point: &str| point == "/" || path == point || path.starts_with(&format!("{point}/"));
    let above = mounts.lines().filter_map(mount).filter(|(point, ..)| is_above(point));
    let Some((_, kind, source)) = above.max_by_key(|(point, ..)| point.len()) else {
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
fn body(configuration: &str, cmdline: &str) -> Result<String, String> {
    let words: Vec<&str> = cmdline.split_whitespace().collect();
    let image = words.iter().find_map(|word| word.strip_prefix("BOOT_IMAGE="));
    let Some(image) = image.map(file_of) else {
        return Err("the command line does not say what it booted (BOOT_IMAGE=)".to_owned());
    };
    let mut found: Option<(usize, &str)> = None;
    for entry in entries(configuration) {
        let Some(mut kernel) = entry.lines().find_map(kernel_words) else { continue };
        let given: Vec<&str> = kernel.split_off(1);
        let is_this = file_of(kernel[0]) == image;
        // The values of GRUB's variables are not known here.
        let mut plain = given.iter().filter(|word| !word.contains('$'));
        let matching = given.iter().filter(|word| words.contains(word)).count();
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
        Some((_, entry)) => Ok(entry.to_owned()),
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
fn entries(configuration: &str) -> Vec<&str> {
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
pub(crate) fn with_entry(custom: &str, body: &str, words: &str) -> String {
    let mut entry = String::new();
    for line in body.lines() {
        entry += line;
        if kernel_words(line).is_some() {
            entry += &format!(" {words}");
        }
        entry.push('\n');
    }
    let head = format!("menuentry '{ENTRY}' --unrestricted --id '{ENTRY}' {{\n");
    format!("{}{BEGIN}{head}{entry}}}\n{END}", without_entry(custom))
}

/// The text of custom.cfg without the entry.
pub(crate) fn without_entry(custom: &str) -> String {
    let Some((before, rest)) = custom.split_once(BEGIN) else { return custom.to_owned() };
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{after}")
}

/// The entry of the next boot in the environment block.
///
/// # Errors
/// The text is not an environment block.
pub fn next_entry(environment: &str) -> Result<Option<String>, String> {
    let lines = lines(environment)?;
    let value = lines.iter().find_map(|line| line.strip_prefix("next_entry="));
    Ok(value.map(|value| value.trim_end_matches('\n').to_owned()))
}

/// The environment block with another entry for the next boot: of the same length, as GRUB writes
/// to the existing blocks of the file.
///
/// # Errors
/// The text is not an environment block, or has no room.
pub(crate) fn with_next_entry(environment: &str, entry: Option<&str>) -> Result<String, String> {
    let mut lines: Vec<String> = lines(environment)?.into_iter().map(str::to_owned).collect();
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

fn lines(environment: &str) -> Result<Vec<&str>, String> {
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
