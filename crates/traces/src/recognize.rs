//! Recognises the format of a file by its first bytes.

use crate::ctf::CTF_2;
use crate::dat::looks_like_dat;
use crate::perf::looks_like_perf;
use crate::perfetto::looks_like_perfetto;
use crate::text::looks_like_text_of_ftrace;
use crate::{TraceError, TraceFormat};

/// The format of a file with these first bytes.
pub(crate) fn recognize(head: &[u8]) -> Result<TraceFormat, TraceError> {
    if looks_like_text_of_ftrace(head) {
        return Ok(TraceFormat::FtraceText);
    }
    if looks_like_dat(head) {
        return Ok(TraceFormat::TraceDat);
    }
    if looks_like_perf(head) {
        return Ok(TraceFormat::PerfData);
    }
    if head.starts_with(CTF_2_BEGINS) {
        return Err(TraceError::Unsupported(CTF_2.to_owned()));
    }
    if looks_like_ctf(head) {
        return Err(TraceError::Unsupported(CTF.to_owned()));
    }
    let begins = |magic: &[u8]| head.starts_with(magic);
    let hint = match () {
        () if head.is_empty() => "; this file is empty",
        () if begins(b"\x1f\x8b") => "; this file is compressed by gzip: unpack it first",
        () if begins(b"\x28\xb5\x2f\xfd") => "; this file is compressed by zstd: unpack it first",
        () if begins(b"\xfd7zXZ\0") => "; this file is compressed by xz: unpack it first",
        () if begins(b"BZh") => "; this file is compressed by bzip2: unpack it first",
        () if begins(b"PK\x03\x04") => "; this file is a ZIP archive: unpack it first",
        () if begins(b"version https://git-lfs") => {
            "; this file stands for one that Git LFS has: fetch it first"
        }
        () => "",
    };
    if hint.is_empty() && looks_like_perfetto(head) {
        return Ok(TraceFormat::Perfetto);
    }
    Err(TraceError::Unrecognized { hint: hint.to_owned() })
}

/// The first bytes of the metadata of CTF 2.
const CTF_2_BEGINS: &[u8] = b"\x1e{";

/// A stream, or its metadata in packets or as text.
fn looks_like_ctf(head: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 5] = [
        b"\xc1\x1f\xfc\xc1",
        b"\xc1\xfc\x1f\xc1",
        b"\x57\x1d\xd1\x75",
        b"\x75\xd1\x1d\x57",
        b"/* CTF 1.",
    ];
    BEGINNINGS.iter().any(|magic| head.starts_with(magic))
}

/// Why a single file of such a trace is refused.
pub(crate) const CTF: &str =
    "this is one file of a trace of LTTng (CTF): name the directory that it is in";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_formats_are_refused_by_name() {
        for head in [&b"/* CTF 1.8 */\ntrace {"[..], b"\x57\x1d\xd1\x75"] {
            let refused = recognize(head).unwrap_err().to_string();
            assert!(refused.contains("name the directory"), "{refused}");
        }
        let refused = recognize(b"\x1e{\"type\":\"preamble\"").unwrap_err().to_string();
        assert!(refused.contains("CTF 2"), "{refused}");
        let refused = recognize(b"\x1f\x8b\x08").unwrap_err().to_string();
        assert!(refused.contains("gzip"), "{refused}");
        for text in [&b"\nhello world, this is text"[..], b"\n\n\n\n", b"hello"] {
            assert!(matches!(recognize(text), Err(TraceError::Unrecognized { .. })));
        }
    }
}
