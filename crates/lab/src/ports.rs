//! The output of the virtio ports: the lines of the status port, and the archive of the results
//! port.

use crate::progress::GuestPhase;
use cpio::newc::Reader;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// No init reports this much: longer output is from a guest that took its descriptor.
pub(crate) const STATUS_MAX: u64 = 1 << 20;
/// The maximum number of problems, which users read.
const PROBLEMS_MAX: usize = 100;

/// The reports of the guest's init so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitStatus {
    /// `uname -r`.
    pub release: Option<String>,
    pub job_started: bool,
    /// The job's exit status as from a shell: 128 + n after signal n.
    pub exit_status: Option<i32>,
    /// The number of tasks killed by the OOM killer (`oom_kill` in /proc/vmstat).
    pub oom_kills: Option<u64>,
    /// All results have been sent.
    pub complete: bool,
    /// Problems in preparing the guest.
    pub problems: Vec<String>,
}

impl InitStatus {
    /// Parses the received lines; the last may be truncated if the guest ended in the middle of it.
    pub fn parse(text: &str) -> InitStatus {
        let mut status = InitStatus::default();
        let problem = |status: &mut InitStatus, text: String| {
            if status.problems.len() < PROBLEMS_MAX {
                status.problems.push(text);
            }
        };
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "release" => status.release = Some(value.to_owned()),
                "job-started" => status.job_started = true,
                "job-ended" => status.exit_status = value.parse().ok(),
                "oom-kills" => status.oom_kills = value.parse().ok(),
                "complete" => status.complete = true,
                "problem" => problem(&mut status, value.trim().to_owned()),
                _ => problem(&mut status, format!("an unknown line from the guest: {line}")),
            }
        }
        status
    }
}

impl InitStatus {
    /// Reads the output of the port so far, up to the maximum.
    pub fn read(path: &Path) -> io::Result<InitStatus> {
        Ok(InitStatus::parse(&String::from_utf8_lossy(&read_at_most(path, STATUS_MAX)?)))
    }

    /// The phase of the guest.
    pub(crate) fn guest_phase(&self) -> GuestPhase {
        match self {
            InitStatus { exit_status: Some(_), .. } => GuestPhase::Results,
            InitStatus { job_started: true, .. } => GuestPhase::Job,
            _ => GuestPhase::Booting,
        }
    }
}

/// The first bytes of a file that a guest fills; none if it does not exist.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match fs::File::open(path) {
        // QEMU creates the files of the ports; it may have failed before.
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        opened => drop(opened?.take(most).read_to_end(&mut bytes)?),
    }
    Ok(bytes)
}

/// The last bytes of such a file.
pub(crate) fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match fs::File::open(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        opened => {
            let mut file = opened?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
            file.take(most).read_to_end(&mut bytes)?;
        }
    }
    Ok(bytes)
}

/// The files of a results archive, by their path below /results.
pub(crate) fn unpack_results(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    let mut rest = archive;
    loop {
        let mut reader =
            Reader::new(rest).map_err(|why| format!("after {} files: {why}", files.len()))?;
        let entry = reader.entry();
        if entry.is_trailer() {
            return Ok(files);
        }
        let name = inner_name(entry.name())?;
        // Grows as bytes arrive: the announced size is not trusted.
        let mut data = Vec::new();
        let size = u64::from(entry.file_size());
        let read = reader.read_to_end(&mut data).map_err(|why| format!("in {name}: {why}"))?;
        if (read as u64) < size {
            return Err(format!("in {name}: {read} of {size} bytes"));
        }
        rest = reader.finish().map_err(|why| format!("after {name}: {why}"))?;
        files.insert(name, data);
    }
}

