//! The packets of a trace in sequence, decompressed if necessary.

use super::wire::{Fields, WireValue, read_varint};
use crate::compression::Compression;
use crate::input::HEAD;
use std::collections::VecDeque;
use std::io::{self, Read};

/// The maximum size of a packet, and of a compressed one's content: Perfetto's buffers have some
/// megabytes.
const MAX_PACKET: u64 = 64 << 20;
/// `packet` of Trace, as bytes.
const PACKET: u8 = 1 << 3 | 2;
const DEFLATED: u32 = 50;
const ZSTD: u32 = 133;

/// Whether a file begins with a packet whose fields are typical of the first one.
pub(super) fn looks_like_packets(head: &[u8]) -> bool {
    /// A message of ftrace, processes, clocks, the writer's user and number, the configuration,
    /// statistics, a mark, versions, compressed packets.
    const FIRST: [u32; 15] = [1, 2, 3, 6, 8, 10, 33, 34, 35, 36, 45, 50, 58, 79, 133];
    let Some((&PACKET, mut rest)) = head.split_first() else { return false };
    let Some(length) = read_varint(&mut rest).filter(|length| (2..=MAX_PACKET).contains(length))
    else {
        return false;
    };
    let whole = rest.len() as u64 >= length;
    let packet = &rest[..rest.len().min(length as usize)];
    let mut fields = Fields::from_bytes(packet);
    let has_known_field = fields.by_ref().any(|(number, _)| FIRST.contains(&number));
    fields.by_ref().for_each(drop);
    // A packet longer than the inspected bytes may begin with its only field.
    match whole {
        true => has_known_field && !fields.damaged,
        false => head.len() >= HEAD && begins_with(packet, &FIRST),
    }
}

fn begins_with(mut packet: &[u8], numbers: &[u32]) -> bool {
    read_varint(&mut packet).is_some_and(|tag| {
        tag & 7 == 2 && u32::try_from(tag >> 3).is_ok_and(|number| numbers.contains(&number))
    })
}

pub(super) struct PacketReader {
    from: io::BufReader<Box<dyn Read>>,
    unpacked: VecDeque<Vec<u8>>,
    /// The file ends within a packet, or the rest is invalid.
    pub(super) cut_off: bool,
    /// Packets with a compressed part that cannot be decompressed.
    pub(super) damaged: u64,
}

impl PacketReader {
    pub(super) fn new(from: Box<dyn Read>) -> PacketReader {
        let from = io::BufReader::with_capacity(1 << 16, from);
        PacketReader { from, unpacked: VecDeque::new(), cut_off: false, damaged: 0 }
    }

    /// The next packet; `None` after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(packet) = self.unpacked.pop_front() {
                return Ok(Some(packet));
            }
            let Some(packet) = self.read()? else { return Ok(None) };
            let packed = |number| {
                let found = Fields::from_bytes(&packet).find(|(field, _)| *field == number);
                found.map(|(_, value)| value.as_bytes())
            };
            let how = [(DEFLATED, Compression::Zlib), (ZSTD, Compression::Zstd)];
            match how.into_iter().find_map(|(number, how)| Some((packed(number)?, how))) {
                None => return Ok(Some(packet)),
                Some((bytes, how)) => match how.decompress(bytes, MAX_PACKET) {
                    Ok(bytes) => {
                        let mut fields = Fields::from_bytes(&bytes);
                        let packets = fields.by_ref().filter_map(packet_of);
                        self.unpacked.extend(packets);
                        self.damaged += u64::from(fields.damaged);
                    }
                    Err(_) => self.damaged += 1,
                },
            }
        }
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let Some(tag) = self.read_number()? else { return Ok(None) };
            // Fields other than packets do not exist so far.
            let length = match tag & 7 {
                0 => {
                    self.read_number()?;
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => match self.read_number()? {
                    Some(length) if length <= MAX_PACKET => length,
                    _ => return Ok(self.mark_cut_off()),
                },
                _ => return Ok(self.mark_cut_off()),
            };
            let mut packet = Vec::new();
            (&mut self.from).take(length).read_to_end(&mut packet)?;
            if (packet.len() as u64) < length {
                return Ok(self.mark_cut_off());
            }
            if tag == u64::from(PACKET) {
                return Ok(Some(packet));
            }
        }
    }

    fn mark_cut_off(&mut self) -> Option<Vec<u8>> {
        self.cut_off = true;
        None
    }

    fn read_number(&mut self) -> io::Result<Option<u64>> {
        let mut bytes = Vec::with_capacity(10);
        loop {
            let mut byte = [0];
            if self.from.read(&mut byte)? == 0 {
                self.cut_off |= !bytes.is_empty();
                return Ok(None);
            }
            bytes.push(byte[0]);
            if byte[0] < 0x80 {
                return Ok(read_varint(&mut bytes.as_slice()));
            }
            if bytes.len() == 10 {
                return Ok(self.mark_cut_off().and(None));
            }
        }
    }
}

/// The packet in a field of a whole trace.
fn packet_of(field: (u32, WireValue<'_>)) -> Option<Vec<u8>> {
    match field {
        (1, WireValue::Bytes(packet)) => Some(packet.to_vec()),
        _ => None,
    }
}
