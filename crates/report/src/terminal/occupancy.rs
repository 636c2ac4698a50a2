//! CPU usage: CPUs, processes with their busiest threads, interrupts.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::tables::occupancy::{OccupancyRows, contradictions, cpus, interrupts, tasks};
use punctual_bundle::intervals::{AllocatorUse, OccupancyDocument};

/// Requests to the kernel's allocators.
pub fn allocator(of: &AllocatorUse, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    crate::tables::allocator::allocator(of).iter().for_each(|of| table::section(&mut out, of));
    out.finish()
}

/// The whole page; `threads` shows every thread instead of their processes.
pub fn occupancy(document: &OccupancyDocument, threads: bool, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    table::section(&mut out, &cpus(document));
    let rows = if threads { OccupancyRows::Threads } else { OccupancyRows::Processes };
    table::section(&mut out, &tasks(document, rows));
    if !document.interrupts.is_empty() {
        table::section(&mut out, &interrupts(document, false));
    }
    let warnings = contradictions(document);
    if !warnings.is_empty() {
        out.gap();
        warnings.iter().for_each(|text| out.paragraph("", "", Tone::Uncertain, text));
    }
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}
