//! The boards that a lab booted: back to their usual boot.

use super::jobs::PlannedLab;
use crate::targets::boards;
use crate::targets::ssh::SshWatch;
use punctual_plan::SshPlan;
use punctual_session::exit::Failure;
use punctual_session::messages::Listener;

/// Brings every board that a lab boots back. Returns those that could not be, each with the reason.
///
/// # Errors
/// Signals cannot be handled.
pub fn restore(planned: &PlannedLab, messages: Listener) -> Result<Vec<String>, Failure> {
    let mut watch = SshWatch::new(messages)?;
    let all = boards_of(planned).into_iter();
    Ok(all
        .filter_map(|board| Some(boards::restore(&board, &mut watch).err()?.render(false)))
        .collect())
}

/// Each board once, if cells are booted there.
fn boards_of(planned: &PlannedLab) -> Vec<SshPlan> {
    let mut all: Vec<SshPlan> = Vec::new();
    let cells = planned.cells.iter().filter(|cell| planned.has_boots_beside(cell));
    for plan in cells.filter_map(|cell| cell.board.clone()) {
        let plan = SshPlan { boot: None, ..plan };
        if !all.contains(&plan) {
            all.push(plan);
        }
    }
    all
}
