//! Writes the findings' files ([`super::persistent`]) below a root, and removes them again.

use super::directory::{TuneDirectory, found};
use super::persistent::{SettingReader, files};
use punctual_bundle::Member;
use punctual_core::hex;
use punctual_session::exit::Failure;
use punctual_session::messages::shown;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The list of written files, in the tuning's directory.
const APPLIED: &str = "applied.json";

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct AppliedSettings {
    root: PathBuf,
    /// Directories that were created, the outer ones first.
    directories: Vec<PathBuf>,
    files: Vec<Written>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Written {
    path: PathBuf,
    sha256: String,
}

/// The results, one line each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ApplyReport {
    /// Written files, each with the step that puts it in force; or removed files.
    pub done: Vec<(PathBuf, &'static str)>,
    /// The failures, with reasons.
    pub not_done: Vec<String>,
}

/// Writes the files of the recommended settings below `root`.
///
/// # Errors
/// Nothing is recommended; a file exists already; it is applied already; a file cannot be written,
/// then those before it are removed again.
pub fn apply(place: &Path, root: &Path, reader: SettingReader) -> Result<ApplyReport, Failure> {
    let document = found(place)?;
    let (_directory, spec) = TuneDirectory::open(place)?;
    if document.recommended.is_empty() {
        return Err(Failure::refused(
            "nothing is recommended: no set was shown to be better than the untouched machine",
        ));
    }
    let member = Member::root(place).join(APPLIED);
    if member.exists() {
        return Err(Failure::refused(format!(
            "{0} is applied already: undo that first, with `punctual tune apply {0} --undo`",
            shown(place)
        )));
    }
    let persistent = files(&document, &spec, reader);
    let mut applied = AppliedSettings { root: root.to_owned(), ..AppliedSettings::default() };
    for file in &persistent.files {
        let path = root.join(file.path);
        if path.symlink_metadata().is_ok() {
            return Err(Failure::refused(format!("{} is there already", shown(&path))));
        }
        let sha256 = hex(&Sha256::digest(&file.text));
        applied.files.push(Written { path: PathBuf::from(file.path), sha256 });
    }
    applied.directories = missing_directories(root, &applied.files);
    // Stored before the first write, so that --undo finds the files in any case.
    member.replace_json_durably(&applied).map_err(Failure::failed)?;
    for file in &persistent.files {
        if let Err(why) = write(&root.join(file.path), &file.text) {
            let _ = undo(place);
            let path = shown(&root.join(file.path));
            return Err(Failure::failed(format!("cannot write {path}: {why}")));
        }
    }
    let done = persistent.files.iter().map(|file| (root.join(file.path), file.then)).collect();
    Ok(ApplyReport { done, not_done: persistent.not_kept })
}

fn missing_directories(root: &Path, files: &[Written]) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for file in files {
        let parents = file.path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
        missing.extend(parents.filter(|path| !root.join(path).exists()).map(Path::to_owned));
    }
    missing.sort();
    missing.dedup();
    missing
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = fs::File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Removes the files again; a file changed since stays, and is reported.
///
/// # Errors
/// Nothing is applied, or a file cannot be removed.
pub fn undo(place: &Path) -> Result<ApplyReport, Failure> {
    let member = Member::root(place).join(APPLIED);
    if !member.exists() {
        return Err(Failure::refused(format!("{} is not applied", shown(place))));
    }
    let applied: AppliedSettings = member.read_json().map_err(Failure::failed)?;
    let mut report = ApplyReport::default();
    for file in &applied.files {
        let path = applied.root.join(&file.path);
        match fs::read(&path) {
            Ok(bytes) if hex(&Sha256::digest(&bytes)) == file.sha256 => {
                fs::remove_file(&path).map_err(|why| {
                    Failure::failed(format!("cannot remove {}: {why}", shown(&path)))
                })?;
                report.done.push((path, ""));
            }
            Ok(_) => report.not_done.push(format!("{} was changed since: it stays", shown(&path))),
            // The file was never created, or is gone.
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => report.not_done.push(format!("{}: {why}", shown(&path))),
        }
    }
    for directory in applied.directories.iter().rev() {
        // A directory that others use now stays.
        let _ = fs::remove_dir(applied.root.join(directory));
    }
    if report.not_done.is_empty() {
        member.remove().map_err(Failure::failed)?;
    }
    Ok(report)
}
