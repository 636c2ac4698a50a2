//! The small pages; tests/show.rs shows the summary of the fixture bundles.

use super::paint::wrap_text;
use super::*;
use crate::tables::checks::CheckRow;
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
fn checks_list_failed_rules_first_and_fold_passed_ones() {
    let rules = [
        rule("kernel", "high-resolution", "ok", true),
        rule("kernel", "late\u{1b}[31m", "ok", false),
        rule("cpu", "governor", "warning", true),
        rule("cpu", "smt", "ok", true),
        rule("cpu", "cache", "ok", true),
        rule("cpu", "microcode", "unknown", true),
        rule("rights", "preempt-rt", "bad", true),
    ];
    let rules = CheckRow::read(&serde_json::json!({ "rules": rules })).expect("rules");
    let options = ShowOptions { width: 80, ..ShowOptions::default() };
    insta::assert_snapshot!(show_checks(&rules, &options), @r#"
    1 bad, 1 warning, 1 unknown, 3 good, 1 not applicable

    what to do
      ✗ preempt-rt  standard kernel
          /sys/kernel/realtime: 0
          a kernel without PREEMPT_RT cannot interrupt its own critical sections, so
          that every one of them is a delay
          → install linux-image-rt-amd64 and start it
      ! governor  standard kernel
          /sys/kernel/realtime: 0
          a kernel without PREEMPT_RT cannot interrupt its own critical sections, so
          that every one of them is a delay
          → install linux-image-rt-amd64 and start it
      ? microcode  standard kernel
          /sys/kernel/realtime: 0
          a kernel without PREEMPT_RT cannot interrupt its own critical sections, so
          that every one of them is a delay
          → install linux-image-rt-amd64 and start it

    ✓ 3 good
      kernel: high-resolution
      cpu: smt, cache

    · 1 not applicable
      kernel: late\u{1b}[31m

    evidence of each rule: --json
    "#);
    insta::assert_snapshot!(show_checks(&rules[..3], &ShowOptions { ascii: true, ..options }), @r#"
    1 warning, 1 good, 1 not applicable

    what to do
      warning: governor  standard kernel
          /sys/kernel/realtime: 0
          a kernel without PREEMPT_RT cannot interrupt its own critical sections, so
          that every one of them is a delay
          > install linux-image-rt-amd64 and start it

    1 good
      kernel: high-resolution

    1 not applicable
      kernel: late\u{1b}[31m

    evidence of each rule: --json
    "#);
    assert_eq!(show_checks(&[], &options), "\n");
    for width in [40, 80] {
        for rule_text in show_checks(&rules, &ShowOptions { width, ..options }).lines() {
            assert!(crate::format::width_of(rule_text) <= width, "{width}: {rule_text}");
        }
    }
}

#[test]
fn narrow_tables_never_hide_name_and_verdict() {
    use crate::tables::{Cell, Column, Table, Tone};
    let columns =
        vec![Column::text("rule", 9), Column::text("verdict", 8), Column::text("remark", 1)];
    let row = vec![
        Cell::text("a name of some length"),
        Cell::verdict("", "not met", Tone::Bad),
        Cell::text("a remark that is longer than all of the rest together"),
    ];
    let drawn = |width, whole| {
        let options = ShowOptions { width, whole, ..ShowOptions::default() };
        let mut out = super::paint::TextPage::new(&options);
        super::table::write_body(
            &mut out,
            &Table::new("t", columns.clone()).with_rows([row.clone()]),
        );
        out.finish()
    };
    for width in [40, 10] {
        let text = drawn(width, false);
        assert!(text.contains("not met") && text.contains("narrow: remark"), "{text}");
        assert!(width < 40 || text.contains("a name of some length"), "{text}");
    }
    // A pipe has no width.
    let whole = drawn(40, true);
    assert!(whole.contains("all of the rest together") && !whole.contains("hidden"), "{whole}");
}

#[test]
fn live_lines_are_aligned_with_their_header() {
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
fn texts_are_wrapped_at_spaces_and_long_words_are_split() {
    assert_eq!(wrap_text("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap_text("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
    assert_eq!(wrap_text("", 4), [""]);
}
