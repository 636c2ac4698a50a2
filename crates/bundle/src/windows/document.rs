//! `windows.json`: the rule for keeping windows, and the windows missed.

use punctual_core::event::{Names, Recorded};
use punctual_core::{Bytes, Finding, Nanos, Severity};
use serde::{Deserialize, Serialize};

/// The name and version of this shape. Additions keep it; changes raise it. In version 1,
/// `selected` was `late`.
pub const SCHEMA: &str = "punctual-windows/2";

/// `windows.json`. Written before the first sample and updated with the windows, about once a
/// second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowsDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Whether the recorder finished; if not, counts and names are as of the last update.
    pub complete: bool,
    /// The rule for keeping windows.
    pub rule: KeptRule,
    /// The recorded events and their sources. Events are not counted, as they overwrite one
    /// another.
    pub recorded: Recorded,
    /// The names of the numbers in events of kept windows.
    pub names: Names,
    /// The windows of each series' late samples.
    pub series: Vec<SeriesWindows>,
}

/// The rule for keeping windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub struct KeptRule {
    /// The maximum number of worst samples per series.
    pub worst: u32,
    /// The minimum latency considered; `None`: all samples.
    pub above: Option<Nanos>,
    /// The time kept before a sample's start.
    pub before: Nanos,
    /// The size of each CPU's buffer.
    pub buffer: Bytes,
    /// The size limit of all windows together.
    pub room: Bytes,
}

/// The windows of a series' samples.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct SeriesWindows {
    /// Its name in the experiment.
    pub phase: String,
    pub series: String,
    /// Samples selected for a window on arrival: worse than those kept, and above the threshold.
    pub selected: u64,
    /// Windows in the bundle.
    pub kept: u64,
    /// Windows replaced by a worse one.
    pub replaced: u64,
    /// Samples overwritten before the recorder read them; some may exceed the threshold.
    pub unseen: u64,
    /// Selected samples without a window, as its events were overwritten before the copy or could
    /// not be copied.
    pub missed_overwritten: u64,
    /// Selected samples without a window, as all windows together had reached their size limit.
    pub missed_room: u64,
    /// Kept windows without all events of the start.
    pub partial: u64,
}

impl SeriesWindows {
    /// Selected samples without a window.
    pub fn missed_samples(&self) -> u64 {
        self.missed_overwritten.saturating_add(self.missed_room)
    }
}

impl WindowsDocument {
    /// Findings about limits of the windows.
    pub fn limit_findings(&self) -> Vec<Finding> {
        let mut findings = self.recorded.findings.clone();
        let sum = |field: fn(&SeriesWindows) -> u64| {
            self.series.iter().map(field).fold(0, u64::saturating_add)
        };
        let missed = sum(SeriesWindows::missed_samples);
        if missed > 0 {
            let message = format!(
                "{missed} of the worst samples have no window: the events around them were not \
                 kept"
            );
            let (overwritten, room) =
                (sum(|series| series.missed_overwritten), sum(|series| series.missed_room));
            let evidence = format!(
                "{overwritten} overwritten before they could be copied, {room} beyond the size \
                 limit"
            );
            let finding = Finding::new("windows-missed", Severity::Warning, "explain", message)
                .with_evidence(evidence);
            let remedies = [
                (overwritten, "give [explain] a larger buffer"),
                (room, "keep fewer samples: [explain] worst, above"),
            ];
            let fits = remedies.iter().filter(|(count, _)| *count > 0).map(|(_, remedy)| *remedy);
            findings.push(finding.with_remedy(fits.collect::<Vec<_>>().join("; ")));
        }
        let unseen = sum(|series| series.unseen);
        if unseen > 0 {
            let message =
                format!("{unseen} samples were overwritten before the flight recorder read them");
            let finding = Finding::new("windows-unseen", Severity::Warning, "explain", message);
            findings.push(
                finding.with_remedy("leave the recorder a CPU of its own: [experiment] cpus"),
            );
        }
        findings
    }

    /// The document at the start of a flight recorder.
    pub fn new(rule: KeptRule, recorded: Recorded, names: Names) -> WindowsDocument {
        WindowsDocument {
            schema: SCHEMA.to_owned(),
            complete: false,
            rule,
            recorded,
            names,
            series: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::MonotonicNs;

    #[test]
    fn the_remedy_for_missing_windows_names_the_exhausted_buffer() {
        let remedy = |missed_overwritten, missed_room| {
            let (nanos, bytes) = (Nanos(1), Bytes(1));
            let rule =
                KeptRule { worst: 1, above: None, before: nanos, buffer: bytes, room: bytes };
            let recorded = Recorded::without_events("none", MonotonicNs(0));
            let mut document = WindowsDocument::new(rule, recorded, Names::default());
            let series = SeriesWindows { missed_overwritten, missed_room, ..Default::default() };
            document.series.push(series);
            document.limit_findings().pop().map(|found| found.remedy.expect("a remedy"))
        };
        let (buffer, samples) = ("larger buffer", "fewer samples");
        let has = |of: Option<String>, part| of.is_some_and(|of| of.contains(part));
        assert_eq!(remedy(0, 0), None);
        assert!(has(remedy(3, 0), buffer) && !has(remedy(3, 0), samples));
        assert!(has(remedy(0, 3), samples) && !has(remedy(0, 3), buffer));
        assert!(has(remedy(2, 3), samples) && has(remedy(2, 3), buffer));
    }
}
