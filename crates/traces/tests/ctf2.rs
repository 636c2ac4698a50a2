//! Metadata of CTF 2 for the packets of other tests. No tool of this kind writes it where these
//! are run: it is translated by hand from that of CTF 1.8, whose events are what is expected.

use super::ctf::{open, streams};
use super::ctf_lttng;
use proptest::prelude::*;
use punctual_core::Event;
use punctual_traces::{TraceError, TraceFacts};

/// A field class of numbers, aligned to bytes.
fn int(bits: u32, kind: &str, more: &str) -> String {
    let align = if bits.is_multiple_of(8) { 8 } else { 1 };
    format!(
        r#"{{"type":"fixed-length-{kind}-integer","length":{bits},"alignment":{align},
        "byte-order":"ORDER-endian"{more}}}"#
    )
}

fn role(bits: u32, role: &str) -> String {
    int(bits, "unsigned", &format!(r#","roles":["{role}"]"#))
}

fn structure(members: &[(&str, String)]) -> String {
    let members = members
        .iter()
        .map(|(name, class)| format!(r#"{{"name":"{name}","field-class":{class}}}"#))
        .collect::<Vec<_>>();
    format!(r#"{{"type":"structure","member-classes":[{}]}}"#, members.join(","))
}

fn aligned(class: &str) -> String {
    class.replacen('{', r#"{"minimum-alignment":8,"#, 1)
}

/// The fields of an event: `comm` are 16 characters, `text` ends with a NUL.
fn event(id: u32, name: &str, fields: &[(&str, &str)]) -> String {
    let fields: Vec<(&str, String)> = fields
        .iter()
        .map(|(name, class)| match *class {
            "comm" => (*name, r#"{"type":"static-length-string","length":16}"#.to_owned()),
            "text" => (*name, r#"{"type":"null-terminated-string"}"#.to_owned()),
            alias @ ("s32" | "u32" | "u64" | "s64") => (*name, format!("\"{alias}\"")),
            class => (*name, class.to_owned()),
        })
        .collect();
    let payload = structure(&fields);
    format!(
        r#"{{"type":"event-record-class","id":{id},"data-stream-class-id":0,"name":"{name}",
        "payload-field-class":{payload}}}"#
    )
}

/// As LTTng 2.15 describes it; `instance` is in the headers of packets since 2.9.
fn fragments(instance: bool, release: &str, version: (u32, u32, u32)) -> Vec<String> {
    let option = |name: &str, range: &str, class: String| {
        format!(r#"{{"name":"{name}","selector-field-ranges":[{range}],"field-class":{class}}}"#)
    };
    let compact = structure(&[("timestamp", role(27, "default-clock-timestamp"))]);
    let extended = structure(&[
        ("id", role(32, "event-record-class-id")),
        ("timestamp", role(64, "default-clock-timestamp")),
    ]);
    let header = structure(&[
        ("id", role(5, "event-record-class-id")),
        (
            "v",
            format!(
                r#"{{"type":"variant","selector-field-location":{{"origin":"event-record-header",
                "path":["id"]}},"options":[{},{}]}}"#,
                option("compact", "[0,30]", compact),
                option("extended", "[31,31]", extended),
            ),
        ),
    ]);
    let mut packet = vec![
        ("magic", role(32, "packet-magic-number")),
        (
            "uuid",
            r#"{"type":"static-length-blob","length":16,"roles":["metadata-stream-uuid"]}"#
                .to_owned(),
        ),
        ("stream_id", role(32, "data-stream-class-id")),
    ];
    if instance {
        packet.push(("stream_instance_id", role(64, "data-stream-id")));
    }
    let context = structure(&[
        ("timestamp_begin", role(64, "default-clock-timestamp")),
        ("timestamp_end", role(64, "packet-end-default-clock-timestamp")),
        ("content_size", role(64, "packet-content-length")),
        ("packet_size", role(64, "packet-total-length")),
        ("packet_seq_num", role(64, "packet-sequence-number")),
        ("events_discarded", role(64, "discarded-event-record-counter-snapshot")),
        ("cpu_id", int(32, "unsigned", "")),
    ]);
    let alias = |name: &str, class: String| {
        format!(r#"{{"type":"field-class-alias","name":"{name}","field-class":{class}}}"#)
    };
    let (major, minor, patch) = version;
    vec![
        r#"{"type":"preamble","version":2,"uuid":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]}"#.to_owned(),
        alias("s32", int(32, "signed", "")),
        alias("s64", int(64, "signed", "")),
        alias("u32", int(32, "unsigned", "")),
        alias("u64", int(64, "unsigned", "")),
        format!(
            r#"{{"type":"trace-class","environment":{{"domain":"kernel","tracer_name":
            "lttng-modules","tracer_major":{major},"tracer_minor":{minor},"tracer_patchlevel":
            {patch},"kernel_release":"{release}"}},"packet-header-field-class":{}}}"#,
            structure(&packet)
        ),
        r#"{"type":"clock-class","id":"monotonic","name":"monotonic","frequency":1000000000,
        "origin":"unix-epoch","offset-from-origin":{"seconds":1457111225,"cycles":177515989}}"#
            .to_owned(),
        format!(
            r#"{{"type":"data-stream-class","id":0,"default-clock-class-id":"monotonic",
            "packet-context-field-class":{context},"event-record-header-field-class":{}}}"#,
            aligned(&header)
        ),
        event(
            if instance { 5 } else { 0 },
            "sched_switch",
            &[
                ("prev_comm", "comm"),
                ("prev_tid", "s32"),
                ("prev_prio", "s32"),
                ("prev_state", "s64"),
                ("next_comm", "comm"),
                ("next_tid", "s32"),
                ("next_prio", "s32"),
            ],
        ),
    ]
}

