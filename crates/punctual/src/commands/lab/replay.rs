//! `punctual lab replay`: the worst sample of a cell of a lab: in virtual time the very same,
//! replayed from the stored files of its run; elsewhere another run, with recording enabled.

use super::report::member_inside;
use crate::commands::bundle::show_options_of;
use crate::commands::explain::exactly_of;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_bundle::lab::{self, CellDocument, SeedDocument};
use punctual_bundle::{Bundle, Timebase};
use punctual_core::Nanos;
use punctual_core::format::{escape_unsafe, micros_text};
use punctual_report::terminal;
use punctual_session::interrupts::{SignalRequests, interruption_failure};
use punctual_session::messages::display_path;
use punctual_study::exact::{self, HowMuch};
use punctual_study::process::{Process, own_run};
use punctual_study::targets::NOT_EXACT;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// The option of `punctual run`.
const EXACT: &str = "--exact";

/// Show what delayed the worst sample of a cell of a lab
///
/// In virtual time this is the very sample of the lab: its run is replayed from the files that were
/// kept of it, with every instruction traced. In real time no run can be repeated: the cell is run
/// again with recording enabled.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual lab replay punctual-lab-p2 \
                        6.1_voluntary_loaded\n  punctual lab replay punctual-lab-p2 \
                        6.1_voluntary_loaded --seed 7\n  punctual lab replay \
                        punctual-lab-p2 6.1_voluntary_loaded --seed 7 --plain\n  punctual lab \
                        replay punctual-lab-p2 6.1_voluntary_loaded --record --output \
                        recorded\n\nWithout --seed, the worst seed is used. --plain, --exact and \
                        --record run the experiment again, into a new bundle; in virtual time the \
                        samples must be identical, but with --record, whose recorder is another \
                        timeline.\n\nExit codes: 0 done; 1 the run failed, or with --plain in \
                        virtual time the samples differ; 2 the request was invalid; 4 the samples \
                        of the replay differ.")]
pub struct LabReplayArgs {
    /// The lab's directory
    #[arg(value_name = "LAB")]
    directory: PathBuf,
    /// The cell: the name of its directory
    #[arg(value_name = "CELL")]
    cell: String,
    /// The seed [default: the worst]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run the experiment again, into this directory, which must not exist [default, where it is
    /// run: replay-<cell>-<time>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Run it again without recording
    #[arg(long, conflicts_with_all = ["exact", "record"])]
    plain: bool,
    /// Run it again in virtual time, trace every instruction, and explain the worst samples by
    /// function (docs/exact.md)
    #[arg(long, conflicts_with = "record")]
    exact: bool,
    /// Run it again with recording: in virtual time its instructions make another timeline, whose
    /// worst sample is another
    #[arg(long)]
    record: bool,
}

/// Finds the cell, runs it again and compares.
pub fn run(args: LabReplayArgs) -> Ending {
    let document = lab::read(&args.directory).map_err(Failure::refused)?;
    let cell = document.cells.iter().find(|cell| cell.name == args.cell).ok_or_else(|| {
        let names: Vec<&str> = document.cells.iter().map(|cell| cell.name.as_str()).collect();
        Failure::refused(format!(
            "this lab has no cell `{}`; it has {}",
            args.cell,
            names.join(", ")
        ))
    })?;
    if args.exact && cell.timebase() != Timebase::Virtual {
        return Err(Failure::refused(NOT_EXACT));
    }
    let seed = select_seed(cell, args.seed)?;
    let is_virtual = cell.timebase() == Timebase::Virtual;
    let same = is_virtual && !(args.plain || args.exact || args.record);
    if let Some(kept) = kept_run(&args, seed).filter(|_| same && args.output.is_none()) {
        return shown_again(&args, seed, &kept);
    }
    let outside =
        || Failure::refused("lab.json names files that the lab's directory does not contain");
    let experiment = member_inside(&args.directory, &seed.experiment).ok_or_else(outside)?;
    experiment
        .open()
        .map_err(|why| Failure::refused(format!("cannot read {}: {why}", experiment.display())))?;
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("replay-{}-{stamp}", escape_unsafe(&cell.name))));
    let exact = args.exact || same;
    let how = match (args.plain, exact) {
        (true, _) => None,
        (_, true) => Some(EXACT),
        _ => Some("--explain"),
    };
    let status = run_replay(experiment.path(), &output, how)?;
    let bundle = Bundle::open(&output).map_err(|why| {
        let message = format!("the run left no bundle ({status}): {why}");
        match status.code() {
            Some(2) => Failure::refused(message),
            _ => Failure::failed(message),
        }
    })?;
    compare_with_lab(&args, exact, cell, seed, &bundle)
}

