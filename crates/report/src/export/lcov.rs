//! Coverage of programs with points at every function or step, as genhtml and editors read it
//! (geninfo(1), "TRACEFILE FORMAT").

use punctual_bundle::steps::{FileSteps, LineSteps, StepCounts};
use std::fmt::Write;

/// Two tests, so that lines known from the line table alone stay apart: genhtml --show-details.
const TESTS: [(&str, bool); 2] = [("punctual_steps", false), ("punctual_line_table", true)];

/// The tracefile.
pub fn format_tracefile(counts: &StepCounts) -> String {
    let mut out = String::new();
    for (path, file) in &counts.files {
        for (test, derived) in TESTS {
            // A string takes everything.
            let _ = write_file(&mut out, (path.as_str(), file), test, derived);
        }
    }
    out
}

/// A field without line breaks.
fn sanitize_field(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}

fn write_file(
    out: &mut String,
    (path, file): (&str, &FileSteps),
    test: &str,
    derived: bool,
) -> std::fmt::Result {
    let of_test = |(_, line): &(&u64, &LineSteps)| line.is_derived() == derived;
    let lines = || file.lines.iter().filter(of_test);
    if lines().next().is_none() && (derived || file.functions.is_empty()) {
        return Ok(());
    }
    writeln!(out, "TN:{test}\nSF:{}", sanitize_field(path))?;
    for ((line, name), entered) in file.functions.iter().filter(|_| !derived) {
        let name = sanitize_field(name);
        writeln!(out, "FN:{line},{name}\nFNDA:{entered},{name}")?;
    }
    for (number, line) in lines() {
        // Of a line with several steps each is one of its branches.
        for (branch, ran) in line.steps.iter().enumerate().filter(|_| line.steps.len() > 1) {
            let ran = if line.run_count() == 0 { "-".to_owned() } else { ran.to_string() };
            writeln!(out, "BRDA:{number},0,{branch},{ran}")?;
        }
        writeln!(out, "DA:{number},{}", line.run_count())?;
    }
    let hit = lines().filter(|(_, line)| line.run_count() > 0).count();
    writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines().count())
}
