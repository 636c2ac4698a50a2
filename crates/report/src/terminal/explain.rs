//! Explained samples: one paragraph each, the parts as a bar with its legend, the culprits of all,
//! and remedies.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format::{clipped, count, counted, percent, plain};
use crate::remedies::{self, Matching, RemedyEvidence, Rules};
use crate::sentence::explain::{
    PartsReason, blamed, paragraph, reasons, share, title, wake_ups, who,
};
use crate::tables::{Cell, Column, Table, coincidence, culprits};
use punctual_core::{Names, Nanos};
use punctual_explain::answer::{blames, first_of_each, incidents_of};
use punctual_explain::explain::{Explanation, Ranking, rank};
use punctual_explain::{Explained, Explanations};

/// The longest parts of one sample in the legend of its bar.
const LEGEND: usize = 8;
/// Names are cut at this many columns.
const NAME: usize = 60;

/// The samples, the culprits of all of them, and remedies. The first `shown` samples of each series
/// are shown individually; the ranking covers all.
pub fn explanations(
    all: &Explanations,
    shown: usize,
    rules: &Rules,
    options: &ShowOptions,
) -> String {
    let mut out = TextPage::new(options);
    for series in all.samples.chunk_by(|one, other| of(one) == of(other)) {
        let incidents = incidents(series);
        let noun = if incidents.len() < series.len() { "incident" } else { "sample" };
        for (k, incident) in incidents.iter().take(shown).enumerate() {
            let heading =
                format!("{} of {}", count(k as u64 + 1), counted(incidents.len() as u64, noun));
            sample(&mut out, incident[0], &heading, &all.names);
            follow(&mut out, &incident[1..]);
        }
        if let Some(more) = incidents.len().checked_sub(shown).filter(|more| *more > 0) {
            out.gap();
            let further = counted(more as u64, &format!("further {noun}"));
            let text = format!("{further} not shown: use --worst {}.", series.len());
            out.paragraph("  ", "  ", Tone::Faint, &text);
        }
    }
    if all.samples.is_empty() {
        out.paragraph("", "", Tone::Plain, "No sample or interval matches.");
    }
    let firsts = first_of_each(&all.samples);
    let ranking = rank(firsts.iter().map(|one| &one.explanation), &all.names, Nanos::ZERO);
    write_culprits(&mut out, &ranking);
    for table in coincidence::tables(all.coincidences.as_deref()) {
        table::section(&mut out, &table);
    }
    advice(&mut out, all, &ranking, rules);
    if !all.findings.is_empty() {
        super::findings::write(&mut out, &all.findings);
    }
    out.finish()
}

/// The incidents of a series, first the one with the longest latency; the samples of each in time
/// order.
fn incidents(series: &[Explained]) -> Vec<Vec<&Explained>> {
    let samples: Vec<&Explained> = series.iter().collect();
    let groups = incidents_of(&samples);
    if groups.len() == samples.len() {
        return samples.into_iter().map(|one| vec![one]).collect();
    }
    let mut all: Vec<Vec<&Explained>> =
        groups.iter().map(|group| group.iter().map(|place| samples[*place]).collect()).collect();
    all.sort_by_key(|group| std::cmp::Reverse(longest(group)));
    all
}

fn longest(group: &[&Explained]) -> Nanos {
    group.iter().map(|one| one.explanation.latency()).max().unwrap_or_default()
}

/// The late samples that follow from the one above.
fn follow(out: &mut TextPage, further: &[&Explained]) {
    if further.is_empty() {
        return;
    }
    let longest = out.latency(longest(further).ns() as f64);
    let text = format!(
        "{} that {} from it: released before it, or one of them, had ended; the longest took \
         {longest} {}.",
        counted(further.len() as u64, "late sample"),
        if further.len() == 1 { "follows" } else { "follow" },
        out.unit()
    );
    out.paragraph("  ", "  ", Tone::Faint, &text);
}

/// The phase and series of a sample.
fn of(sample: &Explained) -> (&str, &str) {
    (&sample.phase, &sample.series)
}

fn sample(out: &mut TextPage, shown: &Explained, number: &str, names: &Names) {
    let name = if shown.phase.is_empty() {
        shown.series.clone()
    } else {
        format!("{}/{}", shown.phase, shown.series)
    };
    let name = clipped(&name, NAME, out.options.ascii);
    out.heading(&format!("{name}: {number}"));
    for line in super::paint::wrap(
        &paragraph(&shown.explanation, names, &shown.events),
        out.options.width.saturating_sub(2).max(20),
    ) {
        out.line(&format!("  {line}"));
    }
    let mut all = reasons(&shown.explanation);
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|reason| std::cmp::Reverse(reason.time));
    let bar = bar(out, &shown.explanation, &all);
    out.line(&format!("  {bar}"));
    legend(out, &shown.explanation, &all, names);
    let chain = wake_ups(&shown.explanation, names, &shown.events);
    if !chain.is_empty() {
        out.gap();
        out.line("  chain of wake-ups (µs since the sample was due):");
    }
    for (k, step) in chain.iter().enumerate() {
        let first = format!("  {} ", k + 1);
        out.paragraph(&first, "    ", Tone::Plain, step);
    }
}

