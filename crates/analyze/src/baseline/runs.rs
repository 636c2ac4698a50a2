//! From the records of runs to figures, and back to words' parts.

use super::{Changes, Figure, Judged, LEAST, Leap, Step, smallest_step};
use punctual_bundle::baseline::{
    BaselineRun, FoundChange, HeldAgainst, KeptFigure, LeapingFigure, SmallestStep, WorseFigure,
};
use punctual_bundle::summary::{SeriesSummary, Summary};
use std::collections::BTreeMap;

/// Figures of a run at most: those of further series are left out, in the order of the run.
const MOST_FIGURES: usize = 400;
/// Changes of the environment that are named at most.
const MOST_CHANGES: usize = 8;
/// Runs whose records hold no state that are judged again at most: those of older versions.
const JUDGED_AGAIN: usize = 200;
/// No figure is beyond this, in ns or as a count.
const LARGEST: f64 = 1e18;
/// The percentiles that are kept, by the numbers of the summary.
const PERCENTILES: [&str; 2] = ["99", "99.9"];

/// The figures that are kept of a run: of each series the median, p99 and p99.9 as far as its count
/// supports them, its missed periods, and samples beyond what was required of it.
pub fn kept(summary: &Summary) -> Vec<KeptFigure> {
    let mut all = Vec::new();
    for phase in &summary.phases {
        for series in &phase.series {
            of_series(&format!("{}/{}", phase.name, series.name), series, &mut all);
        }
    }
    all.truncate(MOST_FIGURES);
    all
}

fn of_series(place: &str, series: &SeriesSummary, all: &mut Vec<KeptFigure>) {
    let named = |word: &str| {
        let mut stated = series.requirements.iter();
        stated.any(|held| held.requirement.split_whitespace().any(|part| part == word))
    };
    let begin = all.len();
    let mut add = |word: &str, value: Option<f64>, is_time: bool| {
        let name = format!("{place} {word}");
        let is_main = named(word);
        all.extend(value.map(|value| KeptFigure { name, value, is_time, is_main }));
    };
    add("median", series.median.map(|ns| ns as f64), true);
    for number in PERCENTILES {
        let value = series.percentiles.get(number).map(|ns| *ns as f64);
        add(&format!("p{number}"), value, true);
    }
    add("missed periods", series.skipped.map(|count| count as f64), false);
    let beyond = series.requirements.iter().filter_map(|held| held.beyond).max();
    add("late samples", beyond.map(|count| count as f64), false);
    let of_this = &mut all[begin..];
    if !of_this.iter().any(|figure| figure.is_main) {
        // p99, or what there is of the two before p99.9.
        let by_default = of_this.iter_mut().filter(|figure| figure.is_time).take(2).last();
        by_default.into_iter().for_each(|figure| figure.is_main = true);
    }
}

/// The figures of these runs, from the oldest to the newest. One that the newest run lacks is left
/// out, unless it was worse in the run before.
pub fn figures(runs: &[&BaselineRun]) -> Vec<Figure> {
    let Some((newest, before)) = runs.split_last() else { return Vec::new() };
    let by_name: Vec<BTreeMap<&str, &KeptFigure>> = runs
        .iter()
        .map(|run| run.figures.iter().map(|kept| (kept.name.as_str(), kept)).collect())
        .collect();
    let of = |kept: &KeptFigure| {
        let value = |run: &BTreeMap<&str, &KeptFigure>| {
            let value = run.get(kept.name.as_str()).map(|of| of.value);
            value.filter(|value| value.abs() <= LARGEST)
        };
        let values = by_name.iter().map(value).collect();
        Figure { name: kept.name.clone(), values, is_time: kept.is_time, is_main: kept.is_main }
    };
    let open = before.last().and_then(|run| run.found.as_ref()).into_iter().flatten();
    let lacking = open.filter_map(|change| {
        let name = change.figure.as_str();
        let is_missing = !by_name.last()?.contains_key(name);
        by_name.iter().rev().find_map(|run| run.get(name)).filter(|_| is_missing).copied()
    });
    newest.figures.iter().chain(lacking).take(MOST_FIGURES).map(of).collect()
}

