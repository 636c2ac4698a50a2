//! Random bytes as the log of a series and as its checkpoint; as the payload of one valid block of
//! a log and of one valid frame of a checkpoint, since no mutation finds a checksum; and, if they
//! begin with a brace, as the state of a series.
use punctual_bundle::checkpoint;
use punctual_bundle::log::{MAGIC, decode_log, encode_samples, encode_window};
use punctual_bundle::state::SeriesState;
use punctual_stats::{Distribution, Timeline};

pub fn fuzz(bytes: &[u8]) {
    if bytes.starts_with(b"{") {
        if let Ok(state) =
            std::str::from_utf8(bytes).map_err(|e| e.to_string()).and_then(SeriesState::from_json)
        {
            use_state(&state);
        }
        return;
    }
    log(bytes);
    for file in [bytes, &frame(bytes)] {
        if let Ok(state) = checkpoint::decode_newest(file) {
            use_state(&state);
        }
    }
    if let Some((kind, payload)) = bytes.split_first() {
        log(&block(*kind, payload));
    }
}

/// A log of one block with a valid checksum.
fn block(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[kind]);
    crc.update(payload);
    [
        MAGIC.as_slice(),
        &(payload.len() as u32).to_le_bytes(),
        &crc.finalize().to_le_bytes(),
        &[kind],
        payload,
    ]
    .concat()
}

fn log(bytes: &[u8]) {
    let Ok(log) = decode_log(bytes) else { return };
    assert!(log.torn_bytes <= bytes.len() as u64);
    let _ = (Timeline::of_samples(&log.samples, 100), Timeline::of_windows(&log.windows, 100));
    // The data is written and read again as the same.
    let mut again = MAGIC.to_vec();
    encode_samples(&mut again, &log.samples);
    log.windows.iter().for_each(|window| encode_window(&mut again, window));
    let back = decode_log(&again).expect("a log that was just written");
    assert_eq!((back.samples, back.windows, back.torn_bytes), (log.samples, log.windows, 0));
}

/// A checkpoint of one frame with a valid checksum.
fn frame(payload: &[u8]) -> Vec<u8> {
    let head =
        [[7, 0, 0, 0, 0, 0, 0, 0].as_slice(), &(payload.len() as u32).to_le_bytes()].concat();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head);
    crc.update(payload);
    [checkpoint::MAGIC.as_slice(), &head, &crc.finalize().to_le_bytes(), payload].concat()
}

/// No figure computed from accepted data panics, and the data can be written and read again.
fn use_state(state: &SeriesState) {
    let distribution = Distribution::from_series(&state.data);
    let _ = (
        distribution.percentile(99.9),
        distribution.clock_step(),
        state.data.mean(),
        state.data.stddev(),
        state.data.exact.modal_bins(),
    );
    let mut text = Vec::new();
    state.write(&mut text).expect("memory takes every byte");
    SeriesState::from_json(std::str::from_utf8(&text).expect("JSON is UTF-8"))
        .expect("a state that was just written");
    let (mut frame, mut again) = (Vec::new(), Vec::new());
    checkpoint::encode_frame(&mut frame, 0, state);
    // A frame larger than the first slots is not searched at the beginning of a file.
    if frame.len() <= 8_192 {
        let back = checkpoint::decode_newest(&frame).expect("a frame that was just written");
        checkpoint::encode_frame(&mut again, 0, &back);
        assert!(frame == again);
    }
}
