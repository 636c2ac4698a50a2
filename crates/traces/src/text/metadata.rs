//! The metadata in a text: its header, losses, buffers that begin later.

use super::line::{TextLine, split_number};
use crate::decoder::Decoder;
use crate::marks::LatencyHead;
use punctual_core::event::Event;
use std::collections::VecDeque;

/// The metadata so far; some of it concerns the next event of a CPU.
#[derive(Default, Debug)]
pub(super) struct TextMetadata {
    pub(super) producer: Option<String>,
    /// As in uname(2): the numbers of system calls are those of its kernel.
    pub(super) machine: Option<String>,
    /// Losses on CPUs before their next event.
    lost: Vec<(u16, Option<u64>)>,
    /// A line stands for others that are left out.
    elided: bool,
    /// The number of entries stated in headers of buffers: before `/` in
    /// `entries-in-buffer/entries-written` and after `#` in `latency: 72 us, #123/123`.
    stated: u64,
    /// The number of lines that are entries, of any meaning.
    found: u64,
    /// What the head of a latency tracer states.
    pub(super) head: LatencyHead,
}

/// The maximum number of CPUs with pending losses.
const MAX_CPUS_WITH_LOSSES: usize = 1 << 14;

impl TextMetadata {
    /// A line after `#`.
    pub(super) fn read_comment(&mut self, text: &[u8], decoder: &mut Decoder) {
        if let Some(tracer) = text.strip_prefix(b"tracer:") {
            let tracer = String::from_utf8_lossy(tracer.trim_ascii()).into_owned();
            self.end_of_head(decoder);
            self.head = LatencyHead::from_tracer(&tracer);
            self.producer = Some(match tracer.as_str() {
                "nop" => "ftrace".to_owned(),
                _ => format!("ftrace, tracer {}", tracer.escape_debug()),
            });
        }
        self.head.read_comment(&String::from_utf8_lossy(text));
        // No tracer prints it: the line of `punctual recipe tracefs` and `perf script --header` do.
        let machine = [&b"machine:"[..], b"arch :"].iter().find_map(|key| text.strip_prefix(*key));
        if let Some(machine) = machine {
            self.of_machine(machine.trim_ascii(), decoder);
        }
        let of_latency = text.strip_prefix(b"latency:").and_then(|text| text_behind(text, b", #"));
        let counts = text.strip_prefix(b"entries-in-buffer/entries-written:").or(of_latency);
        if let Some((there, after)) = counts.map(<[u8]>::trim_ascii).and_then(split_number)
            && after.starts_with(b"/")
        {
            self.stated = self.stated.saturating_add(there as u64);
        }
        if let Some(at) = text.windows(3).position(|window| window == b"#P:")
            && let Some((cpus @ 1..=MOST_CPUS, _)) = split_number(&text[at + 3..])
        {
            decoder.add_cpu(cpus as u16 - 1);
        }
    }

    /// A file holds the head of one tracer, or several files one after the other.
    fn end_of_head(&mut self, decoder: &mut Decoder) {
        if let Some(moment) = self.head.take_moment() {
            decoder.marks.add(moment);
        }
    }

    /// Only accepted before the first event, as earlier events were read without it.
    fn of_machine(&mut self, name: &[u8], decoder: &mut Decoder) {
        let Ok(name) = std::str::from_utf8(name) else { return };
        if decoder.covered_span().is_none() && self.machine.is_none() {
            decoder.calls.set_machine(name);
            self.machine = decoder.calls.has_names().then(|| name.to_owned());
        }
    }

    /// A line that is not an event; returns whether it has a meaning.
    pub(super) fn read_notice(&mut self, text: &[u8]) -> bool {
        if let Some(cpu) = text.strip_prefix(b"##### CPU ").and_then(split_number) {
            // Its older events were overwritten.
            return self.add_loss(cpu.0, None);
        }
        if let Some((cpu, after)) = text.strip_prefix(b"CPU:").and_then(split_number) {
            // `CPU:2 [LOST 123 EVENTS]`, `CPU:2 [123 EVENTS DROPPED]`, or without a number.
            let inner = after.trim_ascii().strip_prefix(b"[").and_then(|a| a.strip_suffix(b"]"));
            let counts = inner.filter(|inner| contains_part(inner, b"EVENTS")).map(|inner| {
                let digits = inner.iter().position(u8::is_ascii_digit);
                digits.and_then(|at| split_number(&inner[at..])).map(|(count, _)| count as u64)
            });
            if let Some(count) = counts {
                return self.add_loss(cpu, count);
            }
        }
        if text.starts_with(b"cpus=") || text.starts_with(b"version = ") {
            self.producer = Some("trace-cmd report".to_owned());
            return true;
        }
        let is_elision = is_elision(text);
        self.elided |= is_elision;
        is_elision || text.starts_with(b"CPU ") && text.ends_with(b" is empty")
    }

    fn add_loss(&mut self, cpu: i64, count: Option<u64>) -> bool {
        let cpu = u16::try_from(cpu).ok().filter(|_| self.lost.len() < MAX_CPUS_WITH_LOSSES);
        self.lost.extend(cpu.map(|cpu| (cpu, count)));
        cpu.is_some()
    }

    /// An event follows: losses of its CPU occurred before it.
    pub(super) fn report_losses_before(
        &mut self,
        line: &TextLine<'_>,
        decoder: &mut Decoder,
        out: &mut VecDeque<Event>,
    ) {
        self.found += 1;
        if std::mem::take(&mut self.elided) {
            decoder.lost_on_all(line.at, out);
        }
        if self.lost.is_empty() {
            return;
        }
        self.lost.retain(|(cpu, count)| {
            if *cpu == line.cpu {
                decoder.on_loss(*cpu, line.at, *count, out);
            }
            *cpu != line.cpu
        });
    }

    pub(super) fn finish(&mut self, decoder: &mut Decoder) {
        self.end_of_head(decoder);
        for (cpu, count) in self.lost.drain(..) {
            decoder.lost_outside(cpu, count);
        }
        if self.found < self.stated {
            decoder.entries = Some((self.stated, self.found));
        }
    }
}

/// `...`, `[...]`, `<SNIP>`: whoever shows a part of a trace writes such a line.
fn is_elision(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let inner = text.trim_matches(|of: char| "[]<>()".contains(of)).trim();
    let dots = !inner.is_empty() && inner.chars().all(|of| ".\u{2026}".contains(of));
    dots && inner != "." || ["snip", "cut", "skipped"].contains(&&*inner.to_ascii_lowercase())
}

const MOST_CPUS: i64 = 1 << 13;

/// The text after the first occurrence of a part.
fn text_behind<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(part.len()).position(|window| window == part)?;
    text.get(at + part.len()..)
}

fn contains_part(text: &[u8], part: &[u8]) -> bool {
    text_behind(text, part).is_some()
}
