//! Conversion of each kind of event to marks.

use super::Detail::{Address, Number, Span, Text};
use super::open::OpenSpan;
use super::{Detail, Details, Extent, Lane, Mark, Marks, label};
use crate::format::escape_unsafe;
use punctual_core::event::{Futex, PointKind};
use punctual_core::{Event, EventKind, MonotonicNs, Names, Tid};
use std::borrow::Cow;

pub fn describe_event<'a>(marks: &mut Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    match event.what {
        EventKind::Switch { .. }
        | EventKind::Waking { .. }
        | EventKind::Wakeup { .. }
        | EventKind::Migrate { .. } => {}
        EventKind::Fork { .. }
        | EventKind::Exec
        | EventKind::Exit
        | EventKind::PiSetPrio { .. }
        | EventKind::Signal { .. } => describe_scheduling(marks, event, out),
        EventKind::IrqEntry { .. }
        | EventKind::IrqExit { .. }
        | EventKind::VectorEntry { .. }
        | EventKind::VectorExit { .. }
        | EventKind::SoftirqRaise { .. }
        | EventKind::SoftirqEntry { .. }
        | EventKind::SoftirqExit { .. }
        | EventKind::IpiSend { .. }
        | EventKind::NapiPoll { .. }
        | EventKind::PacketReceived { .. }
        | EventKind::SocketReady { .. }
        | EventKind::IdleEnter { .. }
        | EventKind::IdleExit
        | EventKind::Frequency { .. } => describe_cpu_work(marks, event, out),
        EventKind::HrtimerStart { .. }
        | EventKind::HrtimerCancel { .. }
        | EventKind::HrtimerExpireEntry { .. }
        | EventKind::HrtimerExpireExit { .. }
        | EventKind::TimerStart { .. }
        | EventKind::TimerExpireEntry { .. }
        | EventKind::TimerExpireExit { .. } => describe_timers(marks, event, out),
        EventKind::Point { .. }
        | EventKind::Call { .. }
        | EventKind::Sample { .. }
        | EventKind::Lost { .. } => describe_own_event(marks, event, out),
        EventKind::BlockIssue { .. }
        | EventKind::BlockComplete { .. }
        | EventKind::JournalStart { .. }
        | EventKind::JournalEnd { .. }
        | EventKind::MmcStart { .. }
        | EventKind::MmcDone { .. } => describe_storage(marks, event, out),
        _ => describe_thread_work(marks, event, out),
    }
}

fn describe_scheduling<'a>(marks: &Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let (name, details): (&str, Details<'a>) = match event.what {
        EventKind::Fork { child } => (
            "fork",
            vec![("child", task_detail(marks.names, child)), ("tid", Number(child.0.into()))],
        ),
        EventKind::Exec => ("exec", Vec::new()),
        EventKind::Exit => ("exit", Vec::new()),
        EventKind::PiSetPrio { task: other, old, new } => (
            "priority inherited",
            vec![
                ("task", task_detail(marks.names, other)),
                ("old", Number(old.into())),
                ("new", Number(new.into())),
            ],
        ),
        EventKind::Signal { task: other, signal } => (
            "signal sent",
            vec![("task", task_detail(marks.names, other)), ("signal", Number(signal.into()))],
        ),
        _ => return,
    };
    out.push(instant_mark(event, in_thread(event), name, details));
}