fn sequence(fragments: &[String], order: &str) -> Vec<u8> {
    let text = fragments.iter().map(|fragment| format!("\x1e{fragment}\n"));
    text.collect::<String>().replace("ORDER", order).into_bytes()
}

/// For the packets of ctf.rs.
fn metadata(order: &str) -> Vec<u8> {
    let mut fragments = fragments(false, "4.4.3", (2, 8, 0));
    // The rest of the arguments is as long as another field says.
    let rest = r#"{"type":"dynamic-length-array","element-field-class":"u64",
        "length-field-location":{"path":["rest_length"]}}"#;
    fragments.push(event(40, "irq_handler_entry", &[("irq", "s32"), ("name", "text")]));
    fragments.push(event(
        2,
        "syscall_entry_futex",
        &[("uaddr", "u64"), ("op", "s32"), ("rest_length", "u32"), ("rest", rest)],
    ));
    sequence(&fragments, order)
}

fn read(metadata: Vec<u8>, streams: impl IntoIterator<Item = Vec<u8>>) -> (Vec<Event>, TraceFacts) {
    let mut trace = open(metadata, streams).unwrap();
    let events = trace.by_ref().map(Result::unwrap).collect();
    (events, trace.facts())
}

#[test]
fn ctf_2_has_the_events_of_ctf_1_8() {
    for (big, order) in [(false, "little"), (true, "big")] {
        let (events, facts) = super::ctf::read(big, streams(big));
        let (found, of_2) = read(metadata(order), streams(big));
        assert_eq!(found, events);
        assert_eq!(format!("{of_2:?}"), format!("{facts:?}"));
    }
}

