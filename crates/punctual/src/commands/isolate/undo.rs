//! `punctual isolate undo`.

use super::create::write_section;
use super::journals::{journal_failure, system_journals};
use crate::commands::boot::report_trial;
use crate::exit::{Ending, Exit};
use crate::output;
use punctual_core::format::{count_with_noun, escape_unsafe};
use punctual_host::isolate::lasting::SERVICE;
use punctual_host::isolate::{PARTRT_SETTINGS, take_over};
use punctual_host::journal::record::ChangePurpose;
use punctual_host::journal::report::JournalReport;
use punctual_host::journal::{IfChanged, SavedJournal, UndoReport, undo_journals};
use std::cell::Cell;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Revert all changes, even after a crash
///
/// Reverts the entries of the journal, newest first. Settings changed by another program in the
/// meantime are reported and left as they are; the journal is then kept and the exit code is 1.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate undo\n  punctual isolate undo --force\n  \
                        punctual isolate undo --fixes")]
pub struct IsolateUndoArgs {
    /// Also restore settings that another program changed in the meantime
    #[arg(long, conflicts_with = "keep")]
    force: bool,
    /// Leave what cannot be restored as it is, and delete the journal
    #[arg(long)]
    keep: bool,
    /// Revert the changes of `punctual check --fix` instead
    #[arg(long)]
    fixes: bool,
    /// Revert everything: partition and fixes
    #[arg(long, conflicts_with = "fixes")]
    all: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: IsolateUndoArgs) -> Ending {
    let (files, store) = system_journals();
    let if_changed = match (args.force, args.keep) {
        (true, _) => IfChanged::Overwrite,
        (_, true) => IfChanged::Keep,
        _ => IfChanged::Report,
    };
    let (fixes, others) = (Cell::new(false), Cell::new(false));
    let wanted = |saved: &SavedJournal| {
        let fix = saved.begin.as_ref().is_some_and(|begin| begin.purpose == ChangePurpose::Fix);
        let wanted = args.all || fix == args.fixes;
        let left = if fix { &fixes } else { &others };
        left.set(left.get() || !wanted);
        wanted
    };
    // A partition of partrt is one of ours from here on.
    let unknown = match args.fixes {
        true => None,
        false => {
            take_over(&files, &store, partrt_settings().as_deref()).map_err(journal_failure)?
        }
    };
    let report = undo_journals(&store, &files, if_changed, wanted).map_err(journal_failure)?;
    if args.json {
        output::print_json(&report)?
    } else {
        let mut text = format_report(&report);
        write_section(
            &mut text,
            "changed by partrt, and left: the former values are not known",
            unknown.into_iter().flatten(),
        );
        output::print_stdout(&text)?;
        if Path::new("/").join(SERVICE).exists() {
            output::print_stderr(
                "note: the partition is made again at the next boot: `punctual isolate unit \
                 --remove` removes what makes it\n",
            );
        }
        if fixes.get() {
            output::print_stderr(
                "note: the changes of `punctual check --fix` are still in force: `punctual isolate \
                 undo --fixes` reverts them\n",
            );
        }
        if others.get() {
            output::print_stderr(
                "note: a partition or its tweaks are still in force: `punctual isolate undo` \
                 reverts them\n",
            );
        }
        // A trial of another boot is in no journal.
        report_trial();
    }
    Ok(if report.is_complete() { Exit::Done } else { Exit::Failed })
}

/// The text of partrt's file, if root wrote it: it is in /tmp.
fn partrt_settings() -> Option<String> {
    let meta = std::fs::symlink_metadata(PARTRT_SETTINGS).ok()?;
    let is_safe = meta.is_file() && meta.uid() == 0 && meta.mode() & 0o022 == 0;
    is_safe.then(|| std::fs::read_to_string(PARTRT_SETTINGS).ok()).flatten()
}

fn format_report(report: &UndoReport) -> String {
    let mut text = String::new();
    let aside = report
        .put_aside
        .iter()
        .map(|name| format!("{name}: from an earlier boot; its changes are gone"));
    write_section(&mut text, "moved aside", aside);
    if report.journals.is_empty() {
        text += "nothing to undo\n";
    }
    report.journals.iter().for_each(|journal| format_journal(&mut text, journal));
    text
}

fn format_journal(text: &mut String, journal: &JournalReport) {
    let restored = count_with_noun(journal.restored.len() as u64, "setting");
    let returned = count_with_noun(journal.tasks_returned as u64, "task");
    let _ = writeln!(text, "{}: {restored} restored, {returned} moved back", journal.name);
    if journal.affinities_restored + journal.affinities_left > 0 {
        let (restored, left) = (journal.affinities_restored, journal.affinities_left);
        let _ = writeln!(
            text,
            "affinities of tasks: {restored} restored, {left} kept because they were changed in \
             the meantime"
        );
    }
    let changed = journal.changed_hands.iter().map(|one| {
        let what =
            if one.overwritten { "overwritten with" } else { "left as it is; before it was" };
        format!(
            "{}: `{}`, not `{}`; {what} `{}`",
            escape_unsafe(&one.path),
            escape_unsafe(&one.found),
            one.expected,
            escape_unsafe(&one.before)
        )
    });
    write_section(text, "changed by another program in the meantime", changed);
    let failed = journal
        .failed
        .iter()
        .map(|one| format!("{}: {}", escape_unsafe(&one.path), escape_unsafe(&one.why)));
    write_section(text, "not restored", failed);
    if !journal.damaged.is_empty() {
        let _ = writeln!(
            text,
            "lines {:?} of the journal cannot be read: a change may remain",
            journal.damaged
        );
    }
    if !journal.complete {
        *text += "the journal is kept; --force restores what another program changed, --keep \
                  leaves it and deletes the journal\n";
    }
}
