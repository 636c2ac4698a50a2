//! The verdict of each requirement; one that is met everywhere is shown once, with the series that
//! came nearest to its bound.

use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_core::{Comparison, Requirement};

const NAME_WIDTH: usize = 40;
/// At most this many equal ones are listed; the rest is counted.
const LISTED: usize = 8;

/// One requirement of one series.
struct Stated<'a> {
    series: String,
    result: &'a RequirementSummary,
}

pub fn write(out: &mut Page, summary: &Summary) {
    let series = summary
        .phases
        .iter()
        .flat_map(|phase| phase.series.iter().map(move |series| (phase, series)));
    let all: Vec<Stated> = series
        .flat_map(|(phase, series)| {
            let name = format!("{}/{}", phase.name, series.name);
            series.requirements.iter().map(move |result| Stated { series: name.clone(), result })
        })
        .collect();
    if all.is_empty() {
        return;
    }
    out.heading("requirements");
    let (mut rows, mut reasons) = (Vec::new(), Vec::new());
    for verdict in
        [VerdictWord::Invalid, VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Met]
    {
        for group in groups(all.iter().filter(|stated| stated.result.verdict == verdict)) {
            rows.extend(group_rows(out, &group, verdict));
            reasons.extend(reason(out, &group));
        }
    }
    let columns = ["", "requirement", "series", "measured"].map(|heading| Column::left(heading, 0));
    table::write(out, columns.into(), rows);
    reasons.iter().for_each(|text| out.paragraph("  ", "    ", Tone::Faint, text));
}

/// Those that state the same, in the order of their first.
fn groups<'s, 'a: 's>(all: impl Iterator<Item = &'s Stated<'a>>) -> Vec<Vec<&'s Stated<'a>>> {
    let mut groups: Vec<Vec<&Stated>> = Vec::new();
    for stated in all {
        match groups
            .iter_mut()
            .find(|group| group[0].result.requirement == stated.result.requirement)
        {
            Some(group) => group.push(stated),
            None => groups.push(vec![stated]),
        }
    }
    groups
}

/// What holds is one row; what does not, or is open, names its series.
fn group_rows(out: &Page, group: &[&Stated], verdict: VerdictWord) -> Vec<Vec<Cell>> {
    let first = group[0];
    if verdict == VerdictWord::Met && group.len() > 1 {
        let nearest = nearest(group);
        let name = format::clipped(&nearest.series, NAME_WIDTH, out.options.ascii);
        let series = format!("all {} series", group.len());
        let figure = format!("{} on {name}", figure(out, nearest.result));
        return vec![row(out, first.result, series, figure)];
    }
    let mut rows: Vec<Vec<Cell>> = group
        .iter()
        .take(LISTED)
        .map(|stated| {
            let name = format::clipped(&stated.series, NAME_WIDTH, out.options.ascii);
            row(out, stated.result, name, figure(out, stated.result))
        })
        .collect();
    if group.len() > LISTED {
        let rest = format!("and {} more series", group.len() - LISTED);
        rows.push(row(out, first.result, rest, String::new()));
    }
    rows
}

/// The one whose figure is nearest to the bound: the largest where less is wanted, else the
/// smallest.
fn nearest<'s, 'a>(group: &[&'s Stated<'a>]) -> &'s Stated<'a> {
    let comparison = group[0].result.requirement.parse::<Requirement>().map(|r| r.comparison);
    let less = !matches!(comparison, Ok(Comparison::Greater | Comparison::GreaterOrEqual));
    let figure =
        |stated: &Stated| stated.result.figure.unwrap_or_default() * if less { 1.0 } else { -1.0 };
    group.iter().max_by(|a, b| figure(a).total_cmp(&figure(b))).copied().unwrap_or(group[0])
}

fn row(out: &Page, result: &RequirementSummary, series: String, figure: String) -> Vec<Cell> {
    let (tone, word) = match result.verdict {
        VerdictWord::Met => (Tone::Good, out.either("✓ met", "met")),
        VerdictWord::NotMet => (Tone::Bad, out.either("✗ NOT MET", "NOT MET")),
        VerdictWord::Undecided => (Tone::Uncertain, out.either("? undecided", "undecided")),
        VerdictWord::Invalid => (Tone::Bad, out.either("! INVALID", "INVALID")),
    };
    let requirement = format::clipped(&result.requirement, NAME_WIDTH, out.options.ascii);
    vec![
        Cell(word.to_owned(), tone),
        Cell::plain(requirement),
        Cell::plain(series),
        Cell::plain(figure),
    ]
}

/// Why the first of a group came out so, where that wants words.
fn reason(out: &Page, group: &[&Stated]) -> Option<String> {
    let first = group[0];
    let reason = first.result.reason.as_ref()?;
    let requirement = format::clipped(&first.result.requirement, NAME_WIDTH, out.options.ascii);
    let name = format::clipped(&first.series, NAME_WIDTH, out.options.ascii);
    let more =
        if group.len() > 1 { format!(" (and {} more)", group.len() - 1) } else { String::new() };
    Some(format!("{requirement} on {name}{more}: {}", format::plain(reason)))
}

fn figure(out: &Page, result: &RequirementSummary) -> String {
    let Some(figure) = result.figure else { return String::new() };
    match result.requirement.parse::<Requirement>() {
        Ok(r) if r.metric.is_time() => format!("{} {}", out.latency(figure), out.unit()),
        _ => format::count(figure.max(0.0) as u64),
    }
}
