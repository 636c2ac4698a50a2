//! A recording: how it was made, its content by group, its losses and their places.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::tables;
use punctual_bundle::intervals::OccupancyDocument;
use punctual_core::Missing;
use punctual_core::event::{Group, Recorded, RecordedSource};
use punctual_explain::EventCounts;

/// Sources with losses that are named; the rest are counted.
const SOURCES_NAMED: usize = 16;

/// The recorded events by group, the losses by source, and the number of events that contradict
/// earlier ones.
pub fn show_recording(
    recorded: &Recorded,
    counts: &EventCounts,
    contradictions: u64,
    options: &ShowOptions,
) -> String {
    let mut out = TextPage::new(options);
    let span = recorded.ended - recorded.began;
    let on =
        if recorded.cpus.is_empty() { String::new() } else { format!(" on CPU {}", recorded.cpus) };
    out.push_heading(&format!(
        "recording: {} by {}{on}",
        format::duration_text(span),
        format::escape_unsafe(&recorded.recorder)
    ));
    if !recorded.pids.is_empty() {
        let pids: Vec<String> = recorded.pids.iter().map(u32::to_string).collect();
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Uncertain,
            &format!("only events of the processes {}", pids.join(", ")),
        );
    }
    if !recorded.comms.is_empty() {
        let names = format!(
            "only events of tasks named {}",
            format::escape_unsafe(&recorded.comms.join(", "))
        );
        out.push_paragraph("  ", "  ", Tone::Uncertain, &names);
    }
    match tables::recording::kind_table(recorded, counts).unless_empty() {
        Some(table) => table::write_body(&mut out, &table),
        None => out.push_line("  no events"),
    }
    write_losses(&mut out, recorded);
    if contradictions > 0 {
        let event_count = format::count_with_noun(counts.group_count(Group::Sched), "event");
        let text = format!(
            "{} of {event_count} of group sched contradict earlier events: the time in between is \
             unknown",
            format::count_text(contradictions)
        );
        out.push_paragraph("  ", "  ", Tone::Uncertain, &text);
    }
    out.finish()
}

/// The processes with the longest CPU time, in short.
pub fn show_busiest(document: &OccupancyDocument, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let table = tables::occupancy::busiest_table(document);
    if table.rows.is_empty() {
        return String::new();
    }
    table::write_body(&mut out, &table);
    out.finish()
}

fn write_losses(out: &mut TextPage, recorded: &Recorded) {
    let lossy: Vec<&RecordedSource> =
        recorded.sources.iter().filter(|source| source.lost > 0).collect();
    let torn: u64 = recorded.sources.iter().fold(0, |sum, source| sum.saturating_add(source.torn));
    if torn > 0 {
        let text = format!("{} torn: their writer died", format::count_with_noun(torn, "record"));
        out.push_paragraph("  ", "  ", Tone::Plain, &text);
    }
    let other_gaps = recorded.missing.iter().filter(|one| !matches!(one, Missing::Lost { .. }));
    let mut is_whole = lossy.is_empty();
    for missing in other_gaps {
        is_whole = false;
        out.push_paragraph("  ", "  ", Tone::Bad, &format::escape_unsafe(&missing.to_string()));
    }
    if is_whole {
        out.push_paragraph("  ", "  ", Tone::Good, "no event was lost");
        return;
    }
    for source in lossy.iter().take(SOURCES_NAMED) {
        let all_events = source.recorded.saturating_add(source.lost);
        let share = format::percent_text(source.lost as f64 / all_events.max(1) as f64);
        let text = format!(
            "{}: {} lost, {share} of its events",
            format::clip_name(&source.name, 40, out.options.ascii),
            format::count_with_noun(source.lost, "event")
        );
        out.push_paragraph("  ", "  ", Tone::Bad, &text);
    }
    if lossy.len() > SOURCES_NAMED {
        let rest = lossy.len() - SOURCES_NAMED;
        let lost =
            lossy[SOURCES_NAMED..].iter().fold(0u64, |sum, source| sum.saturating_add(source.lost));
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Bad,
            &format!("{rest} more: {} lost", format::count_with_noun(lost, "event")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{CpuSet, MonotonicNs};
    use punctual_testing::events;

    #[test]
    fn event_groups_and_losses_of_a_recording_are_shown() {
        let source = |name: &str, recorded, lost| RecordedSource {
            name: name.into(),
            cpu: None,
            recorded,
            lost,
            torn: 0,
        };
        let recorded = Recorded {
            recorder: "BPF (BTF tracepoints)".into(),
            ended: MonotonicNs(2_000_000_000),
            cpus: "0-1".parse::<CpuSet>().unwrap(),
            groups: vec![Group::Sched, Group::Irq],
            sources: vec![source("cpu 0", 4_000, 0), source("cpu 1", 900, 100)],
            ..Recorded::default()
        };
        let waking = ["waking 2"; 4_900].join("; +0 ");
        let counts = EventCounts::from_events(events!("1 cpu0 1 {waking}; +0 exec"));
        insta::assert_snapshot!(show_recording(&recorded, &counts, 3_449, &ShowOptions::default()), @r"
        recording: 2.0 s by BPF (BTF tracepoints) on CPU 0-1
          events  count  per second  of these
          sched   4,901       2,451  sched_waking 4,900, sched_process_exec 1
          irq         0           0
          cpu 1: 100 events lost, 10.0 % of its events
          3,449 of 4,901 events of group sched contradict earlier events: the time in between is unknown
        ");
    }
}
