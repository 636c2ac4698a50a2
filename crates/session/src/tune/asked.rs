//! What is asked of a tuning, as a plan: the experiment of its blocks, and the settings.

use super::directory::Spec;
use super::offer::{Choice, offer};
use crate::command;
use crate::exit::Failure;
use crate::messages::Listener;
use crate::request::{self, online_cpus};
use punctual_analyze::tune::Figure;
use punctual_core::{CpuSet, Nanos};
use punctual_host::files::{Files, Root};
use punctual_host::isolate::parse_cpus_on;
use punctual_plan::overrides;
use punctual_plan::text::quoted;
use punctual_plan::{Plan, TargetPlan};
use std::path::PathBuf;

/// How long a block of a program measures where nothing is said.
const BLOCK: Nanos = Nanos::from_secs(10);

/// What a block measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// An experiment file.
    File(PathBuf),
    /// The cycles of a program, which is started anew for each block.
    Command(Vec<String>),
}

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// What a block measures.
    pub source: Source,
    /// The figure, as `p99.9`, or a requirement on it.
    pub figure: String,
    /// Which settings are wanted.
    pub choice: Choice,
    /// The CPUs that settings are to keep free; those that are measured where not given.
    pub cpus: Option<String>,
    /// How long it may take.
    pub within: Nanos,
    /// How long a block measures; as the experiment has it where not given.
    pub block: Option<Nanos>,
    /// The smallest effect that is to be found, as a factor.
    pub smallest: f64,
    /// Of the random order.
    pub seed: u64,
}

/// A tuning with everything decided.
pub struct Planned {
    /// The experiment of a block.
    pub experiment: Vec<u8>,
    /// The rest.
    pub spec: Spec,
}

/// Reads what is asked. Nothing is changed.
///
/// # Errors
/// What is wrong with it.
pub fn planned(options: &Options, messages: Listener) -> Result<Planned, Failure> {
    let figure = Figure::parse(&options.figure)
        .map_err(|why| Failure::refused(format!("--require: {why}")))?;
    if !(1.01..=100.0).contains(&options.smallest) {
        return Err(Failure::refused("--smallest is a factor from 1.01 to 100, such as 1.3"));
    }
    let asked = experiment(options)?;
    if !matches!(asked.target()?, TargetPlan::Host) {
        return Err(Failure::refused(
            "tune changes the settings of this machine: an experiment with a [target] cannot be \
             tuned",
        ));
    }
    let (_, plan) = asked.resolve(messages)?;
    let block = plan.estimated_time().ok_or_else(|| {
        Failure::refused(
            "a block has no end: give --block, or a duration in the experiment, such as 10s",
        )
    })?;
    let files = Root::system();
    let cpus = match &options.cpus {
        Some(text) => {
            let cpus = parse_cpus_on(&files, text);
            Some(cpus.map_err(|why| Failure::refused(format!("--cpus: {why}")))?)
        }
        None => measured_alone(&plan)?,
    };
    let mut offered = offer(&files, cpus.as_ref());
    offered.choose(&options.choice)?;
    let has_bound = options.figure.contains(['<', '>', '=']);
    let spec = Spec {
        version: Spec::version(),
        experiment: plan.name.clone(),
        figure: figure.text().to_owned(),
        require: has_bound.then(|| options.figure.clone()),
        smallest: options.smallest,
        within: options.within,
        block,
        seed: options.seed,
        kernel: files.read_trimmed("/proc/sys/kernel/osrelease").ok(),
        settings: offered.settings,
        left_out: offered.left_out,
    };
    Ok(Planned { experiment: asked.bytes, spec })
}

fn experiment(options: &Options) -> Result<request::Asked, Failure> {
    let (path, bytes, usual) = match &options.source {
        Source::File(path) if path.extension().is_some_and(|ending| ending == "cfg") => {
            return Err(Failure::refused(
                "tune reads experiments in TOML: convert this one with `punctual convert`",
            ));
        }
        Source::File(path) => (path.clone(), request::read(path)?, None),
        Source::Command(words) => {
            let path = PathBuf::from(format!("{}.toml", command::name(words)));
            (path, of_command(words)?.into_bytes(), Some(BLOCK))
        }
    };
    let mut asked = request::Asked::of_plain_text(&path, bytes);
    if let Some(block) = options.block.or(usual) {
        let duration = ("duration".to_owned(), quoted(&block.to_string()));
        asked.bytes =
            overrides::apply(&asked.path, &asked.bytes, &[duration]).map_err(Failure::refused)?;
    }
    Ok(asked)
}

/// An experiment of a program: as it is when it runs alone, so nothing is asked of idle states.
fn of_command(words: &[String]) -> Result<String, Failure> {
    let program = command::find(words)?;
    let mut words = words.to_vec();
    // The tuning may be resumed elsewhere.
    if let (Some(program), Some(first)) = (program, words.first_mut())
        && first.contains('/')
    {
        let whole = std::path::absolute(program).map_err(Failure::failed)?;
        *first = whole.to_string_lossy().into_owned();
    }
    let line = shell_words::join(&words);
    Ok(format!(
        "[experiment]\ndma_latency = \"leave\"\n\n[[measure]]\nkind = \"program\"\ncommand = {}\n",
        quoted(&line)
    ))
}

/// The CPUs that are measured, where some are left beside them.
fn measured_alone(plan: &Plan) -> Result<Option<CpuSet>, Failure> {
    let measures = plan.phases.iter().flat_map(|phase| &phase.measures);
    let measured = measures.fold(CpuSet::new(), |all, measure| all.union(&measure.cpus));
    let online = online_cpus()?;
    let leaves_some = !online.difference(&measured).is_empty();
    Ok((leaves_some && !measured.is_empty()).then_some(measured))
}
