//! A snapshot reader one lap behind never takes a sample that the writer is replacing.

use loom::model::Builder;
use punctual_core::Sample;
use punctual_ring_model::atomic::WITHOUT_RELEASE;
use punctual_ring_model::ring::ring;

/// The maximum number of switches between the two threads in one order: without a limit the test
/// did not end within five minutes.
const PREEMPTIONS: usize = 3;

/// Runs every order: the two samples of a ring were taken out, so that the writer may replace them
/// while a second reader reads them.
fn in_every_order(without_release: bool) {
    WITHOUT_RELEASE.set(without_release);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(move || {
        let (mut producer, mut consumer) = ring(2);
        (0..2).for_each(|k| producer.push(k, 2 * k, 0, 0));
        let mut snapshot_reader = consumer.snapshot_reader();
        consumer.drain(|_| {});
        let writer = loom::thread::spawn(move || {
            WITHOUT_RELEASE.set(without_release);
            // A reader may not yet have seen the head before the second of them.
            (2..4).for_each(|k| producer.push(k, 2 * k, 0, 0));
        });
        let mut seen = 0;
        let mut see = |sample: &Sample| {
            assert_eq!(sample.woke.ns(), 2 * sample.due.ns());
            assert_eq!(sample.seq, sample.due.ns() as u64);
            seen += 1;
        };
        let mut unseen = snapshot_reader.read_snapshot(&mut see);
        writer.join().expect("the writer");
        unseen += snapshot_reader.read_snapshot(&mut see);
        assert_eq!(seen + unseen, 4);
    });
}

#[test]
fn no_sample_is_torn() {
    in_every_order(false);
}

/// Proves that the test above can fail.
#[test]
#[should_panic]
fn without_the_fence_of_the_writer_a_sample_is_torn() {
    in_every_order(true);
}
