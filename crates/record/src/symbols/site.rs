//! The kind of a function's first instruction, which determines the cost of a probe on it.

use std::fmt;

/// The kernel's way of executing the instruction under a probe (arch/x86/kernel/uprobes.c,
/// arch/arm64/kernel/probes/).
///
/// An instruction that it cannot emulate is copied and single-stepped out of line, which takes a
/// second exception: several times the cost of the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Site {
    /// A five-byte nop: since Linux 6.18 it becomes a call, without an exception.
    Nop5,
    /// `push` of a register: emulated.
    Push,
    /// A nop, jump or call: emulated.
    Branch,
    /// Anything else: single-stepped out of line.
    SingleStep,
    /// A kernel function.
    Kernel,
    /// An architecture that is not supported.
    Unknown,
}

const EM_X86_64: u16 = 62;

impl Site {
    /// Decodes it from the instruction's bytes.
    pub fn of(machine: u16, code: &[u8]) -> Site {
        if machine != EM_X86_64 {
            return Site::Unknown;
        }
        match code {
            // nopl 0x0(%rax,%rax,1)
            [0x0f, 0x1f, 0x44, 0x00, 0x00, ..] => Site::Nop5,
            [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] => Site::Push,
            [0x90 | 0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => Site::Branch,
            _ => Site::SingleStep,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Site::Nop5 => "nop5",
            Site::Push => "push",
            Site::Branch => "branch",
            Site::SingleStep => "single-stepped",
            Site::Kernel => "kprobe",
            Site::Unknown => "",
        })
    }
}
