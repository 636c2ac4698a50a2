//! The system calls that the slow path makes, without allocation.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

unsafe extern "C" {
    // In glibc since 2.17 and in musl since 1.1.24; the libc crate lacks them for musl.
    fn secure_getenv(name: *const c_char) -> *const c_char;
    pub fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

/// The saved `errno`, restored when dropped: a point must not change a program's.
pub struct KeptErrno(c_int);

impl KeptErrno {
    pub fn new() -> KeptErrno {
        KeptErrno(errno())
    }
}

impl Drop for KeptErrno {
    fn drop(&mut self) {
        // SAFETY: the address of this thread's errno.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

pub fn errno() -> c_int {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Blocks every signal, and returns the previous mask.
pub fn block_signals() -> libc::sigset_t {
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut all_signals = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both are valid signal sets to write to.
    unsafe {
        libc::sigfillset(all_signals.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all_signals.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

/// Restores the previous signal mask.
pub fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: a valid signal set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// A file descriptor that closes itself.
pub struct Fd(pub c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: we own this descriptor.
        unsafe { libc::close(self.0) };
    }
}

pub fn open_path(path: &CStr, flags: c_int) -> Option<Fd> {
    open_at(libc::AT_FDCWD, path, flags)
}

pub fn open_at(directory: c_int, path: &CStr, flags: c_int) -> Option<Fd> {
    // SAFETY: a path that ends with 0. With O_CREAT the third argument is the mode.
    let fd = unsafe {
        libc::openat(
            directory,
            path.as_ptr(),
            flags | libc::O_CLOEXEC | libc::O_NOCTTY,
            0o600 as libc::c_uint,
        )
    };
    // Lazily: a dropped one of -1 would be closed, which sets errno to EBADF.
    (fd >= 0).then(|| Fd(fd))
}

/// Reads from the beginning; returns the filled part of `buffer`.
pub fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = open_path(path, libc::O_RDONLY)?;
    // SAFETY: `buffer` has room for the requested number of bytes.
    let count = unsafe { libc::read(file.0, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).ok().map(|count| &buffer[..count])
}

pub fn stat_of(fd: &Fd) -> Option<libc::stat> {
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a valid stat to write to; zeroes are one in any case.
    (unsafe { libc::fstat(fd.0, stat.as_mut_ptr()) } == 0).then(|| unsafe { stat.assume_init() })
}

/// Ensures that writing to this part of the file cannot fail for lack of space, and that the file
/// is long enough.
pub fn allocate_space(fd: &Fd, at: u64, length: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid rlimit to write to. Beyond it the kernel would send SIGXFSZ.
    let has_limit = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if has_limit && (limit.rlim_cur as u64) < at + length {
        return false;
    }
    // SAFETY: no pointers.
    unsafe { libc::fallocate(fd.0, 0, at as libc::off_t, length as libc::off_t) == 0 }
}

/// Maps a part of a file for reading and writing, and touches each page; at `place` if that is not
/// null, replacing the mapping there.
pub fn map_file(fd: &Fd, at: u64, length: usize, place: *mut c_void) -> Option<*mut c_void> {
    let flags = libc::MAP_SHARED | if place.is_null() { 0 } else { libc::MAP_FIXED };
    // SAFETY: either the kernel chooses the place, or the caller owns the memory there.
    let start = unsafe {
        libc::mmap(
            place,
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            fd.0,
            at as libc::off_t,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    for offset in (0..length).step_by(4_096) {
        // SAFETY: within the mapping.
        let byte = unsafe { &*start.cast::<AtomicU8>().wrapping_add(offset) };
        // Makes the page resident and writable, without losing writes of other threads.
        let value = byte.load(Ordering::Relaxed);
        let _ = byte.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
    }
    // Prevents swapping, if the limits allow it; otherwise points cost a page fault after memory
    // ran short. SAFETY: the mapping just made.
    unsafe { libc::mlock(start, length) };
    Some(start)
}

/// Replaces a mapping by empty private memory.
pub fn unmap_to_zero(place: *mut c_void, length: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the caller owns the memory there.
    unsafe { libc::mmap(place, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
}

pub fn unmap_memory(place: *mut c_void, length: usize) {
    // SAFETY: the caller owns the memory there and no thread uses it any more.
    unsafe { libc::munmap(place, length) };
}

/// A variable of the environment; `None` in a program that runs with the permissions of its file
/// (set-user-ID).
pub fn environment_variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a name that ends with 0; the result is 0 or a string that is valid while the
    // environment is unchanged, which holds before `main` and right after a fork.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

pub fn thread_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// This thread's name.
pub fn thread_name() -> [u64; 2] {
    let mut name = [0_u64; 2];
    // SAFETY: PR_GET_NAME writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// A path or name built without allocation. One that is too long is marked, and gives no string.
pub struct Text {
    bytes: [u8; Text::SIZE],
    length: usize,
}

impl Text {
    const SIZE: usize = 512;

    pub const fn new() -> Text {
        Text { bytes: [0; Text::SIZE], length: 0 }
    }
    pub fn push(&mut self, more: &[u8]) -> &mut Text {
        let end = self.length.saturating_add(more.len());
        // One byte stays 0, the end of the string.
        match self.bytes.get_mut(self.length..end) {
            Some(place) if end < Text::SIZE => {
                place.copy_from_slice(more);
                self.length = end;
            }
            _ => self.length = Text::SIZE,
        }
        self
    }
    pub fn push_number(&mut self, mut number: u64) -> &mut Text {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.push(&digits[first..]);
            }
        }
    }
    pub fn as_str(&self) -> Option<&CStr> {
        CStr::from_bytes_with_nul(self.bytes.get(..=self.length)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_concatenated_up_to_the_buffer_size() {
        let mut text = Text::new();
        text.push(b"/run/").push_number(0).push(b".").push_number(u64::MAX);
        assert_eq!(text.as_str(), Some(c"/run/0.18446744073709551615"));
        assert_eq!(Text::new().push(&[b'x'; 600]).push(b"y").as_str(), None);
        assert_eq!(Text::new().push(&[b'x'; 511]).as_str().map(|s| s.count_bytes()), Some(511));
        assert_eq!(Text::new().push(&[b'x'; 512]).as_str(), None);
        assert_eq!(Text::new().push(b"a\0b").as_str(), None);
    }
}