#[test]
fn packets_that_lttng_wrote_are_read_by_metadata_of_ctf_2() {
    let mut fragments = fragments(true, "4.15.0-65-generic", (2, 10, 8));
    let task = [("comm", "comm"), ("tid", "s32")];
    let mut add = |id, name, more: &[(&'static str, &'static str)]| {
        fragments.push(event(id, name, &[&task, more].concat()));
    };
    add(17, "sched_stat_runtime", &[("runtime", "u64"), ("vruntime", "u64")]);
    add(8, "sched_process_exit", &[("prio", "s32")]);
    add(6, "sched_migrate_task", &[("prio", "s32"), ("orig_cpu", "s32"), ("dest_cpu", "s32")]);
    add(3, "sched_wakeup", &[("prio", "s32"), ("target_cpu", "s32")]);
    add(2, "sched_waking", &[("prio", "s32"), ("target_cpu", "s32")]);
    let streams = || ctf_lttng::STREAMS.map(<[u8]>::to_vec);
    let (events, facts) = read(ctf_lttng::METADATA.to_vec(), streams());
    let (found, of_2) = read(sequence(&fragments, "little"), streams());
    assert_eq!(found.len(), 422);
    assert_eq!(found, events);
    assert_eq!((of_2.unreadable, of_2.producer, of_2.names), (0, facts.producer, facts.names));
}

