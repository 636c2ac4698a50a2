//! Converts records of any format to events, names and counts.

use crate::bytes::until_nul;
pub(crate) use crate::clock::Head;
use crate::facts::TracepointCount;
use crate::graph::Graph;
use crate::marks::MomentMarks;
use crate::meaning::{FieldEncoding, Meaning, Values, futex_kind, to_tid, vector_name};
use crate::quick::IdMap;
use crate::symbols::Symbols;
use crate::syscall::{NumberedCalls, TracedSyscall};
use punctual_core::event::{
    CpuContext, Event, EventKind, Futex, Group, Names, RecordedSource, StackId, TaskName, Tid,
};
use punctual_core::{CpuSet, Missing, MonotonicNs};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

#[derive(Clone, Debug)]
pub(crate) struct DecodedTracepoint {
    pub(crate) name: String,
    pub(crate) meaning: Option<Meaning>,
    /// The system call, for an event of the system `syscalls`.
    pub(crate) call: Option<TracedSyscall>,
    vector: Option<&'static str>,
    count: TracepointCount,
    /// Records without the fields that its meaning needs.
    broken: u64,
}

/// Limits for hostile files.
const MOST_TRACEPOINTS: usize = 1 << 14;
const MOST_TASKS: usize = 1 << 20;
const MOST_NAMES: usize = 1 << 16;
const MOST_CPUS: usize = 1 << 14;
const MOST_STACKS: usize = 1 << 14;
const MOST_PROCESSES_BEHIND: usize = 1 << 20;

#[derive(Clone, Copy, Default, Debug)]
struct DecodedCpu {
    began: bool,
    last: i64,
    recorded: u64,
    lost: u64,
    /// The task that the last event, a switch, left: its own next events are within the switch.
    leaving: Option<Tid>,
}

/// Collects the content of records.
#[derive(Default, Debug)]
pub(crate) struct Decoder {
    tracepoints: Vec<DecodedTracepoint>,
    cpus: Vec<DecodedCpu>,
    /// The first and the last instant.
    first: Option<(i64, i64)>,
    comms: IdMap<Tid, [u8; COMM]>,
    /// The names set last, as almost every event repeats some.
    named: Named,
    processes: IdMap<Tid, u32>,
    futexes: IdMap<Tid, Futex>,
    irqs: BTreeMap<u32, String>,
    vectors: BTreeMap<u8, String>,
    /// Names in place of numbers; see [`Decoder::intern_name`].
    interned: HashMap<Vec<u8>, u32>,
    /// Functions that occurred by address, and their names once found.
    addresses: HashSet<u64>,
    symbols: BTreeMap<u64, String>,
    pub(crate) calls: NumberedCalls,
    pub(crate) marks: MomentMarks,
    pub(crate) graph: Graph,
    /// The functions of the traced kernel, where the file has them.
    pub(crate) kernel: Symbols,
    /// Kernel stacks, and their places.
    stacks: HashMap<Vec<u64>, u32>,
    pub(crate) unreadable: u64,
    /// A loss of unknown size.
    pub(crate) lost_uncounted: bool,
    /// Losses without a known CPU.
    pub(crate) lost_anywhere: u64,
    /// The position where the trace breaks off, if it does.
    pub(crate) cut_off: Option<String>,
    /// The stated number of entries and the number found, if that is lower.
    pub(crate) entries: Option<(u64, u64)>,
}

pub(crate) const COMM: usize = 16;

/// A name at the place of its task's id.
#[derive(Debug)]
struct Named(Box<[(Tid, [u8; COMM]); NAMED_TASKS]>);
const NAMED_TASKS: usize = 1 << 8;

impl Default for Named {
    fn default() -> Named {
        Named(Box::new([(Tid::IDLE, [0; COMM]); NAMED_TASKS]))
    }
}

