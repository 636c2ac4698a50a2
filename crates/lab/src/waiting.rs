//! Waits for resources of other processes: announced once, and ended on the user's request.

use crate::LabError;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time between two attempts.
const POLL: Duration = Duration::from_millis(20);
/// A shorter wait is not announced.
const QUIET: Duration = Duration::from_secs(1);

/// Whether the user requested the end.
type EndRequested = Box<dyn Fn() -> bool + Send>;

static SAY: OnceLock<fn(&str)> = OnceLock::new();
static ENDED: Mutex<Vec<EndRequested>> = Mutex::new(Vec::new());

/// Sets how this process tells the user about waits.
pub fn announce_waits(say: fn(&str)) {
    // The first caller wins: there is one user.
    let _ = SAY.set(say);
}

/// Ends waits of this process when this is true: for processes that signals do not end.
pub fn end_waits_when(ended: impl Fn() -> bool + Send + 'static) {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(ended));
}

fn has_ended() -> bool {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|ended| ended())
}

/// Tries until it succeeds.
///
/// # Errors
/// Those of an attempt, and the user's request to end.
pub(crate) fn wait_for<T>(
    what: &str,
    attempt: impl FnMut() -> Result<Option<T>, LabError>,
) -> Result<T, LabError> {
    let say = |text: &str| SAY.get().into_iter().for_each(|say| say(text));
    wait_until(what, attempt, say, has_ended)
}

fn wait_until<T>(
    what: &str,
    mut attempt: impl FnMut() -> Result<Option<T>, LabError>,
    say: impl Fn(&str),
    ended: impl Fn() -> bool,
) -> Result<T, LabError> {
    let (began, mut said) = (Instant::now(), false);
    loop {
        if let Some(there) = attempt()? {
            return Ok(there);
        }
        if ended() {
            return Err(LabError::Request(format!("interrupted while waiting for {what}")));
        }
        if !said && began.elapsed() > QUIET {
            said = true;
            say(&format!("waiting for {what}"));
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[test]
    fn a_wait_is_said_once_and_ends_when_the_user_wants_it() {
        let said = RefCell::new(Vec::new());
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        let mut tries = 0;
        let attempt = || {
            tries += 1;
            Ok((tries == 3).then_some(tries))
        };
        assert_eq!(wait_until("it", attempt, say, || false).unwrap(), 3);
        assert!(said.borrow().is_empty());
        let polls = Cell::new(0);
        // The user has read it, and ends the wait some polls later.
        let ended = || {
            polls.set(polls.get() + said.borrow().len());
            polls.get() > 3
        };
        let ended = wait_until("it", || Ok(None::<()>), say, ended).unwrap_err();
        assert_eq!(ended.to_string(), "interrupted while waiting for it");
        assert_eq!(*said.borrow(), ["waiting for it"]);
    }
}
