//! `punctual probe --lines`: source lines that can have a probe.

use super::target::ProbeTarget;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::format::{count_text, count_with_noun, escape_unsafe};
use punctual_record::symbols::lines::{SourceLines, WhichLines, list_lines};
use punctual_record::symbols::{Function, FunctionSpec, resolve_functions};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// The maximum size of a source file whose text is shown.
const SOURCE_MAX: u64 = 16 << 20;

/// Lists the lines of these source files and functions; without any, the source files.
pub fn print_lines(words: &[String], target: &ProbeTarget, json: bool) -> Ending {
    let files = target.searched_files()?;
    let listed = match words {
        [] => list_all_files(&files)?,
        words => {
            let listed: Result<Vec<Vec<SourceLines>>, Failure> =
                words.iter().map(|word| list_named_lines(word, &files)).collect();
            listed?.concat()
        }
    };
    if json {
        output::print_json(&as_json(&listed))?;
    } else if words.is_empty() {
        output::print_stdout(&format_overview(&listed))?;
    } else {
        output::print_stdout(&listed.iter().map(format_lines).collect::<String>())?;
    }
    Ok(Exit::Done)
}

/// The source files of the program, or of the first of its libraries that has debug information.
fn list_all_files(files: &[PathBuf]) -> Result<Vec<SourceLines>, Failure> {
    let listed = first_with_lines(files, &WhichLines::All)?;
    listed.map_err(|why| Failure::refused(format!("no lines are known: {why}")))
}

/// The lines of a source file, else of a function.
fn list_named_lines(word: &str, files: &[PathBuf]) -> Result<Vec<SourceLines>, Failure> {
    let (object, source) = match word.split_once(':') {
        Some((object, source)) if !source.contains(':') => (Some(object), source),
        _ => (None, word),
    };
    let of_object = FunctionSpec::parse(&format!("{}:line", object.unwrap_or("any"))).ok();
    let mut searched: Vec<PathBuf> = files.to_vec();
    searched.extend(of_object.as_ref().and_then(|spec| spec.path.clone()));
    searched.dedup();
    if let (Some(spec), Some(_)) = (&of_object, object) {
        searched.retain(|file| spec.is_in(file));
    }
    let of_source = first_with_lines(&searched, &WhichLines::Source(source.to_owned()))?;
    if let Ok(listed) = &of_source
        && !listed.is_empty()
    {
        return Ok(listed.clone());
    }
    let functions = FunctionSpec::parse(word).map_err(|why| vec![why]);
    let functions = functions.and_then(|spec| resolve_functions(&[spec], files));
    match (functions, of_source) {
        (Ok(functions), Ok(_)) => of_functions(&functions),
        (_, Err(why)) => Err(Failure::refused(format!("`{word}`: {why}"))),
        (Err(errors), Ok(_)) => {
            let error_texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let joined_errors = error_texts.join("\n       ");
            let help = "`--lines` alone, before the command, lists the source files";
            Err(Failure::refused(format!(
                "no source file with code is `{word}`; {joined_errors}; {help}"
            )))
        }
    }
}

fn of_functions(functions: &[Function]) -> Result<Vec<SourceLines>, Failure> {
    let mut of_object: BTreeMap<PathBuf, Vec<std::ops::Range<u64>>> = BTreeMap::new();
    for function in functions {
        let end = function.offset.saturating_add(function.size.max(1));
        of_object.entry(function.object.clone()).or_default().push(function.offset..end);
    }
    let lines_of_objects = of_object.into_iter().map(|(object, ranges)| {
        let found = list_lines(&object, &WhichLines::Code(ranges)).map_err(Failure::refused)?;
        found.map_err(Failure::refused)
    });
    let listed: Result<Vec<Vec<SourceLines>>, Failure> = lines_of_objects.collect();
    listed.map(|listed| listed.concat())
}

/// The result of the first of these files with any such line; the inner error is why none has one,
/// for the first of them.
fn first_with_lines(
    files: &[PathBuf],
    which: &WhichLines,
) -> Result<Result<Vec<SourceLines>, String>, Failure> {
    let (mut why, mut known) = (None, false);
    for file in files {
        match list_lines(file, which).map_err(Failure::refused)? {
            Ok(listed) if listed.is_empty() => known = true,
            Ok(listed) => return Ok(Ok(listed)),
            Err(reason) => why = why.or(Some(reason)),
        }
    }
    match (known, why) {
        (false, Some(why)) => Ok(Err(why)),
        (false, None) => Ok(Err("name the program: `./PROGRAM:FILE`, or -- ./PROGRAM".to_owned())),
        (true, _) => Ok(Ok(Vec::new())),
    }
}

fn as_json(listed: &[SourceLines]) -> serde_json::Value {
    let lines = |of: &SourceLines| -> Vec<serde_json::Value> {
        of.lines.iter().map(|(line, places)| json!({"line": line, "places": places})).collect()
    };
    let sources: Vec<serde_json::Value> = listed
        .iter()
        .map(|of| {
            let object = of.object.to_string_lossy();
            json!({"object": object, "file": of.file, "lines": lines(of)})
        })
        .collect();
    json!({"schema": "punctual-lines/1", "sources": sources})
}

fn format_overview(listed: &[SourceLines]) -> String {
    let mut text = String::new();
    if let Some(first) = listed.first() {
        text += &format!("{}\n", escape_unsafe(&first.object.to_string_lossy()));
    }
    for of in listed {
        text += &format!(
            "{:>7} lines  {}\n",
            count_text(of.lines.len() as u64),
            escape_unsafe(&of.file)
        );
    }
    text
}

/// The lines of one source file, with their text if readable.
fn format_lines(of: &SourceLines) -> String {
    let object = escape_unsafe(&of.object.to_string_lossy());
    let lines = count_with_noun(of.lines.len() as u64, "line");
    let mut text = format!("{}: {lines} with code in {object}\n", escape_unsafe(&of.file));
    let source = read_source(of);
    let width = output::terminal_size(std::io::stdout()).map(|(columns, _)| columns);
    for (line, places) in &of.lines {
        let copies = match places {
            1 => String::new(),
            places => format!("×{places}"),
        };
        let source_text = source.get(line).map_or("", String::as_str);
        let row = format!("{line:>7} {copies:>5}  {source_text}");
        let fits = width.map_or(usize::MAX, |width| width.max(20));
        text += row.chars().take(fits).collect::<String>().trim_end();
        text.push('\n');
    }
    text
}

/// The text of the lines, if the source file is still where it was compiled.
fn read_source(of: &SourceLines) -> BTreeMap<u64, String> {
    let regular = std::fs::metadata(&of.file).is_ok_and(|found| found.is_file());
    let Some(file) = Some(&of.file).filter(|_| regular).and_then(|path| File::open(path).ok())
    else {
        return BTreeMap::new();
    };
    let lines = BufReader::new(file.take(SOURCE_MAX)).split(b'\n').map_while(Result::ok);
    let numbered = (1..).zip(lines).filter(|(line, _)| of.lines.contains_key(line));
    let plain_line = |(line, bytes): (u64, Vec<u8>)| {
        (line, escape_unsafe(&String::from_utf8_lossy(&bytes).replace('\t', "    ")))
    };
    numbered.map(plain_line).collect()
}
