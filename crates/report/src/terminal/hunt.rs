//! The findings of a search.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::sentence::hunt as words;
use crate::tables::hunt as tables;
use punctual_bundle::hunt::{Against, HuntDocument};
use punctual_bundle::summary::VerdictWord;

/// Causes and failures shown.
const LEAST: usize = 6;
const FAILED: usize = 6;

/// The whole page: the answer, all causes, and at the end the minimal loads that show them.
/// `directory` is inserted into the commands.
pub fn hunt(document: &HuntDocument, directory: &str, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    out.heading(&format!("search on kernel {}", format::plain(&document.kernel)));
    write_required(&mut out, document);
    if let Some(text) = words::figure(document) {
        out.paragraph("  ", "  ", Tone::Strong, &text);
    }
    out.paragraph("  ", "  ", Tone::Plain, &words::extent(document));
    let has_causes = !document.causes.is_empty() || document.worst.is_some();
    if has_causes {
        table::section(&mut out, &tables::causes(document, directory));
    }
    write_failed(&mut out, document, directory);
    document.against.iter().for_each(|against| write_against(&mut out, document, against));
    out.heading("limits");
    out.paragraph("  ", "  ", Tone::Faint, words::NO_BOUND);
    if has_causes {
        out.heading("the smallest loads that show them");
        write_least(&mut out, document, directory);
    }
    out.finish()
}

fn write_required(out: &mut Page, document: &HuntDocument) {
    for required in &document.required {
        let tone = match required.verdict {
            VerdictWord::Met => Tone::Plain,
            _ => Tone::Bad,
        };
        out.paragraph("  ", "    ", tone, &words::required(required));
    }
}

fn write_least(out: &mut Page, document: &HuntDocument, directory: &str) {
    let causes = document.causes.iter().take(LEAST).enumerate();
    let causes = causes.map(|(place, cause)| (place + 1, cause));
    for (number, cause) in causes.chain(document.worst.iter().map(|worst| (0, worst))) {
        let text = words::least(cause);
        out.paragraph(&format!("  {number}  "), "     ", Tone::Plain, &text);
        if let Some(file) = &cause.least.file {
            let command = format!("punctual run {directory}/{file} --exact");
            out.line(&format!("     {}", format::plain(&command)));
        }
    }
    if let Some(text) = words::minimised(document) {
        out.paragraph("  ", "  ", Tone::Plain, &text);
    }
}

fn write_failed(out: &mut Page, document: &HuntDocument, directory: &str) {
    if document.failures.is_empty() {
        return;
    }
    out.heading("failures");
    for (place, failure) in document.failures.iter().take(FAILED).enumerate() {
        let text = words::failure(failure);
        out.paragraph(&format!("  {}  ", place + 1), "     ", Tone::Bad, &text);
        if let Some(file) = &failure.file {
            out.line(&format!(
                "     punctual run {}",
                format::plain(&format!("{directory}/{file}"))
            ));
        }
        if let Some(console) = &failure.console {
            out.line(&format!("     {}", format::plain(&format!("{directory}/{console}"))));
        }
    }
    if document.failures.len() > FAILED {
        let more = (document.failures.len() - FAILED) as u64;
        out.line(&format!("  … and {} in hunt.json", format::counted(more, "more failure")));
    }
}

fn write_against(out: &mut Page, document: &HuntDocument, against: &Against) {
    let (here, there) = (format::plain(&document.kernel), format::plain(&against.kernel));
    out.heading(&format!("{here} against {there}"));
    out.paragraph("  ", "  ", Tone::Plain, &words::against(against));
    table::body(out, &tables::against(document, against, true));
}