/// The range of numbers for function names that text has instead of addresses: no kernel has code
/// there.
const FIRST_INTERNED: u64 = 1 << 12;
/// The end of that range, where the kernel's addresses may begin.
const FIRST_ADDRESS: u64 = 1 << 32;

impl Decoder {
    /// Adds a tracepoint, or finds it; `None` beyond the limit.
    pub(crate) fn intern_tracepoint(&mut self, system: Option<&str>, name: &str) -> Option<usize> {
        let full = system.map_or_else(|| name.to_owned(), |system| format!("{system}:{name}"));
        if let Some(found) = self.tracepoints.iter().position(|other| other.name == full) {
            return Some(found);
        }
        if self.tracepoints.len() >= MOST_TRACEPOINTS {
            return None;
        }
        let call = match system {
            None | Some("syscalls") => TracedSyscall::of_tracepoint(name),
            Some(_) => None,
        };
        self.tracepoints.push(DecodedTracepoint {
            name: full,
            meaning: Meaning::from_tracepoint(system, name),
            call,
            vector: vector_name(name),
            count: TracepointCount::default(),
            broken: 0,
        });
        Some(self.tracepoints.len() - 1)
    }

    pub(crate) fn tracepoint_at(&self, tracepoint: usize) -> &DecodedTracepoint {
        &self.tracepoints[tracepoint]
    }

    /// Counts a record of a tracepoint that has no meaning here, or lacks fields.
    pub(crate) fn count_record(&mut self, tracepoint: usize, head: Head) {
        self.tracepoints[tracepoint].count.seen += 1;
        self.on_cpu(head);
    }

    /// The same; keeps the context of the record as evidence.
    pub(crate) fn pass_with_context(
        &mut self,
        tracepoint: usize,
        head: Head,
        out: &mut VecDeque<Event>,
    ) {
        self.count_record(tracepoint, head);
        let (Some(tid), Some(mut context)) = (head.tid, head.context) else { return };
        let section = match self.tracepoints[tracepoint].name.rsplit(':').next() {
            Some("irq_disable") => Some(true),
            Some("irq_enable") => Some(false),
            _ => None,
        };
        context.irqs_off = section.or(context.irqs_off);
        let switching = self.cpu_mut(head.cpu).is_some_and(|cpu| cpu.leaving == Some(tid));
        if section.is_none() && !switching && !shows_enabled(context) {
            return;
        }
        let name = self.tracepoints[tracepoint].name.clone();
        let site = match head.site {
            0 => self.intern_name(name.as_bytes()).unwrap_or_default() as u64,
            site => site,
        };
        let what = EventKind::Context { context, site, section: section.is_some() };
        out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
    }

    /// Takes a record and appends its event, if it has one.
    pub(crate) fn decode_record(
        &mut self,
        tracepoint: usize,
        meaning: Meaning,
        head: Head,
        values: &Values<'_>,
        out: &mut VecDeque<Event>,
    ) {
        let vector = self.tracepoints[tracepoint].vector;
        for (id, comm) in meaning.named_tasks() {
            if let Some(tid) = values.numbers[*id].and_then(to_tid) {
                self.set_comm(tid, values.texts[*comm]);
            }
        }
        if meaning.is_mark() {
            self.add_mark(meaning, head, values);
            return self.pass_with_context(tracepoint, head, out);
        }
        self.count_record(tracepoint, head);
        let Some(what) = meaning.to_event(values) else {
            let is_broken = !meaning.is_event_at_times();
            self.tracepoints[tracepoint].broken += u64::from(is_broken);
            return;
        };
        // The leaving task is in the record itself; a tool may state another running task.
        let of_record = match meaning {
            Meaning::Switch => values.numbers[1].and_then(to_tid),
            Meaning::Exit => values.numbers[1].and_then(to_tid),
            _ => None,
        };
        let Some(tid) = of_record.or(head.tid) else { return };
        if let Some(cpu) = self.cpu_mut(head.cpu) {
            cpu.leaving = match meaning {
                Meaning::Switch => Some(tid),
                _ => cpu.leaving.filter(|leaving| *leaving == tid),
            };
        }
        self.learn_names(meaning, vector, &what, values);
        if let EventKind::SyscallEnter { number, args } = what {
            self.futex_entered(tid, number, args, head, out);
        }
        out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
        if let EventKind::SyscallExit { number, result } = what {
            self.futex_left(tid, number, result, head, out);
        }
        self.tracepoints[tracepoint].count.used += 1;
        // A system call begins and ends with interrupts enabled.
        let calls = matches!(meaning, Meaning::SyscallEnter | Meaning::SyscallExit);
        if let Some(context) = head.context.filter(|context| !calls && shows_enabled(*context)) {
            let what = EventKind::Context { context, site: head.site, section: false };
            out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
            if head.site >= FIRST_ADDRESS && self.addresses.len() < MOST_NAMES {
                self.addresses.insert(head.site);
            }
        }
    }

