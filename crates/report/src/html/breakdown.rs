//! The breakdown of samples: the causes of each as a paragraph, a band and a picture, the culprits
//! of all of them, and remedies.

use super::picture::{Focus, ItemStyle, LaneItem, LaneKind, Material, Picture, PictureLane};
use super::recording::InWindows;
use super::table::{Cell, Column, Table};
use super::text::format_name;
use crate::format::{count_text, count_with_noun, micros_text, percent_text, span_text};
use crate::remedies::{self, RemedyEvidence, Rules};
use crate::sentence::explain::{
    cause_title, culprit_name, format_culprit, group_reasons, sample_paragraph, share_of_latency,
};
use crate::tables;
use punctual_core::{CauseKind, Finding, Names, Nanos, Tid};
use punctual_explain::answer::{collect_blames, first_of_each};
use punctual_explain::explain::{Cause, Explanation, Ranking, StartKind, rank_culprits};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::{Coverage, Interrupt, LaneWindows, Tracker};
use punctual_explain::{Explained, Explanations};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Samples shown individually.
const SHOWN_SAMPLES: usize = 20;
/// The number of them that are initially open.
const OPEN: usize = 2;
/// Parts of a band: the shortest ones beyond this number are omitted.
const BAND: usize = 300;
/// Rows in the table of one sample's reasons.
const REASONS: usize = 12;
/// Items of the finest picture.
const MAX_ITEMS: usize = 3_000;

/// The content of a page about explained samples.
#[derive(Clone, Debug)]
pub struct Breakdown {
    ranking: Ranking,
    culprits: Table,
    advice: Vec<RemedyText>,
    samples: Vec<BreakdownSample>,
    pictures: Vec<Picture>,
    findings: Vec<Finding>,
    not_shown: usize,
    /// The main cause of each sample, by phase, series and due time, in ns of CLOCK_MONOTONIC.
    causes: HashMap<(String, String), HashMap<i64, CauseKind>>,
}

#[derive(Clone, Debug, Serialize)]
struct BreakdownSample {
    title: String,
    /// The longest reason, shown while the sample is closed.
    mostly: String,
    paragraph: String,
    band: Vec<BandSegment>,
    reasons: Table,
    open: bool,
}

/// A segment of a band: position and length in per cent, colour number, and text.
#[derive(Clone, Debug, Serialize)]
struct BandSegment {
    x: f64,
    width: f64,
    look: u8,
    label_text: String,
}

/// A remedy.
#[derive(Clone, Debug, Serialize)]
struct RemedyText {
    about: String,
    text: String,
    /// Rules of check: id, message, fix.
    rules: Vec<(String, String, Option<String>)>,
}

impl Breakdown {
    /// The breakdown of the explained samples of a bundle, with the result of `punctual check` on
    /// that system; `None` without samples.
    pub fn from_explanations(
        all: &Explanations,
        check: Option<&serde_json::Value>,
    ) -> Option<Breakdown> {
        if all.samples.is_empty() {
            return None;
        }
        let names = &all.names;
        // The longest samples of all series first, and only the first of each incident.
        let mut latest = first_of_each(&all.samples);
        let ranking = rank_culprits(latest.iter().map(|one| &one.explanation), names, Nanos::ZERO);
        latest.sort_by_key(|one| std::cmp::Reverse(one.explanation.latency()));
        let shown_samples = &latest[..latest.len().min(SHOWN_SAMPLES)];
        let coverage = Coverage::from_recording(&all.recorded, names);
        Some(Breakdown {
            culprits: culprit_table(&ranking),
            advice: collect_advice(all, &ranking, &Rules::from_document(check)),
            samples: shown_samples
                .iter()
                .enumerate()
                .map(|(k, one)| describe_sample(one, names, k < OPEN))
                .collect(),
            pictures: shown_samples.iter().map(|one| draw_picture(one, names, &coverage)).collect(),
            findings: all.findings.clone(),
            not_shown: latest.len() - shown_samples.len(),
            ranking,
            causes: main_cause_by_sample(&all.samples),
        })
    }

    pub fn warnings(&self) -> &[Finding] {
        &self.findings
    }

