//! Intentional slowdowns of tasks: limits of cgroups, real-time throttling. Each is a counter that
//! only grows, or a line of the kernel's log.

use punctual_core::Fact;
use punctual_host::files::{Files, Root};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// `O_NONBLOCK` (asm-generic/fcntl.h): reads all new lines, and does not wait for more.
const NON_BLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
/// The maximum number of lines of the kernel's log to read.
const MAX_LINES: usize = 10_000;

/// The counters when the phase began.
#[derive(Default)]
pub struct ThrottlingCounters {
    counters: BTreeMap<String, u64>,
    /// The kernel's log, positioned after the lines from before the phase.
    log: Option<File>,
}

impl ThrottlingCounters {
    /// Called before the threads with these ids measure.
    pub fn start(files: &Root, tids: impl Iterator<Item = i32>) -> ThrottlingCounters {
        let mut paths: Vec<String> = tids.flat_map(|tid| limiting_cgroups(files, tid)).collect();
        paths.sort();
        paths.dedup();
        let counters = paths
            .into_iter()
            .filter_map(|path| throttle_count(files, &path).map(|n| (path, n)))
            .collect();
        let log = File::options().read(true).custom_flags(NON_BLOCKING).open("/dev/kmsg").ok();
        let log = log.and_then(|mut log| log.seek(SeekFrom::End(0)).ok().map(|_| log));
        ThrottlingCounters { counters, log }
    }

    /// The slowdowns since then, in sentences.
    pub(crate) fn into_slowdowns(self, files: &Root) -> Fact<Vec<String>> {
        let mut found = Vec::new();
        for (path, before) in &self.counters {
            let times = throttle_count(files, path).unwrap_or(*before).saturating_sub(*before);
            if times > 0 {
                found.push(format!("throttled {times} times ({path})"));
            }
        }
        if self.log.is_some_and(says_throttled) {
            found.push(
                "real-time tasks were throttled (the kernel's log: RT throttling activated)"
                    .to_owned(),
            );
        }
        Fact::Known(found)
    }
}

/// The statistics of the cgroups that limit a thread, up to the root
/// (Documentation/admin-guide/cgroup-v2.rst; v1: cpu.cfs_quota_us).
fn limiting_cgroups(files: &Root, tid: i32) -> Vec<String> {
    let text = files.read(&format!("/proc/{tid}/cgroup")).unwrap_or_default();
    let mut paths = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let mount = match names {
            "" => "/sys/fs/cgroup".to_owned(),
            names if names.split(',').any(|name| name == "cpu") => {
                format!("/sys/fs/cgroup/{names}")
            }
            _ => continue,
        };
        let mut path = path;
        while let Some((above, name)) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty()) {
            paths.push(format!("{mount}{above}/{name}/cpu.stat"));
            path = above;
        }
    }
    paths
}

/// `nr_throttled` of a cgroup.
fn throttle_count(files: &Root, path: &str) -> Option<u64> {
    let text = files.read_trimmed(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse().ok()
}

fn says_throttled(mut log: File) -> bool {
    let mut record = [0u8; 8_192];
    for _ in 0..MAX_LINES {
        match log.read(&mut record) {
            Ok(n)
                if n > 0
                    && String::from_utf8_lossy(&record[..n])
                        .contains("RT throttling activated") =>
            {
                return true;
            }
            Ok(0) => return false,
            Ok(_) => {}
            // EPIPE: records were overwritten before they were read; the next read skips them.
            Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(_) => return false,
        }
    }
    false
}