/// One interrupt, after fields of every class that is read otherwise.
#[test]
fn field_classes_of_ctf_2_alone_have_their_sizes() {
    let mut fragments = fragments(false, "6.12", (2, 15, 0));
    let up = r#"{"path":[null,"count"]}"#;
    let inner = structure(&[
        ("a", r#"{"type":"variable-length-signed-integer"}"#.to_owned()),
        ("b", format!(r#"{{"type":"dynamic-length-string","length-field-location":{up}}}"#)),
        (
            "c",
            r#"{"type":"dynamic-length-blob","length-field-location":{"origin":
            "event-record-payload","path":["inner","a"]}}"#
                .to_owned(),
        ),
    ]);
    let optional = |ranges: &str| {
        format!(
            r#"{{"type":"optional","field-class":"u32","selector-field-location":
            ["event-record-payload","count"]{ranges}}}"#
        )
    };
    let pair = r#"{"type":"static-length-array","length":2,"minimum-alignment":32,
        "element-field-class":{"type":"fixed-length-floating-point-number","length":32,
        "byte-order":"ORDER-endian"}}"#;
    fragments.push(event(
        30,
        "irq_handler_entry",
        &[
            ("count", r#"{"type":"variable-length-unsigned-integer"}"#),
            ("inner", &inner),
            ("there", &optional("")),
            ("absent", &optional(r#","selector-field-ranges":[[4,9],[11,12]]"#)),
            ("flag", r#"{"type":"fixed-length-boolean","length":3,"byte-order":"ORDER-endian"}"#),
            (
                "bits",
                r#"{"type":"fixed-length-bit-array","length":70,"byte-order":"ORDER-endian"}"#,
            ),
            ("pair", pair),
            ("irq", "s32"),
            ("name", "text"),
        ],
    ));
    let packet = super::ctf::one_packet(|to| {
        to.switch(1_000_000_000, ("swapper/0", 0, 20), 0, ("servo", 7, -81));
        to.compact(30, 1_000_000_100);
        // The count, a number of two groups (-61 would need one bit more), and text and blob.
        to.bytes.extend([3, 0x82, 0]);
        to.bytes.extend(b"abcxy");
        to.number(5, 4);
        // 3 and 70 bits, then up to the alignment within the packet.
        to.bytes.extend([0; 10]);
        while !(to.bytes.len() + super::ctf::PACKET_HEAD).is_multiple_of(4) {
            to.bytes.push(0);
        }
        to.bytes.extend([0; 8]);
        to.number(17, 4);
        to.bytes.extend(b"eth0\0");
    });
    let (events, facts) = read(sequence(&fragments, "little"), [packet]);
    assert_eq!(facts.unreadable, 0, "{events:?}");
    assert_eq!(events.len(), 2);
    assert_eq!(facts.names.irqs[&17], "eth0");
}

#[test]
fn the_words_of_drafts_of_ctf_2_are_read() {
    let text = String::from_utf8(metadata("little")).unwrap();
    // Objects may follow one another without a separator, and a location is an array.
    let draft = text.replace('\x1e', "").replace("fixed-length-unsigned-integer", "F");
    let draft = draft.replace("\"F\"", "\"fixed-length-unsigned-enumeration\"");
    let draft =
        draft.replace(r#"{"path":["rest_length"]}"#, r#"["event-record-payload","rest_length"]"#);
    assert_eq!(
        read(draft.into_bytes(), streams(false)).0,
        super::ctf::read(false, streams(false)).0
    );
}

#[test]
fn metadata_of_ctf_2_that_cannot_be_read_is_refused_with_its_place() {
    let text = String::from_utf8(metadata("little")).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let text = text.replace(from, to).into_bytes();
        open(text, streams(false)).map(|_| ()).unwrap_err().to_string()
    };
    let cases = [
        (r#""version":2"#, r#""version":3"#, "fragment 0 (preamble): of a version"),
        (r#"class":"u64""#, r#"class":"u65""#, "`u65` is not declared"),
        (r#"{"path":["rest_length"]}"#, r#"{"path":["rest"]}"#, "the field `rest` is not declared"),
        (
            r#"{"path":["rest_length"]}"#,
            r#"{"path":[7]}"#,
            "`length-field-location` is not a location",
        ),
        (r#""length":27"#, r#""length":65"#, "unsupported size"),
        (r#""alignment":8"#, r#""alignment":7"#, "unsupported alignment"),
        ("[31,31]", "[31]", "a range is none"),
        ("null-terminated-string\"", "null-terminated-string\",\"encoding\":\"utf-16le\"", "UTF-8"),
        ("static-length-string", "static-length-tensor", "`static-length-tensor` are not read"),
        (r#""frequency":1000000000"#, r#""frequency":0"#, "no frequency"),
        (r#""type":"clock-class""#, r#""type":"clock-class"#, "line"),
    ];
    for (from, to, why) in cases {
        let message = refused(from, to);
        assert!(message.contains(why), "{message}");
        assert!(!message.contains("\\n"), "{message}");
    }
    // As deep as a class may lie in others, and no deeper.
    let mut deep: Vec<String> = fragments(false, "6.12", (2, 15, 0));
    for level in 0..40 {
        let name = if level == 0 { "u32".to_owned() } else { format!("deep{level}") };
        let class = structure(&[("x", format!("\"{name}\""))]);
        let next = level + 1;
        let alias = format!(r#"{{"type":"field-class-alias","name":"deep{next}","field-class":"#);
        deep.push(format!("{alias}{class}}}"));
    }
    let refused = open(sequence(&deep, "little"), []).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, TraceError::Metadata(why) if why.contains("too deep")), "{refused}");
}

/// The seed of the fuzzer, as that of CTF 1.8.
#[test]
fn the_seed_of_the_fuzzer_has_metadata_of_ctf_2() {
    super::ctf::assert_seed("ctf-2", &metadata("little"));
}

/// Words of the metadata in the place of others: packets and events without any bits, of which no
/// stream holds an endless number, among them.
#[test]
fn words_in_the_place_of_others_leave_a_stream_an_end() {
    let text = String::from_utf8(metadata("little")).unwrap();
    for (from, to) in WORDS.iter().flat_map(|from| WORDS.iter().map(move |to| (from, to))) {
        if let Ok(trace) = open(text.replace(from, to).into_bytes(), streams(false)) {
            assert!(trace.take(100_000).count() < 100_000, "{from} {to}");
        }
    }
}

const WORDS: [&str; 12] = [
    "\"u32\"",
    "\"s64\"",
    "27",
    "31",
    "structure",
    "variant",
    "optional",
    "\"id\"",
    "length",
    "event-record-header",
    "null",
    "static",
];

proptest! {
    #[test]
    fn damaged_metadata_never_panics(
        places in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3),
        swapped in (0usize..12, 0usize..12),
    ) {
        let mut text = metadata("little");
        let (from, to) = (WORDS[swapped.0], WORDS[swapped.1]);
        text = String::from_utf8(text).unwrap().replace(from, to).into_bytes();
        for (place, byte) in places {
            let place = place % text.len();
            text[place] = byte;
        }
        if let Ok(trace) = open(text, streams(false)) {
            prop_assert!(trace.take(100_000).count() < 100_000);
        }
    }
}
