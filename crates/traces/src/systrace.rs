//! Pages of systrace and of Android's trace viewer: HTML with text of ftrace in some of its scripts
//! (catapult: systrace/systrace/output_generator.py). Android's atrace prints the same text behind
//! a line `TRACE:`, which needs no reader of its own.

use crate::reader::Format;
use crate::text::{TextReader, TraceLines, is_of_ftrace};
use std::io::{self, Read};

pub(crate) const FORMAT: Format = Format {
    word: "systrace page",
    recognizes: is_page_of_systrace,
    open: |input| Ok(Box::new(TextReader::new(Box::new(SystracePage::new(input.in_sequence()))))),
};

/// The title of each, and what begins its traces; the viewer's own megabytes are between.
const SIGNS: [&[u8]; 3] = [b"Android System Trace", SECTION, QUOTED];
const SECTION: &[u8] = b"class=\"trace-data\"";
/// Before 2013 the text was a string of the page's script, each line `…\n\`.
const QUOTED: &[u8] = b"linuxPerfData = \"";
const END: &[u8] = b"</script>";
const END_OF_QUOTED: &[u8] = b"\\n\";";

fn is_page_of_systrace(head: &[u8]) -> bool {
    let begin = head.trim_ascii_start();
    let of_html = [&b"<!doctype html"[..], b"<html"]
        .into_iter()
        .any(|tag| begin.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag)));
    of_html && SIGNS.iter().any(|sign| find_part(head, sign).is_some())
}

/// The place in a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PagePlace {
    /// HTML, or a script without text of ftrace.
    Html,
    /// At the begin of a script for data: processes, JSON, or text of ftrace.
    Begin,
    Trace,
    Quoted,
}

/// The text of ftrace of a page, as the bytes of one file.
struct SystracePage {
    lines: TraceLines,
    place: PagePlace,
    text: Vec<u8>,
    given: usize,
    ended: bool,
}

impl SystracePage {
    fn new(bytes: Box<dyn Read>) -> SystracePage {
        let (lines, place) = (TraceLines::new(bytes), PagePlace::Html);
        SystracePage { lines, place, text: Vec::new(), given: 0, ended: false }
    }

    /// Takes the next line of the page.
    fn advance_line(&mut self) -> io::Result<()> {
        let place = self.place;
        let too_long = self.lines.too_long;
        let Some(line) = self.lines.next()? else {
            self.ended = true;
            // A line without an end: the page was cut off within its trace.
            self.text.extend(matches!(place, PagePlace::Trace | PagePlace::Quoted).then_some(b' '));
            return Ok(());
        };
        let end = find_part(line, END).or_else(|| match place {
            PagePlace::Quoted => find_part(line, END_OF_QUOTED),
            _ => None,
        });
        let inner = &line[..end.unwrap_or(line.len())];
        self.place = match place {
            PagePlace::Html if find_part(line, SECTION).is_some() => PagePlace::Begin,
            PagePlace::Html if find_part(line, QUOTED).is_some() => PagePlace::Quoted,
            _ if end.is_some() => PagePlace::Html,
            PagePlace::Begin if inner.trim_ascii().is_empty() => PagePlace::Begin,
            PagePlace::Begin if is_of_ftrace(inner) => PagePlace::Trace,
            PagePlace::Begin => PagePlace::Html,
            before => before,
        };
        let given_text = match (place, self.place) {
            (PagePlace::Trace, _) | (PagePlace::Begin, PagePlace::Trace) => inner,
            (PagePlace::Quoted, _) => inner.strip_suffix(b"\\n\\").unwrap_or(inner),
            _ => b"",
        };
        if !given_text.trim_ascii().is_empty() {
            self.text.extend(given_text);
            self.text.push(b'\n');
        }
        // Something that cannot be read, and is counted as such, in place of what was skipped.
        let is_in_trace = matches!(place, PagePlace::Trace | PagePlace::Quoted);
        let skipped = self.lines.too_long - too_long;
        (0..skipped.min(u64::from(is_in_trace))).for_each(|_| self.text.extend(b"too long\n"));
        Ok(())
    }
}

impl Read for SystracePage {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() {
            self.text.clear();
            self.given = 0;
            while self.text.is_empty() && !self.ended {
                self.advance_line()?;
            }
        }
        let count = into.len().min(self.text.len() - self.given);
        into[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

fn find_part(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
