//! Reads the file of a dead process at once.

use crate::clock::ClockPairs;
use crate::file::{Access, FileHeader, Refused};
use crate::process::{DrainOptions, PointProcess, ReadFrom, SLOTS_AT_ONCE};
use crate::reading::Gathered;
use crate::ring::Torn;
use crate::tally::PointSource;
use punctual_core::{Event, Finding};

/// Reads all of a dead process's file: the points of each thread, and the losses. `clock` must
/// reach to the present.
pub fn read_whole(
    file: &impl Access,
    clock: &ClockPairs,
    sink: &mut dyn FnMut(usize, &[Event]),
) -> Result<WholeFile, Refused> {
    let mut process = PointProcess::open(file)?;
    let mut gathered = Gathered::new(clock.clone());
    let look = process.read_positions(file)?;
    let whole = process.drain_rings(
        file,
        &look,
        DrainOptions { torn: Torn::Count, claim: false, begin: ReadFrom::Unread },
        &mut gathered,
        sink,
    );
    if !whole {
        return Err(Refused::Malformed(format!("its rings hold more than {SLOTS_AT_ONCE} points")));
    }
    Ok(WholeFile {
        header: process.header,
        sources: gathered.sources,
        names: gathered.points.all_names().to_vec(),
        findings: gathered.findings,
    })
}

/// The data of a dead process: see [`read_whole`].
#[derive(Clone, PartialEq, Debug)]
pub struct WholeFile {
    pub header: FileHeader,
    pub sources: Vec<PointSource>,
    /// The names of the points.
    pub names: Vec<String>,
    /// Defects of the file.
    pub findings: Vec<Finding>,
}
