//! Removes the run, the supervisor and the directory.

use super::{RunDirectory, SUPERVISOR_TIMEOUT, gone_already, remove_all};
use rustix::process::{Signal, kill_process};
use std::io;
use std::time::{Duration, Instant};

/// The time for an interrupted run to undo its partition and close its bundle.
const CLEAN_END: Duration = Duration::from_secs(60);

pub fn remove(directory: &RunDirectory) -> io::Result<()> {
    directory.interrupt()?;
    let mut ended = wait_until(CLEAN_END, || Ok(directory.run()?.is_none()))?;
    if let (false, Some(run)) = (ended, directory.run()?) {
        // A second signal ends it at once.
        kill_process(run, Signal::INT).or_else(gone_already)?;
        ended = wait_until(SUPERVISOR_TIMEOUT, || Ok(directory.run()?.is_none()))?;
    }
    if !ended {
        return Err(io::Error::other(format!(
            "the run did not end within {} s after the request",
            CLEAN_END.as_secs()
        )));
    }
    if let Some(supervisor) = directory.supervisor()? {
        kill_process(supervisor, Signal::TERM).or_else(gone_already)?;
        wait_until(SUPERVISOR_TIMEOUT, || Ok(directory.supervisor()?.is_none()))?;
    }
    remove_all(&directory.path)
}

fn wait_until(time: Duration, mut so: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
    let until = Instant::now() + time;
    while !so()? {
        if Instant::now() > until {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}
