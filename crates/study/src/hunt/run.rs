//! A search from its specification to its document: survey, halving and local search for most of
//! the budget, then the inputs of the causes are minimised, then other kernels are tried.

use super::against::compare;
use super::archive::{ArchiveKey, TrialResults};
use super::document::{self, Minimised};
use super::minimise::{minimise, simpler};
use super::search::{HuntSearch, Trials};
use super::space::{Input, LIVES_MS, LoadChoice, Space};
use super::spec::HuntSpec;
use super::standing::SearchProgress;
use super::stressors;
use super::trials::Runner;
use crate::sections::require::Require;
use crate::store::Store;
use punctual_bundle::hunt::{Against, HuntDocument, Least, TrialState};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::{Listener, shown};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The specification, in the search's directory.
pub const SPEC: &str = "hunt.toml";
pub const DOCUMENT: &str = "hunt.json";
const TRIALS: &str = "trials";
const FOUND: &str = "found";
/// Causes that are minimised and tried on other kernels.
const MINIMISED: usize = 12;
/// Quarters of the budget and trials for the search; the rest is for minimising.
const SEARCHED: u32 = 3;
/// Inputs whose first minimising step always has time reserved, up to half of the budget.
const STEPS: usize = 2;

/// The result of a search.
pub struct HuntResult {
    pub document: HuntDocument,
    /// Whether the user ended the search.
    pub interrupted: bool,
}

/// The loads that may be tried.
///
/// # Errors
/// There is no stress-ng, or it has no such stressor.
pub fn space(spec: &HuntSpec) -> Result<Space, Failure> {
    let (names, thorough) = match &spec.stressors {
        Some(none) if none.is_empty() => (Vec::new(), 0),
        Some(asked) => {
            let (known, _) = stressors::known()?;
            match asked.iter().find(|name| !known.contains(name)) {
                Some(name) => {
                    return Err(Failure::refused(format!(
                        "--stressors: this machine's stress-ng has no stressor `{name}`\nhelp: \
                         `stress-ng --stressors` lists them"
                    )));
                }
                None => (asked.clone(), asked.len()),
            }
        }
        None => stressors::known()?,
    };
    let own = spec.load.iter().map(|load| LoadChoice {
        name: load.name.clone(),
        parameters: [String::new()].into_iter().chain(load.parameters.iter().cloned()).collect(),
        command: Some(load.command.clone()),
    });
    let loads: Vec<LoadChoice> =
        own.chain(names.iter().map(|name| stressors::choice(name))).collect();
    match loads.is_empty() {
        true => Err(Failure::refused("there is no load to try: name stressors, or a [[load]]")),
        false => Ok(Space {
            loads,
            thorough: spec.load.len() + thorough,
            lives_ms: &LIVES_MS,
            shift_us: 1_000,
        }),
    }
}

