//! How a lab ends.

use crate::exit::Exit;
use punctual_bundle::lab::{CellState, LabDocument};

/// A requirement that is not met outweighs what failed: it is known for sure.
pub fn of(document: &LabDocument) -> Exit {
    let failed = |cell: &punctual_bundle::lab::CellDocument| {
        cell.state == CellState::Failed || cell.equal == Some(false)
    };
    match Exit::of_word(document.verdict) {
        Exit::NotMet => Exit::NotMet,
        _ if document.cells.iter().any(failed) || !document.finished => Exit::Failed,
        exit => exit,
    }
}
