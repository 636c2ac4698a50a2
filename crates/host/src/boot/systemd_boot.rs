//! systemd-boot: the text of an entry for one boot.
//!
//! The variable LoaderEntryOneShot names the entry of the next boot and is removed before it; the
//! entry's file also counts its boots (`+1`), so that it is not chosen again if it fails
//! (systemd-boot(7), automatic boot assessment).

use super::words::Trial;
use super::{Loader, Way};
use crate::files::Files;

/// The id for `bootctl set-oneshot`: a pattern (bootctl(1)), since some versions include the count
/// in the id of an entry and others do not.
pub(super) const ID: &str = "punctual-once*.conf";
/// The beginning of its file names with any count: `punctual-once+1.conf`,
/// `punctual-once+0-1.conf`, and `punctual-once.conf` once marked good.
pub(super) const STEM: &str = "punctual-once";
pub(super) const FILE: &str = "loader/entries/punctual-once+1.conf";
const ENTRIES: &str = "loader/entries";
/// The loader's description of itself in a firmware variable: UTF-16.
const INFO: &str = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// The id of the booted entry, likewise; of a unified kernel image its file name.
const SELECTED: &str =
    "/sys/firmware/efi/efivars/LoaderEntrySelected-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Whether Secure Boot is on, after the attributes.
const SECURE: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// The directory of unified kernel images.
const UNIFIED: &str = "EFI/Linux";
/// The mount points of the EFI partition, or that of entries.
pub(super) const DIRECTORIES: [&str; 3] = ["boot", "efi", "boot/efi"];

/// Whether systemd-boot booted this system.
pub(super) fn is_used(files: &dyn Files) -> bool {
    let info = files.read_bytes(INFO).unwrap_or_default();
    decode_variable(&info).contains("systemd-boot")
}

/// The text of a firmware variable, after its attributes (4 bytes): UTF-16.
fn decode_variable(variable: &[u8]) -> String {
    let is_text = |byte: &&u8| byte.is_ascii_graphic() || **byte == b' ';
    let plain: Vec<u8> = variable.iter().filter(is_text).copied().collect();
    String::from_utf8_lossy(&plain).into_owned()
}

/// The directory above `loader/entries`, and the booted entry.
pub(super) fn find_way(files: &dyn Files, _any: bool) -> Way {
    if !is_used(files) {
        return Way::Other;
    }
    match find_booted_entry(files) {
        Ok((directory, body)) => Way::Found(Loader::SystemdBoot { directory, body }),
        Err(why) => Way::Impossible(format!("systemd-boot: {why}")),
    }
}

fn find_booted_entry(files: &dyn Files) -> Result<(String, String), String> {
    let cmdline = files.read("/proc/cmdline").map_err(|why| why.to_string())?;
    if cmdline.split_whitespace().any(|word| word == "--") {
        // Words after `--` are for init; added parameters would be, too.
        return Err("the command line has a `--`".to_owned());
    }
    let release = files.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
    let all_entries = list_other_entries(files);
    let booted = all_entries.into_iter().find(|(_, text)| is_booted(text, &cmdline, &release));
    booted.map_or_else(|| find_unified_image(files, &cmdline), Ok)
}

/// The booted unified kernel image, as an entry that gives it the usual command line. Its stub
/// takes one in the place of its own unless Secure Boot is on (systemd-stub(7)).
fn find_unified_image(files: &dyn Files, cmdline: &str) -> Result<(String, String), String> {
    let no_entry = "no file in loader/entries has this kernel and command line";
    let image = decode_variable(&files.read_bytes(SELECTED).unwrap_or_default());
    if !image.ends_with(".efi") {
        return Err(no_entry.to_owned());
    }
    let has = |directory: &&&str| files.exists(&format!("/{directory}/{UNIFIED}/{image}"));
    let Some(directory) = DIRECTORIES.iter().find(has).filter(|_| !image.contains('/')) else {
        return Err(format!("{no_entry}, and there is no {UNIFIED}/{image}"));
    };
    match files.read_bytes(SECURE).ok().and_then(|bytes| bytes.get(4).copied()) {
        Some(0) => Ok((
            (*directory).to_owned(),
            format!("efi /{UNIFIED}/{image}\noptions {}\n", cmdline.trim()),
        )),
        _ => Err(format!(
            "{image} is a unified kernel image, which takes no other command line while Secure \
             Boot is on, or not known to be off"
        )),
    }
}

