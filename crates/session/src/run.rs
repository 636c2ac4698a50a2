//! A run from plan to bundle: prepare, phase after phase, end.

mod accounting;
mod beside;
pub mod calibration;
mod companion;
mod cooling;
mod counters;
mod ending;
mod entries;
mod evidence;
mod explaining;
mod fixed;
mod heat;
mod joining;
pub mod mapping;
mod measure;
mod metrics;
mod observed;
mod partition;
mod phase;
mod phase_run;
mod program;
mod relief;
mod series;
mod state;
mod wall_clock;
pub mod watcher;
mod work;

pub use ending::FinishedRun;
pub use entries::rows::{CpuRow, TopEntry};
pub use phase_run::{LoadCounts, PhaseRun, phase_views};
pub use program::AttachedTo;
pub use series::SeriesRun;

use crate::cycles::Cycles;
use crate::cycles::target::CycleTarget;
use crate::end::Further;
use crate::exit::Failure;
use crate::flight::{self, Flight};
use crate::interrupts::SignalRequests;
use crate::machine;
use crate::messages::Listener;
use crate::metrics::MetricsFile;
use crate::notify::ServiceManager;
use crate::recording::{Recording, RecordingWanted};
use crate::request::{self, Loaded};
use crate::saver::Saver;
use crate::unfinished::UnfinishedBundle;
use crate::violation::ViolationHook;
use calibration::{Recorders, Setup};
use companion::Companion;
use entries::EntriesRun;
use explaining::Explaining;
use heat::HeatWatch;
use metrics::{RunMetrics, SharedMetrics};
use punctual_bundle::{BundleError, BundleWriter};
use punctual_core::event::Group;
use punctual_core::{CpuSet, Fact, Finding, Severity};
use punctual_host::check;
use punctual_host::environment::{self, Environment};
use punctual_host::files::Root;
use punctual_measure::load::Guarded;
use punctual_measure::preparation;
use punctual_plan::{MeasurePlan, PhasePlan, Plan, Workload};
use punctual_record::{Backend, foreign_ids};
use punctual_sys::{memory, signals};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use state::Run;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use watcher::RunWatcher;

/// The inputs of a run besides its plan.
pub struct RunContext {
    /// The file for figures during measuring.
    pub metrics: Option<MetricsFile>,
    /// The run to continue, and the ones to compare with.
    pub further: Further,
    /// The attached program or CPUs; the plan is then of [`crate::attach`].
    pub attached: Option<AttachedTo>,
    /// How this build differs from a release.
    pub differs: Option<&'static str>,
    /// The listener for errors that are too late for a finding.
    pub messages: Listener,
}

/// A run without an end says so; one of a command ends with it.
fn without_end(plan: &Plan, attached: Option<&AttachedTo>) -> Option<&'static str> {
    let endless = !plan.phases.iter().all(PhasePlan::has_end);
    match attached.map(|attached| &attached.program) {
        _ if !endless => None,
        Some(Some(CycleTarget::Command { .. })) => None,
        Some(Some(_)) => Some("no duration is given: it lasts until the program ends, or Ctrl-C"),
        _ => Some("no duration is given: it lasts until Ctrl-C, which keeps all results"),
    }
}

