//! A document as a page without a script.

use super::{Document, Item, List, Section, Title};
use crate::format::escape_unsafe;
use crate::html::lab::Scripted;
use crate::html::page::{STYLE, fill_template, page_style, security_policy};
use crate::html::plot::Plot;
use crate::html::table::{Table, capitalize_heading, format_caption, tone_class};
use crate::html::text::{clip_text, format_name};
use crate::html::{BUILT, HtmlError, PlotDrawing};
use crate::tables::{self, Face, Tone};
use minijinja::Value;
use punctual_core::{Finding, Severity};
use serde::Serialize;

/// Groups of sections beyond this number are counted but not shown.
const GROUPS: usize = 500;
/// Paragraphs are cut at this many characters.
const LENGTH: usize = 1_000;
/// Places listed for one warning.
const PLACES: usize = 8;

#[derive(Serialize)]
struct Page<'a> {
    policy: Value,
    kind: &'static str,
    title: String,
    head: Vec<Block<'a>>,
    groups: Vec<Group<'a>>,
    left_out: usize,
    version: &'static str,
    style: Value,
    /// The script and its data.
    script: Option<[Value; 2]>,
}

/// The sections below a heading.
#[derive(Default, Serialize)]
struct Group<'a> {
    heading: String,
    /// The heading in the list of sections.
    short: String,
    blocks: Vec<Block<'a>>,
}

