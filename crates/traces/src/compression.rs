//! Decompresses parts of a trace.

use flate2::read::ZlibDecoder;
use std::io::{self, Read};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    pub(crate) fn of_name(name: &str) -> Option<Compression> {
        match name {
            "none" => Some(Compression::None),
            "zlib" => Some(Compression::Zlib),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Decompresses at most `size` bytes.
    pub(crate) fn decompress(self, packed: &[u8], size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Compression::None => bytes.extend_from_slice(packed),
            Compression::Zlib => {
                ZlibDecoder::new(packed).take(size).read_to_end(&mut bytes)?;
            }
            Compression::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(packed);
                let invalid =
                    |why| io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {why}"));
                decoder.map_err(invalid)?.take(size).read_to_end(&mut bytes)?;
            }
        }
        Ok(bytes)
    }
}
