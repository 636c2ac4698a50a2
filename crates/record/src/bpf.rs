//! What it takes to run programs in the kernel: objects that clang made, fitted to this kernel,
//! loaded and attached.
//!
//! This is the only place that knows the loader (`aya-obj`, see docs/decisions/0001-bpf-loader.md)
//! and the system call bpf(2). Everything made here is a file descriptor: when the process ends, in
//! whatever way, the kernel takes it all away.

mod buffers;
mod kprobe;
mod object;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod sys;
pub(crate) mod uprobe;

pub(crate) use buffers::{Buffers, Shape, borrowed, slots};
pub(crate) use object::{Attach, LoadError, Object};
