//! The findings of a search: stored, printed and shown.

use super::against::kind_word;
use super::archive::{ArchiveKey, LengthKind};
use super::experiment::command;
use super::failures;
use super::minimise::SHOWS_PERCENT;
use super::search::{HuntSearch, SearchStage, Tried};
use super::space::{Input, Space};
use super::spec::HuntSpec;
use super::trials::{Runner, explained, worst_ns};
use punctual_bundle::exact::{DisabledSection, ExactDocument};
use punctual_bundle::hunt::{HUNT_SCHEMA, HuntCause, HuntDocument, HuntTrial, Least, TrialState};
use punctual_bundle::summary::{Proof, ProofOutcome};
use punctual_session::exit::Failure;
use std::collections::HashMap;
use std::path::Path;

const CAUSES: usize = 30;
/// A trial met a cause if its length is at least the longest divided by this.
const MET: u64 = 10;

/// The smallest input for a cause: the input, its length, and whether nothing can be removed.
pub type Minimised = HashMap<ArchiveKey, (Input, u64, bool)>;

/// The document, before experiments are written.
pub fn of(
    spec: &HuntSpec,
    space: &Space,
    search: &HuntSearch,
    minimised: &Minimised,
    runner: &Runner,
    place: &Path,
) -> Result<HuntDocument, Failure> {
    let (mut trials, mut ran_out) = (Vec::new(), Vec::new());
    for (number, tried) in search.tried.iter().enumerate() {
        let (trial, memory) = trial(space, number, tried, runner, place)?;
        trials.push(trial);
        ran_out.push(memory);
    }
    let mut causes = Vec::new();
    for (key, longest, number) in search.archive.ranked() {
        let input = &search.tried[number].input;
        let meets = |tried: &&Tried| tried.shown.of(key).saturating_mul(MET) >= longest;
        let met = search.tried.iter().filter(meets).count();
        let first = search.tried.iter().position(|tried| meets(&tried)).unwrap_or(number);
        let (least, shows, minimal) =
            minimised.get(key).cloned().unwrap_or((input.clone(), longest, false));
        causes.push(HuntCause {
            kind: kind_word(key.0).to_owned(),
            function: key.1.clone(),
            longest,
            trial: number as u64 + 1,
            trials: met as u64,
            first: first as u64 + 1,
            least: Least {
                loads: loads(space, &least),
                duration_ns: duration(spec, &least)?,
                shows,
                minimal,
                file: None,
            },
            stack: stack(key, input, runner)?,
        });
    }
    let (worst, mut causes): (Vec<HuntCause>, _) =
        causes.into_iter().partition(|cause| cause.kind == kind_word(LengthKind::Sample));
    let listed: usize = causes.len().min(CAUSES);
    let more = (causes.len() - listed) as u64;
    causes.truncate(CAUSES);
    Ok(HuntDocument {
        schema: HUNT_SCHEMA.to_owned(),
        kernel: spec.kernel.clone(),
        ns_per_instruction: runner.ns_per_instruction,
        measured_ns: spec.duration()?.ns(),
        seed: spec.seed,
        loads: space.loads.len() as u64,
        surveyed: surveyed(search),
        least_percent: SHOWS_PERCENT,
        failures: failures::of(&search.tried, &trials, &ran_out),
        trials,
        worst: worst.into_iter().next(),
        causes,
        more_causes: more,
        against: Vec::new(),
        required: Vec::new(),
    })
}

/// The number of loads tried at all.
fn surveyed(search: &HuntSearch) -> u64 {
    let parts = search.tried.iter().flat_map(|tried| &tried.input.parts);
    parts.map(|part| part.load).collect::<std::collections::HashSet<_>>().len() as u64
}

/// The commands of an input, with their delays.
pub fn loads(space: &Space, input: &Input) -> Vec<String> {
    let words = |place: usize| match input.parts[place].delay_us {
        0 => command(space, input, place),
        delay => format!("{} after {delay} µs", command(space, input, place)),
    };
    (0..input.parts.len()).map(words).collect()
}

