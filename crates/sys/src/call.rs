//! System calls by number, and the results of calls.

use std::io;

/// The result of a libc call; the errno if it is negative.
#[inline(always)]
pub fn check_result<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A system call with its arguments.
#[derive(Clone, Copy)]
pub struct RawSyscall {
    number: libc::c_long,
    arguments: [libc::c_long; 6],
}

impl RawSyscall {
    /// The call of this number with these arguments, at most six. The creator must ensure that
    /// their targets live long enough and that the kernel may use them.
    pub fn new(number: libc::c_long, arguments: &[libc::c_long]) -> RawSyscall {
        let mut six = [0; 6];
        six.iter_mut().zip(arguments).for_each(|(place, argument)| *place = *argument);
        RawSyscall { number, arguments: six }
    }

    /// Makes the call; −1 with errno on failure.
    #[inline(always)]
    pub fn make_call(&self) -> libc::c_long {
        let [a, b, c, d, e, f] = self.arguments;
        // SAFETY: the creator is responsible for the arguments (see `new`), or they are numbers. A
        // number given by the user was either on the list of calls that only take numbers and
        // change nothing, or was forced, and the user is responsible for its effect.
        unsafe { libc::syscall(self.number, a, b, c, d, e, f) }
    }
}