/// Holds a run against those before it, from the oldest to the newest, of the same experiment.
pub fn hold(before: &[BaselineRun], this: &BaselineRun) -> HeldAgainst {
    let runs: Vec<&BaselineRun> = before.iter().chain([this]).collect();
    let figures = figures(&runs);
    let mut held = HeldAgainst { runs: before.len() as u64, ..HeldAgainst::default() };
    match changes_before(before, &figures).judge(&figures) {
        // Without any figure there is nothing to wait for, and nothing is met.
        Judged::TooFew(_) => held.missing = (LEAST.saturating_sub(before.len())).max(1) as u64,
        Judged::Known(known) => {
            held.worse = known.worse.iter().map(|step| worse(&runs, &figures, step)).collect();
            held.leaps = known.leaps.iter().map(|leap| leaping(&figures, leap)).collect();
        }
    }
    if held.missing == 0 {
        held.smallest = figures.iter().position(|figure| figure.is_main).and_then(|place| {
            let Figure { name, is_time, .. } = figures[place].clone();
            let by = smallest_step(&figures, place)?;
            Some(SmallestStep { figure: name, by, is_time })
        });
    }
    held
}

/// The changes that the last of these runs left open: as their records have it; where they do not,
/// judged again.
fn changes_before(before: &[BaselineRun], figures: &[Figure]) -> Changes {
    let mut changes = Changes::default();
    for (number, run) in before.iter().enumerate() {
        let place = |found: &FoundChange| {
            let place = figures.iter().position(|figure| figure.name == found.figure)?;
            let at = before.iter().position(|other| other.created >= found.since)?;
            Some((place, at))
        };
        match &run.found {
            // What was accepted is no change.
            Some(found) if number > 0 => {
                let open = found.iter().take(MOST_FIGURES).filter_map(place).collect();
                changes.found_in(number, open);
            }
            None if number >= LEAST && before.len() - number <= JUDGED_AGAIN => {
                let until = |figure: &Figure| Figure {
                    values: figure.values[..=number].to_vec(),
                    ..figure.clone()
                };
                changes.judge(&figures.iter().map(until).collect::<Vec<Figure>>());
            }
            _ => {}
        }
    }
    changes
}

fn leaping(figures: &[Figure], leap: &Leap) -> LeapingFigure {
    let Figure { name, is_time, .. } = figures[leap.figure].clone();
    LeapingFigure {
        figure: name,
        runs: leap.before as u64,
        before: leap.median,
        by: leap.by,
        is_time,
        is_difference: is_time && !leap.is_ratio,
        more: leap.more as u64,
    }
}

fn worse(runs: &[&BaselineRun], figures: &[Figure], step: &Step) -> WorseFigure {
    let figure = &figures[step.figure];
    WorseFigure {
        figure: figure.name.clone(),
        before: step.shift.before,
        now: step.shift.now,
        by: step.shift.by,
        interval: step.shift.interval,
        is_time: figure.is_time,
        is_difference: figure.is_time && !step.shift.is_ratio,
        since: runs[step.at].created,
        runs: (runs.len() - step.at) as u64,
        changed: changed(runs[step.at - 1], runs[step.at]),
    }
}

/// A commit as people write it: of a hash, its beginning.
fn short(commit: &str) -> String {
    let is_hash = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { commit[..12].to_owned() } else { commit.to_owned() }
}

/// What else is not as it was: the commit and the environment.
pub fn changed(before: &BaselineRun, after: &BaselineRun) -> Vec<String> {
    let differs = |what: &str, a: Option<&String>, b: Option<&String>| {
        let word = |text: Option<&String>| text.map_or("nothing", String::as_str).to_owned();
        (a != b).then(|| format!("{what}: {} -> {}", word(a), word(b)))
    };
    let [from, to] = [before, after].map(|run| run.commit.as_deref().map(short));
    let mut all: Vec<String> = differs("commit", from.as_ref(), to.as_ref()).into_iter().collect();
    let names: std::collections::BTreeSet<&String> =
        before.environment.keys().chain(after.environment.keys()).collect();
    all.extend(names.into_iter().filter_map(|name| {
        differs(name, before.environment.get(name), after.environment.get(name))
    }));
    if all.len() > MOST_CHANGES {
        let more = all.len() - MOST_CHANGES;
        all.truncate(MOST_CHANGES);
        all.push(format!("and {more} more"));
    }
    all
}
