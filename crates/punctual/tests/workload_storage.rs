//! `punctual measure storage`: its claims match the kernel's counters, nothing is left behind, and
//! an unwritable file is refused with the reason.

use crate::common::disk::Disk;
use crate::common::measured::{self, agrees, counts, endless, figure, notes, refused};
use crate::common::{self, Place, eventually, is_root, text, words};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

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
    let forced = ["whole", "open", "write", "force", "close"];
    let plain = ["whole", "open", "write", "close"];
    for (setting, steps) in [
        ("mode=direct", &plain[..]),
        ("forcing=fsync", &forced),
        ("forcing=fdatasync", &forced),
        ("forcing=sync", &forced),
        ("forcing=o-dsync", &plain),
        ("forcing=o-direct", &plain),
        ("forcing=io-uring", &forced),
    ] {
        let mode = if setting == "mode=direct" { "mode=direct" } else { "mode=forced" };
        let more = if setting == mode { String::new() } else { format!("-s {setting}") };
        let settings = format!("--count 20 -s record=4KiB -s file_max=64KiB -s {mode} {more}");
        // A missing feature of this system is reported, and is not a failure of ours.
        if matches!(setting, "forcing=io-uring" | "forcing=o-direct") {
            let tried = place.line(&format!(
                "measure storage -q --policy other -s directory={} {settings} --output {}",
                directory.path().display(),
                measured::bundle()
            ));
            if text(&tried).contains("io_uring is unavailable") || text(&tried).contains("O_DIRECT")
            {
                println!("SKIPPED: {setting} is unavailable here: {}", text(&tried));
                continue;
            }
        }
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

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn forced_writes_are_slower_than_buffered_ones() {
    let (place, directory) = (Place::with(""), directory());
    let median = |mode: &str| {
        let summary = measured(&place, directory.path(), &format!("--count 40 -s {mode}"));
        if summary["findings"].to_string().contains("storage-in-memory") {
            return None;
        }
        summary["phases"][0]["series"][0]["median"].as_i64()
    };
    let (mut buffered, mut direct, mut forced) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let Some(slow) = median("mode=forced") else {
            return println!("SKIPPED: lacks a disk: /var/tmp is memory");
        };
        forced.push(slow);
        direct.extend(median("mode=direct"));
        buffered.extend(median("mode=buffered"));
    }
    for medians in [&mut buffered, &mut direct, &mut forced] {
        medians.sort_unstable();
    }
    // The median of three alternating rounds.
    assert!(forced[1] > buffered[1], "forced {forced:?}, buffered {buffered:?}");
    assert!(forced[1] > direct[1], "forced {forced:?}, direct {direct:?}");
}

#[test]
fn nothing_stays_behind_after_kill_9() {
    let (place, directory) = (Place::with(""), directory());
    for mode in ["mode=forced", "mode=buffered"] {
        let setting = format!("-s {mode} -s directory={}", directory.path().display());
        let mut child = endless(&place, &format!("storage --policy other {setting}"), mode);
        assert!(is_empty(directory.path()), "the file has a name while it is written");
        common::kill(child.id(), "KILL");
        child.wait().unwrap();
        assert!(is_empty(directory.path()));
        let word = directory.path().to_string_lossy().into_owned();
        common::eventually("the end of every process", || common::processes_with(&word).is_empty());
    }
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

/// A tmpfs, unmounted on drop.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn with(options: &str) -> Option<Mounted> {
        let at = directory();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(at.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Mounted(at));
        }
        println!("SKIPPED: lacks the right to mount a tmpfs");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_or_read_only_directory_is_refused_and_one_that_fills_up_is_told() {
    if !is_root("mounting a file system") {
        return;
    }
    let place = Place::with("");
    let Some(small) = Mounted::with("size=64k") else { return };
    let at = small.0.path().to_string_lossy().into_owned();
    // The file system fills up during the measurement.
    let summary = measured(&place, small.0.path(), "--count 30 -s record=4KiB");
    let findings = summary["findings"].to_string();
    assert!(
        findings.contains("storage-failed") && findings.contains("No space left"),
        "{findings}"
    );
    assert_eq!(notes(&summary)["tables"][0]["rows"][0][1], "tmpfs");
    let memory = measured(&place, small.0.path(), "--count 3 -s mode=forced");
    assert!(memory["findings"].to_string().contains("storage-in-memory"), "{}", memory["findings"]);
    // Full from the beginning: the kernel refuses further data, and the written data exists.
    let _ = std::fs::write(small.0.path().join("everything"), vec![1; 1 << 17]);
    let full = refused_at(&place, &at, "-s record=4KiB");
    assert!(full.contains("No space left") && full.contains(&at), "{full}");
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(small.0.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "remounting");
    let read_only = refused_at(&place, &at, "");
    assert!(read_only.contains("Read-only") && read_only.contains(&at), "{read_only}");
}

