//! Records as a kernel might write them, explained: parts add up, each is proven or unknown.
use punctual_core::{Event, MonotonicNs, Nanos, Tid};
use punctual_explain::explain::{
    Cause, LatencyInterval, Part, StartKind, explain_sample, rank_culprits,
};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_record::wire;

pub fn fuzz(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return };
    let events: Vec<Event> = wire::decode(rest).flatten().take(2_000).collect();
    let at = |place: u8| match events.get(usize::from(place) * events.len() / 256) {
        Some(event) => event.at,
        None => MonotonicNs(i64::from(place)),
    };
    let interval = LatencyInterval {
        tid: events
            .get(usize::from(head[2]) * events.len() / 256)
            .map_or(Tid(1), |event| event.tid),
        cpu: if head[3] == 255 { Event::NO_CPU } else { u16::from(head[3]) },
        due: at(head[0]),
        woke: at(head[1]),
        kind: if head[4] & 1 == 0 { StartKind::Timer } else { StartKind::Interval },
    };
    let gaps =
        if head[4] & 2 == 0 { Gaps::from_events(events.iter().copied()) } else { Gaps::default() };
    let explanation = explain_sample(
        interval,
        &events,
        &Coverage::from_span(MonotonicNs(0), MonotonicNs(0)),
        &gaps,
    );
    assert!(explanation.adds_up());
    check(&explanation.parts, &events);
    assert_eq!(
        rank_culprits([&explanation], &Default::default(), Nanos::ZERO).latency,
        explanation.latency()
    );
}

fn check(parts: &[Part], events: &[Event]) {
    assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from));
    for part in parts {
        assert_eq!(part.evidence.is_empty(), part.cause == Cause::Unknown);
        assert!(part.evidence.iter().all(|place| *place < events.len()));
        check(&part.meanwhile, events);
    }
}
