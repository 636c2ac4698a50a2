//! All limits of experiments.

use punctual_core::Nanos;

/// The largest experiment file. The TOML parser stores every syntax error, at some 180 bytes for a
/// byte of hostile text: this limit keeps that below 200 MB. Read at most one byte more than this
/// to detect a file that is too large.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// The longest name of an experiment, phase, measure, load or partition, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 64;
/// The longest remark, in characters.
pub(crate) const MAX_REMARK_CHARS: usize = 400;
/// Measures or loads in a file.
pub(crate) const MAX_SECTIONS: usize = 1_024;
/// Phases in a file.
pub(crate) const MAX_PHASES: usize = 128;
/// Requirements of a measure.
pub(crate) const MAX_REQUIREMENTS: usize = 64;
/// Events counted for each thread of a measure: each is a descriptor.
pub(crate) const MAX_COUNTERS: usize = 16;
/// Measuring threads that run at the same time, in one phase.
pub const MAX_THREADS: usize = 1_024;
/// Series of the whole run: threads of all phases.
pub const MAX_SERIES: usize = 16_384;
/// Bins of one series' exact histogram: 128 MiB.
pub const MAX_BINS: u64 = 16 << 20;
/// The exact histograms of all series may use this part of the memory (one divided by it).
pub(crate) const MEMORY_SHARE: u64 = 4;
/// The longest duration of a measure or a phase: a leap year.
pub(crate) const MAX_DURATION: Nanos = Nanos::from_secs(366 * 24 * 3_600);
/// The shortest period of a timer.
pub(crate) const MIN_PERIOD: Nanos = Nanos::MICRO;
/// The longest period of a timer.
pub(crate) const MAX_PERIOD: Nanos = Nanos::from_secs(3_600);
/// A real-time thread with a shorter period than this may never sleep: it counts as spinning.
pub(crate) const SPINNING_PERIOD: Nanos = Nanos::from_micros(10);
/// The shortest distance of two refreshes of the live view.
pub(crate) const MIN_REFRESH: Nanos = Nanos::from_millis(10);
/// The longest one.
pub(crate) const MAX_REFRESH: Nanos = Nanos::from_secs(3_600);
/// The longest wait of a phase for a machine to cool down.
pub(crate) const MAX_COOLING: Nanos = Nanos::from_secs(24 * 3_600);
/// In thousandths of a degree: beyond what any processor survives.
pub(crate) const MAX_TEMPERATURE: i64 = 150_000;
/// The largest range of a histogram and the largest threshold.
pub const MAX_LATENCY: Nanos = Nanos::from_secs(3_600);
/// The maximum number of samples that a measure may request.
pub const MAX_SAMPLES: u64 = 1_000_000_000_000;
/// Raw samples that may be kept for a series.
pub(crate) const MAX_KEPT_SAMPLES: u64 = 1_000_000_000;
/// The largest value that /dev/cpu_dma_latency accepts: a signed 32-bit number of µs
/// (kernel/power/qos.c).
pub(crate) const MAX_DMA_LATENCY: Nanos = Nanos::from_micros(i32::MAX as i64);
/// The smallest runtime that SCHED_DEADLINE accepts (DL_SCALE in kernel/sched/deadline.c: 1 << 10
/// ns).
pub(crate) const MIN_RUNTIME: Nanos = Nanos(1 << 10);
/// The smallest size limit of a recording: below it, a busy system fills it immediately.
pub const MIN_RECORDING: u64 = 1 << 20;
/// The default size limit of a recording.
pub(crate) const DEFAULT_RECORDING: u64 = 4 << 30;
/// Samples of a series whose surrounding events are kept.
pub(crate) const MAX_EXPLAINED: u32 = 1_000;
/// The longest time before a sample that is kept with it.
pub(crate) const MAX_BEFORE: Nanos = Nanos::SECOND;
/// The smallest buffer of a CPU's newest events that the recorder accepts.
pub(crate) const MIN_BUFFER: u64 = 64 << 10;
/// The largest such buffer.
pub(crate) const MAX_BUFFER: u64 = 256 << 20;
/// The default buffer: at a hundred thousand events per second it holds the last second.
pub(crate) const DEFAULT_BUFFER: u64 = 4 << 20;
/// Processes that a recording may be limited to: the capacity of the filter in the kernel.
pub const MAX_PIDS: usize = 1_024;
/// The longest command, all arguments together. (The kernel accepts 128 KiB per argument:
/// MAX_ARG_STRLEN, execve(2).)
pub(crate) const MAX_COMMAND_BYTES: usize = 32 << 10;
/// The longest path that the kernel accepts (PATH_MAX without the NUL).
pub(crate) const MAX_PATH_BYTES: usize = 4_095;
/// The kernel's default limits of the period of SCHED_DEADLINE: sched_deadline_period_{min,max}_us
/// in /proc/sys/kernel (kernel/sched/deadline.c).
pub(crate) const DEADLINE_PERIODS: (Nanos, Nanos) =
    (Nanos::from_micros(100), Nanos::from_micros(1 << 22));
/// CPUs of a virtual machine.
pub(crate) const MAX_VM_CPUS: u64 = 64;
/// The minimum memory of a virtual machine: below it, no kernel with punctual in its initramfs
/// boots.
pub(crate) const MIN_VM_MEMORY: u64 = 256 << 20;
/// The most memory of a virtual machine.
pub(crate) const MAX_VM_MEMORY: u64 = 1 << 40;
/// The maximum number of bytes added to a kernel's command line: half of the 2048 bytes that
/// kernels accept (COMMAND_LINE_SIZE).
pub(crate) const MAX_CMDLINE_BYTES: usize = 1_024;
/// The maximum delay of a load's start caused by a seed.
pub const MAX_SEED_DELAY: Nanos = Nanos::from_millis(20);
/// The largest index of a stanza of a systress file.
pub(crate) const MAX_SYSTRESS_INDEX: u32 = 9_999;
