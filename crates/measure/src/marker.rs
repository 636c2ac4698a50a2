//! An instruction that does nothing on any processor, and by which QEMU's plugin recognises that a
//! sample was taken (crates/lab/src/exact/plugin.c).

/// A sample, in registers: when it was due and when the thread woke, both in ns on the
/// measurement's clock, and the address of the ring that it goes to.
///
/// On x86-64 a `nop` with an operand that nothing else has (Intel SDM, volume 2, NOP: "0F 1F /0"),
/// on arm64 a constant that nothing else has, for the register that holds none. On other
/// architectures nothing yet.
#[inline(always)]
pub fn sample(due: i64, woke: i64, series: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no effect: it reads no memory and changes no register.
    unsafe {
        std::arch::asm!(
            ".byte 0x0f, 0x1f, 0x80, 0x50, 0x45, 0x58, 0x31",
            in("rdi") due,
            in("rsi") woke,
            in("rdx") series,
            options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction has no effect: it reads no memory and changes no register.
    unsafe {
        std::arch::asm!(
            "movz xzr, #0x5058",
            in("x0") due,
            in("x1") woke,
            in("x2") series,
            options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (due, woke, series);
}
