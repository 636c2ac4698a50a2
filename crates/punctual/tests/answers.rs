//! The answer first: counts what a user has to read, on bundles recorded once on real kernels.

use crate::common::punctual;
use crate::explain_causes::case::recorded_cases;
use punctual_bundle::Bundle;
use punctual_bundle::summary::Summary;
use punctual_core::format;
use punctual_report::answer::{self, AnswerEvidence};
use punctual_report::remedies::Rules;
use punctual_report::terminal::{self, ShowOptions};
use punctual_session::explanation::{self, Wanted};
use punctual_study::replay;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The columns of a terminal.
const WIDTH: usize = 80;
/// The lines at the end of `attach --explain`.
const LINES: usize = 40;
/// The lines below its figures: a blank line, the bundle, the report.
const BELOW: usize = 3;
/// The worst samples that `explain` shows one by one.
const SHOWN: usize = 5;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Every bundle below `fixtures/causes`, or of `fixtures/bundles`.
fn bundles_in(directory: &str) -> Vec<(String, Bundle)> {
    let directory = match directory {
        "causes" => recorded_cases().to_owned(),
        other => fixtures().join(other),
    };
    let mut all: Vec<(String, Bundle)> = std::fs::read_dir(&directory)
        .expect("it is there")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_string_lossy().into_owned();
            let inner = path.join("bundle");
            let path = if inner.is_dir() { inner } else { path };
            Some((name, Bundle::open(&path).ok()?))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert!(!all.is_empty(), "{directory:?} has bundles");
    all
}

/// The summary as in `show` and at the end of an attachment.
fn summary_of(bundle: &Bundle) -> Summary {
    let mut summary = punctual_stats::summarize_bundle(bundle);
    let evidence = AnswerEvidence {
        explained: explanation::of_answer(bundle, &summary),
        replayed: replay::of_answer(bundle, &summary),
    };
    summary.answer = Some(answer::build_answer(&summary, &evidence, &Rules::default()));
    summary
}

fn narrow() -> ShowOptions {
    ShowOptions { width: WIDTH, ..ShowOptions::default() }
}

fn brief(bundle: &Bundle) -> String {
    terminal::show_brief(&summary_of(bundle), "--details, or punctual show BUNDLE", &narrow())
}

fn details(bundle: &Bundle) -> String {
    terminal::show_summary(&summary_of(bundle), &punctual_stats::phase_views(bundle), &narrow())
}

/// The output of `explain`; empty if no events were kept.
fn explain(bundle: &Bundle) -> String {
    let options = narrow().in_time(bundle.timebase());
    let all = explanation::explain_samples(bundle, &Wanted::default());
    all.map_or(String::new(), |all| {
        format!(
            "{}\n{}",
            terminal::show_answer(&summary_of(bundle), &options),
            terminal::show_explanations(&all, SHOWN, &Rules::default(), &options)
        )
    })
}

/// The last line of the answer: its lines begin with one of these words.
fn answered_by(text: &str) -> usize {
    let words = ["verdict ", "figure ", "delayed by ", "to do "];
    let is_answer = |line: &str| words.iter().any(|word| line.starts_with(word));
    let last = text.lines().enumerate().filter(|(_, line)| is_answer(line)).last();
    1 + last.unwrap_or_else(|| panic!("it answers: {text}")).0
}

#[test]
fn the_end_of_an_attachment_has_at_most_forty_lines() {
    let all = [bundles_in("causes"), bundles_in("bundles")].concat();
    // Real programs do not have such long names of threads.
    for (name, bundle) in all.iter().filter(|(name, _)| name != "hostile") {
        let text = brief(bundle);
        let lines = text.lines().count() + BELOW;
        assert!(lines <= LINES, "{name}: {lines} lines\n{text}");
        assert!(answered_by(&text) <= 15, "{name}: {text}");
    }
}

#[test]
fn omitted_tables_are_named_with_the_option_that_shows_them() {
    let has_series = |(_, bundle): &(String, Bundle)| bundle.all_series().next().is_some();
    for (name, bundle) in bundles_in("causes").into_iter().filter(has_series) {
        let text = brief(&bundle);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, rest) = text.split_once("not shown: ").expect("something is left out");
        let (tables, option) = rest.split_once(" (--details").expect("with an option");
        assert!(option.starts_with(", or punctual show BUNDLE)"), "{name}: {option}");
        let whole = details(&bundle);
        assert!(tables.contains("distributions") && whole.contains("\ndistributions "));
        assert!(tables.contains("worst samples") && whole.contains("\nworst samples ("));
        let heading = "\ntime by cause: ";
        assert_eq!(tables.contains("time by cause"), whole.contains(heading), "{name}");
        let has_findings = tables.contains(" with remedies");
        assert_eq!(has_findings, !whole.contains("no warnings about these figures"), "{name}");
        let unwrapped = whole.split_whitespace().collect::<Vec<_>>().join(" ");
        for phase in &bundle.phases {
            for table in phase.meta.measures.iter().flat_map(|measure| &measure.notes.tables) {
                assert!(
                    tables.contains(&format::escape_unsafe(&table.title)),
                    "{name}: {}",
                    table.title
                );
                assert!(
                    unwrapped.contains(&format::escape_unsafe(&table.title)),
                    "{name}: {}",
                    table.title
                );
            }
        }
    }
}