/// Searches, or resumes a search.
///
/// # Errors
/// Trials cannot be run, or none could be measured.
pub fn run(
    spec: &HuntSpec,
    place: &Path,
    parallel: Option<usize>,
    messages: Listener,
) -> Result<HuntResult, Failure> {
    let space = space(spec)?;
    let requirements: Vec<Require> = spec
        .require
        .iter()
        .map(|text| Require::parse(text))
        .collect::<Result<_, _>>()
        .map_err(Failure::refused)?;
    let (budget, _) = (spec.budget()?.to_std(), spec.duration()?);
    // A missing kernel is reported now, not when the budget is used up.
    for kernel in std::iter::once(&spec.kernel).chain(&spec.against) {
        fetch(kernel)?;
    }
    fs::create_dir_all(place)
        .map_err(|why| Failure::refused(format!("cannot write below {}: {why}", shown(place))))?;
    Store::join(place).replace(SPEC, spec.text()?.as_bytes())?;
    let interrupts = SignalRequests::listen()?;
    let trials = place.join(TRIALS);
    let mut runner = Runner::new(spec, &spec.kernel, &space, &trials, &interrupts, parallel)?;
    let mut search = HuntSearch::new(&space, spec.seed, spec.strategy);
    let began = Instant::now();
    runner.until = Some(began + budget * SEARCHED / 4);
    runner.messages = messages;
    runner.standing = Some(SearchProgress::new(began, budget, spec.trials));
    let most = spec.trials.unwrap_or(usize::MAX);
    let most_searched = most / 4 * SEARCHED as usize + most % 4;
    while search.tried.len() < most_searched && search.step(&mut runner)? {
        progress(messages, &search, &mut runner);
        let kept = kept(budget, runner.time_of(STEPS * first_step(&search)));
        runner.until = Some(began + budget - kept);
    }
    runner.until = Some(began + budget);
    let mut minimised = Minimised::new();
    let keys: Vec<ArchiveKey> = search
        .archive
        .ranked()
        .into_iter()
        .take(MINIMISED)
        .map(|(key, _, _)| key.clone())
        .collect();
    for key in keys {
        if runner.interrupted || search.tried.len() >= most {
            break;
        }
        let before = search.tried.len();
        if let Some(least) = minimise(&mut search, &key, &mut runner)? {
            minimised.insert(key, least);
            if search.tried.len() > before {
                progress(messages, &search, &mut runner);
            }
        }
    }
    let mut document = document::of(spec, &space, &search, &minimised, &runner, place)?;
    write_found(place, &search, &minimised, &runner, &mut document)?;
    let measured = document.trials.iter().any(|trial| trial.state != TrialState::Failed);
    let longest = search.archive.ranked().first().map_or(0, |cause| cause.1);
    document.required = requirements
        .iter()
        .map(|require| require.judge(measured.then_some(longest), document.ns_per_instruction))
        .collect();
    Store::join(place).write(DOCUMENT, &document)?;
    for kernel in spec.against.iter().filter(|_| measured) {
        if runner.interrupted {
            break;
        }
        messages.progress(&format!("{} s: on {kernel}", began.elapsed().as_secs()));
        let directory = place.join(format!("against-{}", safe(kernel)));
        let mut other = Runner::new(spec, kernel, &space, &directory, &interrupts, parallel)?;
        other.messages = messages;
        let compared = against(kernel, &search, &minimised, &mut other)?;
        runner.interrupted |= other.interrupted;
        if !other.interrupted {
            document.against.push(compared);
            Store::join(place).write(DOCUMENT, &document)?;
        }
    }
    if !measured && !runner.interrupted {
        let why = document.trials.iter().find_map(|trial| trial.why.clone());
        let why = why.unwrap_or_else(|| "the budget is too short for one batch".to_owned());
        return Err(Failure::no_evidence(format!("no trial could be measured: {why}")));
    }
    Ok(HuntResult { document, interrupted: runner.interrupted })
}

/// Fetches a kernel's packages if they are not here yet.
fn fetch(kernel: &str) -> Result<(), Failure> {
    let vm = crate::targets::vm::named(kernel)?;
    crate::targets::vm::kernel(&vm, punctual_lab::Arch::Amd64)
        .map(drop)
        .map_err(|why| Failure::of_lab(&why))
}

/// Makes a text safe for a file name.
pub fn safe(text: &str) -> String {
    text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_', "-")
}

/// The number of trials of the first step that minimises the longest cause's input.
fn first_step(search: &HuntSearch) -> usize {
    let longest = search.archive.ranked().into_iter().next();
    longest.map_or(0, |(_, _, trial)| simpler(&search.tried[trial].input).len())
}

/// The part of the budget reserved for minimising: its share, or the time of the first steps if
/// longer, up to half.
fn kept(budget: Duration, steps: Duration) -> Duration {
    (budget / 4 * (4 - SEARCHED)).max(steps).min(budget / 2)
}

/// Shows a line for each batch.
fn progress(messages: Listener, search: &HuntSearch, runner: &mut Runner) {
    let Some(standing) = &mut runner.standing else { return };
    standing.take(search);
    messages.progress(&standing.line(Instant::now()));
}

