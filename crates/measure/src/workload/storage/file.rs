//! A file without a name, and one record written to it: opened, written, forced, closed, with a
//! reading of the clock between the steps.

use crate::workload::io_uring::Uring;
use crate::workload::measurement_loop::LoopClock;
use punctual_plan::kinds::{Forcing, StorageMode, StoragePlan};
use punctual_sys::check_result;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The alignment of memory for O_DIRECT that suits every device.
const ALIGNMENT: usize = 4096;

/// A file without a name: from open(2) with O_TMPFILE or, if the file system does not support it,
/// unlinked immediately.
pub(crate) fn open_unnamed(directory: &Path) -> io::Result<File> {
    let options = || {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600);
        options
    };
    match options().custom_flags(libc::O_TMPFILE).open(directory) {
        Err(why) if matches!(why.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let name = directory.join(format!(
                ".punctual-{}-{:?}",
                std::process::id(),
                std::thread::current().id()
            ));
            let file = options().create_new(true).open(&name)?;
            fs::remove_file(&name)?;
            Ok(file)
        }
        opened => opened,
    }
}

/// A separate call that forces data to the disk.
enum Force {
    Nothing,
    Fsync,
    Fdatasync,
    Sync,
    /// The write is submitted with it.
    Uring(Uring),
}

/// A step of a record that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedStep {
    Open,
    Write,
    Force,
    Close,
}

/// Counts of written and failed records.
#[derive(Clone, Copy, Default, Debug)]
pub struct RecordCounts {
    pub records: u64,
    /// Bytes that the kernel accepted.
    pub bytes: u64,
    /// Records with a failed step.
    pub failed: u64,
    /// The last of them: the step, and errno (0: fewer bytes were accepted than given).
    pub last: Option<(FailedStep, i32)>,
    /// The number of restarts of the file.
    pub restarts: u64,
}

/// The destination of records, and the method.
pub struct RecordFile {
    file: File,
    /// The path under /proc that opens the file again: a link to the open file and nothing else.
    path: CString,
    flags: libc::c_int,
    force: Force,
    limit: u64,
    offset: u64,
    /// The highest offset written to.
    pub end: u64,
    pub count: RecordCounts,
}

/// The readings of the clock: before, opened, written, forced, closed.
pub type WriteStamps = [i64; 5];

impl RecordFile {
    pub fn new(file: File, plan: &StoragePlan) -> Result<RecordFile, String> {
        let forced = plan.mode == StorageMode::Forced;
        let (flags, force) = match plan.forcing {
            _ if !forced => (0, Force::Nothing),
            Forcing::Fsync => (0, Force::Fsync),
            Forcing::Fdatasync => (0, Force::Fdatasync),
            Forcing::Sync => (0, Force::Sync),
            Forcing::Dsync => (libc::O_DSYNC, Force::Nothing),
            Forcing::Direct => (libc::O_DIRECT, Force::Nothing),
            Forcing::IoUring => {
                let describe = |why| {
                    format!(
                        "io_uring is unavailable: {why} (see the sysctl kernel.io_uring_disabled)"
                    )
                };
                (0, Force::Uring(Uring::new().map_err(describe)?))
            }
        };
        // The process's own descriptor number: its threads share the descriptors.
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(|why| why.to_string())?;
        let flags = flags | libc::O_WRONLY | libc::O_CLOEXEC;
        let limit = plan.file_max.get();
        check_size_limit(limit)?;
        Ok(RecordFile {
            file,
            path,
            flags,
            force,
            limit,
            offset: 0,
            end: 0,
            count: RecordCounts::default(),
        })
    }

    pub(crate) fn is_uring(&self) -> bool {
        matches!(self.force, Force::Uring(_))
    }

