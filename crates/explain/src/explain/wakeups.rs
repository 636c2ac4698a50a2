//! The chain of wake-ups that ended with the thread: its waker, the waker of that, and so on.

use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use crate::occupancy::interrupt_name;
use crate::threads::{Interrupt, ThreadSpan, ThreadState, WakeMark};
use punctual_core::event::InterfaceName;
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos, Tid};

const NET_RX: u8 = 3;
/// The number of events of a CPU that are searched for the source of a packet.
const SEARCHED_EVENTS: usize = 512;

/// The maximum number of steps in a chain.
pub const STEPS: usize = 8;

/// A wake-up. The next step is about its waker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeUp {
    pub task: Tid,
    /// The kind of its wait.
    pub wait: WaitKind,
    /// The length of the wait; `None` if the record lacks its start.
    pub waited: Option<Nanos>,
    pub at: MonotonicNs,
    /// The CPU of the waker.
    pub cpu: u16,
    pub by: Waker,
    /// The path of the packet that it was woken for.
    pub packet: Option<Packet>,
    /// The index of the event that proves it.
    pub evidence: usize,
}

/// The path of a network packet to the socket that a thread waited at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// The device's interrupt, and when its handler began; `None` for a packet sent by a thread of
    /// this machine, or without an interrupt between this delivery and the one before.
    pub irq: Option<(u32, MonotonicNs)>,
    /// When the softirq NET_RX that delivered it began; `None`: a thread delivered it (threaded
    /// NAPI, or the sender itself).
    pub delivery: Option<MonotonicNs>,
    /// The device that received it. `None` if no event shows it (group `napi`).
    pub received: Option<ReceivedPacket>,
    /// The socket that it was queued at. `None` if no event shows it (group `napi`, Linux 6.3).
    pub socket: Option<Socket>,
    /// The poll of the device (NAPI) that took it from there: when it ended, after the wake-up, and
    /// its number of packets. `None` if no event shows it (group `napi`).
    pub poll: Option<(MonotonicNs, u32)>,
}

/// A packet received by a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedPacket {
    /// When it was passed up the protocol stack.
    pub at: MonotonicNs,
    pub device: InterfaceName,
    pub bytes: u32,
}

/// A socket that received data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Socket {
    /// When it had the data.
    pub at: MonotonicNs,
    pub family: u16,
    pub protocol: u16,
}

impl Socket {
    /// Its kind in words (include/linux/socket.h, include/uapi/linux/in.h).
    pub fn kind_name(self) -> String {
        let name = match (self.family, self.protocol) {
            (1, _) => "UNIX",
            (2 | 10, 6) => "TCP",
            (2 | 10, 17) => "UDP",
            (2 | 10, 1 | 58) => "ICMP",
            (2 | 10, 132) => "SCTP",
            (16, _) => "netlink",
            (17, _) => "packet",
            (29, _) => "CAN",
            (31, _) => "Bluetooth",
            (40, _) => "vsock",
            (44, _) => "XDP",
            (family, protocol) => return format!("family {family}, protocol {protocol}"),
        };
        name.to_owned()
    }
}

/// The kind of a thread's wait, as far as its own events prove it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitKind {
    /// A lock, in the kernel or in user space.
    Lock,
    Reclaim,
    /// A missing page that it touched.
    PageFault,
    /// An uninterruptible wait: mostly for a device.
    Uninterruptible,
    Sleep,
}

impl WaitKind {
    /// Its spelling in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            WaitKind::Lock => "lock",
            WaitKind::Reclaim => "reclaim",
            WaitKind::PageFault => "page-fault",
            WaitKind::Uninterruptible => "uninterruptible",
            WaitKind::Sleep => "sleep",
        }
    }
}

/// The waker of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waker {
    Task(Tid),
    /// The handler of an interrupt: the chain begins here.
    Interrupt(Interrupt),
}

impl Waker {
    /// The name of the task or the interrupt.
    pub fn waker_name(self, names: &Names) -> String {
        match self {
            Waker::Task(tid) => names.task_name(tid),
            Waker::Interrupt(what) => interrupt_name(what, names).1,
        }
    }
}

