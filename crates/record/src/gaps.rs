//! The time in which interrupts, softirqs and other tasks had the CPU of a spinning thread, kept by
//! BPF programs in memory that the thread reads without a system call.
//!
//! The totals are of the kernel's own instants. The rest of a longer gap was lost outside of the
//! operating system: to hardware, firmware or the hypervisor. It needs BPF with BTF.

use crate::bpf::{Attach, BpfObject, LoadError};
use crate::start_error::StartError;
use aya_obj::btf::Btf;
use punctual_sys::mapping::Mapping;
use std::ops::Sub;
use std::sync::atomic::Ordering;

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gaps.bpf.o.z"));
const BACKEND: &str = "BPF (BTF tracepoints)";

/// Tracepoints of handlers without `_entry` and `_exit`, with the kind of both. The vectors are
/// x86's; `ipi` is for all other architectures.
const SERVED: [(&str, &str); 9] = [
    ("softirq", "soft"),
    ("irq_handler", "irq"),
    ("local_timer", "irq"),
    ("reschedule", "irq"),
    ("call_function", "irq"),
    ("call_function_single", "irq"),
    ("irq_work", "irq"),
    ("x86_platform_ipi", "irq"),
    ("ipi", "irq"),
];
/// Those that every kernel has.
const EVERYWHERE: [&str; 2] = ["softirq", "irq_handler"];

/// Offsets in `struct wire_gaps`; a test compares.
const HARD: usize = 0;
const SOFT: usize = 8;
const TASK: usize = 16;

/// The time that anything but the thread ran on its CPU, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServedGaps {
    pub interrupt: i64,
    /// Softirqs, without interrupts within them.
    pub softirq: i64,
    pub task: i64,
}

impl Sub for ServedGaps {
    type Output = ServedGaps;
    fn sub(self, earlier: ServedGaps) -> ServedGaps {
        ServedGaps {
            interrupt: self.interrupt - earlier.interrupt,
            softirq: self.softirq - earlier.softirq,
            task: self.task - earlier.task,
        }
    }
}

/// The totals of one thread on its one CPU, until it is dropped.
pub struct ThreadGaps {
    board: Mapping,
    _attached: Vec<Attach>,
    _object: BpfObject,
}

impl ThreadGaps {
    /// Starts counting for a thread, by the kernel's id. The error states the reason.
    pub fn start(cpu: u32, tid: u32) -> Result<ThreadGaps, StartError> {
        ThreadGaps::load_programs(cpu, tid)
            .map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_programs(cpu: u32, tid: u32) -> Result<ThreadGaps, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let (cpu, tid) = (cpu.to_ne_bytes(), tid.to_ne_bytes());
        let mut object = BpfObject::open(PROGRAMS, &[("want_cpu", &cpu), ("want_tid", &tid)])?;
        object.prepare_programs(Some(&kernel))?;
        let board = object.map_page("board", libc::PROT_READ)?;
        let mut attached = Vec::new();
        // Ends first: none is seen without its start.
        for (name, kind) in SERVED {
            let one = |end: &str| {
                object.attach_btf_tracepoint(
                    &kernel,
                    &format!("gap_{kind}_{end}"),
                    &format!("{name}_{end}"),
                )
            };
            match one("exit").and_then(|exit| Ok([exit, one("entry")?])) {
                Ok(both) => attached.extend(both),
                Err(LoadError::NoTracepoint(_)) if !EVERYWHERE.contains(&name) => {}
                Err(why) => return Err(why),
            }
        }
        attached.push(object.attach_btf_tracepoint(&kernel, "gap_switched", "sched_switch")?);
        Ok(ThreadGaps { board, _attached: attached, _object: object })
    }

    /// The totals so far. Called by the thread itself on its CPU, so only an interrupt can change
    /// them meanwhile.
    #[inline]
    pub fn served_gaps(&self) -> ServedGaps {
        let read = |at| self.board.word_at(at).load(Ordering::Acquire) as i64;
        loop {
            let first = ServedGaps { interrupt: read(HARD), softirq: read(SOFT), task: read(TASK) };
            if read(HARD) == first.interrupt {
                return first;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::layout;

    #[test]
    fn the_board_lies_as_the_header_says() {
        let mut bytes = [0; layout::Gaps::SIZE];
        let board = layout::Gaps { hard: 1, soft: 2, task: 3, ..layout::Gaps::read(&bytes) };
        board.write(&mut bytes);
        assert_eq!([HARD, SOFT, TASK].map(|at| bytes[at]), [1, 2, 3]);
    }
}
