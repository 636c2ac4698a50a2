//! Every command in a document is accepted by this program.

mod scan;

use super::Cli;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use scan::DocumentCommand;

#[test]
fn commands_in_documents_are_accepted() {
    assert_commands_parse(
        scan::document_paths().iter().flat_map(|path| scan::document_commands(path)),
        200,
    );
}

#[test]
fn commands_in_messages_and_remedies_are_accepted() {
    assert_commands_parse(
        scan::source_paths().iter().flat_map(|path| scan::advised_commands(path)),
        40,
    );
}

fn assert_commands_parse(all: impl Iterator<Item = DocumentCommand>, least: usize) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for DocumentCommand { place, words, is_mention } in all {
        count += 1;
        match Cli::try_parse_from(&words) {
            Err(why) if is_wrong(&why, is_mention) => {
                let message = why.to_string();
                let first_line = message.lines().next().unwrap_or_default();
                wrong.push(format!("{place}: {}: {first_line}", words.join(" ")));
            }
            _ => {}
        }
    }
    assert!(count > least, "{count} commands were found");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

fn is_wrong(why: &Error, is_mention: bool) -> bool {
    let placeholder = |value: &ContextValue| {
        matches!(value, ContextValue::String(text)
            if text.is_empty() || text.chars().all(|c| c.is_ascii_uppercase()))
    };
    match why.kind() {
        ErrorKind::MissingRequiredArgument => !is_mention,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !is_mention,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            !why.get(ContextKind::InvalidValue).is_some_and(placeholder)
        }
        _ => why.use_stderr(),
    }
}
