//! Timestamps interrupts that a thread waits for in the kernel, in memory that the thread reads:
//! without records or system calls.
//!
//! A BPF program at the tracepoint of the handler's entry takes the timestamp, some instructions
//! after the handler's first. Everything is held by file descriptors, so nothing is left behind. It
//! needs BPF with BTF; otherwise the error says so.

use crate::bpf::{Attach, BpfObject, LoadError, sys};
use crate::count::possible_cpus;
use crate::start_error::StartError;
use crate::wire::layout as wire;
use aya_obj::btf::Btf;
use libc::MAP_POPULATE;
use punctual_core::{MonotonicNs, Nanos};
use punctual_sys::mapping::{Mapping, READ_WRITE};
use punctual_sys::memory::page_size;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/irq.bpf.o.z"));
const BACKEND: &str = "BPF (BTF tracepoints)";

/// The awaited interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AwaitedInterrupt {
    /// A timer of the calling thread; `irq` if timer interrupts have a number (not on x86).
    Timer {
        irq: Option<u32>,
    },
    /// The interrupt that a CPU sends to itself for deferred work (irq_work).
    IrqWork,
    /// The interrupt by which one CPU has another one call a function.
    FunctionCall,
    Device {
        irq: u32,
    },
}

/// A tracepoint: group and name, as under `events` in tracefs.
pub type InterruptTracepoint = (&'static str, &'static str);

impl AwaitedInterrupt {
    /// The tracepoints of the handler's entry with their programs: those of the first list that
    /// this kernel has any of.
    fn entry_tracepoints(self) -> &'static [&'static [(InterruptTracepoint, &'static str)]] {
        const IPI: &[(InterruptTracepoint, &str)] = &[(("ipi", "ipi_entry"), "vector_entered")];
        match self {
            AwaitedInterrupt::Timer { irq: None } => {
                &[&[(("irq_vectors", "local_timer_entry"), "timer_entered")]]
            }
            AwaitedInterrupt::Timer { irq: Some(_) } => {
                &[&[(("irq", "irq_handler_entry"), "timer_irq_entered")]]
            }
            AwaitedInterrupt::IrqWork => {
                &[&[(("irq_vectors", "irq_work_entry"), "vector_entered")], IPI]
            }
            AwaitedInterrupt::FunctionCall => &[
                &[
                    (("irq_vectors", "call_function_single_entry"), "vector_entered"),
                    (("irq_vectors", "call_function_entry"), "vector_entered"),
                ],
                IPI,
            ],
            AwaitedInterrupt::Device { .. } => &[&[(("irq", "irq_handler_entry"), "irq_entered")]],
        }
    }

    fn irq_number(self) -> Option<u32> {
        match self {
            AwaitedInterrupt::Timer { irq } => irq,
            AwaitedInterrupt::Device { irq } => Some(irq),
            AwaitedInterrupt::IrqWork | AwaitedInterrupt::FunctionCall => None,
        }
    }
}

/// The timestamps of one interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamped {
    /// The entry of its handler.
    pub handler: Option<MonotonicNs>,
    /// The expiry of the timer.
    pub expiry: Option<MonotonicNs>,
    /// The CPU that handled it.
    pub cpu: u32,
}

/// Timestamps interrupts until it is dropped. Any thread may read; one at a time arms.
pub struct InterruptStamps {
    board: Mapping,
    doorbell: Option<SelfDoorbell>,
    attached: Vec<Attach>,
    object: BpfObject,
    tracepoints: Vec<InterruptTracepoint>,
}