fn describe_cpu_work<'a>(marks: &mut Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let (names, cpu, at) = (marks.names, event.cpu, event.at);
    let begun = |name: Cow<'a, str>| OpenSpan {
        since: at,
        name,
        details: interrupted_task(names, event.tid),
    };
    match event.what {
        EventKind::IrqEntry { irq } => {
            marks.begin_span(Lane::Interrupts(cpu), begun(names.irq_name(irq).into()), out)
        }
        EventKind::IrqExit { irq, handled } => {
            let details = vec![("handled", Text(if handled { "yes" } else { "no" }.into()))];
            marks.end_span(Lane::Interrupts(cpu), at, || names.irq_name(irq).into(), details, out);
        }
        EventKind::VectorEntry { vector } => {
            marks.begin_span(Lane::Vectors(cpu), begun(label::vector_name(names, vector)), out);
        }
        EventKind::VectorExit { vector } => {
            marks.end_span(
                Lane::Vectors(cpu),
                at,
                || label::vector_name(names, vector),
                Vec::new(),
                out,
            );
        }
        EventKind::SoftirqEntry { vector } => {
            marks.begin_span(Lane::Softirqs(cpu), begun(label::softirq_name(names, vector)), out);
        }
        EventKind::SoftirqExit { vector } => {
            marks.end_span(
                Lane::Softirqs(cpu),
                at,
                || label::softirq_name(names, vector),
                Vec::new(),
                out,
            );
        }
        EventKind::SoftirqRaise { vector } => {
            let which = ("softirq", Text(label::softirq_name(names, vector)));
            out.push(instant_mark(event, Lane::OnCpu(cpu), "softirq raised", vec![which]));
        }
        EventKind::IpiSend { target } => {
            out.push(instant_mark(
                event,
                Lane::OnCpu(cpu),
                "IPI sent",
                vec![("to CPU", Number(target.into()))],
            ));
        }
        EventKind::NapiPoll { work, budget } => {
            let details = vec![("work", Number(work.into())), ("budget", Number(budget.into()))];
            out.push(instant_mark(event, Lane::OnCpu(cpu), "napi poll", details));
        }
        EventKind::PacketReceived { device, bytes } => {
            let device = ("device", Text(escape_unsafe(&device.to_string()).into()));
            let details = vec![device, ("bytes", Number(bytes.into()))];
            out.push(instant_mark(event, Lane::OnCpu(cpu), "packet received", details));
        }
        EventKind::SocketReady { family, protocol } => {
            let family = ("family", Number(family.into()));
            let details = vec![family, ("protocol", Number(protocol.into()))];
            out.push(instant_mark(event, Lane::OnCpu(cpu), "socket ready", details));
        }
        EventKind::IdleEnter { state } => {
            let open =
                OpenSpan { since: at, name: label::idle_state(names, state), details: Vec::new() };
            marks.begin_span(Lane::Idle(cpu), open, out);
        }
        EventKind::IdleExit => {
            marks.end_span(Lane::Idle(cpu), at, || "idle state".into(), Vec::new(), out)
        }
        EventKind::Frequency { khz } => {
            out.push(Mark::new(Lane::Frequency(cpu), "frequency", Extent::Value(at, khz.into())));
        }
        _ => {}
    }
}

fn describe_timers<'a>(marks: &mut Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let (names, at, lane) = (marks.names, event.at, Lane::Timers(event.cpu));
    let on_cpu = Lane::OnCpu(event.cpu);
    match event.what {
        EventKind::HrtimerStart { timer, expires, .. } => {
            let expires = ("expires in", Span(expires - at));
            out.push(instant_mark(
                event,
                on_cpu,
                "hrtimer started",
                vec![("timer", Address(timer)), expires],
            ));
        }
        EventKind::HrtimerCancel { timer } => {
            out.push(instant_mark(
                event,
                on_cpu,
                "hrtimer cancelled",
                vec![("timer", Address(timer))],
            ));
        }
        EventKind::HrtimerExpireEntry { timer, expires, .. } => {
            let mut details = vec![("timer", Address(timer))];
            details.extend(expires.map(|expires| ("late by", Span(at - expires))));
            marks.begin_span(lane, OpenSpan { since: at, name: "hrtimer".into(), details }, out);
        }
        EventKind::HrtimerExpireExit { .. } => {
            marks.end_span(lane, at, || "hrtimer".into(), Vec::new(), out)
        }
        EventKind::TimerStart { timer, expires } => {
            let details =
                vec![("timer", Address(timer)), ("expires (jiffies)", Number(expires as i64))];
            out.push(instant_mark(event, on_cpu, "timer started", details));
        }
        EventKind::TimerExpireEntry { timer, function } => {
            let name = format!("timer {}", label::symbol_name(names, function)).into();
            marks.begin_span(
                lane,
                OpenSpan { since: at, name, details: vec![("timer", Address(timer))] },
                out,
            );
        }
        EventKind::TimerExpireExit { .. } => {
            marks.end_span(lane, at, || "timer".into(), Vec::new(), out)
        }
        _ => {}
    }
}