/// The letter of the reason at this rank by time: letters replace colours.
fn letter(rank: usize) -> char {
    if rank < LEGEND { (b'A' + rank as u8) as char } else { '.' }
}

fn tone(rank: usize) -> Tone {
    const BANDS: [u8; 6] = [1, 4, 3, 5, 6, 2];
    if rank < LEGEND { Tone::Band(BANDS[rank % BANDS.len()]) } else { Tone::Faint }
}

/// The time from due to woke in order; each column shows the cause at its middle.
fn bar(out: &TextPage, explanation: &Explanation, ranked: &[PartsReason<'_>]) -> String {
    let columns = out.options.width.saturating_sub(6).clamp(10, 100);
    let (due, latency) = (explanation.interval.due, explanation.latency().ns());
    let mut text = String::from("|");
    let mut run: Option<(usize, String)> = None;
    for column in 0..columns {
        let at = due
            + Nanos(
                (i128::from(latency) * (2 * column as i128 + 1) / (2 * columns as i128)) as i64,
            );
        let place = explanation.parts.partition_point(|part| part.to <= at);
        let part = explanation.parts.get(place);
        let is = |reason: &PartsReason<'_>| {
            part.is_some_and(|part| (reason.part.cause, reason.part.cpu) == (part.cause, part.cpu))
        };
        let rank = ranked.iter().position(is).unwrap_or(LEGEND);
        match &mut run {
            Some((of, letters)) if *of == rank => letters.push(letter(rank)),
            _ => {
                text += &run
                    .take()
                    .map_or(String::new(), |(of, letters)| out.paint(tone(of), &letters));
                run = Some((rank, letter(rank).to_string()));
            }
        }
    }
    text += &run.map_or(String::new(), |(of, letters)| out.paint(tone(of), &letters));
    text + "|"
}

fn legend(
    out: &mut TextPage,
    explanation: &Explanation,
    ranked: &[PartsReason<'_>],
    names: &Names,
) {
    let latency = explanation.latency();
    let columns = vec![
        Column::text("", 0),
        Column::figures(out.unit(), 0),
        Column::figures("share", 1),
        Column::text("cause", 0),
        // The culprit is the answer: shares are hidden first, then names are cut.
        Column::text("who", 0).at_most(NAME).shrinking(),
    ];
    let row = |(rank, reason): (usize, &PartsReason<'_>)| {
        vec![
            Cell::text(letter(rank).to_string()).tone(tone(rank)),
            Cell::time(reason.time.ns()),
            Cell::share(share(reason.time, latency)),
            Cell::text(title(reason.part.cause)),
            Cell::text(who(reason.part.cause, reason.part.prio, names)),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = ranked.iter().take(LEGEND).enumerate().map(row).collect();
    let rest = ranked.iter().skip(LEGEND).fold(Nanos::ZERO, |sum, reason| sum + reason.time);
    if let Some(more) = ranked.len().checked_sub(LEGEND).filter(|more| *more > 0) {
        rows.push(vec![
            Cell::text(".").tone(Tone::Faint),
            Cell::time(rest.ns()),
            Cell::share(share(rest, latency)),
            Cell::text(format!("{} more", count(more as u64))),
            Cell::default(),
        ]);
    }
    table::body(out, &Table::new("causes", columns).rows(rows));
}

fn write_culprits(out: &mut TextPage, ranking: &Ranking) {
    if ranking.culprits.is_empty() {
        return;
    }
    let late = counted(ranking.samples, "sample");
    let sum = format!("{} {}", out.latency(ranking.latency.ns() as f64), out.unit());
    let table = culprits::table(format!("Culprits: {sum} in {late}"), ranking);
    table::section(out, &table);
}

fn advice(out: &mut TextPage, all: &Explanations, ranking: &Ranking, rules: &Rules) {
    let firsts = first_of_each(&all.samples);
    let causes = blames(ranking, &firsts, None, &all.names);
    let given = remedies::of(&causes, &RemedyEvidence::of(all, rules));
    if given.is_empty() {
        return;
    }
    out.heading("What to do");
    let dot = out.either("  · ", "  - ");
    for advice in given {
        let culprit = &ranking.culprits[advice.place];
        let who = clipped(&blamed(culprit), NAME / 2, out.options.ascii);
        let who = if who.is_empty() { String::new() } else { format!(" ({who})") };
        let text =
            format!("{}{who}, {}: {}", title(culprit.cause), percent(culprit.share), advice.text);
        out.paragraph(dot, "    ", Tone::Plain, &text);
        advice.rules.iter().for_each(|rule| matching(out, rule));
    }
}

fn matching(out: &mut TextPage, rule: &Matching) {
    let text = match (&rule.message, &rule.fix) {
        (Some(message), Some(fix)) => {
            format!("check {}: {}; {}", rule.id, plain(message), plain(fix))
        }
        (Some(message), None) if rule.is_well => {
            format!("check {}: ok: {}", rule.id, plain(message))
        }
        (Some(message), None) => format!("check {}: {}", rule.id, plain(message)),
        (None, _) => format!("see `punctual check --explain {}`", rule.id),
    };
    let tone = if rule.fix.is_some() { Tone::Strong } else { Tone::Faint };
    out.paragraph("    ", "      ", tone, &text);
}

#[cfg(test)]
mod tests;
