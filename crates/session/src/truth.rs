//! How often an explanation is right: causes are injected at instants that are recorded, samples
//! are taken meanwhile, and their explanations are compared with the record.

mod cases;
pub mod guest;
pub mod inject;

use crate::exit::Failure;
use crate::explained::{self, Wanted};
pub use cases::Case;
use inject::Injector;
use punctual_analyze::truth::{Expected, Injected, score};
use punctual_bundle::Bundle;
use punctual_bundle::truth::{TruthCase, TruthScore, TruthSystem};
use punctual_core::Nanos;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PERIOD: &str = "500us";
/// Samples that are explained.
const WORST: u32 = 100;

/// The measuring thread of a run, as `attach` names its response times.
const ATTACHED: &str = "measure/response";

/// The way to explanations that is scored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// `punctual run` with an `[explain]` section.
    Run,
    /// `punctual attach --explain`, which knows nothing of the run that it is attached to.
    Attach,
}

impl Through {
    /// All of them.
    pub const ALL: [Through; 2] = [Through::Run, Through::Attach];

    /// The command.
    pub fn word(self) -> &'static str {
        match self {
            Through::Run => "run",
            Through::Attach => "attach",
        }
    }
}

/// The cases that run: of some lengths, or of all.
pub fn cases(all: bool, named: &[String]) -> Result<Vec<Case>, Failure> {
    let every = Case::every();
    if let Some(name) = named.iter().find(|name| !every.iter().any(|case| case.matches(name))) {
        return Err(Failure::refused(format!(
            "there is no case `{name}`\nhelp: known are {}",
            Case::words().collect::<Vec<_>>().join(", ")
        )));
    }
    let chosen = |case: &Case| match named.is_empty() {
        true => all || case.is_short(),
        false => {
            named.iter().any(|name| case.matches(name)) && (all || case.is_short())
                || named.contains(&case.name())
        }
    };
    Ok(every.into_iter().filter(chosen).collect())
}

/// Runs the cases on this system, one after the other.
pub fn run_locally(
    cases: &[Case],
    duration: Nanos,
    cpu: usize,
    through: Through,
    watch: &mut dyn FnMut(&TruthCase),
) -> Result<TruthSystem, Failure> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut system = TruthSystem {
        kernel: release.trim().to_owned(),
        virtual_time: false,
        through: through.word().to_owned(),
        cases: Vec::new(),
    };
    for case in cases {
        let result = one(case, duration, cpu, through)?;
        watch(&result);
        system.cases.push(result);
    }
    Ok(system)
}

fn one(case: &Case, duration: Nanos, cpu: usize, through: Through) -> Result<TruthCase, Failure> {
    let mut result = TruthCase {
        name: case.name(),
        cause: case.cause(),
        length_ns: case.length.0,
        skipped: None,
        score: TruthScore::default(),
    };
    if let Some(missing) = case.missing() {
        result.skipped = Some(missing);
        return Ok(result);
    }
    let place = tempfile::tempdir().map_err(Failure::failed)?;
    let injector = Injector::start(case, duration, cpu)?;
    let ran = run(place.path(), case, duration, cpu, through);
    let injected = injector.end();
    if let Err(why) = ran {
        result.skipped = Some(why);
        return Ok(result);
    }
    let injected = match injected {
        Ok(injected) => injected,
        Err(why) => {
            result.skipped = Some(format!("nothing was injected: {why}"));
            return Ok(result);
        }
    };
    let bundle = Bundle::open(&place.path().join("bundle")).map_err(Failure::failed)?;
    let series = match through {
        Through::Run => Vec::new(),
        Through::Attach => vec![ATTACHED.to_owned()],
    };
    let wanted = Wanted { series, ..Wanted::default() };
    let samples = explained::open(&bundle, &wanted)?.document().samples;
    let expected = Expected { causes: case.causes(), is_shared: case.is_shared() };
    result.score = score(&samples, &injected, expected);
    let begin = samples.iter().map(|sample| sample.at).min().unwrap_or_default();
    let end = samples.iter().map(|sample| sample.at + sample.latency_ns).max().unwrap_or_default();
    let within = |one: &&Injected| one.end >= begin && one.begin <= end;
    result.score.injected = injected.iter().filter(within).count() as u64;
    Ok(result)
}

/// Measures as anybody would; an error says why there is nothing to explain.
fn run(
    place: &Path,
    case: &Case,
    duration: Nanos,
    cpu: usize,
    through: Through,
) -> Result<(), String> {
    let (policy, priority) = case.scheduling();
    let priority = priority.map_or(String::new(), |priority| format!("priority = {priority}\n"));
    let mut text = format!(
        "[[measure]]\nname = \"timer\"\nkind = \"timer\"\npolicy = \"{policy}\"\n{priority}cpus = \
         \"{cpu}\"\nperiod = \"{PERIOD}\"\nduration = \"{duration}\"\n"
    );
    if through == Through::Run {
        text.push_str(&format!("\n[explain]\nworst = {WORST}\naccount = false\n"));
    }
    let failed = |why: std::io::Error| why.to_string();
    fs::write(place.join("experiment.toml"), text).map_err(failed)?;
    let own = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(&own);
    match through {
        Through::Run => command.args(["run", "--quiet", "--no-calibration", "--output", "bundle"]),
        Through::Attach => command
            .args(["attach", "--quiet", "--explain", "--output", "bundle", "--"])
            .arg(&own)
            .args(["run", "--quiet", "--output", "own"]),
    };
    command.arg("experiment.toml").current_dir(place);
    let ran = command.stdin(Stdio::null()).output().map_err(failed)?;
    match ran.status.code() {
        // 4: the machine took time from it, or a load; the samples are there.
        Some(0 | 4) => Ok(()),
        _ => {
            let message = String::from_utf8_lossy(&ran.stderr).into_owned();
            Err(message.lines().next().unwrap_or("punctual failed").to_owned())
        }
    }
}
