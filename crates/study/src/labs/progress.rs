//! The progress of a lab: a line that changes on a terminal, a line for each run on a pipe.

use crate::process::nanos;
use punctual_core::Nanos;
use punctual_core::format::{clipped, counted, duration, roughly};
use punctual_session::messages::Messages;
use std::time::Duration;

pub struct LabProgress<'a> {
    messages: &'a dyn Messages,
    total: usize,
    /// Runs that are over, including earlier ones.
    over: usize,
    failed: usize,
    shown: String,
}

impl<'a> LabProgress<'a> {
    /// The progress of this many runs, some of which are over already.
    pub fn new(total: usize, over: usize, messages: &'a dyn Messages) -> LabProgress<'a> {
        let progress = LabProgress { messages, total, over, failed: 0, shown: String::new() };
        if over > 0 {
            progress.say(&format!("already done: {over} of {}", counted(total as u64, "run")));
        }
        progress
    }

    pub fn over(&mut self, name: &str, took: Duration, failure: Option<&str>, left: Option<Nanos>) {
        self.over += 1;
        self.failed += usize::from(failure.is_some());
        let took = duration(nanos(took));
        let line = match failure {
            None => format!("{name}  {took}  {}", self.standing(left)),
            Some(why) => format!("{name}  FAILED after {took}: {why}  {}", self.standing(left)),
        };
        // On a terminal the changing line shows successes.
        if failure.is_some() || self.messages.line_width().is_none() {
            self.say(&line);
        }
    }

    /// Shows the current state on a terminal.
    pub fn refresh(&mut self, running: &[String], left: Option<Nanos>) {
        let Some(width) = self.messages.line_width() else { return };
        let failed =
            if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let standing = self.standing(left);
        let line = format!("{standing}{failed}  running: {}", running.join(", "));
        let line = clipped(&line, width.max(20) - 1, false);
        if line != self.shown {
            self.messages.replace_line(&line);
            self.shown = line;
        }
    }

    /// Restores the terminal.
    pub fn end(&mut self) {
        if !self.shown.is_empty() {
            self.messages.replace_line("");
            self.shown.clear();
        }
    }

    /// Shows a separate line.
    pub fn say(&self, line: &str) {
        if !self.shown.is_empty() {
            self.messages.replace_line("");
        }
        self.messages.progress(line);
    }

    fn standing(&self, left: Option<Nanos>) -> String {
        let left = match left {
            None => String::new(),
            Some(_) if self.over == self.total => String::new(),
            // The estimate has passed: the rest is unknown.
            Some(left) if left < Nanos::SECOND => ", longer than expected".to_owned(),
            Some(left) => format!(", about {} left", roughly(left)),
        };
        format!("[{} of {}{left}]", self.over, self.total)
    }
}
