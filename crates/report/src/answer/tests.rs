use super::*;

fn time(ns: f64) -> String {
    format!("{} µs", crate::format::micros_f64(ns))
}

fn delay(cause: CauseKind, who: Option<&str>, share: f64) -> AnsweredDelay {
    AnsweredDelay::new(cause.id(), cause.words(), who.map(str::to_owned), share)
}

#[test]
fn a_figure_is_shown_with_its_bound_and_violations() {
    let mut figure = DecidingFigure {
        series: "control/response".to_owned(),
        metric: "max".to_owned(),
        value: 8_720_000.0,
        is_time: true,
        comparison: Some("<".to_owned()),
        bound: Some(2_000_000),
        beyond: Some(214),
        samples: 4_999,
        max: Some(8_720_000),
        not_ended: false,
    };
    assert_eq!(
        figure_sentence(&figure, time),
        "control/response: max 8,720 µs, required < 2,000 µs; 214 of 4,999 samples longer"
    );
    figure = DecidingFigure {
        metric: "overruns".to_owned(),
        value: 6.0,
        is_time: false,
        comparison: Some("==".to_owned()),
        bound: Some(0),
        beyond: None,
        ..figure
    };
    assert_eq!(
        figure_sentence(&figure, time),
        "control/response: overruns 6, required == 0; max 8,720 µs; 4,999 samples"
    );
}

#[test]
fn causes_are_shown_with_shares_and_small_ones_summed() {
    let delays = Delays {
        series: None,
        samples: 37,
        incidents: Some(12),
        from: 2_000_000,
        causes: vec![
            delay(CauseKind::PageFault, None, 0.45),
            delay(CauseKind::Lock, Some("operator-panel"), 0.38),
            delay(CauseKind::Preempted, Some("hog"), 0.1),
            delay(CauseKind::Irq, Some("eth0"), 0.03),
            delay(CauseKind::Softirq, None, 0.02),
        ],
        source: None,
    };
    assert_eq!(
        delays_sentence(&delays, time),
        "45 % page fault, 38 % waiting for a lock (held by operator-panel), 10 % preempted by a \
         higher priority (hog), 3 % interrupt handler (eth0) and 2 % others (from 2,000 µs on, 37 \
         samples in 12 incidents)"
    );
    let mut at_a_line = delays.clone();
    at_a_line.causes.truncate(2);
    at_a_line.causes[0].at = Some("loop.cpp:97".to_owned());
    at_a_line.causes[1].at = Some("loop.cpp:142".to_owned());
    at_a_line.causes[1].ended_by = Some("operator-panel-77 at panel.cpp:61".to_owned());
    assert_eq!(
        delays_sentence(&at_a_line, time),
        "45 % page fault at loop.cpp:97 and 38 % waiting for a lock at loop.cpp:142 (held by \
         operator-panel, mostly ended by operator-panel-77 at panel.cpp:61) (from 2,000 µs on, 37 \
         samples in 12 incidents)"
    );
    let lock = &mut at_a_line.causes[1];
    lock.who = Some("operator-panel-77".to_owned());
    lock.holder = Some("preempted at panel.cpp:70".to_owned());
    let sentence = delays_sentence(&at_a_line, time);
    let holder = "(held by operator-panel-77, meanwhile mostly preempted at panel.cpp:70, mostly \
                  released at panel.cpp:61)";
    assert!(sentence.contains(holder), "{sentence}");
    let alone = Delays { samples: 1, incidents: Some(1), causes: Vec::new(), ..delays };
    assert!(delays_sentence(&alone, time).ends_with("(from 2,000 µs on, 1 sample)"));
    let stated = Delays { source: Some("rtla".to_owned()), ..alone };
    assert!(delays_sentence(&stated, time).ends_with("(from 2,000 µs on, 1 sample, by rtla)"));
}

#[test]
fn names_from_outside_are_harmless() {
    let delays = Delays {
        series: None,
        samples: 1,
        incidents: None,
        from: 1,
        causes: vec![delay(CauseKind::Preempted, Some("\u{1b}[31mred\n"), 1.0)],
        source: Some("\u{1b}[31m".to_owned()),
    };
    let text = delays_sentence(&delays, time);
    assert!(!text.contains(['\u{1b}', '\n']), "{text:?}");
}

/// The answer of an import of a test file of `punctual_bundle`.
fn imported(text: &str) -> Answer {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("b");
    let options = punctual_bundle::import::ImportOptions::default();
    let summarize = punctual_stats::summarize_bundle;
    punctual_bundle::import::import_results(&mut text.as_bytes(), &directory, &options, summarize)
        .expect("an import");
    let bundle = punctual_bundle::Bundle::open(&directory).expect("a bundle");
    known_answer(&summarize(&bundle))
}

macro_rules! import_data {
    ($name:literal) => {
        include_str!(concat!("../../../bundle/src/import/testdata/", $name))
    };
}

#[test]
fn causes_stated_by_rtla_are_shown_as_by_rtla() {
    let answer = imported(import_data!("field/timerlat-no-sample-on-cpu2.txt"));
    assert_eq!(answer.verdict, "stopped at 52.9 µs: CPU 2/thread");
    let figure = answer.figure.expect("a figure");
    assert_eq!((figure.series.as_str(), figure.value), ("CPU 2/thread", 52_930.0));
    let delays = delays_sentence(&answer.delayed_by.expect("delays"), time);
    assert_eq!(
        delays,
        "91 % exit from idle, 4 % interrupt handler and 2 % running task not preempted \
         (swapper/2:0) (from 52.9 µs on, 1 sample, by rtla)"
    );
    let answer = imported(import_data!("field/timerlat-top-auto-analysis.txt"));
    assert_eq!(answer.verdict, "stopped at 709.2 µs: CPU 1/irq");
    let delays = delays_sentence(&answer.delayed_by.expect("delays"), time);
    assert!(delays.starts_with("100 % timer interrupt delayed (ip:3567 in igb_update_mc_"));
    assert!(delays.ends_with(", 1 sample, by rtla)"), "{delays}");
    // A file that states no delays blames no thread.
    let answer = imported(import_data!("field/timerlat-indented.txt"));
    assert_eq!((answer.verdict.as_str(), answer.delayed_by), ("nothing was required", None));
    let answer = imported(import_data!("rtla-6.12/osnoise-top.txt"));
    assert_eq!(answer.figure.expect("a figure").series, "CPU 1/noise");
}
