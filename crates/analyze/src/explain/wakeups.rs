//! Who woke the thread, and who woke that one: the chain of wake-ups that the thread came at the
//! end of.

use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use crate::occupancy::interrupt_name;
use crate::threads::{Interrupt, ThreadSpan, ThreadState, WakeMark};
use punctual_core::event::InterfaceName;
use punctual_core::{Event, EventKind, MonotonicNs, Names, Nanos, Tid};

const NET_RX: u8 = 3;
/// The events of a CPU that are searched for where a packet came from.
const SEARCHED_EVENTS: usize = 512;

/// A chain has at most this many steps.
pub const STEPS: usize = 8;

/// One step: a thread was woken. The next step is about who woke it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeUp {
    pub task: Tid,
    /// What it had waited for.
    pub wait: Wait,
    /// For how long; `None` where the record does not have the start.
    pub waited: Option<Nanos>,
    pub at: MonotonicNs,
    /// The CPU on which that was done.
    pub cpu: u16,
    pub by: Waker,
    /// How the packet came that it was woken for.
    pub packet: Option<Packet>,
    /// The event that proves it, as a place in the events given.
    pub evidence: usize,
}

/// The way of a network packet to the socket that a thread waited at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The device's interrupt, and when its handler began; `None` for one that a thread of this
    /// machine sent, or where no interrupt came between this delivery and the one before.
    pub irq: Option<(u32, MonotonicNs)>,
    /// When the softirq NET_RX began that delivered it; `None`: a thread did (threaded NAPI, or the
    /// sender itself).
    pub delivery: Option<MonotonicNs>,
    /// The device that received it. `None` where no event shows it (group `napi`).
    pub received: Option<Received>,
    /// The socket that it was queued at. `None` where no event shows it (group `napi`, Linux 6.3).
    pub socket: Option<Socket>,
    /// The poll of the device (NAPI) that took it from there: when it was over, after the wake-up,
    /// and how many packets it took. `None` where no event shows it (group `napi`).
    pub poll: Option<(MonotonicNs, u32)>,
}

/// A packet that a device received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// When it went up the protocols.
    pub at: MonotonicNs,
    pub device: InterfaceName,
    pub bytes: u32,
}

/// A socket that got data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Socket {
    /// When it had the data.
    pub at: MonotonicNs,
    pub family: u16,
    pub protocol: u16,
}

impl Socket {
    /// Its kind in words (include/linux/socket.h, include/uapi/linux/in.h).
    pub fn name(self) -> String {
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

/// What a thread waited for, as far as events of its own prove it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A lock, in the kernel or of its program.
    Lock,
    Reclaim,
    /// A page that it touched and that was not there.
    PageFault,
    /// Something that no signal interrupts: mostly a device.
    Uninterruptible,
    Sleep,
}

impl Wait {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Wait::Lock => "lock",
            Wait::Reclaim => "reclaim",
            Wait::PageFault => "page-fault",
            Wait::Uninterruptible => "uninterruptible",
            Wait::Sleep => "sleep",
        }
    }
}

/// Who woke a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waker {
    Task(Tid),
    /// The handler of an interrupt: the chain begins here.
    Interrupt(Interrupt),
}

impl Waker {
    /// The task's name, or that of the interrupt.
    pub fn name(self, names: &Names) -> String {
        match self {
            Waker::Task(tid) => names.task(tid),
            Waker::Interrupt(what) => interrupt_name(what, names).1,
        }
    }
}

