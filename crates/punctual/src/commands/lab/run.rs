//! `punctual lab run`: every cell of a lab file.

use super::report;
use crate::commands::printing;
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_core::Nanos;
use punctual_core::format::{count_with_noun, duration_text, escape_unsafe, rough_span_text};
use punctual_plan::lab::Seeds;
use punctual_report::{document, html};
use punctual_session::interrupts::SignalRequests;
use punctual_study::labs::boards;
use punctual_study::labs::collect;
use punctual_study::labs::directory::LabDirectory;
use punctual_study::labs::engine::CellRunner;
use punctual_study::labs::estimates::learn_durations;
use punctual_study::labs::exactly;
use punctual_study::labs::jobs::PlannedLab;
use punctual_study::labs::lane::RunLane;
use punctual_study::labs::request::{self, Overrides};
use punctual_study::labs::{schedule, slurm};
use punctual_study::targets::NOT_EXACT;
use std::path::PathBuf;

/// Run every cell of a lab file; finished runs are kept
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual lab run examples/lab-quick.toml\n  punctual lab \
                        run --plan examples/p2-lab.toml\n  punctual lab run examples/p2-lab.toml \
                        --seeds 1..10 --repeat 2 -j 4 --junit result.xml\n  punctual lab run \
                        examples/lab-quick.toml -o /shared/quick --on slurm\n  punctual lab run \
                        boards.toml --on ssh:root@board1,root@board2\n\nTo continue a lab \
                        that was interrupted or killed, run the same command again.\n\nExit \
                        codes: 0 done, every requirement met; 1 a cell failed, repetitions \
                        differ, or interrupted; 2 the request was invalid, nothing was started; 3 \
                        a requirement is not met; 4 the evidence does not decide a requirement.")]
pub struct LabRunArgs {
    /// The lab file (docs/lab.md)
    file: PathBuf,
    /// List the cells with their estimated time, and start nothing
    #[arg(long)]
    plan: bool,
    /// The lab's directory; an existing lab is continued [default: punctual-lab-<name>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Run each cell with each of these seeds: 1..100, 7, 1..10,42 (overrides seeds of the file)
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<Seeds>,
    /// Number of runs of each cell and seed; in virtual time they must be identical (overrides
    /// repeat of the file)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Run the cells on other machines (docs/fleet.md): slurm: job arrays, the lab's directory is
    /// shared; ssh:[USER@]HOST[:PORT],…: one run at a time on each host; none: start nothing,
    /// others run `lab cell`, and what is there is collected
    #[arg(long, value_name = "MACHINES")]
    on: Option<CellRunner>,
    /// Number of concurrent runs in virtual time [default: parallel of the file, else one per CPU];
    /// with --on slurm, of concurrent tasks
    #[arg(
        long,
        short = 'j',
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    jobs: Option<u16>,
    /// Trace every instruction of each cell, and explain its worst samples by function (cells in
    /// virtual time on x86-64; docs/exact.md)
    #[arg(long)]
    exact: bool,
    /// Do not replay the worst run of each cell in virtual time to explain its worst sample by
    /// function (replays are started for a fifth of the time that the lab took)
    #[arg(long, conflicts_with = "exact")]
    no_exact: bool,
    /// Also write the verdicts as JUnit XML to this file: one suite per cell, one case per
    /// requirement and series
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print lab.json at the end instead of tables
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// A lab file, with the options of `punctual run` that a lab supports.
pub struct LabFile {
    pub file: PathBuf,
    pub plan: bool,
    pub output: Option<PathBuf>,
    pub repeat: Option<u32>,
    pub exact: bool,
    pub junit: Option<PathBuf>,
    pub json: bool,
    pub quiet: bool,
}

impl From<LabFile> for LabRunArgs {
    fn from(asked: LabFile) -> LabRunArgs {
        let LabFile { file, plan, output, repeat, exact, junit, json, quiet } = asked;
        LabRunArgs {
            file,
            plan,
            output,
            seeds: None,
            repeat,
            on: None,
            jobs: None,
            exact,
            no_exact: false,
            junit,
            json,
            quiet,
        }
    }
}

/// Reads the lab file, plans, runs and prints the results.
pub fn run(args: LabRunArgs) -> Ending {
    let lab = request::read_lab(&args.file)?;
    let overrides = Overrides {
        seeds: args.seeds.clone(),
        repeat: args.repeat,
        parallel: args.jobs.map(usize::from),
        exact: args.exact,
        budget: None,
        elsewhere: args.on.is_some(),
        engine: args.on.clone(),
    };
    let mut planned = PlannedLab::from_lab(lab, &overrides)?;
    let elsewhere = planned.cells.iter().find(|cell| cell.lane != RunLane::Virtual);
    if let Some(cell) = elsewhere.filter(|_| args.exact) {
        return Err(Failure::refused(format!(
            "cell {}: {NOT_EXACT}",
            escape_unsafe(&cell.cell.name)
        )));
    }
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("punctual-lab-{}", planned.lab.name)));
    learn_durations(&mut planned, &path);
    if args.plan {
        output::print_stdout(&format_plan(&planned))?;
        return Ok(Exit::Done);
    }
    let interrupts = SignalRequests::listen()?;
    let directory = LabDirectory::open(&path)?;
    directory.write_inputs(&planned)?;
    let jobs = planned.all_jobs();
    if !path.join(punctual_bundle::lab::FILE).exists() {
        directory.write(&collect::nothing_yet(&planned, &jobs, &directory)?)?;
    }
    let messages = output::stderr_messages(args.quiet);
    let ran = match &args.on {
        Some(CellRunner::None) => collect::what_is_there(&planned, &jobs, &directory),
        Some(CellRunner::Slurm) => {
            slurm::run_jobs(&planned, &jobs, &directory, &interrupts, messages)?
        }
        Some(CellRunner::Ssh(_)) | None => {
            directory.remove_leftovers(&planned);
            schedule::run_jobs(&planned, &jobs, &directory, &interrupts, messages)?
        }
    };
    let boards = (planned.has_boots() && !ran.interrupted)
        .then(|| boards::restore_boards(&planned, messages))
        .transpose()?;
    let mut document = collect::collect_document(&planned, &jobs, &ran, &directory)?;
    directory.write(&document)?;
    if !args.no_exact && args.on.is_none() && !ran.interrupted {
        let budget = exactly::replay_budget(&document, planned.parallel);
        exactly::explain_cells(&mut document, &path, budget, &interrupts, messages);
        directory.write(&document)?;
    }
    let mut outputs = Outputs::default();
    let page = html::BUILT.then(|| report::write(&document, &path, None));
    let page = page.and_then(|written| outputs.add(written));
    if let Some(file) = &args.junit {
        outputs.add(report::write_junit(&document, file));
    }
    let directory = path.display().to_string();
    let text = |options: &_| {
        document::build_lab_document(&document, &directory, &[]).to_terminal_text(options)
    };
    let places = [("lab", Some(path.as_path())), ("report", page.as_deref())];
    outputs.add(printing::print_document(&document, args.json, text, &places));
    for why in boards.into_iter().flatten() {
        let how = "`punctual lab restore` with the lab file tries it again";
        outputs.add::<()>(Err(Failure::failed(format!("not brought back: {why}\n{how}"))));
    }
    if ran.interrupted {
        let message = match planned.has_boots() {
            true => {
                "interrupted: run the same command again to continue, or bring the boards back by \
                 `punctual lab restore`"
            }
            false => "interrupted: run the same command again to continue",
        };
        outputs.add::<()>(Err(Failure::failed(message)));
        return outputs.into_ending(Exit::Done);
    }
    outputs.into_ending(document.to_exit())
}