impl InterruptStamps {
    /// Begins to timestamp, on one CPU or on all.
    pub fn start(
        awaited: AwaitedInterrupt,
        cpu: Option<u32>,
    ) -> Result<InterruptStamps, StartError> {
        InterruptStamps::load_programs(awaited, cpu)
            .map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_programs(
        awaited: AwaitedInterrupt,
        cpu: Option<u32>,
    ) -> Result<InterruptStamps, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let cpu = cpu.unwrap_or(wire::NO_CPU as u32).to_ne_bytes();
        let irq = awaited.irq_number().unwrap_or(0).to_ne_bytes();
        let mut object = BpfObject::open(PROGRAMS, &[("want_cpu", &cpu), ("want_irq", &irq)])?;
        object.set_map_shape("last", 8, possible_cpus());
        object.set_map_shape("bell", 0, page_size() as u32);
        object.prepare_programs(Some(&kernel))?;
        let board = object.map_page("board", READ_WRITE)?;
        let (mut attached, mut tracepoints) = (Vec::new(), Vec::new());
        let mut missing = None;
        for list in awaited.entry_tracepoints() {
            for (tracepoint, program) in *list {
                match object.attach_btf_tracepoint(&kernel, program, tracepoint.1) {
                    Ok(attach) => {
                        attached.push(attach);
                        tracepoints.push(*tracepoint);
                    }
                    Err(LoadError::NoTracepoint(name)) => missing = Some(name),
                    Err(why) => return Err(why),
                }
            }
            if !attached.is_empty() {
                break;
            }
        }
        if attached.is_empty() {
            return Err(LoadError::NoTracepoint(missing.unwrap_or_default()));
        }
        if matches!(awaited, AwaitedInterrupt::Timer { .. }) {
            attached.push(object.attach_btf_tracepoint(
                &kernel,
                "timer_expired",
                "hrtimer_expire_entry",
            )?);
        }
        let doorbell = if awaited == AwaitedInterrupt::IrqWork {
            Some(SelfDoorbell::from_object(&object)?)
        } else {
            None
        };
        Ok(InterruptStamps { board, doorbell, attached, object, tracepoints })
    }

    /// The tracepoints of the timestamps.
    pub fn tracepoints(&self) -> &[InterruptTracepoint] {
        &self.tracepoints
    }

    /// Sets the thread whose timer is awaited, by the kernel's id.
    pub fn wait_as(&self, tid: i32) {
        self.board.word32_at(TID).store(tid as u32, Ordering::Relaxed);
    }

    /// Awaits the first interrupt at or after this instant; for a timer, the one that expires at
    /// exactly this instant.
    #[inline(always)]
    pub fn arm_stamps(&self, at: i64) {
        self.board.word_at(HANDLER).store(0, Ordering::Relaxed);
        self.board.word_at(EXPIRY).store(0, Ordering::Relaxed);
        self.board.word_at(ARMED).store(at as u64, Ordering::Release);
        // Before anything that raises it, including a device's register.
        fence(Ordering::SeqCst);
    }

    /// Returns the timestamps since, and ends awaiting.
    #[inline(always)]
    pub fn take_stamps(&self) -> Stamped {
        self.board.word_at(ARMED).store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let instant = |at| {
            Some(self.board.word_at(at).load(Ordering::Acquire) as i64)
                .filter(|at| *at != 0)
                .map(MonotonicNs)
        };
        let cpu = self.board.word32_at(CPU).load(Ordering::Relaxed);
        Stamped { handler: instant(HANDLER), expiry: instant(EXPIRY), cpu }
    }

    /// The number of handler entries since the start, awaited or not.
    #[inline(always)]
    pub fn entry_count(&self) -> u64 {
        self.board.word_at(ENTRIES).load(Ordering::Acquire)
    }

    /// The number of entries neither timestamped nor counted, as the program was already running on
    /// that CPU.
    pub fn missed_entries(&self) -> u64 {
        self.attached.iter().filter_map(Attach::recursion_misses).sum()
    }

    /// The mean cost of a timestamp inside of its program.
    pub fn measure_stamp_cost(&self) -> Result<Nanos, StartError> {
        let program = self
            .object
            .load_to_be_run("stamp_cost")
            .map_err(|why| StartError::from_load_error(BACKEND, &why))?;
        let failed = |why| StartError::from_load_error(BACKEND, &LoadError::Map { bytes: 0, why });
        sys::run_program(&program).map_err(failed)?;
        Ok(Nanos(self.board.word_at(COST).load(Ordering::Acquire) as i64 / wire::STAMPS as i64))
    }