/// Writes the experiment of each cause and failure under a descriptive name.
fn write_found(
    place: &Path,
    search: &HuntSearch,
    minimised: &Minimised,
    runner: &Runner,
    document: &mut HuntDocument,
) -> Result<(), Failure> {
    let found = place.join(FOUND);
    let cannot = |why: std::io::Error| {
        Failure::failed(format!("cannot write below {}: {why}", shown(place)))
    };
    fs::create_dir_all(&found).map_err(cannot)?;
    for old in fs::read_dir(&found).map_err(cannot)? {
        fs::remove_file(old.map_err(cannot)?.path()).map_err(cannot)?;
    }
    for (key, _, trial) in search.archive.ranked() {
        let input = minimised.get(key).map_or(&search.tried[trial].input, |least| &least.0);
        let name = match target(document, key) {
            Some((number, least)) => {
                let name = format!("{number:02}-{}.toml", name(key));
                least.file = Some(format!("{FOUND}/{name}"));
                name
            }
            None => continue,
        };
        let (_, text) = runner.experiment(input)?;
        Store::join(&found).replace(&name, text.as_bytes())?;
    }
    for (place, failure) in document.failures.iter_mut().enumerate() {
        let name = format!("failed-{:02}-{}.toml", place + 1, failure.what);
        let (_, text) = runner.experiment(&search.tried[failure.trial as usize - 1].input)?;
        Store::join(&found).replace(&name, text.as_bytes())?;
        failure.file = Some(format!("{FOUND}/{name}"));
    }
    Ok(())
}

fn name(key: &ArchiveKey) -> String {
    if key.1.is_empty() { "worst-sample".to_owned() } else { safe(&key.1) }
}

/// The entry of a cause in the document, and its number there; the worst sample is 0.
fn target<'a>(document: &'a mut HuntDocument, key: &ArchiveKey) -> Option<(usize, &'a mut Least)> {
    let kind = super::against::kind_word(key.0);
    if let Some(worst) = document.worst.as_mut().filter(|worst| worst.kind == kind) {
        return Some((0, &mut worst.least));
    }
    let same =
        |cause: &punctual_bundle::hunt::HuntCause| cause.kind == kind && cause.function == key.1;
    let place = document.causes.iter().position(same)?;
    Some((place + 1, &mut document.causes[place].least))
}

/// Tries the inputs of the causes on another kernel.
fn against(
    kernel: &str,
    search: &HuntSearch,
    minimised: &Minimised,
    other: &mut Runner,
) -> Result<Against, Failure> {
    let mut inputs: Vec<Input> = Vec::new();
    for (key, _, trial) in search.archive.ranked().into_iter().take(MINIMISED) {
        let input = minimised.get(key).map_or(&search.tried[trial].input, |least| &least.0);
        if !inputs.contains(input) {
            inputs.push(input.clone());
        }
    }
    let there = other.run(&inputs)?.unwrap_or_default();
    let good = |shown: &&TrialResults| shown.failure.is_none();
    let both = inputs.iter().zip(&there).filter_map(|(input, there)| {
        Some((search.shown(input).filter(good)?.clone(), Some(there).filter(good)?.clone()))
    });
    let (ours, theirs): (Vec<TrialResults>, Vec<TrialResults>) = both.unzip();
    Ok(Against {
        kernel: kernel.to_owned(),
        inputs: ours.len() as u64,
        failed: (inputs.len() - ours.len()) as u64,
        changes: compare(&ours, &theirs),
    })
}

#[cfg(test)]
mod tests {
    use super::kept;
    use std::time::Duration;

    #[test]
    fn part_of_the_budget_is_reserved_for_minimising() {
        let secs = Duration::from_secs;
        assert_eq!(kept(secs(1_800), secs(40)), secs(450));
        assert_eq!(kept(secs(120), secs(50)), secs(50));
        assert_eq!(kept(secs(120), secs(500)), secs(60));
    }
}
