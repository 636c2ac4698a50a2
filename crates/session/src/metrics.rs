//! `--metrics FILE`: figures for a collector, such as the textfile collector of node_exporter,
//! while they are measured.

use crate::exit::Failure;
use crate::frames::FrameWriter;
use crate::saver::END_TIMEOUT;
use punctual_core::{Finding, MonotonicNs, Nanos, Severity};
use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Time between two versions of the file.
pub(crate) const INTERVAL: Nanos = Nanos::from_secs(15);
/// The collector runs as another user.
const MODE: u32 = 0o644;

/// The file, and the results of its writes, which a thread of its own makes.
#[derive(Default)]
pub struct MetricsFile {
    path: PathBuf,
    next: MonotonicNs,
    results: Arc<Mutex<WriteResults>>,
    /// Since the first write.
    writer: Option<FrameWriter<String>>,
}

#[derive(Default)]
struct WriteResults {
    written: u64,
    failed: u64,
    why: Option<io::Error>,
}

impl WriteResults {
    fn add(&mut self, result: io::Result<()>) {
        self.written += 1;
        if let Err(why) = result {
            self.failed += 1;
            self.why.get_or_insert(why);
        }
    }
}

/// The results; locked only to count one.
fn lock_results(results: &Mutex<WriteResults>) -> MutexGuard<'_, WriteResults> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MetricsFile {
    /// Writes nothing yet; the first version is due at once.
    pub fn new(path: PathBuf) -> MetricsFile {
        MetricsFile { path, ..MetricsFile::default() }
    }

    /// Whether a new version is due.
    pub fn is_due(&mut self, now: MonotonicNs) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + INTERVAL;
        }
        due
    }

    /// Replaces the file for the last time, after findings are closed.
    pub(crate) fn write_final(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.wait_for_write().and_then(|()| write(&self.path, text));
        written
            .map_err(|why| Failure::failed(format!("cannot write {}: {why}", self.path.display())))
    }

    /// Replaces the file as a whole, unless a newer version comes first. Returns immediately; a
    /// failure becomes a finding.
    pub fn write(&mut self, text: String) {
        if self.writer.is_none() {
            let (path, results) = (self.path.clone(), Arc::clone(&self.results));
            let started = FrameWriter::start(move |text: String| {
                let result = write(&path, &text);
                lock_results(&results).add(result);
            });
            match started {
                Ok(writer) => self.writer = Some(writer),
                Err(why) => return lock_results(&self.results).add(Err(why)),
            }
        }
        if let Some(writer) = &self.writer {
            writer.put_frame(text);
        }
    }

    /// Waits until the last version is written.
    fn wait_for_write(&mut self) -> io::Result<()> {
        let is_written = self.writer.take().is_none_or(|writer| writer.finish(END_TIMEOUT));
        if is_written { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    /// The finding of failed writes.
    pub fn failure_finding(&mut self, subject: &str) -> Option<Finding> {
        let settled = self.wait_for_write();
        let mut results = lock_results(&self.results);
        if settled.is_err() {
            results.add(settled);
        }
        let WriteResults { written, failed, why } = &*results;
        let reason = why.as_ref()?;
        let message = format!("the metrics were not written {failed} of {written} times");
        let finding = Finding::new("metrics-not-written", Severity::Warning, subject, message)
            .with_evidence(format!("{}: {reason}", self.path.display()));
        Some(finding.with_remedy(
            "give --metrics a file in a directory that exists, may be written to and has room",
        ))
    }
}

/// Writes into a FIFO or a device, which renaming would take out of its place; replaces a file.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let special = fs::metadata(path).is_ok_and(|of| !of.is_file() && !of.is_dir());
    if !special {
        return replace_file(path, text);
    }
    // Without a reader a FIFO would block the run (fifo(7)).
    let mut file = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    file.write_all(text.as_bytes())
}

/// Replaces the file atomically for readers. It is not synced: after a crash of the system there is
/// nothing to collect.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The collector reads `*.prom` only.
    let mut temporary_name = OsString::from(".");
    temporary_name.push(name);
    temporary_name.push(format!(".{}", std::process::id()));
    let temporary_path = path.with_file_name(temporary_name);
    // Left there by an earlier process of this id.
    let _ = fs::remove_file(&temporary_path);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary_path)
        .and_then(|mut file| {
            file.set_permissions(Permissions::from_mode(MODE))?;
            file.write_all(text.as_bytes())
        })
        .and_then(|()| fs::rename(&temporary_path, path));
    written.inspect_err(|_| drop(fs::remove_file(&temporary_path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_and_a_device_stay_where_they_are() {
        use std::io::Read;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        let mut file = MetricsFile::new(path.clone());
        file.write("nobody reads\n".to_owned());
        assert!(file.failure_finding("attached").is_some(), "it does not wait for a reader");
        let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let mut reader = reader.expect("it is there");
        file.write_final("read\n").expect("there is a reader");
        let mut text = [0; 16];
        let read = reader.read(&mut text).expect("it is read");
        assert_eq!(&text[..read], b"read\n");
        assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 1);
        assert!(MetricsFile::new("/dev/null".into()).write_final("gone\n").is_ok());
        assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
    }

    #[test]
    fn the_metrics_file_is_replaced_atomically_and_errors_are_counted() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.prom");
        let mut file = MetricsFile::new(path.clone());
        assert!(file.is_due(MonotonicNs(5)) && !file.is_due(MonotonicNs(6)));
        assert!(file.is_due(MonotonicNs(5) + INTERVAL));
        file.write("one\n".to_owned());
        file.wait_for_write().expect("it is written");
        file.write("two\n".to_owned());
        file.wait_for_write().expect("it is written");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "two\n");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        assert!(file.failure_finding("attached").is_none());
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a directory in its place");
        file.write("three\n".to_owned());
        let finding = file.failure_finding("attached").expect("it failed");
        assert_eq!(finding.message, "the metrics were not written 1 of 3 times");
        assert!(file.write_final("four\n").is_err(), "the last ones are missing");
        let mut whole = MetricsFile::new(directory.path().join("y.prom"));
        assert!(whole.write_final("four\n").is_ok());
        assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 2, "left behind");
    }
}
