//! The report on a bundle with a recording, in a headless browser: tables, timeline, zooming;
//! hostile text never becomes markup.

use crate::browser::{Bait, Seen, assert_drawn, open};
use crate::recording;
use crate::recording::Recording;
use crate::support::hostile_names;
use crate::support::synthetic::{Recipe, write};
use punctual_bundle::Bundle;
use punctual_core::event::{FunctionName, TaskName};
use punctual_explain::pairs::PairRequest;
use punctual_report::html::recording::{RecordingDigest, RecordingSource};
use punctual_report::html::{ReportInput, render_report};
use punctual_testing::events;
use std::path::Path;

fn page(bundle: &Bundle, all: &Recording, requests: Vec<PairRequest>) -> String {
    let summary = punctual_stats::summarize_bundle(bundle);
    let series = vec!["timer/cpu0".to_owned()];
    let source = RecordingSource { recorded: &all.recorded, names: &all.names, series, requests };
    let digest = RecordingDigest::from_events(&source, || all.events.iter().copied());
    render_report(&[ReportInput {
        recording: Some(&digest),
        ..ReportInput::from_bundle(bundle, &summary)
    }])
    .unwrap()
}

/// A bundle with only a recording: no series.
fn recording_only(directory: &Path) -> Bundle {
    write(&directory.join("b"), &Recipe { phases: Vec::new(), ..Recipe::default() })
}

/// Opens the page with another script, which the page's own policy would block.
fn open_with(page: &str, script: &str, directory: &Path) -> Option<Seen> {
    let (before, policy) = page.split_once("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let (_, after) = policy.split_once('>').unwrap();
    let page =
        format!("{before}{after}").replace("</body>", &format!("<script>{script}</script></body>"));
    open(&page, directory)
}

/// Uses the timeline like a reader; writes the visible content after each step into the document.
const USE: &str = r#"
setTimeout(() => {
  const svg = document.querySelector("svg.picture"), box = svg.getBoundingClientRect();
  const root = document.documentElement.dataset;
  // A redraw after a step follows with the browser's next frame, which a test cannot await: only
  // the first drawing is checked.
  root.wakes = svg.querySelectorAll(".wake").length;
  root.words = svg.textContent;
  const item = svg.querySelector(".item").getBoundingClientRect();
  const clientX = item.left + item.width / 2, clientY = item.top + item.height / 2;
  svg.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
  root.tip = svg.parentNode.querySelector(".tip").textContent;
  const steps = [], passed = { bubbles: true, cancelable: true };
  const at = (x, more) => (
    { ...passed, clientX: box.left + x, clientY: box.top + 60, pointerId: 1, button: 0, ...more });
  const key = (key) => () => svg.dispatchEvent(new KeyboardEvent("keydown", { key, ...passed }));
  const wheel = (more) => () =>
    svg.dispatchEvent(new WheelEvent("wheel", at(700, { deltaY: -100, ...more })));
  const drag = (from, to, more) => () => {
    svg.dispatchEvent(new PointerEvent("pointerdown", at(from, more)));
    svg.dispatchEvent(new PointerEvent("pointermove", at(to, more)));
    svg.dispatchEvent(new PointerEvent("pointerup", at(to, more)));
  };
  const all = [
    () => {}, wheel({}), key("+"), key("ArrowRight"), wheel({ ctrlKey: true }), key("0"),
    drag(400, 600), drag(400, 300, { shiftKey: true }), key("f"),
  ];
  const next = () => {
    const step = all.shift();
    if (!step) { root.views = JSON.stringify(steps); return; }
    step();
    steps.push([Number(svg.dataset.from), Number(svg.dataset.to)]);
    setTimeout(next, 20);
  };
  next();
}, 300);
"#;

#[test]
fn the_timeline_zooms_by_wheel_keys_and_dragging() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = recording_only(directory.path());
    let page = page(&bundle, &recording::recording(30), Vec::new());
    let Some(seen) = open_with(&page, USE, directory.path()) else { return };
    assert_drawn(&seen, 3);
    let views = seen
        .document
        .split("data-views=\"")
        .nth(1)
        .unwrap_or_else(|| panic!("no views: {:?}", seen.console));
    let views: Vec<(f64, f64)> = serde_json::from_str(views.split('"').next().unwrap()).unwrap();
    let [whole, unfocused, nearer, moved, wheel, all, dragged, shifted, subject] = views[..] else {
        panic!("{views:?}")
    };
    let length = |(from, to): (f64, f64)| to - from;
    assert_eq!(unfocused, whole, "the wheel is the page's until the timeline has the focus");
    assert!(length(nearer) < length(whole) && length(wheel) < length(moved), "{views:?}");
    assert!(moved.0 > nearer.0 && (length(moved) - length(nearer)).abs() <= 2.0, "{views:?}");
    assert_eq!(all, whole);
    assert!(length(dragged) < length(whole) / 3.0 && shifted.0 > dragged.0, "{views:?}");
    assert!(
        subject.0 < 0.0 && subject.1 > 312_000.0 && length(subject) < length(whole),
        "{views:?}"
    );
    let sentence = |name: &str| {
        let after = seen.document.split(&format!("data-{name}=\"")).nth(1).unwrap_or_default();
        after.split('"').next().unwrap_or_default().to_owned()
    };
    assert_ne!(sentence("wakes"), "0");
    for text in ["control (1000)", "kworker/1:2 (40)", "clock_nanosleep", "timer/cpu0"] {
        assert!(sentence("words").contains(text), "{text}: {}", sentence("words"));
    }
    assert!(
        sentence("tip").contains("control")
            && sentence("tip").contains("scheduling: SCHED_FIFO 80"),
        "{}",
        sentence("tip")
    );
    assert!(seen.document.contains("latency 312 µs: timer/cpu0"));
}