    /// The main causes of the explained samples.
    pub(crate) fn main_causes(&self) -> impl Iterator<Item = CauseKind> {
        self.causes.values().flat_map(|of| of.values().copied())
    }

    /// The main cause of the sample that was due at this time, in ns of CLOCK_MONOTONIC; `None` if
    /// it is not explained.
    pub(crate) fn cause_of(&self, phase: &str, series: &str, due: i64) -> Option<CauseKind> {
        self.causes.get(&(phase.to_owned(), series.to_owned()))?.get(&due).copied()
    }

    /// The pictures, one for each shown sample, in their order.
    pub fn pictures(&self) -> &[Picture] {
        &self.pictures
    }
}

/// The cause with the longest total of its parts, for each sample.
fn main_cause_by_sample(
    samples: &[Explained],
) -> HashMap<(String, String), HashMap<i64, CauseKind>> {
    let mut causes: HashMap<_, HashMap<_, _>> = HashMap::new();
    for one in samples {
        let mut times: BTreeMap<CauseKind, Nanos> = BTreeMap::new();
        for part in &one.explanation.parts {
            *times.entry(part.cause.kind()).or_default() += part.duration();
        }
        if let Some((kind, _)) = times.into_iter().max_by_key(|(_, time)| *time) {
            let series = (one.phase.clone(), one.series.clone());
            causes.entry(series).or_default().insert(one.explanation.interval.due.ns(), kind);
        }
    }
    causes
}

/// A name, or empty if the cause needs none.
fn name_unless_empty(who: &str) -> String {
    if who.is_empty() { String::new() } else { format_name(who) }
}

/// The input of the templates.
#[derive(Serialize)]
pub(crate) struct BreakdownSection {
    /// The label of the bundle; empty if there is only one.
    label: String,
    /// `2,178 µs of 3 worst samples`.
    sum: String,
    culprits: Table,
    advice: Vec<RemedyText>,
    samples: Vec<BreakdownSample>,
    /// The index of its first picture among those of the page; the rest follow.
    picture: usize,
    /// The number of samples with a picture.
    pictures: usize,
    not_shown: String,
}

impl BreakdownSection {
    /// The section of a bundle; its pictures are `pictures` consecutive ones from index `picture`
    /// on.
    pub(crate) fn from_breakdown(
        breakdown: &Breakdown,
        label: String,
        picture: usize,
        pictures: usize,
    ) -> BreakdownSection {
        let Breakdown { ranking, culprits, advice, samples, not_shown, .. } = breakdown;
        let sum = format!(
            "{} µs of {}",
            micros_text(ranking.latency),
            count_with_noun(ranking.samples, "sample")
        );
        let not_shown = if *not_shown == 0 {
            String::new()
        } else {
            format!(
                "{} are in the table only.",
                count_with_noun(*not_shown as u64, "further sample")
            )
        };
        BreakdownSection {
            label,
            sum,
            culprits: culprits.clone(),
            advice: advice.clone(),
            samples: samples.clone(),
            picture,
            pictures: pictures.min(samples.len()),
            not_shown,
        }
    }
}

fn series_title(one: &Explained) -> String {
    if one.phase.is_empty() {
        format_name(&one.series)
    } else {
        format_name(&format!("{}/{}", one.phase, one.series))
    }
}

fn sample_heading(one: &Explained) -> String {
    let kind = if one.explanation.interval.kind == StartKind::Timer { "latency " } else { "" };
    format!("{kind}{}: {}", span_text(one.explanation.latency()), series_title(one))
}

