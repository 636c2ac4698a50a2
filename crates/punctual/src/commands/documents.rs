//! Documents that can be shown like a bundle: a lab, a tuning, a comparison.

use super::lab;
use super::printing::print_document;
use crate::exit::Failure;
use punctual_bundle::Member;
use punctual_bundle::comparison::{self, Comparison};
use punctual_bundle::lab::{FILE as LAB, LabDocument};
use punctual_bundle::tune::TuningDocument;
use punctual_report::document::{self as report, Document};
use punctual_report::terminal::ShowOptions;
use punctual_session::messages::display_path;
use punctual_study::tune::directory::DOCUMENT as TUNING;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A document with its place.
pub struct PlacedDocument {
    place: PathBuf,
    content: DocumentContent,
}

enum DocumentContent {
    Lab(Box<LabDocument>),
    Tuning(Box<TuningDocument>),
    Comparison(Box<Comparison>),
}

/// The document at this place; `None` if there is none.
///
/// # Errors
/// The document exists, but cannot be read.
pub fn read_document(place: &Path) -> Result<Option<PlacedDocument>, Failure> {
    let has = |name: &str| Member::from_root(place).join(name).exists();
    let content = if has(LAB) {
        DocumentContent::Lab(Box::new(lab::report::read(place)?))
    } else if has(TUNING) {
        DocumentContent::Tuning(Box::new(punctual_study::tune::directory::read_findings(place)?))
    } else if let Some(comparison) = read_comparison(place)? {
        DocumentContent::Comparison(Box::new(comparison))
    } else {
        return Ok(None);
    };
    Ok(Some(PlacedDocument { place: place.to_owned(), content }))
}

/// The comparison that `compare --json` wrote to this file.
fn read_comparison(file: &Path) -> Result<Option<Comparison>, Failure> {
    // JSON begins with a brace, unlike all other files that can be shown. A pipe is not read.
    let mut first = [0];
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let begun =
        is_file && File::open(file).is_ok_and(|mut file| file.read_exact(&mut first).is_ok());
    if !begun || first != *b"{" {
        return Ok(None);
    }
    let read: serde_json::Value = member_of_file(file).read_json().map_err(Failure::refused)?;
    match read["schema"].as_str() {
        Some(comparison::SCHEMA) => serde_json::from_value(read).map(Some).map_err(|why| {
            Failure::refused(format!("{} is not a comparison: {why}", display_path(file)))
        }),
        _ => Ok(None),
    }
}

/// A file as a member of its directory.
fn member_of_file(file: &Path) -> Member {
    let directory = file.parent().filter(|path| !path.as_os_str().is_empty());
    let name = file.file_name().unwrap_or_default();
    Member::from_root(directory.unwrap_or(Path::new("."))).join(name)
}

impl PlacedDocument {
    /// The name of its kind.
    pub fn kind_name(&self) -> &'static str {
        match self.content {
            DocumentContent::Lab(_) => "a lab",
            DocumentContent::Tuning(_) => "a tuning",
            DocumentContent::Comparison(_) => "a comparison",
        }
    }

    /// Prints the document as tables, or as its JSON.
    ///
    /// # Errors
    /// The document cannot be printed.
    pub fn print_placed(&self, json: bool) -> Result<(), Failure> {
        let text = |options: &ShowOptions| self.to_document().to_terminal_text(options);
        match &self.content {
            DocumentContent::Lab(lab) => print_document(lab, json, text, &[]),
            DocumentContent::Tuning(found) => print_document(found, json, text, &[]),
            DocumentContent::Comparison(found) => print_document(found, json, text, &[]),
        }
    }

    /// The document in one screen of Markdown.
    pub fn to_markdown(&self) -> String {
        self.to_document().to_markdown()
    }

    fn to_document(&self) -> Document {
        let place = self.place.display().to_string();
        match &self.content {
            DocumentContent::Lab(lab) => report::build_lab_document(lab, &place, &[]),
            DocumentContent::Tuning(found) => report::build_tuning_document(found, &place),
            DocumentContent::Comparison(found) => report::build_comparison_document(found),
        }
    }

    /// The document's page, and the page's default path. `file`: another path.
    ///
    /// # Errors
    /// A template does not fit its data.
    pub fn render_page(&self, file: Option<&Path>) -> Result<(String, Member), Failure> {
        let page = match &self.content {
            DocumentContent::Lab(lab) => lab::report::render_page(lab, &self.place, file),
            _ => self.to_document().render_page(),
        };
        let member = match self.content {
            DocumentContent::Comparison(_) => member_of_file(&self.place).with_extension("html"),
            _ => Member::from_root(&self.place).join("report.html"),
        };
        Ok((page.map_err(Failure::failed)?, member))
    }
}
