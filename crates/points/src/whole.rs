//! Reads the file of a dead process at once.

use crate::clock::Clock;
use crate::file::{Access, Header, Refused};
use crate::process::{Begin, How, Process, SLOTS_AT_ONCE};
use crate::reading::Gathered;
use crate::ring::Torn;
use crate::tally::PointSource;
use punctual_core::{Event, Finding};

/// Reads all of a dead process's file: the points of each thread, and the losses. `clock` must
/// reach to the present.
pub fn read_whole(
    file: &impl Access,
    clock: &Clock,
    sink: &mut dyn FnMut(usize, &[Event]),
) -> Result<Whole, Refused> {
    let mut process = Process::open(file)?;
    let mut all = Gathered::new(clock.clone());
    let look = process.look(file)?;
    let whole = process.drain(
        file,
        &look,
        How { torn: Torn::Count, claim: false, begin: Begin::Unread },
        &mut all,
        sink,
    );
    if !whole {
        return Err(Refused::Malformed(format!("its rings hold more than {SLOTS_AT_ONCE} points")));
    }
    Ok(Whole {
        header: process.header,
        sources: all.sources,
        names: all.points.names().to_vec(),
        findings: all.findings,
    })
}

/// The data of a dead process: see [`read_whole`].
#[derive(Clone, PartialEq, Debug)]
pub struct Whole {
    pub header: Header,
    pub sources: Vec<PointSource>,
    /// The names of the points.
    pub names: Vec<String>,
    /// Defects of the file.
    pub findings: Vec<Finding>,
}
