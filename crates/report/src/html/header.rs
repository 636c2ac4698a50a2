//! The top of the page: what was measured, where, when, how it ended, and the verdicts on the
//! requirements.

use super::ReportInput;
use super::facts;
use super::gather::PageSeries;
use super::table::{Cell, Column, Table, capitalize_heading, tone_class};
use super::text::{clip_text, format_instant, format_name};
use crate::answer::{self, known_answer};
use crate::format::{count_text, count_with_noun, duration_text, micros_f64, span_text};
use crate::tables::{self, requirements, verdict_words};
use crate::verdict::{beside_requirements, of_reason, tone_of};
use punctual_bundle::answer::Answer;
use punctual_bundle::meta::{ATTACHED_WORKLOAD, DEADLINE, is_latency};
use punctual_bundle::summary::{
    Proof, ProofOutcome, RequirementSummary, SeriesSummary, Summary, ValidityWord, VerdictWord,
};
use punctual_bundle::{Completeness, Exit, Outcome, Timebase, Verdict};
use punctual_core::Nanos;
use punctual_core::cycle::SeriesKind;
use punctual_explain::answer::thread_relevance;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// Sentences about requirements in the banner; the table has the rest.
const MAX_SENTENCES: usize = 12;
/// Series named in each of them.
const MAX_PLACES: usize = 6;

