//! The boards that a lab booted: back to their usual boot.

use super::hosts::Hosts;
use super::jobs::PlannedLab;
use crate::targets::boards;
use crate::targets::ssh::SshWatch;
use punctual_session::exit::Failure;
use punctual_session::messages::Listener;

/// Brings every board that a lab boots back. Returns those that could not be, each with the reason.
///
/// # Errors
/// Signals cannot be handled.
pub fn restore_boards(planned: &PlannedLab, messages: Listener) -> Result<Vec<String>, Failure> {
    let mut watch = SshWatch::new(messages)?;
    let hosts = Hosts::from_lab(planned);
    let restored = hosts.booted_hosts().map(|host| boards::restore_board(&host.plan, &mut watch));
    Ok(restored.filter_map(Result::err).map(|why| why.render(false)).collect())
}
