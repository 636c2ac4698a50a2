//! Standard output and standard error.

use crate::exit::Failure;
use punctual_bundle::{Member, Timebase, is_private};
use punctual_core::format::{is_unsafe, width_of};
use punctual_plan::Problems;
use punctual_session::messages::{Listener, Messages};
use punctual_sys::standard_output;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes to standard output. A reader that closed the pipe (`punctual show | head`) has what it
/// wanted: the rest of the command runs, and the exit code is unchanged.
pub fn print_stdout(text: &str) -> Result<(), Failure> {
    match print_to_reader(text) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes output for a reader alone to standard output: a closed pipe is an error, which ends an
/// otherwise endless command.
pub fn print_to_reader(text: &str) -> io::Result<()> {
    let mut out = standard_output()?;
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Standard output, if open.
pub fn standard_output() -> io::Result<StdoutLock<'static>> {
    match standard_output::was_closed() {
        true => Err(io::Error::from_raw_os_error(rustix::io::Errno::BADF.raw_os_error())),
        false => Ok(io::stdout().lock()),
    }
}

/// Writes to a file, or to standard output without one.
pub fn write_to(path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    match path {
        Some(path) => create_file(path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
        None => {
            let mut out = standard_output()?;
            Ok(out.write_all(bytes).and_then(|()| out.flush())?)
        }
    }
}

/// Replaces a file at once: no reader sees a part, and a killed writer leaves the old one. Links
/// are followed; mode and, as far as it may be set, owner stay.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = || {
        let target = path.canonicalize()?;
        let old = target.metadata()?;
        // A name of its own: a neighbour is never in its way.
        let mut temporary_file =
            tempfile::NamedTempFile::new_in(target.parent().unwrap_or(&target))?;
        temporary_file.write_all(bytes)?;
        let _ =
            std::os::unix::fs::fchown(temporary_file.as_file(), Some(old.uid()), Some(old.gid()));
        temporary_file.as_file().set_permissions(old.permissions())?;
        temporary_file.as_file().sync_all()?;
        temporary_file.persist(&target).map_err(|why| why.error).map(drop)
    };
    written().map_err(|why: io::Error| {
        Failure::failed(format!("cannot replace {}: {why}", path.display()))
    })
}

/// Makes a file, or empties it: its owner's alone where it lies in a directory whose recording is.
fn create_file(path: &Path) -> io::Result<File> {
    let mode = if path.parent().is_some_and(is_private) { 0o600 } else { 0o666 };
    OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)
}

/// Writes a page to a file, or without one into a bundle or lab; returns its path.
pub fn write_page(file: Option<&Path>, member: &Member, page: &str) -> Result<PathBuf, Failure> {
    match file {
        Some(file) => write_to(Some(file), page.as_bytes())?,
        None => member.replace_bytes(page.as_bytes()).map_err(Failure::failed)?,
    }
    Ok(file.unwrap_or(member.path()).to_owned())
}

/// Streams large data to a file, or to standard output without one.
pub fn stream_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cannot = |path: &Path, error: io::Error| {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    };
    match path {
        Some(path) => {
            let mut out = BufWriter::new(create_file(path).map_err(|error| cannot(path, error))?);
            write(&mut out)?;
            out.flush().map_err(|error| cannot(path, error))
        }
        None => {
            let mut out = BufWriter::new(standard_output()?);
            write(&mut out)?;
            Ok(out.flush()?)
        }
    }
}

/// Prints a value as JSON. Characters that could harm a terminal are escaped; the meaning is the
/// same.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::failed(format!("cannot print: {error}")))?;
    print_stdout(&format!("{}\n", escape_json(&text)))
}

/// Prints figures as JSON, with their time base.
pub fn print_figures(document: &impl serde::Serialize, timebase: Timebase) -> Result<(), Failure> {
    #[derive(serde::Serialize)]
    struct FigureColumns<'d, D> {
        timebase: Timebase,
        #[serde(flatten)]
        document: &'d D,
    }
    print_json(&FigureColumns { timebase, document })
}

/// A value as escaped JSON on one line.
pub fn json_line(value: &serde_json::Value) -> String {
    escape_json(&value.to_string())
}

/// Serialising has escaped ASCII control characters; others are only in strings (RFC 8259, section
/// 7).
fn escape_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) && c != '\n' {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
        } else {
            text.push(c);
        }
    }
    text
}

