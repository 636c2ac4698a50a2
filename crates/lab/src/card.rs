//! The memory card that returns the results of a board without virtio: an image that the guest's
//! init writes and this machine reads. `way_card.sh` describes its layout; its content is
//! untrusted.

use crate::LabError;
use punctual_core::encode_hex;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The card's file in the run's directory.
pub(crate) const CARD: &str = "card";
/// The card's size: the board's memory, which holds the results first. QEMU needs a power of two.
const CARD_BYTES: u64 = 1 << 30;
/// The unit of positions on the card.
const BLOCK: u64 = 64 << 10;
/// The possible parts: the names of the virtio ports of other boards.
const PARTS: [&str; 3] = ["results", "stdout", "stderr"];

/// Creates an empty card, a sparse file.
pub fn insert(dir: &Path) -> Result<(), LabError> {
    let path = dir.join(CARD);
    let file = fs::File::create(&path).map_err(LabError::io("create", &path))?;
    file.set_len(CARD_BYTES).map_err(LabError::io("write", &path))
}

/// The status text so far; empty if there is no card yet.
pub fn read_status(dir: &Path) -> String {
    fs::File::open(dir.join(CARD)).and_then(|card| read_text(card, 0)).unwrap_or_default()
}

/// Copies all parts of the card to the files that virtio ports would have left.
///
/// # Errors
/// A part reported as complete is not, or has a wrong checksum.
pub(crate) fn unload_parts(dir: &Path) -> Result<(), LabError> {
    let path = dir.join(CARD);
    let open = || fs::File::open(&path).map_err(LabError::io("open", &path));
    let status = read_text(open()?, 0).map_err(LabError::io("read", &path))?;
    let at = dir.join("status");
    fs::write(&at, &status).map_err(LabError::io("write", &at))?;
    let table = read_text(open()?, 1).map_err(LabError::io("read", &path))?;
    for line in table.lines() {
        let part = CardPart::parse(line)
            .ok_or_else(|| malformed_card(format!("invalid line in its table: {line}")))?;
        let at = dir.join(part.name);
        let mut file = fs::File::create(&at).map_err(LabError::io("create", &at))?;
        part.copy_to(open()?, &mut file)
            .map_err(|why| malformed_card(format!("{}: {why}", part.name)))?;
    }
    Ok(())
}

fn malformed_card(why: String) -> LabError {
    LabError::malformed("the guest's memory card", why)
}

/// The text in a block, up to its first NUL.
fn read_text(mut card: impl Read + Seek, block: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    card.seek(SeekFrom::Start(block * BLOCK))?;
    card.take(BLOCK).read_to_end(&mut bytes)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct CardPart {
    name: &'static str,
    start: u64,
    length: u64,
    sum: String,
}

impl CardPart {
    /// Parses `results 2 1234 SHA256`; `None` if it would not be on the card.
    fn parse(line: &str) -> Option<CardPart> {
        let mut words = line.split(' ');
        let name = words.next()?;
        let name = PARTS.into_iter().find(|known| *known == name)?;
        let start = words.next()?.parse::<u64>().ok()?.checked_mul(BLOCK)?;
        let length = words.next()?.parse().ok()?;
        let sum = words.next()?.to_owned();
        let fits = start.checked_add(length)? <= CARD_BYTES && words.next().is_none();
        fits.then_some(CardPart { name, start, length, sum })
    }

    fn copy_to(&self, mut card: impl Read + Seek, to: &mut dyn Write) -> Result<(), String> {
        let mut digest = Sha256::new();
        let mut piece = vec![0; BLOCK as usize];
        card.seek(SeekFrom::Start(self.start)).map_err(|why| why.to_string())?;
        let mut card = card.take(self.length);
        let mut copied = 0;
        loop {
            let read = card.read(&mut piece).map_err(|why| why.to_string())?;
            if read == 0 {
                break;
            }
            digest.update(&piece[..read]);
            to.write_all(&piece[..read]).map_err(|why| why.to_string())?;
            copied += read as u64;
        }
        let sum = encode_hex(&digest.finalize());
        match copied == self.length && sum == self.sum {
            true => Ok(()),
            false => Err(format!(
                "{copied} bytes with the SHA-256 {sum} instead of the announced {} with {}",
                self.length, self.sum
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SHA-256 of the three bytes `abc` (FIPS 180-4's example).
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn card(table: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        insert(dir.path()).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(dir.path().join(CARD)).unwrap();
        for (block, bytes) in [(0, "job-started\n"), (1, table), (2, "abc")] {
            file.seek(SeekFrom::Start(block * BLOCK)).unwrap();
            file.write_all(bytes.as_bytes()).unwrap();
        }
        dir
    }

    #[test]
    fn files_on_a_memory_card_are_verified() {
        let dir = card(&format!("results 2 3 {ABC}\n"));
        assert_eq!(read_status(dir.path()), "job-started\n");
        unload_parts(dir.path()).unwrap();
        assert_eq!(fs::read(dir.path().join("results")).unwrap(), b"abc");
        assert_eq!(fs::read(dir.path().join("status")).unwrap(), b"job-started\n");
        let announced =
            unload_parts(card(&format!("stdout 2 4 {ABC}\n")).path()).unwrap_err().to_string();
        assert!(
            announced.starts_with("the guest's memory card: stdout: 4 bytes with the SHA-256 "),
            "{announced}"
        );
        for wrong in [
            "../x 2 3 y",
            "results 2 3",
            "results 2 99999999999 x",
            "results 18446744073709551615 1 x",
        ] {
            let announced = unload_parts(card(wrong).path()).unwrap_err().to_string();
            assert_eq!(
                announced,
                format!("the guest's memory card: invalid line in its table: {wrong}")
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "\\PC{0,60}", block: u64, length: u64) {
            let _ = CardPart::parse(&line);
            let part = CardPart::parse(&format!("results {block} {length} x"));
            proptest::prop_assert!(part.is_none_or(|part| part.start + part.length <= CARD_BYTES));
        }
    }
}