/// Descriptions of punctual's own points, probes and marks.
fn describe_own_event<'a>(marks: &mut Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let (names, at, tid) = (marks.names, event.at, event.tid);
    match event.what {
        EventKind::Point { point, kind, count, values } => {
            let (lane, name) = (Lane::Points(tid, point), label::point_name(names, point));
            let values = &values[..usize::from(count).min(2)];
            for (place, value) in values.iter().enumerate() {
                let lane = Lane::Values(tid, point, place as u8);
                out.push(Mark::new(lane, name.clone(), Extent::Value(at, *value)));
            }
            let mut details: Details<'a> = ["value", "second value"]
                .into_iter()
                .zip(values.iter().map(|v| Number(*v)))
                .collect();
            match kind {
                PointKind::Point => out.push(instant_mark(event, lane, name, details)),
                PointKind::Begin => marks.begin_inside(lane, OpenSpan { since: at, name, details }),
                PointKind::End => {
                    let at_end = ["value at end", "second value at end"];
                    details.iter_mut().zip(at_end).for_each(|(detail, name)| detail.0 = name);
                    marks.end_span(lane, at, || name, details, out);
                }
            }
        }
        EventKind::Call { function, began, depth, left, argument } => {
            let shape = Extent::Span(began, at.max(began));
            let mut call =
                Mark::new(Lane::Calls(tid), label::function_name(names, function), shape);
            call.function = Some(function);
            call.details.push(("depth", Number(depth.into())));
            call.details.extend(argument.map(|argument| ("argument", Address(argument))));
            call.details.extend(left.then_some(("note", Text("left without returning".into()))));
            out.push(call);
        }
        EventKind::Sample { series, due } => {
            let end = at.max(due);
            let lane = marks.reserve_slot(|slot| Lane::Samples(tid, series, slot), due, end);
            let mut sample =
                Mark::new(lane, format!("sample of series {series}"), Extent::Span(due, end));
            sample.details.push(("latency", Span(at - due)));
            sample.wake = marks.wakes.wake_of(tid, due);
            out.push(sample);
        }
        EventKind::Lost { count, since } => describe_loss(marks, event, (count, since), out),
        _ => {}
    }
}

fn describe_loss<'a>(
    marks: &mut Marks<'a>,
    event: &Event,
    (count, since): (u64, MonotonicNs),
    out: &mut Vec<Mark<'a>>,
) {
    let of_points = event.cpu == Event::NO_CPU;
    let concerned = |lane: Lane| match lane {
        Lane::Points(tid, _) => of_points && tid == event.tid,
        _ if of_points => false,
        lane => lane.cpu().is_none_or(|cpu| cpu == event.cpu),
    };
    marks.cut_spans(concerned, since, out);
    let lane = if of_points { Lane::InThread(event.tid) } else { Lane::OnCpu(event.cpu) };
    let mut gap = Mark::new(lane, "events lost", Extent::Span(since.min(event.at), event.at));
    gap.details.push(("events", Number(i64::try_from(count).unwrap_or(i64::MAX))));
    out.push(gap);
}

