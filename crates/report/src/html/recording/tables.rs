//! The tables about a recording.

mod intervals;

pub(crate) use intervals::{violated_limits, worst_table};

use crate::format::{count_text, duration_text, span_text};
use crate::html::text::format_name;
use punctual_core::Missing;
use punctual_core::event::Recorded;
use punctual_explain::EventCounts;

/// The extent of a recording, in a few lines.
pub(crate) fn about_recording(
    recorded: &Recorded,
    counts: &EventCounts,
) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        (
            "Recorded",
            format!(
                "{}, {} events",
                duration_text(recorded.ended - recorded.began),
                count_text(counts.total_count())
            ),
        ),
        ("Kernel events by", format_name(&recorded.recorder)),
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
        lines.push(("Clock error of test points", format!("at most {}", span_text(error))));
    }
    let torn = recorded.sources.iter().fold(0u64, |sum, source| sum.saturating_add(source.torn));
    let torn =
        if torn > 0 { format!("; {} torn records", count_text(torn)) } else { String::new() };
    let other_gaps: Vec<String> = recorded
        .missing
        .iter()
        .filter(|one| !matches!(one, Missing::Lost { .. }))
        .map(ToString::to_string)
        .collect();
    let lost = match recorded.lost_count() {
        0 if other_gaps.is_empty() => "no event was lost".to_owned(),
        0 => other_gaps.join("; "),
        lost => [vec![format!("{} events lost", count_text(lost))], other_gaps].concat().join("; "),
    };
    lines.push(("Losses", lost + &torn));
    lines
}
