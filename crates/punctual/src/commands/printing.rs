//! A document as tables, or as its JSON.

use super::bundle::show_options;
use crate::exit::Failure;
use crate::output;
use punctual_report::terminal::ShowOptions;
use punctual_session::messages::display_path;
use serde::Serialize;
use std::path::Path;

/// Prints a document: as its JSON, or as tables followed by these paths.
///
/// # Errors
/// The document cannot be printed.
pub fn print_document<D: Serialize>(
    document: &D,
    json: bool,
    tables: impl FnOnce(&ShowOptions) -> String,
    places: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    if json {
        return output::print_json(document);
    }
    let mut text = tables(&show_options());
    let known_places = places.iter().filter_map(|(what, place)| Some((what, (*place)?)));
    for (nth, (what, place)) in known_places.enumerate() {
        let gap = if nth == 0 { "\n" } else { "" };
        text += &format!("{gap}{what:<8}{}\n", display_path(place));
    }
    output::print_stdout(&text)
}
