//! Random bytes as a trace of Perfetto, whole and from a pipe: every event comes in time order.
use punctual_traces::{Trace, TraceFormat};
use std::io::Cursor;

pub fn fuzz(bytes: &[u8]) {
    let whole = Trace::open(bytes.to_vec());
    let stream = Trace::open_stream(Cursor::new(bytes.to_vec()));
    for trace in [whole, stream].into_iter().flatten() {
        if trace.format() == TraceFormat::Perfetto {
            super::read_trace(trace);
        }
    }
}
