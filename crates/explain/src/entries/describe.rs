//! Descriptions of entries.

use super::{EntryKey, EntrySum};
use punctual_core::Nanos;
use punctual_core::entry::{
    EntryKind, Originator, SOFTIRQS, Served, TICK_DEPENDENCIES, Vector, Via,
};
use std::collections::BTreeMap;

/// The names of the numbers in entries.
#[derive(Default)]
pub struct EntryNames {
    /// Kernel functions by address, as in /proc/kallsyms, with an offset.
    pub symbols: BTreeMap<u64, String>,
    pub irqs: BTreeMap<u32, String>,
    /// Kernel stacks of originators, the innermost function first.
    pub stacks: BTreeMap<u32, Vec<u64>>,
}

/// Entries of one kind and originator.
#[derive(Clone, PartialEq, Debug)]
pub struct EntryRow {
    pub kind: EntryKind,
    pub what: String,
    /// The originator: `comm-tid [cpu]`, in the format of ftrace.
    pub originator: String,
    /// The first thing it caused, on its own CPU.
    pub through: Option<String>,
    /// The CPU of the originator.
    pub by_cpu: Option<u32>,
    /// Its thread; none for an interrupt.
    pub by_tid: Option<u32>,
    pub entries: u64,
    /// Occurrences as a further function of other entries.
    pub further: u64,
    pub total: Nanos,
    pub longest: Nanos,
    /// The kernel stack of the originator of the longest, the innermost function first.
    pub stack: Vec<String>,
}

/// Functions at which an interrupt or softirq began: the functions outside only happened to run.
const INTERRUPTS: [&str; 8] = [
    "sysvec_",
    "asm_sysvec_",
    "common_interrupt",
    "asm_common_interrupt",
    "handle_softirqs",
    "__do_softirq",
    "handle_irq_event",
    "el1_interrupt",
];
/// The prefixes of functions that a BPF program adds to the stack of its tracepoint.
const OURS: [&str; 5] = ["bpf_", "__bpf_", "__traceiter_", "__probestub_", "trace_call_bpf"];
/// The maximum number of functions shown of a stack.
const SHOWN_FUNCTIONS: usize = 16;

impl EntryNames {
    fn symbol_at(&self, address: u64) -> String {
        self.symbols.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }

    fn irq_name(&self, irq: u32) -> String {
        match self.irqs.get(&irq).filter(|name| !name.is_empty()) {
            Some(name) => format!("irq {irq} {name}"),
            None => format!("irq {irq}"),
        }
    }

    pub(super) fn describe_row(&self, key: &EntryKey, sum: &EntrySum) -> EntryRow {
        let kind = self.entry_kind(key);
        let is_shown = !matches!(kind, EntryKind::Tick | EntryKind::Observer);
        let shown_originator = sum.originator.filter(|_| is_shown);
        let is_named = |by: &Originator| !by.name.to_string().is_empty();
        let is_thread = |by: &Originator| {
            by.tid != 0 && (key.via.is_some() || self.stack_interrupt(by).is_none())
        };
        EntryRow {
            kind,
            what: self.describe_entry(kind, key, sum.tick_dependency),
            originator: self.describe_originator(kind, shown_originator.as_ref(), key.via),
            through: shown_originator
                .filter(is_named)
                .and_then(|_| Some(self.describe_via(key.via?))),
            by_cpu: shown_originator.map(|by| by.cpu),
            by_tid: shown_originator.filter(is_thread).map(|by| by.tid),
            entries: sum.entries,
            further: sum.further,
            total: sum.total,
            longest: sum.longest,
            stack: shown_originator.map(|by| self.shown_stack(&by)).unwrap_or_default(),
        }
    }

    fn entry_kind(&self, key: &EntryKey) -> EntryKind {
        let function = (key.function != 0).then(|| self.symbol_at(key.function));
        let is = |names: &[&str]| function.as_deref().is_some_and(|name| names.contains(&name));
        match key.served {
            _ if key.observer => EntryKind::Observer,
            // The second is its name before 6.9.
            Served::Vector(Vector::LocalTimer) | Served::Softirq(_)
                if is(&["tick_nohz_handler", "tick_sched_timer"]) =>
            {
                EntryKind::Tick
            }
            Served::Vector(Vector::LocalTimer) => EntryKind::Timer,
            Served::Vector(Vector::Reschedule) => EntryKind::Reschedule,
            Served::Vector(Vector::CallFunction | Vector::CallFunctionSingle) | Served::Call => {
                match is(&["flush_tlb_func"]) {
                    true => EntryKind::TlbShootdown,
                    false => EntryKind::FunctionCall,
                }
            }
            Served::Vector(Vector::IrqWork) => EntryKind::IrqWork,
            Served::Vector(_) => EntryKind::Other,
            Served::Irq(_) => EntryKind::Device,
            Served::Softirq(_) if function.is_some() => EntryKind::Timer,
            Served::Softirq(_) => EntryKind::Softirq,
            Served::Nmi(_) => EntryKind::Nmi,
            Served::Task { .. } if function.is_some() => EntryKind::Work,
            Served::Task { kernel: true, name } if name.to_string().starts_with("migration/") => {
                EntryKind::StopMachine
            }
            Served::Task { kernel: true, .. } => EntryKind::KernelThread,
            Served::Task { kernel: false, .. } => EntryKind::Task,
        }
    }

