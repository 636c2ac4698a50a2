//! The longest sections with interrupts or preemption disabled, by the function in which they
//! begin.

use super::dump::{Dump, Entry, Section, SectionKind, Stretch};
use super::path::Path;
use super::symbols::KernelSymbols;
use punctual_bundle::exact::DisabledSection;

/// Functions of the longest that are named.
const FUNCTIONS: usize = 5;

/// Functions that disable and enable for their caller.
fn is_helper(function: &str) -> bool {
    const LOCKS: [&str; 4] =
        ["_raw_spin_", "_raw_read_", "_raw_write_", "__raw_spin_unlock_irqrestore"];
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

/// The sections of a kind, the longest first.
pub fn sections(dump: &Dump, symbols: &KernelSymbols, kind: SectionKind) -> Vec<DisabledSection> {
    let mut found: Vec<(DisabledSection, Section)> = Vec::new();
    for section in dump.sections.iter().filter(|one| one.kind == kind && one.count > 0) {
        let Some((function, by)) = owner(symbols, section.pc, section.caller) else { continue };
        let one = DisabledSection {
            function,
            by,
            context: context(section).to_owned(),
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
            describe(one, &path_of(dump, stretch, symbols));
        }
    }
    found.into_iter().map(|(one, _)| one).collect()
}

/// What began it: `preempt_disable` and locks, or what the kernel counts in the same word
/// (include/linux/preempt.h).
fn context(section: &Section) -> &'static str {
    const SERVING_SOFTIRQ: u32 = 0x100;
    match (section.kind, section.preempt_count) {
        (SectionKind::Irqs, _) => "irqs",
        (_, count) if count >> 20 != 0 => "nmi",
        (_, count) if count >> 16 != 0 => "interrupt",
        (_, count) if count & SERVING_SOFTIRQ != 0 => "softirq",
        (_, count) if count & 0xff00 != 0 => "softirqs-disabled",
        _ => "preemption-disabled",
    }
}

fn path_of(dump: &Dump, stretch: &Stretch, symbols: &KernelSymbols) -> Path {
    let insns = |entry: &Entry| match entry {
        Entry::Block(place) => u64::from(dump.blocks[*place].insns),
        _ => 0,
    };
    let all: u64 = stretch.entries.iter().map(insns).sum();
    // From the start of the entries.
    let at = |insns: u64| all.saturating_sub(stretch.at.saturating_sub(insns));
    Path::between(dump, &stretch.entries, symbols, at(stretch.begin), at(stretch.end))
}

/// The calls around its start and its end, and the functions that it took.
fn describe(section: &mut DisabledSection, path: &Path) {
    section.stack = meant(path.stack());
    if let Some(end) = meant(path.stack_at_end()).pop() {
        section.ended_in = end;
    }
    let functions = path.ran_between(0, path.insns);
    section.functions = functions.into_iter().take(FUNCTIONS).collect();
}

/// A stack up to the function that called a helper.
fn meant(mut stack: Vec<&str>) -> Vec<String> {
    while stack.len() > 1 && stack.last().is_some_and(|top| is_helper(top)) {
        stack.pop();
    }
    stack.into_iter().map(str::to_owned).collect()
}

fn ended_in(symbols: &KernelSymbols, section: &Section) -> String {
    let owner = owner(symbols, section.end_pc, section.end_caller);
    owner.map_or_else(|| "user mode".to_owned(), |(function, _)| function)
}

/// The function that means it, and the helper that does it; `None` for code before the kernel.
fn owner(symbols: &KernelSymbols, pc: u64, caller: u64) -> Option<(String, Option<String>)> {
    let name = symbols.name(pc)?;
    match is_helper(name) {
        // The address behind a call may be the next function's first.
        true => Some((symbols.name(caller.wrapping_sub(1))?.to_owned(), Some(name.to_owned()))),
        false => Some((name.to_owned(), None)),
    }
}
