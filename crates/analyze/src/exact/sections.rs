//! The longest sections with interrupts off, by the function in which they begin.

use super::dump::{Dump, Section};
use super::symbols::KernelSymbols;
use punctual_bundle::exact::IrqsDisabled;

/// Functions that switch interrupts off for their caller.
const HELPERS: [&str; 14] = [
    "pv_native_irq_disable",
    "pv_native_irq_enable",
    "native_irq_disable",
    "_raw_spin_lock_irq",
    "_raw_spin_lock_irqsave",
    "_raw_spin_trylock_irqsave",
    "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore",
    "_raw_read_lock_irq",
    "_raw_read_lock_irqsave",
    "_raw_write_lock_irq",
    "_raw_write_lock_irqsave",
    "_raw_write_unlock_irq",
    "_raw_write_unlock_irqrestore",
];

/// The sections of the measured part of a run, the longest first.
pub fn sections(dump: &Dump, symbols: &KernelSymbols) -> Vec<IrqsDisabled> {
    let mut found: Vec<IrqsDisabled> = Vec::new();
    for section in dump.sections.iter().filter(|section| section.count > 0) {
        let Some((function, by)) = owner(symbols, section.pc, section.caller) else { continue };
        let one = IrqsDisabled {
            function,
            by,
            count: section.count,
            total: section.total,
            longest: section.longest,
            ended_in: ended_in(symbols, section),
        };
        match found
            .iter_mut()
            .find(|other| (&other.function, &other.by) == (&one.function, &one.by))
        {
            Some(other) => {
                other.count = other.count.saturating_add(one.count);
                other.total = other.total.saturating_add(one.total);
                if one.longest > other.longest {
                    (other.longest, other.ended_in) = (one.longest, one.ended_in);
                }
            }
            None => found.push(one),
        }
    }
    found.sort_by(|a, b| (b.longest, &a.function).cmp(&(a.longest, &b.function)));
    found
}

fn ended_in(symbols: &KernelSymbols, section: &Section) -> String {
    let owner = owner(symbols, section.end_pc, section.end_caller);
    owner.map_or_else(|| "user mode".to_owned(), |(function, _)| function)
}

/// The function that means it, and the helper that does it; `None` for code before the kernel.
fn owner(symbols: &KernelSymbols, pc: u64, caller: u64) -> Option<(String, Option<String>)> {
    let name = symbols.name(pc)?;
    match HELPERS.contains(&name) {
        // The address behind a call may be the next function's first.
        true => Some((symbols.name(caller.wrapping_sub(1))?.to_owned(), Some(name.to_owned()))),
        false => Some((name.to_owned(), None)),
    }
}
