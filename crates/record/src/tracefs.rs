//! tracefs: describes the kernel's tracepoints, and allows recording them without BPF.
//!
//! If it is not mounted, it is mounted for this process only, without a directory (fsmount(2)):
//! invisible to others, and without leftovers.

mod instance;

pub(crate) use instance::Instance;

use punctual_core::words::nearest_word;
use punctual_sys::check_result;
use punctual_sys::descriptor::own_descriptor;
use punctual_traces::bytes::ByteOrder;
use punctual_traces::format::RecordFormat;
use punctual_traces::page::PageShape;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A mounted tracefs.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Opens the mounted one, or mounts a private one.
    pub fn open() -> Result<Tracefs, String> {
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            match fs::metadata(Path::new(root).join("events/sched")) {
                Ok(found) if found.is_dir() => {
                    return Ok(Tracefs { root: root.into(), _mount: None });
                }
                Err(why) if why.kind() == io::ErrorKind::PermissionDenied && !is_root() => {
                    return Err(format!("{root} is readable by root alone: run as root"));
                }
                _ => {}
            }
        }
        let mount = mount_detached(c"tracefs").map_err(|why| {
            format!("tracefs is not mounted at /sys/kernel/tracing and cannot be mounted: {why}")
        })?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        if !root.join("events/sched").is_dir() {
            return Err("this kernel has no tracepoints (CONFIG_TRACEPOINTS, \
                        CONFIG_EVENT_TRACING)"
                .to_owned());
        }
        Ok(Tracefs { root, _mount: Some(mount) })
    }

    pub(crate) fn root_path(&self) -> &Path {
        &self.root
    }

    /// The kernel's description of a tracepoint.
    pub fn tracepoint_format(&self, system: &str, name: &str) -> Result<RecordFormat, String> {
        let path = self.root.join("events").join(system).join(name).join("format");
        match fs::read_to_string(&path) {
            Ok(text) => RecordFormat::parse(&text)
                .ok_or_else(|| format!("the format of {system}:{name} cannot be read")),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                Err(self.no_tracepoint(system, name))
            }
            Err(why) => Err(format!("{system}:{name}: {why}")),
        }
    }

    /// Opens a file in it for reading or writing.
    pub fn open_file(&self, path: &str, write: bool) -> Result<File, String> {
        let opened = OpenOptions::new().read(!write).write(write).open(self.root.join(path));
        opened.map_err(|why| format!("{path} in tracefs: {why}"))
    }

    /// Reads a small file in it.
    pub(crate) fn read(&self, path: &str) -> Result<String, String> {
        let mut text = String::new();
        let read = self.open_file(path, false)?.take(1 << 20).read_to_string(&mut text);
        read.map_err(|why| format!("{path} in tracefs: {why}"))?;
        Ok(text)
    }

    /// The number of a tracepoint for perf events and programs. The error suggests a similar one.
    pub(crate) fn tracepoint_id(&self, group: &str, event: &str) -> Result<u64, String> {
        let path = format!("events/{group}/{event}/id");
        match self.root.join(&path).exists() {
            true => self
                .read(&path)?
                .trim()
                .parse()
                .map_err(|_| format!("{path} in tracefs holds no number")),
            false => Err(self.no_tracepoint(group, event)),
        }
    }

    /// The message for an unknown tracepoint, with a similar one.
    pub fn no_tracepoint(&self, group: &str, event: &str) -> String {
        let near = match self.event_names(group) {
            events if events.is_empty() => {
                nearest_word(group, self.group_names().iter().map(String::as_str))
                    .map(|near| format!("{near}:…"))
            }
            events => nearest_word(event, events.iter().map(String::as_str))
                .map(|near| format!("{group}:{near}")),
        };
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!("this kernel has no tracepoint {group}:{event}{hint}")
    }

    pub fn group_names(&self) -> Vec<String> {
        directory_names(&self.root.join("events"))
    }

    /// The tracepoints of a group; none if the group does not exist.
    pub fn event_names(&self, group: &str) -> Vec<String> {
        directory_names(&self.root.join("events").join(group))
    }

    pub(crate) fn page_shape(&self) -> PageShape {
        let text = self.read("events/header_page").unwrap_or_default();
        PageShape::parse(&text, size_of::<usize>(), ByteOrder::NATIVE)
    }
}

fn directory_names(under: &Path) -> Vec<String> {
    let entries = fs::read_dir(under).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> =
        directories.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Whether file modes are ignored for this process.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// fsopen(2), fsconfig(2), fsmount(2): since Linux 5.2.
fn mount_detached(kind: &CStr) -> io::Result<OwnedFd> {
    const CLOEXEC: u32 = 1;
    const CREATE: u32 = 6;
    // SAFETY: the name is a string that ends with NUL; nothing else is pointed to. fsopen and
    // fsmount make descriptors.
    unsafe {
        let context = own_descriptor(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC))?;
        let (fd, null) = (context.as_raw_fd(), std::ptr::null::<libc::c_void>());
        check_result(libc::syscall(libc::SYS_fsconfig, fd, CREATE, null, null, 0))?;
        own_descriptor(libc::syscall(libc::SYS_fsmount, fd, CLOEXEC, 0))
    }
}