    fn add_mark(&mut self, meaning: Meaning, head: Head, values: &Values<'_>) {
        if meaning == Meaning::IrqNoise
            && let Some(irq) = values.numbers[0].and_then(|irq| u32::try_from(irq).ok())
        {
            self.set_irq_name(irq, values.texts[1]);
        }
        if meaning == Meaning::NmiNoise {
            self.vectors.entry(2).or_insert_with(|| "NMI".to_owned());
        }
        self.marks.on_record(meaning, head, values);
    }

    /// Takes a line of the function tracer: where its task was, and who called that.
    pub(crate) fn on_function_line(
        &mut self,
        tracepoint: usize,
        head: Head,
        out: &mut VecDeque<Event>,
    ) {
        self.count_record(tracepoint, head);
        let Some(tid) = head.tid else { return };
        let unknown = CpuContext { irqs_off: None, ..CpuContext::of_record(0, 0) };
        let context = head.context.unwrap_or(unknown);
        let what = EventKind::Context { context, site: head.site, section: false };
        out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
    }

    /// Takes the stack of the task that was on this CPU, innermost first: below the interrupt or
    /// the tracer in the switch that it was taken in.
    pub(crate) fn on_stack(&mut self, frames: &[Vec<u8>], head: Head, out: &mut VecDeque<Event>) {
        let Some(tid) = head.tid else { return };
        let of_task = below_tracer(frames);
        // A thread of the kernel is named after the function that it runs.
        if let Some(place) = of_task.iter().position(|frame| frame == b"kthread")
            && let Some(function) = place.checked_sub(1).map(|place| &of_task[place])
            && !self.comms.contains_key(&tid)
        {
            self.set_comm(tid, &[&function[..function.len().min(COMM - 3)], b"()"].concat());
        }
        let next = self.stacks.len();
        let sites: Vec<u64> =
            of_task.iter().filter_map(|frame| Some(self.intern_name(frame)? as u64)).collect();
        let place = match self.stacks.get(&sites) {
            Some(place) => *place,
            None if next < MOST_STACKS && !sites.is_empty() => {
                self.stacks.insert(sites, next as u32);
                next as u32
            }
            None => return,
        };
        let what = EventKind::Stack { stack: StackId(place) };
        out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
    }

    /// Takes a system call named by its tracepoint.
    pub(crate) fn take_call(
        &mut self,
        tracepoint: usize,
        number: Option<u32>,
        values: &Values<'_>,
        head: Head,
        out: &mut VecDeque<Event>,
    ) {
        let Some(call) = self.tracepoints[tracepoint].call.clone() else {
            return self.count_record(tracepoint, head);
        };
        let number = number.unwrap_or_else(|| self.calls.number_of(&call.name));
        self.calls.set_name(number, &call.name);
        let mut of_raw = *values;
        of_raw.numbers[0] = Some(number.into());
        let meaning = if call.enter { Meaning::SyscallEnter } else { Meaning::SyscallExit };
        self.decode_record(tracepoint, meaning, head, &of_raw, out);
    }

