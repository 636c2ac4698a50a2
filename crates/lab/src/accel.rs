//! What makes the time of a guest go on.

/// What makes the guest's time go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accel {
    /// QEMU's translator, all CPUs in turn in one thread: for behaviour, not for latencies (those
    /// are the host's noise).
    Tcg,
    /// Time counted in guest instructions, 8 ns each (`-icount shift=3,sleep=off`), on one CPU,
    /// independent of the host. It compares software paths, not hardware: no caches, no
    /// frequency changes, no firmware interrupts. Two runs of the same guest agree to the last
    /// digit (docs/notes/virtual-time.md says why, and what was tried); whoever states a figure
    /// compares repeats.
    VirtualTime,
    /// This machine's own processor, at full speed; time is the host's with all its noise. Only for
    /// its own architecture, and only where /dev/kvm does what it promises: on some hosts no
    /// kernel reaches its first process.
    Kvm,
}
