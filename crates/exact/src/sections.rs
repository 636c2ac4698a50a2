//! The longest sections with interrupts or preemption disabled, the longest from `need_resched` to
//! `__schedule`, and tasks that wait for locks or cannot migrate, by function.
//!
//! A section belongs to the innermost function that is not left within it: a section begun by a
//! lock function belongs to the function that takes the lock, however many functions wrap it.

use super::dump::{CodeSection, Dump, DumpEntry, SectionKind, Stretch};
use super::path::{Path, USER};
use super::symbols::{FunctionTable, KernelSymbols};
use punctual_bundle::exact::DisabledSection;

/// The maximum number of functions named for the longest.
const FUNCTIONS: usize = 5;
/// The bit of kernel addresses.
const KERNEL: u64 = 1 << 63;
/// The number of bits of user addresses.
const USER_BITS: u32 = 47;

/// Functions that lock, disable and enable on behalf of their caller.
fn is_helper(function: &str) -> bool {
    const LOCKS: [&str; 14] = [
        "_raw_spin_",
        "_raw_read_",
        "_raw_write_",
        "__raw_spin_unlock_irqrestore",
        "rt_spin_",
        "rt_read_",
        "rt_write_",
        "rt_mutex_",
        "rwbase_",
        "mutex_lock",
        "__mutex_lock",
        "ww_mutex_",
        "down_read",
        "down_write",
    ];
    const OTHERS: [&str; 11] = [
        "pv_native_irq_disable",
        "pv_native_irq_enable",
        "native_irq_disable",
        "preempt_count_add",
        "preempt_count_sub",
        "__local_bh_disable_ip",
        "__local_bh_enable_ip",
        "migrate_disable",
        "migrate_enable",
        "__rcu_read_lock",
        "__switch_to_asm",
    ];
    LOCKS.iter().any(|lock| function.starts_with(lock)) || OTHERS.contains(&function)
}

/// Functions that only lead to the scheduler.
fn is_of_scheduler(function: &str) -> bool {
    const NAMES: [&str; 7] = [
        "__schedule",
        "schedule",
        "preempt_schedule",
        "preempt_schedule_common",
        "preempt_schedule_thunk",
        "__cond_resched",
        "dynamic_cond_resched",
    ];
    NAMES.contains(&function)
}

/// The sections of a kind, the longest first.
pub(crate) fn collect_sections(
    dump: &Dump,
    names: &FunctionTable,
    kind: SectionKind,
) -> Vec<DisabledSection> {
    let symbols = &names.kernel;
    let mut found: Vec<(DisabledSection, CodeSection)> = Vec::new();
    for section in dump.sections.iter().filter(|one| one.kind == kind && one.count > 0) {
        let Some((function, by)) = section_owner(symbols, section) else { continue };
        let one = DisabledSection {
            function,
            by,
            context: section_context(section).to_owned(),
            count: section.count,
            total: section.total,
            longest: section.longest,
            ended_in: ended_in(symbols, section),
            stack: Vec::new(),
            functions: Vec::new(),
        };
        let same = |other: &DisabledSection| {
            (&other.function, &other.by, &other.context) == (&one.function, &one.by, &one.context)
        };
        match found.iter_mut().find(|(other, _)| same(other)) {
            Some((other, place)) => {
                other.count = other.count.saturating_add(one.count);
                other.total = other.total.saturating_add(one.total);
                if one.longest > other.longest {
                    (other.longest, other.ended_in) = (one.longest, one.ended_in);
                    *place = *section;
                }
            }
            None => found.push((one, *section)),
        }
    }
    found.sort_by(|(a, _), (b, _)| (b.longest, &a.function).cmp(&(a.longest, &b.function)));
    for (one, section) in &mut found {
        let place = |stretch: &&Stretch| {
            (stretch.kind, stretch.pc, stretch.caller) == (kind, section.pc, section.caller)
                && stretch.end - stretch.begin == section.longest
        };
        if let Some(stretch) = dump.longest.iter().find(place) {
            describe_section(one, &path_of(dump, stretch, names));
        }
    }
    found.into_iter().map(|(one, _)| one).collect()
}