/// Writes to standard error. A closed terminal (EIO) or pipe is ignored, so that a measurement
/// continues; `eprint!` would panic.
pub fn print_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints an error on standard error.
pub fn print_error(message: &str) {
    if message.is_empty() {
        return;
    }
    // Diagnostics of experiment files begin with their own "error:", or with a warning before the
    // error.
    let has_own_prefix =
        ["error: ", "warning: ", "\u{1b}"].iter().any(|start| message.starts_with(start));
    let prefix = match (has_own_prefix, is_colored(&io::stderr())) {
        (true, _) => "",
        (false, true) => "\u{1b}[1;31merror\u{1b}[0m: ",
        (false, false) => "error: ",
    };
    let first = if prefix.is_empty() { 0 } else { "error: ".len() };
    let message = match terminal_size(io::stderr()) {
        Some((columns, _)) => wrap_message(message.trim_end(), columns, first),
        None => message.trim_end().to_owned(),
    };
    print_stderr(&format!("{prefix}{message}\n"));
}

/// Wraps words that a terminal would cut to the next line, indented. `first`: columns missing in
/// the first line.
fn wrap_message(message: &str, columns: usize, first: usize) -> String {
    let mut text = String::with_capacity(message.len());
    let mut used = first;
    for line in message.split_inclusive('\n') {
        // Formatted text, such as the position of an error with its caret, and coloured text stays.
        let stays = line.starts_with(' ') || line.contains(['|', '\u{1b}']);
        for word in line.split_inclusive(' ') {
            let width = width_of(word.trim_end());
            if !stays && used > 0 && used + width > columns && width + 2 < columns {
                text.truncate(text.trim_end_matches(' ').len());
                text.push_str("\n  ");
                used = 2;
            }
            text.push_str(word);
            used += width_of(word);
        }
        used = 0;
    }
    text
}

/// The width of standard output's terminal; 100 without one.
pub fn terminal_width() -> usize {
    terminal_size(io::stdout()).map_or(100, |(columns, _)| columns)
}

/// Columns and rows of a stream's terminal, if it is one and knows them.
pub fn terminal_size(stream: impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether to colour a stream: on a terminal without NO_COLOR (no-color.org).
pub fn is_colored(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether standard error is a terminal that can be drawn on.
pub fn has_terminal() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stderr().is_terminal() && !dumb
}

/// Messages on standard error; with --quiet, progress is not shown.
pub fn stderr_messages(quiet: bool) -> Listener {
    if quiet { &StandardError { quiet: true } } else { &StandardError { quiet: false } }
}

struct StandardError {
    quiet: bool,
}

impl Messages for StandardError {
    fn say(&self, text: &str) {
        print_stderr(text);
    }

    fn report_error(&self, message: &str) {
        print_error(message);
    }

    fn warn(&self, problems: &Problems) {
        print_stderr(&problems.render(is_colored(&io::stderr())));
    }

    fn show_progress(&self, line: &str) {
        if !self.quiet {
            print_stderr(&format!("{line}\n"));
        }
    }

    fn progress_of(&self, name: &str, line: &str) {
        match is_colored(&io::stderr()) {
            true => self.show_progress(&format!("\u{1b}[1m{name}\u{1b}[0m: {line}")),
            false => self.show_progress(&format!("{name}: {line}")),
        }
    }

    fn line_width(&self) -> Option<usize> {
        let width = || terminal_size(io::stderr()).map_or(80, |(columns, _)| columns);
        (!self.quiet && has_terminal()).then(width)
    }

    fn replace_line(&self, line: &str) {
        if !self.quiet && has_terminal() {
            // Carriage return and "erase to the end of the line" (ECMA-48).
            print_stderr(&format!("\r{line}\u{1b}[K"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_a_private_recording_is_private() {
        use std::fs::{DirBuilder, Permissions, metadata, set_permissions};
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let place = tempfile::tempdir().expect("a directory");
        set_permissions(place.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let mode = |name: &str| {
            let file = place.path().join(name);
            write_to(Some(&file), b"x").expect("written");
            let streamed = place.path().join(format!("{name}.2"));
            stream_to(Some(&streamed), |out| Ok(out.write_all(b"x")?)).expect("written");
            let modes = [file, streamed].map(|of| metadata(of).expect("it").permissions().mode());
            assert_eq!(modes[0], modes[1]);
            modes[0] & 0o077
        };
        let open = mode("before");
        assert_ne!(open & 0o044, 0, "the umask of this test leaves nothing to see");
        DirBuilder::new().mode(0o700).create(place.path().join("recording")).expect("made");
        assert_eq!(mode("page"), 0);
    }

    #[test]
    fn words_are_not_cut_at_the_edge_of_the_terminal() {
        let message = "this machine lacks the kernel series 9.9\nsecond line\n";
        assert_eq!(
            wrap_message(message, 24, 7),
            "this machine\n  lacks the kernel\n  series 9.9\nsecond line\n"
        );
        assert_eq!(wrap_message(message, 100, 7), message);
        let place = "  --> experiment.toml:3:1 and more than there is room for";
        assert_eq!(wrap_message(place, 20, 0), place);
        let long = "a_word_that_is_wider_than_any_terminal_may_be";
        assert_eq!(wrap_message(long, 20, 7), long);
    }
}
