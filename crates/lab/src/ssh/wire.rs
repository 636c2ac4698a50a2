//! The protocol between the two ends of a connection: frames of a kind, a length and as many bytes.
//!
//! The remote end writes a line first, [`GREETING`]: earlier output of its login shell is skipped,
//! and another version is detected.

use std::io::{self, Read, Write};

/// The first line of the remote end, with the version of the protocol.
pub(crate) const GREETING: &[u8] = b"\npunctual-ssh 1\n";
/// The maximum output of a login shell.
const NOISE_MAX: usize = 64 << 10;
/// The maximum of a frame: an end that announces more is not ours.
pub const PAYLOAD_MAX: usize = 1 << 20;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// The kind of a frame.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum FrameKind { $($(#[$doc])* $name = $byte,)* }
        impl FrameKind {
            fn of(byte: u8) -> Option<FrameKind> {
                match byte { $($byte => Some(FrameKind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// To there: the arguments of the run, each ended by NUL; the experiment follows.
    RunRequest = b'o',
    /// To there: the name of the experiment's file, NUL, its bytes. The run begins.
    Experiment = b'e',
    /// To there: end the run as Ctrl-C does.
    Interrupt = b'i',
    /// To there: the bundle has arrived; remove everything.
    Fetched = b'f',
    /// From there, each second: still here.
    Alive = b'.',
    /// From there: standard error of the run.
    Message = b'm',
    /// From there: standard output of the run.
    Answer = b'a',
    /// From there: the run has ended; how, as text.
    Ended = b'x',
    /// From there: a file of the bundle follows: its length (8 bytes, little-endian), its path.
    File = b'F',
    /// From there: bytes of that file.
    Data = b'D',
    /// From there: that file ends: its SHA-256.
    FileEnd = b'S',
    /// From there: the bundle ends: how many files (8 bytes), how many bytes (8 bytes).
    BundleEnd = b'Z',
    /// From there: everything is removed.
    Gone = b'g',
    /// From there: the error that prevents it, as text; nothing follows.
    Failed = b'!',
}

/// One message of either side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireFrame {
    /// Its kind.
    pub kind: FrameKind,
    /// Its contents.
    pub payload: Vec<u8>,
}

/// Writes a complete frame.
pub fn write(out: &mut impl Write, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
    if payload.len() > PAYLOAD_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too long for a frame"));
    }
    let mut frame = Vec::with_capacity(payload.len() + 5);
    frame.push(kind as u8);
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(payload);
    out.write_all(&frame)?;
    out.flush()
}

/// Reads the next one; `None` at the end.
pub fn read(from: &mut impl Read) -> io::Result<Option<WireFrame>> {
    let mut kind = [0];
    if from.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    let kind = FrameKind::of(kind[0]).filter(|_| length <= PAYLOAD_MAX);
    let kind = kind.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "the data received is not a frame of punctual")
    })?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok(Some(WireFrame { kind, payload }))
}

/// Skips everything up to the end of the greeting; the error is the output without one.
pub(crate) fn expect_greeting(from: &mut impl Read) -> Result<(), String> {
    // The greeting begins with a line feed, which the first line may lack before it.
    let mut seen_bytes = vec![b'\n'];
    let mut byte = [0];
    while seen_bytes.len() < NOISE_MAX {
        match from.read(&mut byte) {
            Ok(1..) => seen_bytes.push(byte[0]),
            Ok(_) => break,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why.to_string()),
        }
        if seen_bytes.ends_with(GREETING) {
            return Ok(());
        }
    }
    Err(String::from_utf8_lossy(&seen_bytes[1..]).chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn output_before_the_greeting_is_skipped() {
        for noise in ["", "Welcome!\n", "no line feed"] {
            let mut stream = noise.as_bytes().to_vec();
            stream.extend_from_slice(GREETING);
            write(&mut stream, FrameKind::Ended, b"0").unwrap();
            let mut stream = stream.as_slice();
            expect_greeting(&mut stream).unwrap();
            assert_eq!(
                read(&mut stream).unwrap().unwrap(),
                WireFrame { kind: FrameKind::Ended, payload: b"0".to_vec() }
            );
            assert_eq!(read(&mut stream).unwrap(), None);
        }
        assert_eq!(expect_greeting(&mut &b"sh: not found"[..]), Err("sh: not found".into()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut stream = bytes.as_slice();
            while let Ok(Some(_)) = read(&mut stream) {}
        }
    }
}
