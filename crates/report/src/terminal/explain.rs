//! Explained samples: one paragraph each, the parts as a bar with its legend, the culprits of all,
//! and remedies.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format::{clip_name, count_text, count_with_noun, escape_unsafe, percent_text};
use crate::remedies::{self, Matching, RemedyEvidence, Rules};
use crate::sentence::explain::{
    PartsReason, cause_title, culprit_name, format_culprit, group_reasons, sample_paragraph,
    share_of_latency, wake_ups,
};
use crate::tables::{Cell, Column, Table, coincidence, culprits};
use punctual_core::{Names, Nanos};
use punctual_explain::answer::{collect_blames, first_of_each, incidents_of};
use punctual_explain::explain::{Explanation, Ranking, rank_culprits};
use punctual_explain::{Explained, Explanations};

/// The longest parts of one sample in the legend of its bar.
const LEGEND: usize = 8;
/// Names are cut at this many columns.
const NAME: usize = 60;

/// The samples, the culprits of all of them, and remedies. The first `shown` samples of each series
/// are shown individually; the ranking covers all.
pub fn show_explanations(
    all: &Explanations,
    shown: usize,
    rules: &Rules,
    options: &ShowOptions,
) -> String {
    let mut out = TextPage::new(options);
    for series in all.samples.chunk_by(|one, other| series_of(one) == series_of(other)) {
        let incidents = group_incidents(series);
        let noun = if incidents.len() < series.len() { "incident" } else { "sample" };
        for (k, incident) in incidents.iter().take(shown).enumerate() {
            let heading = format!(
                "{} of {}",
                count_text(k as u64 + 1),
                count_with_noun(incidents.len() as u64, noun)
            );
            write_sample(&mut out, incident[0], &heading, &all.names);
            write_following(&mut out, &incident[1..]);
        }
        if let Some(more) = incidents.len().checked_sub(shown).filter(|more| *more > 0) {
            out.push_gap();
            let further = count_with_noun(more as u64, &format!("further {noun}"));
            let text = format!("{further} not shown: use --worst {}.", series.len());
            out.push_paragraph("  ", "  ", Tone::Faint, &text);
        }
    }
    if all.samples.is_empty() {
        out.push_paragraph("", "", Tone::Plain, "No sample or interval matches.");
    }
    let firsts = first_of_each(&all.samples);
    let ranking = rank_culprits(firsts.iter().map(|one| &one.explanation), &all.names, Nanos::ZERO);
    write_culprits(&mut out, &ranking);
    for table in coincidence::coincidence_tables(all.coincidences.as_deref()) {
        table::write_section(&mut out, &table);
    }
    write_advice(&mut out, all, &ranking, rules);
    if !all.findings.is_empty() {
        super::findings::write(&mut out, &all.findings);
    }
    out.finish()
}

/// The incidents of a series, first the one with the longest latency; the samples of each in time
/// order.
fn group_incidents(series: &[Explained]) -> Vec<Vec<&Explained>> {
    let samples: Vec<&Explained> = series.iter().collect();
    let groups = incidents_of(&samples);
    if groups.len() == samples.len() {
        return samples.into_iter().map(|one| vec![one]).collect();
    }
    let mut all_incidents: Vec<Vec<&Explained>> =
        groups.iter().map(|group| group.iter().map(|place| samples[*place]).collect()).collect();
    all_incidents.sort_by_key(|group| std::cmp::Reverse(longest_latency(group)));
    all_incidents
}

fn longest_latency(group: &[&Explained]) -> Nanos {
    group.iter().map(|one| one.explanation.latency()).max().unwrap_or_default()
}

/// The late samples that follow from the one above.
fn write_following(out: &mut TextPage, further: &[&Explained]) {
    if further.is_empty() {
        return;
    }
    let longest = out.format_latency(longest_latency(further).ns() as f64);
    let text = format!(
        "{} that {} from it: released before it, or one of them, had ended; the longest took \
         {longest} {}.",
        count_with_noun(further.len() as u64, "late sample"),
        if further.len() == 1 { "follows" } else { "follow" },
        out.unit_name()
    );
    out.push_paragraph("  ", "  ", Tone::Faint, &text);
}

/// The phase and series of a sample.
fn series_of(sample: &Explained) -> (&str, &str) {
    (&sample.phase, &sample.series)
}

fn write_sample(out: &mut TextPage, shown: &Explained, number: &str, names: &Names) {
    let name = if shown.phase.is_empty() {
        shown.series.clone()
    } else {
        format!("{}/{}", shown.phase, shown.series)
    };
    let name = clip_name(&name, NAME, out.options.ascii);
    out.push_heading(&format!("{name}: {number}"));
    for line in super::paint::wrap_text(
        &sample_paragraph(&shown.explanation, names, &shown.events),
        out.options.width.saturating_sub(2).max(20),
    ) {
        out.push_line(&format!("  {line}"));
    }
    let mut ranked_reasons = group_reasons(&shown.explanation);
    if ranked_reasons.is_empty() {
        return;
    }
    ranked_reasons.sort_by_key(|reason| std::cmp::Reverse(reason.time));
    let bar = draw_bar(out, &shown.explanation, &ranked_reasons);
    out.push_line(&format!("  {bar}"));
    write_legend(out, &shown.explanation, &ranked_reasons, names);
    let chain = wake_ups(&shown.explanation, names, &shown.events);
    if !chain.is_empty() {
        out.push_gap();
        out.push_line("  chain of wake-ups (µs since the sample was due):");
    }
    for (k, step) in chain.iter().enumerate() {
        let first = format!("  {} ", k + 1);
        out.push_paragraph(&first, "    ", Tone::Plain, step);
    }
}

