//! Scheduling, interrupts, softirqs and power events as ftrace has them
//! (protos/perfetto/trace/ftrace/*.proto), in bundles of one CPU each.

use super::instant;
use super::packets::PacketWriter;
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
            bundle.uint(3, 1);
            return Ok(());
        }
        add(bundle, event, names);
        if bundle.bytes().len() >= FULL { flush(event.cpu, bundle, packets) } else { Ok(()) }
    }

    pub fn finish(mut self, packets: &mut PacketWriter<'_>) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|(cpu, bundle)| flush(*cpu, bundle, packets))
    }
}

fn flush(cpu: u16, bundle: &mut MessageWriter, packets: &mut PacketWriter<'_>) -> io::Result<()> {
    if bundle.bytes().is_empty() {
        return Ok(());
    }
    bundle.uint(1, cpu.into());
    packets.packet(|packet| {
        packet.delimited(1, bundle.bytes());
    })?;
    bundle.clear();
    Ok(())
}

/// Appends the event to the bundle; each message is the tracepoint of the same name.
fn add(bundle: &mut MessageWriter, event: &Event, names: &Names) {
    let cpu = u64::from(event.cpu);
    let mut put = |field: u32, write: &dyn Fn(&mut MessageWriter)| {
        bundle.message(2, |entry| {
            entry.uint(1, instant(event.at)).uint(2, event.tid.0.into());
            entry.message(field, |own| write(own));
        });
    };
    match event.what {
        EventKind::Switch { prev_prio, prev_state, next, next_prio } => put(4, &|own| {
            own.text(1, &comm(names, event.tid))
                .uint(2, event.tid.0.into())
                .int(3, prev_prio.into());
            own.uint(4, raw_state(prev_state));
            own.text(5, &comm(names, next)).uint(6, next.0.into()).int(7, next_prio.into());
        }),
        EventKind::Waking { task, prio, target } => {
            put(20, &|own| woken(own, names, task, prio, target))
        }
        EventKind::Wakeup { task, prio, target, new } => {
            put(if new { 114 } else { 17 }, &|own| woken(own, names, task, prio, target));
        }
        EventKind::Migrate { task, from, to } => put(491, &|own| {
            own.text(1, &comm(names, task))
                .uint(2, task.0.into())
                .uint(4, from.into())
                .uint(5, to.into());
        }),
        EventKind::Fork { child } => put(239, &|own| {
            own.text(1, &comm(names, event.tid)).uint(2, event.tid.0.into());
            own.text(3, &comm(names, child)).uint(4, child.0.into());
        }),
        EventKind::Exit => put(238, &|own| {
            let process = names.tasks.get(&event.tid).map_or(event.tid.0, |task| task.process);
            own.text(1, &comm(names, event.tid))
                .uint(2, event.tid.0.into())
                .uint(3, process.into());
        }),
        EventKind::PiSetPrio { task, old, new } => put(353, &|own| {
            own.text(1, &comm(names, task))
                .int(2, new.into())
                .int(3, old.into())
                .uint(4, task.0.into());
        }),
        EventKind::IrqEntry { irq } => put(36, &|own| {
            own.uint(1, irq.into()).text(2, names.irqs.get(&irq).map_or("", String::as_str));
        }),
        EventKind::IrqExit { irq, handled } => put(37, &|own| {
            own.uint(1, irq.into()).uint(2, handled.into());
        }),
        EventKind::SoftirqEntry { vector } => put(24, &|own| {
            own.uint(1, vector.into());
        }),
        EventKind::SoftirqExit { vector } => put(25, &|own| {
            own.uint(1, vector.into());
        }),
        EventKind::SoftirqRaise { vector } => put(26, &|own| {
            own.uint(1, vector.into());
        }),
        EventKind::IdleEnter { state } => put(13, &|own| {
            own.uint(1, state.into()).uint(2, cpu);
        }),
        // PWR_EVENT_EXIT of include/trace/events/power.h.
        EventKind::IdleExit => put(13, &|own| {
            own.uint(1, u32::MAX.into()).uint(2, cpu);
        }),
        EventKind::Frequency { khz } => put(11, &|own| {
            own.uint(1, khz.into()).uint(2, cpu);
        }),
        _ => {}
    }
}

fn woken(own: &mut MessageWriter, names: &Names, task: Tid, prio: i16, target: u16) {
    own.text(1, &comm(names, task))
        .uint(2, task.0.into())
        .int(3, prio.into())
        .uint(4, 1)
        .uint(5, target.into());
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

fn comm(names: &Names, tid: Tid) -> Cow<'_, str> {
    match names.tasks.get(&tid) {
        _ if tid == Tid::IDLE => "swapper".into(),
        Some(task) => Cow::Borrowed(&task.comm),
        None => names.task(tid).into(),
    }
}