/// The context that began it: `preempt_disable` and locks, or another part of the same kernel
/// counter (include/linux/preempt.h).
fn section_context(section: &CodeSection) -> &'static str {
    const SERVING_SOFTIRQ: u32 = 0x100;
    match (section.kind, section.preempt_count) {
        (SectionKind::Irqs, _) => "irqs",
        (SectionKind::Resched, _) if is_interrupted(section) => "interrupt",
        (SectionKind::Resched | SectionKind::Migration | SectionKind::LockWait, _) => "task",
        (_, count) if count >> 20 != 0 => "nmi",
        (_, count) if count >> 16 != 0 => "interrupt",
        (_, count) if count & SERVING_SOFTIRQ != 0 => "softirq",
        (_, count) if count & 0xff00 != 0 => "softirqs-disabled",
        _ => "preemption-disabled",
    }
}

fn path_of(dump: &Dump, stretch: &Stretch, names: &FunctionTable) -> Path {
    let insns = |entry: &DumpEntry| match entry {
        DumpEntry::Block(place) => u64::from(dump.blocks[*place].insns),
        _ => 0,
    };
    let total_insns: u64 = stretch.entries.iter().map(insns).sum();
    // Relative to the start of the entries.
    let at = |insns: u64| total_insns.saturating_sub(stretch.at.saturating_sub(insns));
    Path::from_entries(dump, &stretch.entries, names, at(stretch.begin), at(stretch.end))
}

/// Describes the calls around its start, and its longest functions.
fn describe_section(section: &mut DisabledSection, path: &Path) {
    let mut stack: Vec<String> = path.release_stack().into_iter().map(str::to_owned).collect();
    // Up to its function: the functions called by it have returned by then.
    if let Some(place) = stack.iter().rposition(|function| *function == section.function) {
        stack.truncate(place + 1);
    }
    section.stack = stack;
    let functions = path.ran_between(0, path.insns);
    section.functions = functions.into_iter().take(FUNCTIONS).collect();
}

/// The function in which the longest ended: not one that enables on its behalf, or calls the
/// scheduler.
fn ended_in(symbols: &KernelSymbols, section: &CodeSection) -> String {
    let stands_for = |name: &str| match section.kind {
        SectionKind::Resched => is_of_scheduler(name),
        _ => is_helper(name),
    };
    let callers = section.end_callers.iter().take_while(|caller| **caller != 0);
    let names = callers.filter_map(|caller| behind_call(symbols, *caller));
    let mut end_names = symbols.function_at(section.end_pc).into_iter().chain(names);
    let first = end_names.next();
    let meant = match first {
        Some(name) if stands_for(name) => end_names.find(|name| !stands_for(name)).or(first),
        name => name,
    };
    meant.unwrap_or(USER).to_owned()
}

/// Whether it starts in an interrupt, with the interrupted address as its caller.
fn is_interrupted(section: &CodeSection) -> bool {
    section.caller != 0 && section.caller & KERNEL == 0
}

/// The function that it belongs to, and the one called to begin it; `None` for code before the
/// kernel.
fn section_owner(
    symbols: &KernelSymbols,
    section: &CodeSection,
) -> Option<(String, Option<String>)> {
    let named = |function: &str, by: Option<&str>| (function.to_owned(), by.map(str::to_owned));
    let own_function = symbols.function_at(section.pc)?;
    if is_interrupted(section) {
        let function = match section.caller >> USER_BITS {
            0 => USER,
            _ => symbols.function_at(section.caller | KERNEL)?,
        };
        return Some(named(function, None));
    }
    let (function, by) = match (section.caller, section.callee) {
        (0, _) => (own_function, None),
        (caller, 0) => (behind_call(symbols, caller)?, Some(own_function)),
        (caller, callee) => (behind_call(symbols, caller)?, behind_call(symbols, callee)),
    };
    // A lock function's own section also belongs to its caller.
    let outer = Some(section.outer).filter(|outer| outer & KERNEL != 0 && is_helper(function));
    match outer.and_then(|outer| behind_call(symbols, outer)).filter(|outer| !is_helper(outer)) {
        Some(outer) => Some(named(outer, Some(function))),
        None => Some(named(function, by)),
    }
}

/// The function of a call that returns to this address, which may be the next function's first;
/// also the function that an interrupt interrupted.
fn behind_call(symbols: &KernelSymbols, back: u64) -> Option<&str> {
    symbols.function_at((back | KERNEL).wrapping_sub(1))
}
