//! Parses the bytes of a file as an experiment.

use crate::context::{LoadOptions, ResolveContext};
use crate::experiment::Experiment;
use crate::limits::MAX_FILE_BYTES;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::resolve::{self, Resolved, resolve_experiment};
use crate::target::TargetPlan;
use crate::text::{SourceFormat, SourceText, Span};
use crate::{systress, toml_file};
use std::path::Path;
use std::sync::Arc;

/// Reads an experiment file. `path` is for messages; its extension selects the language: `.toml`,
/// or `.cfg` for systress; with any other extension, the content decides.
///
/// # Errors
/// All errors in the file at once.
pub fn load_experiment(
    path: &Path,
    bytes: &[u8],
    options: &LoadOptions,
) -> Result<Experiment, Problems> {
    let (mut experiment, mut problems) = read(path, bytes, options)?;
    problems.sort();
    if problems.error_count() > 0 {
        return Err(problems);
    }
    experiment.warnings = problems.iter().cloned().collect();
    Ok(experiment)
}

/// Reads an experiment file and resolves it for a system: [`load_experiment`] and [`resolve()`]
/// combined, so that CPUs, programs and names are resolved even if another part of the file has
/// errors.
///
/// # Errors
/// All errors at once.
pub fn load_and_resolve(
    path: &Path,
    bytes: &[u8],
    options: &LoadOptions,
    context: &ResolveContext,
) -> Result<(Experiment, Resolved), Problems> {
    let (mut experiment, mut problems) = read(path, bytes, options)?;
    if problems.error_count() == 0 {
        experiment.warnings = problems.iter().cloned().collect();
        return resolve_experiment(&experiment, context).map(|resolved| (experiment, resolved));
    }
    // Valid values are still resolved after an error. Errors that depend on several values could be
    // consequences of it.
    if let Err(more) = resolve_experiment(&experiment, context) {
        let whole = problems.iter().all(|problem| problem.kind != ProblemKind::Syntax);
        let sure = |p: &Problem| {
            p.kind == ProblemKind::NotHere || (whole && p.kind == ProblemKind::Reference)
        };
        problems.append(more.into_filtered(sure));
    }
    problems.sort();
    Err(problems)
}

/// The target of an experiment file, with its settings overridden by `word` (`vm:6.1-rt`, see
/// punctual-run(1)); for callers that need it before the file is resolved. Errors in the file are
/// ignored here: [`load_and_resolve`] reports them.
///
/// # Errors
/// Errors in `word`.
pub fn read_target(
    path: &Path,
    bytes: &[u8],
    options: &LoadOptions,
    word: Option<&str>,
) -> Result<TargetPlan, Problems> {
    let written = read(path, bytes, options).ok().and_then(|(experiment, _)| experiment.target);
    let mut problems = Problems::new(SourceText::new_shared("--target", word.unwrap_or_default()));
    let Some(word) = word else {
        let target = resolve::resolve_target(written.as_ref(), &mut problems);
        return Ok(if problems.error_count() == 0 { target } else { TargetPlan::Host });
    };
    let word_target = toml_file::short_target(word)?;
    let over = match &written {
        Some(written) => word_target.complete_from_same_kind(written),
        None => word_target,
    };
    let target = resolve::resolve_target(Some(&over), &mut problems);
    // The places refer to two texts: none is shown.
    match problems.error_count() {
        0 => Ok(target),
        _ => Err(problems.strip_places()),
    }
}

fn read(
    path: &Path,
    bytes: &[u8],
    options: &LoadOptions,
) -> Result<(Experiment, Problems), Problems> {
    let text = decode_text(path, bytes)?;
    Ok(match detect_language(path, &text.text) {
        SourceFormat::Toml => toml_file::read(text, options),
        SourceFormat::Systress => systress::read(text, options),
    })
}

/// The file as text, if it is text of an acceptable size.
pub(crate) fn decode_text(path: &Path, bytes: &[u8]) -> Result<Arc<SourceText>, Problems> {
    let refuse = |text: &str, span: Option<Span>, message: String, help: &str| {
        let mut problems = Problems::new(SourceText::new_shared(path, text));
        problems.push(Problem::error(ProblemKind::Syntax, span, message).with_help(help));
        Err(problems)
    };
    if bytes.len() > MAX_FILE_BYTES {
        let message =
            format!("the file has more than {MAX_FILE_BYTES} bytes: not an experiment file");
        return refuse("", None, message, "check the path");
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => refuse(
            "",
            None,
            "the file is empty".to_owned(),
            "it needs at least a `[[measure]]`: see punctual-experiment(5)",
        ),
        Ok(text) => Ok(SourceText::new_shared(path, text)),
        Err(error) => {
            let start = error.valid_up_to();
            let byte = bytes.get(start).copied().unwrap_or_default();
            let message = format!(
                "the file is not UTF-8 text: byte {start} (0x{byte:02x}) begins no character"
            );
            let text = String::from_utf8_lossy(bytes);
            refuse(
                &text,
                Some(Span::new(start, start + '\u{fffd}'.len_utf8())),
                message,
                "save it as UTF-8",
            )
        }
    }
}

fn detect_language(path: &Path, text: &str) -> SourceFormat {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("toml") => SourceFormat::Toml,
        Some("cfg") => SourceFormat::Systress,
        _ if looks_like_systress(text) => SourceFormat::Systress,
        _ => SourceFormat::Toml,
    }
}

/// Whether the first non-empty line begins a stanza: `main`, `timer_thread[0] {`. TOML begins with
/// `[`, or has a `=`.
fn looks_like_systress(text: &str) -> bool {
    let code = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let first = text.trim_start_matches('\u{feff}').lines().map(code).find(|line| !line.is_empty());
    first.is_some_and(|line| {
        line.starts_with(|c: char| c.is_ascii_alphabetic()) && !line.contains('=')
    })
}