/// The entries of others, each with the directory above `loader/entries`.
fn list_other_entries(files: &dyn Files) -> Vec<(String, String)> {
    let mut other_entries = Vec::new();
    for directory in DIRECTORIES {
        let entries = format!("/{directory}/{ENTRIES}");
        for name in files.list(&entries).unwrap_or_default() {
            let is_other = name.ends_with(".conf") && !name.starts_with(STEM);
            if let Ok(text) = files.read(&format!("{entries}/{name}"))
                && is_other
            {
                other_entries.push((directory.to_owned(), text));
            }
        }
    }
    other_entries
}

/// The usual entry with the changes of a trial; that of its kernel if it names one.
///
/// # Errors
/// There is no entry of that kernel.
pub(super) fn trial_entry(
    files: &dyn Files,
    directory: &str,
    usual: &str,
    trial: &Trial,
) -> Result<String, String> {
    let Some(release) = &trial.kernel else { return Ok(with_words(usual, trial)) };
    if let Some((_, images)) =
        usual.lines().find_map(|line| value_of_key(line, "efi")?.rsplit_once('/'))
    {
        let names = files.list(&format!("/{directory}/{UNIFIED}")).unwrap_or_default();
        // `6.1.0-5` is not in `6.1.0-56`.
        let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let has_it = |name: &str| name.split(release.as_str()).skip(1).any(|rest| !goes_on(rest));
        let is_of = |name: &&String| has_it(name) && name.ends_with(".efi");
        // The shortest: `6.1.0-56` is a part of `6.1.0-56-rt`.
        let found = Some(images.to_owned()).into_iter().chain(names);
        let found: Vec<String> = found.filter(|name| is_of(&name)).collect();
        let image = found.iter().min_by_key(|name| name.len());
        let image =
            image.ok_or_else(|| format!("systemd-boot: no image in {UNIFIED} has {release}"))?;
        let usual = usual.replacen(images, image, 1);
        return Ok(with_words(&usual, trial));
    }
    let mut entry_texts =
        list_other_entries(files).into_iter().filter(|(of, _)| of == directory).map(|(_, t)| t);
    let is_of = |text: &String| {
        let version = text.lines().find_map(|line| value_of_key(line, "version"));
        let kernel = text.lines().find_map(|line| value_of_key(line, "linux")).unwrap_or_default();
        let is_in_path = kernel.split('/').any(|part| part == release);
        version == Some(release) || is_in_path || super::release_of(kernel) == Some(release)
    };
    let found =
        if is_of(&usual.to_owned()) { Some(usual.to_owned()) } else { entry_texts.find(is_of) };
    let entry = found.ok_or_else(|| format!("systemd-boot: no entry boots a kernel {release}"))?;
    Ok(with_words(&entry, trial))
}

/// Whether an entry boots this kernel with this command line.
fn is_booted(entry: &str, cmdline: &str, release: &str) -> bool {
    let words: Vec<&str> = cmdline.split_whitespace().collect();
    let mut options = entry.lines().filter_map(|line| value_of_key(line, "options"));
    let is_given = options.all(|all| all.split_whitespace().all(|word| words.contains(&word)));
    let kernel = entry.lines().find_map(|line| value_of_key(line, "linux"));
    let version = entry.lines().find_map(|line| value_of_key(line, "version"));
    let is_this = version == Some(release) || kernel.is_some_and(|path| path.contains(release));
    is_given && kernel.is_some() && is_this && !release.is_empty()
}

pub(super) fn value_of_key<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (word, rest) = line.trim().split_once(char::is_whitespace)?;
    (word == key).then(|| rest.trim())
}

/// The entry with the words of a trial.
fn with_words(entry: &str, trial: &Trial) -> String {
    let is_own = |line: &&str| {
        // Keys that sort an entry, or make it the newest of its kernels, are dropped.
        ["title", "sort-key", "version", "machine-id"]
            .iter()
            .all(|key| value_of_key(line, key).is_none())
    };
    let mut text = String::from("# Written by punctual for one boot, which removes it.\n");
    text += "title punctual: one boot\n";
    for line in entry.lines().filter(is_own) {
        let line = match value_of_key(line, "options") {
            Some(options) => format!("options {}", trial.without_removed(options)),
            None => line.to_owned(),
        };
        text += &format!("{}\n", line.trim_end());
    }
    // Several lines of options are joined.
    text + &format!("options {}\n", trial.add)
}
