//! The verdict on each requirement.

use super::figures::named;
use super::{Cell, Column, Face, Table, Tone, Value};
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_core::{BoundComparison, Requirement};

const NAME: usize = 40;
/// At most this many equal ones are listed in a group; the rest are counted.
const LISTED_REQUIREMENTS: usize = 8;

/// One requirement on one series.
pub struct RequirementRow<'a> {
    pub series: String,
    pub result: &'a RequirementSummary,
}

/// Every requirement on every series, open ones first.
pub fn each(mut all: Vec<RequirementRow<'_>>) -> Table {
    all.sort_by_key(|stated| std::cmp::Reverse(stated.result.verdict.gravity()));
    let rows = all.iter().map(|stated| row(stated.result, &stated.series));
    Table::new("stated requirements", columns()).rows(rows).sortable().shown(40, 300)
}

/// Every requirement of a run, by groups.
pub(crate) fn of(summary: &Summary) -> Table {
    let all = named(summary).flat_map(|(name, series)| {
        let stated = move |result| RequirementRow { series: name.clone(), result };
        series.requirements.iter().map(stated)
    });
    grouped(&all.collect::<Vec<RequirementRow<'_>>>())
}

/// Open requirements first; one that is met everywhere is one row, with the series closest to its
/// bound.
fn grouped(all: &[RequirementRow<'_>]) -> Table {
    let mut table = Table::new("requirements", columns()).shown(usize::MAX, 300);
    for verdict in
        [VerdictWord::Invalid, VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Met]
    {
        for group in groups(all.iter().filter(|stated| stated.result.verdict == verdict)) {
            table.rows.extend(group_rows(&group, verdict));
            if let Some(reason) = reason(&group) {
                table.remark_in(Face::Terminal, Tone::Faint, reason);
            }
        }
    }
    table
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("verdict", 0),
        Column::text("requirement", 0).at_most(NAME),
        Column::text("series", 0).shrinking(),
        Column::figures("measured", 0),
    ]
}

/// Groups of equal requirements, in the order of the first.
fn groups<'s, 'a: 's>(
    all: impl Iterator<Item = &'s RequirementRow<'a>>,
) -> Vec<Vec<&'s RequirementRow<'a>>> {
    let mut groups: Vec<Vec<&RequirementRow<'_>>> = Vec::new();
    for stated in all {
        let same = |group: &&mut Vec<&RequirementRow<'_>>| {
            group[0].result.requirement == stated.result.requirement
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(stated),
            None => groups.push(vec![stated]),
        }
    }
    groups
}

/// Met requirements are one row; all others name their series.
fn group_rows(group: &[&RequirementRow<'_>], verdict: VerdictWord) -> Vec<Vec<Cell>> {
    if verdict == VerdictWord::Met && group.len() > 1 {
        let nearest = nearest(group);
        let name = clipped(&nearest.series);
        return vec![row(nearest.result, &format!("all {}, worst: {name}", group.len()))];
    }
    let listed = group.iter().take(LISTED_REQUIREMENTS);
    let mut rows: Vec<Vec<Cell>> =
        listed.map(|stated| row(stated.result, &clipped(&stated.series))).collect();
    if group.len() > LISTED_REQUIREMENTS {
        let rest = format!("and {} more series", group.len() - LISTED_REQUIREMENTS);
        rows.push(row(&RequirementSummary { figure: None, ..group[0].result.clone() }, &rest));
    }
    rows
}

fn clipped(name: &str) -> String {
    crate::format::clipped(name, NAME, false)
}

/// The series whose figure is closest to the bound: the largest for an upper bound, else the
/// smallest.
fn nearest<'s, 'a>(group: &[&'s RequirementRow<'a>]) -> &'s RequirementRow<'a> {
    let comparison = group[0].result.requirement.parse::<Requirement>().map(|r| r.comparison);
    let less =
        !matches!(comparison, Ok(BoundComparison::Greater | BoundComparison::GreaterOrEqual));
    let figure = |stated: &RequirementRow<'_>| {
        stated.result.figure.unwrap_or_default() * if less { 1.0 } else { -1.0 }
    };
    group.iter().max_by(|a, b| figure(a).total_cmp(&figure(b))).copied().unwrap_or(group[0])
}

fn row(result: &RequirementSummary, series: &str) -> Vec<Cell> {
    let verdict = Cell { sub: result.reason.clone(), ..result.verdict.into() };
    let requirement = Value::Command(result.requirement.clone());
    vec![verdict, requirement.into(), Cell::name(series), measured_value(result)]
}

/// The figure compared with a requirement: a time or a count, according to its metric.
pub(crate) fn measured_value(result: &RequirementSummary) -> Cell {
    let Some(figure) = result.figure else { return Cell::absent("none") };
    match result.requirement.parse::<Requirement>() {
        Ok(parsed) if !parsed.metric.is_time() => Cell::count(figure.max(0.0) as u64),
        _ => Value::Latency(figure).into(),
    }
}

/// The reason for the verdict on the first of a group, if words are needed.
fn reason(group: &[&RequirementRow<'_>]) -> Option<String> {
    let first = group[0];
    let reason = first.result.reason.as_ref()?;
    let requirement = clipped(&first.result.requirement);
    let name = clipped(&first.series);
    let more =
        if group.len() > 1 { format!(" (and {} more)", group.len() - 1) } else { String::new() };
    Some(format!("{requirement} on {name}{more}: {reason}"))
}
