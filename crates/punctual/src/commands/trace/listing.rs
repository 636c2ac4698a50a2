//! `--events list`, and the words of options.

use crate::exit::{Ending, Exit, Failure};
use crate::output::{self, terminal_width};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use punctual_core::event::Group;
use punctual_core::format::escape_unsafe;
use punctual_record::tracefs::Tracefs;
use punctual_record::{Backend, Recorder, Request, syscall_number};
use punctual_report::terminal::wrap_text;
use punctual_session::request;

/// Recorders by their words.
const BACKENDS: [(&str, Backend, &str); 4] = [
    ("auto", Backend::Auto, "the cheapest backend that works here"),
    ("btf", Backend::Btf, "BPF programs on tracepoints with BTF; filters run in the kernel"),
    (
        "tracepoint",
        Backend::Tracepoint,
        "BPF programs on tracepoints by their format, for kernels without BTF",
    ),
    ("tracefs", Backend::Tracefs, "the kernel's own trace buffers, for kernels without BPF"),
];

/// The values of the option.
pub fn backend_parser() -> impl TypedValueParser<Value = Backend> {
    let values = BACKENDS.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(values).map(|word| {
        let chosen_backend = BACKENDS.iter().find(|(other, _, _)| *other == word);
        chosen_backend.map_or(Backend::Auto, |(_, backend, _)| *backend)
    })
}

/// System calls by name, as in section 2 of the manual, or by number.
pub fn syscall_numbers(words: &[String]) -> Result<Vec<u32>, Failure> {
    let number = |word: &String| {
        let call_number = word.parse().ok().or_else(|| syscall_number(word));
        call_number.ok_or_else(|| {
            Failure::refused(format!("`{word}` is not a system call of this architecture"))
        })
    };
    words.iter().map(number).collect()
}

/// The column of a group's description.
const BEHIND: usize = 17;

/// Describes every group and tries to record it: only an attempt shows reliably whether that works.
pub fn list_events() -> Ending {
    let tried = Recorder::start(Request::new(Group::ALL, request::online_cpus()?));
    let (available, findings) = match &tried {
        Ok(recorder) => (recorder.coverage_so_far().groups, recorder.findings().to_vec()),
        Err(_) => (Vec::new(), Vec::new()),
    };
    let mut text = String::new();
    let further = format!("\n{}", " ".repeat(BEHIND));
    for group in Group::ALL {
        let availability = if available.contains(group) { "yes" } else { "no " };
        let usual = if Group::USUAL.contains(group) { "*" } else { " " };
        let lines = wrap_text(group.explanation(), terminal_width().saturating_sub(BEHIND).max(20));
        text += &format!("{:<10}{usual} {availability}  {}\n", group.word(), lines.join(&further));
    }
    text += "\n* recorded by default; yes: available here\n";
    for finding in &findings {
        let evidence =
            finding.evidence.as_ref().map_or(String::new(), |evidence| format!(": {evidence}"));
        let lines = wrap_text(
            &escape_unsafe(&format!("{}{evidence}", finding.message)),
            terminal_width().saturating_sub(2).max(20),
        );
        text += &format!("{}\n", lines.join("\n  "));
    }
    if let Err(why) = &tried {
        text += &format!("{}\n", escape_unsafe(&why.to_string()));
    }
    text += &format_tracepoints();
    output::print_stdout(&text)?;
    Ok(Exit::Done)
}

/// Every tracepoint of this kernel, with the fields of its records.
fn format_tracepoints() -> String {
    let tracefs = match Tracefs::open() {
        Ok(tracefs) => tracefs,
        Err(why) => return format!("\ntracepoints by name, GROUP:NAME: {}\n", escape_unsafe(&why)),
    };
    let mut text = "\ntracepoints by name, with their fields\n".to_owned();
    for group in tracefs.group_names() {
        for event in tracefs.event_names(&group) {
            let name = escape_unsafe(&format!("{group}:{event}"));
            let fields = match tracefs.tracepoint_format(&group, &event) {
                Ok(format) => format.field_names().join(" "),
                Err(why) => format!("(fields not known: {why})"),
            };
            text += format!("{name}  {}", escape_unsafe(&fields)).trim_end();
            text.push('\n');
        }
    }
    text
}