/// The line of a plan on boots.
const BOOTS: &str = "boots           \
    each forgotten by the boot loader before it is made (`punctual boot status` there); a panic \
    falls\n                back by itself, a hang before user space needs a watchdog that the boot \
    loader starts, or\n                ";

/// The cells, and the total time.
fn format_plan(planned: &PlannedLab) -> String {
    let runs = planned.seeds.len() as u64 * u64::from(planned.repeat);
    let seeds = match planned.seeds.first() {
        Some(Some(_)) => format!("{} × ", count_with_noun(planned.seeds.len() as u64, "seed")),
        _ => String::new(),
    };
    let cells = planned.cells.len() as u64;
    let mut text = format!(
        "lab {}: {} × {seeds}{} = {}\n\n",
        escape_unsafe(&planned.lab.name),
        count_with_noun(cells, "cell"),
        count_with_noun(u64::from(planned.repeat), "repetition"),
        count_with_noun(cells * runs, "run")
    );
    let width = planned.cells.iter().map(|cell| cell.cell.name.len()).max().unwrap_or(0);
    let (mut alone, mut side_by_side, mut known) = (Nanos::ZERO, Nanos::ZERO, true);
    for (number, cell) in planned.cells.iter().enumerate() {
        let measures = cell.measures.map_or("unknown time".to_owned(), duration_text);
        text += &format!("  {:width$}  {}, measures {measures}\n", cell.cell.name, cell.place);
        match (planned.expected_duration(number), &cell.lane) {
            (None, _) => known = false,
            (Some(time), RunLane::Machine) => {
                alone += time * i64::try_from(runs).unwrap_or(i64::MAX)
            }
            (Some(time), _) => side_by_side += time * i64::try_from(runs).unwrap_or(i64::MAX),
        }
    }
    let together = planned.parallel.clamp(1, (cells * runs).max(1) as usize);
    let total = alone + Nanos(side_by_side.ns() / together as i64);
    let estimate = if known {
        format!("about {} ({})", rough_span_text(total), planned.basis_of_estimates())
    } else {
        "unknown: a cell has no duration".to_owned()
    };
    text += &format!("\nestimated time  {estimate}");
    if side_by_side > Nanos::ZERO {
        text += &format!(", {} side by side", count_with_noun(together as u64, "run"));
    }
    text.push('\n');
    if planned.has_boots() {
        text += BOOTS;
        let booted = planned.cells.iter().filter(|cell| cell.boot.is_some());
        let mut hosts = booted.flat_map(|cell| &cell.hosts);
        text += match hosts.all(|host| host.plan.power.is_some()) {
            true => "power_on of the file\n",
            false => "a reset by hand: the file has no power_on\n",
        };
    }
    for requirement in &planned.lab.requirements {
        let measure_name = requirement
            .measure
            .as_ref()
            .map_or("every series".to_owned(), |measure| escape_unsafe(measure));
        text += &format!("requires        {} of {measure_name}\n", requirement.requirement.value);
    }
    text
}