#[test]
fn the_summary_of_an_attachment_is_brief_unless_details_are_requested() {
    let (_, hog) = bundles_in("causes").into_iter().find(|(name, _)| name == "hog").unwrap();
    insta::assert_snapshot!("default", brief(&hog));
    insta::assert_snapshot!("details", details(&hog));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let all = [bundles_in("causes"), bundles_in("bundles")].concat();
    // Figures of 19 digits are wider than any measured one.
    for (name, bundle) in all.iter().filter(|(name, _)| name != "hostile") {
        for text in [brief(bundle), details(bundle), explain(bundle)] {
            for line in text.lines() {
                let width = format::width_of(line);
                assert!(width <= WIDTH, "{name}: {width} columns: {line}");
            }
        }
    }
}

/// The commands of a role in docs and `--help`, each with its options.
const LATE_LOOP: [&str; 2] = ["attach --explain -- ./control-loop", "report BUNDLE"];
const GATE: [&str; 2] = ["new gate.toml", "run gate.toml --quiet"];
const KERNELS: [&str; 3] = [
    "run gate.toml --target vm:6.12 --output standard",
    "run gate.toml --target vm:6.12-rt --output rt",
    "compare standard rt",
];

/// The maximum number of lines that a user reads in a role.
const READ: usize = 60;
/// The answer is within the first ones.
const FIRST: usize = 15;

fn help(words: &[&str]) -> String {
    let output = punctual().args(words).arg("--help").stdin(Stdio::null()).output();
    String::from_utf8(output.expect("punctual starts").stdout).expect("UTF-8")
}

#[test]
fn each_role_has_at_most_four_commands_which_exist() {
    for role in [&LATE_LOOP[..], &GATE, &KERNELS] {
        assert!(role.len() <= 4);
        for command in role {
            let mut words = command.split(' ').take_while(|word| *word != "--");
            let name = words.next().unwrap();
            let options: Vec<&str> = words.filter(|word| word.starts_with("--")).collect();
            let text = help(&[name]);
            for option in options {
                assert!(text.contains(option), "{command}: {option}");
            }
        }
    }
}

#[test]
fn a_late_loop_is_answered_first() {
    let mut explained = bundles_in("causes");
    // A recording without samples.
    explained.retain(|(_, bundle)| bundle.all_series().next().is_some());
    assert!(explained.len() >= 8, "{} are explained", explained.len());
    for (name, bundle) in explained {
        let text = brief(&bundle);
        assert!(text.lines().count() + BELOW <= READ);
        let first: String = text.lines().take(FIRST).collect::<Vec<_>>().join("\n");
        for word in ["verdict ", "figure ", "delayed by ", "to do "] {
            assert!(first.contains(&format!("\n{word}")), "{name}: {word}: {first}");
        }
    }
}

/// Without windows for the longest sample, the cause of another series is shown, with its name.
#[test]
fn without_windows_the_cause_of_another_series_is_named() {
    for (name, figure, of) in [
        ("inversion", "mutex/0: ", "in mutex/1, from "),
        ("inheritance", "mutex/0: ", "in mutex/1, from "),
        ("storage", "storage/whole: ", "in storage/force, from "),
        ("hog", "timer/cpu1: ", "(from "),
    ] {
        let (_, bundle) = bundles_in("causes").into_iter().find(|(of, _)| of == name).unwrap();
        let text = brief(&bundle);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(figure) && text.contains(of), "{name}: {text}");
    }
}

/// A mutex that inherits priorities is not to be replaced by one that does, and buffers that lost
/// nothing are large enough.
#[test]
fn remedies_match_the_recorded_cause() {
    let to_do = |name: &str| {
        let (_, bundle) = bundles_in("causes").into_iter().find(|(of, _)| of == name).unwrap();
        summary_of(&bundle).answer.unwrap().to_do.join(" ")
    };
    let (inverted, inherited) = (to_do("inversion"), to_do("inheritance"));
    assert!(inverted.contains("PTHREAD_PRIO_INHERIT"), "{inverted}");
    assert!(!inherited.contains("PTHREAD_PRIO_INHERIT"), "{inherited}");
    for (name, _) in bundles_in("causes") {
        let to_do = to_do(&name);
        assert!(!to_do.contains("larger buffers") && !to_do.contains("BTF"), "{name}: {to_do}");
    }
}