/// The chain, from the thread of the interval back: the first step is the wake-up that ended the
/// longest of its sleeps. It ends at an interrupt, at a thread that was in it before, and where the
/// record has no earlier wake-up.
pub fn chain(context: &TraceContext) -> Vec<WakeUp> {
    let mut chain: Vec<WakeUp> = Vec::new();
    let mut next = context.timeline(context.interval.tid).and_then(|own| {
        let within = |wake: &&WakeMark| wake.at >= context.interval.due;
        let slept = |wake: &&WakeMark| {
            let from = |span: &ThreadSpan| span.from.max(context.interval.due);
            sleep_before(&own, wake.at).map_or(Nanos::ZERO, |span| wake.at - from(span))
        };
        let longest = own.wakes.iter().filter(within).max_by_key(slept);
        longest.and_then(|wake| step(context, &own, wake))
    });
    while let Some(wake_up) = next {
        chain.push(wake_up);
        let Waker::Task(waker) = wake_up.by else { break };
        let known = chain.iter().any(|earlier| earlier.task == waker);
        if known || waker == Tid::IDLE || chain.len() >= STEPS {
            break;
        }
        next = context.timeline(waker).and_then(|timeline| {
            let wake = timeline.wakes.iter().rev().find(|wake| wake.at < wake_up.at)?;
            step(context, &timeline, wake)
        });
    }
    chain
}

fn step(context: &TraceContext, timeline: &ThreadTimeline, wake: &WakeMark) -> Option<WakeUp> {
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
    // A thread that did not sleep was woken from nothing.
    let sleep = sleep_before(timeline, wake.at)?;
    let by = match (sender(context, wake), wake.interrupt) {
        (Some(sender), _) => Waker::Task(sender),
        (None, Some(interrupt)) => Waker::Interrupt(interrupt),
        (None, None) => Waker::Task(wake.waker),
    };
    let seen = sleep.from > context.began();
    Some(WakeUp {
        task: timeline.tid,
        wait: wait(timeline, sleep),
        waited: seen.then(|| wake.at - sleep.from),
        at: wake.at,
        cpu: wake.cpu,
        by,
        packet: packet(context, wake),
        evidence,
    })
}

/// The softirq that woke, and the last interrupt of a device before it, on its CPU: on PREEMPT_RT
/// the interrupt's thread and with a backlog ksoftirqd run it, some time later. Where a thread
/// delivered the packet, what woke that one is the next step.
fn packet(context: &TraceContext, wake: &WakeMark) -> Option<Packet> {
    let socket = socket(context, wake);
    let softirq = delivery(context, wake);
    if softirq.is_none() && socket.is_none() {
        return None;
    }
    let (delivery, irq) = softirq.map_or((None, None), |(began, since)| {
        (Some(began), announced(&since.collect::<Vec<_>>()))
    });
    let poll = poll(context, wake, delivery.is_some());
    Some(Packet { irq, delivery, received: received(context, wake), socket, poll })
}

/// The interrupt of a device that announced a packet, out of the events before its delivery, the
/// last one first: the one in whose handler, or in the thread that it woke (PREEMPT_RT), NET_RX was
/// raised. Where that is not recorded, the last one.
fn announced(since: &[&Event]) -> Option<(u32, MonotonicNs)> {
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
    // Of handlers that had ended before, whether the wake-up of that thread came directly after.
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

/// The events of a CPU before an instant, the last one first.
fn before<'c>(
    context: &'c TraceContext,
    cpu: u16,
    at: MonotonicNs,
) -> impl Iterator<Item = &'c Event> + use<'c> {
    let here = context.on(cpu);
    let end = here.partition_point(|place| context.events[*place as usize].at <= at);
    let places = here[..end].iter().rev().take(SEARCHED_EVENTS);
    let events = places.map(|place| &context.events[*place as usize]);
    events.filter(|event| !matches!(event.what, EventKind::Context { .. }))
}

/// The socket whose waiter was woken: nothing but the wake-up itself follows its event.
fn socket(context: &TraceContext, wake: &WakeMark) -> Option<Socket> {
    let is_of_it = |event: &&Event| match event.what {
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::Migrate { task, .. } => task == wake.task,
        EventKind::IpiSend { .. } => true,
        _ => false,
    };
    let event = before(context, wake.cpu, wake.at).find(|event| !is_of_it(event))?;
    match event.what {
        EventKind::SocketReady { family, protocol } => {
            Some(Socket { at: event.at, family, protocol })
        }
        _ => None,
    }
}

