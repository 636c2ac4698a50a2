//! Kernel stacks kept by the programs.

use crate::bpf::sys;
use crate::wire::layout as wire;
use punctual_core::event::StackId;
use std::os::fd::OwnedFd;

/// The map of a recorder.
pub(super) struct Stacks(OwnedFd);

impl Stacks {
    /// `None` if no descriptors are left.
    pub(super) fn of(map: &OwnedFd) -> Option<Stacks> {
        map.try_clone().ok().map(Stacks)
    }

    /// The addresses of a stack, innermost first; empty for an unknown number.
    pub(super) fn addresses(&self, stack: StackId) -> Vec<u64> {
        let mut bytes = [0; wire::STACK_DEPTH as usize * 8];
        if sys::look_up(&self.0, &stack.0.to_ne_bytes(), &mut bytes).is_err() {
            return Vec::new();
        }
        let addresses =
            bytes.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_ne_bytes);
        addresses.take_while(|address| *address != 0).collect()
    }
}