/// A recording of the whole run explains the answer as well as windows and `explain` itself.
#[test]
fn a_recording_explains_the_answer() {
    let all = bundles_in("bundles");
    let (_, recorded) = all.iter().find(|(name, _)| name == "recorded").unwrap();
    assert!(recorded.windows.is_none() && recorded.recording.is_some());
    let answer = summary_of(recorded).answer.unwrap();
    let delays = answer.delayed_by.expect("what delayed it is known");
    let wanted = Wanted { worst: Some(20), ..Wanted::default() };
    let explained = explanation::explain_samples(recorded, &wanted).unwrap();
    let least = explained.samples.iter().map(|one| one.explanation.latency().ns()).min();
    assert_eq!((delays.samples, Some(delays.from)), (explained.samples.len() as u64, least));
    assert_eq!(delays.series, None);
}

/// The answer of a replayed run uses the replay: 3,386,843 of the 3,394,818 instructions that fit
/// into its longest sample were executed with interrupts disabled.
#[test]
fn a_replay_explains_the_answer() {
    let replayed = Bundle::open(&fixtures().join("labs/quick/cells/6.1/r1")).unwrap();
    let delays = summary_of(&replayed).answer.unwrap().delayed_by.expect("it is known");
    assert_eq!((delays.samples, delays.from), (1, 27_158_544));
    let first = &delays.causes[0];
    assert_eq!(first.words, "interrupts disabled");
    assert_eq!(first.who.as_deref(), Some("__free_one_page"));
    assert!((first.share - 3_386_843.0 / 3_394_818.0).abs() < 1e-6, "{}", first.share);
    let other = Bundle::open(&fixtures().join("labs/quick/cells/6.1-rt/r1")).unwrap();
    assert_eq!(summary_of(&other).answer.unwrap().delayed_by, None, "nothing is known");
}

#[test]
fn the_verdict_is_at_the_beginning_and_the_end_of_the_output() {
    let (_, good) = bundles_in("bundles").into_iter().find(|(name, _)| name == "good").unwrap();
    let summary = summary_of(&good);
    let (shown, closing) = (details(&good), terminal::show_closing(&summary, &narrow()));
    let lines = shown.lines().count() + closing.lines().count();
    assert!(lines + BELOW <= READ, "{lines} lines: {shown}{closing}");
    assert!(answered_by(&shown) <= FIRST, "{shown}");
    let last: Vec<&str> = closing.trim_start().lines().collect();
    let asked = summary.phases.iter().flat_map(|phase| &phase.series);
    let asked: usize = asked.map(|series| series.requirements.len()).sum();
    assert_eq!(last.len(), asked + 1, "a line for each requirement, and the verdict: {closing}");
    assert!(last.last().is_some_and(|line| line.starts_with("verdict: met")), "{closing}");
}

#[test]
fn a_comparison_of_kernels_is_answered_first() {
    let bundle = fixtures().join("causes/hog/bundle");
    let output = punctual().args(["compare"]).args([&bundle, &bundle]).output();
    let text = String::from_utf8(output.expect("punctual starts").stdout).expect("UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= READ, "{} lines: {text}", lines.len());
    let first = lines.iter().take(FIRST).any(|line| line.contains("significant difference"));
    assert!(first, "{text}");
}

#[test]
fn over_time_the_worst_samples_have_the_colour_of_their_cause() {
    use punctual_report::html::{ReportInput, breakdown::Breakdown, render_report};
    let (_, hog) = bundles_in("causes").into_iter().find(|(name, _)| name == "hog").unwrap();
    let explained =
        explanation::explain_samples(&hog, &Wanted::default()).expect("it is explained");
    let breakdown = Breakdown::from_explanations(&explained, None);
    let summary = summary_of(&hog);
    let input =
        ReportInput { breakdown: breakdown.as_ref(), ..ReportInput::from_bundle(&hog, &summary) };
    let page = render_report(&[input]).expect("a page");
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let causes: Vec<&str> =
        data["causes"].as_array().unwrap().iter().map(|of| of["words"].as_str().unwrap()).collect();
    assert_eq!(causes, ["preempted by a higher priority"]);
    let worst = data["series"][0]["worst"].as_array().unwrap();
    let coloured = worst.iter().filter(|sample| sample[4] == 0).count();
    assert_eq!(coloured, explained.samples.len(), "as many as are explained");
    assert!(worst.iter().any(|sample| sample[4] == -1), "the others are not known");
}
