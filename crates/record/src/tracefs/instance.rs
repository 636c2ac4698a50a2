//! A separate trace instance: the system's one is not touched.

use super::Tracefs;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// `instances/punctual-PID-N`. Removed when dropped; the leftover of a killed punctual is removed
/// by the next one.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    pipes: Vec<File>,
    tracefs: Tracefs,
}

const PREFIX: &str = "punctual-";
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Instance {
    pub(crate) fn create_instance(tracefs: Tracefs) -> Result<Instance, String> {
        let instances = tracefs.root_path().join("instances");
        remove_stale(&instances);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|why| format!("a trace instance cannot be made: {why}"))?;
        Ok(Instance { path, pipes: Vec::new(), tracefs })
    }

    pub(crate) fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    pub(crate) fn write_setting(&self, file: &str, value: &str) -> Result<(), String> {
        let write = || {
            let mut open = OpenOptions::new().write(true).open(self.path.join(file))?;
            io::Write::write_all(&mut open, value.as_bytes())
        };
        write().map_err(|why| format!("{file} of the trace instance refuses `{value}`: {why}"))
    }

    /// Opens the CPU's buffer for reading; it gets the next number.
    pub(crate) fn open_pipe(&mut self, cpu: usize) -> Result<(), String> {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        self.pipes.push(pipe.map_err(|why| format!("the trace buffer of CPU {cpu}: {why}"))?);
        Ok(())
    }

    pub(crate) fn pipe_count(&self) -> usize {
        self.pipes.len()
    }

    /// Reads the next page into `page`; `false` if there is none.
    pub(crate) fn read(&mut self, pipe: usize, page: &mut Vec<u8>) -> bool {
        page.resize(LARGEST_PAGE, 0);
        let read = self.pipes.get_mut(pipe).map_or(0, |pipe| pipe.read(page).unwrap_or(0));
        page.truncate(read);
        read > 0
    }

    /// A number in `per_cpu/cpuN/stats`.
    pub(crate) fn read_statistic(&self, cpu: usize, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(format!("per_cpu/cpu{cpu}/stats"))).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
    }
}

/// The maximum size of a sub-buffer: a page, or more since 6.8 (kernel/trace/ring_buffer.c); a read
/// returns one at a time.
const LARGEST_PAGE: usize = 64 << 10;

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        // A failure cannot be reported here; the next run tries again.
        let _ = self.write_setting("tracing_on", "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes the instances of punctual processes that no longer exist.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod live {
    use super::*;

    #[test]
    fn tracefs_instances_are_removed_with_their_process() {
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(why) => return println!("SKIPPED: {why}"),
        };
        let instances = tracefs.root_path().join("instances");
        // A process that has ended left this one.
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let stale = instances.join(format!("{PREFIX}{}-0", ended.id()));
        if let Err(why) = fs::create_dir(&stale) {
            return println!("SKIPPED: a trace instance cannot be made: {why}");
        }
        let path = {
            let instance = Instance::create_instance(Tracefs::open().unwrap()).unwrap();
            assert!(instance.write_setting("tracing_on", "0").is_ok());
            assert!(
                instance
                    .write_setting("trace_clock", "no such clock")
                    .unwrap_err()
                    .contains("trace_clock")
            );
            instances.join(instance.path.file_name().unwrap())
        };
        assert!(!stale.exists() && !path.exists());
    }
}
