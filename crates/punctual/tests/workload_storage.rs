//! `punctual measure storage`: its claims match the kernel's counters, nothing is left behind, and
//! an unwritable file is refused with the reason.

use crate::common::Place;
use crate::common::measured::{self, agrees, counts, figure, notes, refused};
use serde_json::Value;
use std::path::Path;

/// A directory on a disk if possible: /tmp may be memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a directory in /var/tmp")
}

fn measured(place: &Place, directory: &Path, more: &str) -> Value {
    let directory = directory.display();
    let line = format!("storage --policy other -s period=1ms -s directory={directory} {more}");
    measured::measured(place, &line)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("the directory").next().is_none()
}

#[test]
fn kernel_counts_agree_for_every_storage_mode() {
    let (place, directory) = (Place::with(""), directory());
    for (setting, steps) in [
        ("mode=direct", &["whole", "open", "write", "close"][..]),
        ("mode=forced -s forcing=fdatasync", &["whole", "open", "write", "force", "close"]),
    ] {
        let settings = format!("--count 20 -s record=4KiB -s file_max=64KiB -s {setting}");
        let summary = measured(&place, directory.path(), &settings);
        let expected: Vec<_> = steps.iter().map(|step| (format!("storage/{step}"), 20)).collect();
        assert_eq!(counts(&summary), expected, "{setting}");
        agrees(&summary, setting);
        let notes = notes(&summary);
        let claims = notes["validations"].to_string();
        assert!(
            claims.contains("\"claimed\":81920") && claims.contains("\"claimed\":65536"),
            "{setting}: {claims}"
        );
        assert_eq!(notes["tables"][0]["name"], "file-system");
        assert!(
            notes["tables"][0]["rows"][0][1].is_string(),
            "{setting}: the file system has a type: {notes}"
        );
        assert!(
            !summary["findings"].to_string().contains("storage-failed"),
            "{setting}: {}",
            summary["findings"]
        );
        assert!(is_empty(directory.path()), "{setting} left something");
    }
}

#[test]
fn another_thread_writes_whole_batches() {
    let (place, directory) = (Place::with(""), directory());
    let summary = measured(&place, directory.path(), "--count 47 -s mode=buffered -s batch=10");
    let (counted, notes) = (counts(&summary), notes(&summary));
    let figure = |name| figure(&summary, name).unwrap_or(-1.0);
    assert_eq!(counted[0], ("storage/whole".to_owned(), 47));
    assert_eq!(counted[1].0, "storage/safe-write");
    // On a very slow machine the writer may have missed some.
    let dropped = figure("dropped-records");
    assert_eq!(counted[1].1 as f64 * 10.0 + figure("unwritten-records") + dropped, 47.0, "{notes}");
    let bytes = &notes["validations"][0];
    assert_eq!(bytes["claimed"].as_u64(), Some(counted[1].1 * 640), "{notes}");
    assert_ne!(bytes["agrees"], false, "{notes}");
    assert!(is_empty(directory.path()));
}

fn refused_at(place: &Place, directory: &str, more: &str) -> String {
    let line = format!("storage --policy other --count 5 -s directory={directory} {more}");
    refused(place, &line)
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let place = Place::with("");
    let missing = refused_at(&place, "/var/tmp/punctual-is-not-there", "");
    assert!(
        missing.contains("No such file") && missing.contains("/var/tmp/punctual-is-not-there"),
        "{missing}"
    );
    let file = refused_at(&place, "experiment.toml", "");
    assert!(file.contains("Not a directory") && file.contains("experiment.toml"), "{file}");
    let large = refused_at(&place, "/var/tmp", "-s mode=buffered -s record=64MiB -s batch=100000");
    assert!(large.contains("a batch would be larger"), "{large}");
    let odd = refused_at(&place, "/var/tmp", "-s mode=forced -s forcing=o-direct -s record=100B");
    assert!(odd.contains("whole blocks"), "{odd}");
}
