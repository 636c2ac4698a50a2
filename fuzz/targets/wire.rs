//! Random bytes as records on the wire: all are accounted for, and read records can be written and
//! read again.
use punctual_record::wire;

pub fn fuzz(bytes: &[u8]) {
    let mut records = wire::decode(bytes);
    let mut again = Vec::new();
    let mut events = Vec::new();
    for event in records.by_ref().flatten() {
        wire::encode(&event, &mut again);
        events.push(event);
    }
    assert_eq!(records.position(), bytes.len());
    let second: Vec<_> =
        wire::decode(&again).map(|event| event.expect("what was encoded is sound")).collect();
    assert_eq!(second.len(), events.len());
    let mut third = Vec::new();
    second.iter().for_each(|event| wire::encode(event, &mut third));
    assert_eq!(third, again);
    let _ = wire::count_records(bytes);
}
