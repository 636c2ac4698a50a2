//! A bundle that a command is about, and how it is shown.

use crate::exit::Failure;
use crate::output::{self, colored};
use punctual_bundle::Bundle;
use punctual_report::terminal::ShowOptions;
use std::io;
use std::path::Path;

/// Opens a bundle; that there is none is a wrong request.
pub fn open(path: &Path) -> Result<Bundle, Failure> {
    Bundle::open(path).map_err(Failure::refused)
}

/// The same for the figures of a bundle.
pub fn show_options_of(bundle: &Bundle) -> ShowOptions {
    show_options().in_time(bundle.timebase())
}

/// How standard output wants to be written to.
pub fn show_options() -> ShowOptions {
    ShowOptions { width: output::width(), color: colored(&io::stdout()), ..ShowOptions::default() }
}
