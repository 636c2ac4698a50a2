//! What is known of a machine while it runs: how far it is and how long it took so far. Its own time goes at another speed, and
//! asking it would change what it measures.

use crate::conduct::interrupt::Interrupts;
use punctual_core::Nanos;
use punctual_lab::{Phase, Wish};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line on a terminal is renewed.
const EVERY: Duration = Duration::from_millis(500);
/// How long a machine that was asked to end may take for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shows it on standard error: a line in place on a terminal, a line a step elsewhere.
pub struct Progress {
    quiet: bool,
    in_place: bool,
    planned: Option<Nanos>,
    shown: Option<(String, Instant)>,
    asked: Option<Instant>,
}

impl Progress {
    pub fn new(quiet: bool, planned: Option<Nanos>) -> Progress {
        Progress { quiet, in_place: io::stderr().is_terminal(), planned, shown: None, asked: None }
    }

    /// A step before the machine runs.
    pub fn say(&mut self, step: &str) {
        self.show(step, "");
    }

    /// Looks at the machine, shows it, and passes on what the user wishes of it.
    pub fn look(&mut self, seen: punctual_lab::Progress, interrupts: &Interrupts) -> Wish {
        if interrupts.asked() && self.asked.is_none() {
            self.asked = Some(Instant::now());
        }
        let planned = self.planned.map(|time| format!(" (about {time} of its own time)")).unwrap_or_default();
        let step = match (seen.phase, self.asked) {
            (Phase::Results, _) => "sending the results".to_owned(),
            (_, Some(_)) => "ending".to_owned(),
            (Phase::Booting, None) => "booting".to_owned(),
            (Phase::Job, None) => format!("running{planned}"),
        };
        self.show(&step, &format!(", {} s", seen.elapsed.as_secs()));
        match self.asked {
            None => Wish::GoOn,
            Some(asked) if asked.elapsed() < PATIENCE => Wish::End,
            Some(_) => Wish::Kill,
        }
    }

    fn show(&mut self, step: &str, since: &str) {
        let now = Instant::now();
        let same = self
            .shown
            .as_ref()
            .is_some_and(|(shown, at)| shown == step && (!self.in_place || now.duration_since(*at) < EVERY));
        if self.quiet || same {
            return;
        }
        let line = match self.in_place {
            true => format!("\r\u{1b}[Kvirtual machine: {step}{since}"),
            false => format!("virtual machine: {step}\n"),
        };
        let mut stderr = io::stderr().lock();
        // A terminal that went away does not end the measurement.
        let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
        self.shown = Some((step.to_owned(), now));
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if self.in_place && !self.quiet {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
