//! An instruction without effect on any processor, by which QEMU's plugin recognises that a sample
//! was taken (crates/lab/src/exact/plugin.c).

/// A sample, in registers: its due time and wake-up time, both in ns on the measurement's clock,
/// and the address of its ring.
///
/// On x86-64 a `nop` with an operand that nothing else uses (Intel SDM, volume 2, NOP: "0F 1F /0"),
/// on arm64 a constant that nothing else uses, loaded into the zero register. On other
/// architectures nothing yet.
#[inline(always)]
pub(crate) fn mark_sample(due: i64, woke: i64, series: usize) {
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
