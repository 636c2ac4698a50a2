//! The small pages; the summary is shown over the fixture bundles in tests/show.rs.

use super::paint::wrap;
use super::*;
use crate::tables::checks::Rule;
use punctual_core::Nanos;

fn rule(group: &str, id: &str, verdict: &str, applies: bool) -> serde_json::Value {
    serde_json::json!({
        "group": group, "id": id, "title": "", "verdict": verdict, "applies": applies,
        "message": "standard kernel", "evidence": "/sys/kernel/realtime: 0",
        "why": "a kernel without PREEMPT_RT cannot interrupt its own critical sections, so that \
                every one of them is a delay",
        "fix": "install linux-image-rt-amd64 and start it",
    })
}

#[test]
fn checks_are_brief_where_all_is_well() {
    let rules = [
        rule("kernel", "preempt-rt", "bad", true),
        rule("kernel", "high-resolution", "ok", true),
        rule("cpu", "governor", "warning", true),
        rule("cpu", "smt", "advice", true),
        rule("cpu", "microcode", "unknown", true),
        rule("kernel", "late\u{1b}[31m", "ok", false),
    ];
    let rules = Rule::read(&serde_json::json!({ "rules": rules })).expect("rules");
    let options = ShowOptions { width: 90, ..ShowOptions::default() };
    insta::assert_snapshot!(checks(&rules, &options), @r#"
    kernel
      ✗ preempt-rt       standard kernel: /sys/kernel/realtime: 0
                         a kernel without PREEMPT_RT cannot interrupt its own critical
                         sections, so that every one of them is a delay
                         → install linux-image-rt-amd64 and start it
      ✓ high-resolution  standard kernel: /sys/kernel/realtime: 0
      · late\u{1b}[31m   standard kernel

    cpu
      ! governor         standard kernel: /sys/kernel/realtime: 0
                         a kernel without PREEMPT_RT cannot interrupt its own critical
                         sections, so that every one of them is a delay
                         → install linux-image-rt-amd64 and start it
      ~ smt              standard kernel: /sys/kernel/realtime: 0
                         a kernel without PREEMPT_RT cannot interrupt its own critical
                         sections, so that every one of them is a delay
                         → install linux-image-rt-amd64 and start it
      ? microcode        standard kernel: /sys/kernel/realtime: 0
                         a kernel without PREEMPT_RT cannot interrupt its own critical
                         sections, so that every one of them is a delay
                         → install linux-image-rt-amd64 and start it

    1 bad, 1 warning, 1 advice, 1 unknown, 1 good, 1 not applicable
    "#);
    insta::assert_snapshot!(checks(&rules[..2], &ShowOptions { ascii: true, ..options }), @r#"
    kernel
      bad            preempt-rt       standard kernel: /sys/kernel/realtime: 0
                                      a kernel without PREEMPT_RT cannot interrupt its own
                                      critical sections, so that every one of them is a delay
                                      > install linux-image-rt-amd64 and start it
      good           high-resolution  standard kernel: /sys/kernel/realtime: 0

    1 bad, 1 good
    "#);
    assert_eq!(checks(&[], &options), "\n");
}

#[test]
fn live_lines_stand_under_their_heading() {
    let figures = LiveFigures {
        index: 3,
        tid: 4_711,
        samples: 12_345,
        min: Some(Nanos(1_234)),
        max: Some(Nanos(2_345_678)),
        current: Some(Nanos(-500)),
        mean: Some(12_345.6),
    };
    let before = LiveFigures {
        index: 4,
        samples: 0,
        min: None,
        max: None,
        current: None,
        mean: None,
        ..figures
    };
    let text = format!(
        "{}\n{}\n{}",
        live_header(),
        live_line(&figures, "cpu3"),
        live_line(&before, "a\nb")
    );
    insta::assert_snapshot!(text, @r#"
    Index      TID      Samples     L_min     L_max     L_cur     L_avg  name (latencies in us)
        3     4711        12345      1.23     2,346    -0.500      12.3  cpu3
        4     4711            0         -         -         -         -  a\nb
    "#);
}

#[test]
fn texts_are_broken_at_spaces_and_long_words_anywhere() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
    assert_eq!(wrap("", 4), [""]);
}