fn describe_storage<'a>(marks: &mut Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let (names, at) = (marks.names, event.at);
    match event.what {
        EventKind::BlockIssue { device, sector, bytes, write } => {
            let details = vec![
                ("device", Text(label::device_name(names, device))),
                ("sector", Number(sector as i64)),
                ("bytes", Number(bytes.into())),
                ("issued by", task_detail(names, event.tid)),
            ];
            let name = if write { "write" } else { "read" }.into();
            marks.request_begins(device, sector, OpenSpan { since: at, name, details });
        }
        EventKind::BlockComplete { device, sector, error, .. } => {
            let details =
                if error == 0 { Vec::new() } else { vec![("error", Number(error.into()))] };
            marks.request_ends((device, sector), at, details, out);
        }
        EventKind::JournalStart { device, transaction } => {
            let details = vec![
                ("transaction", Number(transaction as i64)),
                ("by", task_detail(names, event.tid)),
            ];
            let name = format!("journal commit on {}", label::device_name(names, device)).into();
            marks.begin_span(Lane::Journal(device), OpenSpan { since: at, name, details }, out);
        }
        EventKind::JournalEnd { device, .. } => {
            marks.end_span(Lane::Journal(device), at, || "journal commit".into(), Vec::new(), out);
        }
        EventKind::MmcStart { opcode, blocks } => {
            let details =
                vec![("opcode", Number(opcode.into())), ("blocks", Number(blocks.into()))];
            marks.begin_span(
                Lane::Mmc,
                OpenSpan { since: at, name: format!("MMC command {opcode}").into(), details },
                out,
            );
        }
        EventKind::MmcDone { opcode, error } => {
            let details =
                if error == 0 { Vec::new() } else { vec![("error", Number(error.into()))] };
            marks.end_span(Lane::Mmc, at, || format!("MMC command {opcode}").into(), details, out);
        }
        _ => {}
    }
}

/// Describes the work of a thread in the kernel.
fn describe_thread_work<'a>(marks: &mut Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let (names, at, tid) = (marks.names, event.at, event.tid);
    match event.what {
        EventKind::SyscallEnter { number, args } => {
            let name = label::syscall_name(names, number);
            let details =
                vec![("first argument", Address(args[0])), ("second argument", Address(args[1]))];
            marks.begin_span(Lane::Syscalls(tid), OpenSpan { since: at, name, details }, out);
        }
        EventKind::SyscallExit { number, result } => {
            let details = vec![("result", Number(result))];
            marks.end_span(
                Lane::Syscalls(tid),
                at,
                || label::syscall_name(names, number),
                details,
                out,
            );
        }
        EventKind::FutexEnter { op, address } => {
            let open = OpenSpan {
                since: at,
                name: futex_name(op).into(),
                details: vec![("futex", Address(address))],
            };
            marks.begin_span(Lane::Futexes(tid), open, out);
        }
        EventKind::FutexExit { op, result } => {
            let details = vec![("result", Number(result.into()))];
            marks.end_span(Lane::Futexes(tid), at, || futex_name(op).into(), details, out);
        }
        EventKind::ContentionBegin { lock, flags } => {
            let details = vec![("lock", Address(lock)), ("flags", Address(flags.into()))];
            marks.begin_inside(
                Lane::Locks(tid),
                OpenSpan { since: at, name: "waits for a kernel lock".into(), details },
            );
        }
        EventKind::ContentionEnd { result, .. } => {
            let details = vec![("result", Number(result.into()))];
            marks.end_span(Lane::Locks(tid), at, || "waits for a kernel lock".into(), details, out);
        }
        EventKind::ReclaimBegin { order } => {
            let open = OpenSpan {
                since: at,
                name: "direct reclaim".into(),
                details: vec![("order", Number(order.into()))],
            };
            marks.begin_span(Lane::Reclaim(tid), open, out);
        }
        EventKind::ReclaimEnd { reclaimed } => {
            let details = vec![("pages", Number(reclaimed as i64))];
            marks.end_span(Lane::Reclaim(tid), at, || "direct reclaim".into(), details, out);
        }
        EventKind::WorkStart { function } => {
            let open = OpenSpan {
                since: at,
                name: label::symbol_name(names, function),
                details: Vec::new(),
            };
            marks.begin_span(Lane::Work(tid), open, out);
        }
        EventKind::WorkEnd { function } => {
            marks.end_span(
                Lane::Work(tid),
                at,
                || label::symbol_name(names, function),
                Vec::new(),
                out,
            );
        }
        _ => describe_memory(marks, event, out),
    }
}

