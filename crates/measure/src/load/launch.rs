//! A program that is watched from its first instruction on: its process exists, stopped, before it
//! executes any of its own code.

use punctual_sys::children;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Command};

/// The first argument that makes this program the waiting process. The file of the program and all
/// of its arguments follow, its own name first.
pub const ARGUMENT: &str = "__run-when-continued";

/// Stops, and becomes the program on SIGCONT. Returns why it cannot.
pub fn exec_on_sigcont(arguments: impl Iterator<Item = OsString>) -> io::Error {
    let arguments: Vec<OsString> = arguments.collect();
    let [program, name, rest @ ..] = &arguments[..] else {
        return io::ErrorKind::InvalidInput.into();
    };
    if let Err(why) = children::send_signal(process::id() as i32, libc::SIGSTOP) {
        return why;
    }
    Command::new(program).arg0(name).args(rest).exec()
}
