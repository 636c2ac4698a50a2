//! What differs between the architectures that a guest can have.

use crate::LabError;

/// The architecture of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Arch {
    /// 64-bit PCs.
    Amd64,
    /// 64-bit Arm, on QEMU's `virt` board.
    Arm64,
}

impl Arch {
    /// This machine's own.
    pub fn native() -> Result<Arch, LabError> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Arch::Amd64),
            "aarch64" => Ok(Arch::Arm64),
            other => Err(LabError::missing(
                format!("a QEMU built for {other}"),
                "an amd64 or arm64 machine",
            )),
        }
    }
    /// Where Debian puts its libraries, below /usr/lib.
    pub(crate) fn multiarch(self) -> &'static str {
        match self {
            Arch::Amd64 => "x86_64-linux-gnu",
            Arch::Arm64 => "aarch64-linux-gnu",
        }
    }
    /// The dynamic linker in an unpacked tree, where /lib is no link to /usr/lib.
    pub(crate) fn loader(self) -> &'static str {
        match self {
            Arch::Amd64 => "usr/lib64/ld-linux-x86-64.so.2",
            Arch::Arm64 => "usr/lib/ld-linux-aarch64.so.1",
        }
    }
    /// Debian's name of it.
    pub fn debian_name(self) -> &'static str {
        match self {
            Arch::Amd64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }
    /// QEMU's program for it and the Debian package that brings that.
    pub(crate) fn qemu(self) -> (&'static str, &'static str) {
        match self {
            Arch::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Arch::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }
    /// The machine for `-machine`. Arm's `virt` would else hand the guest a random seed in its
    /// device tree.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Arch::Amd64 => "pc",
            Arch::Arm64 => "virt,dtb-randomness=off",
        }
    }
    /// The CPU for `-cpu`: all that TCG can do, except what makes it slow (five-level page tables;
    /// `rep stosb`, which the kernel clears pages with where the CPU calls it fast, and which
    /// is translated byte by byte; QEMU's faithful pointer authentication).
    pub(crate) fn cpu(self) -> &'static str {
        match self {
            Arch::Amd64 => "max,-la57,-erms,-fsrm,-fzrm,-fsrs,-fsrc",
            Arch::Arm64 => "max,pauth-impdef=on",
        }
    }
    /// The same for virtual time: without instructions for random numbers, which no two runs have
    /// alike, and without the features by which software moves and sets memory byte by byte
    /// (`rep movsb`, `rep stosb`). Hardware has those features where it moves many bytes at a
    /// time; QEMU counts each byte as an instruction (docs/guests.md).
    pub(crate) fn repeatable_cpu(self) -> &'static str {
        match self {
            Arch::Amd64 => "max,-la57,-rdrand,-rdseed,-erms,-fsrm,-fzrm,-fsrs,-fsrc",
            Arch::Arm64 => "cortex-a72",
        }
    }
    /// The kernel's name for the first serial line of that machine.
    pub(crate) fn console(self) -> &'static str {
        match self {
            Arch::Amd64 => "ttyS0",
            Arch::Arm64 => "ttyAMA0",
        }
    }
    /// The longest command line that the kernel takes, with its final NUL (COMMAND_LINE_SIZE in
    /// arch/x86/include/asm/setup.h and arch/arm64/include/uapi/asm/setup.h).
    pub(crate) fn command_line_size(self) -> usize {
        2048
    }
    /// `e_machine` of its ELF files (elf.h).
    pub(crate) fn elf_machine(self) -> u16 {
        match self {
            Arch::Amd64 => elf::abi::EM_X86_64,
            Arch::Arm64 => elf::abi::EM_AARCH64,
        }
    }
}