    /// Events are missing on this CPU before this instant; `count` of them, if known.
    pub(crate) fn on_loss(
        &mut self,
        cpu: u16,
        at: i64,
        count: Option<u64>,
        out: &mut VecDeque<Event>,
    ) {
        self.lost_uncounted |= count.is_none();
        let count = count.unwrap_or(1);
        let first = self.first.map_or(at, |(first, _)| first).min(at);
        let Some(entry) = self.cpu_mut(cpu) else {
            self.unreadable += 1;
            return;
        };
        let since = if entry.began { entry.last.min(at) } else { first };
        entry.lost = entry.lost.saturating_add(count);
        (entry.began, entry.last) = (true, at);
        let what = EventKind::Lost { count, since: MonotonicNs(since) };
        out.push_back(Event { at: MonotonicNs(at), cpu, tid: Tid::IDLE, what });
    }

    /// Events of any CPU may be missing before this instant.
    pub(crate) fn lost_on_all(&mut self, at: i64, out: &mut VecDeque<Event>) {
        let began: Vec<usize> = (0..self.cpus.len()).filter(|of| self.cpus[*of].began).collect();
        for cpu in began {
            self.on_loss(cpu as u16, at, None, out);
        }
    }

    /// Events of one of several streams of a CPU are missing between two instants.
    pub(crate) fn lost_between(
        &mut self,
        cpu: u16,
        since: i64,
        at: i64,
        count: Option<u64>,
        out: &mut VecDeque<Event>,
    ) {
        self.lost_uncounted |= count.is_none();
        let count = count.unwrap_or(1);
        let Some(entry) = self.cpu_mut(cpu) else {
            self.unreadable += 1;
            return;
        };
        entry.lost = entry.lost.saturating_add(count);
        let what = EventKind::Lost { count, since: MonotonicNs(since.min(at)) };
        out.push_back(Event { at: MonotonicNs(at), cpu, tid: Tid::IDLE, what });
    }

    /// Whether any tracepoint has a meaning here.
    pub(crate) fn knows_any(&self) -> bool {
        let is_known = |known: &DecodedTracepoint| known.meaning.is_some() || known.call.is_some();
        self.tracepoints.iter().any(is_known)
    }

    /// Events that the file reports missing before or after its content.
    pub(crate) fn lost_outside(&mut self, cpu: u16, count: Option<u64>) {
        self.lost_uncounted |= count.is_none();
        match self.cpu_mut(cpu) {
            Some(entry) => entry.lost = entry.lost.saturating_add(count.unwrap_or(1)),
            None => self.unreadable += 1,
        }
    }

    /// The file states at its end the total number of lost events of a CPU.
    pub(crate) fn lost_at_least(&mut self, cpu: u16, count: u64) {
        if let Some(entry) = self.cpu_mut(cpu).filter(|_| count > 0) {
            entry.lost = entry.lost.max(count);
        }
    }

    /// The name of the kernel's function at an address, or the address.
    pub(crate) fn function_at(&self, address: u64) -> String {
        self.kernel.function_at(address).map_or_else(|| format!("{address:#x}"), str::to_owned)
    }

