//! Saved states can be read back, and leftovers of a killed writer or hostile changes are rejected.

use super::*;
use proptest::prelude::*;
use punctual_core::SeriesShape;

/// The whole state as JSON, for comparison.
fn json(state: &SeriesState) -> String {
    let mut text = Vec::new();
    state.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn state_of(latencies: &[i64], usage: Fact<ThreadUsage>) -> SeriesState {
    let shape =
        SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos::MILLI) };
    let mut data = SeriesData::new(shape);
    for (k, latency) in latencies.iter().enumerate() {
        let due = k as i64 * 1_000_000;
        let sample =
            Sample { seq: k as u64, due: ClockNs(due), woke: ClockNs(due + latency), cpu: 3 };
        data.record_sample(&sample, (latency / 1_000_000).max(0) as u64);
    }
    SeriesState { data, usage, digest: None, samples_kept: 7, log_bytes: latencies.len() as u64 }
}

#[test]
fn an_unfinished_sample_and_lost_records_are_restored_from_a_checkpoint() {
    let mut state = state_of(&[5_000], Fact::NotAsked);
    for (at_least, ended, lost) in [(7, false, 0), (9, true, 5), (9, true, 0)] {
        let (due, at_least, lasted) = (ClockNs(-3), Nanos(at_least), Nanos(9));
        let one = Unfinished { due, at_least, lasted, passed: 4, ended };
        for unfinished in [Some(one), None] {
            state.data.unfinished = unfinished;
            (state.data.losses.dropped, state.data.losses.lost_records) = (9, lost);
            let (mut frame, text) = (Vec::new(), json(&state));
            encode_frame(&mut frame, 1, &state);
            for data in
                [decode_newest(&frame).unwrap().data, SeriesState::from_json(&text).unwrap().data]
            {
                assert_eq!((data.unfinished, data.losses), (unfinished, state.data.losses));
            }
        }
        state.data.unfinished = Some(one);
    }
    let impossible = json(&state).replace("\"at_least\":9", "\"at_least\":10");
    assert!(SeriesState::from_json(&impossible).is_err());
}

fn any_usage() -> impl Strategy<Value = Fact<ThreadUsage>> {
    let known = any::<[u64; 4]>().prop_map(|n| {
        let [minor_faults, major_faults, voluntary_switches, involuntary_switches] = n;
        Fact::Known(ThreadUsage {
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
        })
    });
    prop_oneof![Just(Fact::NotAsked), known, "\\PC{0,20}".prop_map(Fact::Unavailable)]
}

/// The effect of pwrite(2) on a file.
fn write_at(file: &mut Vec<u8>, place: u64, bytes: &[u8]) {
    let (start, end) = (place as usize, place as usize + bytes.len());
    file.resize(file.len().max(end), 0);
    file[start..end].copy_from_slice(bytes);
}

/// A frame with a matching checksum.
fn sealed(payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    let mut frame = [MAGIC.as_slice(), &[0; 8], &length.to_le_bytes(), &[0; 4], payload].concat();
    let crc = frame_checksum(&frame, length);
    frame[20..24].copy_from_slice(&crc.to_le_bytes());
    frame
}

#[test]
fn slots_neither_overlap_nor_leave_gaps() {
    for size in 0..SIZES {
        assert_eq!(pair_place(size) + 2 * slot_capacity(size), pair_place(size + 1));
    }
    // The largest state that `check` accepts: every bin of the exact histogram has its own count.
    assert!(MAX_BINS as u64 * 6 < slot_capacity(SIZES - 1), "counts of at most 2^35 in 16 Mi bins");
}

#[test]
fn growing_frames_move_to_larger_slots() {
    let (mut slots, mut file, mut frame) = (FrameSlots::default(), Vec::new(), Vec::new());
    let mut latencies = Vec::new();
    for step in 0..12i64 {
        // Every step fills another 900 buckets: up to 27 kB.
        latencies.extend((0..900).map(|k| k * 1_000 + step * 3_000_000));
        let state = state_of(&latencies, Fact::NotAsked);
        let place = slots.next(&state, &mut frame);
        write_at(&mut file, place, &frame);
        slots.confirm_written();
        assert_eq!(json(&decode_newest(&file).unwrap()), json(&state));
    }
    assert!(slots.size == 2, "{} bytes in slots of size {}", frame.len(), slots.size);
}