/// Runs the plan and writes a bundle. On an error there is no bundle.
pub fn run_plan(
    plan: &Plan,
    loaded: &Loaded,
    context: RunContext,
    watcher: &mut dyn RunWatcher,
) -> Result<FinishedRun, Failure> {
    let seeded = plan.to_seeded();
    let files = Root::from_system();
    let interrupts = SignalRequests::listen()?;
    open_files(plan)?;
    watcher.show_preparation("checking the requirements of the experiment");
    rehearse_phases(plan)?;
    if let Some(line) = without_end(plan, context.attached.as_ref()) {
        context.messages.show_progress(line);
    }
    let origin = if context.attached.is_some() { "attach" } else { "run" };
    let mut writer =
        BundleWriter::create(&plan.output, &plan.name, origin).map_err(Failure::refused)?;
    // If nothing was started, nothing is left behind. Dropping a partition undoes it, at any early
    // return.
    let mut unfinished = UnfinishedBundle::from_directory(writer.directory());
    let fixed = fixed::HeldSettings::fix_settings(plan, context.messages)?;
    let make = |asked| partition::HeldPartition::create(asked, plan, context.messages);
    let (made, found) = plan.partition.as_ref().map(make).transpose()?.unzip();
    let partition = match made {
        Some(made) => Some(made),
        None if context.attached.is_some() => None,
        None => partition::HeldPartition::join_standing(plan, context.messages)?,
    };
    // An attachment has no experiment file.
    let file = context.attached.is_none().then_some(loaded);
    write_request(&mut writer, plan, file).map_err(Failure::failed)?;
    let gap = context.further.continuation.as_ref().map(|of| of.gap);
    gap.map(|gap| writer.set_gap(gap)).transpose().map_err(Failure::failed)?;
    let saver = Saver::start(&plan.controller_cpus)
        .map_err(|why| Failure::failed(format!("cannot start a thread: {why}")))?;
    let plan = &seeded;
    let mut run = Run {
        guard: guard_for(plan)?,
        attached: context.attached,
        plan,
        writer,
        saver,
        findings: found.unwrap_or_default(),
        unwritten: Vec::new(),
        partition,
        fixed,
        preparation: None,
        companions: Vec::new(),
        metrics: context
            .metrics
            .map(|file| Rc::new(RefCell::new(RunMetrics(file, plan.name.clone())))),
        interrupts,
        messages: context.messages,
    };
    watcher.show_preparation("reading the system configuration");
    let environment = capture_environment(&run, &files)?;
    if run.attached.is_none() {
        check_host(&mut run, &files, environment, context.differs)?;
    }
    calibrate_recording(&mut run, watcher).map_err(Failure::failed)?;
    if plan.record.is_some() || plan.explain.is_some() {
        watcher.show_preparation("starting the recorder");
    }
    let metrics = run.metrics.clone();
    run.companions = start_companions(&mut run, metrics)?;
    signals::prepare_waking()
        .map_err(|why| Failure::failed(format!("cannot install a signal handler: {why}")))?;

    let ran = phase::run_all(&mut run, watcher);

    run.preparation = None;
    let phases = ran.as_ref().map_or(&[][..], |(phases, _)| phases);
    let finished: Vec<_> =
        run.companions.drain(..).map(|companion| companion.finish(phases)).collect();
    let left = run.partition.take().and_then(partition::HeldPartition::undo);
    let left = left.into_iter().chain(run.fixed.take().and_then(fixed::HeldSettings::undo));
    memory::unlock_all();
    let (phases, outcome) = ran.map_err(Failure::refused)?;
    unfinished.keep();
    for of_companion in finished {
        run.findings.extend(of_companion.findings);
        run.unwritten.extend(of_companion.unwritten);
    }
    run.findings.extend(left);
    Ok(ending::end_run(run, phases, outcome, context.further))
}

fn write_request(
    writer: &mut BundleWriter,
    plan: &Plan,
    loaded: Option<&Loaded>,
) -> Result<(), BundleError> {
    let write = |of: &Loaded| writer.write_experiment(of.kept_as(), &of.bytes);
    loaded.map(write).transpose()?;
    writer.write_plan(&plan.to_toml())?;
    writer.set_machine(machine::machine_name())?;
    plan.published.iter().try_for_each(|published| writer.write_published(published))
}

/// Measures the cost of recording, if planned; the bundle has the result, or why there is none.
fn calibrate_recording(run: &mut Run, watcher: &mut dyn RunWatcher) -> Result<(), BundleError> {
    let wanted = match &run.attached {
        None => run.plan.calibration_decision(),
        Some(attached) if attached.program.is_none() => Fact::NotAsked,
        Some(_) if run.plan.calibrate == Some(true) => Fact::Known(()),
        Some(_) => Fact::Unavailable(calibration::NOT_ASKED_OF_A_PROGRAM.to_owned()),
    };
    let measured = match wanted {
        Fact::NotAsked => return Ok(()),
        Fact::Unavailable(why) => Fact::Unavailable(why),
        Fact::Known(()) => {
            watcher.show_preparation(calibration::PREPARING);
            let held_settings = preparation::prepare_process(false, run.plan.dma_latency.0, None);
            let placement = measure::PartitionPlacement(run.partition.as_ref());
            let directory = run.writer.directory();
            let setup = match run.attached {
                None => Setup::of_plan(run.plan, &placement, directory),
                Some(_) => request::online_cpus()
                    .ok()
                    .map(|cpus| Setup::with_cpu(cpus.first_cpu().unwrap_or(0), directory)),
            };
            let measured = match setup.zip(Recorders::of_plan(run.plan)) {
                Some((setup, recorders)) => calibration::measure_cost(&setup, recorders, &|| {
                    !run.interrupts.end_requested()
                }),
                None => Err("only test points are recorded".to_owned()),
            };
            drop(held_settings);
            measured.map_or_else(Fact::Unavailable, Fact::Known)
        }
    };
    run.writer.set_calibration(measured)
}

