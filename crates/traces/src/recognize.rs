//! Recognises the format of a file by its first bytes.

use crate::input::Input;
use crate::reader::{Format, FormatReader};
use crate::{TraceError, ctf, dat, perf, perfetto, systrace, text};

macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident: $format:expr,)*) => {
        /// A format of traces.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TraceFormat { $($(#[$doc])* $name,)* }

        impl TraceFormat {
            const ALL: [TraceFormat; [$(stringify!($name)),*].len()] = [$(TraceFormat::$name),*];

            const fn format(self) -> Format {
                match self { $(TraceFormat::$name => $format,)* }
            }
        }
    };
}

formats! {
    /// A page of systrace, with text of ftrace in it.
    Systrace: systrace::FORMAT,
    /// Text of ftrace: `trace`, `trace_pipe`, `trace-cmd report`, `perf script`.
    FtraceText: text::FORMAT,
    TraceDat: dat::FORMAT,
    PerfData: perf::FORMAT,
    /// The Common Trace Format, 1.8 and 2, as written by LTTng.
    Ctf: ctf::FORMAT,
    /// A protobuf trace of Perfetto.
    Perfetto: perfetto::FORMAT,
}

impl TraceFormat {
    pub fn word(self) -> &'static str {
        self.format().word
    }

    pub(crate) fn open_reader(self, input: Input) -> Result<Box<dyn FormatReader>, TraceError> {
        (self.format().open)(input)
    }
}

/// The format of a file with these first bytes.
pub(crate) fn recognize_format(head: &[u8]) -> Result<TraceFormat, TraceError> {
    if let Some(format) = TraceFormat::ALL.into_iter().find(|of| (of.format().recognizes)(head)) {
        return Ok(format);
    }
    let begins = |magic: &[u8]| head.starts_with(magic);
    let hint = match () {
        () if head.is_empty() => "; this file is empty",
        () if begins(b"\x1f\x8b") => "; this file is compressed by gzip: unpack it first",
        () if begins(b"\x28\xb5\x2f\xfd") => "; this file is compressed by zstd: unpack it first",
        () if begins(b"\xfd7zXZ\0") => "; this file is compressed by xz: unpack it first",
        () if begins(b"BZh") => "; this file is compressed by bzip2: unpack it first",
        () if begins(b"PK\x03\x04") => "; this file is a ZIP archive: unpack it first",
        () if atrace_compressed(head) => {
            "; this is atrace's compressed output: record it without `-z`"
        }
        () if begins(b"{\"traceEvents\"") => {
            "; this is JSON of Chrome's trace viewer: take the text of ftrace, or Perfetto's own \
             file"
        }
        () if begins(b"<!") || begins(b"<html") => "; this is a page without a trace of systrace",
        () if begins(b"version https://git-lfs") => {
            "; this file is a pointer of Git LFS: fetch its content first"
        }
        () => "",
    };
    Err(TraceError::Unrecognized { hint: hint.to_owned() })
}

/// atrace -z: a line `TRACE:`, and then what zlib compressed.
fn atrace_compressed(head: &[u8]) -> bool {
    const LINE: &[u8] = b"TRACE:\n\x78";
    head.windows(LINE.len()).take(1 << 10).any(|window| window == LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_formats_are_refused_by_name() {
        let of_ctf_2 = b"\x1e{\"type\":\"preamble\"";
        for head in [&b"/* CTF 1.8 */\ntrace {"[..], b"\x57\x1d\xd1\x75", of_ctf_2] {
            let format = recognize_format(head).unwrap();
            let opened = format.open_reader(Input::File(Box::new(head.to_vec())));
            let refused = opened.err().unwrap().to_string();
            assert!(refused.contains("name the directory"), "{refused}");
        }
        let refused = recognize_format(b"\x1f\x8b\x08").unwrap_err().to_string();
        assert!(refused.contains("gzip"), "{refused}");
        for text in [&b"\nhello world, this is text"[..], b"\n\n\n\n", b"hello"] {
            assert!(matches!(recognize_format(text), Err(TraceError::Unrecognized { .. })));
        }
    }
}
