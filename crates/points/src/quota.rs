//! Limits on the resources that other users' files may take, and on their claims.

use crate::alive;
use std::collections::HashMap;

/// Limits for one user: applications read at once, threads and names kept. A quarter of the total,
/// so that no user displaces the others.
pub const PROCESSES: usize = 256;
pub const SOURCES: usize = 16_384;
pub const NAMES: usize = 16_384;

/// Another user, whose files are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stranger(pub u32);

/// The resources taken by other users so far.
#[derive(Debug, Default)]
pub struct Quotas {
    taken: HashMap<Stranger, TakenQuota>,
}

#[derive(Debug, Default)]
struct TakenQuota {
    sources: usize,
    names: usize,
}

impl Quotas {
    /// Takes one more thread; false if this exceeds the user's quota.
    pub(crate) fn take_source(&mut self, user: Option<Stranger>) -> bool {
        take_unit(user.map(|user| &mut self.taken.entry(user).or_default().sources), SOURCES)
    }
    pub(crate) fn take_name(&mut self, user: Option<Stranger>) -> bool {
        take_unit(user.map(|user| &mut self.taken.entry(user).or_default().names), NAMES)
    }
}

/// The reader's own user has no quota.
fn take_unit(count: Option<&mut usize>, most: usize) -> bool {
    let Some(count) = count else { return true };
    let room = *count < most;
    *count += usize::from(room);
    room
}

/// Why another user's file may not claim the process or thread of this number: it belongs to a
/// different user. A number without a process belongs to no user.
pub(crate) fn false_claim(user: Option<Stranger>, number: u32) -> Option<String> {
    let Stranger(user) = user?;
    let owner = alive::effective_user(number).filter(|owner| *owner != user)?;
    Some(format!("user {user} claims process or thread {number}, which is of user {owner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_about_a_process_of_another_user_is_refused() {
        let own = std::process::id();
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(false_claim(None, own), None);
        assert_eq!(false_claim(Some(Stranger(user)), own), None);
        let why = false_claim(Some(Stranger(user + 1)), own).unwrap();
        assert!(why.ends_with(&format!("which is of user {user}")), "{why}");
        assert_eq!(false_claim(Some(Stranger(user + 1)), u32::MAX), None);
    }

    #[test]
    fn quotas_are_separate_for_each_user() {
        let mut quotas = Quotas::default();
        let (one, other) = (Some(Stranger(1)), Some(Stranger(2)));
        assert!((0..SOURCES).all(|_| quotas.take_source(one)));
        assert!((0..NAMES).all(|_| quotas.take_name(one)));
        assert!(!quotas.take_source(one) && !quotas.take_name(one));
        assert!(quotas.take_source(other) && quotas.take_name(other));
        assert!((0..=SOURCES).all(|_| quotas.take_source(None)));
    }
}