/// Starts everything that runs beside measuring: all of it is in force when this returns.
fn start_companions(
    run: &mut Run<'_>,
    metrics: Option<SharedMetrics>,
) -> Result<Vec<Box<dyn Companion>>, Failure> {
    let plan = run.plan;
    let Run { writer, saver, findings, attached, .. } = run;
    let (bundle, cpus) = (writer.directory(), &plan.controller_cpus);
    let backend = attached.as_ref().map_or(Backend::Auto, |attached| attached.backend);
    let by_backend = |wanted: RecordingWanted| RecordingWanted { backend, ..wanted };
    let record =
        |record| Recording::start(bundle, by_backend(RecordingWanted::from_plan(record, cpus)));
    let mut recording = plan.record.as_ref().map(record).transpose()?;
    let explain = plan.explain.as_ref().filter(|explain| explain.worst > 0);
    let mut flight = None;
    if let Some(explain) = explain {
        let online = request::online_cpus()?;
        let started = match backend {
            Backend::Tracefs => Err(Failure::refused("tracefs was requested")),
            _ => Flight::start(bundle, explain, online.clone(), cpus, saver),
        };
        match started {
            Ok(started) => flight = Some(started),
            // The events that the run records anyway suffice.
            Err(why) if foreign_ids().is_none() && records_switches(plan) => {
                let message = "the flight recorder is unavailable: the worst samples are explained \
                               from the events that the run records";
                findings.push(instead_of_flight(message.to_owned(), &why));
            }
            Err(why) if plan.record.is_none() && foreign_ids().is_none() => {
                let wanted =
                    RecordingWanted::instead_of_flight(explain, online, cpus, flight::ROOM.0);
                let started = Recording::start(bundle, by_backend(wanted));
                let Ok(started) = started else { return Err(why) };
                recording = Some(started);
                findings.push(recorded_instead(&why));
            }
            Err(_) if backend == Backend::Tracefs => {
                let reason =
                    "--explain with --backend tracefs needs sched among the events of --trace";
                return Err(Failure::refused(reason));
            }
            Err(why) => return Err(why),
        }
    }
    let accounting = accounting::AccountingState::start(plan, findings);
    let hook = |command: &String| ViolationHook::new(command.clone(), bundle, saver);
    let measured = plan.phases.iter().flat_map(|phase| &phase.measures);
    let measured = measured.fold(CpuSet::new(), |all, measure| all.union(&measure.cpus));
    // Windows and accounts are written before a command starts that may read them.
    let all_companions = [
        flight.map(Explaining::new).map(box_companion),
        recording.map(box_companion),
        accounting.map(box_companion),
        Some(box_companion(HeatWatch::with_cpus(&measured))),
        plan.on_violation.as_ref().map(hook).map(box_companion),
        ServiceManager::of_environment().map(box_companion),
        metrics.map(box_companion),
    ];
    Ok(all_companions.into_iter().flatten().collect())
}

fn records_switches(plan: &Plan) -> bool {
    plan.record.as_ref().is_some_and(|record| record.events.contains(&Group::Sched))
}

/// The finding for a run whose worst samples are explained from a recording.
fn recorded_instead(why: &Failure) -> Finding {
    let message = format!(
        "the flight recorder is unavailable: all kernel events are recorded, of which the newest \
         {} are kept; the worst samples among these are explained",
        flight::ROOM
    );
    instead_of_flight(message, why)
}

fn instead_of_flight(message: String, why: &Failure) -> Finding {
    let rendered = why.render(false);
    let first_line = rendered.lines().next().unwrap_or_default();
    Finding::new("explained-from-recording", Severity::Advice, "explain", message)
        .with_evidence(first_line.strip_prefix(flight::NOT_EXPLAINED).unwrap_or(first_line))
}

fn box_companion<C: Companion + 'static>(companion: C) -> Box<dyn Companion> {
    Box::new(companion)
}

/// Files that a run holds open at least, and for each thread: its log, its checkpoint, its lines,
/// and the files that it works on.
const FILES: u64 = 32;
const FILES_OF_THREAD: u64 = 5;