/// The chain, from the thread of the interval back: the first step is the wake-up that ended the
/// longest of its sleeps. It ends at an interrupt, at a thread already in the chain, and where the
/// record has no earlier wake-up.
pub(crate) fn wakeup_chain(context: &TraceContext) -> Vec<WakeUp> {
    let mut chain: Vec<WakeUp> = Vec::new();
    let mut next = context.thread_timeline(context.interval.tid).and_then(|own| {
        let is_in_interval = |wake: &&WakeMark| wake.at >= context.interval.due;
        let slept = |wake: &&WakeMark| {
            let from = |span: &ThreadSpan| span.from.max(context.interval.due);
            sleep_before(&own, wake.at).map_or(Nanos::ZERO, |span| wake.at - from(span))
        };
        let longest = own.wakes.iter().filter(is_in_interval).max_by_key(slept);
        longest.and_then(|wake| wakeup_step(context, &own, wake))
    });
    while let Some(wake_up) = next {
        chain.push(wake_up);
        let Waker::Task(waker) = wake_up.by else { break };
        let is_in_chain = chain.iter().any(|earlier| earlier.task == waker);
        if is_in_chain || waker == Tid::IDLE || chain.len() >= STEPS {
            break;
        }
        next = context.thread_timeline(waker).and_then(|timeline| {
            let wake = timeline.wakes.iter().rev().find(|wake| wake.at < wake_up.at)?;
            wakeup_step(context, &timeline, wake)
        });
    }
    chain
}

fn wakeup_step(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    wake: &WakeMark,
) -> Option<WakeUp> {
    let proves = |event: &Event| {
        let task = match event.what {
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => task,
            _ => return false,
        };
        (event.at, event.cpu, task) == (wake.at, wake.cpu, timeline.tid)
    };
    let places = timeline.about.iter().map(|place| *place as usize);
    let evidence =
        places.into_iter().find(|place| context.events.get(*place).is_some_and(proves))?;
    // The wake-up of a thread that did not sleep ends no wait.
    let sleep = sleep_before(timeline, wake.at)?;
    let waker = match (packet_sender(context, wake), wake.interrupt) {
        (Some(sender), _) => Waker::Task(sender),
        (None, Some(interrupt)) => Waker::Interrupt(interrupt),
        (None, None) => Waker::Task(wake.waker),
    };
    let is_begin_seen = sleep.from > context.began;
    Some(WakeUp {
        task: timeline.tid,
        wait: wait_kind(timeline, sleep),
        waited: is_begin_seen.then(|| wake.at - sleep.from),
        at: wake.at,
        cpu: wake.cpu,
        by: waker,
        packet: waking_packet(context, wake),
        evidence,
    })
}

/// The packet of the softirq that woke the thread, with the last device interrupt before it on its
/// CPU: on PREEMPT_RT the interrupt's thread, and with a backlog ksoftirqd, run it some time later.
/// If a thread delivered the packet, its own wake-up is the next step.
fn waking_packet(context: &TraceContext, wake: &WakeMark) -> Option<Packet> {
    let socket = waking_socket(context, wake);
    let softirq = packet_delivery(context, wake);
    if softirq.is_none() && socket.is_none() {
        return None;
    }
    let (delivery, irq) = softirq.map_or((None, None), |(began, since)| {
        (Some(began), announcing_interrupt(&since.collect::<Vec<_>>()))
    });
    let poll = waking_poll(context, wake, delivery.is_some());
    Some(Packet { irq, delivery, received: received_packet(context, wake), socket, poll })
}

/// The device interrupt that announced a packet, among the events before its delivery, latest
/// first: the one whose handler, or the thread that it woke (PREEMPT_RT), raised NET_RX. If that is
/// not recorded, the latest.
fn announcing_interrupt(since: &[&Event]) -> Option<(u32, MonotonicNs)> {
    let raised = EventKind::SoftirqRaise { vector: NET_RX };
    let Some(raise) = since.iter().position(|event| event.what == raised) else {
        return since.iter().find_map(|event| match event.what {
            EventKind::IrqEntry { irq } => Some((irq, event.at)),
            _ => None,
        });
    };
    let raiser = since[raise].tid;
    let is_woken =
        |event: &Event| matches!(event.what, EventKind::Waking { task, .. } if task == raiser);
    // For earlier handlers, whether the wake-up of that thread came directly after.
    let mut ended: Vec<bool> = Vec::new();
    for (place, event) in since.iter().enumerate().skip(raise + 1) {
        match event.what {
            EventKind::IrqExit { .. } => ended.push(is_woken(since[place - 1])),
            EventKind::IrqEntry { irq } if ended.pop().unwrap_or(true) => {
                return Some((irq, event.at));
            }
            _ => {}
        }
    }
    None
}

/// The events of a CPU before an instant, latest first.
fn events_before<'c>(
    context: &'c TraceContext,
    cpu: u16,
    at: MonotonicNs,
) -> impl Iterator<Item = &'c Event> + use<'c> {
    let cpu_places = context.places_on_cpu(cpu);
    let end = cpu_places.partition_point(|place| context.events[*place as usize].at <= at);
    let places = cpu_places[..end].iter().rev().take(SEARCHED_EVENTS);
    let events = places.map(|place| &context.events[*place as usize]);
    events.filter(|event| !matches!(event.what, EventKind::Context { .. }))
}

