//! Messages on standard error during recording.

use crate::output;
use punctual_core::format;
use punctual_core::{Finding, MonotonicNs, Nanos};
use punctual_session::recording::RecordingProgress;
use punctual_sys::clock;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;

/// Time between two lines.
const REFRESH: Nanos = Nanos::from_millis(500);

/// A line that overwrites itself: events per second, losses, size. Only on a terminal.
pub struct TraceLine {
    shown: bool,
    began: MonotonicNs,
    last: MonotonicNs,
    events: u64,
}

impl TraceLine {
    pub fn new(quiet: bool, began: MonotonicNs) -> TraceLine {
        TraceLine { shown: !quiet && io::stderr().is_terminal(), began, last: began, events: 0 }
    }

    /// Updates the view when due.
    pub fn refresh_if_due(&mut self, progress: &RecordingProgress) {
        let now = clock::monotonic_now();
        if !self.shown || now - self.last < REFRESH {
            return;
        }
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let events = read(&progress.events);
        let rate = (events - self.events) as f64 / (now - self.last).as_secs_f64();
        let (elapsed, lost, bytes) =
            (now - self.began, read(&progress.lost), read(&progress.bytes));
        (self.last, self.events) = (now, events);
        let line = format!(
            "{}  {} events  {} a second  {} lost  {}",
            format::duration_text(elapsed),
            format::count_text(events),
            format::count_text(rate.round() as u64),
            format::count_text(lost),
            format_size(bytes)
        );
        // A failed write loses nothing.
        let _ = write!(io::stderr(), "\r{line}\u{1b}[K");
    }
}

impl Drop for TraceLine {
    fn drop(&mut self) {
        if self.shown && self.last > self.began {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// Reports unavailable parts before any wait.
pub fn report_findings(findings: &[Finding]) {
    for finding in findings {
        let evidence =
            finding.evidence.as_ref().map_or(String::new(), |evidence| format!(" ({evidence})"));
        let remedy = finding.remedy.as_ref().map_or(String::new(), |remedy| format!("; {remedy}"));
        let messages = format::escape_unsafe(&format!("{}{evidence}{remedy}", finding.message));
        output::print_stderr(&format!("{}: {messages}\n", finding.severity));
    }
}

/// A size for users.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.0} KiB", bytes as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