    fn describe_entry(&self, kind: EntryKind, key: &EntryKey, dependency: u32) -> String {
        let function = (key.function != 0).then(|| self.symbol_at(key.function));
        match (kind, key.served, function) {
            (EntryKind::Observer, ..) => "threads of punctual, and what they cause".to_owned(),
            (EntryKind::Tick, ..) => match kept_by(dependency) {
                None => "tick".to_owned(),
                Some(why) => format!("tick, kept by {why}"),
            },
            (EntryKind::Timer, _, Some(function)) => format!("timer {function}"),
            (EntryKind::Timer, ..) => "timer interrupt, nothing expired".to_owned(),
            (EntryKind::TlbShootdown | EntryKind::Reschedule | EntryKind::IrqWork, ..) => {
                kind.words().to_owned()
            }
            (EntryKind::FunctionCall, _, Some(function)) => format!("call {function}"),
            (EntryKind::Work, _, Some(function)) => format!("work {function}"),
            (_, Served::Irq(irq), _) => self.irq_name(irq),
            (_, Served::Softirq(number), _) => softirq_name(number),
            (_, Served::Nmi(handler), _) => format!("NMI {}", self.symbol_at(handler)),
            (_, Served::Vector(vector), _) if kind == EntryKind::Other => {
                vector.tracepoint_name().to_owned()
            }
            (_, Served::Task { name, .. }, _) => format!("{} {name}", kind.words()),
            _ => kind.words().to_owned(),
        }
    }

    fn describe_originator(
        &self,
        kind: EntryKind,
        by: Option<&Originator>,
        via: Option<Via>,
    ) -> String {
        let Some(by) = by else {
            return match kind {
                EntryKind::Tick => "the CPU itself",
                EntryKind::Observer => kind.words(),
                EntryKind::Device => "the device",
                EntryKind::Nmi | EntryKind::Other => "the hardware",
                _ => "unknown",
            }
            .to_owned();
        };
        let (name, tid, cpu) = (by.name.to_string(), by.tid, by.cpu);
        match via.filter(|_| name.is_empty()) {
            Some(via) => format!("{} [{cpu:03}]", self.describe_via(via)),
            None => match self.stack_interrupt(by).filter(|_| via.is_none()) {
                Some(function) => format!("{function} [{cpu:03}]"),
                // As in ftrace: the idle tasks have no number of their own.
                None if tid == 0 => format!("<idle>-0 [{cpu:03}]"),
                None => format!("{name}-{tid} [{cpu:03}]"),
            },
        }
    }

    fn describe_via(&self, via: Via) -> String {
        match via {
            Via::Irq(irq) => self.irq_name(irq),
            Via::Softirq(number) => softirq_name(number),
            Via::Call => EntryKind::FunctionCall.words().to_owned(),
            Via::Vector(value) => match Vector::ALL.get(value as usize) {
                Some(vector) => vector.tracepoint_name().replace('_', " "),
                None => self.symbol_at(value),
            },
        }
    }

    /// The interrupt or softirq that the stack ends in, if any.
    fn stack_interrupt(&self, by: &Originator) -> Option<String> {
        let name = |address: &u64| {
            let symbol = self.symbol_at(*address);
            symbol.split('+').next().unwrap_or_default().to_owned()
        };
        let stack = self.stacks.get(&by.stack?)?;
        let is_interrupt = |name: &String| INTERRUPTS.iter().any(|begin| name.starts_with(begin));
        stack.iter().map(name).find(is_interrupt)
    }

    fn shown_stack(&self, by: &Originator) -> Vec<String> {
        let addresses = by.stack.and_then(|number| self.stacks.get(&number));
        let symbols = addresses.into_iter().flatten().map(|address| self.symbol_at(*address));
        let is_ours = |symbol: &String| OURS.iter().any(|begin| symbol.starts_with(begin));
        symbols.skip_while(is_ours).take(SHOWN_FUNCTIONS).collect()
    }
}

fn softirq_name(number: u32) -> String {
    match SOFTIRQS.get(number as usize) {
        Some(name) => format!("softirq {name}"),
        None => format!("softirq {number}"),
    }
}

fn kept_by(dependency: u32) -> Option<String> {
    let bits = TICK_DEPENDENCIES.iter().enumerate();
    let names: Vec<&str> =
        bits.filter(|(bit, _)| dependency >> bit & 1 == 1).map(|(_, name)| *name).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}
