//! The tables about a recording.

mod intervals;

pub use intervals::{violated, worst};

use crate::format::{count, duration, span};
use crate::html::text::name;
use punctual_core::Missing;
use punctual_core::event::Recorded;
use punctual_explain::EventCounts;

/// The extent of a recording, in a few lines.
pub fn about(recorded: &Recorded, counts: &EventCounts) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        (
            "Recorded",
            format!(
                "{}, {} events",
                duration(recorded.ended - recorded.began),
                count(counts.total())
            ),
        ),
        ("Kernel events by", name(&recorded.recorder)),
        (
            "On CPUs",
            if recorded.cpus.is_empty() { "none".to_owned() } else { recorded.cpus.to_string() },
        ),
    ];
    if !recorded.pids.is_empty() {
        let pids: Vec<String> = recorded.pids.iter().take(32).map(u32::to_string).collect();
        lines.push(("Only processes", pids.join(", ")));
    }
    if let Some(error) = recorded.point_clock_error {
        lines.push(("Clock error of test points", format!("at most {}", span(error))));
    }
    let torn = recorded.sources.iter().fold(0u64, |sum, source| sum.saturating_add(source.torn));
    let torn = if torn > 0 { format!("; {} torn records", count(torn)) } else { String::new() };
    let others: Vec<String> = recorded
        .missing
        .iter()
        .filter(|one| !matches!(one, Missing::Lost { .. }))
        .map(ToString::to_string)
        .collect();
    let lost = match recorded.lost() {
        0 if others.is_empty() => "no event was lost".to_owned(),
        0 => others.join("; "),
        lost => [vec![format!("{} events lost", count(lost))], others].concat().join("; "),
    };
    lines.push(("Losses", lost + &torn));
    lines
}
