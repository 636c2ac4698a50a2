//! A page under construction: its width, its colours, its characters.

use super::{ShowOptions, Unit};
use crate::format;
pub use crate::tables::Tone;
use std::cell::Cell;

/// Colours by meaning (ECMA-48 SGR parameters of the eight standard colours, which every theme
/// defines).
fn sgr_code(tone: Tone) -> &'static str {
    match tone {
        Tone::Strong => "1",
        Tone::Faint => "2",
        Tone::Good => "32",
        Tone::Uncertain => "33",
        Tone::Bad => "1;31",
        Tone::Plain => "",
        // White on red, blue and magenta, black on the bright colours.
        Tone::Band(1) => "97;41",
        Tone::Band(2) => "30;42",
        Tone::Band(3) => "30;43",
        Tone::Band(4) => "97;44",
        Tone::Band(5) => "97;45",
        Tone::Band(6) => "30;46",
        Tone::Band(_) => "30;47",
    }
}

/// Units in sentences about latencies.
const TIMES: [&str; 2] = [" µs", " ms"];
/// The maximum length of a paragraph on one line: findings are shorter, hostile names are not.
const PARAGRAPH: usize = 600;

/// Lines of output.
pub struct TextPage<'a> {
    pub options: &'a ShowOptions,
    text: String,
    /// Whether a time was written above, and whether the timebase was noted.
    has_times: Cell<bool>,
    is_marked: bool,
}

impl<'a> TextPage<'a> {
    pub fn new(options: &'a ShowOptions) -> TextPage<'a> {
        TextPage { options, text: String::new(), has_times: Cell::new(false), is_marked: false }
    }

    /// Paints a text in a tone, if colours are enabled.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.options.color || tone == Tone::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{}m{text}\u{1b}[0m", sgr_code(tone))
    }

    pub fn push_line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A blank line, except at the top. It ends the section above: its timebase is noted.
    pub fn push_gap(&mut self) {
        self.note_timebase();
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A blank line and a heading.
    pub(crate) fn push_heading(&mut self, text: &str) {
        self.push_gap();
        let heading = self.paint(Tone::Strong, text);
        self.push_line(&heading);
    }

    /// Writes one line with the timebase below the first times that are not the system's own. The
    /// unit of each time names it too.
    fn note_timebase(&mut self) {
        let is_due = self.has_times.get() && !self.is_marked;
        let Some(mark) = self.options.timebase.short_meaning().filter(|_| is_due) else { return };
        self.is_marked = true;
        self.push_paragraph("  ", "  ", Tone::Faint, mark);
    }

    /// A paragraph wrapped at the width; `first` prefixes the first line, `hang` the others. Very
    /// long texts are cut.
    pub(crate) fn push_paragraph(&mut self, first: &str, hang: &str, tone: Tone, text: &str) {
        let max_length = if self.options.whole { usize::MAX } else { PARAGRAPH };
        let text = &format::clip_name(text, max_length, self.options.ascii);
        if TIMES.iter().any(|unit| text.contains(unit)) {
            self.has_times.set(true);
        }
        let width = self.options.width.saturating_sub(format::width_of(hang)).max(20);
        let lead = visible_width(first).saturating_sub(format::width_of(hang)).min(width / 2);
        for (k, line) in wrap_after(text, width, lead).into_iter().enumerate() {
            let line = self.paint(tone, &line);
            self.push_line(&format!("{}{line}", if k == 0 { first } else { hang }));
        }
    }

    /// One of two spellings: `unicode`, or `ascii` if nothing else can be shown.
    pub(crate) fn choose_spelling<T>(&self, unicode: T, ascii: T) -> T {
        if self.options.ascii { ascii } else { unicode }
    }

    /// A latency or deviation in ns, in the unit of the page.
    pub fn format_latency(&self, ns: f64) -> String {
        self.has_times.set(true);
        match self.options.unit {
            Unit::Micros => format::micros_f64(ns),
            Unit::Nanos if ns.fract() == 0.0 || ns.abs() >= 1e4 => format!("{ns:.0}"),
            Unit::Nanos => format!("{ns:.1}"),
        }
    }

    /// The name of that unit, with the timebase: `µs`, `virtual µs`.
    pub(crate) fn unit_name(&self) -> String {
        let unit = match self.options.unit {
            Unit::Micros => self.choose_spelling("µs", "us"),
            Unit::Nanos => "ns",
        };
        self.options.timebase.format_unit(unit)
    }

    pub fn finish(mut self) -> String {
        self.note_timebase();
        if self.options.ascii { to_ascii(&self.text) } else { self.text }
    }
}

/// Replaces non-ASCII characters: findings hold `µ`, `–` and the like; names can hold anything.
pub(crate) fn to_ascii(text: &str) -> String {
    let spell = |c: char| match c {
        'µ' | 'μ' => "u".to_owned(),
        '–' | '—' | '−' => "-".to_owned(),
        '…' => "...".to_owned(),
        '·' => "|".to_owned(),
        '×' => "x".to_owned(),
        '√' => "sqrt ".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => c.escape_unicode().to_string(),
    };
    text.chars().map(spell).collect()
}

/// Breaks a text at its spaces into lines of at most `width` columns; a longer word is broken
/// anywhere.
pub fn wrap_text(text: &str, width: usize) -> Vec<String> {
    wrap_after(text, width, 0)
}

/// Like [`wrap_text`], but the first line is shorter by `lead` columns.
fn wrap_after(text: &str, width: usize, lead: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut lead) = (String::new(), lead);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && lead + format::width_of(&line) + 1 + format::width_of(word) > width {
            lines.push(std::mem::take(&mut line));
            lead = 0;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if lead + format::width_of(&line) >= width {
                lines.push(std::mem::take(&mut line));
                lead = 0;
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// The width of a text without our own colour codes.
fn visible_width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let before = parts.next().map_or(0, format::width_of);
    let later_widths =
        parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| format::width_of(rest)));
    before + later_widths.sum::<usize>()
}
