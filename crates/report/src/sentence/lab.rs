//! Sentences about a lab, the same on a terminal and in its report.

use crate::format::{count_with_noun, escape_unsafe, micros_text};
use punctual_bundle::Timebase;
use punctual_bundle::lab::{
    CellDocument, CellSeries, CellState, LabDocument, SeedDocument, WorstCellSample,
};
use punctual_bundle::summary::{RequirementSummary, VerdictWord};
use punctual_core::Nanos;
use punctual_stats::lab::Contrast;

/// `12 cells × 10 seeds × 2 repetitions; every repetition equal to the last sample`.
pub(crate) fn format_extent(lab: &LabDocument) -> String {
    let mut text = count_with_noun(lab.cells.len() as u64, "cell");
    if lab.seeds.len() > 1 {
        text += &format!(" × {}", count_with_noun(lab.seeds.len() as u64, "seed"));
    }
    if lab.repeat > 1 {
        text += &format!(" × {}", count_with_noun(u64::from(lab.repeat), "repetition"));
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
        (_, n) => text += &format!("; repetitions DIFFER in {}", count_with_noun(n as u64, "cell")),
    }
    text
}

/// `×0.003`, `×0.12`, `×37`.
pub(crate) fn format_ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("×{r:.0}"),
        r if r >= 10.0 => format!("×{r:.1}"),
        r if r >= 0.1 => format!("×{r:.2}"),
        r => format!("×{r:.3}"),
    }
}

/// The interval of an effect, or why there is none.
pub(crate) fn format_interval(contrast: &Contrast) -> String {
    contrast.interval.map_or("no interval".to_owned(), |(low, high)| {
        format!("{} to {}", format_ratio(low), format_ratio(high))
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
pub fn format_requirement(
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
    let stated = escape_unsafe(&requirement.requirement);
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
            format!(
                ", measured {} {}",
                micros_text(Nanos(figure as i64)),
                cell.timebase().format_unit("µs")
            )
        }
        false => format!(", measured {figure}"),
    });
    let reason = requirement.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    let name = format!("{}/{}", series.figures.phase, series.figures.series);
    format!("{} of {}{figure}{reason}", escape_unsafe(&name), escape_unsafe(&cell.name))
}

/// The cell and seed with the largest latency.
pub(crate) fn worst_cell(lab: &LabDocument) -> Option<(&CellDocument, &SeedDocument, i64)> {
    let all_seeds =
        lab.cells.iter().flat_map(|cell| cell.seeds.iter().map(move |seed| (cell, seed)));
    let max = |seed: &SeedDocument| seed.series.iter().filter_map(|series| series.max).max();
    all_seeds
        .filter_map(|(cell, seed)| Some((cell, seed, max(seed)?)))
        .max_by_key(|(_, _, max)| *max)
}

/// The call stack of the main cause of a sample, from the outermost; empty if unknown.
pub(crate) fn format_calls(worst: &WorstCellSample) -> String {
    worst.calls.iter().map(|call| escape_unsafe(call)).collect::<Vec<_>>().join(" › ")
}

/// The verdict of all cells in a sentence, with the deciding cell.
pub(crate) fn format_verdict(lab: &LabDocument) -> Option<String> {
    let word = lab.verdict?;
    let judged = lab.cells.iter().filter(|cell| cell.verdict.is_some()).count();
    let of_word: Vec<&CellDocument> =
        lab.cells.iter().filter(|cell| cell.verdict == Some(word)).collect();
    let name = match word {
        VerdictWord::Met => {
            let all_word = if judged == 1 { "" } else { "all " };
            return Some(format!("met in {all_word}{}", count_with_noun(judged as u64, "cell")));
        }
        VerdictWord::NotMet => "NOT MET",
        VerdictWord::Undecided => "UNDECIDED",
        VerdictWord::Invalid => "INVALID",
    };
    let max = |cell: &&&CellDocument| cell.worst.as_ref().map(|worst| worst.latency);
    let first = of_word.iter().max_by_key(max)?;
    let reason = first.series.iter().find_map(|series| {
        let found = series.requirements.iter().find(|one| one.verdict == word)?;
        let stated = escape_unsafe(&found.requirement);
        Some(format!(": {stated}: {}", describe_figure(first, series, found)))
    });
    Some(format!(
        "{name} in {} of {}{}{}",
        of_word.len(),
        count_with_noun(judged as u64, "cell"),
        reason.unwrap_or_default(),
        cells_by_verdict(lab)
    ))
}

/// Cells named on each side of the answer.
const NAMED: usize = 6;

/// Which cells meet it and which do not, where both are there: `; meet it: 6.1-rt; not: 6.1`.
fn cells_by_verdict(lab: &LabDocument) -> String {
    let names = |word: VerdictWord| {
        let cells = lab.cells.iter().filter(|cell| cell.verdict == Some(word));
        let names: Vec<String> = cells.map(|cell| escape_unsafe(&cell.name)).collect();
        let unnamed_cells = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!names.is_empty()).then(|| names[..names.len().min(NAMED)].join(", ") + &unnamed_cells)
    };
    let sides = [
        ("meet it", names(VerdictWord::Met)),
        ("not", names(VerdictWord::NotMet)),
        ("undecided", names(VerdictWord::Undecided)),
    ];
    let side_texts =
        sides.into_iter().filter_map(|(side, names)| Some(format!("; {side}: {}", names?)));
    let shown_sides: Vec<String> = side_texts.collect();
    if shown_sides.len() > 1 { shown_sides.concat() } else { String::new() }
}

/// The worst sample of all cells with its main cause: `27,159 virtual µs in 6.1 (main/timer/cpu0):
/// 99 % interrupts disabled, __free_one_page`.
pub(crate) fn format_worst(lab: &LabDocument) -> Option<String> {
    let worst_samples = lab.cells.iter().filter_map(|cell| Some((cell, cell.worst.as_ref()?)));
    let (cell, worst) = worst_samples.max_by_key(|(_, worst)| worst.latency)?;
    let cause = worst.cause.as_ref().map_or(String::new(), |cause| {
        let who =
            cause.who.as_deref().map_or(String::new(), |who| format!(", {}", escape_unsafe(who)));
        format!(": {} {}{who}", crate::format::percent_text(cause.share), cause.words)
    });
    let seed = worst.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    Some(format!(
        "max {} {} in {}{seed} ({}){cause}",
        micros_text(Nanos(worst.latency)),
        cell.timebase().format_unit("µs"),
        escape_unsafe(&cell.name),
        escape_unsafe(&worst.series),
    ))
}

/// The command that repeats a cell and seed.
pub(crate) fn replay_command(directory: &str, cell: &CellDocument, seed: Option<u64>) -> String {
    let seed = seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    format!("punctual lab replay {} {}{seed}", escape_unsafe(directory), escape_unsafe(&cell.name))
}

/// The command that examines the worst sample.
pub fn to_do(lab: &LabDocument, directory: &str) -> Option<String> {
    let (cell, seed, _) = worst_cell(lab)?;
    let what = match cell.timebase() {
        Timebase::Virtual => "the worst sample, by instruction",
        _ => "the worst cell again, recorded",
    };
    Some(format!("{what}: {}", replay_command(directory, cell, seed.seed)))
}
