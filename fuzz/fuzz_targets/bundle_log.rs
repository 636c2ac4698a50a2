//! Random bytes as the log of a series; as the payload of one sound block of a log, since no mutation meets a checksum; and, when they
//! begin with a brace, as the checkpoint of a series.
#![no_main]

use punctual_analyze::{Distribution, Timeline};
use punctual_bundle::log::{MAGIC, decode, encode_samples, encode_window};
use punctual_bundle::state::State;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"{") {
        checkpoint(bytes);
        return;
    }
    log(bytes);
    if let Some((kind, payload)) = bytes.split_first() {
        log(&block(*kind, payload));
    }
});

/// A log of one block that its checksum fits.
fn block(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[kind]);
    crc.update(payload);
    [MAGIC.as_slice(), &(payload.len() as u32).to_le_bytes(), &crc.finalize().to_le_bytes(), &[kind], payload].concat()
}

fn log(bytes: &[u8]) {
    let Ok(log) = decode(bytes) else { return };
    assert!(log.torn_bytes <= bytes.len() as u64);
    let _ = (Timeline::of_samples(&log.samples, 100), Timeline::of_windows(&log.windows, 100));
    // What was read is written and read again as the same.
    let mut again = MAGIC.to_vec();
    encode_samples(&mut again, &log.samples);
    log.windows.iter().for_each(|window| encode_window(&mut again, window));
    let back = decode(&again).expect("a log that was just written");
    assert_eq!((back.samples, back.windows, back.torn_bytes), (log.samples, log.windows, 0));
}

fn checkpoint(bytes: &[u8]) {
    let Ok(state) = std::str::from_utf8(bytes).map_err(|e| e.to_string()).and_then(State::decode) else { return };
    let distribution = Distribution::of(&state.data);
    let _ = (distribution.percentile(99.9), distribution.step(), state.data.mean(), state.data.stddev(), state.data.exact.modes());
    let mut text = Vec::new();
    state.write(&mut text).expect("memory takes every byte");
    State::decode(std::str::from_utf8(&text).expect("JSON is UTF-8")).expect("a state that was just written");
}