/// The socket whose waiter was woken: only the wake-up itself follows its event.
fn waking_socket(context: &TraceContext, wake: &WakeMark) -> Option<Socket> {
    let is_of_it = |event: &&Event| match event.what {
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::Migrate { task, .. } => task == wake.task,
        EventKind::IpiSend { .. } => true,
        _ => false,
    };
    let event = events_before(context, wake.cpu, wake.at).find(|event| !is_of_it(event))?;
    match event.what {
        EventKind::SocketReady { family, protocol } => {
            Some(Socket { at: event.at, family, protocol })
        }
        _ => None,
    }
}

/// The last packet passed up in the same softirq or thread.
fn received_packet(context: &TraceContext, wake: &WakeMark) -> Option<ReceivedPacket> {
    let is_same = |event: &&Event| {
        !matches!(event.what, EventKind::Switch { .. } | EventKind::SoftirqEntry { vector: NET_RX })
    };
    let mut softirq_events = events_before(context, wake.cpu, wake.at).take_while(is_same);
    softirq_events.find_map(|event| match event.what {
        EventKind::PacketReceived { device, bytes } => {
            Some(ReceivedPacket { at: event.at, device, bytes })
        }
        _ => None,
    })
}

/// The poll that contains the wake-up: the first that ends after it, before its softirq ends or its
/// thread leaves.
fn waking_poll(
    context: &TraceContext,
    wake: &WakeMark,
    softirq: bool,
) -> Option<(MonotonicNs, u32)> {
    let cpu_places = context.places_on_cpu(wake.cpu);
    let begin = cpu_places.partition_point(|place| context.events[*place as usize].at < wake.at);
    let after = cpu_places[begin..].iter().take(SEARCHED_EVENTS);
    let mut after = after.map(|place| &context.events[*place as usize]);
    after.find_map(|event| match event.what {
        EventKind::NapiPoll { work, .. } => Some(Some((event.at, work))),
        EventKind::SoftirqExit { vector: NET_RX } => Some(None),
        EventKind::Switch { .. } if !softirq => Some(None),
        _ => None,
    })?
}

/// The thread of this machine that sent the packet: no device interrupt came between, and it raised
/// the softirq itself, outside of any interrupt.
pub(crate) fn packet_sender(context: &TraceContext, wake: &WakeMark) -> Option<Tid> {
    if waking_packet(context, wake)?.irq.is_some() {
        return None;
    }
    let (_, mut since) = packet_delivery(context, wake)?;
    let raises = |event: &&Event| event.what == EventKind::SoftirqRaise { vector: NET_RX };
    let at = since.find(raises)?.at;
    if context.interrupt_at(wake.cpu, at).is_some() {
        return None;
    }
    context.on_cpu(wake.cpu, at)?.tid.filter(|tid| *tid != Tid::IDLE && *tid != wake.task)
}

/// The start of the softirq that woke the thread, and the earlier events of its CPU back to the
/// delivery before.
fn packet_delivery<'c>(
    context: &'c TraceContext,
    wake: &WakeMark,
) -> Option<(MonotonicNs, impl Iterator<Item = &'c Event> + use<'c>)> {
    if wake.interrupt != Some(Interrupt::Soft(NET_RX)) {
        return None;
    }
    let mut before = events_before(context, wake.cpu, wake.at);
    let is_entry = |event: &&Event| event.what == EventKind::SoftirqEntry { vector: NET_RX };
    let began = before.find(is_entry)?.at;
    let since = |event: &&Event| event.what != EventKind::SoftirqExit { vector: NET_RX };
    Some((began, before.take_while(since)))
}

/// The sleep that a wake-up ended.
fn sleep_before(timeline: &ThreadTimeline, at: MonotonicNs) -> Option<&ThreadSpan> {
    let span = timeline.span_at(MonotonicNs(at.ns() - 1))?;
    let asleep =
        matches!(span.doing, ThreadState::Sleeping | ThreadState::Blocked | ThreadState::LockWait);
    asleep.then_some(span)
}

fn wait_kind(timeline: &ThreadTimeline, sleep: &ThreadSpan) -> WaitKind {
    let at = sleep.from;
    if sleep.doing == ThreadState::LockWait || timeline.lock_wait_at(at).is_some() {
        WaitKind::Lock
    } else if timeline.reclaims_at(at) {
        WaitKind::Reclaim
    } else if sleep.doing == ThreadState::Blocked && timeline.faults_at(at) {
        WaitKind::PageFault
    } else if sleep.doing == ThreadState::Blocked {
        WaitKind::Uninterruptible
    } else {
        WaitKind::Sleep
    }
}
