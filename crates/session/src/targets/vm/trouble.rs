//! How a guest's run failed.

use punctual_lab::{GuestResult, Outcome};

/// What kept the guest from its end; none where the command in it ended by itself.
pub fn trouble(result: &GuestResult) -> Option<String> {
    match (&result.outcome, result.exit_status) {
        (Outcome::Finished, Some(0..=4)) => None,
        (Outcome::Finished, Some(status)) if status > 128 => {
            Some(format!("punctual was killed by signal {} in the virtual machine", status - 128))
        }
        (Outcome::Finished, Some(status)) => {
            Some(format!("punctual ended with status {status} in the virtual machine"))
        }
        (outcome, _) => Some(outcome.to_string()),
    }
}