fn duration(spec: &HuntSpec, input: &Input) -> Result<i64, Failure> {
    Ok(spec.duration()?.ns() / 4 * i64::from(input.quarters))
}

/// The call stack of the longest, if known.
fn stack(key: &ArchiveKey, input: &Input, runner: &Runner) -> Result<Vec<String>, Failure> {
    let Some((_, exact)) = explained(&runner.bundle(input)?) else { return Ok(Vec::new()) };
    Ok(calls(key, exact))
}

fn calls(key: &ArchiveKey, exact: ExactDocument) -> Vec<String> {
    let is_own = |functions: &[(String, u64)]| functions.first().is_some_and(|(f, _)| *f == key.1);
    let with_calls = |section: DisabledSection| (section.longest, section.stack);
    let named = |sections: Vec<DisabledSection>| {
        let own = sections.into_iter().filter(|section| section.function == key.1);
        own.map(with_calls).collect()
    };
    let all: Vec<(u64, Vec<String>)> = match key.0 {
        LengthKind::Sample => Vec::new(),
        LengthKind::IrqsDisabled => named(exact.sections.irqs_disabled),
        LengthKind::PreemptionDisabled => named(exact.sections.preemption_disabled),
        LengthKind::NotPreempted => {
            let parts = exact.worst.into_iter().flat_map(|sample| sample.parts);
            let parts = parts.filter(|part| part.kind == kind_word(key.0));
            let parts = parts.filter(|part| is_own(&part.functions));
            let sections = exact.sections.not_preempted.into_iter();
            let sections = sections.filter(|section| is_own(&section.functions)).map(with_calls);
            sections.chain(parts.map(|part| (part.instructions, part.stack))).collect()
        }
    };
    all.into_iter().max_by_key(|(length, _)| *length).map(|(_, stack)| stack).unwrap_or_default()
}

/// A trial, with an out-of-memory note if it reached its end.
fn trial(
    space: &Space,
    number: usize,
    tried: &Tried,
    runner: &Runner,
    place: &Path,
) -> Result<(HuntTrial, Option<String>), Failure> {
    let bundle = runner.bundle(&tried.input)?;
    let opened = explained(&bundle);
    let invalid = opened.as_ref().and_then(|(bundle, _)| {
        let summary = punctual_stats::summarize(bundle);
        let fails =
            |proof: &&Proof| matches!(proof.outcome, ProofOutcome::Fails | ProofOutcome::Waived);
        summary.validity?.proofs.iter().find(fails).map(|proof| proof.why.clone())
    });
    let failure = tried.shown.failure.clone();
    let ran_out = opened.as_ref().and_then(|(bundle, _)| failures::memory_ran_out(bundle));
    let kept = if failure.is_some() { "r1.failed" } else { "r1" };
    let console = bundle.with_file_name(kept).join("console.log");
    let wanted = (failure.is_some() || ran_out.is_some()) && console.is_file();
    let console = wanted.then_some(console);
    let below = |path: &Path| path.strip_prefix(place).unwrap_or(path).display().to_string();
    let trial = HuntTrial {
        number: number as u64 + 1,
        stage: match tried.stage {
            SearchStage::Survey => "survey",
            SearchStage::Halving => "halving",
            SearchStage::Sweep => "sweep",
            SearchStage::Local => "local",
            SearchStage::Random => "random",
            SearchStage::Minimise => "minimise",
        }
        .to_owned(),
        loads: loads(space, &tried.input),
        seed: tried.input.seed,
        state: match (&failure, &invalid) {
            (Some(_), _) => TrialState::Failed,
            (None, Some(_)) => TrialState::NoLoad,
            (None, None) => TrialState::Measured,
        },
        why: failure.or(invalid),
        worst_ns: opened.as_ref().and_then(|(bundle, _)| worst_ns(bundle)),
        irqs_disabled: opened
            .as_ref()
            .and_then(|(_, exact)| exact.sections.irqs_disabled.first())
            .map(|section| section.longest),
        bundle: opened.is_some().then(|| below(&bundle)),
        console: console.map(|path| below(&path)),
    };
    Ok((trial, ran_out))
}