/// The first run of a seed, if it can be replayed from its stored files.
fn kept_run(args: &LabReplayArgs, seed: &SeedDocument) -> Option<Bundle> {
    let name = seed.runs.first()?.bundle.as_ref()?;
    let bundle = Bundle::open(member_inside(&args.directory, name)?.path()).ok()?;
    bundle.manifest.target.as_ref()?.made_of.is_some().then_some(bundle)
}

/// Shows the delays of that run's worst samples: from its bundle if explained before, else by a
/// replay.
fn shown_again(args: &LabReplayArgs, seed: &SeedDocument, kept: &Bundle) -> Ending {
    let recorded = seed.runs.first().and_then(|run| run.digest.as_deref());
    let kept_explanation: Option<ExactDocument> =
        kept.read_document(EXACT_MEMBER).unwrap_or_default();
    let max = seed.series.iter().filter_map(|series| series.max).max();
    let has_worst = |known: &ExactDocument| {
        recorded == Some(known.digest.as_str())
            && known.worst.iter().any(|one| Some(one.latency_ns) == max)
    };
    let wanted = HowMuch { worst: exact::WORST, lines: false };
    let document = match kept_explanation.filter(has_worst) {
        Some(known) => Ok(known),
        None => exact::explain_bundle(kept, wanted, output::stderr_messages(false)),
    };
    let document = document.map_err(|failure| Failure {
        exit: failure.exit,
        ..Failure::failed(format!(
            "{}\nhelp: `punctual lab replay {} {} --exact` runs the experiment again",
            failure.render(false),
            escape_unsafe(&args.directory.display().to_string()),
            escape_unsafe(&args.cell)
        ))
    })?;
    if recorded != Some(document.digest.as_str()) {
        return Err(Failure::no_evidence(format!(
            "the explanation is of other samples (digest {}) than the lab's run (digest {})",
            escape_unsafe(&document.digest),
            escape_unsafe(recorded.unwrap_or("unknown"))
        )));
    }
    output::print_stdout(&terminal::show_exact_samples(
        &document,
        exact::SHOWN_SAMPLES,
        &show_options_of(kept),
    ))?;
    let worst = document.worst.iter().map(|one| one.latency_ns).max();
    let worst =
        worst.map_or("nothing".to_owned(), |ns| format!("{} virtual µs", micros_text(Nanos(ns))));
    let directory = display_path(&kept.directory);
    output::print_stdout(&format!(
        "\nthe samples are those of the lab: worst {worst}\nbundle  {directory}\n"
    ))?;
    Ok(Exit::Done)
}

/// The requested seed, or the worst.
fn select_seed(cell: &CellDocument, wanted: Option<u64>) -> Result<&SeedDocument, Failure> {
    let worst = || {
        let max = |seed: &&SeedDocument| seed.series.iter().filter_map(|series| series.max).max();
        cell.seeds.iter().rev().max_by_key(max)
    };
    match wanted {
        None => worst().ok_or_else(|| Failure::refused("this cell has no run")),
        Some(_) => cell.seeds.iter().find(|seed| seed.seed == wanted).ok_or_else(|| {
            let seeds: Vec<String> = cell
                .seeds
                .iter()
                .filter_map(|seed| seed.seed)
                .map(|seed| seed.to_string())
                .collect();
            let known_seeds = if seeds.is_empty() { "none".to_owned() } else { seeds.join(", ") };
            Failure::refused(format!("this cell was not run with that seed; it has {known_seeds}"))
        }),
    }
}

fn run_replay(experiment: &Path, output: &Path, how: Option<&str>) -> Result<ExitStatus, Failure> {
    let interrupts = SignalRequests::listen()?;
    let mut command = own_run(output, experiment);
    command.args(how);
    // The explanation is shown once it is known to be that of the lab's run.
    if how == Some(EXACT) {
        command.stdout(Stdio::null());
    }
    let mut process = Process::start_run(command, None, None)?;
    let status = process.wait_for_end(&|| interrupts.end_requested(), Duration::MAX)?;
    status.filter(|_| !process.was_asked()).ok_or_else(interruption_failure)
}

