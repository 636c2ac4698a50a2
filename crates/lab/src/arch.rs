//! Differences between the architectures of guests.

use crate::LabError;

/// The architecture of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Arch {
    /// 64-bit PCs.
    Amd64,
    /// 64-bit Arm, on QEMU's `virt` board.
    Arm64,
    /// 32-bit Arm with hardware floating point, on the same board.
    Armhf,
    /// 64-bit RISC-V, on QEMU's `virt` board of that architecture.
    Riscv64,
}

impl Arch {
    pub(crate) fn from_host() -> Result<Arch, LabError> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Arch::Amd64),
            "aarch64" => Ok(Arch::Arm64),
            other => Err(LabError::missing(
                format!("a QEMU built for {other}"),
                "an amd64 or arm64 machine",
            )),
        }
    }
    /// The directory of Debian's libraries below /usr/lib.
    pub(crate) fn multiarch_dir(self) -> &'static str {
        match self {
            Arch::Amd64 => "x86_64-linux-gnu",
            Arch::Arm64 => "aarch64-linux-gnu",
            Arch::Armhf => "arm-linux-gnueabihf",
            Arch::Riscv64 => "riscv64-linux-gnu",
        }
    }
    /// The dynamic linker in an unpacked tree, in which /lib is not a link to /usr/lib.
    pub(crate) fn loader_path(self) -> &'static str {
        match self {
            Arch::Amd64 => "usr/lib64/ld-linux-x86-64.so.2",
            Arch::Arm64 => "usr/lib/ld-linux-aarch64.so.1",
            Arch::Armhf => "usr/lib/ld-linux-armhf.so.3",
            Arch::Riscv64 => "usr/lib/ld-linux-riscv64-lp64d.so.1",
        }
    }
    pub fn debian_name(self) -> &'static str {
        match self {
            Arch::Amd64 => "amd64",
            Arch::Arm64 => "arm64",
            Arch::Armhf => "armhf",
            Arch::Riscv64 => "riscv64",
        }
    }
    /// Debian's name of its kernels: `linux-image-rt-amd64`. The one for Arm with physical
    /// addresses of 40 bits needs no other board.
    pub(crate) fn kernel_flavour(self) -> &'static str {
        match self {
            Arch::Armhf => "armmp",
            other => other.debian_name(),
        }
    }
    /// QEMU's program for it and its Debian package.
    pub(crate) fn qemu_program(self) -> (&'static str, &'static str) {
        match self {
            Arch::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Arch::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
            Arch::Armhf => ("qemu-system-arm", "qemu-system-arm"),
            Arch::Riscv64 => ("qemu-system-riscv64", "qemu-system-riscv"),
        }
    }
    /// The machine for `-machine`. Arm's `virt` by default has a random seed in its device tree.
    pub(crate) fn qemu_machine(self) -> &'static str {
        match self {
            Arch::Amd64 => "pc",
            // A kernel of 32 bits without LPAE cannot use addresses above 4 GiB.
            Arch::Armhf => "virt,dtb-randomness=off,highmem=off",
            Arch::Arm64 => "virt,dtb-randomness=off",
            Arch::Riscv64 => "virt",
        }
    }
    /// The CPU for `-cpu`: all features of TCG except slow ones (five-level page tables; `rep
    /// stosb`, with which the kernel clears pages if the CPU reports it as fast, and which is
    /// translated byte by byte; QEMU's faithful pointer authentication).
    pub(crate) fn qemu_cpu(self) -> &'static str {
        match self {
            Arch::Amd64 => "max,-la57,-erms,-fsrm,-fzrm,-fsrs,-fsrc",
            Arch::Arm64 => "max,pauth-impdef=on",
            Arch::Armhf => "cortex-a15",
            Arch::Riscv64 => "max",
        }
    }
    /// The CPU model for virtual time: without instructions for random numbers, which differ
    /// between runs, and without the features by which software moves and sets memory byte by byte
    /// (`rep movsb`, `rep stosb`). Hardware has those features if it moves many bytes at a time;
    /// QEMU counts each byte as an instruction (docs/notes/virtual-time.md).
    pub(crate) fn repeatable_cpu(self) -> &'static str {
        match self {
            Arch::Amd64 => "max,-la57,-rdrand,-rdseed,-erms,-fsrm,-fzrm,-fsrs,-fsrc",
            Arch::Arm64 => "cortex-a72",
            Arch::Armhf => "cortex-a15",
            Arch::Riscv64 => "rv64",
        }
    }
    /// The kernel's name for the first serial line of that machine.
    pub(crate) fn console_device(self) -> &'static str {
        match self {
            Arch::Amd64 => "ttyS0",
            Arch::Arm64 | Arch::Armhf => "ttyAMA0",
            Arch::Riscv64 => "ttyS0",
        }
    }
    /// The longest command line of the kernel, with its final NUL (COMMAND_LINE_SIZE in
    /// arch/x86/include/asm/setup.h and arch/*/include/uapi/asm/setup.h).
    pub(crate) fn command_line_size(self) -> usize {
        match self {
            Arch::Amd64 | Arch::Arm64 => 2048,
            Arch::Armhf | Arch::Riscv64 => 1024,
        }
    }
    /// `e_machine` of its ELF files (elf.h).
    pub(crate) fn elf_machine(self) -> u16 {
        match self {
            Arch::Amd64 => elf::abi::EM_X86_64,
            Arch::Arm64 => elf::abi::EM_AARCH64,
            Arch::Armhf => elf::abi::EM_ARM,
            Arch::Riscv64 => elf::abi::EM_RISCV,
        }
    }
}
