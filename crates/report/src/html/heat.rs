//! Temperatures and frequencies over a phase, with the times in which the machine was slowed,
//! drawn without a script.

use super::drawing::{
    Area, AxisTick, BOTTOM, LEFT, PathOf, PlotAxis, PlotDrawing, RIGHT, TOP, WIDTH,
};
use super::gather::PageSeries;
use super::style::{CurveStyle, DASHES};
use super::{ReportInput, text};
use crate::format::span_text;
use punctual_core::{Fact, Heat, Nanos, Sensor, SensorKind};
use serde::Serialize;
use std::fmt::Write;

/// The most figures on a page, and the most lines of a kind in one.
const FIGURES: usize = 8;
const LINES: usize = 4;
const HEIGHT: f64 = 190.0;
/// The room of the labels of frequencies.
const RIGHT_LABELS: f64 = 34.0;

/// The input of the template.
#[derive(Serialize)]
pub(crate) struct HeatFigure {
    /// `None`: nothing is known.
    drawing: Option<PlotDrawing>,
    caption: String,
}

/// The figures of all phases in which sensors were looked for.
pub(crate) fn heat_figures(
    inputs: &[ReportInput<'_>],
    content: &PageSeries<'_>,
) -> Vec<HeatFigure> {
    let phases = inputs.iter().flat_map(|input| &input.bundle.phases);
    let phases_and_groups = phases.zip(&content.groups);
    let several = content.groups.len() > 1;
    let figure = |(phase, group): (&punctual_bundle::Phase, &super::gather::PhaseGroup)| {
        let prefix =
            if several { format!("{}: ", text::format_name(&group.name)) } else { String::new() };
        let (drawing, caption) = match &phase.meta.heat {
            Fact::Known(heat) if heat.times.len() > 1 => {
                (Some(draw_heat(heat)), heat_caption(heat))
            }
            Fact::Unavailable(why) => (None, format!("Not known: {}.", text::format_name(why))),
            Fact::Known(_) | Fact::NotAsked => return None,
        };
        Some(HeatFigure { drawing, caption: format!("{prefix}{caption}") })
    };
    phases_and_groups.filter_map(figure).take(FIGURES).collect()
}

fn heat_caption(heat: &Heat) -> String {
    let mut said = "Solid: temperature (left axis); dashed: frequency (right axis); shaded: \
                    throttled or under-voltage."
        .to_owned();
    let unknown = heat.unanswered_questions();
    if !unknown.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(said, " Not known, for lack of a sensor: {}.", unknown.join(", "));
    }
    said
}

/// A kind of sensor with its scale, the dash of its lines, and how many of the unit its values are.
struct LineKind {
    kind: SensorKind,
    unit: f64,
    dash: &'static str,
}

const KINDS: [LineKind; 2] = [
    LineKind { kind: SensorKind::Temperature, unit: 1_000.0, dash: DASHES[0] },
    LineKind { kind: SensorKind::Frequency, unit: 1_000.0, dash: DASHES[1] },
];

fn draw_heat(heat: &Heat) -> PlotDrawing {
    let plot =
        Area { left: LEFT, right: WIDTH - RIGHT - RIGHT_LABELS, top: TOP, bottom: HEIGHT - BOTTOM };
    let last = heat.times.last().map_or(1, |last| last.ns()).max(1) as f64;
    let time = PlotAxis::from_zero(last);
    let x =
        |at: Nanos| plot.left + time.relative_position(at.ns() as f64) * (plot.right - plot.left);
    let y = |axis: &PlotAxis, value: f64| {
        plot.bottom - axis.relative_position(value) * (plot.bottom - plot.top)
    };
    let mut paths: Vec<PathOf> = Vec::new();
    let mut sensors_left_out = 0;
    let axes = KINDS.map(|of| {
        let mut sensors: Vec<&Sensor> = heat
            .sensors
            .iter()
            .filter(|sensor| sensor.kind == of.kind && sensor.worst_value().is_some())
            .collect();
        let highest_value = |sensor: &&Sensor| sensor.values.iter().flatten().max().copied();
        sensors.sort_by_key(|sensor| std::cmp::Reverse(highest_value(sensor)));
        sensors_left_out += sensors.len().saturating_sub(LINES);
        sensors.truncate(LINES);
        let highest = sensors.first().and_then(highest_value)?;
        let axis = PlotAxis::from_zero(highest as f64 / of.unit);
        for sensor in sensors {
            let place = paths.len();
            let points =
                heat.times.iter().zip(&sensor.values).map(|(at, value)| {
                    value.map(|value| (x(*at), y(&axis, value as f64 / of.unit)))
                });
            paths.push(PathOf {
                name: text::clip_text(&text::format_name(&sensor.name), 52),
                d: line_path(points),
                hue: CurveStyle::from_curve_index(place).hue,
                dash: of.dash,
                opacity: 1.0,
                legend_x: LEFT + (place % 2) as f64 * (WIDTH - LEFT) / 2.0,
                legend_y: HEIGHT + 18.0 + (place / 2) as f64 * 18.0,
            });
        }
        Some(axis)
    });
    let ticks = |axis: &Option<PlotAxis>| -> Vec<AxisTick> {
        let axis_ticks = |axis: &PlotAxis| {
            let tick = |value: f64| AxisTick { at: y(axis, value), label: format!("{value:.0}") };
            axis.ticks().into_iter().map(tick).collect()
        };
        axis.as_ref().map_or(Vec::new(), axis_ticks)
    };
    let [temperature, frequency] = axes;
    let title = |axis: &Option<PlotAxis>, name: &str| {
        axis.as_ref().map_or(String::new(), |_| name.to_owned())
    };
    let at = |ns: f64| Nanos(ns as i64);
    let x_tick = |ns: f64| AxisTick { at: x(at(ns)), label: span_text(at(ns)) };
    let band = |(from, until): (Nanos, Nanos)| (x(from), (x(until) - x(from)).max(1.0));
    let legend = paths.len().div_ceil(2) as f64 * 18.0;
    PlotDrawing {
        width: WIDTH,
        height: HEIGHT + legend + if sensors_left_out > 0 { 22.0 } else { 6.0 },
        names: paths.len(),
        more: sensors_left_out,
        x_ticks: time.ticks().into_iter().map(x_tick).collect(),
        y_ticks: ticks(&temperature),
        right_ticks: ticks(&frequency),
        x_title: "time since the phase began".to_owned(),
        y_title: title(&temperature, "°C"),
        right_title: title(&frequency, "MHz"),
        bands: heat.limited_spans().into_iter().map(band).collect(),
        description: describe_heat(heat),
        paths,
        plot,
    }
}

