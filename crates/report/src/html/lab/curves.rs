//! The curves of all cells: a series is a group, the cells are its members.

use crate::html::MAX_SERIES;
use crate::html::curve::Curve;
use crate::html::gather::{PageSeries, PhaseGroup, SeriesLine};
use crate::html::over_time::PlotSource;
use crate::html::percentiles;
use crate::html::style::CurveStyle;
use crate::html::text;
use punctual_bundle::lab::{CellDocument, LabDocument};
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, Phase, Series};
use punctual_core::ClockNs;
use punctual_stats::{Distribution, Timeline};

/// All series of all cells.
pub(crate) fn gather_lab_series<'a>(
    lab: &'a LabDocument,
    pooled: &'a [Option<Bundle>],
    summaries: &'a [Option<Summary>],
) -> PageSeries<'a> {
    let lab_series = lab.all_series();
    let phases =
        lab_series.iter().map(|(phase, _)| phase).collect::<std::collections::BTreeSet<_>>().len();
    let (mut groups, mut lines, mut left_out) = (Vec::new(), Vec::new(), 0);
    for (number, (phase, series)) in lab_series.iter().enumerate() {
        let name = if phases > 1 { format!("{phase} · {series}") } else { series.clone() };
        let name = text::format_name(&name);
        for (k, cell) in lab.cells.iter().enumerate() {
            let bundle = pooled
                .get(k)
                .and_then(Option::as_ref)
                .zip(summaries.get(k).and_then(Option::as_ref));
            let Some(line) = bundle
                .and_then(|(b, s)| gather_lab_line(number, k, &name, cell, b, s, (phase, series)))
            else {
                continue;
            };
            if lines.len() < MAX_SERIES {
                lines.push(line);
            } else {
                left_out += 1;
            }
        }
        groups.push(PhaseGroup {
            name,
            bundle: 0,
            style: CurveStyle::from_curve_index(number),
            together: Vec::new(),
            together_corrected: Vec::new(),
        });
    }
    PageSeries {
        groups,
        lines,
        labels: Vec::new(),
        left_out,
        timebase: lab.timebase(),
        apart: true,
    }
}

fn gather_lab_line<'a>(
    group: usize,
    number: usize,
    group_name: &str,
    cell: &CellDocument,
    bundle: &'a Bundle,
    summary: &'a Summary,
    (phase_name, series_name): (&str, &str),
) -> Option<SeriesLine<'a>> {
    let phase: &Phase = bundle.phases.iter().find(|phase| phase.meta.name == phase_name)?;
    let series: &Series = phase.series.iter().find(|series| series.meta.name == series_name)?;
    let of_phase = summary.phases.iter().find(|phase| phase.name == phase_name)?;
    let figures = of_phase.series.iter().find(|series| series.name == series_name)?;
    let data = &series.state.data;
    let short = text::format_name(&cell.name);
    Some(SeriesLine {
        group,
        full: format!("{short} · {group_name}"),
        short,
        style: CurveStyle::from_curve_index(number),
        phase,
        series,
        summary: figures,
        curve: Curve::from_data(data),
        percentiles: percentiles::percentile_points(&Distribution::from_series(data)),
        corrected: Distribution::from_corrected(data)
            .map(|d| percentiles::percentile_points(&d))
            .unwrap_or_default(),
        timeline: Timeline::default(),
        source: PlotSource::Nothing,
        trouble: None,
        cpus: Vec::new(),
        zero: ClockNs::default(),
        since_phase: false,
    })
}

/// The first series only, for the drawing without script.
pub(crate) fn of_first_group<'a>(
    content: &PageSeries<'a>,
    curves: &[Curve],
) -> (PageSeries<'a>, Vec<Curve>) {
    let first =
        content.lines.iter().take_while(|line| line.group == content.lines[0].group).count();
    let lines = content.lines[..first].iter().map(|line| SeriesLine {
        group: 0,
        short: line.short.clone(),
        full: line.full.clone(),
        style: line.style,
        phase: line.phase,
        series: line.series,
        summary: line.summary,
        curve: line.curve.clone(),
        percentiles: line.percentiles.clone(),
        corrected: line.corrected.clone(),
        timeline: line.timeline.clone(),
        source: line.source,
        trouble: None,
        cpus: Vec::new(),
        zero: line.zero,
        since_phase: line.since_phase,
    });
    let (groups, labels) = (Vec::new(), Vec::new());
    let content = PageSeries {
        groups,
        lines: lines.collect(),
        labels,
        left_out: 0,
        timebase: content.timebase,
        apart: true,
    };
    (content, curves[..first].to_vec())
}
