//! Which instructions of a line begin another copy of it.
//!
//! A line seldom is one stretch of instructions: the head of a loop is at its start and at its end,
//! an optimizer moves parts away. One copy of it is passed once, so of each function, and of each
//! place where that function was inlined, the first instruction counts (as a breakpoint
//! of GDB does). A function that is divided into a hot and a cold part may begin its line in
//! either.

use super::budget::Budget;
use super::debug::Slice;
use gimli::constants::{DW_TAG_inlined_subroutine, DW_TAG_subprogram};
use std::collections::{BTreeMap, BTreeSet};

/// What code belongs to: the innermost function, inlined or not, and the part of the function
/// around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Owner {
    entry: usize,
    part: usize,
}

/// Of these addresses the first of each copy.
pub fn first_of_each(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &gimli::Unit<Slice>,
    mut addresses: Vec<u64>,
    budget: &mut Budget,
) -> gimli::Result<Vec<u64>> {
    addresses.sort_unstable();
    addresses.dedup();
    let owners = owners(dwarf, unit, &addresses, budget)?;
    let mut first = BTreeMap::new();
    for (owner, address) in owners.into_iter().zip(addresses) {
        first.entry(owner).or_insert(address);
    }
    Ok(first.into_values().collect())
}

/// How many copies each line has, of addresses with their lines.
pub fn of_each<Line: Copy + Ord>(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &gimli::Unit<Slice>,
    rows: &BTreeSet<(u64, Line)>,
    budget: &mut Budget,
) -> gimli::Result<BTreeMap<Line, usize>> {
    let mut addresses: Vec<u64> = rows.iter().map(|(address, _)| *address).collect();
    addresses.dedup();
    let owners = owners(dwarf, unit, &addresses, budget)?;
    let of = |address| addresses.binary_search(address).ok().and_then(|place| owners.get(place));
    let copies: BTreeSet<(Line, Owner)> =
        rows.iter().filter_map(|(address, line)| Some((*line, *of(address)?))).collect();
    let mut counts = BTreeMap::new();
    copies.into_iter().for_each(|(line, _)| *counts.entry(line).or_default() += 1);
    Ok(counts)
}

/// What the code at each of these addresses, ascending, belongs to.
fn owners(
    dwarf: &gimli::Dwarf<Slice>,
    unit: &gimli::Unit<Slice>,
    addresses: &[u64],
    budget: &mut Budget,
) -> gimli::Result<Vec<Owner>> {
    let mut owners = vec![Owner::default(); addresses.len()];
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        budget.spend()?;
        let is_function = entry.tag() == DW_TAG_subprogram;
        if !is_function && entry.tag() != DW_TAG_inlined_subroutine {
            continue;
        }
        let mut ranges = dwarf.die_ranges(unit, entry)?;
        let mut part = 0;
        while let Some(range) = ranges.next()? {
            budget.spend()?;
            part += 1;
            let from = addresses.partition_point(|address| *address < range.begin);
            let to = addresses.partition_point(|address| *address < range.end).max(from);
            // What is inlined stands below what it is in: the last one is the innermost.
            for owner in &mut owners[from..to] {
                budget.spend()?;
                owner.entry = entry.offset().0;
                if is_function {
                    owner.part = part;
                }
            }
        }
    }
    Ok(owners)
}