/// A line through the known points; a gap where one is unknown.
fn line_path(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let (mut drawn, mut pen) = (String::new(), 'M');
    for point in points {
        match point {
            Some((x, y)) => {
                // Writing to a string cannot fail.
                let _ = write!(drawn, "{pen}{x:.1} {y:.1}");
                pen = 'L';
            }
            None => pen = 'M',
        }
    }
    drawn
}

fn describe_heat(heat: &Heat) -> String {
    let hottest = heat.sensors.iter().filter(|one| one.kind == SensorKind::Temperature);
    let hottest = hottest.filter_map(Sensor::worst_value).max();
    let up_to = hottest.map_or(String::new(), |value| {
        format!("Temperatures up to {:.1} °C. ", value as f64 / 1_000.0)
    });
    let limited = heat.limited_spans();
    let lasted = limited
        .iter()
        .fold(0i64, |all, (from, until)| all.saturating_add(until.ns().saturating_sub(from.ns())));
    match lasted {
        0 if limited.is_empty() => format!("{up_to}No sensor showed throttling or under-voltage."),
        some => format!("{up_to}Throttled or under-voltage for {}.", span_text(Nanos(some))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(kinds: &[SensorKind], rows: &[&[i64]]) -> Heat {
        let sensor = |kind: &SensorKind| Sensor::new(*kind, format!("{kind:?}"), "/a");
        let mut heat = Heat { sensors: kinds.iter().map(sensor).collect(), ..Heat::default() };
        for (second, row) in rows.iter().enumerate() {
            let row: Vec<_> = row.iter().map(|value| (*value >= 0).then_some(*value)).collect();
            heat.add(Nanos::from_secs(second as i64), &row);
        }
        heat
    }

    #[test]
    fn lines_have_gaps_and_limits_are_shaded() {
        let kinds = [SensorKind::Temperature, SensorKind::Frequency, SensorKind::Alarm];
        let rows: [&[i64]; 4] =
            [&[50_000, 1_800_000, 0], &[-1, 600_000, 1], &[100_000, 600_000, 0], &[0, 0, 0]];
        let drawn = draw_heat(&heat(&kinds, &rows));
        let lines: Vec<&str> = drawn.paths.iter().map(|path| path.d.as_str()).collect();
        assert_eq!(lines[0].matches('M').count(), 2, "{}", lines[0]);
        assert_eq!(lines[1].matches('L').count(), 3, "{}", lines[1]);
        assert_eq!((drawn.paths[0].dash, drawn.paths[1].dash), ("", "7 3"));
        assert_eq!(drawn.bands.len(), 1);
        let (from, width) = drawn.bands[0];
        assert!(from == LEFT && (width - 218.3).abs() < 0.1, "one of three seconds: {width}");
        assert_eq!(
            drawn.description,
            "Temperatures up to 100.0 °C. Throttled or under-voltage for 1 s."
        );
        assert_eq!((drawn.y_title.as_str(), drawn.right_title.as_str()), ("°C", "MHz"));
    }

    #[test]
    fn the_caption_names_what_no_sensor_shows() {
        let rows: [&[i64]; 2] = [&[50_000], &[50_000]];
        let only = heat(&[SensorKind::Temperature], &rows);
        let text = heat_caption(&only);
        assert!(text.ends_with("of a sensor: frequency, throttling, under-voltage."), "{text}");
        assert!(draw_heat(&only).right_ticks.is_empty());
    }
}