    /// The tracepoints of the calls for one record, each once.
    pub fn call_names(&self) -> &'static [&'static str] {
        match self.force {
            Force::Nothing => &["pwrite64"],
            Force::Fsync => &["pwrite64", "fsync"],
            Force::Fdatasync => &["pwrite64", "fdatasync"],
            Force::Sync => &["pwrite64", "sync"],
            // One that submits, and one that waits, which is not called if both are done.
            Force::Uring(_) => &[],
        }
    }

    /// The file's size, by fstat(2).
    pub fn file_size(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    /// Opens the file, writes a record at the end of the last one, forces it, closes the file.
    /// Failed steps are counted, and the others are done; `None` if there was no open file to write
    /// to.
    #[inline(always)]
    pub fn write(&mut self, ticks: &impl LoopClock, record: &[u8]) -> Option<WriteStamps> {
        self.count.records += 1;
        let length = record.len() as u64;
        if self.offset + length > self.limit {
            self.offset = 0;
            self.count.restarts += 1;
        }
        let mut failed = None;
        let begin = ticks.now();
        // SAFETY: the path ends with a NUL.
        let fd = unsafe { libc::open(self.path.as_ptr(), self.flags) };
        if fd < 0 {
            self.count.failed += 1;
            self.count.last = Some((FailedStep::Open, last_errno()));
            return None;
        }
        let opened = ticks.now();
        let mut write_result = match &mut self.force {
            Force::Uring(uring) => {
                // SAFETY: the record is readable memory of its length until both are waited for,
                // below.
                unsafe {
                    uring.submit_write_and_fsync(
                        fd,
                        record.as_ptr(),
                        record.len() as u32,
                        self.offset,
                    )
                };
                0
            }
            // SAFETY: the record is readable memory of its length.
            _ => unsafe {
                libc::pwrite(fd, record.as_ptr().cast(), record.len(), self.offset as libc::off_t)
                    as i64
            },
        };
        if write_result < 0 {
            failed = Some((FailedStep::Write, last_errno()));
        }
        let written = ticks.now();
        let forced = match &mut self.force {
            Force::Nothing => 0,
            // SAFETY: these take a descriptor or nothing.
            Force::Fsync => unsafe { libc::fsync(fd) },
            // SAFETY: as above.
            Force::Fdatasync => unsafe { libc::fdatasync(fd) },
            Force::Sync => {
                // SAFETY: sync takes nothing and cannot fail.
                unsafe { libc::sync() };
                0
            }
            Force::Uring(uring) => {
                let [write, fsync] = uring.wait_for_both();
                write_result = write.into();
                if write < 0 {
                    failed = Some((FailedStep::Write, -write));
                } else if fsync < 0 {
                    failed = Some((FailedStep::Force, -fsync));
                }
                0
            }
        };
        if forced < 0 {
            failed = failed.or(Some((FailedStep::Force, last_errno())));
        }
        // Without forcing there is nothing between the two readings, and the second is omitted.
        let safe = if matches!(self.force, Force::Nothing) { written } else { ticks.now() };
        // SAFETY: the descriptor is this function's own.
        if unsafe { libc::close(fd) } < 0 {
            failed = failed.or(Some((FailedStep::Close, last_errno())));
        }
        let closed = ticks.now();
        let written_bytes = write_result.max(0) as u64;
        if written_bytes < length {
            failed = failed.or(Some((FailedStep::Write, 0)));
        }
        self.count.bytes += written_bytes;
        self.offset += written_bytes;
        self.end = self.end.max(self.offset);
        if failed.is_some() {
            self.count.failed += 1;
            self.count.last = failed;
        }
        Some([begin, opened, written, safe, closed])
    }

    /// The last written bytes.
    pub(crate) fn read_last(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, self.offset.saturating_sub(length as u64))?;
        Ok(bytes)
    }

    /// Writes one record, so that errors are reported before the measurement.
    pub(crate) fn try_once(&mut self, ticks: &impl LoopClock, record: &[u8]) -> Result<(), String> {
        self.write(ticks, record);
        let result = match self.count.last {
            None => Ok(()),
            Some(last) => Err(describe_failure(last)),
        };
        self.reset_counts();
        result
    }

    pub(crate) fn reset_counts(&mut self) {
        self.count = RecordCounts::default();
    }
}

/// Checks that no limit on file sizes (RLIMIT_FSIZE) would make records fail.
fn check_size_limit(file_max: u64) -> Result<(), String> {
    let mut limit =
        libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: libc::RLIM64_INFINITY };
    // SAFETY: the structure is ours and lives through the call.
    unsafe { libc::getrlimit64(libc::RLIMIT_FSIZE, &mut limit) };
    let size_limit = limit.rlim_cur;
    if size_limit >= file_max {
        return Ok(());
    }
    Err(format!(
        "a file may have {size_limit} bytes at most here, less than `file_max`, {file_max}: raise \
         the limit (ulimit -f), or set a smaller `file_max`"
    ))
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The failed step, the reason, and the remedy.
pub(crate) fn describe_failure((step, errno): (FailedStep, i32)) -> String {
    let what = match step {
        FailedStep::Open => "open",
        FailedStep::Write => "write",
        FailedStep::Force => "forcing to the disk",
        FailedStep::Close => "close",
    };
    let reason = if errno == 0 {
        "fewer bytes were taken".to_owned()
    } else {
        io::Error::from_raw_os_error(errno).to_string()
    };
    let help = match errno {
        libc::ENOSPC | libc::EDQUOT => ": free some space, or choose another `directory`",
        libc::EFBIG => {
            ": a limit on file sizes (ulimit -f) is below `file_max`, which should be less"
        }
        0 => ": is the file system full, or the file as large as it may be (ulimit -f)?",
        libc::EINVAL => {
            ": the file system may not have O_DIRECT, or want larger blocks (4 KiB on most disks): \
             see `record`"
        }
        libc::EROFS => ": choose a `directory` that can be written to",
        _ => "",
    };
    format!("{what} failed: {reason}{help}")
}

