//! `[[measure]]`: the keys of every measure, then those of its kind.

use crate::experiment::{MeasureSpec, WorkloadSpec};
use crate::kinds::WorkloadKind;
use crate::limits::{MAX_COUNTERS, MAX_REQUIREMENTS};
use crate::notes::{ProblemNotes, Wrong};
use crate::section::FileSection;
use crate::table::{TomlTable, text};
use crate::values;
use crate::words::Word;
use punctual_core::PerfEvent;
use punctual_core::words::nearest;

/// The measure, or `None` if its kind is unknown. Errors in its keys are reported nevertheless: in
/// those that every measure has and, if the kind is similar to a known one, in the keys of that
/// kind.
pub(super) fn measure(notes: &mut ProblemNotes, mut t: TomlTable) -> Option<MeasureSpec> {
    let kind =
        t.take(notes, "kind", |v| values::word::<WorkloadKind>(text(v)?, "a kind of measure"));
    if !t.has("kind") {
        notes.missing(t.span, "this measure has no kind", "write `kind = \"timer\"`");
    }
    let near = || {
        let word = t.text("kind")?;
        nearest(word, WorkloadKind::WORDS.iter().map(|(known, _)| *known))
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
        notes.wrong(
            list.span,
            Wrong::new(format!("more than {MAX_REQUIREMENTS} requirements are too many")),
        );
        list.value.truncate(MAX_REQUIREMENTS);
    }
}

fn check_counters(notes: &mut ProblemNotes, measure: &mut MeasureSpec) {
    let Some(list) = &mut measure.counters else { return };
    if list.value.len() > MAX_COUNTERS {
        notes.wrong(list.span, Wrong::new(format!("`counters`: at most {MAX_COUNTERS} events")));
        list.value.truncate(MAX_COUNTERS);
    }
    let mut seen: Vec<&PerfEvent> = Vec::new();
    for event in &list.value {
        if seen.contains(&&event.value) {
            notes.wrong(
                event.span,
                Wrong::new(format!("`counters`: {} is there twice", event.value)),
            );
        }
        seen.push(&event.value);
    }
}
