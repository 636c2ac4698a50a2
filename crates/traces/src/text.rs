//! Text of ftrace: `trace` and `trace_pipe` of tracefs, `trace-cmd report`, `perf script`
//! (Documentation/trace/ftrace.rst; kernel/trace/trace_output.c).

mod fields;
mod graph;
mod line;
mod lines;
mod metadata;

use crate::TraceError;
use crate::decoder::{Decoder, Head};
use crate::meaning::Meaning;
use crate::reader::{FileStatements, Format, FormatReader};
use line::{Parsed, TextLine, function_name, parse, split_number};
pub(crate) use lines::TraceLines;
use metadata::TextMetadata;
use punctual_core::Nanos;
use punctual_core::event::{CpuContext, Event, Tid};
use std::collections::{HashMap, VecDeque};
use std::io::Read;

/// Whether some line of this is from ftrace.
pub(crate) const FORMAT: Format = Format {
    word: "ftrace text",
    recognizes: looks_like_text_of_ftrace,
    open: |input| Ok(Box::new(TextReader::new(input.in_sequence()))),
};
/// trace_pipe returns events of several CPUs nearly in order.
const HELD: usize = 1_000;

fn looks_like_text_of_ftrace(head: &[u8]) -> bool {
    if head.contains(&0) {
        return false;
    }
    let lines = || head.split(|byte| *byte == b'\n');
    lines().any(|line| line.starts_with(b"# tracer:") || matches!(parse(line), Parsed::Event(_)))
        || lines().filter(|line| graph::is_of_graph(line)).nth(1).is_some()
}

/// Whether a line begins a text of ftrace: its head, that of atrace, or an event.
pub(crate) fn is_of_ftrace(line: &[u8]) -> bool {
    let heads = [&b"#"[..], b"TRACE:", b"CPU:"];
    heads.iter().any(|head| line.starts_with(head)) || matches!(parse(line), Parsed::Event(_))
}

pub(crate) struct TextReader {
    lines: TraceLines,
    decoder: Decoder,
    tracepoints: HashMap<Vec<u8>, usize>,
    said: TextMetadata,
    /// Whether its flags have a column for lazy reschedule requests.
    lazy: bool,
    /// The finest resolution seen.
    step: Option<i64>,
    /// The last event, and the functions of the stack that is shown with it.
    stack: (Option<Head>, Vec<Vec<u8>>),
}

/// Functions of a stack that are kept.
const FRAMES: usize = 64;
/// The number of lines between two checks of the output.
const LINES_PER_CHECK: usize = 256;

impl TextReader {
    pub(crate) fn new(bytes: Box<dyn Read>) -> TextReader {
        TextReader {
            lines: TraceLines::new(bytes),
            decoder: Decoder::default(),
            tracepoints: HashMap::new(),
            said: TextMetadata::default(),
            lazy: false,
            step: None,
            stack: (None, Vec::new()),
        }
    }
}