/// The packet that went up last, in the same softirq or thread.
fn received(context: &TraceContext, wake: &WakeMark) -> Option<Received> {
    let is_same = |event: &&Event| {
        !matches!(event.what, EventKind::Switch { .. } | EventKind::SoftirqEntry { vector: NET_RX })
    };
    let mut here = before(context, wake.cpu, wake.at).take_while(is_same);
    here.find_map(|event| match event.what {
        EventKind::PacketReceived { device, bytes } => {
            Some(Received { at: event.at, device, bytes })
        }
        _ => None,
    })
}

/// The poll in which the wake-up came: it is the first that ends after it, before its softirq does,
/// or its thread leaves.
fn poll(context: &TraceContext, wake: &WakeMark, softirq: bool) -> Option<(MonotonicNs, u32)> {
    let here = context.on(wake.cpu);
    let begin = here.partition_point(|place| context.events[*place as usize].at < wake.at);
    let after = here[begin..].iter().take(SEARCHED_EVENTS);
    let mut after = after.map(|place| &context.events[*place as usize]);
    after.find_map(|event| match event.what {
        EventKind::NapiPoll { work, .. } => Some(Some((event.at, work))),
        EventKind::SoftirqExit { vector: NET_RX } => Some(None),
        EventKind::Switch { .. } if !softirq => Some(None),
        _ => None,
    })?
}

/// The thread of this machine that sent the packet: no device's interrupt came between, and it
/// raised the softirq itself, outside of any interrupt.
pub fn sender(context: &TraceContext, wake: &WakeMark) -> Option<Tid> {
    if packet(context, wake)?.irq.is_some() {
        return None;
    }
    let (_, mut since) = delivery(context, wake)?;
    let raises = |event: &&Event| event.what == EventKind::SoftirqRaise { vector: NET_RX };
    let at = since.find(raises)?.at;
    if context.interrupt(wake.cpu, at).is_some() {
        return None;
    }
    context.on_cpu(wake.cpu, at)?.tid.filter(|tid| *tid != Tid::IDLE && *tid != wake.task)
}

/// When the softirq began that woke, and the events of its CPU before, back to the delivery before.
fn delivery<'c>(
    context: &'c TraceContext,
    wake: &WakeMark,
) -> Option<(MonotonicNs, impl Iterator<Item = &'c Event> + use<'c>)> {
    if wake.interrupt != Some(Interrupt::Soft(NET_RX)) {
        return None;
    }
    let mut before = before(context, wake.cpu, wake.at);
    let is_entry = |event: &&Event| event.what == EventKind::SoftirqEntry { vector: NET_RX };
    let began = before.find(is_entry)?.at;
    let since = |event: &&Event| event.what != EventKind::SoftirqExit { vector: NET_RX };
    Some((began, before.take_while(since)))
}

/// The sleep that a wake-up ended.
fn sleep_before(timeline: &ThreadTimeline, at: MonotonicNs) -> Option<&ThreadSpan> {
    let span = timeline.span(MonotonicNs(at.ns() - 1))?;
    let asleep =
        matches!(span.doing, ThreadState::Sleeping | ThreadState::Blocked | ThreadState::LockWait);
    asleep.then_some(span)
}

fn wait(timeline: &ThreadTimeline, sleep: &ThreadSpan) -> Wait {
    let at = sleep.from;
    if sleep.doing == ThreadState::LockWait || timeline.lock(at).is_some() {
        Wait::Lock
    } else if timeline.reclaims_at(at) {
        Wait::Reclaim
    } else if sleep.doing == ThreadState::Blocked && timeline.faults_at(at) {
        Wait::PageFault
    } else if sleep.doing == ThreadState::Blocked {
        Wait::Uninterruptible
    } else {
        Wait::Sleep
    }
}