    /// Raises an interrupt of this CPU to itself; only for [`AwaitedInterrupt::IrqWork`]. ENOSYS
    /// for all others. The kernel side timestamps the raise.
    #[inline(always)]
    pub fn raise_interrupt(&self) -> io::Result<()> {
        let doorbell = self.doorbell.as_ref().ok_or(io::Error::from_raw_os_error(libc::ENOSYS))?;
        match sys::run_program(&doorbell.program)? {
            0 => Ok(()),
            _ => Err(io::Error::other("the doorbell's ring is full")),
        }
    }

    /// When [`InterruptStamps::raise_interrupt`] last raised it.
    #[inline(always)]
    pub fn raised_at(&self) -> i64 {
        self.board.word_at(RAISED).load(Ordering::Acquire) as i64
    }

    /// A descriptor that becomes readable, for poll(2), by the interrupt of
    /// [`InterruptStamps::raise_interrupt`].
    pub fn doorbell_fd(&self) -> Option<BorrowedFd<'_>> {
        self.doorbell.as_ref().map(|doorbell| doorbell.ring.as_fd())
    }

    /// Makes it unreadable again.
    #[inline(always)]
    pub fn clear_doorbell(&self) {
        if let Some(doorbell) = &self.doorbell {
            doorbell.pages.consume_all();
        }
    }
}

/// The descriptor that a thread waits on for an interrupt of the CPU to itself.
struct SelfDoorbell {
    program: OwnedFd,
    ring: OwnedFd,
    pages: Pages,
}

impl SelfDoorbell {
    fn from_object(object: &BpfObject) -> Result<SelfDoorbell, LoadError> {
        let refused = |why| LoadError::Map { bytes: page_size() as u64, why };
        let ring = object.map_fd("bell")?;
        let pages = Pages::map_ring(ring).map_err(refused)?;
        Ok(SelfDoorbell {
            program: object.load_to_be_run("raise")?,
            ring: ring.try_clone().map_err(refused)?,
            pages,
        })
    }
}

/// The positions of a ring buffer (include/uapi/linux/bpf.h, BPF_MAP_TYPE_RINGBUF): the reader's
/// page, and after it the writers'.
struct Pages {
    consumer: Mapping,
    producer: Mapping,
}

impl Pages {
    fn map_ring(ring: &OwnedFd) -> io::Result<Pages> {
        let page = page_size();
        let map = |offset, rights| Mapping::of_file(ring, offset, page, rights, MAP_POPULATE);
        Ok(Pages { consumer: map(0, READ_WRITE)?, producer: map(page, libc::PROT_READ)? })
    }

    /// Consumes everything unread.
    #[inline(always)]
    fn consume_all(&self) {
        let end = self.producer.word_at(0).load(Ordering::Acquire);
        self.consumer.word_at(0).store(end, Ordering::Release);
    }
}

/// Offsets in `struct wire_interrupt`; a test compares.
const ARMED: usize = 0;
const HANDLER: usize = 8;
const EXPIRY: usize = 16;
const RAISED: usize = 24;
const ENTRIES: usize = 32;
const COST: usize = 40;
const TID: usize = 48;
const CPU: usize = 52;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::layout::Interrupt;

    #[test]
    fn the_board_lies_as_the_header_says() {
        let mut bytes = [0; Interrupt::SIZE];
        let board = Interrupt {
            armed: 1,
            handler: 2,
            expiry: 3,
            raised: 4,
            entries: 5,
            cost: 6,
            tid: 7,
            cpu: 8,
        };
        board.write(&mut bytes);
        let offsets = [ARMED, HANDLER, EXPIRY, RAISED, ENTRIES, COST, TID, CPU];
        for (offset, value) in offsets.into_iter().zip(1..) {
            assert_eq!(bytes[offset], value);
        }
    }
}
