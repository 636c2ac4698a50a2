//! After a lab: explains the worst sample of each cell in virtual time by replaying its run, as
//! long as the budget lasts: first cells that failed their requirement, of these the worst one.

use super::worst;
use crate::exact::{self, HowMuch};
use punctual_bundle::lab::{CellDocument, LabDocument, WorstCellSample};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::{Bundle, Member, Timebase};
use punctual_core::Nanos;
use punctual_core::format::{escape_unsafe, micros_text};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::{Listener, Silent, display_path};
use std::path::Path;
use std::time::{Duration, Instant};

/// The fraction of a lab's duration in which replays are started.
const PART: u32 = 5;

/// How long replays of a lab may be started.
pub fn replay_budget(lab: &LabDocument, parallel: usize) -> Duration {
    let runs = lab.cells.iter().flat_map(|cell| &cell.seeds).flat_map(|seed| &seed.runs);
    let took = runs.filter_map(|run| run.took).fold(0i64, i64::saturating_add);
    let took = Duration::from_nanos(u64::try_from(took).unwrap_or(0));
    took / u32::try_from(parallel.max(1)).unwrap_or(u32::MAX) / PART
}

/// The cells whose worst sample can be explained by instruction and is not yet: those that failed
/// their requirement first, then by the latency.
fn cells_to_explain(lab: &LabDocument) -> Vec<usize> {
    let wants = |cell: &CellDocument| {
        cell.timebase() == Timebase::Virtual && cell.worst.as_ref().is_some_and(|one| !one.exact)
    };
    let mut wanted_cells: Vec<usize> =
        (0..lab.cells.len()).filter(|number| wants(&lab.cells[*number])).collect();
    wanted_cells.sort_by_key(|number| {
        let cell = &lab.cells[*number];
        let failed = cell.verdict == Some(VerdictWord::NotMet);
        std::cmp::Reverse((failed, cell.worst.as_ref().map(|worst| worst.latency)))
    });
    wanted_cells
}

/// Explains the worst samples of cells, and writes the findings into bundles and document.
pub fn explain_cells(
    lab: &mut LabDocument,
    directory: &Path,
    budget: Duration,
    interrupts: &SignalRequests,
    messages: Listener,
) {
    let began = Instant::now();
    let cells = cells_to_explain(lab);
    for (place, number) in cells.iter().enumerate() {
        let cell = &mut lab.cells[*number];
        let Some(found) = cell.worst.as_mut() else { continue };
        if interrupts.end_requested() {
            return;
        }
        if began.elapsed() >= budget && place > 0 {
            let bundle = display_path(&directory.join(&found.bundle));
            let command = format!("punctual explain {bundle} --exact");
            found.unexplained = Some(format!("the time for replays was over: {command}"));
            continue;
        }
        let latency = micros_text(Nanos(found.latency));
        let name = escape_unsafe(&cell.name);
        messages.show_progress(&format!(
            "exact explanation {} of {}: {latency} virtual µs of {name}",
            place + 1,
            cells.len()
        ));
        match explain_sample(directory, found) {
            Ok(Some(explained)) => *found = explained,
            Ok(None) => {}
            Err(failure) => found.unexplained = Some(first_error_line(&failure)),
        }
    }
}

fn explain_sample(
    directory: &Path,
    found: &WorstCellSample,
) -> Result<Option<WorstCellSample>, Failure> {
    let member = Member::from_root(directory).join(&found.bundle);
    if !member.is_directory() {
        return Err(Failure::refused("its bundle is gone"));
    }
    let bundle = Bundle::open(member.path()).map_err(Failure::failed)?;
    exact::explain_bundle(&bundle, HowMuch { worst: exact::WORST, lines: false }, &Silent)?;
    let bundle = Bundle::open(member.path()).map_err(Failure::failed)?;
    Ok(worst::worst_sample(&bundle, &found.bundle, found.seed))
}

/// The first line of the error.
fn first_error_line(failure: &Failure) -> String {
    failure.render(false).lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn quick() -> LabDocument {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/labs/quick");
        let mut lab = punctual_bundle::lab::read(&directory).expect("a lab");
        worst::refresh_worst(&mut lab, &directory);
        lab
    }

    #[test]
    fn replays_get_a_fifth_of_the_duration_of_the_lab() {
        // The runs took 39.67 s and 46.70 s, concurrently.
        let seconds = replay_budget(&quick(), 2).as_secs_f64();
        assert!(
            (seconds - (39.671_730_679 + 46.699_868_990) / 2.0 / 5.0).abs() < 1e-6,
            "{seconds}"
        );
    }

    #[test]
    fn cells_that_failed_are_replayed_first_then_the_worst() {
        let mut lab = quick();
        assert_eq!(cells_to_explain(&lab), [1], "the other was explained");
        lab.cells[0].worst.as_mut().expect("a sample").exact = false;
        lab.cells.iter_mut().for_each(|cell| cell.verdict = None);
        assert_eq!(cells_to_explain(&lab), [0, 1], "by the latency");
        lab.cells[1].verdict = Some(VerdictWord::NotMet);
        assert_eq!(cells_to_explain(&lab), [1, 0], "it failed, although it is shorter");
        lab.cells[1].verdict = Some(VerdictWord::Met);
        assert_eq!(cells_to_explain(&lab), [0, 1]);
        lab.cells[1].target = "this machine".to_owned();
        assert_eq!(cells_to_explain(&lab), [0]);
    }
}