/// Raises the limit of open files to the need of the plan, or nothing starts: a bundle would be
/// written in part.
fn open_files(plan: &Plan) -> Result<(), Failure> {
    let threads = plan
        .phases
        .iter()
        .map(|phase| phase.measures.iter().map(|measure| measure.threads.len()).sum());
    let needed = FILES + FILES_OF_THREAD * threads.max().unwrap_or(0_usize) as u64;
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |most: Option<u64>| most.is_none_or(|most| most >= needed);
    // Only if needed: programs that we start inherit it.
    let raised = || setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).is_ok();
    if is_enough(limit.current) || is_enough(limit.maximum) && raised() {
        return Ok(());
    }
    let file_limit = limit.current.unwrap_or(u64::MAX);
    Err(Failure::refused(format!(
        "this run needs {needed} open files and the limit is {file_limit}: raise it (ulimit -n)"
    )))
}

/// Acquires and releases the resources of later phases before the first one begins: a run that must
/// fail later is refused. Those of the first phase are acquired when it is prepared, before
/// anything starts.
fn rehearse_phases(plan: &Plan) -> Result<(), Failure> {
    for phase in plan.phases.iter().skip(1) {
        let of_threads = phase.measures.iter().filter(|measure| measure.workload.has_threads());
        let orders =
            of_threads.map(|measure| mapping::measure_config(measure, 0, plan, &Arc::default()));
        // All at once, as in the phase: some resources are exclusive.
        let acquired: Result<Vec<_>, _> =
            orders.map(|order| measure::acquire_resources(&order)).collect();
        acquired.map_err(|why| Failure::refused(format!("phase {}: {why}", phase.name)))?;
        let is_program = |one: &MeasurePlan| matches!(one.workload, Workload::Program(_));
        if phase.measures.iter().any(is_program) {
            Cycles::check_support()?;
        }
        let is_entries = |one: &&MeasurePlan| matches!(one.workload, Workload::Entries(_));
        phase.measures.iter().filter(is_entries).try_for_each(EntriesRun::check_support)?;
    }
    Ok(())
}

fn guard_for(plan: &Plan) -> Result<Option<Guarded>, Failure> {
    let starts = |measure: &MeasurePlan| match &measure.workload {
        Workload::Program(program) => program.command.is_some(),
        _ => false,
    };
    let loads = plan
        .phases
        .iter()
        .any(|phase| !phase.loads.is_empty() || phase.measures.iter().any(starts));
    loads.then(Guarded::start).transpose().map_err(Failure::failed)
}

/// Writes the environment into the bundle.
fn capture_environment(run: &Run, files: &Root) -> Result<Environment, Failure> {
    let environment = environment::capture_environment(files);
    run.writer.write_document("environment", &environment).map_err(Failure::failed)?;
    Ok(environment)
}

/// Writes the results of the check rules into the bundle; warnings become findings.
fn check_host(
    run: &mut Run,
    files: &Root,
    environment: Environment,
    differs: Option<&str>,
) -> Result<(), Failure> {
    let measured = run.plan.phases.iter().flat_map(|phase| &phase.measures);
    let measured = measured.fold(CpuSet::new(), |all, measure| all.union(&measure.cpus));
    let cpus = run.partition.as_ref().map_or(measured, |partition| partition.cpus().clone());
    // A run on all CPUs has reserved none.
    let everywhere =
        environment.topology.online.known_value().is_none_or(|online| online.is_subset(&cpus));
    let output = std::path::absolute(run.writer.directory())
        .unwrap_or_else(|_| run.writer.directory().to_owned());
    let context =
        check::Context::from_environment(files, environment, (!everywhere).then_some(cpus))
            .with_output(output.to_string_lossy());
    let results = check::evaluate_all(&context);
    run.writer
        .write_document("check", &serde_json::json!({ "rules": &results }))
        .map_err(Failure::failed)?;
    run.findings.extend(check::to_findings(&results));
    run.findings.extend(differs.map(differs_from_what_ships));
    run.writer.write_findings(&run.findings).map_err(Failure::failed)
}

/// The finding for a build that differs from a release.
fn differs_from_what_ships(differs: &str) -> Finding {
    let message = format!(
        "this is not a release build of punctual ({differs}): the measuring code is optimized the \
         same, but collecting and showing the results needs more memory and CPU time"
    );
    Finding::new("not-a-release-build", Severity::Note, "system", message).with_remedy("./x build")
}
