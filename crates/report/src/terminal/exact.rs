//! Samples in virtual time, explained by every instruction between release and arrival.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::sentence::exact as words;
use crate::tables::exact as tables;
use punctual_bundle::exact::{ExactDocument, ExplainedExactSample};
use punctual_core::{CallPath, Nanos};

/// Functions shown that take more instructions in a sample.
const ROWS: usize = 8;
/// The numbers of outermost and of innermost calls shown of a stack.
const STACK: (usize, usize) = (2, 6);

/// The whole page, with at most `samples` samples.
pub fn show_exact_samples(
    document: &ExactDocument,
    samples: usize,
    options: &ShowOptions,
) -> String {
    let mut out = TextPage::new(options);
    out.push_heading(&format!(
        "exact explanation (kernel {}, {} virtual ns an instruction)",
        format::escape_unsafe(&document.kernel),
        document.ns_per_instruction
    ));
    let text = format!(
        "the replay of {} took the same samples, to the last digit: digest {}",
        format::count_with_noun(document.instructions, "instruction"),
        format::short_digest(&document.digest)
    );
    out.push_paragraph("  ", "  ", Tone::Plain, &text);
    for (place, sample) in document.worst.iter().take(samples).enumerate() {
        write_sample(&mut out, document, sample, place + 1);
    }
    if let Some(ordinary) = &document.ordinary {
        out.push_heading(&format!(
            "an ordinary sample: {} virtual µs, {}",
            format::micros_text(Nanos(ordinary.latency_ns)),
            format::count_with_noun(ordinary.instructions, "instruction")
        ));
        table::write_body(&mut out, &tables::part_table(document, ordinary));
    }
    if let Some(response) = tables::response_table(document, samples) {
        table::write_section(&mut out, &response);
    }
    if let Some(difference) = &document.difference {
        out.push_heading(&words::format_compared_run(difference));
        for pair in &difference.pairs {
            for table in tables::difference_tables(pair) {
                table::write_section(&mut out, &table);
            }
        }
    }
    for (disabled, sections) in tables::section_kinds(document.sections.by_kind()) {
        let table = tables::section_table(disabled, sections, document.ns_per_instruction);
        table::write_section(&mut out, &table);
    }
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}

/// The tree of one system call.
pub fn call_path(path: &CallPath, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    table::write_section(&mut out, &crate::tables::call_path::call_path(path));
    out.finish()
}

fn write_sample(
    out: &mut TextPage,
    document: &ExactDocument,
    sample: &ExplainedExactSample,
    place: usize,
) {
    let name = match sample.series.is_empty() {
        true => format!("due at {}", sample.due),
        false => format!("{}/{}", sample.phase, sample.series),
    };
    let number = sample
        .sample
        .map(|sample| format!(", sample {}", format::count_text(sample)))
        .unwrap_or_default();
    out.push_heading(&format!(
        "{place}. {}{number}: {} virtual µs, {}",
        format::escape_unsafe(&name),
        format::micros_text(Nanos(sample.latency_ns)),
        format::count_with_noun(sample.instructions, "instruction")
    ));
    table::write_body(out, &tables::part_table(document, sample));
    let longest = sample.parts.iter().max_by_key(|part| part.instructions);
    if let Some(part) = longest.filter(|part| part.stack.len() > 1) {
        let text = format!("{}: {}", words::part_title(&part.kind), format_stack(&part.stack));
        out.push_paragraph("  ", "    ", Tone::Plain, &text);
    }
    if !sample.more.is_empty() {
        let grown_functions: Vec<String> = sample
            .more
            .iter()
            .take(ROWS)
            .map(|more| {
                format!(
                    "{} +{}",
                    format::escape_unsafe(&more.function),
                    format::count_text(more.here - more.there.min(more.here))
                )
            })
            .collect();
        let text = format!("more than in an ordinary sample: {}", grown_functions.join(", "));
        out.push_paragraph("  ", "    ", Tone::Plain, &text);
    }
    let lines = words::format_lines(sample, ROWS);
    if !lines.is_empty() {
        let text = format!("instructions by source line: {lines}");
        out.push_paragraph("  ", "    ", Tone::Plain, &text);
    }
    if sample.without > 0 {
        let text = format!(
            "{} of its latency were not executed: the CPU waited, or its beginning was not kept",
            format::count_with_noun(sample.without, "instruction")
        );
        out.push_paragraph("  ", "    ", Tone::Uncertain, &text);
    }
}

/// The outermost and the innermost calls.
pub(crate) fn format_stack(stack: &[String]) -> String {
    let (outer, inner) = STACK;
    let clean = |names: &[String]| {
        names.iter().map(|name| format::escape_unsafe(name)).collect::<Vec<_>>().join(" > ")
    };
    match stack.len() > outer + inner {
        true => {
            format!("{} > … > {}", clean(&stack[..outer]), clean(&stack[stack.len() - inner..]))
        }
        false => clean(stack),
    }
}