/// The top of the page.
#[derive(Serialize)]
pub(crate) struct PageHeader {
    title: String,
    facts: Vec<(&'static str, Vec<String>)>,
    /// The facts in one line.
    about: String,
    key_figures: Vec<KeyFigure>,
    banner: Option<Banner>,
    /// One row per bundle, if there are several.
    bundles: Option<Table>,
}

#[derive(Serialize)]
struct KeyFigure {
    label: &'static str,
    value: String,
    unit: String,
    sub: String,
    class: &'static str,
}

/// The verdict.
#[derive(Serialize)]
struct Banner {
    class: &'static str,
    mark: &'static str,
    headline: String,
    /// The deciding figure and the causes of the delay, each with its label.
    answer: Vec<(String, String)>,
    to_do: Vec<String>,
    sentences: Vec<String>,
    more: usize,
}

/// The top of a page about these bundles.
pub(crate) fn build_header(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> PageHeader {
    let mut experiments: Vec<String> =
        inputs.iter().map(|input| format_name(&input.summary.experiment)).collect();
    experiments.dedup();
    let title = match experiments.as_slice() {
        [] => "nothing".to_owned(),
        few if few.len() <= 3 => few.join(", "),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let mut facts = match inputs {
        [only] => vec![
            ("Measured", measured_kinds(inputs, content)),
            ("On", place_lines(only)),
            ("When", time_lines(only)),
            ("Ended", vec![format_ending(only)]),
        ],
        _ => vec![("Measured", measured_kinds(inputs, content))],
    };
    if let [only] = inputs {
        facts.extend(validity_lines(only).map(|lines| ("Valid", lines)));
    }
    let mut limits: Vec<String> = inputs
        .iter()
        .filter_map(|input| input.summary.target.as_ref())
        .flat_map(|target| &target.limits)
        .map(|limit| clip_text(limit, 400))
        .collect();
    limits.dedup();
    if !limits.is_empty() {
        facts.push(("Mind", limits));
    }
    let bundles = (inputs.len() > 1).then(|| bundle_table(inputs, content));
    PageHeader {
        title,
        about: about_line(inputs),
        facts,
        key_figures: key_figures(inputs, content),
        banner: build_banner(inputs, content),
        bundles,
    }
}

/// When and where it ran, and how it ended, in a line.
fn about_line(inputs: &[ReportInput<'_>]) -> String {
    let [only] = inputs else { return "What was measured".to_owned() };
    let begun = only.summary.target.as_ref().map_or(only.summary.created, |target| target.started);
    let place = place_lines(only).into_iter().take(2);
    let ended = match (&only.bundle.manifest.ending, only.bundle.completeness) {
        (Some(ending), Completeness::Whole) => clip_text(&ending.outcome.to_string(), 80),
        _ => "cut off".to_owned(),
    };
    [format_instant(begun)].into_iter().chain(place).chain([ended]).collect::<Vec<_>>().join(" · ")
}

/// Descriptions of the measurements: a line for each kind of series.
fn measured_kinds(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    if inputs.iter().any(|input| input.recording.is_some()) {
        kinds.push("events of the kernel and of applications".to_owned());
    }
    for line in &content.lines {
        let every = line
            .series
            .meta
            .period
            .map(|period| format!(", every {}", span_text(period)))
            .unwrap_or_default();
        let meta = &line.series.meta;
        let method = meta
            .details
            .get("method")
            .map(|method| format!(", {}", format_name(method)))
            .unwrap_or_default();
        let kind = format!(
            "{}: {}{method}{every}, {}",
            format_name(&meta.workload),
            meta.clock,
            format_name(&meta.scheduling)
        );
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let further_kinds = kinds.len().saturating_sub(4);
    kinds.truncate(4);
    if further_kinds > 0 {
        kinds.push(format!("and {further_kinds} more kinds"));
    }
    kinds
}

/// The place of the run: the target, unless it is the local system, then the machine.
fn place_lines(input: &ReportInput<'_>) -> Vec<String> {
    let mut lines = machine_lines(input.environment.as_ref());
    let Some(target) = &input.summary.target else { return lines };
    lines.insert(0, format!("{}: {}", clip_text(&target.kind, 20), clip_text(&target.name, 200)));
    let facts = target
        .facts
        .iter()
        .take(16)
        .map(|(name, value)| format!("{}: {}", clip_text(name, 40), clip_text(value, 400)));
    lines.extend(facts);
    lines
}

/// The machine in a few words.
pub(crate) fn machine_lines(environment: Option<&Value>) -> Vec<String> {
    let Some(document) = environment else { return vec!["not recorded".to_owned()] };
    let text = |path: &[&str]| facts::text_at(document, path).map(|text| clip_text(text, 120));
    let cpus = facts::text_at(document, &["topology", "online"])
        .map(|online| format!("CPUs {}", clip_text(online, 60)));
    let hardware = [text(&["machine", "cpu_model"]), text(&["machine", "board"]), cpus];
    let model = text(&["kernel", "preemption", "model"]).map(|model| format!("preemption {model}"));
    let kernel = [text(&["kernel", "release"]).map(|release| format!("Linux {release}")), model];
    let guest = facts::value_at(document, &["machine", "hypervisor", "present"])
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let guest = guest.then(|| match text(&["machine", "hypervisor", "name"]) {
        Some(hypervisor) => format!("in a virtual machine ({hypervisor})"),
        None => "in a virtual machine".to_owned(),
    });
    let joined =
        |parts: Vec<Option<String>>| parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if let Some(why) = document.get("unavailable").and_then(Value::as_str) {
        return vec![format!("unknown: {}", clip_text(why, 300))];
    }
    let lines = [joined(hardware.into()), joined(kernel.into_iter().chain([guest]).collect())];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

fn time_lines(input: &ReportInput<'_>) -> Vec<String> {
    let phases = &input.summary.phases;
    let phase = |p: &punctual_bundle::summary::PhaseSummary| match p.duration {
        Some(ns) => format!("{} {}", format_name(&p.name), duration_text(Nanos(ns))),
        None => format!("{} (duration unknown)", format_name(&p.name)),
    };
    let shown_phases: Vec<String> = phases.iter().take(6).map(phase).collect();
    let further_phases = phases.len().saturating_sub(6);
    let further_note =
        if further_phases > 0 { format!(" and {further_phases} more") } else { String::new() };
    // The clock of a virtual machine may be wrong: use the start time by this system's clock.
    let begun =
        input.summary.target.as_ref().map_or(input.summary.created, |target| target.started);
    let mut lines = vec![format_instant(begun)];
    match (shown_phases.is_empty(), input.recording.is_some()) {
        (false, _) => lines.push(format!("phases: {}{further_note}", shown_phases.join(", "))),
        (true, false) => lines.push("no phase began".to_owned()),
        (true, true) => {}
    }
    lines
}

/// Whether it was measured as requested: each proof that fails, else the number of proofs that
/// hold.
fn validity_lines(input: &ReportInput<'_>) -> Option<Vec<String>> {
    let validity = input.summary.validity.as_ref()?;
    let word = match validity.verdict {
        ValidityWord::Valid => "yes",
        ValidityWord::Undecided => "unknown",
        ValidityWord::Invalid => "no: it was not measured as requested",
        ValidityWord::NotRecorded => {
            return Some(vec!["not recorded: the bundle has no evidence".to_owned()]);
        }
    };
    let (hold, open): (Vec<&Proof>, Vec<&Proof>) =
        validity.proofs.iter().partition(|proof| proof.outcome == ProofOutcome::Holds);
    let first = format!("{word} ({} of {} proofs hold)", hold.len(), validity.proofs.len());
    let message = |proof: &&Proof| {
        clip_text(&format!("{} of {}: {}", proof.proof.json_word(), proof.subject, proof.why), 300)
    };
    let further_proofs = open.len().saturating_sub(MAX_SENTENCES);
    let further_note = (further_proofs > 0).then(|| format!("and {further_proofs} more"));
    Some(
        [first]
            .into_iter()
            .chain(open.iter().take(MAX_SENTENCES).map(message))
            .chain(further_note)
            .collect(),
    )
}

fn format_ending(input: &ReportInput<'_>) -> String {
    match (&input.bundle.manifest.ending, input.bundle.completeness) {
        (Some(ending), Completeness::Whole) => {
            let gaps = crate::sentence::format_gaps(&input.summary.gaps);
            let gaps: String = gaps.iter().map(|gap| format!("; {gap}")).collect();
            let end = format_end_time(input.summary, ending.at);
            clip_text(&format!("{} {end}{gaps}", ending.outcome), 900)
        }
        _ => "cut off: the run has no recorded end; the page shows the last checkpoint".to_owned(),
    }
}

/// The end time. For a target, the time since its start by its own clock: the page shows the start
/// by this system's clock, and the two clocks must not be mixed.
fn format_end_time(summary: &Summary, at: jiff::Timestamp) -> String {
    let took = at.duration_since(summary.created);
    match (&summary.target, i64::try_from(took.as_nanos())) {
        (Some(_), Ok(took)) if took >= 0 => format!("after {}", duration_text(Nanos(took))),
        (Some(_), _) => "at a time before its begin, by its own clock".to_owned(),
        (None, _) => format!("at {}", format_instant(at)),
    }
}

fn key_figures(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Vec<KeyFigure> {
    let of_series = || match inputs {
        [only] => key_figures_of_answer(&known_answer(only.summary), inputs, content),
        _ => key_figures_of_series(&all_series(inputs, content), &content.timebase),
    };
    let mut key_figures = if content.lines.is_empty() { Vec::new() } else { of_series() };
    let recordings: Vec<_> =
        inputs.iter().filter_map(|input| Some(input.recording?.extent())).collect();
    if !recordings.is_empty() {
        let (events, lost) =
            recordings.iter().fold((0u64, 0u64), |(events, lost), (more, more_lost, _)| {
                (events.saturating_add(*more), lost.saturating_add(*more_lost))
            });
        let length: Nanos =
            recordings.iter().fold(Nanos::ZERO, |sum, (_, _, length)| sum + *length);
        let sub = format!("recorded in {}", duration_text(length));
        key_figures.push(KeyFigure {
            label: "Events",
            value: count_text(events),
            unit: String::new(),
            sub,
            class: "",
        });
        let class = if lost > 0 { "warn" } else { "good" };
        let sub = if lost > 0 { "marked in the timeline" } else { "the recording is complete" }
            .to_owned();
        key_figures.push(KeyFigure {
            label: "Events lost",
            value: count_text(lost),
            unit: String::new(),
            sub,
            class,
        });
    }
    if key_figures.is_empty() { of_series() } else { key_figures }
}

/// The deciding figure of a single bundle and the number of samples beyond its bound, before the
/// other key figures.
fn key_figures_of_answer(
    answer: &Answer,
    inputs: &[ReportInput<'_>],
    content: &PageSeries<'_>,
) -> Vec<KeyFigure> {
    let named_series = all_series(inputs, content);
    let mut other_figures = key_figures_of_series(&named_series, &content.timebase);
    let Some(figure) = &answer.figure.as_ref().filter(|figure| figure.is_time) else {
        other_figures.extend(deadline_figure(inputs));
        return other_figures;
    };
    let unit = content.timebase.format_unit("µs");
    let required = match (&figure.comparison, figure.bound) {
        (Some(comparison), Some(bound)) => {
            format!(" · required {comparison} {} {unit}", micros_f64(bound as f64))
        }
        _ => String::new(),
    };
    let is_beyond = figure.beyond.is_some_and(|beyond| beyond > 0);
    let mut key_figures = vec![KeyFigure {
        label: if figure.metric == "max" { "Worst latency" } else { "Latency required" },
        value: micros_f64(figure.value),
        unit,
        sub: format!(
            "{} of {}{required}",
            format_name(&figure.metric),
            format_name(&figure.series)
        ),
        class: if is_beyond { "warn" } else { "" },
    }];
    key_figures.extend(figure.beyond.map(|beyond| KeyFigure {
        label: "Longer than allowed",
        value: count_text(beyond),
        unit: String::new(),
        sub: format!("of {} samples", count_text(figure.samples)),
        class: if is_beyond { "warn" } else { "good" },
    }));
    key_figures.extend(deadline_figure(inputs));
    // Do not show one figure twice.
    other_figures.retain(|other| match other.label {
        "Worst latency" => figure.metric != "max",
        "Highest percentile" => other.value != key_figures[0].value,
        _ => true,
    });
    key_figures.append(&mut other_figures);
    key_figures
}

/// Cycles that exceeded the deadline of their thread, over all threads with a deadline.
fn deadline_figure(inputs: &[ReportInput<'_>]) -> Option<KeyFigure> {
    let phases = inputs.iter().flat_map(|input| &input.summary.phases);
    let (mut missed, mut of, mut threads) = (0.0, 0u64, 0u64);
    for phase in phases {
        for measure in &phase.measures {
            let figures = &measure.notes.figures;
            let Some(own) = figures.iter().find(|figure| figure.name == "deadline-missed") else {
                continue;
            };
            let is_response = |series: &&SeriesSummary| {
                series.measure == measure.name && series.parameters.contains_key(DEADLINE)
            };
            let cycles = phase.series.iter().find(is_response).map(|series| series.count);
            missed += own.value;
            of = of.saturating_add(own.count.or(cycles).unwrap_or_default());
            threads += 1;
        }
    }
    let sub = match of {
        0 => format!("of {}", count_with_noun(threads, "thread")),
        _ => {
            format!("of {} of {}", count_with_noun(of, "cycle"), count_with_noun(threads, "thread"))
        }
    };
    (threads > 0).then(|| KeyFigure {
        label: "Deadlines missed",
        value: count_text(missed.max(0.0) as u64),
        unit: String::new(),
        sub,
        class: if missed > 0.0 { "warn" } else { "good" },
    })
}

/// Considers only the most relevant threads: the period of a thread that waits for a user is no
/// latency.
fn key_figures_of_series(all: &[(String, &SeriesSummary)], timebase: &Timebase) -> Vec<KeyFigure> {
    let latencies = || all.iter().filter(|(_, of)| is_latency(&of.workload, &of.name));
    let highest_standing =
        latencies().filter(|(_, of)| of.count > 0).map(|(_, of)| thread_relevance(of)).max();
    let matters = |of: &SeriesSummary| {
        is_latency(&of.workload, &of.name)
            && highest_standing.is_none_or(|most| thread_relevance(of) == most)
    };
    let chosen: Vec<(String, &SeriesSummary)> =
        all.iter().filter(|(_, of)| matters(of)).cloned().collect();
    let worst =
        chosen.iter().filter_map(|(full, of)| Some((of.max?, full))).max_by_key(|(max, _)| *max);
    let micros = timebase.format_unit("µs");
    let mut key_figures = Vec::new();
    if let Some((max, full)) = worst {
        key_figures.push(KeyFigure {
            label: "Worst latency",
            value: micros_f64(max as f64),
            unit: micros.clone(),
            sub: full.clone(),
            class: "",
        });
    }
    if let Some((key, ns, full)) = highest_percentile(&chosen) {
        key_figures.push(KeyFigure {
            label: "Highest percentile",
            value: micros_f64(ns as f64),
            unit: micros.clone(),
            sub: format!("p{key}: {full}"),
            class: "",
        });
    }
    let samples = all.iter().map(|(_, of)| of.count).fold(0u64, u64::saturating_add);
    key_figures.push(KeyFigure {
        label: "Samples",
        value: count_text(samples),
        unit: String::new(),
        sub: format!("{} series", all.len()),
        class: "",
    });
    key_figures.push(loss_figure(all));
    key_figures
}

/// Missed periods and losses of all series that report them. The four series of a program's thread
/// count the same cycles: its responses represent all.
fn loss_figure(all: &[(String, &SeriesSummary)]) -> KeyFigure {
    let response = format!("/{}", SeriesKind::Response.as_str());
    let counts =
        |of: &SeriesSummary| of.workload != ATTACHED_WORKLOAD || of.name.ends_with(&response);
    let counted_series: Vec<&SeriesSummary> =
        all.iter().map(|(_, series)| *series).filter(|series| counts(series)).collect();
    let sum = |of: fn(&SeriesSummary) -> Option<u64>| {
        let known: Vec<u64> = counted_series.iter().filter_map(|series| of(series)).collect();
        (!known.is_empty() || counted_series.is_empty())
            .then(|| known.into_iter().fold(0u64, u64::saturating_add))
    };
    let (overruns, lost) = (sum(|of| of.overruns), sum(|of| of.lost));
    let unknown = counted_series.iter().filter(|of| of.lost.is_none()).count();
    let class = match (overruns, lost) {
        (Some(0), Some(0)) if unknown == 0 => "good",
        (Some(0) | None, Some(0) | None) => "",
        _ => "warn",
    };
    let mut sub = "missed periods · lost samples".to_owned();
    if unknown > 0 {
        sub += &format!("; unknown for {unknown} series");
    }
    let count_text = |n: Option<u64>| n.map_or("unknown".to_owned(), count_text);
    let value = if overruns.or(lost).is_none() {
        "unknown".into()
    } else {
        format!("{} · {}", count_text(overruns), count_text(lost))
    };
    KeyFigure { label: "Overruns · lost", value, unit: String::new(), sub, class }
}

/// The rarest percentile that every series with samples supports, and the series with its highest
/// value.
fn highest_percentile<'a>(
    all: &'a [(String, &SeriesSummary)],
) -> Option<(&'a str, i64, &'a String)> {
    let with_samples = || all.iter().filter(|(_, of)| of.count > 0);
    let rarest = |(_, of): &'a (String, &SeriesSummary)| {
        let numbered = |key: &'a String| Some((key.parse::<f64>().ok()?, key.as_str()));
        let numbers = of.percentiles.keys().filter_map(numbered);
        numbers.filter(|(p, _)| *p >= 99.0).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let rarest_of_each: Option<Vec<(f64, &str)>> = with_samples().map(rarest).collect();
    let (_, key) = rarest_of_each?.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let figure = |(full, of): &'a (String, &SeriesSummary)| Some((*of.percentiles.get(key)?, full));
    let highest = with_samples().filter_map(figure).max_by_key(|(ns, _)| *ns);
    highest.map(|(ns, full)| (key, ns, full))
}

/// Every series of every bundle with its name, including those without room on the page.
fn all_series<'a>(
    inputs: &'a [ReportInput<'_>],
    content: &PageSeries<'_>,
) -> Vec<(String, &'a SeriesSummary)> {
    let named: HashMap<*const SeriesSummary, &str> =
        content.lines.iter().map(|line| (std::ptr::from_ref(line.summary), &*line.full)).collect();
    let mut named_series = Vec::new();
    for (input, label) in inputs.iter().zip(&content.labels) {
        for phase in &input.summary.phases {
            for series in &phase.series {
                let known = named.get(&std::ptr::from_ref(series)).map(|name| (*name).to_owned());
                let full = || {
                    format!("{label}: {}/{}", format_name(&phase.name), format_name(&series.name))
                };
                named_series.push((known.unwrap_or_else(full), series));
            }
        }
    }
    named_series
}

/// The combined verdict of all bundles: the gravest.
fn build_banner<'a>(inputs: &'a [ReportInput<'_>], content: &PageSeries<'_>) -> Option<Banner> {
    let verdicts = || inputs.iter().map(|input| &input.summary.verdict);
    let has_requirements = verdicts().any(|verdict| verdict.word.is_some());
    let series = all_series(inputs, content);
    let stated = |(full, series): &(String, &'a SeriesSummary)| {
        let full = full.clone();
        series.requirements.iter().map(move |held| (full.clone(), held)).collect::<Vec<_>>()
    };
    let all_requirements: Vec<(String, &RequirementSummary)> =
        series.iter().flat_map(stated).collect();
    let reasons = verdicts().flat_map(Verdict::adverse_reasons).cloned().collect();
    let mut verdict = Verdict::from_reasons(reasons, has_requirements);
    let words = verdicts().filter_map(|verdict| verdict.word).chain(verdict.word);
    verdict.word = VerdictWord::gravest_verdict(words);
    let is_open = !has_requirements && verdict.to_exit() == Exit::Done;
    if is_open && (inputs.len() > 1 || content.lines.is_empty()) {
        return None;
    }
    let mut sentences = requirement_sentences(
        &all_requirements
            .iter()
            .filter(|(_, stated)| stated.verdict != VerdictWord::Met)
            .collect::<Vec<_>>(),
    );
    for (input, label) in inputs.iter().zip(&content.labels) {
        let of_bundle = beside_requirements(input.summary).map(|reason| {
            let text = clip_text(&of_reason(reason), 400);
            if inputs.len() > 1 { format!("{label}: {text}") } else { text }
        });
        sentences.extend(of_bundle);
    }
    let answer = match inputs {
        [only] => Some(known_answer(only.summary)),
        _ => None,
    };
    let further_sentences = sentences.len().saturating_sub(MAX_SENTENCES);
    let tone = tone_of(&verdict);
    Some(Banner {
        class: tone_class(tone),
        mark: match (verdict.word, tone) {
            (None | Some(VerdictWord::Met), tables::Tone::Good) => {
                verdict_words(VerdictWord::Met).0
            }
            _ if is_open => "",
            (None | Some(VerdictWord::Met), _) => "!",
            (Some(word), _) => verdict_words(word).0,
        },
        headline: match &answer {
            Some(answer) => answer.verdict.clone(),
            None => verdict_headline(&verdict, &all_requirements),
        },
        answer: answer.iter().flat_map(|answer| lines_of(answer, &content.timebase)).collect(),
        to_do: answer.map(|answer| answer.to_do).unwrap_or_default(),
        sentences: sentences.into_iter().take(MAX_SENTENCES).collect(),
        more: further_sentences,
    })
}

/// The lines beside the headline.
fn lines_of(answer: &Answer, timebase: &Timebase) -> Vec<(String, String)> {
    let unit = timebase.format_unit("µs");
    let time = |ns: f64| format!("{} {unit}", micros_f64(ns));
    let lines = answer::answer_lines(answer, tables::Tone::Plain, time).into_iter();
    lines
        .filter(|(label, ..)| !matches!(*label, "verdict" | "to do"))
        .map(|(label, _, text)| (capitalize_heading(label), text))
        .collect()
}

/// The verdict as a headline, with the numbers of requirements if there are several.
fn verdict_headline(verdict: &Verdict, all: &[(String, &RequirementSummary)]) -> String {
    let number = |word: VerdictWord| all.iter().filter(|(_, held)| held.verdict == word).count();
    let [met, not_met, undecided, invalid] =
        [VerdictWord::Met, VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Invalid]
            .map(number);
    let total = all.len();
    match verdict.word {
        None if verdict.to_exit() == Exit::Failed => "The run failed".to_owned(),
        None => "The evidence cannot be used".to_owned(),
        Some(VerdictWord::Met) if total == 1 => "The requirement is met".to_owned(),
        Some(VerdictWord::Met) if total == 0 => "What was required is met".to_owned(),
        Some(VerdictWord::Met) => format!("All {total} requirements are met"),
        Some(VerdictWord::NotMet) if not_met == 0 => "Not met".to_owned(),
        Some(VerdictWord::NotMet) if invalid > 0 => {
            format!(
                "{not_met} of {total} requirements not met, {invalid} not measured as asked \
                 (invalid)"
            )
        }
        Some(VerdictWord::NotMet) => format!("{not_met} of {total} requirements not met"),
        Some(VerdictWord::Invalid) if invalid == 0 => {
            "Invalid: it was not measured as requested".to_owned()
        }
        Some(VerdictWord::Invalid) => {
            format!("Invalid: {invalid} of {total} requirements were not measured as requested")
        }
        Some(VerdictWord::Undecided) if undecided == 0 => {
            "It cannot be decided whether every requirement is met".to_owned()
        }
        Some(VerdictWord::Undecided) => {
            format!("{undecided} of {total} requirements cannot be decided, {met} met")
        }
    }
}

/// A sentence for each requirement that is not met or undecided, with the series and their figures.
fn requirement_sentences(open: &[&(String, &RequirementSummary)]) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for (full, r) in open {
        let reason =
            r.reason.as_ref().map(|why| format!(" ({})", clip_text(why, 300))).unwrap_or_default();
        let kind =
            format!("{} {}{reason}", format_name(&r.requirement), verdict_words(r.verdict).1);
        let place = match r.figure {
            Some(_) => {
                format!("{full} ({})", Cell::from(requirements::measured_value(r)).text)
            }
            None => full.clone(),
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, places)) => places.push(place),
            None => kinds.push((kind, vec![place])),
        }
    }
    let sentence = |(kind, places): (String, Vec<String>)| {
        let further_places = places.len().saturating_sub(MAX_PLACES);
        let further_note =
            if further_places > 0 { format!(" and {further_places} more") } else { String::new() };
        format!("{kind}: {}{further_note}", places[..places.len().min(MAX_PLACES)].join(", "))
    };
    kinds.into_iter().map(sentence).collect()
}

/// One row for each bundle.
fn bundle_table(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Table {
    let stated = inputs.iter().any(|input| input.summary.verdict.word.is_some());
    let same_experiment =
        inputs.iter().all(|input| input.summary.experiment == inputs[0].summary.experiment);
    let mut columns = vec![
        Column::text("Bundle"),
        Column::text("Begun"),
        Column::text("Kernel"),
        Column::text("Preemption"),
        Column::text("Ended"),
        Column::figures("Samples"),
        Column::figures("Worst, µs"),
    ];
    if stated {
        columns.push(Column::text("Requirements"));
    }
    let row = |(place, input): (usize, &ReportInput<'_>)| {
        let of_bundle = || input.summary.phases.iter().flat_map(|phase| &phase.series);
        let environment = |path: &[&str]| {
            let known =
                input.environment.as_ref().and_then(|document| facts::text_at(document, path));
            known.map_or(Cell::missing_value("unknown"), |text| Cell::text(clip_text(text, 80)))
        };
        let mut label = Cell::text(&content.labels[place]);
        if !same_experiment && input.summary.experiment != input.label {
            label = label.sub(format_name(&input.summary.experiment));
        }
        let ended = match (&input.bundle.manifest.ending, input.bundle.completeness) {
            (Some(ending), Completeness::Whole) if ending.outcome == Outcome::Completed => {
                Cell::text("completed")
            }
            (Some(ending), Completeness::Whole) => {
                Cell::text(clip_text(&ending.outcome.to_string(), 160))
            }
            _ => Cell::default().with_badge("cut off", "warn"),
        };
        let samples = of_bundle().map(|series| series.count).fold(0u64, u64::saturating_add);
        let worst = of_bundle().filter_map(|series| series.max).max();
        let verdict_of = match input.summary.verdict.word {
            Some(word) => tables::Cell::from(word).into(),
            None => Cell::missing_value("none"),
        };
        let mut cells = vec![
            label,
            Cell::figure(
                format_instant(input.summary.created),
                input.summary.created.as_second() as f64,
            ),
            environment(&["kernel", "release"]),
            environment(&["kernel", "preemption", "model"]),
            ended,
            Cell::count(samples),
            tables::Cell::time_or(worst.map(|ns| ns as f64), "none").into(),
        ];
        cells.extend(stated.then_some(verdict_of));
        cells
    };
    let rows = inputs.iter().enumerate().map(row).collect();
    Table { caption: "The bundles in this report.".to_owned(), columns, rows, sortable: true }
}
