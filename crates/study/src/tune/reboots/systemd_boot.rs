//! systemd-boot: the text of an entry for one boot.
//!
//! The variable LoaderEntryOneShot names the entry of the next boot and is removed before it; the
//! entry's file also counts its boots (`+1`), so that it is not chosen again if it fails
//! (systemd-boot(7), automatic boot assessment).

use punctual_host::files::Files;

/// The id for `bootctl set-oneshot`: a pattern (bootctl(1)), since some versions include the count
/// in the id of an entry and others do not.
pub const ID: &str = "punctual-tune*.conf";
/// The beginning of its file names with any count: `punctual-tune+1.conf`,
/// `punctual-tune+0-1.conf`, and `punctual-tune.conf` once marked good.
pub(crate) const STEM: &str = "punctual-tune";
pub const FILE: &str = "loader/entries/punctual-tune+1.conf";
const ENTRIES: &str = "loader/entries";
/// The loader's description of itself in a firmware variable: UTF-16.
const INFO: &str = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// The mount points of the EFI partition, or that of entries.
pub(crate) const DIRECTORIES: [&str; 3] = ["boot", "efi", "boot/efi"];

/// Whether systemd-boot booted this system.
pub(crate) fn is_used(files: &dyn Files) -> bool {
    let info = files.read_bytes(INFO).unwrap_or_default();
    let plain: Vec<u8> = info.into_iter().filter(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&plain).contains("systemd-boot")
}

/// The directory above `loader/entries`, and the booted entry.
///
/// # Errors
/// Why an entry for one boot cannot be made.
pub fn find(files: &dyn Files) -> Result<(String, String), String> {
    if !is_used(files) {
        return Err("systemd-boot: it did not boot this system".to_owned());
    }
    let cmdline = files.read("/proc/cmdline").map_err(|why| format!("systemd-boot: {why}"))?;
    if cmdline.split_whitespace().any(|word| word == "--") {
        // Words after `--` are for init; added parameters would be, too.
        return Err("systemd-boot: the command line has a `--`".to_owned());
    }
    let release = files.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
    for directory in DIRECTORIES {
        let entries = format!("/{directory}/{ENTRIES}");
        for name in files.list(&entries).unwrap_or_default() {
            let is_other = name.ends_with(".conf") && !name.starts_with(STEM);
            let Ok(text) = files.read(&format!("{entries}/{name}")) else { continue };
            if is_other && is_booted(&text, &cmdline, &release) {
                return Ok((directory.to_owned(), text));
            }
        }
    }
    Err("systemd-boot: no file in loader/entries has this kernel and command line (unified \
         kernel images have none)"
        .to_owned())
}

/// Whether an entry boots this kernel with this command line.
fn is_booted(entry: &str, cmdline: &str, release: &str) -> bool {
    let words: Vec<&str> = cmdline.split_whitespace().collect();
    let mut options = entry.lines().filter_map(|line| value(line, "options"));
    let is_given = options.all(|all| all.split_whitespace().all(|word| words.contains(&word)));
    let kernel = entry.lines().find_map(|line| value(line, "linux"));
    let version = entry.lines().find_map(|line| value(line, "version"));
    let is_this = version == Some(release) || kernel.is_some_and(|path| path.contains(release));
    is_given && kernel.is_some() && is_this && !release.is_empty()
}

fn value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (word, rest) = line.trim().split_once(char::is_whitespace)?;
    (word == key).then(|| rest.trim())
}

/// The entry with additional words.
pub(crate) fn with_words(entry: &str, words: &str) -> String {
    let is_own = |line: &&str| {
        // Keys that sort an entry, or make it the newest of its kernels, are dropped.
        ["title", "sort-key", "version", "machine-id"].iter().all(|key| value(line, key).is_none())
    };
    let mut text = String::from("# Written by `punctual tune --across-reboots`.\n");
    text += "title punctual tune\n";
    entry.lines().filter(is_own).for_each(|line| text += &format!("{line}\n"));
    // Several lines of options are joined.
    text + &format!("options {words}\n")
}
