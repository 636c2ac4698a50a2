//! A control group with a quota of CPU time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// A control group whose tasks may run for 20 ms of each 100 ms.
pub struct Quota(PathBuf);

impl Quota {
    pub fn new(test: &str) -> Option<Quota> {
        let files = [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"),
            ("/sys/fs/cgroup", "cpu.max", "20000 100000"),
        ];
        for (root, file, value) in files {
            let group = Path::new(root).join(format!("punctual-test-{}", std::process::id()));
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let quota = Quota(group);
            if quota.0.join(file).exists() && fs::write(quota.0.join(file), value).is_ok() {
                // With RT_GROUP_SCHED a new group has no budget for real-time tasks.
                let _ = fs::write(quota.0.join("cpu.rt_runtime_us"), "50000");
                // The quota is used up even beside other tasks.
                let _ = fs::write(quota.0.join("cpu.shares"), "100000");
                let _ = fs::write(quota.0.join("cpu.weight"), "10000");
                return Some(quota);
            }
        }
        println!(
            "SKIPPED: {test} lacks a control group that may have a quota of CPU time \
             (cpu.cfs_quota_us, cpu.max)"
        );
        None
    }

    pub fn take(&self, process: &Child) {
        fs::write(self.0.join("cgroup.procs"), process.id().to_string())
            .expect("a process goes into the group");
    }

    /// The number of times it was throttled.
    pub fn times(&self) -> u64 {
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