/// Unpacks a results archive of any size below a directory while reading it.
pub(crate) fn unpack_to(archive: impl Read, directory: &Path) -> Result<(), String> {
    let mut rest = archive;
    loop {
        let mut reader = Reader::new(rest).map_err(|why| why.to_string())?;
        if reader.entry().is_trailer() {
            return Ok(());
        }
        let name = inner_name(reader.entry().name())?;
        let path = directory.join(&name);
        let written = fs::create_dir_all(path.parent().unwrap_or(directory))
            .and_then(|()| fs::File::create_new(&path));
        let size = u64::from(reader.entry().file_size());
        let copied = written.and_then(|mut file| io::copy(&mut reader, &mut file));
        let copied = copied.map_err(|why| format!("{}: {why}", path.display()))?;
        if copied < size {
            return Err(format!("in {name}: {copied} of {size} bytes"));
        }
        rest = reader.finish().map_err(|why| format!("after {name}: {why}"))?;
    }
}

/// A path below the results.
fn inner_name(name: &str) -> Result<String, String> {
    let name = name.trim_start_matches("./").to_owned();
    match name.starts_with('/') || name.is_empty() || name.split('/').any(|part| part == "..") {
        true => Err(format!("a path outside of the results: {name}")),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::{Builder, trailer};
    use std::io::Write;

    fn archive() -> Vec<u8> {
        let mut out = Vec::new();
        for (name, data) in [("./a", "one"), ("./dir/b", "")] {
            let mut writer = Builder::new(name).mode(0o100644).write(out, data.len() as u32);
            writer.write_all(data.as_bytes()).unwrap();
            out = writer.finish().unwrap();
        }
        let mut out = trailer(out).unwrap();
        out.resize(out.len().next_multiple_of(512), 0);
        out
    }

    #[test]
    fn an_archive_is_unpacked_completely_or_refused() {
        let whole = archive();
        let files = unpack_results(&whole).unwrap();
        assert_eq!(
            files.into_iter().collect::<Vec<_>>(),
            [("a".into(), b"one".to_vec()), ("dir/b".into(), vec![])]
        );
        assert_eq!(unpack_results(&whole[..118]).unwrap_err(), "in a: 2 of 3 bytes");
        assert!(unpack_results(&[]).unwrap_err().starts_with("after 0 files: "));
        let escape =
            trailer(Builder::new("./../x").write(Vec::new(), 0).finish().unwrap()).unwrap();
        assert_eq!(unpack_results(&escape).unwrap_err(), "a path outside of the results: ../x");
    }

    #[test]
    fn a_truncated_guest_status_is_parsed() {
        let status = InitStatus::parse(
            "release 6.1.0\nproblem insmod x: no\njob-started\njob-ended 3\noom-kills 1\ncompl",
        );
        assert_eq!(
            status,
            InitStatus {
                release: Some("6.1.0".into()),
                job_started: true,
                exit_status: Some(3),
                oom_kills: Some(1),
                complete: false,
                problems: vec!["insmod x: no".into()],
            }
        );
    }

    #[test]
    fn sizes_read_from_a_guest_are_limited() {
        let place = tempfile::tempdir().unwrap();
        let status = place.path().join("status");
        let line = "problem it goes on and on\n";
        fs::write(&status, line.repeat(3 * STATUS_MAX as usize / line.len())).unwrap();
        let read = InitStatus::read(&status).unwrap();
        assert_eq!((read.problems.len(), read.complete), (PROBLEMS_MAX, false));
        assert_eq!(read_at_most(&status, 7).unwrap(), b"problem");
        assert_eq!(read_end(&status, 3).unwrap(), b"on\n");
        assert_eq!(read_end(&place.path().join("none"), 3).unwrap(), b"");
        assert_eq!(InitStatus::read(&place.path().join("none")).unwrap(), InitStatus::default());
    }

    proptest::proptest! {
        #[test]
        fn no_stream_panics(
            place in 0usize..300,
            value: u8,
            end in 0usize..600,
            text in "\\PC{0,60}",
        ) {
            let mut bytes = archive();
            bytes[place] = value;
            bytes.truncate(end);
            let _ = unpack_results(&bytes);
            let _ = InitStatus::parse(&text);
        }
    }
}