impl Group<'_> {
    fn new(heading: String, blocks: Vec<Block<'_>>) -> Group<'_> {
        let short = heading.split([':', ',']).next().unwrap_or_default().to_owned();
        Group { heading, short, blocks }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
enum Block<'a> {
    Answer { class: &'static str, lines: Vec<(String, String)> },
    About { lines: Vec<(String, String)> },
    Text { class: &'static str, text: String },
    List { items: Vec<Listed>, more: usize },
    Table { table: Table, title: String, look: Look, is_timed: bool },
    Plots { plots: &'a [Plot] },
    Curves { drawing: &'a PlotDrawing, reduced: &'a str },
    Findings { warnings: Vec<Warning> },
}

/// Where a table has its title.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Look {
    Captioned,
    /// In the heading of its group.
    Bare,
    /// In a heading of its own, below that of its group.
    Below,
    /// In a line that opens it.
    Folded,
}

#[derive(Serialize)]
struct Listed {
    class: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Warning {
    class: &'static str,
    severity: String,
    message: String,
    places: Vec<String>,
    more: usize,
    remedy: Option<String>,
}

impl Document {
    /// The page.
    ///
    /// # Errors
    /// This build makes no pages, or a template does not fit its data.
    pub fn render_page(&self) -> Result<String, HtmlError> {
        self.page_with(None)
    }

    pub(super) fn page_with(&self, scripted: Option<&Scripted>) -> Result<String, HtmlError> {
        if !BUILT {
            return Err(HtmlError::LeftOut);
        }
        let mut groups = group_sections(self, scripted);
        let head = groups.remove(0).blocks;
        let left_out = groups.len().saturating_sub(GROUPS);
        groups.truncate(GROUPS);
        let style = scripted.map_or_else(|| STYLE.to_owned(), |_| page_style());
        let script = scripted.map_or("", |of| &of.script);
        let page = Page {
            policy: Value::from_safe_string(security_policy(&style, script)),
            kind: self.kind,
            title: capitalize_title(&self.title),
            head,
            groups,
            left_out,
            version: env!("CARGO_PKG_VERSION"),
            style: Value::from_safe_string(style),
            script: scripted.map(|of| {
                [&of.script, &of.embedded].map(|text| Value::from_safe_string(text.clone()))
            }),
        };
        fill_template("document.html", &page, self.timebase)
    }
}

/// A paragraph: visible, of bounded length.
fn to_bounded_text(text: &str) -> String {
    clip_text(&escape_unsafe(&clip_text(text, LENGTH)), LENGTH)
}

/// A heading, with a capital unless it begins with a name.
fn capitalize_title(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    match first.chars().all(|c| c.is_ascii_lowercase()) {
        true => capitalize_heading(&to_bounded_text(text)),
        false => to_bounded_text(text),
    }
}

/// The sections in groups, each with its heading; the first are before any heading.
fn group_sections<'a>(document: &'a Document, scripted: Option<&'a Scripted>) -> Vec<Group<'a>> {
    let mut section_groups = vec![Group::default()];
    // The title of a table is a heading of its own, or one below that of its group.
    let mut is_within = false;
    for section in document.sections_of(Face::Page) {
        let last = section_groups.len() - 1;
        match section {
            Section::Heading(text) => {
                section_groups.push(Group::new(capitalize_title(text), Vec::new()));
                is_within = true;
            }
            Section::Table(table, Title::Heading) if is_within => {
                section_groups[last].blocks.push(of_table(table, Look::Below));
            }
            Section::Table(table, Title::Heading) => {
                let blocks = vec![of_table(table, Look::Bare)];
                section_groups.push(Group::new(format_caption(table).0, blocks));
            }
            Section::Findings(found) if !found.is_empty() => {
                let blocks = vec![Block::Findings { warnings: merge_warnings(found) }];
                section_groups.push(Group::new("Warnings".to_owned(), blocks));
            }
            Section::Curves => {
                let curves =
                    scripted.map(|of| Block::Curves { drawing: &of.drawing, reduced: &of.reduced });
                section_groups[last].blocks.extend(curves);
            }
            section => section_groups[last].blocks.extend(to_block(section)),
        }
    }
    section_groups
}

fn to_block(section: &Section) -> Option<Block<'_>> {
    Some(match section {
        Section::Answer(lines) => Block::Answer {
            class: lines.first().map_or("", |(_, tone, _)| tone_class(*tone)),
            lines: lines
                .iter()
                .map(|(word, _, text)| (capitalize_heading(word), to_bounded_text(text)))
                .collect(),
        },
        Section::About(lines) => Block::About {
            lines: lines
                .iter()
                .map(|(word, text)| (escape_unsafe(word), to_bounded_text(text)))
                .collect(),
        },
        Section::Text(text) => {
            Block::Text { class: paragraph_class(text.tone), text: to_bounded_text(&text.text) }
        }
        Section::List(list) => of_list(list),
        Section::Table(table, Title::Folded) => of_table(table, Look::Folded),
        Section::Table(table, _) => of_table(table, Look::Captioned),
        Section::Plots(plots) => Block::Plots { plots },
        Section::Heading(_) | Section::Findings(_) | Section::Curves => return None,
    })
}

fn paragraph_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Faint => "remark",
        Tone::Strong => "banner",
        Tone::Good => "banner good",
        Tone::Bad => "banner bad",
        Tone::Uncertain => "banner warn",
        Tone::Plain | Tone::Band(_) => "",
    }
}

fn of_table(table: &tables::Table, look: Look) -> Block<'_> {
    let (title, remarks) = format_caption(table);
    let mut drawn = Table::from(table);
    if look != Look::Captioned {
        drawn.caption = remarks;
    }
    Block::Table { table: drawn, title, look, is_timed: !table.untimed }
}

fn of_list(list: &List) -> Block<'_> {
    let listed =
        |item: &Item| Listed { class: tone_class(item.tone), text: to_bounded_text(&item.text) };
    Block::List {
        items: list.items.iter().take(list.shown.page).map(listed).collect(),
        more: list.items.len().saturating_sub(list.shown.page),
    }
}

/// Equal findings of several subjects are merged.
fn merge_warnings(findings: &[Finding]) -> Vec<Warning> {
    let mut merged_warnings: Vec<Warning> = Vec::new();
    for finding in findings {
        let place = [Some(format_name(&finding.subject)), finding.evidence.clone()];
        let place = place.into_iter().flatten().collect::<Vec<_>>().join(": ");
        match merged_warnings.iter_mut().find(|warning| warning.message == finding.message) {
            Some(warning) => warning.places.push(place),
            None => merged_warnings.push(Warning {
                class: match finding.severity {
                    Severity::Bad => "bad",
                    Severity::Warning => "warning",
                    _ => "",
                },
                severity: finding.severity.to_string(),
                message: finding.message.clone(),
                places: vec![place],
                more: 0,
                remedy: finding.remedy.clone(),
            }),
        }
    }
    for warning in &mut merged_warnings {
        warning.more = warning.places.len().saturating_sub(PLACES);
        warning.places.truncate(PLACES);
    }
    merged_warnings
}