/// The explanation, if it is that of the lab's run, whose bundle is `kept`.
fn explain_replay(
    recorded: Option<&str>,
    replay: &Bundle,
    (before, after): (&str, &str),
    kept: Option<&str>,
) -> Ending {
    let digest = punctual_stats::summarize_bundle(replay).digest;
    if recorded.is_none() || recorded != digest.as_deref() {
        let kept = kept.map_or_else(String::new, |kept| {
            format!("; `punctual explain {kept} --exact` replays it with what was kept of it")
        });
        return Err(Failure::no_evidence(format!(
            "the replay gave different samples (digest {}, worst {after}) from the lab's run \
             (digest {}, worst {before}): its explanation does not apply to that run.\nThis \
             program, kernel, QEMU or a load may be another one than then{kept}",
            digest.as_deref().unwrap_or("unknown"),
            recorded.unwrap_or("unknown")
        )));
    }
    let explanation = exactly_of(&replay.directory)?;
    let directory = display_path(&replay.directory);
    if explanation.is_empty() {
        return Err(Failure::failed(format!("no instruction of {directory} was traced")));
    }
    output::print_stdout(&explanation)?;
    output::print_stdout(&format!(
        "\nall samples are identical to those in the lab: worst {after}\nbundle  {directory}\n"
    ))?;
    Ok(Exit::Done)
}

/// Reports whether the timeline is the same, and how to see more.
fn compare_with_lab(
    args: &LabReplayArgs,
    traced_exactly: bool,
    cell: &CellDocument,
    seed: &SeedDocument,
    replay: &Bundle,
) -> Ending {
    let recorded = seed.runs.first().and_then(|run| run.digest.as_deref());
    let same = recorded.is_some()
        && recorded == punctual_stats::summarize_bundle(replay).digest.as_deref();
    let exact = cell.timebase() == Timebase::Virtual;
    let before = seed.series.iter().filter_map(|series| series.max).max();
    let after = replay.all_series().filter_map(|(_, series)| series.state.data.max).max();
    let unit = cell.timebase().format_unit("µs");
    let worst = |max: Option<Nanos>| {
        max.map_or("nothing".to_owned(), |max| format!("{} {unit}", micros_text(max)))
    };
    let (before, after) = (worst(before.map(Nanos)), worst(after));
    if traced_exactly {
        let kept = seed.runs.first().and_then(|run| run.bundle.as_deref());
        let kept = kept.map(|bundle| display_path(&args.directory.join(bundle)));
        return explain_replay(recorded, replay, (&before, &after), kept.as_deref());
    }
    let words = match (same, exact, args.plain) {
        (true, _, true) => format!("identical to the last sample: worst {after}"),
        (true, _, false) => {
            format!(
                "recording did not change the timeline: all samples are identical, worst {after}"
            )
        }
        (false, true, true) => format!("NOT identical: worst {before} in the lab, {after} now"),
        (false, true, false) => format!(
            "recording changed the timeline (it adds instructions to the guest): worst {before} \
             in the lab, {after} now; the explanation applies to the worst sample of this run"
        ),
        (false, false, _) => {
            format!("runs in real time are not repeatable: worst {before} in the lab, {after} now")
        }
    };
    let directory = display_path(&replay.directory);
    let explain =
        if args.plain { String::new() } else { format!("explain  punctual explain {directory}\n") };
    output::print_stdout(&format!("{words}\n\nbundle   {directory}\n{explain}"))?;
    Ok(if args.plain && exact && !same { Exit::Failed } else { Exit::Done })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn an_explanation_recorded_for_other_samples_is_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles/good");
        let bundle = Bundle::open(&path).expect("a bundle");
        let ended = |recorded| {
            let ended = explain_replay(recorded, &bundle, ("1 µs", "2 µs"), Some("lab/cells/a/r1"));
            ended.map_err(|failure| failure.exit).err()
        };
        assert_eq!(ended(Some("another")), Some(Exit::NoEvidence));
        assert_eq!(ended(None), Some(Exit::NoEvidence));
    }
}