#[test]
fn a_failed_write_is_repeated_in_the_same_slot() {
    let (mut slots, mut frame) = (FrameSlots::default(), Vec::new());
    let state = state_of(&[1], Fact::NotAsked);
    let first = slots.next(&state, &mut frame);
    assert_eq!(slots.next(&state, &mut frame), first);
    slots.confirm_written();
    assert_ne!(slots.next(&state, &mut frame), first);
}

#[test]
fn hostile_sizes_are_refused() {
    let mut no_bins = vec![0];
    put_signed(&mut no_bins, 1_000);
    put_varint(&mut no_bins, u64::MAX);
    no_bins.extend([0, 0, 0]);
    assert!(decode_newest(&sealed(&no_bins)).is_err());
    assert!(decode_newest(&sealed(&[])).is_err());
    let mut many_worst = Vec::new();
    put_state(&mut many_worst, &state_of(&[], Fact::NotAsked));
    let lying = many_worst.len() - 7;
    assert_eq!(many_worst[lying], 0, "the number of the worst samples");
    many_worst.splice(lying..=lying, [0xff; 9].into_iter().chain([1]));
    assert!(decode_newest(&sealed(&many_worst)).is_err());
    let mut header = sealed(&[0; 40]);
    header[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode_newest(&header).unwrap_err(), "it has no complete checkpoint");
}

proptest! {
    #[test]
    fn a_state_comes_back_whole(
        latencies in proptest::collection::vec(-500i64..5_000_000, 0..100),
        usage in any_usage(),
        squares: bool,
    ) {
        let mut state = state_of(&latencies, usage);
        if !squares {
            state.data.sum_squares = None;
        }
        let (mut slots, mut frame) = (FrameSlots::default(), Vec::new());
        slots.next(&state, &mut frame);
        let back = decode_newest(&frame).unwrap();
        prop_assert_eq!(json(&back), json(&state));
        prop_assert_eq!(&back.data.whole, &state.data.whole);
    }

    /// For any part of the last frame that reached the file, the previous state or its own is read.
    #[test]
    fn a_torn_write_leaves_the_previous_checkpoint_readable(
        lengths in proptest::collection::vec(0usize..60, 1..6),
        kept in 0.0..=1.0f64,
        from_the_end: bool,
    ) {
        let (mut slots, mut file, mut frame) = (FrameSlots::default(), Vec::new(), Vec::new());
        let mut before = None;
        for (turn, length) in lengths.iter().enumerate() {
            let latencies: Vec<i64> = (0..*length as i64).map(|k| k * 70_001).collect();
            let state = state_of(&latencies, Fact::NotAsked);
            let place = slots.next(&state, &mut frame);
            if turn + 1 < lengths.len() {
                write_at(&mut file, place, &frame);
                slots.confirm_written();
                before = Some(json(&state));
                continue;
            }
            let part = (frame.len() as f64 * kept) as usize;
            match from_the_end {
                false => write_at(&mut file, place, &frame[..part]),
                true => write_at(
                    &mut file,
                    place + (frame.len() - part) as u64,
                    &frame[frame.len() - part..],
                ),
            }
            match decode_newest(&file) {
                Ok(read) => {
                    prop_assert!(Some(json(&read)) == before || json(&read) == json(&state))
                }
                Err(why) => prop_assert!(before.is_none(), "{}", why),
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), sealed_first: bool) {
        let _ = decode_newest(&bytes);
        if sealed_first {
            let _ = decode_newest(&sealed(&bytes));
        }
    }

    /// Changes single bytes behind a matching checksum, to get deep into the decoder.
    #[test]
    fn no_change_panics(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut payload = Vec::new();
        put_state(
            &mut payload,
            &state_of(&[5, 2_000_000, -3], Fact::Unavailable("not reported".into())),
        );
        for (at, byte) in changes {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        let _ = decode_newest(&sealed(&payload));
    }
}
