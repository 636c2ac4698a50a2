//! The cost of a set of settings: complete runs of a command per second.
//!
//! Complete runs are counted, one after the other, over their total time: the command needs no
//! output, and any work can be one. There is no pause between runs; starting a process is part of a
//! run.

use crate::process::{Process, nanos, why};
use punctual_bundle::Member;
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::interrupts::interrupted;
use punctual_sys::children;
use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

/// A run that takes longer is killed and gives no figure.
const LONGEST_RUN: Duration = Duration::from_secs(600);

/// The result.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Throughput {
    /// Complete runs over their time; `None` if one failed.
    pub per_second: Option<f64>,
    pub why: Option<String>,
}

/// Runs a command until this time has passed, at least once.
///
/// # Errors
/// The tuning was interrupted.
pub fn throughput(
    words: &[String],
    time: Nanos,
    log: &Member,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Throughput, Failure> {
    let (began, mut runs) = (Instant::now(), 0.0);
    let none = |why: String| Ok(Throughput { per_second: None, why: Some(why) });
    loop {
        let mut process = match start(words, log) {
            Ok(process) => process,
            Err(why) => return none(format!("cannot run `{}`: {why}", words[0])),
        };
        let status = process.wait(is_interrupted, LONGEST_RUN)?;
        if process.was_asked() {
            return Err(interrupted());
        }
        match status {
            Some(status) if status.success() => runs += 1.0,
            Some(status) => return none(why(status, log)),
            None => return none(format!("a run took longer than {} s", LONGEST_RUN.as_secs())),
        }
        let took = began.elapsed();
        if nanos(took) >= time {
            return Ok(Throughput { per_second: Some(runs / took.as_secs_f64()), why: None });
        }
    }
}

fn start(words: &[String], log: &Member) -> std::io::Result<Process> {
    let log = File::create(log.path())?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    children::without_service_manager(&mut command);
    children::killed_with_us(&mut command);
    Process::start(command, Some(log), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::END_TIMEOUT;

    fn of(line: &str, time: Nanos, interrupted: bool) -> Result<Throughput, Failure> {
        let place = tempfile::tempdir().expect("a directory");
        let log = Member::root(place.path()).join("cost.log");
        let words = shell_words::split(line).expect("words");
        throughput(&words, time, &log, &|| interrupted)
    }

    #[test]
    fn throughput_is_runs_divided_by_the_time_they_took() {
        let began = Instant::now();
        let found = of("sleep 0.02", Nanos::from_millis(100), false).expect("a throughput");
        let most = began.elapsed().as_secs_f64();
        let per_second = found.per_second.expect("all runs succeed");
        // No run is shorter than its sleep; a busy machine makes runs longer, never the count
        // larger.
        assert!(per_second <= 50.0 && per_second >= 1.0 / most, "{per_second}");
        // A run longer than the time counts as a whole.
        let found = of("sleep 0.05", Nanos::MILLI, false).expect("a throughput");
        assert!(found.per_second.is_some_and(|of| of <= 20.0), "{found:?}");
    }

    #[test]
    fn a_failing_cost_command_has_no_rate_but_a_reason() {
        for (line, words) in [
            ("sh -c 'echo error: no room; exit 3'", "no room"),
            ("/nowhere/such", "cannot run `/nowhere/such`"),
        ] {
            let found = of(line, Nanos::MILLI, false).expect("no end of the tuning");
            assert_eq!(found.per_second, None, "{line}");
            assert!(found.why.as_deref().is_some_and(|why| why.contains(words)), "{found:?}");
        }
    }

    #[test]
    fn an_interrupt_ends_the_cost_command() {
        let began = Instant::now();
        assert!(of("sleep 3600", Nanos::SECOND, true).is_err());
        assert!(began.elapsed() < END_TIMEOUT, "it was asked to end, and did");
    }
}
