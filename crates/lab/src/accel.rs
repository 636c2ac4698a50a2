//! The sources of a guest's time.

/// The source of a guest's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accel {
    /// QEMU's translator, all CPUs in turn in one thread: for behaviour, not for latencies (they
    /// are the host's noise).
    Tcg,
    /// Time counted in guest instructions, 8 ns each (`-icount shift=3,sleep=off`), on one CPU,
    /// independent of the host. It compares software paths, not hardware: no caches, no frequency
    /// changes, no firmware interrupts. Two runs of the same guest agree to the last digit
    /// (docs/notes/virtual-time.md has the reasons and the experiments); compare repeats before
    /// publishing a figure.
    VirtualTime,
    /// This machine's own processor, at full speed; time is the host's with all its noise. Only for
    /// its own architecture, and only if /dev/kvm works: on some hosts no kernel reaches its first
    /// process.
    Kvm,
}