#[test]
fn violated_limits_are_shown_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = recording_only(directory.path());
    let all = recording::recording(10);
    let request =
        PairRequest::find_limited("parse(char const*) < 20us", &all.names, None, None).unwrap();
    let page = page(&bundle, &all, vec![request]);
    assert!(page.contains("violated 10 times"), "no violation is told");
    assert!(
        page.contains("events were lost") || page.contains("Events were lost"),
        "a loss is a doubt"
    );
}

/// A switch away from a thread that does not run there, without known losses at that time.
#[test]
fn contradictory_events_cause_a_warning_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = recording_only(directory.path());
    let mut all = recording::recording(10);
    let text = "events contradict earlier ones";
    assert!(!page(&bundle, &all, Vec::new()).to_lowercase().contains(text), "nothing contradicts");
    all.events
        .extend(events!("5000.0034s cpu0 0 switch R -> 2000; 5000.0035s 1000/19 switch S -> 0"));
    all.events.sort_by_key(|event| event.at);
    let page = page(&bundle, &all, Vec::new());
    assert!(page.to_lowercase().contains(text), "the page says nothing of a contradiction");
    assert!(page.contains("events of group sched"), "of how many");
}

#[test]
fn nothing_hostile_runs_and_nothing_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let bait = Bait::laid();
    let names = hostile_names(&bait.url);
    let mut all = recording::recording(10);
    let evil = |place: usize| names[place % names.len()].clone();
    for (place, task) in all.names.tasks.values_mut().enumerate() {
        *task = TaskName { comm: evil(place), scheduling: Some(evil(place + 1)), ..task.clone() };
    }
    let texts = all
        .names
        .points
        .iter_mut()
        .chain(all.names.irqs.values_mut())
        .chain(all.names.vectors.values_mut());
    let texts = texts.chain(all.names.softirqs.values_mut()).chain(all.names.syscalls.values_mut());
    let texts = texts.chain(all.names.symbols.values_mut()).chain(all.names.devices.values_mut());
    texts.enumerate().for_each(|(place, text)| *text = evil(place + 4));
    let function = |place: usize| FunctionName {
        name: evil(place),
        object: evil(place + 1),
        offset: 0,
        site: evil(place),
    };
    all.names.functions = (0..2).map(function).collect();
    all.recorded.recorder = evil(0);
    all.recorded
        .sources
        .iter_mut()
        .enumerate()
        .for_each(|(place, source)| source.name = evil(place));
    let page = page(&recording_only(directory.path()), &all, Vec::new());
    let Some(seen) = open(&page, directory.path()) else { return };
    assert_drawn(&seen, 3);
    bait.assert_untouched(&seen);
}

/// A second with a million events: pictures stay within their limit and report omissions.
#[test]
fn a_recording_with_many_events_is_shown_reduced() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = recording_only(directory.path());
    let mut all = recording::recording(2);
    let switches = ["switch R -> 1001; +1us switch R -> 2000"; 30_000].join("; +1us ");
    all.events.extend(events!("5000.003s cpu1 2000 {switches}"));
    all.recorded.ended = recording::us(70_000);
    all.events.sort_by_key(|event| event.at);
    all.names.points.clear();
    all.events.retain(|event| matches!(event.what, punctual_core::EventKind::Switch { .. }));
    let page = page(&bundle, &all, Vec::new());
    assert!(page.len() < punctual_report::html::SIZE_LIMIT, "{} bytes", page.len());
    assert!(
        page.contains("of the shortest items are not shown")
            || page.contains("there are too many events")
    );
}