/// Memory to write from, aligned for O_DIRECT, all of it touched.
pub struct RecordBuffer {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

impl RecordBuffer {
    pub fn new(length: usize) -> RecordBuffer {
        let mut memory = vec![0u8; length + ALIGNMENT];
        // A pattern that no file system compresses away or stores as a hole.
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for byte in &mut memory {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
        let begin = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        RecordBuffer { memory, begin, length }
    }

    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.length]
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.length]
    }
}

/// The bytes that this thread has written by the kernel's count, with write(2) and similar calls
/// (proc_pid_io(5)).
pub(crate) fn written_by_this_thread() -> Result<u64, String> {
    let path = "/proc/thread-self/io";
    let text = fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))?;
    let field = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    field.and_then(|field| field.trim().parse().ok()).ok_or_else(|| format!("{path} has no wchar"))
}

/// Checks that a directory is one, so that the message concerns it.
pub(crate) fn open_in_directory(directory: &Path) -> Result<File, String> {
    let shown_directory = directory.display();
    let name = CString::new(directory.as_os_str().as_bytes())
        .map_err(|why| format!("directory {shown_directory}: {why}"))?;
    // SAFETY: the path ends with a NUL.
    check_result(unsafe { libc::access(name.as_ptr(), libc::F_OK) }).map_err(|why| {
        format!("directory {shown_directory}: {why}: make it, or choose another with `directory`")
    })?;
    open_unnamed(directory).map_err(|why| {
        let help = match why.raw_os_error() {
            Some(libc::EROFS) => "it is read-only: choose another with `directory`",
            Some(libc::ENOSPC | libc::EDQUOT) => {
                "free some space, or choose another with `directory`"
            }
            Some(libc::ENOTDIR) => "give the directory, not a file in it",
            _ => "choose one with `directory` in which you may make files",
        };
        format!("no file can be made in directory {shown_directory}: {why}: {help}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::simulated::SteppedClock;
    use punctual_core::Bytes;

    fn record_file(mode: StorageMode, forcing: Forcing) -> RecordFile {
        let plan = StoragePlan { mode, forcing, file_max: Bytes(250), ..StoragePlan::default() };
        RecordFile::new(open_unnamed(&std::env::temp_dir()).unwrap(), &plan).unwrap()
    }

    #[test]
    fn a_storage_step_lasts_between_two_clock_readings() {
        let stamps = |mode, forcing| {
            record_file(mode, forcing).write(&SteppedClock::default(), b"a record").unwrap()
        };
        // Nothing is forced: it has no reading.
        assert_eq!(stamps(StorageMode::Direct, Forcing::Fsync), [5, 10, 15, 15, 20]);
        assert_eq!(stamps(StorageMode::Forced, Forcing::Fsync), [5, 10, 15, 20, 25]);
    }

    #[test]
    fn the_file_is_restarted_before_it_exceeds_its_limit() {
        let mut file = record_file(StorageMode::Direct, Forcing::Fsync);
        let ticks = SteppedClock::default();
        for byte in [1u8, 2, 3] {
            file.write(&ticks, &[byte; 100]).unwrap();
        }
        let RecordCounts { records, bytes, failed, restarts, .. } = file.count;
        assert_eq!((records, bytes, failed, restarts), (3, 300, 0, 1));
        assert_eq!((file.end, file.file_size().unwrap()), (200, 200));
        assert_eq!(file.read_last(100).unwrap(), [3; 100]);
    }

    #[test]
    fn a_failed_open_is_counted_but_yields_no_sample() {
        let mut file = record_file(StorageMode::Direct, Forcing::Fsync);
        file.path = c"/no/such/file".into();
        assert_eq!(file.write(&SteppedClock::default(), b"a record"), None);
        assert_eq!(file.count.last, Some((FailedStep::Open, libc::ENOENT)));
        assert_eq!((file.count.records, file.count.failed, file.count.bytes), (1, 1, 0));
    }

    #[test]
    fn a_failed_write_does_not_advance_the_file_offset() {
        let mut file = record_file(StorageMode::Direct, Forcing::Fsync);
        file.flags = libc::O_RDONLY | libc::O_CLOEXEC;
        assert!(file.write(&SteppedClock::default(), b"a record").is_some());
        assert_eq!(file.count.last, Some((FailedStep::Write, libc::EBADF)));
        assert_eq!((file.offset, file.end, file.count.failed), (0, 0, 1));
    }
}
