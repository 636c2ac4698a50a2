//! Scheduling, interrupts, softirqs and power events as ftrace has them
//! (protos/perfetto/trace/ftrace/*.proto), in bundles of one CPU each.

use super::packets::PacketWriter;
use super::to_timestamp;
use super::wire::MessageWriter;
use punctual_core::event::TaskState;
use punctual_core::{Event, EventKind, Names, Tid};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

/// The size in bytes at which a bundle is written.
const FULL: usize = 64 * 1024;

/// The bundles under construction.
#[derive(Default)]
pub(crate) struct FtraceBundles(BTreeMap<u16, MessageWriter>);

impl FtraceBundles {
    /// Adds an event, if it is one of these kinds.
    pub fn add(
        &mut self,
        event: &Event,
        names: &Names,
        packets: &mut PacketWriter<'_>,
    ) -> io::Result<()> {
        if event.cpu == Event::NO_CPU {
            return Ok(());
        }
        let bundle = self.0.entry(event.cpu).or_default();
        if let EventKind::Lost { .. } = event.what {
            // The loss lies before the events that follow in the next bundle.
            flush(event.cpu, bundle, packets)?;
            bundle.write_uint(3, 1);
            return Ok(());
        }
        add(bundle, event, names);
        if bundle.as_bytes().len() >= FULL { flush(event.cpu, bundle, packets) } else { Ok(()) }
    }

    pub fn finish(mut self, packets: &mut PacketWriter<'_>) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|(cpu, bundle)| flush(*cpu, bundle, packets))
    }
}

fn flush(cpu: u16, bundle: &mut MessageWriter, packets: &mut PacketWriter<'_>) -> io::Result<()> {
    if bundle.as_bytes().is_empty() {
        return Ok(());
    }
    bundle.write_uint(1, cpu.into());
    packets.write_packet(|packet| {
        packet.write_delimited(1, bundle.as_bytes());
    })?;
    bundle.clear();
    Ok(())
}

/// Appends the event to the bundle; each message is the tracepoint of the same name.
fn add(bundle: &mut MessageWriter, event: &Event, names: &Names) {
    let cpu = u64::from(event.cpu);
    let mut put = |field: u32, write: &dyn Fn(&mut MessageWriter)| {
        bundle.write_message(2, |entry| {
            entry.write_uint(1, to_timestamp(event.at)).write_uint(2, event.tid.0.into());
            entry.write_message(field, |own| write(own));
        });
    };
    match event.what {
        EventKind::Switch { prev_prio, prev_state, next, next_prio } => put(4, &|own| {
            own.write_text(1, &comm_of_task(names, event.tid))
                .write_uint(2, event.tid.0.into())
                .write_int(3, prev_prio.into());
            own.write_uint(4, raw_state(prev_state));
            own.write_text(5, &comm_of_task(names, next))
                .write_uint(6, next.0.into())
                .write_int(7, next_prio.into());
        }),
        EventKind::Waking { task, prio, target } => {
            put(20, &|own| write_wakeup(own, names, task, prio, target))
        }
        EventKind::Wakeup { task, prio, target, new } => {
            put(if new { 114 } else { 17 }, &|own| write_wakeup(own, names, task, prio, target));
        }
        EventKind::Migrate { task, from, to } => put(491, &|own| {
            own.write_text(1, &comm_of_task(names, task))
                .write_uint(2, task.0.into())
                .write_uint(4, from.into())
                .write_uint(5, to.into());
        }),
        EventKind::Fork { child } => put(239, &|own| {
            own.write_text(1, &comm_of_task(names, event.tid)).write_uint(2, event.tid.0.into());
            own.write_text(3, &comm_of_task(names, child)).write_uint(4, child.0.into());
        }),
        EventKind::Exit => put(238, &|own| {
            let process = names.tasks.get(&event.tid).map_or(event.tid.0, |task| task.process);
            own.write_text(1, &comm_of_task(names, event.tid))
                .write_uint(2, event.tid.0.into())
                .write_uint(3, process.into());
        }),
        EventKind::PiSetPrio { task, old, new } => put(353, &|own| {
            own.write_text(1, &comm_of_task(names, task))
                .write_int(2, new.into())
                .write_int(3, old.into())
                .write_uint(4, task.0.into());
        }),
        EventKind::IrqEntry { irq } => put(36, &|own| {
            own.write_uint(1, irq.into())
                .write_text(2, names.irqs.get(&irq).map_or("", String::as_str));
        }),
        EventKind::IrqExit { irq, handled } => put(37, &|own| {
            own.write_uint(1, irq.into()).write_uint(2, handled.into());
        }),
        EventKind::SoftirqEntry { vector } => put(24, &|own| {
            own.write_uint(1, vector.into());
        }),
        EventKind::SoftirqExit { vector } => put(25, &|own| {
            own.write_uint(1, vector.into());
        }),
        EventKind::SoftirqRaise { vector } => put(26, &|own| {
            own.write_uint(1, vector.into());
        }),
        EventKind::IdleEnter { state } => put(13, &|own| {
            own.write_uint(1, state.into()).write_uint(2, cpu);
        }),
        // PWR_EVENT_EXIT of include/trace/events/power.h.
        EventKind::IdleExit => put(13, &|own| {
            own.write_uint(1, u32::MAX.into()).write_uint(2, cpu);
        }),
        EventKind::Frequency { khz } => put(11, &|own| {
            own.write_uint(1, khz.into()).write_uint(2, cpu);
        }),
        _ => {}
    }
}

fn write_wakeup(own: &mut MessageWriter, names: &Names, task: Tid, prio: i16, target: u16) {
    own.write_text(1, &comm_of_task(names, task))
        .write_uint(2, task.0.into())
        .write_int(3, prio.into())
        .write_uint(4, 1)
        .write_uint(5, target.into());
}

/// The states of Linux 4.14 and later as sched_switch prints them (fs/proc/array.c,
/// include/trace/events/sched.h).
fn raw_state(state: TaskState) -> u64 {
    match state {
        TaskState::Yielded => 0,
        TaskState::Sleeping => 0x01,
        // TASK_RTLOCK_WAIT is reported as uninterruptible.
        TaskState::Blocked | TaskState::LockWait => 0x02,
        TaskState::Stopped => 0x04,
        TaskState::Dead => 0x10,
        // TASK_IDLE, the state of idle kernel threads: the commonest of the others.
        TaskState::Other => 0x80,
        TaskState::Preempted | TaskState::Throttled => 0x100,
    }
}

fn comm_of_task(names: &Names, tid: Tid) -> Cow<'_, str> {
    match names.tasks.get(&tid) {
        _ if tid == Tid::IDLE => "swapper".into(),
        Some(task) => Cow::Borrowed(&task.comm),
        None => names.task_name(tid).into(),
    }
}
