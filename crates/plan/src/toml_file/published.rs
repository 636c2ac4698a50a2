//! `[published]` and its `[[published.result]]`.

use super::sections::{bounded, needs};
use crate::experiment::{PublishedSpec, ResultSpec};
use crate::limits::MAX_SECTIONS;
use crate::notes::Notes;
use crate::table::{Table, text};
use crate::values;

pub(super) fn published(notes: &mut Notes, mut t: Table) -> PublishedSpec {
    let source = t.take(notes, "source", |v| values::remark(text(v)?));
    needs(
        notes,
        &t,
        "source",
        "the source of this result is missing",
        "write `source = \"who, which system\"`",
    );
    let results = t.take_sections(notes, "result", "`[[published.result]]`");
    let results = bounded(notes, results, MAX_SECTIONS);
    let results = results.into_iter().map(|table| result(notes, table)).collect();
    let published = PublishedSpec { span: t.span, source, results };
    t.finish(notes);
    published
}

fn result(notes: &mut Notes, mut t: Table) -> ResultSpec {
    let result = ResultSpec {
        span: t.span,
        what: t.take(notes, "what", |v| values::remark(text(v)?)),
        value: t.take(notes, "value", |v| values::remark(text(v)?)),
        here: t.take(notes, "here", |v| values::term(text(v)?)),
        shape: t.take(notes, "shape", |v| values::shape(text(v)?)),
    };
    needs(notes, &t, "what", "this result does not name what it is of", "write `what = \"…\"`");
    needs(
        notes,
        &t,
        "value",
        "the published value is missing",
        "write `value = \"1,000 to 3,000 µs\"`",
    );
    t.finish(notes);
    result
}
