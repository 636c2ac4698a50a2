//! Problems as text, for human readers, editors and scripts.

use crate::escape::{escape_unprintable, replace_unprintable};
use crate::problem::{Problem, ProblemRow, Problems, SHOWN_PROBLEMS, Weight};
use crate::text::{SourceText, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// The number of bytes of a line shown beyond a place; a line is not shown if more bytes than this
/// come before the place.
const LINE_SHOWN_BYTES: usize = 1_000;

impl Problems {
    /// The problems with their lines, in the style of compilers; at most [`SHOWN_PROBLEMS`], then
    /// the number of the rest.
    pub fn render(&self, colored: bool) -> String {
        let renderer =
            if colored { Renderer::styled().hyperlink(false) } else { Renderer::plain() };
        let shown_problems = self.iter().take(SHOWN_PROBLEMS);
        let mut texts: Vec<String> = shown_problems
            .map(|problem| renderer.render(&[build_group(self.source_text(), problem)]))
            .collect();
        let total = self.error_count() + self.warning_count();
        if total > texts.len() {
            texts.push(format!("… and {} more problems in this file", total - texts.len()));
        }
        texts.iter().map(|text| format!("{text}\n")).collect::<Vec<_>>().join("\n")
    }

    /// The kept problems as rows of a table, for JSON and similar formats.
    pub fn problem_rows(&self) -> impl Iterator<Item = ProblemRow> {
        let file = file_name(self.source_text());
        self.iter().map(move |problem| ProblemRow {
            file: file.clone(),
            place: problem.span.map(|span| self.source_text().place_at(span.start)),
            weight: problem.weight,
            message: problem.message.clone(),
            help: problem.help.clone(),
        })
    }

    /// One line per problem, `file:line:column: error: message; help`, the format of compilers.
    pub fn format_lines(&self) -> String {
        let line = |row: ProblemRow| {
            let place = row.place.map(|p| format!("{}:{}:", p.line, p.column)).unwrap_or_default();
            let help = row.help.map(|help| format!("; {help}")).unwrap_or_default();
            format!("{}:{place} {}: {}{help}\n", row.file, row.weight, row.message)
        };
        self.problem_rows().map(line).collect()
    }
}

fn file_name(source: &SourceText) -> String {
    escape_unprintable(&source.path.to_string_lossy()).into_owned()
}

fn build_group<'a>(source: &'a SourceText, problem: &'a Problem) -> Group<'a> {
    let level = match problem.weight {
        Weight::Error => Level::ERROR,
        Weight::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(problem.message.as_str()));
    group = match problem.span {
        Some(span) => add_excerpt(group, source, span, AnnotationKind::Primary, None),
        None => group.element(Origin::path(file_name(source))),
    };
    for (span, label) in &problem.related {
        group = add_excerpt(group, source, *span, AnnotationKind::Context, Some(label));
    }
    match &problem.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

/// Adds the line of a place, marked. For a span over several lines, only the first.
fn add_excerpt<'a>(
    group: Group<'a>,
    source: &'a SourceText,
    span: Span,
    kind: AnnotationKind,
    label: Option<&'a str>,
) -> Group<'a> {
    let place = source.place_at(span.start);
    let line_start = source.line_start(span.start);
    let start = source.floor_char_boundary(span.start);
    if start - line_start > LINE_SHOWN_BYTES {
        let origin = Origin::path(file_name(source)).line(place.line).char_column(place.column);
        return group.element(origin);
    }
    let line_end = line_start + source.line_at(line_start).len();
    let end = source.floor_char_boundary(span.end).clamp(start, line_end.max(start));
    let shown_end = source.floor_char_boundary(start + LINE_SHOWN_BYTES).min(line_end).max(start);
    let before = replace_unprintable(&source.text[line_start..start]);
    let marked = replace_unprintable(&source.text[start..end.min(shown_end)]);
    let after = replace_unprintable(&source.text[end.min(shown_end)..shown_end]);
    let marks = before.len()..before.len() + marked.len();
    let annotation = kind.span(marks).label(label);
    let line = format!("{before}{marked}{after}");
    group.element(
        Snippet::source(line).path(file_name(source)).line_start(place.line).annotation(annotation),
    )
}
