//! Descriptors: creates them, and waits until one is readable.

use crate::check_result;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The descriptor created by a call; its errno if it returned a negative number.
///
/// # Safety
/// The call must give its caller a new descriptor.
pub unsafe fn own_descriptor(result: impl Into<i64>) -> io::Result<OwnedFd> {
    let fd = check_result(result.into())?;
    // SAFETY: the caller guarantees that it is new: it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// A pipe that never blocks: the end to read from and the one to write to.
pub fn create_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    check_result(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    // SAFETY: both descriptors are new and have no other owner.
    unsafe { Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))) }
}

/// An eventfd(2) with the value 0, with these flags in addition to EFD_CLOEXEC.
pub fn create_eventfd(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers alone, and makes a descriptor.
    unsafe { own_descriptor(libc::eventfd(0, libc::EFD_CLOEXEC | flags)) }
}

/// An empty file that exists only in memory (memfd_create(2)), with MFD_CLOEXEC and these flags.
pub fn create_memfd(name: &CStr, flags: libc::c_uint) -> io::Result<File> {
    // SAFETY: the name ends with a NUL; the call makes a descriptor.
    unsafe { own_descriptor(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags)) }
        .map(File::from)
}

/// Waits until one of the descriptors is readable, or closed at the other end, and returns which
/// are: none if a signal came, or after `millis` ms (−1: never).
#[inline(always)]
pub fn poll_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    millis: i32,
) -> io::Result<[bool; N]> {
    let mut polls =
        fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: the array is as long as stated.
    match check_result(unsafe { libc::poll(polls.as_mut_ptr(), N as libc::nfds_t, millis) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        Err(_) => Ok([false; N]),
        Ok(_) => Ok(polls.map(|poll| poll.revents != 0)),
    }
}
