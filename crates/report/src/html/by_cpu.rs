//! Latency by CPU: small histograms side by side on common axes that show the worst CPU at a
//! glance. Drawn without a script.

use super::curve::Curve;
use super::drawing::{Area, AxisTick, CountAxis, PlotAxis, column_peaks, step_path};
use super::embedded::latency_limits;
use super::gather::{PageSeries, SeriesLine};
use super::of_cpu::OfCpu;
use super::scale::Scale;
use super::text::format_name;
use crate::format::{count_with_noun, micros_text, short_count, span_text};
use punctual_core::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

const DRAWINGS: usize = 64;
/// Columns of a drawing; each shows its highest bin.
const COLUMNS: usize = 130;
/// Bins of a curve before drawing.
const BINS: usize = 2_000;
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 128.0;
const PLOT: Area = Area { left: 34.0, right: WIDTH - 16.0, top: 6.0, bottom: HEIGHT - 22.0 };
/// The minimum distance between labels of an axis.
const APART: (f64, f64) = (46.0, 22.0);

/// All small histograms, with their common axes.
#[derive(Serialize)]
pub(crate) struct Multiples {
    sets: Vec<Set>,
    width: f64,
    height: f64,
    plot: Area,
    x_ticks: Vec<AxisTick>,
    y_ticks: Vec<AxisTick>,
    limits: Vec<f64>,
    per: String,
    /// Drawings omitted for lack of room.
    left_out: usize,
    unit: String,
}

/// The results of one measure on each CPU.
#[derive(Serialize)]
struct Set {
    /// The name of the measure; empty if there is only one set.
    title: String,
    panels: Vec<Panel>,
}

/// One CPU.
#[derive(Serialize)]
struct Panel {
    cpu: u32,
    max: String,
    samples: String,
    is_largest: bool,
    d: String,
}

/// All measures with samples of several CPUs; `None` if there are none.
pub(crate) fn draw_multiples(content: &PageSeries<'_>, scale: &Scale) -> Option<Multiples> {
    let mut sets = collect_sets(content);
    let left_out = thin_out(&mut sets);
    let cpus_of_sets = || sets.iter().flat_map(|(_, cpus)| cpus);
    let max = cpus_of_sets().map(|of| of.max.ns()).max()?;
    let curves: Vec<Curve> = cpus_of_sets().map(|of| of.curve.reduce_to(BINS)).collect();
    let widest = curves.iter().map(|curve| curve.body_width).max().unwrap_or(1);
    let scale = Scale { width: scale.width.max(widest), max: max.max(1), ..*scale };
    let axis = PlotAxis::from_curves(&scale, &curves);
    let column_counts: Vec<Vec<Option<u64>>> =
        curves.iter().map(|curve| column_peaks(curve, scale.width, &axis, COLUMNS)).collect();
    let counts = CountAxis::from_columns(&column_counts);
    let x = |share: f64| PLOT.left + share * (PLOT.right - PLOT.left);
    let y = |number: u64| counts.y(number as f64, &PLOT);
    let x_tick = |ns: f64| AxisTick {
        at: x(axis.relative_position(ns)),
        label: span_text(Nanos(ns as i64)),
    };
    let y_tick = |n: f64| AxisTick { at: counts.y(n, &PLOT), label: short_count(n as u64) };
    let limits = latency_limits(content).into_iter().map(|limit| limit as f64);
    let mut drawn = column_counts.iter().map(|columns| step_path(columns, x, y, PLOT.bottom));
    let is_only = sets.len() == 1;
    let set = |(title, cpus): &(String, Vec<OfCpu>)| {
        let largest = cpus.iter().map(|of| of.max).max();
        let panel = |of: &OfCpu| Panel {
            cpu: of.cpu,
            max: micros_text(of.max),
            samples: count_with_noun(of.count, "sample"),
            is_largest: Some(of.max) == largest,
            d: drawn.next().unwrap_or_default(),
        };
        let title = if is_only { String::new() } else { title.clone() };
        Set { title, panels: cpus.iter().map(panel).collect() }
    };
    Some(Multiples {
        sets: sets.iter().map(set).collect(),
        width: WIDTH,
        height: HEIGHT,
        plot: PLOT,
        x_ticks: space_ticks(prefer_powers_of_ten(axis.ticks()).into_iter().map(x_tick), APART.0),
        y_ticks: space_ticks(counts.decades().map(y_tick), APART.1),
        limits: limits
            .filter(|limit| *limit < axis.end())
            .map(|limit| x(axis.relative_position(limit)))
            .collect(),
        per: span_text(Nanos(scale.width)),
        left_out,
        unit: content.timebase.format_unit("µs"),
    })
}

