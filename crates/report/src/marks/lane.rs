//! The lanes of pictures.

use super::label;
use punctual_core::event::PointId;
use punctual_core::{Names, Tid};

/// The place of a mark. Spans in one lane nest or follow each other, and never overlap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Device interrupts of a CPU.
    Interrupts(u16),
    /// Interrupt vectors of a CPU.
    Vectors(u16),
    Softirqs(u16),
    /// Handlers of timers on a CPU.
    Timers(u16),
    /// Idle states of a CPU.
    Idle(u16),
    /// The frequency of a CPU: values.
    Frequency(u16),
    /// Other events on a CPU: instants.
    OnCpu(u16),
    /// Begin/end pairs and instants of one test point in one thread.
    Points(Tid, PointId),
    /// A value that a test point carries, the first or the second.
    Values(Tid, PointId, u8),
    /// Probed functions in a thread.
    Calls(Tid),
    /// Measured samples of a series in a thread, from due to woke. Late ones overlap the next: the
    /// third number distinguishes them.
    Samples(Tid, u32, u8),
    /// The causes of the samples of a thread. Numbers distinguish samples that overlap.
    Causes(Tid, u8),
    /// System calls of a thread.
    Syscalls(Tid),
    /// Futexes that a thread waits for or wakes.
    Futexes(Tid),
    /// Kernel locks that a thread waits for.
    Locks(Tid),
    /// Direct reclaim of memory by a thread.
    Reclaim(Tid),
    /// Workqueue items run by a thread.
    Work(Tid),
    /// Other events in a thread: instants.
    InThread(Tid),
    /// Requests to a block device, several at once.
    Requests(u32, u8),
    /// Journal commits of a block device.
    Journal(u32),
    /// Requests to the MMC or SD card.
    Mmc,
}

/// The number of lanes for concurrent spans; further spans share the last lane.
pub const SLOTS: u8 = 16;

impl Lane {
    /// The CPU that it belongs to.
    pub fn cpu(self) -> Option<u16> {
        match self {
            Lane::Interrupts(cpu)
            | Lane::Vectors(cpu)
            | Lane::Softirqs(cpu)
            | Lane::Timers(cpu)
            | Lane::Idle(cpu)
            | Lane::Frequency(cpu)
            | Lane::OnCpu(cpu) => Some(cpu),
            _ => None,
        }
    }

    /// The thread that it belongs to.
    pub fn thread(self) -> Option<Tid> {
        match self {
            Lane::Points(tid, _)
            | Lane::Values(tid, ..)
            | Lane::Calls(tid)
            | Lane::Samples(tid, ..)
            | Lane::Causes(tid, _)
            | Lane::Syscalls(tid)
            | Lane::Futexes(tid)
            | Lane::Locks(tid)
            | Lane::Reclaim(tid)
            | Lane::Work(tid)
            | Lane::InThread(tid) => Some(tid),
            _ => None,
        }
    }

    /// Its title, besides the CPU, thread or device that it belongs to.
    pub fn title(self, names: &Names) -> String {
        match self {
            Lane::Interrupts(cpu) => format!("CPU {cpu} interrupts"),
            Lane::Vectors(cpu) => format!("CPU {cpu} vectors"),
            Lane::Softirqs(cpu) => format!("CPU {cpu} softirqs"),
            Lane::Timers(cpu) => format!("CPU {cpu} timers"),
            Lane::Idle(cpu) => format!("CPU {cpu} idle states"),
            Lane::Frequency(cpu) => format!("CPU {cpu} frequency"),
            Lane::OnCpu(cpu) => format!("CPU {cpu} events"),
            Lane::Points(_, point) | Lane::Values(_, point, 0) => {
                label::point_name(names, point).into_owned()
            }
            Lane::Values(_, point, _) => {
                format!("{} (second value)", label::point_name(names, point))
            }
            Lane::Calls(_) => "functions".to_owned(),
            Lane::Samples(_, series, _) => format!("samples of series {series}"),
            Lane::Causes(..) => "late because of".to_owned(),
            Lane::Syscalls(_) => "system calls".to_owned(),
            Lane::Futexes(_) => "futexes".to_owned(),
            Lane::Locks(_) => "kernel locks".to_owned(),
            Lane::Reclaim(_) => "memory reclaim".to_owned(),
            Lane::Work(_) => "work".to_owned(),
            Lane::InThread(_) => "events".to_owned(),
            Lane::Requests(device, _) => format!("{} requests", label::device_name(names, device)),
            Lane::Journal(device) => format!("{} journal", label::device_name(names, device)),
            Lane::Mmc => "MMC".to_owned(),
        }
    }
}
