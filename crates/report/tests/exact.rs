//! An exact explanation in the terminal, as folded stacks, and on the page.

use punctual_bundle::Bundle;
use punctual_bundle::exact::ExactDocument;
use punctual_bundle::sections::{Required, SectionsDocument, SectionsRun};
use punctual_bundle::summary::VerdictWord;
use punctual_report::terminal::{self, ShowOptions};
use punctual_report::{export, html};
use std::path::Path;

fn bundle(name: &str) -> Bundle {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
    Bundle::open(&bundles.join(name)).expect("a bundle")
}

/// One late sample beside an ordinary one; a kernel with hostile names, compared with another.
fn document() -> ExactDocument {
    let sample = r#"
        "phase": "main", "series": "t/cpu0", "sample": 609, "due": 9662367473,
        "latency_ns": 24000, "thread": "timer/cpu0", "instructions": 3000,
        "parts": [
            {"kind": "irqs-disabled", "begin": 0, "instructions": 2000,
                "functions": [["free_pcppages_bulk", 1500], ["</b>", 500]],
                "stack": ["user mode", "do_exit", "free_pcppages_bulk"]},
            {"kind": "return", "begin": 2000, "instructions": 1000,
                "functions": [["__schedule", 1000]], "stack": ["__schedule"]}
        ],
        "lines": [{"line": "mm/page_alloc.c:1123", "function": "free_pcppages_bulk", "own": 1400}],
        "functions": [{"name": "free_pcppages_bulk", "own": 1500, "total": 2000, "calls": 1}],
        "calls": [
            {"function": "user mode", "context": "stress-ng", "depth": 0, "begin": 0, "end": 2000},
            {"function": "do_exit", "context": "stress-ng", "depth": 1, "begin": 0, "end": 2000},
            {"function": "free_pcppages_bulk", "context": "stress-ng", "depth": 2, "begin": 0,
                "end": 2000},
            {"function": "a;b\n</title><script>", "context": "stress-ng", "depth": 3,
                "begin": 1500, "end": 2000},
            {"function": "__schedule", "context": "timer/cpu0", "depth": 0, "begin": 2000,
                "end": 3000}
        ]"#;
    let document = r#"{
        "schema": "punctual-exact/1", "kernel": "6.1.0-test", "ns_per_instruction": 8,
        "digest": "26f535c261060000", "instructions": 1453768064, "cut": 0,
        "worst": [{SAMPLE, "without": 7,
            "more": [{"function": "free_pcppages_bulk", "here": 1500, "there": 20}]}],
        "ordinary": {SAMPLE, "without": 0, "more": []},
        "irqs_disabled": [{
            "function": "free_pcppages_bulk", "by": null, "count": 23, "total": 7916154,
            "longest": 4053251, "ended_in": "__free_one_page"
        }],
        "preemption_disabled": [{
            "function": "unmap_page_range", "by": "_raw_spin_lock", "count": 2, "total": 70000,
            "context": "preemption-disabled", "longest": 60000, "ended_in": "unmap_page_range",
            "stack": ["user mode", "do_exit", "unmap_page_range"],
            "functions": [["unmap_page_range", 50000], ["</b>", 10000]]
        }],
        "not_preempted": [{
            "function": "zap_pte_range", "by": null, "count": 1, "total": 40000,
            "context": "interrupt", "longest": 40000, "ended_in": "unmap_page_range",
            "stack": ["user mode", "do_exit", "zap_pte_range"],
            "functions": [["zap_pte_range", 30000]]
        }],
        "migration_disabled": [{
            "function": "free_unref_folios", "by": "rt_spin_lock", "count": 7, "total": 90000,
            "context": "task", "longest": 70000, "ended_in": "free_unref_folios"
        }],
        "lock_waits": [{
            "function": "vma_link_file", "by": "rwbase_write_lock", "count": 3, "total": 30000,
            "context": "task", "longest": 20000, "ended_in": "vma_link_file"
        }],
        "findings": [],
        "difference": {
            "against": "6.12", "kernel": "6.12.117\u001b[2J", "digest": "5349e7a7d3a1b801",
            "pairs": [{
                "of": "ordinary", "samples": 1, "here": 3000, "there": 2400, "same": 9,
                "parts": [
                    {"kind": "irqs-disabled", "here": 2000, "there": 0},
                    {"kind": "timer", "here": 0, "there": 1300},
                    {"kind": "return", "here": 1000, "there": 1100}
                ],
                "functions": [
                    {"kind": "irqs-disabled", "function": "free_pcppages_bulk", "here": 1500,
                        "there": 0},
                    {"kind": "timer", "function": "</b>", "here": 0, "there": 1300},
                    {"kind": "return", "function": "__schedule", "here": 1000, "there": 1100}
                ]
            }]
        }
    }"#;
    serde_json::from_str(&document.replace("SAMPLE", sample)).expect("a document")
}