/// Only the powers of ten, if there are several.
fn prefer_powers_of_ten(ticks: Vec<f64>) -> Vec<f64> {
    let is_power = |ns: &f64| (ns.log10() - ns.log10().round()).abs() < 1e-9;
    let powers: Vec<f64> = ticks.iter().copied().filter(is_power).collect();
    if powers.len() > 1 { powers } else { ticks }
}

/// A series that was measured on this CPU only; `None` if it has no samples.
fn of_line(cpu: u32, line: &SeriesLine<'_>) -> Option<OfCpu> {
    let data = &line.series.state.data;
    Some(OfCpu { cpu, curve: line.curve.clone(), count: data.sample_count(), max: data.max? })
}

/// The ticks that leave room for their labels.
fn space_ticks(ticks: impl Iterator<Item = AxisTick>, apart: f64) -> Vec<AxisTick> {
    let mut kept: Vec<AxisTick> = Vec::new();
    for tick in ticks {
        if kept.last().is_none_or(|last| (tick.at - last.at).abs() >= apart) {
            kept.push(tick);
        }
    }
    kept
}

/// A set for each measure with a thread on each of several CPUs, and for each series of a thread
/// that ran on several: its title, and its CPUs, ascending.
fn collect_sets(content: &PageSeries<'_>) -> Vec<(String, Vec<OfCpu>)> {
    let mut sets: Vec<(String, Vec<OfCpu>)> = Vec::new();
    let mut pinned: BTreeMap<(usize, &str, String), Vec<OfCpu>> = BTreeMap::new();
    for line in &content.lines {
        let meta = &line.series.meta;
        let only_cpu = meta.cpus.first_cpu().filter(|_| meta.cpus.len() == 1);
        if line.cpus.len() > 1 {
            sets.push((line.full.clone(), line.cpus.clone()));
        } else if let Some(cpu) = only_cpu.and_then(|cpu| u32::try_from(cpu).ok())
            && let Some((before, after)) = around_cpu(&meta.name, cpu)
            && !after.starts_with(|next: char| next.is_ascii_digit())
        {
            let joined_name = format!("{}{after}", before.trim_end_matches('/'));
            let name_without_cpu = joined_name.trim_start_matches('/').to_owned();
            let pinned_cpus =
                pinned.entry((line.group, &meta.measure, name_without_cpu)).or_default();
            pinned_cpus.extend(of_line(cpu, line));
        }
    }
    for ((group, _, others), mut cpus) in pinned {
        cpus.sort_by_key(|of| of.cpu);
        let group = content.groups.get(group).filter(|_| content.groups.len() > 1);
        let group = group.map(|group| group.name.clone());
        let names = group.into_iter().chain((!others.is_empty()).then(|| format_name(&others)));
        sets.push((names.collect::<Vec<_>>().join(" · "), cpus));
    }
    sets.retain(|(_, cpus)| cpus.len() > 1);
    sets
}

/// The text before and behind the CPU number in a name; rtla's imports are `CPU 3/irq`.
fn around_cpu(name: &str, cpu: u32) -> Option<(&str, &str)> {
    let written = [format!("cpu{cpu}"), format!("CPU {cpu}")];
    written.iter().find_map(|number| name.split_once(number.as_str()))
}

/// Keeps the CPUs with the longest latencies if there is not room for all; returns how many were
/// removed.
fn thin_out(sets: &mut Vec<(String, Vec<OfCpu>)>) -> usize {
    let mut longest: Vec<Nanos> = sets.iter().flat_map(|(_, of)| of).map(|of| of.max).collect();
    let cpu_count = longest.len();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let Some(least) = longest.get(DRAWINGS).copied() else { return 0 };
    let mut room = DRAWINGS - longest.iter().filter(|max| **max > least).count();
    for (_, cpus) in sets.iter_mut() {
        cpus.retain(|of| {
            let fits = of.max == least && room > 0;
            room -= usize::from(fits);
            fits || of.max > least
        });
    }
    sets.retain(|(_, cpus)| !cpus.is_empty());
    cpu_count - DRAWINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_number_is_removed_from_series_names() {
        assert_eq!(around_cpu("timer/cpu3", 3), Some(("timer/", "")));
        assert_eq!(around_cpu("irq/cpu10/handler", 10), Some(("irq/", "/handler")));
        assert_eq!(around_cpu("CPU 3/irq", 3), Some(("", "/irq")));
        assert_eq!(around_cpu("mutex/0", 0), None);
    }

    #[test]
    fn of_too_many_cpus_those_with_the_longest_latencies_are_shown() {
        let of = |cpu: u32| OfCpu::from_latencies(cpu, vec![i64::from(cpu % 100) * 1_000], 1_000);
        let mut sets = vec![("a".to_owned(), (0..100).map(of).collect::<Vec<_>>())];
        let left_out = thin_out(&mut sets);
        let kept: Vec<u32> = sets[0].1.iter().map(|of| of.cpu).collect();
        assert_eq!((left_out, kept), (36, (36..100).collect()));
    }
}
