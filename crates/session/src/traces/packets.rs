//! The path of a packet, in two recordings over veth (tracefs, Linux 6.18): `sender` and `receiver`
//! in a network namespace each; in the second a thread polls the device (threaded NAPI). Names of
//! other tasks were replaced.

use punctual_core::event::{Group, InterfaceName, Tid};
use punctual_core::{Event, EventKind, MonotonicNs, Names};
use punctual_explain::explain::{
    LatencyInterval, ReceivedPacket, Socket, StartKind, WakeUp, Waker, explain_sample,
};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_report::sentence::explain::wake_ups;
use punctual_traces::Trace;

const SOFTIRQ: &str = include_str!("../../../traces/tests/data/veth-softirq.txt");
const THREADED: &str = include_str!("../../../traces/tests/data/veth-threaded.txt");

/// The last wake-ups of the receiver, from the end of the cycle before, and the same in words.
fn receiver_wakeups(text: &str, receiver: u32) -> (Vec<WakeUp>, Vec<String>, Names) {
    let mut trace = Trace::open(text.as_bytes().to_vec()).expect("text of ftrace");
    let events: Vec<Event> = trace.by_ref().map(|event| event.expect("an event")).collect();
    let facts = trace.facts();
    assert!(facts.recorded.groups.contains(&Group::Napi), "{:?}", facts.recorded.groups);
    let tid = Tid(receiver);
    let runs = |event: &&Event| matches!(event.what, EventKind::Switch { next, .. } if next == tid);
    let leaves =
        |event: &&Event| matches!(event.what, EventKind::Switch { .. }) && event.tid == tid;
    let woke = events.iter().rfind(runs).expect("it ran");
    let due = events.iter().filter(leaves).find(|event| event.at < woke.at).expect("it slept").at;
    let interval =
        LatencyInterval { tid, cpu: woke.cpu, due, woke: woke.at, kind: StartKind::Interval };
    let coverage = Coverage::from_recording(&facts.recorded, &facts.names);
    let explanation = explain_sample(interval, &events, &coverage, &Gaps::default());
    assert!(explanation.adds_up(), "{explanation:#?}");
    let words = wake_ups(&explanation, &facts.names, &events);
    (explanation.wakeups, words, facts.names)
}

fn instant_from_us(us: i64) -> MonotonicNs {
    MonotonicNs(us * 1_000)
}

#[test]
fn a_packet_of_the_sender_is_followed_through_its_softirq_to_the_socket() {
    let (steps, words, names) = receiver_wakeups(SOFTIRQ, 22_061);
    let packet = steps[0].packet.expect("a packet woke it");
    assert_eq!(steps[0].by.waker_name(&names), "sender");
    assert_eq!((packet.irq, packet.delivery), (None, Some(instant_from_us(63_205_528_749))));
    let device = InterfaceName::from_bytes(b"vethB");
    assert_eq!(
        packet.received,
        Some(ReceivedPacket { at: instant_from_us(63_205_528_754), device, bytes: 70 })
    );
    let socket = Socket { at: instant_from_us(63_205_528_771), family: 2, protocol: 17 };
    assert_eq!((packet.socket, socket.kind_name()), (Some(socket), "UDP".to_owned()));
    assert_eq!(packet.poll, Some((instant_from_us(63_205_528_791), 1)));
    let way = ": its packet raised no interrupt of a device, NET_RX began at 10,946 µs and took \
               25.0 µs to the socket's wake-up, in a poll (NAPI) of 1 packet, vethB received the \
               packet (70 bytes) at 10,951 µs, its UDP socket had the data at 10,968 µs";
    assert!(words[0].ends_with(way), "{words:#?}");
}

#[test]
fn a_napi_thread_is_a_step_of_the_wake_up_chain() {
    let (steps, words, names) = receiver_wakeups(THREADED, 26_662);
    let packet = steps[0].packet.expect("a packet woke it");
    assert_eq!(steps[0].by, Waker::Task(Tid(26_660)));
    assert_eq!((packet.irq, packet.delivery), (None, None));
    assert_eq!(packet.received.map(|of| of.at), Some(instant_from_us(63_270_206_455)));
    assert_eq!(packet.socket.map(|of| of.at), Some(instant_from_us(63_270_206_472)));
    assert_eq!(packet.poll, Some((instant_from_us(63_270_206_490), 1)));
    // The sender woke the polling thread: no packet did.
    assert_eq!((steps[1].by.waker_name(&names), steps[1].packet), ("sender".to_owned(), None));
    let way = ": vethB received the packet (70 bytes) at 10,115 µs, in a poll (NAPI) of 1 packet, \
               its UDP socket had the data at 10,132 µs";
    assert!(words[0].ends_with(way), "{words:#?}");
}
