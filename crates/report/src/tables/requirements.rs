//! The verdict on each requirement.

use super::figures::named_series;
use super::{Cell, Column, Face, Table, Tone, Value};
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_core::{BoundComparison, Requirement};

const NAME: usize = 40;
/// At most this many equal ones are listed in a group; the rest are counted.
const LISTED_REQUIREMENTS: usize = 8;

/// One requirement on one series.
pub(crate) struct RequirementRow<'a> {
    pub series: String,
    pub result: &'a RequirementSummary,
}

/// Every requirement on every series, open ones first.
pub(crate) fn requirement_table(mut all: Vec<RequirementRow<'_>>) -> Table {
    all.sort_by_key(|stated| std::cmp::Reverse(stated.result.verdict.gravity_rank()));
    let rows = all.iter().map(|stated| requirement_row(stated.result, &stated.series));
    Table::new("stated requirements", requirement_columns())
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(40, 300)
}

/// Every requirement of a run, by groups.
pub(crate) fn requirements_of_run(summary: &Summary) -> Table {
    let all_rows = named_series(summary).flat_map(|(name, series)| {
        let stated = move |result| RequirementRow { series: name.clone(), result };
        series.requirements.iter().map(stated)
    });
    grouped_table(&all_rows.collect::<Vec<RequirementRow<'_>>>())
}

/// Open requirements first; one that is met everywhere is one row, with the series closest to its
/// bound.
fn grouped_table(all: &[RequirementRow<'_>]) -> Table {
    let mut table =
        Table::new("requirements", requirement_columns()).with_row_limit(usize::MAX, 300);
    for verdict in
        [VerdictWord::Invalid, VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Met]
    {
        for group in group_equal(all.iter().filter(|stated| stated.result.verdict == verdict)) {
            table.rows.extend(group_rows(&group, verdict));
            if let Some(reason) = group_reason(&group) {
                table.remark_in(Face::Terminal, Tone::Faint, reason);
            }
        }
    }
    table
}

fn requirement_columns() -> Vec<Column> {
    vec![
        Column::text("verdict", 0),
        Column::text("requirement", 0).at_most(NAME),
        Column::text("series", 0).with_shrinking(),
        Column::figures("measured", 0),
    ]
}

/// Groups of equal requirements, in the order of the first.
fn group_equal<'s, 'a: 's>(
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
        let nearest = nearest_series(group);
        let name = clip_name(&nearest.series);
        return vec![requirement_row(
            nearest.result,
            &format!("all {}, worst: {name}", group.len()),
        )];
    }
    let listed = group.iter().take(LISTED_REQUIREMENTS);
    let mut rows: Vec<Vec<Cell>> =
        listed.map(|stated| requirement_row(stated.result, &clip_name(&stated.series))).collect();
    if group.len() > LISTED_REQUIREMENTS {
        let rest = format!("and {} more series", group.len() - LISTED_REQUIREMENTS);
        rows.push(requirement_row(
            &RequirementSummary { figure: None, ..group[0].result.clone() },
            &rest,
        ));
    }
    rows
}

fn clip_name(name: &str) -> String {
    crate::format::clip_name(name, NAME, false)
}

/// The series whose figure is closest to the bound: the largest for an upper bound, else the
/// smallest.
fn nearest_series<'s, 'a>(group: &[&'s RequirementRow<'a>]) -> &'s RequirementRow<'a> {
    let comparison = group[0].result.requirement.parse::<Requirement>().map(|r| r.comparison);
    let is_upper_bound =
        !matches!(comparison, Ok(BoundComparison::Greater | BoundComparison::GreaterOrEqual));
    let figure = |stated: &RequirementRow<'_>| {
        stated.result.figure.unwrap_or_default() * if is_upper_bound { 1.0 } else { -1.0 }
    };
    group.iter().max_by(|a, b| figure(a).total_cmp(&figure(b))).copied().unwrap_or(group[0])
}

fn requirement_row(result: &RequirementSummary, series: &str) -> Vec<Cell> {
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
fn group_reason(group: &[&RequirementRow<'_>]) -> Option<String> {
    let first = group[0];
    let reason = first.result.reason.as_ref()?;
    let requirement = clip_name(&first.result.requirement);
    let name = clip_name(&first.series);
    let further_series =
        if group.len() > 1 { format!(" (and {} more)", group.len() - 1) } else { String::new() };
    Some(format!("{requirement} on {name}{further_series}: {reason}"))
}
