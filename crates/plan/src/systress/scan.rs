//! The shape of a systress file: stanzas with properties.
//!
//! ```text
//! timer_thread[0] {          # a stanza: a name, perhaps an index, `{` on this line or the next
//!     sched.policy  FIFO     # a property: a key, and a value up to the line's end or a comment
//! }                          # alone on its line, so that values can hold braces
//! ```

use crate::notes::ProblemNotes;
use crate::text::{At, Span};

pub(super) const STANZAS: [&str; 3] = ["main", "timer_thread", "program"];

const SHAPE: &str = "a stanza is `NAME` or `NAME[INDEX]`, then `{`, a property on each line, and \
                     `}` on a line of its own";

/// A stanza as written.
#[derive(Debug)]
pub(super) struct Stanza<'t> {
    /// The header: name and index.
    pub(super) span: Span,
    pub(super) name: &'t str,
    pub(super) index: Option<At<&'t str>>,
    pub(super) properties: Vec<SystressProperty<'t>>,
}

/// A property as written; the value of a lone key is empty.
#[derive(Debug)]
pub(super) struct SystressProperty<'t> {
    pub(super) key: At<&'t str>,
    pub(super) value: At<&'t str>,
}

enum ScanState<'t> {
    Between,
    Headed(Stanza<'t>),
    Inside(Stanza<'t>),
}

/// Reads every stanza; misplaced lines are noted and skipped.
pub(super) fn scan_stanzas<'t>(text: &'t str, notes: &mut ProblemNotes) -> Vec<Stanza<'t>> {
    let mut done = Vec::new();
    let mut state = ScanState::Between;
    for line in text.lines().map(strip_comment).filter(|line| !line.is_empty()) {
        state = match state {
            ScanState::Inside(stanza) if line == "}" => {
                done.push(stanza);
                ScanState::Between
            }
            ScanState::Inside(stanza) if opens_a_stanza(line) => {
                let message =
                    format!("the stanza `{}` is not closed before the next one", stanza.name);
                notes.report_syntax_error(
                    Span::from_slice(line, text),
                    message,
                    "write `}` on a line of its own before this one",
                );
                done.push(stanza);
                begin_stanza(line, text, notes)
            }
            ScanState::Inside(mut stanza) => {
                stanza.properties.push(parse_property(line, text));
                ScanState::Inside(stanza)
            }
            ScanState::Headed(stanza) if line == "{" => ScanState::Inside(stanza),
            ScanState::Headed(mut stanza) => {
                notes.report_syntax_error(
                    stanza.span,
                    format!("`{}` is not followed by `{{`", stanza.name),
                    SHAPE,
                );
                match opens_a_stanza(line) {
                    true => begin_stanza(line, text, notes),
                    false => {
                        stanza.properties.push(parse_property(line, text));
                        ScanState::Inside(stanza)
                    }
                }
            }
            ScanState::Between => begin_stanza(line, text, notes),
        };
    }
    if let ScanState::Headed(stanza) | ScanState::Inside(stanza) = state {
        notes.report_syntax_error(
            stanza.span,
            format!("the stanza `{}` is not closed at the end of the file", stanza.name),
            SHAPE,
        );
        done.push(stanza);
    }
    done
}

/// The content of a line without comment and surrounding blanks. A byte order mark is a blank here.
fn strip_comment(line: &str) -> &str {
    let code = line.split('#').next().unwrap_or_default();
    code.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

fn begin_stanza<'t>(line: &'t str, text: &'t str, notes: &mut ProblemNotes) -> ScanState<'t> {
    let (head, opened) = match line.strip_suffix('{') {
        Some(head) => (head.trim_end(), true),
        None => (line, false),
    };
    let (name, index) = match head.strip_suffix(']').and_then(|head| head.split_once('[')) {
        Some((name, index)) => (name.trim_end(), Some(index.trim())),
        None => (head, None),
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) {
        notes.report_syntax_error(Span::from_slice(line, text), "this belongs to no stanza", SHAPE);
        return ScanState::Between;
    }
    let index = index.map(|index| At::new(Span::from_slice(index, text), index));
    let stanza = Stanza { span: Span::from_slice(head, text), name, index, properties: Vec::new() };
    if opened { ScanState::Inside(stanza) } else { ScanState::Headed(stanza) }
}

/// Whether a line within a stanza can only be the header of the next.
fn opens_a_stanza(line: &str) -> bool {
    let name = line.strip_suffix('{').map(|head| head.split('[').next().unwrap_or_default().trim());
    name.is_some_and(|name| STANZAS.contains(&name))
}

fn parse_property<'t>(line: &'t str, text: &'t str) -> SystressProperty<'t> {
    let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, &line[line.len()..]));
    let value = value.trim_start();
    SystressProperty {
        key: At::new(Span::from_slice(key, text), key),
        value: At::new(Span::from_slice(value, text), value),
    }
}
