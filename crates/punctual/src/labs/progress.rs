//! How far a lab is: a line that changes on a terminal, a line for each run on a pipe.

use crate::output;
use punctual_core::Nanos;
use punctual_report::format::{clipped, counted, duration, roughly};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Shows it on standard error.
pub struct Progress {
    terminal: bool,
    quiet: bool,
    total: usize,
    /// Runs that are over, those that were there already among them.
    over: usize,
    failed: usize,
    shown: String,
}

impl Progress {
    /// Of so many runs, some of which are over already.
    pub fn new(total: usize, over: usize, quiet: bool) -> Progress {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let progress = Progress {
            terminal: io::stderr().is_terminal() && !dumb,
            quiet,
            total,
            over,
            failed: 0,
            shown: String::new(),
        };
        if over > 0 {
            progress.say(&format!("already done: {over} of {}", counted(total as u64, "run")));
        }
        progress
    }

    /// A run is over.
    pub fn over(&mut self, name: &str, took: Duration, failure: Option<&str>, left: Option<Nanos>) {
        self.over += 1;
        self.failed += usize::from(failure.is_some());
        let took = duration(nanos(took));
        let line = match failure {
            None => format!("{name}  {took}  {}", self.standing(left)),
            Some(why) => format!("{name}  FAILED after {took}: {why}  {}", self.standing(left)),
        };
        // On a terminal the changing line says what goes well.
        if failure.is_some() || !self.terminal {
            self.say(&line);
        }
    }

    /// Shows the current state on a terminal.
    pub fn refresh(&mut self, running: &[String], left: Option<Nanos>) {
        if !self.terminal || self.quiet {
            return;
        }
        let failed =
            if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let width = output::terminal_size(io::stderr()).map_or(80, |(columns, _)| columns).max(20);
        let line = format!("{}{failed}  running: {}", self.standing(left), running.join(", "));
        let line = clipped(&line, width - 1, false);
        if line != self.shown {
            // Carriage return and "erase to the end of the line" (ECMA-48).
            let _ = write!(io::stderr().lock(), "\r{line}\u{1b}[K");
            self.shown = line;
        }
    }

    /// Leaves the terminal as it was.
    pub fn end(&mut self) {
        if !self.shown.is_empty() {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[K");
            self.shown.clear();
        }
    }

    /// A line of its own.
    pub fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        let erase = if self.shown.is_empty() { "" } else { "\r\u{1b}[K" };
        let _ = writeln!(io::stderr().lock(), "{erase}{line}");
    }

    fn standing(&self, left: Option<Nanos>) -> String {
        let left = match left {
            None => String::new(),
            Some(_) if self.over == self.total => String::new(),
            // What was expected has passed: nobody knows how much longer.
            Some(left) if left < Nanos::SECOND => ", longer than expected".to_owned(),
            Some(left) => format!(", about {} left", roughly(left)),
        };
        format!("[{} of {}{left}]", self.over, self.total)
    }
}

/// A time of this machine's clock.
pub fn nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
