//! The request of a tuning, as a plan: the experiment of its blocks, and the settings.

use super::boot;
use super::directory::TuningSpec;
use super::offer::{Offer, SettingChoice, offer_settings};
use punctual_core::format::{count_with_noun, span_text};
use punctual_core::{CpuSet, Nanos};
use punctual_host::files::{Files, Root};
use punctual_host::isolate::parse_cpus_on;
use punctual_plan::overrides;
use punctual_plan::text::quote_toml;
use punctual_plan::{Plan, TargetPlan, VmPlan};
use punctual_session::command;
use punctual_session::exit::Failure;
use punctual_session::messages::Listener;
use punctual_session::request::{self, online_cpus};
use punctual_stats::tune::{TuneFigure, least_time};
use std::path::{Path, PathBuf};

/// The default length of a program's block.
const BLOCK: Nanos = Nanos::from_secs(10);

/// The measured workload of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockSource {
    File(PathBuf),
    /// The cycles of a program, which is started anew for each block.
    Command(Vec<String>),
}

/// The request.
#[derive(Clone, PartialEq, Debug)]
pub struct TuneRequest {
    pub source: BlockSource,
    /// The figure, as `p99.9`, or a requirement on it.
    pub figure: String,
    /// The target machine, as `vm:6.12-rt`; by default the experiment's.
    pub target: Option<String>,
    pub choice: SettingChoice,
    /// The CPUs that settings are to keep free; by default the measured ones.
    pub cpus: Option<String>,
    /// The time limit.
    pub within: Nanos,
    /// The length of a block; by default the experiment's.
    pub block: Option<Nanos>,
    pub seed: u64,
}

/// A tuning with every choice made.
pub struct PlannedTuning {
    /// The experiment of a block.
    pub experiment: Vec<u8>,
    pub spec: TuningSpec,
}

/// Resolves the request. Nothing is changed.
///
/// # Errors
/// The errors in the request.
pub fn plan_tuning(options: &TuneRequest, messages: Listener) -> Result<PlannedTuning, Failure> {
    let figure = TuneFigure::parse(&options.figure)
        .map_err(|why| Failure::refused(format!("--require: {why}")))?;
    let tuned_experiment = experiment_request(options)?;
    let guest = guest_of_request(&tuned_experiment)?;
    let files = Root::from_system();
    let (_, plan) = match &guest {
        None => tuned_experiment.resolve(messages)?,
        Some(vm) => {
            let all_cpus = guest_cpus(vm);
            tuned_experiment.resolve_for(all_cpus.clone(), all_cpus, vm.memory.0, messages)?
        }
    };
    let block = plan.estimated_time().ok_or_else(|| {
        Failure::refused(
            "a block has no end: give --block, or a duration in the experiment, such as 10s",
        )
    })?;
    let online = cpus_on(guest.as_ref())?;
    let cpus = match &options.cpus {
        Some(text) => Some(cpus_of(&files, text, guest.as_ref())?),
        None => measured_alone(&plan, &online),
    };
    let mut offered = match &guest {
        None => offer_settings(&files, cpus.as_ref()),
        Some(_) => boot::offer_parameters(cpus.as_ref(), &online),
    };
    offered.apply_choice(&options.choice)?;
    let has_bound = options.figure.contains(['<', '>', '=']);
    let spec = TuningSpec {
        version: TuningSpec::current_version(),
        experiment: plan.name.clone(),
        figure: figure.text().to_owned(),
        require: has_bound.then(|| options.figure.clone()),
        within: options.within,
        block,
        seed: options.seed,
        kernel: match &guest {
            None => files.read_trimmed("/proc/sys/kernel/osrelease").ok(),
            // The guest's release is known once it has booted.
            Some(_) => None,
        },
        guest: guest.as_ref().map(boot::machine_name),
        settings: offered.settings,
        left_out: offered.left_out,
    };
    check_time(&spec)?;
    // The file with the target of the command line, resolved for it.
    let experiment =
        if spec.guest.is_some() { plan.to_toml().into_bytes() } else { tuned_experiment.bytes };
    Ok(PlannedTuning { experiment, spec })
}

/// Refuses a duration in which nothing can be tried.
pub(super) fn check_time(spec: &TuningSpec) -> Result<(), Failure> {
    let needed_time = least_time(&spec.tuning_options(), spec.settings.len());
    if spec.settings.is_empty() || spec.within >= needed_time {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "in {} nothing can be tried: {} in blocks of {} need {} at least; give that --duration, \
         shorter blocks (--block), or fewer settings (--only)",
        span_text(spec.within),
        count_with_noun(spec.settings.len() as u64, "setting"),
        span_text(spec.block),
        span_text(needed_time),
    )))
}