fn describe_sample(one: &Explained, names: &Names, open: bool) -> BreakdownSample {
    let explanation = &one.explanation;
    let mut by_time = group_reasons(explanation);
    by_time.sort_by_key(|reason| std::cmp::Reverse(reason.time));
    let mostly = by_time.first().map_or(String::new(), |reason| {
        let who = format_culprit(reason.part.cause, reason.part.prio, names);
        let share = percent_text(share_of_latency(reason.time, explanation.latency()));
        format_name(&format!(
            "{share} {}{}{who}",
            cause_title(reason.part.cause),
            if who.is_empty() { "" } else { ": " }
        ))
    });
    let row = |reason: &crate::sentence::explain::PartsReason<'_>| {
        let share = share_of_latency(reason.time, explanation.latency());
        let evidence: usize = reason.part.evidence.len();
        vec![
            Cell {
                swatch: Some(style_of_culprit(reason.part.cause).number()),
                ..Cell::text(cause_title(reason.part.cause))
            },
            Cell::text(name_unless_empty(&format_culprit(
                reason.part.cause,
                reason.part.prio,
                names,
            ))),
            Cell {
                exact: Some(format!("{} ns", reason.time.ns())),
                sort: Some(reason.time.ns() as f64),
                ..Cell::text(micros_text(reason.time))
            },
            Cell { bar: Some(share), sort: Some(share), ..Cell::text(percent_text(share)) },
            Cell { sort: Some(reason.parts as f64), ..Cell::text(count_text(reason.parts)) },
            Cell { sort: Some(evidence as f64), ..Cell::text(count_text(evidence as u64)) },
        ]
    };
    let reasons = Table {
        caption: format!(
            "The parts of {} ns: they add up.",
            count_text(explanation.latency().ns().unsigned_abs())
        ),
        columns: vec![
            Column::text("Cause"),
            Column::text("Who"),
            Column::figures("µs"),
            Column::figures("Share"),
            Column::figures("Times"),
            Column::figures("Evidence (events)"),
        ],
        rows: by_time.iter().take(REASONS).map(row).collect(),
        sortable: false,
    };
    let paragraph = sample_paragraph(explanation, names, &one.events);
    BreakdownSample {
        title: sample_heading(one),
        mostly,
        paragraph,
        band: draw_band(explanation, names),
        reasons,
        open,
    }
}

/// The parts as segments of a band from 0 to 100; if there are too many, the longest.
fn draw_band(explanation: &Explanation, names: &Names) -> Vec<BandSegment> {
    let whole = explanation.latency().ns().max(1) as f64;
    let mut longest: Vec<usize> = (0..explanation.parts.len()).collect();
    longest.sort_by_key(|place| std::cmp::Reverse(explanation.parts[*place].duration()));
    longest.truncate(BAND);
    longest.sort_unstable();
    let segment = |place: usize| {
        let part = &explanation.parts[place];
        let who = format_culprit(part.cause, part.prio, names);
        let label_text = format!(
            "{}: {} µs{}{who}",
            cause_title(part.cause),
            micros_text(part.duration()),
            if who.is_empty() { "" } else { ", " }
        );
        let x = (part.from - explanation.interval.due).ns() as f64 / whole * 100.0;
        BandSegment {
            x: round_percent(x),
            width: round_percent(part.duration().ns() as f64 / whole * 100.0),
            look: style_of_culprit(part.cause).number(),
            label_text: format_name(&label_text),
        }
    };
    longest.into_iter().map(segment).collect()
}

fn round_percent(percent: f64) -> f64 {
    (percent * 1_000.0).round() / 1_000.0
}

/// The style of a cause in bands and pictures.
pub(crate) fn style_of_culprit(cause: Cause) -> ItemStyle {
    ItemStyle::Cause(match cause {
        Cause::Steal | Cause::Hardware => 0,
        Cause::TimerIrqDelay { .. } | Cause::CpuStall { .. } | Cause::TimerSlack => 1,
        Cause::Interrupt(Interrupt::Hard(_) | Interrupt::Vector(_)) => 2,
        Cause::Interrupt(Interrupt::Soft(_)) => 3,
        Cause::IdleExit { .. } => 4,
        Cause::Wakeup { .. } | Cause::Migration { .. } | Cause::Switch => 5,
        Cause::NonPreemptible { .. } => 6,
        Cause::Preempted { .. }
        | Cause::Throttled { .. }
        | Cause::Runqueue { .. }
        | Cause::TaskNoise { .. } => 7,
        Cause::Lock { .. } => 8,
        Cause::Inversion { .. } => 12,
        Cause::Io { .. } | Cause::PageFault | Cause::Reclaim => 9,
        Cause::Waiting { .. }
        | Cause::OwnSleep { .. }
        | Cause::Timeout { .. }
        | Cause::Stopped { .. }
        | Cause::OwnExecution { .. }
        | Cause::Observer { .. } => 10,
        Cause::Unknown => 11,
    })
}