    /// Whether functions occurred whose names are not known yet.
    pub(crate) fn has_addresses(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// The file ends: names addresses, and adds the moments of the last calls.
    pub(crate) fn finish(&mut self) {
        self.graph.take_longest_calls().into_iter().for_each(|moment| self.marks.add(moment));
        for address in std::mem::take(&mut self.addresses) {
            if let Some(name) = self.kernel.function_at(address) {
                self.symbols.insert(address, name.to_owned());
            }
        }
    }

    /// Sets the name of a task.
    pub(crate) fn set_comm(&mut self, tid: Tid, comm: &[u8]) {
        let end = until_nul(comm).len().min(COMM - 1);
        if end == 0 || tid == Tid::IDLE || comm[..end] == *b"<...>" {
            return;
        }
        let mut fixed = [0; COMM];
        fixed[..end].copy_from_slice(&comm[..end]);
        let last = &mut self.named.0[tid.0 as usize % NAMED_TASKS];
        if *last == (tid, fixed) {
            return;
        }
        *last = (tid, fixed);
        if let Some(known) = self.comms.get_mut(&tid) {
            *known = fixed;
        } else if self.comms.len() < MOST_TASKS {
            self.comms.insert(tid, fixed);
        }
    }

    /// Sets the process of a task.
    pub(crate) fn set_process(&mut self, tid: Tid, process: u32) {
        if self.processes.len() < MOST_PROCESSES_BEHIND {
            self.processes.insert(tid, process);
        }
    }

    /// Sets the name of an interrupt.
    pub(crate) fn set_irq_name(&mut self, irq: u32, name: &[u8]) {
        if !name.is_empty() && !self.irqs.contains_key(&irq) && self.irqs.len() < MOST_NAMES {
            self.irqs.insert(irq, to_lossy_string(name));
        }
    }

    /// The number for a name in place of an address: constant per name.
    pub(crate) fn intern_name(&mut self, name: &[u8]) -> Option<i64> {
        let next = self.interned.len();
        let place = match self.interned.get(name) {
            Some(place) => *place,
            None if next < MOST_NAMES => {
                self.interned.insert(name.to_owned(), next as u32);
                next as u32
            }
            None => return None,
        };
        Some((FIRST_INTERNED + u64::from(place)) as i64)
    }

    fn learn_names(
        &mut self,
        meaning: Meaning,
        vector: Option<&'static str>,
        what: &EventKind,
        values: &Values<'_>,
    ) {
        match (what, vector) {
            (EventKind::IrqEntry { irq }, _) if meaning.slots()[1].form == FieldEncoding::Text => {
                self.set_irq_name(*irq, values.texts[1]);
            }
            (EventKind::VectorEntry { vector }, Some(name))
                if !self.vectors.contains_key(vector) =>
            {
                self.vectors.insert(*vector, name.to_owned());
            }
            (
                EventKind::WorkStart { function } | EventKind::TimerExpireEntry { function, .. },
                _,
            ) if self.addresses.len() < MOST_NAMES => {
                self.addresses.insert(*function);
            }
            _ => {}
        }
    }

    fn futex_entered(
        &mut self,
        tid: Tid,
        number: u32,
        args: [u64; 2],
        head: Head,
        out: &mut VecDeque<Event>,
    ) {
        if !self.calls.is_futex(number) {
            return;
        }
        let op = futex_kind(args[1]);
        if self.futexes.len() < MOST_TASKS {
            self.futexes.insert(tid, op);
        }
        let what = EventKind::FutexEnter { op, address: args[0] };
        out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
    }

    fn futex_left(
        &mut self,
        tid: Tid,
        number: u32,
        result: i64,
        head: Head,
        out: &mut VecDeque<Event>,
    ) {
        if self.calls.is_futex(number) {
            let op = self.futexes.remove(&tid).unwrap_or(Futex::Other);
            let what = EventKind::FutexExit { op, result: result as i32 };
            out.push_back(Event { at: MonotonicNs(head.at), cpu: head.cpu, tid, what });
        }
    }

    fn on_cpu(&mut self, head: Head) {
        let (first, last) = self.first.get_or_insert((head.at, head.at));
        (*first, *last) = ((*first).min(head.at), (*last).max(head.at));
        if let Some(cpu) = self.cpu_mut(head.cpu) {
            (cpu.began, cpu.last) = (true, head.at);
            cpu.recorded += 1;
        }
    }

    /// Adds the CPU, even without events.
    pub(crate) fn add_cpu(&mut self, cpu: u16) {
        let _ = self.cpu_mut(cpu);
    }

    fn cpu_mut(&mut self, cpu: u16) -> Option<&mut DecodedCpu> {
        let place = usize::from(cpu);
        if place >= self.cpus.len() {
            if place >= MOST_CPUS {
                return None;
            }
            self.cpus.resize(place + 1, DecodedCpu::default());
        }
        self.cpus.get_mut(place)
    }

    /// The first and the last instant of a record.
    pub(crate) fn covered_span(&self) -> Option<(i64, i64)> {
        self.first
    }

    /// Sets where the trace breaks off; the first reason counts.
    pub(crate) fn cut_off(&mut self, why: impl Into<String>) {
        self.cut_off.get_or_insert_with(|| why.into());
    }

    /// Records that are unreadable, or lack fields that their meaning needs.
    pub(crate) fn unreadable_count(&self) -> u64 {
        self.tracepoints.iter().fold(self.unreadable, |sum, known| sum.saturating_add(known.broken))
    }

    /// All reasons why events may be missing; `dropped` events were out of order.
    pub(crate) fn missing_events(&self, dropped: u64) -> Vec<Missing> {
        let lost =
            self.cpus.iter().fold(self.lost_anywhere, |sum, cpu| sum.saturating_add(cpu.lost));
        let counted = |count: u64, of: fn(u64) -> Missing| (count > 0).then(|| of(count));
        let lost = (lost > 0).then_some(Missing::Lost {
            count: lost,
            at_least: self.lost_uncounted || self.lost_anywhere > 0,
        });
        let missing_reasons = [
            self.cut_off.clone().map(|why| Missing::End { why }),
            lost,
            counted(self.unreadable_count(), |count| Missing::Unreadable { count }),
            counted(dropped, |count| Missing::OutOfOrder { count }),
            self.entries.map(|(stated, found)| Missing::Entries { stated, found }),
        ];
        missing_reasons.into_iter().flatten().collect()
    }

    /// The sources with their events and losses.
    pub(crate) fn recorded_sources(&self) -> Vec<RecordedSource> {
        let cpus = self.cpus.iter().enumerate();
        let used = cpus.filter(|(_, cpu)| cpu.began || cpu.lost > 0);
        used.map(|(number, cpu)| RecordedSource {
            name: format!("cpu {number}"),
            cpu: Some(number as u16),
            recorded: cpu.recorded,
            lost: cpu.lost,
            torn: 0,
        })
        .collect()
    }

    pub(crate) fn cpu_set(&self) -> CpuSet {
        let mut cpus = CpuSet::new();
        (0..self.cpus.len()).for_each(|cpu| cpus.insert(cpu));
        cpus
    }

    pub(crate) fn tracepoint_counts(&self) -> BTreeMap<String, TracepointCount> {
        self.tracepoints.iter().map(|known| (known.name.clone(), known.count)).collect()
    }

    /// The groups whose events are complete.
    pub(crate) fn complete_groups(&self) -> Vec<Group> {
        let has = |meaning: &Meaning| {
            self.tracepoints.iter().any(|known| known.meaning == Some(*meaning))
        };
        let calls = self.calls.has_names() && self.has_calls();
        let whole = |group: &Group| match group {
            Group::Syscall => calls,
            Group::Futex => calls && self.calls.knows_futex(),
            _ => {
                let needed = required_events(*group);
                !needed.is_empty() && needed.iter().all(has)
            }
        };
        Group::ALL.iter().copied().filter(whole).collect()
    }

    fn has_calls(&self) -> bool {
        let is_call = |known: &DecodedTracepoint| {
            known.call.is_some() || known.meaning == Some(Meaning::SyscallEnter)
        };
        self.tracepoints.iter().any(is_call)
    }

    /// Whether system calls have numbers of an unknown machine, which do not identify them.
    pub(crate) fn has_nameless_calls(&self) -> bool {
        self.has_calls() && !self.calls.has_names()
    }

    pub(crate) fn collect_names(&self) -> Names {
        let mut tasks: BTreeMap<Tid, TaskName> = BTreeMap::new();
        for (tid, comm) in &self.comms {
            tasks.entry(*tid).or_default().comm = to_lossy_string(until_nul(comm));
        }
        for (tid, process) in &self.processes {
            tasks.entry(*tid).or_default().process = *process;
        }
        let interned = self.interned.iter();
        let mut stacks: Vec<(&Vec<u64>, &u32)> = self.stacks.iter().collect();
        stacks.sort_by_key(|(_, place)| **place);
        Names {
            tasks,
            stacks: stacks.into_iter().map(|(sites, _)| sites.clone()).collect(),
            irqs: self.irqs.clone(),
            vectors: self.vectors.clone(),
            softirqs: SOFTIRQS.iter().zip(0..).map(|(name, at)| (at, (*name).to_owned())).collect(),
            syscalls: self.calls.call_names(),
            symbols: interned
                .map(|(name, place)| (FIRST_INTERNED + u64::from(*place), to_lossy_string(name)))
                .chain(self.symbols.iter().map(|(address, name)| (*address, name.clone())))
                .collect(),
            ..Names::default()
        }
    }
}

/// Whether the CPU took interrupts.
fn shows_enabled(context: CpuContext) -> bool {
    context.irqs_off == Some(false) && !context.hardirq
}

/// The events that a group needs for an absence to be significant.
fn required_events(group: Group) -> &'static [Meaning] {
    use Meaning::*;
    match group {
        Group::Sched => &[Switch],
        Group::Irq => &[IrqEntry, IrqExit],
        Group::Vectors => &[VectorEntry, VectorExit],
        Group::Softirq => &[SoftirqEntry, SoftirqExit],
        Group::Ipi => &[IpiSend],
        Group::Hrtimer => &[HrtimerStart, HrtimerEntry],
        Group::Timer => &[TimerStart, TimerEntry],
        Group::Lock => &[ContentionBegin, ContentionEnd],
        Group::Fault => &[FaultUser],
        Group::Page => &[PageAlloc],
        Group::Kmalloc => &[Kmalloc],
        Group::Block => &[BlockIssue, BlockComplete],
        Group::Jbd2 => &[JournalStart, JournalEnd],
        Group::Mmc => &[MmcStart, MmcDone],
        Group::Workqueue => &[WorkStart, WorkEnd],
        Group::Napi => &[NapiPoll],
        Group::Idle => &[Idle],
        Group::Frequency => &[Frequency],
        Group::Syscall | Group::Futex => &[],
    }
}