#[test]
fn differences_between_kernels_are_shown_by_part_and_function() {
    let options = ShowOptions { width: 80, ..ShowOptions::default() };
    let text = terminal::show_exact_samples(&document(), 5, &options);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for shown in [
        "instructions by source line: mm/page_alloc.c:1123 1,400 (free_pcppages_bulk)",
        "difference to 6.12 (kernel 6.12.117",
        "an ordinary sample of each: instructions by part",
        "an ordinary sample of each: functions that differ",
        "functions by part: 1 only here, 1 only there, 0 with more, 1 with fewer, 9 equal",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(shown), "{shown}: {text}");
    }
    let row = |first: &str, last: [&str; 3]| {
        let found = text.lines().filter(|line| line.trim().starts_with(first));
        found.map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|it| it.ends_with(&last))
    };
    assert!(row("interrupts disabled", ["2,000", "–", "+2,000"]), "{text}");
    assert!(row("timer not expired", ["–", "1,300", "-1,300"]), "{text}");
    assert!(row("all", ["3,000", "2,400", "+600"]), "{text}");
    assert!(row("__schedule", ["1,000", "1,100", "-100"]), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

fn sections() -> SectionsDocument {
    let exact = document();
    let run = SectionsRun::Command {
        command: ["sh", "-c", "true\u{1b}[2J"].map(str::to_owned).to_vec(),
        status: Some(0),
    };
    SectionsDocument {
        schema: "punctual-sections/1".to_owned(),
        kernel: exact.kernel,
        preemption: Some("voluntary".to_owned()),
        ns_per_instruction: 8,
        run,
        instructions: exact.instructions,
        measured: 20_000_000,
        sections: exact.sections,
        required: vec![Required {
            requirement: "max < 20000 instructions".to_owned(),
            verdict: VerdictWord::NotMet,
            longest: Some(4_053_251),
        }],
        findings: Vec::new(),
    }
}

#[test]
fn sections_in_a_terminal_of_80_columns() {
    let options = ShowOptions { width: 80, ..ShowOptions::default() };
    let text = terminal::show_sections(&sections(), 10, &options);
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(sections().longest_section(), Some(4_053_251));
}

#[test]
fn in_a_terminal_of_80_columns() {
    let options = ShowOptions { width: 80, ..ShowOptions::default() };
    let text = terminal::show_exact_samples(&document(), 5, &options);
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn as_folded_stacks_own_instructions_add_up() {
    let mut bytes = Vec::new();
    export::exact_folded(&document(), &mut bytes).expect("a Vec takes it");
    let text = String::from_utf8(bytes).expect("text");
    insta::assert_snapshot!(text);
    let own = text.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(own.sum::<u64>(), 3_000);
}

#[test]
fn the_page_shows_the_differences_between_kernels_with_a_drawing() {
    let bundle = bundle("good");
    let summary = punctual_stats::summarize_bundle(&bundle);
    let input = html::ReportInput {
        exact: Some(document()),
        ..html::ReportInput::from_bundle(&bundle, &summary)
    };
    let page = html::render_report(&[input]).expect("a page");
    let section = page.split("id=\"exact\"").nth(1).expect("a section of it");
    let section = section.split("</section>").next().expect("its end");
    assert!(section.contains("free_pcppages_bulk") && section.contains("<rect"), "{section}");
    assert!(section.contains("page_alloc.c:1123 1,400"), "{section}");
    // Both tables of the difference, with a function that is on only one path.
    assert!(section.contains("difference to 6.12") && section.contains("-1,300"), "{section}");
    assert!(!section.contains("<script>") && !section.contains("</b>"), "{section}");
}
