//! Start of the library before `main`, or on the program's request.

use crate::fast::CONTROL;
use crate::mode::Off;
use crate::process::PROCESS;
use crate::{lifetime, sys, thread};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Once;

/// The dynamic loader and static programs' start code call the functions in this section.
#[cfg(feature = "constructor")]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = first;

static STARTED: Once = Once::new();

extern "C" fn first() {
    STARTED.call_once(|| {
        let _errno = sys::KeptErrno::new();
        if PROCESS.create_file((&raw const CONTROL.control).cast_mut()) {
            thread::watch_ends();
            lifetime::watch_forks();
        }
    });
}

/// Starts points in a program that was built without the feature `constructor`: does nothing if
/// they are started. Must be called before any thread passes a point or calls
/// [`status`](crate::status). Returns the same.
pub fn start() -> Result<PathBuf, Off> {
    first();
    status()
}

/// The file of this process's points, or why there is none.
pub fn status() -> Result<PathBuf, Off> {
    #[cfg(feature = "constructor")]
    keep_constructor();
    match PROCESS.file_path() {
        Ok(path) => Ok(PathBuf::from(OsStr::from_bytes(path.to_bytes()))),
        Err(refusal) => Err(Off::new(refusal)),
    }
}

/// Makes the linker include the object file with `START`: from a library it only takes object files
/// that are referenced.
#[cfg(feature = "constructor")]
pub fn keep_constructor() {
    std::hint::black_box(&raw const START);
}
