#![forbid(unsafe_code)]
//! Runs the test programs that `./x test` has compiled:
//! `suites MESSAGES CHECKS [--all | --timelines N]`.
//!
//! MESSAGES is what cargo printed with `--message-format=json`; CHECKS is the number of checks that
//! have passed already, for the closing line. Each module of a program called `pure` or `live` is a
//! suite with a process and a log of its own (target/tests/SUITE.log), so that a crash is one
//! failure and the seconds of each are shown. Pure suites and guests run side by side; live tests,
//! which measure this very machine, run one at a time beside them, and those that change it for
//! others run last, with nothing beside them.

mod outcome;
mod run;
mod suite;

use outcome::Outcome;
use run::{Runner, run_documentation};
use std::process::ExitCode;
use suite::{Lane, Suite};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run_all(&arguments) {
        Ok(outcome) => outcome.close(),
        Err(message) => {
            eprintln!("{message}");
            println!("\n0 passed, 1 failed, 0 skipped");
            ExitCode::FAILURE
        }
    }
}

fn run_all(arguments: &[String]) -> Result<Outcome, String> {
    let [messages, checks, options @ ..] = arguments else {
        return Err("usage: suites MESSAGES CHECKS [--all | --timelines N]".into());
    };
    let checks: usize = checks.parse().map_err(|_| format!("{checks} is no number of checks"))?;
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut suites = suite::list_suites(messages)?;
    let all_only = suite::take_all_only(&mut suites, ".ci/all-only")?;
    if let ["--timelines", number] = options[..] {
        let number = number.parse().map_err(|_| format!("{number} is no number of timelines"))?;
        suites.retain(Suite::boots_guests);
        return Ok(run_on_timelines(&suites, number));
    }
    let runner = Runner::default();
    let (alone, beside): (Vec<_>, Vec<_>) =
        suites.into_iter().partition(|suite| suite.lane == Lane::Alone);
    eprintln!("== {} suites side by side, then {} alone", beside.len(), alone.len());
    runner.run_beside(&beside);
    runner.run_one_by_one(&alone);
    if options == ["--all"] {
        eprintln!("== {} tests that only --all runs", all_only.len());
        runner.run_one_by_one(&all_only);
    }
    run_documentation(&runner);
    let mut outcome = runner.into_outcome();
    outcome.passed += checks;
    outcome.show_failures();
    outcome.repeat_live_tests();
    outcome.check_skips(".ci/skipped.root");
    Ok(outcome)
}

/// Everything in a guest shifts its virtual time, so a test of guests must pass on any timeline.
fn run_on_timelines(suites: &[Suite], number: usize) -> Outcome {
    let runner = Runner::default();
    let suites: Vec<Suite> = (0..number)
        .flat_map(|timeline| suites.iter().map(move |suite| suite.on_timeline(timeline)))
        .collect();
    runner.run_beside(&suites);
    let outcome = runner.into_outcome();
    outcome.show_failures();
    outcome
}
