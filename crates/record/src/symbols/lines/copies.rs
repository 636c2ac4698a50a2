//! Finds the instructions that begin a copy of a line.
//!
//! A line is rarely one contiguous range of instructions: the head of a loop is at its start and at
//! its end, an optimizer moves parts away. One copy of it is passed once, so the first instruction
//! counts in each function, and in each place where that function was inlined (as with a breakpoint
//! of GDB). A function divided into a hot and a cold part may begin its line in either.

use super::budget::StepBudget;
use super::debug::Slice;
use gimli::constants::{DW_TAG_inlined_subroutine, DW_TAG_subprogram};
use std::collections::{BTreeMap, BTreeSet};

/// The owner of code: the innermost function, inlined or not, and the enclosing part of the
/// function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Owner {
    entry: usize,
    part: usize,
}

/// The first of these addresses in each copy.
pub fn first_of_each(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &gimli::Unit<Slice>,
    mut addresses: Vec<u64>,
    budget: &mut StepBudget,
) -> gimli::Result<Vec<u64>> {
    addresses.sort_unstable();
    addresses.dedup();
    let owners = code_owners(dwarf, unit, &addresses, budget)?;
    let mut first = BTreeMap::new();
    for (owner, address) in owners.into_iter().zip(addresses) {
        first.entry(owner).or_insert(address);
    }
    Ok(first.into_values().collect())
}

/// The number of copies of each line, from addresses with their lines.
pub fn of_each<Line: Copy + Ord>(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &gimli::Unit<Slice>,
    rows: &BTreeSet<(u64, Line)>,
    budget: &mut StepBudget,
) -> gimli::Result<BTreeMap<Line, usize>> {
    let mut addresses: Vec<u64> = rows.iter().map(|(address, _)| *address).collect();
    addresses.dedup();
    let owners = code_owners(dwarf, unit, &addresses, budget)?;
    let owner_of_address =
        |address| addresses.binary_search(address).ok().and_then(|place| owners.get(place));
    let copies: BTreeSet<(Line, Owner)> = rows
        .iter()
        .filter_map(|(address, line)| Some((*line, *owner_of_address(address)?)))
        .collect();
    let mut counts = BTreeMap::new();
    copies.into_iter().for_each(|(line, _)| *counts.entry(line).or_default() += 1);
    Ok(counts)
}

/// The owner of the code at each of these ascending addresses.
fn code_owners(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &gimli::Unit<Slice>,
    addresses: &[u64],
    budget: &mut StepBudget,
) -> gimli::Result<Vec<Owner>> {
    let mut owners = vec![Owner::default(); addresses.len()];
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        budget.spend_step()?;
        let is_function = entry.tag() == DW_TAG_subprogram;
        if !is_function && entry.tag() != DW_TAG_inlined_subroutine {
            continue;
        }
        let mut ranges = dwarf.die_ranges(unit, entry)?;
        let mut part = 0;
        while let Some(range) = ranges.next()? {
            budget.spend_step()?;
            part += 1;
            let from = addresses.partition_point(|address| *address < range.begin);
            let to = addresses.partition_point(|address| *address < range.end).max(from);
            // Inlined functions follow the enclosing ones: the last one is the innermost.
            for owner in &mut owners[from..to] {
                budget.spend_step()?;
                owner.entry = entry.offset().0;
                if is_function {
                    owner.part = part;
                }
            }
        }
    }
    Ok(owners)
}