/// All settings that could be tried, for any workload.
///
/// # Errors
/// The errors in the CPUs or the target.
pub fn offer_all_settings(cpus: Option<&str>, target: Option<&str>) -> Result<Offer, Failure> {
    let files = Root::from_system();
    let mut target_request =
        request::ExperimentRequest::of_plain_text(Path::new("--list"), Vec::new());
    target_request.target = target.map(str::to_owned);
    let guest = guest_of_request(&target_request)?;
    let cpus = cpus.map(|text| cpus_of(&files, text, guest.as_ref())).transpose()?;
    Ok(match &guest {
        None => offer_settings(&files, cpus.as_ref()),
        Some(vm) => boot::offer_parameters(cpus.as_ref(), &guest_cpus(vm)),
    })
}

/// The target virtual machine, if it is one.
fn guest_of_request(asked: &request::ExperimentRequest) -> Result<Option<VmPlan>, Failure> {
    match asked.target_plan()? {
        TargetPlan::Host => Ok(None),
        TargetPlan::Vm(vm) => Ok(Some(vm)),
        TargetPlan::Ssh(_) => Err(Failure::refused(
            "tune changes the settings of this machine, or boots virtual machines: over ssh, run \
             `punctual tune` there",
        )),
    }
}

fn cpus_of(files: &dyn Files, text: &str, guest: Option<&VmPlan>) -> Result<CpuSet, Failure> {
    let cpus = match guest {
        None => parse_cpus_on(files, text).map_err(|why| why.to_string()),
        Some(_) => text.parse::<CpuSet>().map_err(|why| why.to_string()),
    };
    cpus.map_err(|why| Failure::refused(format!("--cpus: {why}")))
}

fn cpus_on(guest: Option<&VmPlan>) -> Result<CpuSet, Failure> {
    guest.map_or_else(online_cpus, |vm| Ok(guest_cpus(vm)))
}

fn experiment_request(options: &TuneRequest) -> Result<request::ExperimentRequest, Failure> {
    let (path, bytes, usual) = match &options.source {
        BlockSource::File(path) if path.extension().is_some_and(|ending| ending == "cfg") => {
            return Err(Failure::refused(
                "tune reads experiments in TOML: convert this one with `punctual convert`",
            ));
        }
        BlockSource::File(path) => (path.clone(), request::read(path)?, None),
        BlockSource::Command(words) => {
            let path = PathBuf::from(format!("{}.toml", command::bundle_name(words)));
            (path, of_command(words)?.into_bytes(), Some(BLOCK))
        }
    };
    let mut block_request = request::ExperimentRequest::of_plain_text(&path, bytes);
    block_request.target = options.target.clone();
    if let Some(block) = options.block.or(usual) {
        let duration = ("duration".to_owned(), quote_toml(&block.to_string()));
        block_request.bytes =
            overrides::apply_overrides(&block_request.path, &block_request.bytes, &[duration])
                .map_err(Failure::refused)?;
    }
    Ok(block_request)
}

/// An experiment of a program under its normal conditions: without a request on idle states.
fn of_command(words: &[String]) -> Result<String, Failure> {
    let line = shell_words::join(make_absolute(words.to_vec())?);
    Ok(format!(
        "[experiment]\ndma_latency = \"leave\"\n\n[[measure]]\nkind = \"program\"\ncommand = {}\n",
        quote_toml(&line)
    ))
}

/// A command line whose program is found even if the tuning is resumed in another directory.
fn make_absolute(mut words: Vec<String>) -> Result<Vec<String>, Failure> {
    let program = command::find_command(&words)?;
    if let (Some(program), Some(first)) = (program, words.first_mut())
        && first.contains('/')
    {
        let whole = std::path::absolute(program).map_err(Failure::failed)?;
        *first = whole.to_string_lossy().into_owned();
    }
    Ok(words)
}

/// The measured CPUs, if others are left beside them.
fn measured_alone(plan: &Plan, online: &CpuSet) -> Option<CpuSet> {
    let measures = plan.phases.iter().flat_map(|phase| &phase.measures);
    let measured = measures.fold(CpuSet::new(), |all, measure| all.union(&measure.cpus));
    let leaves_some = !online.difference(&measured).is_empty();
    (leaves_some && !measured.is_empty()).then_some(measured)
}

fn guest_cpus(vm: &VmPlan) -> CpuSet {
    (0..vm.cpus as usize).collect()
}
