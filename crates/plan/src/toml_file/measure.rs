//! `[[measure]]`: the keys of every measure, then those of its kind.

use crate::experiment::{MeasureSpec, WorkloadSpec};
use crate::kinds::WorkloadKind;
use crate::limits::{MAX_COUNTERS, MAX_REQUIREMENTS};
use crate::notes::{ProblemNotes, Wrong};
use crate::section::FileSection;
use crate::table::{TomlTable, read_string};
use crate::values;
use crate::words::Word;
use punctual_core::PerfEvent;
use punctual_core::words::nearest_word;

/// The measure, or `None` if its kind is unknown. Errors in its keys are reported nevertheless: in
/// those that every measure has and, if the kind is similar to a known one, in the keys of that
/// kind.
pub(super) fn read_measure(notes: &mut ProblemNotes, mut t: TomlTable) -> Option<MeasureSpec> {
    let kind = t.read_setting(notes, "kind", |v| {
        values::parse_word::<WorkloadKind>(read_string(v)?, "a kind of measure")
    });
    if !t.has_key("kind") {
        notes.report_missing(t.span, "this measure has no kind", "write `kind = \"timer\"`");
    }
    let near = || {
        let word = t.key_text("kind")?;
        nearest_word(word, WorkloadKind::WORDS.iter().map(|(known, _)| *known))
            .and_then(WorkloadKind::from_word)
    };
    let meant = kind.as_ref().map(|kind| kind.value).or_else(near);
    let mut measure = MeasureSpec::read(notes, &mut t);
    bound_requirements(notes, &mut measure);
    check_counters(notes, &mut measure);
    // Without a known kind, the remaining keys are unknown.
    if let Some(kind) = meant {
        measure.workload = WorkloadSpec::read(kind, notes, &mut t);
        t.finish(notes);
    }
    kind.map(|_| measure)
}

fn bound_requirements(notes: &mut ProblemNotes, measure: &mut MeasureSpec) {
    let Some(list) = &mut measure.require else { return };
    if list.value.len() > MAX_REQUIREMENTS {
        notes.report_wrong_value(
            list.span,
            Wrong::new(format!("more than {MAX_REQUIREMENTS} requirements are too many")),
        );
        list.value.truncate(MAX_REQUIREMENTS);
    }
}

fn check_counters(notes: &mut ProblemNotes, measure: &mut MeasureSpec) {
    let Some(list) = &mut measure.counters else { return };
    if list.value.len() > MAX_COUNTERS {
        notes.report_wrong_value(
            list.span,
            Wrong::new(format!("`counters`: at most {MAX_COUNTERS} events")),
        );
        list.value.truncate(MAX_COUNTERS);
    }
    let mut seen_events: Vec<&PerfEvent> = Vec::new();
    for event in &list.value {
        if seen_events.contains(&&event.value) {
            notes.report_wrong_value(
                event.span,
                Wrong::new(format!("`counters`: {} is there twice", event.value)),
            );
        }
        seen_events.push(&event.value);
    }
}
