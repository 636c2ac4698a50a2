//! Before `main`, or when the program asks for it.

use crate::fast::CONTROL;
use crate::mode::Off;
use crate::process::PROCESS;
use crate::{lifetime, sys, thread};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Once;

/// The dynamic loader and static programs' start code call what is in this section.
#[cfg(feature = "constructor")]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = first;

static STARTED: Once = Once::new();

extern "C" fn first() {
    STARTED.call_once(|| {
        let _errno = sys::KeptErrno::new();
        if PROCESS.start((&raw const CONTROL.control).cast_mut()) {
            thread::watch_ends();
            lifetime::watch();
        }
    });
}

/// Makes points ready in a program that was built without the feature `constructor`: does nothing
/// where they are. To be called before any thread passes a point or asks for
/// [`status`](crate::status). Answers as that.
pub fn start() -> Result<PathBuf, Off> {
    first();
    status()
}

/// The file that this process's points go to, or why there is none.
pub fn status() -> Result<PathBuf, Off> {
    #[cfg(feature = "constructor")]
    keep();
    match PROCESS.path() {
        Ok(path) => Ok(PathBuf::from(OsStr::from_bytes(path.to_bytes()))),
        Err(refusal) => Err(Off::new(refusal)),
    }
}

/// Has the linker take the object file that `START` is in: of a library it takes only those that
/// something refers to.
#[cfg(feature = "constructor")]
pub fn keep() {
    std::hint::black_box(&raw const START);
}