/// The timeline around a sample, with its parts above it.
fn draw_picture(one: &Explained, names: &Names, coverage: &Coverage) -> Picture {
    let late = one.explanation.interval;
    let labels = if late.kind == StartKind::Timer { ("due", "woke") } else { ("begin", "end") };
    let focus = Focus {
        title: sample_heading(one),
        tid: Some(late.tid).filter(|tid| *tid != Tid::IDLE),
        from: (late.due, labels.0),
        to: (late.woke.max(late.due), labels.1),
    };
    let (from, to) = focus.window();
    // The window holds some time before the sample and nothing after it.
    let from = one.events.first().map_or(late.due, |first| from.max(first.at)).min(late.due);
    let to = one.events.last().map_or(late.woke, |last| to.min(last.at)).max(focus.to.0);
    let coverage = Coverage {
        began: from.min(one.events.first().map_or(from, |first| first.at)),
        ended: to,
        ..coverage.clone()
    };
    let gaps = Gaps::from_events(one.events.iter().copied());
    let mut tracker = Tracker::new(coverage, gaps, LaneWindows::new([(from, to)]));
    let mut marks = InWindows::new(names, &[(from, to)]);
    for event in &one.events {
        tracker.push(event);
        marks.push(event);
    }
    let lanes = tracker.finish().0.finish().into_iter().next().unwrap_or_default();
    let (marks, left_out) = marks.finish().into_iter().next().unwrap_or_default();
    let material = Material { lanes: &lanes, marks: &marks, names, series: &[], left_out };
    let mut picture = Picture::from_material(&focus, &material, MAX_ITEMS);
    let mut items = Vec::new();
    for part in &one.explanation.parts {
        let word = picture.intern_word(cause_title(part.cause));
        let who = format_culprit(part.cause, part.prio, names);
        let mut details = Vec::new();
        if !who.is_empty() {
            details.push(("who", format_name(&who)));
        }
        details.extend(part.cpu.map(|cpu| ("CPU", cpu.to_string())));
        details.push(("evidence (events)", part.evidence.len().to_string()));
        let (from, length) = ((part.from - late.due).ns(), part.duration().ns());
        items.push(LaneItem {
            from,
            length,
            row: 0,
            look: style_of_culprit(part.cause),
            word,
            value: None,
            details,
        });
    }
    picture.put_first(PictureLane::new("breakdown", "causes", LaneKind::Spans, items), MAX_ITEMS);
    picture
}

fn culprit_table(ranking: &Ranking) -> Table {
    let heading = format!("Culprits of {}, by time", count_with_noun(ranking.samples, "sample"));
    let mut table = Table::from(tables::culprits::culprit_table(heading, ranking));
    for (row, culprit) in table.rows.iter_mut().zip(&ranking.culprits) {
        row[0].swatch = Some(style_of_culprit(culprit.cause).number());
    }
    table
}

fn collect_advice(all: &Explanations, ranking: &Ranking, rules: &Rules) -> Vec<RemedyText> {
    let causes = collect_blames(ranking, &first_of_each(&all.samples), None, &all.names);
    let one = |advice: remedies::Advice| {
        let culprit = &ranking.culprits[advice.place];
        let who = culprit_name(culprit);
        let about = format!(
            "{}{}{who}",
            cause_title(culprit.cause),
            if who.is_empty() { "" } else { ": " }
        );
        let rule = |rule: remedies::Matching| {
            (
                rule.id.to_owned(),
                rule.message.map(|sentences| format_name(&sentences)).unwrap_or_default(),
                rule.fix.map(|fix| format_name(&fix)),
            )
        };
        let rules = advice.rules.into_iter().map(rule).collect();
        RemedyText { about: format_name(&about), text: advice.text, rules }
    };
    remedies::find_remedies(&causes, &RemedyEvidence::from_explanations(all, rules))
        .into_iter()
        .map(one)
        .collect()
}
