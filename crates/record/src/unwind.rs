//! Callers of a function by copies of the stack: from the unwind tables of the program and its
//! libraries (`.eh_frame`, `.debug_frame`), which are there without frame pointers, too.

#[cfg(all(feature = "lines", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod native;

#[cfg(all(feature = "lines", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use native::Unwinder;

/// The registers of a thread in user mode, and the bytes of its stack from the stack pointer on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StackCopy {
    pub process: u32,
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    /// The link register; 0 where the architecture has none.
    pub lr: u64,
    /// In words of the machine.
    pub stack: Vec<u64>,
}

/// The functions of a thread by their addresses, innermost first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UserStack {
    /// The instruction, then the return addresses.
    pub addresses: Vec<u64>,
    /// Whether the callers beyond the last one are unknown.
    pub is_cut: bool,
}

/// Where nothing can be unwound.
#[cfg(not(all(feature = "lines", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[derive(Default)]
pub(crate) struct Unwinder {}

#[cfg(not(all(feature = "lines", any(target_arch = "x86_64", target_arch = "aarch64"))))]
impl Unwinder {
    pub(crate) const IS_AVAILABLE: bool = false;

    pub(crate) fn unwind_stack(&mut self, copy: &StackCopy) -> UserStack {
        UserStack { addresses: vec![copy.ip], is_cut: true }
    }

    pub(crate) fn unwind_callers(&mut self, copy: &StackCopy) -> (UserStack, Vec<(usize, u64)>) {
        (self.unwind_stack(copy), Vec::new())
    }

    pub(crate) fn is_in_program(&self, _process: u32, _address: u64) -> bool {
        false
    }

    pub(crate) fn forget_process(&mut self, _process: u32) {}
}

#[cfg(all(test, feature = "lines", target_arch = "x86_64"))]
mod tests;
