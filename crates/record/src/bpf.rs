//! Runs programs in the kernel: objects from clang are adapted to this kernel, loaded and attached.
//!
//! This is the only module that uses the loader (`aya-obj`, see docs/decisions/0001-bpf-loader.md)
//! and the system call bpf(2). Everything created here is a file descriptor: however the process
//! ends, the kernel removes all of it.

mod buffers;
mod kprobe;
mod object;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod sys;
pub(crate) mod uprobe;

pub(crate) use buffers::{BufferSizes, Buffers, borrow_constants, slot_constants};
pub(crate) use object::{Attach, BpfObject, LoadError};
