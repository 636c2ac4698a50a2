//! Random bytes as text of ftrace, also within a page of systrace: every event comes in time order,
//! and a loss behind them is never missed.
use punctual_traces::{Trace, TraceFormat};
use std::io::Cursor;

pub fn fuzz(bytes: &[u8]) {
    let whole = Trace::open(bytes.to_vec());
    let stream = Trace::open_stream(Cursor::new(bytes.to_vec()));
    for trace in [whole, stream].into_iter().flatten() {
        if matches!(trace.format(), TraceFormat::FtraceText | TraceFormat::Systrace) {
            super::read_trace(trace);
        }
    }
    let lossy = [bytes, b"\nCPU:0 [LOST 7 EVENTS]\n"].concat();
    if let Ok(mut trace) = Trace::open(lossy)
        && trace.format() == TraceFormat::FtraceText
    {
        trace.by_ref().for_each(drop);
        assert!(!trace.facts().recorded.missing.is_empty());
    }
}