/// A limit on file sizes is reported before anything starts; the signal that comes with it
/// (SIGXFSZ) kills no process.
#[test]
fn a_file_size_limit_that_is_too_small_is_reported() {
    let place = Place::with("");
    let limited = |blocks: u32| {
        let line = format!(
            "ulimit -f {blocks} && exec \"$0\" measure storage --duration 100ms --quiet --output \
             bundle"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(env!("CARGO_BIN_EXE_punctual")).current_dir(place.path());
        shell.output().expect("a shell")
    };
    let refused = limited(40_000);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("ulimit -f") && text(&refused).contains("file_max"),
        "{}",
        text(&refused)
    );
    assert!(!place.bundle().exists());
    // Too small for the bundle itself.
    let failed = limited(1);
    assert!(matches!(failed.status.code(), Some(1 | 2)), "{:?} {}", failed.status, text(&failed));
    assert!(text(&failed).contains("ulimit -f"), "{}", text(&failed));
}

/// As in `examples/p1-storage.toml` on a slow disk: records for which the writer had no room are a
/// finding in every output, not only a figure.
#[test]
fn records_without_room_are_a_finding() {
    let place = Place::with("");
    let Some(disk) = Disk::at(place.path()) else { return };
    let directory = format!("directory={}", disk.path());
    let settings = format!("-s mode=buffered -s batch=2 -s period=1ms -s {directory}");
    let line = "measure storage --quiet --policy other --duration 8s --output bundle";
    let mut command = common::punctual();
    command.args(words(&format!("{line} {settings}"))).current_dir(place.path());
    command.stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("punctual");
    let log = |file: &std::path::PathBuf| file.extension().is_some_and(|ending| ending == "log");
    let is_long =
        |file: std::path::PathBuf| log(&file) && file.metadata().is_ok_and(|meta| meta.len() > 256);
    let phase = place.bundle().join("phases/000");
    eventually("samples", || {
        std::fs::read_dir(&phase).is_ok_and(|all| all.flatten().any(|file| is_long(file.path())))
    });
    // At most eight batches of two wait: the rest of a second finds no room.
    disk.freeze();
    std::thread::sleep(std::time::Duration::from_secs(1));
    disk.thaw();
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    let shown = text(&place.punctual(&["show", "bundle"]));
    assert!(shown.contains("records were dropped: the writer was slower than the task"), "{shown}");
    let summary = place.summary();
    let findings = summary["findings"].as_array().expect("findings");
    let dropped = findings.iter().find(|finding| finding["id"] == "storage-dropped");
    let dropped = dropped.unwrap_or_else(|| panic!("no finding: {findings:?}"));
    assert_eq!(dropped["severity"], "warning", "{dropped}");
    let count = figure(&summary, "dropped-records").expect("a figure");
    assert!(
        count > 0.0
            && dropped["evidence"]
                .as_str()
                .is_some_and(|text| text.starts_with(&format!("{count} ")))
    );
    let report = place.punctual(&["report", "bundle"]);
    assert!(report.status.success(), "{}", text(&report));
    let page = std::fs::read_to_string(place.bundle().join("report.html")).expect("the page");
    assert!(page.contains("ecords were dropped"), "the page says nothing of it");
}
