//! Random bytes as a trace in CTF 1.8 or 2, metadata and two streams: events come in time order.
use punctual_traces::{ReadAt, Trace};

pub fn fuzz(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length));
    let (metadata, streams) = rest.split_at(length.min(rest.len()));
    let (first, second) = streams.split_at(streams.len() / 2);
    let streams = [first, second].map(|bytes| Box::new(bytes.to_vec()) as Box<dyn ReadAt>);
    if let Ok(trace) = Trace::open_ctf(metadata.to_vec(), streams.into()) {
        super::read_trace(trace);
    }
}
