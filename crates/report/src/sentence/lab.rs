//! Sentences about a lab, the same on a terminal and in its report.

use crate::format::{counted, micros, plain};
use punctual_bundle::Timebase;
use punctual_bundle::lab::{
    CellDocument, CellSeries, CellState, LabDocument, SeedDocument, WorstCellSample,
};
use punctual_bundle::summary::{RequirementSummary, VerdictWord};
use punctual_core::Nanos;
use punctual_stats::lab::Contrast;

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

/// The conclusion from an effect.
pub(crate) fn describe_significance(contrast: &Contrast) -> &'static str {
    match contrast.is_significant() {
        Some(true) if contrast.ratio < 1.0 => "lower",
        Some(true) => "higher",
        Some(false) => "no significant difference",
        None => "too few pairs",
    }
}

/// The verdict on a requirement in a cell.
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
    let stated = plain(&requirement.requirement);
    format!("{stated} {word}: {}", describe_figure(cell, series, requirement))
}

/// The subject of a requirement and the measured value: `main/timer of 6.1, measured 27,159 µs`.
fn describe_figure(
    cell: &CellDocument,
    series: &CellSeries,
    requirement: &RequirementSummary,
) -> String {
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
    format!("{} of {}{figure}{reason}", plain(&name), plain(&cell.name))
}

/// The cell and seed with the largest latency.
pub fn worst(lab: &LabDocument) -> Option<(&CellDocument, &SeedDocument, i64)> {
    let all = lab.cells.iter().flat_map(|cell| cell.seeds.iter().map(move |seed| (cell, seed)));
    let max = |seed: &SeedDocument| seed.series.iter().filter_map(|series| series.max).max();
    all.filter_map(|(cell, seed)| Some((cell, seed, max(seed)?))).max_by_key(|(_, _, max)| *max)
}

/// The call stack of the main cause of a sample, from the outermost; empty if unknown.
pub fn calls(worst: &WorstCellSample) -> String {
    worst.calls.iter().map(|call| plain(call)).collect::<Vec<_>>().join(" › ")
}

/// The verdict of all cells in a sentence, with the deciding cell.
pub fn verdict(lab: &LabDocument) -> Option<String> {
    let word = lab.verdict?;
    let judged = lab.cells.iter().filter(|cell| cell.verdict.is_some()).count();
    let of_word: Vec<&CellDocument> =
        lab.cells.iter().filter(|cell| cell.verdict == Some(word)).collect();
    let name = match word {
        VerdictWord::Met => {
            let all = if judged == 1 { "" } else { "all " };
            return Some(format!("met in {all}{}", counted(judged as u64, "cell")));
        }
        VerdictWord::NotMet => "NOT MET",
        VerdictWord::Undecided => "UNDECIDED",
        VerdictWord::Invalid => "INVALID",
    };
    let max = |cell: &&&CellDocument| cell.worst.as_ref().map(|worst| worst.latency);
    let first = of_word.iter().max_by_key(max)?;
    let reason = first.series.iter().find_map(|series| {
        let found = series.requirements.iter().find(|one| one.verdict == word)?;
        let stated = plain(&found.requirement);
        Some(format!(": {stated}: {}", describe_figure(first, series, found)))
    });
    Some(format!(
        "{name} in {} of {}{}{}",
        of_word.len(),
        counted(judged as u64, "cell"),
        reason.unwrap_or_default(),
        which(lab)
    ))
}

/// Cells named on each side of the answer.
const NAMED: usize = 6;

/// Which cells meet it and which do not, where both are there: `; meet it: 6.1-rt; not: 6.1`.
fn which(lab: &LabDocument) -> String {
    let names = |word: VerdictWord| {
        let cells = lab.cells.iter().filter(|cell| cell.verdict == Some(word));
        let names: Vec<String> = cells.map(|cell| plain(&cell.name)).collect();
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!names.is_empty()).then(|| names[..names.len().min(NAMED)].join(", ") + &more)
    };
    let sides = [
        ("meet it", names(VerdictWord::Met)),
        ("not", names(VerdictWord::NotMet)),
        ("undecided", names(VerdictWord::Undecided)),
    ];
    let shown = sides.into_iter().filter_map(|(side, names)| Some(format!("; {side}: {}", names?)));
    let shown: Vec<String> = shown.collect();
    if shown.len() > 1 { shown.concat() } else { String::new() }
}

/// The worst sample of all cells with its main cause: `27,159 virtual µs in 6.1 (main/timer/cpu0):
/// 99 % interrupts disabled, __free_one_page`.
pub fn figure(lab: &LabDocument) -> Option<String> {
    let all = lab.cells.iter().filter_map(|cell| Some((cell, cell.worst.as_ref()?)));
    let (cell, worst) = all.max_by_key(|(_, worst)| worst.latency)?;
    let cause = worst.cause.as_ref().map_or(String::new(), |cause| {
        let who = cause.who.as_deref().map_or(String::new(), |who| format!(", {}", plain(who)));
        format!(": {} {}{who}", crate::format::percent(cause.share), cause.words)
    });
    let seed = worst.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    Some(format!(
        "max {} {} in {}{seed} ({}){cause}",
        micros(Nanos(worst.latency)),
        cell.timebase().unit("µs"),
        plain(&cell.name),
        plain(&worst.series),
    ))
}

/// The command that repeats a cell and seed.
pub fn replay(directory: &str, cell: &CellDocument, seed: Option<u64>) -> String {
    let seed = seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    format!("punctual lab replay {} {}{seed}", plain(directory), plain(&cell.name))
}

/// The command that examines the worst sample.
pub fn to_do(lab: &LabDocument, directory: &str) -> Option<String> {
    let (cell, seed, _) = worst(lab)?;
    let what = match cell.timebase() {
        Timebase::Virtual => "the worst sample, by instruction",
        _ => "the worst cell again, recorded",
    };
    Some(format!("{what}: {}", replay(directory, cell, seed.seed)))
}