/// The letter of the reason at this rank by time: letters replace colours.
fn rank_letter(rank: usize) -> char {
    if rank < LEGEND { (b'A' + rank as u8) as char } else { '.' }
}

fn rank_tone(rank: usize) -> Tone {
    const BANDS: [u8; 6] = [1, 4, 3, 5, 6, 2];
    if rank < LEGEND { Tone::Band(BANDS[rank % BANDS.len()]) } else { Tone::Faint }
}

/// The time from due to woke in order; each column shows the cause at its middle.
fn draw_bar(out: &TextPage, explanation: &Explanation, ranked: &[PartsReason<'_>]) -> String {
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
            Some((of, letters)) if *of == rank => letters.push(rank_letter(rank)),
            _ => {
                text += &run
                    .take()
                    .map_or(String::new(), |(of, letters)| out.paint(rank_tone(of), &letters));
                run = Some((rank, rank_letter(rank).to_string()));
            }
        }
    }
    text += &run.map_or(String::new(), |(of, letters)| out.paint(rank_tone(of), &letters));
    text + "|"
}

fn write_legend(
    out: &mut TextPage,
    explanation: &Explanation,
    ranked: &[PartsReason<'_>],
    names: &Names,
) {
    let latency = explanation.latency();
    let columns = vec![
        Column::text("", 0),
        Column::figures(out.unit_name(), 0),
        Column::figures("share", 1),
        Column::text("cause", 0),
        // The culprit is the answer: shares are hidden first, then names are cut.
        Column::text("who", 0).at_most(NAME).with_shrinking(),
    ];
    let row = |(rank, reason): (usize, &PartsReason<'_>)| {
        vec![
            Cell::text(rank_letter(rank).to_string()).with_tone(rank_tone(rank)),
            Cell::time(reason.time.ns()),
            Cell::share(share_of_latency(reason.time, latency)),
            Cell::text(cause_title(reason.part.cause)),
            Cell::text(format_culprit(reason.part.cause, reason.part.prio, names)),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = ranked.iter().take(LEGEND).enumerate().map(row).collect();
    let rest = ranked.iter().skip(LEGEND).fold(Nanos::ZERO, |sum, reason| sum + reason.time);
    if let Some(more) = ranked.len().checked_sub(LEGEND).filter(|more| *more > 0) {
        rows.push(vec![
            Cell::text(".").with_tone(Tone::Faint),
            Cell::time(rest.ns()),
            Cell::share(share_of_latency(rest, latency)),
            Cell::text(format!("{} more", count_text(more as u64))),
            Cell::default(),
        ]);
    }
    table::write_body(out, &Table::new("causes", columns).with_rows(rows));
}

fn write_culprits(out: &mut TextPage, ranking: &Ranking) {
    if ranking.culprits.is_empty() {
        return;
    }
    let late = count_with_noun(ranking.samples, "sample");
    let sum = format!("{} {}", out.format_latency(ranking.latency.ns() as f64), out.unit_name());
    let table = culprits::culprit_table(format!("Culprits: {sum} in {late}"), ranking);
    table::write_section(out, &table);
}

fn write_advice(out: &mut TextPage, all: &Explanations, ranking: &Ranking, rules: &Rules) {
    let firsts = first_of_each(&all.samples);
    let causes = collect_blames(ranking, &firsts, None, &all.names);
    let given_advice =
        remedies::find_remedies(&causes, &RemedyEvidence::from_explanations(all, rules));
    if given_advice.is_empty() {
        return;
    }
    out.push_heading("What to do");
    let dot = out.choose_spelling("  · ", "  - ");
    for advice in given_advice {
        let culprit = &ranking.culprits[advice.place];
        let who = clip_name(&culprit_name(culprit), NAME / 2, out.options.ascii);
        let who = if who.is_empty() { String::new() } else { format!(" ({who})") };
        let text = format!(
            "{}{who}, {}: {}",
            cause_title(culprit.cause),
            percent_text(culprit.share),
            advice.text
        );
        out.push_paragraph(dot, "    ", Tone::Plain, &text);
        advice.rules.iter().for_each(|rule| write_rule(out, rule));
    }
}

fn write_rule(out: &mut TextPage, rule: &Matching) {
    let text = match (&rule.message, &rule.fix) {
        (Some(message), Some(fix)) => {
            format!("check {}: {}; {}", rule.id, escape_unsafe(message), escape_unsafe(fix))
        }
        (Some(message), None) if rule.is_well => {
            format!("check {}: ok: {}", rule.id, escape_unsafe(message))
        }
        (Some(message), None) => format!("check {}: {}", rule.id, escape_unsafe(message)),
        (None, _) => format!("see `punctual check --explain {}`", rule.id),
    };
    let tone = if rule.fix.is_some() { Tone::Strong } else { Tone::Faint };
    out.push_paragraph("    ", "      ", tone, &text);
}

#[cfg(test)]
mod tests;
