//! How a lab ends.

use crate::exit::Exit;
use punctual_bundle::lab::{CellState, LabDocument};
use punctual_bundle::summary::VerdictWord;

/// A requirement that is not met outweighs what failed: it is known for sure.
pub fn of(document: &LabDocument) -> Exit {
    let failed = |cell: &punctual_bundle::lab::CellDocument| {
        cell.state == CellState::Failed || cell.equal == Some(false)
    };
    match document.verdict {
        Some(VerdictWord::NotMet) => Exit::NotMet,
        _ if document.cells.iter().any(failed) || !document.finished => Exit::Failed,
        Some(VerdictWord::Undecided | VerdictWord::Invalid) => Exit::NoEvidence,
        Some(VerdictWord::Met) | None => Exit::Done,
    }
}
