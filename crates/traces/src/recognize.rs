//! Which format a file is of, by its first bytes.

use crate::dat::looks_like_dat;
use crate::text::looks_like_text_of_ftrace;
use crate::{TraceError, TraceFormat};

/// How many bytes of a file are looked at.
pub(crate) const HEAD: usize = 64 << 10;

/// The format of a file that begins so.
pub(crate) fn recognize(head: &[u8]) -> Result<TraceFormat, TraceError> {
    if looks_like_text_of_ftrace(head) {
        return Ok(TraceFormat::FtraceText);
    }
    if looks_like_dat(head) {
        return Ok(TraceFormat::TraceDat);
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
    Err(TraceError::Unrecognized { hint: hint.to_owned() })
}
