//! tracefs, wherever it is: mounted, or, where it is not, mounted for this process alone and in no place (fsopen(2), fsmount(2)), so that
//! nothing on the system changes.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The root of a tracefs.
#[derive(Debug)]
pub struct Tracefs {
    root: OwnedFd,
    /// Where it is, for messages.
    pub place: &'static str,
}

impl Tracefs {
    /// Opens it. The error names what is missing.
    pub fn open() -> Result<Tracefs, String> {
        for place in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if Path::new(place).join("trace_marker").exists() {
                let root = File::open(place).map_err(|why| format!("{place}: {why}"))?;
                return Ok(Tracefs { root: root.into(), place });
            }
        }
        let root = detached()
            .map_err(|why| format!("tracefs is not mounted, and mounting it for this process failed: {why}"))?;
        Ok(Tracefs { root, place: "tracefs" })
    }

    /// Opens a file in it, to be read or written.
    pub fn file(&self, path: &str, write: bool) -> Result<File, String> {
        let name = CString::new(path).map_err(|why| why.to_string())?;
        let flags = libc::O_CLOEXEC | if write { libc::O_WRONLY } else { libc::O_RDONLY };
        // SAFETY: the path ends with a NUL.
        let fd = check(unsafe { libc::openat(self.root.as_raw_fd(), name.as_ptr(), flags) }.into());
        let fd = fd.map_err(|why| format!("{}/{path}: {why}", self.place))?;
        // SAFETY: the descriptor is new and belongs to nobody else.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    /// Reads a small file in it.
    pub fn read(&self, path: &str) -> Result<String, String> {
        let mut text = String::new();
        let file = self.file(path, false)?;
        file.take(1 << 20).read_to_string(&mut text).map_err(|why| format!("{}/{path}: {why}", self.place))?;
        Ok(text)
    }
}

fn check(result: libc::c_long) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// A mount that stands in no directory and goes away when its descriptor is closed.
fn detached() -> io::Result<OwnedFd> {
    const CREATE: libc::c_int = 6; // FSCONFIG_CMD_CREATE (include/uapi/linux/mount.h)
    const CLOEXEC: libc::c_int = 1; // FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: the name ends with a NUL; the descriptor is new and belongs to nobody else.
    let context =
        unsafe { OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOEXEC))?) };
    // SAFETY: this command takes neither key nor value.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) })?;
    // SAFETY: fsmount takes numbers alone; the descriptor is new and belongs to nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0))?)) }
}
