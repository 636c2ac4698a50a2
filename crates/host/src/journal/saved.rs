//! Journals as found: complete, cut off in the middle of a line, from an earlier boot, or damaged.

use super::record::{
    Applied, ChangePurpose, ChangeRefusal, Intent, JournalBegin, JournalEvent, JournalRecord,
    PartitionNote, VERSION,
};
use super::store::Store;
use super::{JournalError, in_store};

/// A journal in its directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedJournal {
    pub name: String,
    /// Its first record; without one, its writer was killed before it changed anything.
    pub begin: Option<JournalBegin>,
    /// The announced changes, in order.
    pub entries: Vec<SavedChange>,
    /// Whether every change had been made.
    pub ready: bool,
    /// Whether the undo has begun.
    pub undoing: bool,
    /// Unreadable lines, counted from 1, except an incomplete last one. There should be none.
    pub damaged: Vec<usize>,
    /// The length of the file up to the end of its last complete line.
    pub(super) whole_bytes: u64,
    /// Whether data follows the last complete line: the writer was killed, or the disk was full,
    /// while it was written.
    pub(super) torn: bool,
    /// The number of the next record.
    pub(super) next_seq: u64,
}

/// An announced change and its known result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedChange {
    pub seq: u64,
    pub intent: Intent,
    pub outcome: ChangeOutcome,
    /// Whether it has been reverted.
    pub undone: bool,
}

/// The result of an announced change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeOutcome {
    /// Not recorded: the writer was killed before, while or after it made the change.
    Unknown,
    Applied(Applied),
    Refused(ChangeRefusal),
}

impl SavedJournal {
    /// Reads a journal's bytes.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<SavedJournal, JournalError> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut saved = SavedJournal {
            name: name.to_owned(),
            begin: None,
            entries: Vec::new(),
            ready: false,
            undoing: false,
            damaged: Vec::new(),
            whole_bytes: whole as u64,
            torn: whole < bytes.len(),
            next_seq: 0,
        };
        let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
        for (place, line) in lines.enumerate() {
            saved.reject_newer(name, line)?;
            match serde_json::from_slice::<JournalRecord>(line) {
                Ok(record) => saved.apply_record(record),
                Err(_) => saved.damaged.push(place + 1),
            }
        }
        Ok(saved)
    }

    /// Records of a later version would look like damage: its version is checked first.
    fn reject_newer(&self, name: &str, line: &[u8]) -> Result<(), JournalError> {
        if self.begin.is_some() || !self.entries.is_empty() {
            return Ok(());
        }
        let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
        let version = value
            .as_ref()
            .and_then(|v| v.pointer("/begin/version"))
            .and_then(serde_json::Value::as_u64);
        match version {
            Some(version) if version > u64::from(VERSION) => {
                Err(JournalError::Newer { name: name.to_owned(), version })
            }
            _ => Ok(()),
        }
    }

    fn apply_record(&mut self, record: JournalRecord) {
        self.next_seq = self.next_seq.max(record.seq.saturating_add(1));
        match record.event {
            JournalEvent::Begin(begin) => self.begin = Some(begin),
            JournalEvent::Intent(intent) => {
                self.entries.push(SavedChange {
                    seq: record.seq,
                    intent,
                    outcome: ChangeOutcome::Unknown,
                    undone: false,
                });
            }
            JournalEvent::Applied(applied) => {
                if let Some(entry) = self.find_entry(applied.of) {
                    entry.outcome = ChangeOutcome::Applied(applied);
                }
            }
            JournalEvent::Refused(refusal) => {
                if let Some(entry) = self.find_entry(refusal.of) {
                    entry.outcome = ChangeOutcome::Refused(refusal);
                }
            }
            JournalEvent::Ready {} => self.ready = true,
            JournalEvent::Undone { of } => {
                self.undoing = true;
                if let Some(entry) = self.find_entry(of) {
                    entry.undone = true;
                }
            }
        }
    }

    fn find_entry(&mut self, seq: u64) -> Option<&mut SavedChange> {
        // The record that it belongs to is nearly always the last one.
        self.entries.iter_mut().rev().find(|entry| entry.seq == seq)
    }

    /// Its partition, if it has one.
    pub(crate) fn partition_note(&self) -> Option<&PartitionNote> {
        match self.begin.as_ref().map(|begin| &begin.purpose) {
            Some(ChangePurpose::Partition(note)) => Some(note),
            _ => None,
        }
    }

    /// Whether it is from another boot.
    pub fn is_stale(&self, boot_id: &str) -> bool {
        self.begin.as_ref().is_some_and(|begin| begin.boot_id != boot_id)
    }
}

