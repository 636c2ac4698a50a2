//! System calls by their number, and what calls answer.

use std::io;

/// The result of a call of libc; the errno where it is negative.
#[inline(always)]
pub fn check<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A system call with its arguments.
#[derive(Clone, Copy)]
pub struct Raw {
    number: libc::c_long,
    arguments: [libc::c_long; 6],
}

impl Raw {
    /// The call of this number with these arguments, at most six. Whoever makes one sees to it that
    /// what they point at lives long enough and may be used so by the kernel.
    pub fn new(number: libc::c_long, arguments: &[libc::c_long]) -> Raw {
        let mut six = [0; 6];
        six.iter_mut().zip(arguments).for_each(|(place, argument)| *place = *argument);
        Raw { number, arguments: six }
    }

    /// Calls it; −1 with errno where it fails.
    #[inline(always)]
    pub fn call(&self) -> libc::c_long {
        let [a, b, c, d, e, f] = self.arguments;
        // SAFETY: the arguments were given with that in mind (see `new`), or are numbers alone. A
        // number that the user gave was either on the list of calls that take numbers alone
        // and change nothing, or was forced, and the user answers for what it does.
        unsafe { libc::syscall(self.number, a, b, c, d, e, f) }
    }
}
