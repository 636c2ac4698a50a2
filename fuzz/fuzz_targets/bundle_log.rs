//! Random bytes as the log of a series, or (when they begin with a brace) as its checkpoint.
#![no_main]

use punctual_analyze::{Distribution, Timeline};
use punctual_bundle::log::{MAGIC, decode, encode_samples, encode_window};
use punctual_bundle::state::State;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"{") {
        checkpoint(bytes);
        return;
    }
    let Ok(log) = decode(bytes) else { return };
    assert!(log.torn_bytes <= bytes.len() as u64);
    let _ = (Timeline::of_samples(&log.samples, 100), Timeline::of_windows(&log.windows, 100));
    // What was read is written and read again as the same.
    let mut again = MAGIC.to_vec();
    encode_samples(&mut again, &log.samples);
    log.windows.iter().for_each(|window| encode_window(&mut again, window));
    let back = decode(&again).expect("a log that was just written");
    assert_eq!((back.samples, back.windows, back.torn_bytes), (log.samples, log.windows, 0));
});

fn checkpoint(bytes: &[u8]) {
    let Ok(state) = std::str::from_utf8(bytes).map_err(|e| e.to_string()).and_then(State::decode) else { return };
    let distribution = Distribution::of(&state.data);
    let _ = (distribution.percentile(99.9), distribution.step(), state.data.mean(), state.data.stddev(), state.data.exact.modes());
    let text = state.encode().expect("a state that was just read");
    State::decode(&text).expect("a state that was just written");
}
