//! Opens the windows of a bundle: all heads at once, records one window at a time.

use super::{DIRECTORY, ENDING, MAX_WINDOWS, WindowHead, WindowsDocument};
use crate::BundleError;
use crate::member::Member;
use punctual_core::event::{Names, Recorded};
use punctual_core::{Bytes, Finding, MonotonicNs, Severity};
use std::io::Read;
use std::path::Path;

/// The windows of a bundle.
#[derive(Clone, Debug)]
pub struct WindowsReader {
    /// The rule for keeping them, the missed ones, and names.
    pub document: WindowsDocument,
    /// The windows by phase and series, in each the highest latency first.
    pub windows: Vec<SavedWindow>,
    /// The damage, each with its place.
    pub damage: Vec<String>,
}

/// The place and the description of a window.
#[derive(Clone, PartialEq, Debug)]
pub struct SavedWindow {
    pub head: WindowHead,
    member: Member,
}

impl SavedWindow {
    /// Reads the file, for [`WindowHead::read`] to decode.
    pub fn read(&self) -> Result<Vec<u8>, BundleError> {
        let bytes = self.member.read()?;
        match WindowHead::read(&bytes) {
            Ok((head, _)) if head == self.head => Ok(bytes),
            Ok(_) => {
                Err(BundleError::from_damage(self.path(), "it was replaced while it was read"))
            }
            Err(why) => Err(BundleError::from_damage(self.path(), why)),
        }
    }

    pub fn path(&self) -> &Path {
        self.member.path()
    }
}

impl WindowsReader {
    /// Opens the windows of a bundle; `None` without any. Damaged ones are skipped and listed.
    pub fn open(bundle: &Path) -> Option<WindowsReader> {
        let directory = Member::from_root(bundle).join(DIRECTORY);
        if !directory.exists() {
            return None;
        }
        let mut damage = Vec::new();
        let document = directory.join("windows.json").read_json().unwrap_or_else(|error| {
            let lack = if error.is_missing() {
                "by what rule they were kept is not known"
            } else {
                "nothing in them has a name"
            };
            damage.push(format!("{error}: {lack}"));
            unknown_document()
        });
        let mut windows = Vec::new();
        let members = directory.readable_entries(ENDING, &mut damage);
        if members.len() > MAX_WINDOWS {
            damage.push(format!(
                "{}: more than {MAX_WINDOWS} windows: the others are left out",
                directory.display()
            ));
        }
        for member in members.into_iter().take(MAX_WINDOWS) {
            match head_of(&member) {
                Ok(head) => windows.push(SavedWindow { head, member }),
                // Another one replaced it meanwhile.
                Err(error) if error.is_missing() => {}
                Err(error) => damage.push(error.to_string()),
            }
        }
        windows.sort_by(|a: &SavedWindow, b: &SavedWindow| {
            let sort_key =
                |head: &'_ WindowHead| (std::cmp::Reverse(head.latency()), head.sample.seq);
            let names =
                a.head.phase.cmp(&b.head.phase).then_with(|| a.head.series.cmp(&b.head.series));
            names.then_with(|| sort_key(&a.head).cmp(&sort_key(&b.head)))
        });
        Some(WindowsReader { document, windows, damage })
    }

    /// Findings about limits of the windows.
    pub fn limit_findings(&self) -> Vec<Finding> {
        let mut findings = self.document.limit_findings();
        if !self.document.complete {
            let message =
                "the windows are those of the last second before the run was cut off, or is now";
            findings.push(Finding::new("windows-cut-off", Severity::Note, "explain", message));
        }
        findings
    }
}

fn head_of(member: &Member) -> Result<WindowHead, BundleError> {
    let path = member.path();
    let file = member.open().map_err(BundleError::from_io("read", path))?;
    let size = file.metadata().map_err(BundleError::from_io("read", path))?.len();
    let mut begin = Vec::new();
    file.take(WindowHead::BEGIN as u64)
        .read_to_end(&mut begin)
        .map_err(BundleError::from_io("read", path))?;
    let decoded = WindowHead::decode(&begin, size);
    decoded.map(|(head, ..)| head).map_err(|why| BundleError::from_damage(path, why))
}

/// The substitute for a lost document.
fn unknown_document() -> WindowsDocument {
    let rule = super::KeptRule { buffer: Bytes(0), room: Bytes(0), ..Default::default() };
    WindowsDocument::new(
        rule,
        Recorded::without_events("unknown", MonotonicNs(0)),
        Names::default(),
    )
}