fn describe_memory<'a>(marks: &Marks<'a>, event: &Event, out: &mut Vec<Mark<'a>>) {
    let sizes = |requested: u64, allocated: u64| {
        vec![("requested", Number(requested as i64)), ("allocated", Number(allocated as i64))]
    };
    let (name, details): (&str, Details<'a>) = match event.what {
        EventKind::PageFault { address, ip, user } => (
            if user { "page fault" } else { "page fault in the kernel" },
            vec![("address", Address(address)), ("instruction", Address(ip))],
        ),
        EventKind::PageAlloc { order, .. } => {
            ("page allocated", vec![("order", Number(order.into()))])
        }
        EventKind::Kmalloc { requested, allocated, .. } => ("kmalloc", sizes(requested, allocated)),
        EventKind::CacheAlloc { requested, allocated, .. } => {
            ("slab allocation", sizes(requested, allocated))
        }
        EventKind::Kfree { object } => ("kfree", vec![("object", Address(object))]),
        EventKind::CacheFree { object } => ("slab free", vec![("object", Address(object))]),
        EventKind::Tracepoint { tracepoint, record } => {
            let format = marks.names.tracepoints.get(tracepoint.0 as usize);
            let fields =
                format.map(|format| ("fields", Text(format.format_fields(&record).into())));
            let details = fields.into_iter().collect();
            return out.push(instant_mark(
                event,
                in_thread(event),
                marks.names.tracepoint_name(tracepoint),
                details,
            ));
        }
        EventKind::Unthrottled { task: other } => {
            ("quota let go", vec![("task", task_detail(marks.names, other))])
        }
        EventKind::Interrupted { call: Some(number) } => {
            ("interrupted in", vec![("call", Text(marks.names.syscall_name(number).into()))])
        }
        EventKind::Context { context, site, .. } => {
            let irqs = match context.irqs_off {
                Some(true) => "disabled",
                Some(false) => "enabled",
                None => "not known",
            };
            let site =
                marks.names.symbols.get(&site).map(|site| ("at", Text(escape_unsafe(site).into())));
            ("context", [("interrupts", Text(irqs.into()))].into_iter().chain(site).collect())
        }
        EventKind::Stack { stack } => {
            ("stack", vec![("frames", Text(marks.names.stack_functions(stack).join(" ← ").into()))])
        }
        _ => return,
    };
    out.push(instant_mark(event, in_thread(event), name, details));
}

fn futex_name(op: Futex) -> &'static str {
    match op {
        Futex::Wait => "futex wait",
        Futex::LockPi => "futex lock (PI)",
        Futex::Wake => "futex wake",
        Futex::UnlockPi => "futex unlock (PI)",
        Futex::Other => "futex",
    }
}

/// Idle tasks are no threads: their events belong to the CPU.
fn in_thread(event: &Event) -> Lane {
    if event.tid == Tid::IDLE && event.cpu != Event::NO_CPU {
        Lane::OnCpu(event.cpu)
    } else {
        Lane::InThread(event.tid)
    }
}

fn instant_mark<'a>(
    event: &Event,
    lane: Lane,
    name: impl Into<Cow<'a, str>>,
    details: Details<'a>,
) -> Mark<'a> {
    Mark::new(lane, name, Extent::Instant(event.at)).with_details(details)
}

fn task_detail<'a>(names: &'a Names, tid: Tid) -> Detail<'a> {
    match names.tasks.get(&tid) {
        Some(task) if tid != Tid::IDLE => Text(Cow::Borrowed(&task.comm)),
        _ => Text(names.task_name(tid).into()),
    }
}

fn interrupted_task<'a>(names: &'a Names, tid: Tid) -> Details<'a> {
    vec![("interrupted", task_detail(names, tid)), ("tid", Number(tid.0.into()))]
}