/// The number in `journal-0001.jsonl`; `None` for a file that is not a journal in use.
fn journal_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("journal-")?.strip_suffix(".jsonl")?;
    digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))
}

pub(super) fn next_name(store: &dyn Store) -> Result<String, JournalError> {
    let names = store.file_names().map_err(in_store(store, "list", ""))?;
    // Journals set aside keep their number, so that no two ever share one.
    let used = names
        .iter()
        .filter_map(|name| journal_number(name.strip_prefix("stale-").unwrap_or(name)))
        .max();
    Ok(format!("journal-{:04}.jsonl", used.unwrap_or(0).saturating_add(1)))
}

/// Every journal in use, the oldest first.
pub fn read_all(store: &dyn Store) -> Result<Vec<SavedJournal>, JournalError> {
    let names = store.file_names().map_err(in_store(store, "list", ""))?;
    let mut journals: Vec<(u32, String)> = names
        .into_iter()
        .filter_map(|name| journal_number(&name).map(|number| (number, name)))
        .collect();
    journals.sort();
    let read = |(_, name): (u32, String)| {
        let bytes = store.read(&name).map_err(in_store(store, "read", &name))?;
        SavedJournal::parse(&name, &bytes)
    };
    journals.into_iter().map(read).collect()
}

/// Renames every journal of an earlier boot, whose changes are gone, and returns the new names.
pub(crate) fn put_aside_stale(
    store: &dyn Store,
    boot_id: &str,
) -> Result<Vec<String>, JournalError> {
    let mut aside = Vec::new();
    for journal in read_all(store)?.into_iter().filter(|journal| journal.is_stale(boot_id)) {
        let name = format!("stale-{}", journal.name);
        store.rename(&journal.name, &name).map_err(in_store(store, "put aside", &journal.name))?;
        aside.push(name);
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTENT: &str = concat!(
        r#"{"seq":1,"intent":{"step":"s","action":{"#,
        r#""write":{"path":"/p","old":"1","new":"2","undo":["1"]}}}}"#
    );

    #[test]
    fn a_last_line_that_was_cut_off_is_recognised() {
        let text = format!("{INTENT}\n{}", &INTENT[..40]);
        let saved = SavedJournal::parse("journal-0001.jsonl", text.as_bytes()).unwrap();
        assert_eq!(
            (saved.entries.len(), saved.torn, saved.whole_bytes),
            (1, true, INTENT.len() as u64 + 1)
        );
        assert_eq!((saved.damaged, saved.next_seq), (vec![], 2));
    }

    #[test]
    fn a_damaged_journal_line_is_reported_and_skipped() {
        let text =
            format!("garbage\n{INTENT}\n{{\"seq\":2,\"applied\":{{\"of\":1,\"now\":\"2\"}}}}\n");
        let saved = SavedJournal::parse("journal-0001.jsonl", text.as_bytes()).unwrap();
        assert_eq!((saved.damaged, saved.torn), (vec![1], false));
        assert!(matches!(saved.entries[0].outcome, ChangeOutcome::Applied(_)));
    }

    #[test]
    fn a_journal_of_a_later_version_is_not_guessed_at() {
        let error =
            SavedJournal::parse("journal-0001.jsonl", b"{\"seq\":0,\"begin\":{\"version\":3}}\n")
                .unwrap_err();
        assert!(matches!(error, JournalError::Newer { version: 3, .. }));
    }

    #[test]
    fn only_journals_in_use_have_a_number() {
        assert_eq!(journal_number("journal-0012.jsonl"), Some(12));
        for other in [
            "lock",
            "journal-.jsonl",
            "journal-+1.jsonl",
            "stale-journal-0001.jsonl",
            "journal-99999999999.jsonl",
        ] {
            assert_eq!(journal_number(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            cut in 0usize..200,
        ) {
            let _ = SavedJournal::parse("journal-0001.jsonl", &bytes);
            let cut = &INTENT.as_bytes()[..cut.min(INTENT.len())];
            let _ = SavedJournal::parse("journal-0001.jsonl", cut);
        }
    }
}