const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

fn to_lossy_string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where interrupts enter the kernel, beside those of x86: arm64, Arm, RISC-V, m68k.
const ENTRIES: [&[u8]; 7] = [
    b"el1_irq",
    b"el1h_64_irq",
    b"el0t_64_irq",
    b"__irq_svc",
    b"__irq_usr",
    b"do_irq",
    b"inthandler",
];

/// The functions of a stack below those of the interrupt that it was taken in, or of the tracer
/// that took it within the switch.
fn below_tracer(frames: &[Vec<u8>]) -> &[Vec<u8>] {
    let is_entry = |frame: &Vec<u8>| frame.starts_with(b"asm_") || ENTRIES.contains(&&frame[..]);
    if let Some(entered) = frames.iter().rposition(is_entry) {
        return &frames[entered + 1..];
    }
    let begins = |frame: &[u8], with: &[&[u8]]| with.iter().any(|with| frame.starts_with(with));
    let of_tracer =
        |frame: &&Vec<u8>| begins(frame, &[b"__ftrace_trace_", b"__trace_stack", b"probe_wakeup"]);
    let of_switch = |frame: &&Vec<u8>| begins(frame, &[b"__schedule", b"schedule", b"preempt_sch"]);
    match frames.iter().take_while(of_tracer).count() {
        0 => frames,
        tracer => &frames[tracer + frames[tracer..].iter().take_while(of_switch).count()..],
    }
}
