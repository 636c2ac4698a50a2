//! tracefs: where the kernel describes its tracepoints, and where they can be recorded without BPF.
//!
//! Where nobody has mounted it, it is mounted for this process alone, in no directory (fsmount(2)): nobody else sees it, and nothing is left behind.

mod instance;
mod page;

pub(crate) use instance::Instance;
pub(crate) use page::{Item, PageShape, read_page};

use crate::format::Format;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A mounted tracefs.
#[derive(Debug)]
pub(crate) struct Tracefs {
    root: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// The one that is mounted, or one of our own.
    pub(crate) fn open() -> Result<Tracefs, String> {
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if Path::new(root).join("events/sched").is_dir() {
                return Ok(Tracefs { root: root.into(), _mount: None });
            }
        }
        let mount = mount_detached(c"tracefs")
            .map_err(|why| format!("tracefs is not mounted at /sys/kernel/tracing and cannot be mounted: {why}"))?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        if !root.join("events/sched").is_dir() {
            return Err("this kernel has no tracepoints (CONFIG_TRACEPOINTS, CONFIG_EVENT_TRACING)".to_owned());
        }
        Ok(Tracefs { root, _mount: Some(mount) })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// How the kernel describes a tracepoint.
    pub(crate) fn format(&self, system: &str, name: &str) -> Result<Format, String> {
        let path = self.root.join("events").join(system).join(name).join("format");
        match fs::read_to_string(&path) {
            Ok(text) => Format::parse(&text).ok_or_else(|| format!("the format of {system}:{name} cannot be read")),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                Err(format!("this kernel has no tracepoint {system}:{name}"))
            }
            Err(why) => Err(format!("{system}:{name}: {why}")),
        }
    }

    pub(crate) fn page_shape(&self) -> PageShape {
        fs::read_to_string(self.root.join("events/header_page"))
            .map_or_else(|_| PageShape::default(), |text| PageShape::parse(&text))
    }
}

/// fsopen(2), fsconfig(2), fsmount(2): since Linux 5.2.
fn mount_detached(kind: &CStr) -> io::Result<OwnedFd> {
    const CLOEXEC: u32 = 1;
    const CREATE: u32 = 6;
    let fd = |result: libc::c_long| {
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) })
    };
    // SAFETY: the name is a string that ends with NUL; nothing else is pointed to.
    unsafe {
        let context = fd(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC))?;
        let null = std::ptr::null::<libc::c_void>();
        if libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, null, null, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        fd(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0))
    }
}