impl FormatReader for TextReader {
    fn fill_events(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError> {
        let TextReader { lines, decoder, tracepoints, said, lazy, step, stack } = self;
        for _ in 0..LINES_PER_CHECK {
            let Some(line) = lines.next()? else {
                end_stack(stack, decoder, out);
                decoder.finish();
                if let Some((head, values)) = said.head.missing_switch()
                    && let Some(switch) = decoder.intern_tracepoint(None, "sched_switch")
                {
                    decoder.decode_record(switch, Meaning::Switch, head, &values, out);
                }
                said.finish(decoder);
                decoder.unreadable += std::mem::take(&mut lines.too_long);
                if lines.cut_off {
                    decoder.cut_off("its last line has no end");
                }
                return Ok(false);
            };
            match parse(line) {
                Parsed::Event(line) => {
                    end_stack(stack, decoder, out);
                    *step = Some(step.map_or(line.step, |step| step.min(line.step)));
                    said.report_losses_before(&line, decoder, out);
                    *lazy |= CpuContext::is_lazy(line.flags);
                    if !decode_loss(&line, decoder, out) {
                        let head = head_of(&line, *lazy, decoder);
                        stack.0 = Some(head);
                        decode_line(&line, head, (said, decoder), tracepoints, out);
                    }
                }
                Parsed::Comment(text) => said.read_comment(text, decoder),
                Parsed::Other(text) if graph::decode_line(text, decoder) => {}
                Parsed::Other(text) => {
                    // Text pasted before its first line is not damage.
                    let is_of_it = decoder.covered_span().is_some();
                    decoder.unreadable += u64::from(!said.read_notice(text) && is_of_it);
                }
                Parsed::Frame(frame) if stack.1.len() < FRAMES => {
                    stack.1.push(function_name(frame).to_owned());
                }
                Parsed::Frame(_) | Parsed::Nothing => {}
            }
        }
        Ok(true)
    }

    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn decoder_mut(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    fn file_statements(&self) -> FileStatements {
        FileStatements {
            producer: self.said.producer.clone(),
            machine: self.said.machine.clone(),
            resolution: self.step.map(Nanos),
            ..FileStatements::default()
        }
    }

    fn held_back(&self) -> usize {
        HELD
    }
}

/// Takes a loss in the format of `perf script --show-lost-events`: `PERF_RECORD_LOST lost 5`.
fn decode_loss(line: &TextLine<'_>, decoder: &mut Decoder, out: &mut VecDeque<Event>) -> bool {
    let is_loss = line.name.starts_with(b"PERF_RECORD_LOST");
    if is_loss {
        let digits = line.rest.iter().position(u8::is_ascii_digit);
        let count = digits.and_then(|at| split_number(&line.rest[at..]));
        decoder.on_loss(line.cpu, line.at, count.map(|(count, _)| count as u64), out);
    }
    is_loss
}

/// The stack of the last event is complete.
fn end_stack(
    (head, frames): &mut (Option<Head>, Vec<Vec<u8>>),
    decoder: &mut Decoder,
    out: &mut VecDeque<Event>,
) {
    if let Some(head) = head.filter(|_| !frames.is_empty()) {
        decoder.on_stack(frames, head, out);
    }
    frames.clear();
}

/// When and where a line was written, and by whom.
fn head_of(line: &TextLine<'_>, lazy: bool, decoder: &mut Decoder) -> Head {
    let tid = Tid(line.tid);
    decoder.set_comm(tid, line.comm);
    if let Some(process) = line.process {
        decoder.set_process(tid, process);
    }
    let context = CpuContext::of_columns(line.flags, lazy);
    let names =
        context.is_some_and(|of| of.irqs_off == Some(false)) || line.name.starts_with(b"irq_");
    let site = if names { fields::call_site(line.rest, decoder) } else { 0 };
    Head { at: line.at, cpu: line.cpu, tid: Some(tid), context, site }
}

fn decode_line(
    line: &TextLine<'_>,
    head: Head,
    (said, decoder): (&mut TextMetadata, &mut Decoder),
    tracepoints: &mut HashMap<Vec<u8>, usize>,
    out: &mut VecDeque<Event>,
) {
    let of_tracer = fields::of_tracer(line.text);
    let (meaning, values) = of_tracer.map_or((None, Default::default()), |(a, b)| (Some(a), b));
    said.head.on_line(head, meaning, &values);
    if line.text.starts_with(b"#") && decoder.marks.line_of_tracer(head, line.text) {
        let tracepoint = decoder.intern_tracepoint(None, &said.head.tracer);
        tracepoint.into_iter().for_each(|tracepoint| decoder.count_record(tracepoint, head));
        return;
    }
    if let Some((called, caller)) = of_function(line.text) {
        let site = [function_name(called), " ‹ ".as_bytes(), function_name(caller)].concat();
        let site = decoder.intern_name(&site).unwrap_or_default() as u64;
        if let Some(tracepoint) = decoder.intern_tracepoint(None, "function") {
            decoder.on_function_line(tracepoint, Head { site, ..head }, out);
        }
        return;
    }
    if let Some(meaning) = meaning {
        let name = if meaning == Meaning::Switch { "sched_switch" } else { "sched_wakeup" };
        let head = Head { at: said.head.wakes_at(meaning).unwrap_or(head.at), ..head };
        if let Some(tracepoint) = decoder.intern_tracepoint(None, name) {
            decoder.decode_record(tracepoint, meaning, head, &values, out);
        }
        return;
    }
    if line.name.starts_with(b"funcgraph_") {
        graph::take_report(line.rest, head, line.comm, decoder);
    }
    let renamed = of_call(line);
    let name = renamed.as_deref().unwrap_or(line.name);
    let known_tracepoint = tracepoints.get(name).copied();
    let Some(tracepoint) = known_tracepoint.or_else(|| add(name, decoder, tracepoints)) else {
        decoder.unreadable += 1;
        return;
    };
    let (known, rest) = (decoder.tracepoint_at(tracepoint), line.rest);
    match (known.meaning, known.call.as_ref().map(|call| call.enter)) {
        (Some(meaning), _) => {
            let values = fields::read(meaning, rest, decoder);
            decoder.decode_record(tracepoint, meaning, head, &values, out);
        }
        (None, Some(enter)) => {
            let values = fields::of_call(enter, rest);
            decoder.take_call(tracepoint, None, &values, head, out);
        }
        (None, None) => decoder.pass_with_context(tracepoint, head, out),
    }
}

/// `function <-caller` of the function tracer, with offsets where the option sym-offset is set.
fn of_function(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(u8::is_ascii_whitespace)?;
    Some((&text[..end], text[end..].trim_ascii().strip_prefix(b"<-")?))
}

/// tracefs prints system calls by their function: `sys_futex(…)`, `sys_futex -> 0x0`.
fn of_call(line: &TextLine<'_>) -> Option<Vec<u8>> {
    let call = line.name.strip_prefix(b"sys_")?;
    let which: &[u8] = match line.rest {
        rest if rest.starts_with(b"(") => b"sys_enter_",
        rest if rest.starts_with(b"->") => b"sys_exit_",
        _ => return None,
    };
    Some([which, call].concat())
}

/// `sched:sched_switch` in perf, `sched_switch` in all others.
fn add(
    name: &[u8],
    decoder: &mut Decoder,
    tracepoints: &mut HashMap<Vec<u8>, usize>,
) -> Option<usize> {
    let text = std::str::from_utf8(name).ok()?;
    let found = match text.split_once(':') {
        Some((system, event)) => decoder.intern_tracepoint(Some(system), event),
        None => decoder.intern_tracepoint(None, text),
    }?;
    tracepoints.insert(name.to_owned(), found);
    Some(found)
}
