//! The words of a lab, the same on a terminal and in its report.

use crate::format::{counted, micros, plain};
use punctual_analyze::lab::Contrast;
use punctual_bundle::Timebase;
use punctual_bundle::lab::{CellDocument, CellSeries, CellState, LabDocument, SeedDocument};
use punctual_bundle::summary::{RequirementSummary, VerdictWord};
use punctual_core::Nanos;

/// `12 cells × 10 seeds × 2 repetitions; every repetition equal to the last sample`.
pub fn extent(lab: &LabDocument) -> String {
    let mut text = counted(lab.cells.len() as u64, "cell");
    if lab.seeds.len() > 1 {
        text += &format!(" × {}", counted(lab.seeds.len() as u64, "seed"));
    }
    if lab.repeat > 1 {
        text += &format!(" × {}", counted(u64::from(lab.repeat), "repetition"));
    }
    let state = |state: CellState| lab.cells.iter().filter(|cell| cell.state == state).count();
    for (n, words) in
        [(state(CellState::Failed), "failed"), (state(CellState::Waiting), "not run to completion")]
    {
        if n > 0 {
            text += &format!("; {n} {words}");
        }
    }
    let differing = lab.cells.iter().filter(|cell| cell.equal == Some(false)).count();
    let compared = lab.cells.iter().filter(|cell| cell.equal.is_some()).count();
    match (compared, differing) {
        (0, _) => {}
        (_, 0) => text += "; all repetitions are equal in every sample",
        (_, n) => text += &format!("; repetitions DIFFER in {}", counted(n as u64, "cell")),
    }
    text
}

/// `×0.003`, `×0.12`, `×37`.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("×{r:.0}"),
        r if r >= 10.0 => format!("×{r:.1}"),
        r if r >= 0.1 => format!("×{r:.2}"),
        r => format!("×{r:.3}"),
    }
}

/// The interval of an effect, or why there is none.
pub fn interval(contrast: &Contrast) -> String {
    contrast.interval.map_or("no interval".to_owned(), |(low, high)| {
        format!("{} to {}", times(low), times(high))
    })
}

/// What follows of an effect.
pub fn describe_significance(contrast: &Contrast) -> &'static str {
    match contrast.is_significant() {
        Some(true) if contrast.ratio < 1.0 => "lower",
        Some(true) => "higher",
        Some(false) => "no significant difference",
        None => "too few pairs and seeds for an interval",
    }
}

/// What became of a requirement in a cell.
pub fn requirement(
    cell: &CellDocument,
    series: &CellSeries,
    requirement: &RequirementSummary,
) -> String {
    let word = match requirement.verdict {
        VerdictWord::Met => "met",
        VerdictWord::NotMet => "NOT MET",
        VerdictWord::Undecided => "undecided",
        VerdictWord::Invalid => "INVALID",
    };
    let time = requirement
        .requirement
        .parse::<punctual_core::Requirement>()
        .is_ok_and(|r| r.metric.is_time());
    let figure = requirement.figure.map_or(String::new(), |figure| match time {
        true => {
            format!(", measured {} {}", micros(Nanos(figure as i64)), cell.timebase().unit("µs"))
        }
        false => format!(", measured {figure}"),
    });
    let reason = requirement.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    let name = format!("{}/{}", series.figures.phase, series.figures.series);
    format!(
        "{} {word}: {} of {}{figure}{reason}",
        plain(&requirement.requirement),
        plain(&name),
        plain(&cell.name)
    )
}

/// The cell and seed with the largest latency of all.
pub fn worst(lab: &LabDocument) -> Option<(&CellDocument, &SeedDocument, i64)> {
    let all = lab.cells.iter().flat_map(|cell| cell.seeds.iter().map(move |seed| (cell, seed)));
    let max = |seed: &SeedDocument| seed.series.iter().filter_map(|series| series.max).max();
    all.filter_map(|(cell, seed)| Some((cell, seed, max(seed)?))).max_by_key(|(_, _, max)| *max)
}

/// The command that runs a cell and seed again.
pub fn replay(directory: &str, cell: &CellDocument, seed: Option<u64>) -> String {
    let seed = seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    format!("punctual lab replay {} {}{seed}", plain(directory), plain(&cell.name))
}

/// What is worst of all, and how it is looked into.
pub fn worst_command(lab: &LabDocument, directory: &str) -> Option<String> {
    let (cell, seed, max) = worst(lab)?;
    let of_seed = seed.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    let command = replay(directory, cell, seed.seed);
    let exactly =
        if cell.timebase() == Timebase::Virtual { " (exactly the same run: --plain)" } else { "" };
    let max = format!("{} {}", micros(Nanos(max)), cell.timebase().unit("µs"));
    Some(format!("{max} in {}{of_seed}: {command}{exactly}", plain(&cell.name)))
}
