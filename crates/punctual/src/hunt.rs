//! The search for what makes a kernel late: a lab with one cell for each stressor of stress-ng, each
//! seen instruction by instruction, and the distinct causes in all of them.

use crate::exit::Failure;
use crate::labs::directory::Directory;
use crate::labs::jobs::{Job, Planned};
use crate::labs::schedule::{Done, Ran};
use punctual_bundle::Bundle;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_bundle::hunt::{HUNT_SCHEMA, HuntCause, HuntDocument, Trial, TrialState};
use punctual_bundle::summary::{Proof, ProofOutcome};
use punctual_core::Nanos;
use std::collections::BTreeMap;
use std::process::Command;

/// The classes of stress-ng whose stressors are tried first: those that keep the kernel busy with
/// memory and tasks showed most in surveys.
const FIRST: [&str; 6] = ["vm", "os", "memory", "filesystem", "scheduler", "interrupt"];
/// Causes that are listed.
const CAUSES: usize = 30;
/// A trial met a cause that is at least so long a part of the longest.
const MET: u64 = 10;
/// Sections shorter than this are everywhere.
const SHORT: u64 = 2_000;

/// The stressors that this machine's stress-ng has, those of promising classes first.
pub fn stressors() -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = Vec::new();
    for class in FIRST {
        let text = asked(&["--class", &format!("{class}?")])?;
        let names = text.split_once("stressors:").map_or("", |(_, names)| names);
        all.extend(names.split_whitespace().map(str::to_owned));
    }
    all.extend(asked(&["--stressors"])?.split_whitespace().map(str::to_owned));
    let is_name = |name: &String| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let mut known = std::collections::HashSet::new();
    all.retain(|name| is_name(name) && known.insert(name.clone()));
    Ok(all)
}

fn asked(arguments: &[&str]) -> Result<String, Failure> {
    let missing = |why: &dyn std::fmt::Display| {
        Failure::refused(format!(
            "the search needs stress-ng on this machine ({why})\nhelp: apt-get install stress-ng"
        ))
    };
    let output = Command::new("stress-ng").args(arguments).output().map_err(|why| missing(&why))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text + &String::from_utf8_lossy(&output.stderr))
}

/// The lab file of a survey: each stressor alone beside a timer.
pub fn survey(kernel: &str, measured: Nanos, seed: u64, stressors: &[String]) -> String {
    let mut text = format!(
        "# One trial for each stressor of stress-ng, beside a timer; `punctual hunt` wrote it.\n\
         [lab]\nname = \"hunt\"\nseeds = \"{seed}\"\n\n[target]\nkind = \"vm\"\nkernel = \
         \"{kernel}\"\naccel = \"virtual-time\"\ntimeout = \"300s\"\n\n[[measure]]\nname = \
         \"timer\"\nkind = \"timer\"\npolicy = \"fifo\"\npriority = 95\nperiod = \
         \"1ms\"\nduration = \"{measured}\"\n\n[[load]]\nname = \"stress\"\ncommand = \
         \"stress-ng --vm 1 --quiet\"\n\n[axes.stressor]\n"
    );
    for name in stressors {
        text += &format!("{name} = {{ load.stress.command = \"stress-ng --{name} 1 --quiet\" }}\n");
    }
    text
}

/// What was found, from the bundles of the trials.
pub fn document(
    kernel: &str,
    measured: Nanos,
    planned: &Planned,
    jobs: &[Job],
    ran: &Ran,
    directory: &Directory,
) -> HuntDocument {
    let mut trials = Vec::new();
    let mut causes: Vec<Met> = Vec::new();
    let mut insn = 8;
    for (job, done) in jobs.iter().zip(&ran.done) {
        let stressor = planned.cells[job.cell].cell.name.clone();
        let place = directory.path().join(Directory::bundle(planned, job));
        let bundle = Bundle::open(&place).ok();
        let exact: Option<ExactDocument> =
            bundle.as_ref().and_then(|bundle| bundle.document(EXACT_MEMBER).ok().flatten());
        if let Some(exact) = &exact {
            insn = exact.ns_per_instruction;
            found(exact, &stressor).into_iter().for_each(|cause| add(&mut causes, cause));
        }
        trials.push(trial(stressor, done, bundle.as_ref(), exact.as_ref()));
    }
    let mut causes: Vec<HuntCause> = causes
        .into_iter()
        .map(|(cause, lengths)| {
            let met = lengths.values().filter(|length| **length * MET >= cause.longest);
            HuntCause { trials: met.count() as u64, ..cause }
        })
        .collect();
    causes.sort_by(|a, b| (b.longest, &a.function).cmp(&(a.longest, &b.function)));
    causes.truncate(CAUSES);
    HuntDocument {
        schema: HUNT_SCHEMA.to_owned(),
        kernel: kernel.to_owned(),
        ns_per_instruction: insn,
        measured_ns: measured.0,
        trials,
        causes,
    }
}

/// The causes in one trial.
fn found(exact: &ExactDocument, stressor: &str) -> Vec<HuntCause> {
    let cause = |kind: &str, function: &str, longest: u64, stack: Vec<String>| HuntCause {
        kind: kind.to_owned(),
        function: function.to_owned(),
        longest,
        stressor: stressor.to_owned(),
        stack,
        trials: 0,
        file: None,
    };
    let sections = exact
        .irqs_disabled
        .iter()
        .map(|section| cause("irqs-disabled", &section.function, section.longest, Vec::new()));
    let parts = exact.worst.iter().flat_map(|sample| &sample.parts);
    let parts = parts.filter(|part| part.kind == "not-preempted").filter_map(|part| {
        let (function, _) = part.functions.first()?;
        Some(cause("not-preempted", function, part.instructions, part.stack.clone()))
    });
    sections.chain(parts).filter(|cause| cause.longest >= SHORT).collect()
}

/// A cause, and the longest of it in each trial.
type Met = (HuntCause, BTreeMap<String, u64>);

/// Adds a cause of a trial to those of all.
fn add(causes: &mut Vec<Met>, cause: HuntCause) {
    let same = |known: &Met| known.0.kind == cause.kind && known.0.function == cause.function;
    let known = match causes.iter().position(same) {
        Some(place) => &mut causes[place],
        None => {
            causes.push((cause.clone(), BTreeMap::new()));
            let last = causes.len() - 1;
            &mut causes[last]
        }
    };
    let longest = known.1.entry(cause.stressor.clone()).or_default();
    *longest = cause.longest.max(*longest);
    if cause.longest > known.0.longest {
        known.0 = cause;
    }
}

fn trial(
    stressor: String,
    done: &Done,
    bundle: Option<&Bundle>,
    exact: Option<&ExactDocument>,
) -> Trial {
    let summary = bundle.map(punctual_analyze::summarize);
    let invalid = summary.as_ref().and_then(|summary| {
        let proofs = &summary.validity.as_ref()?.proofs;
        let fails =
            |proof: &&Proof| matches!(proof.outcome, ProofOutcome::Fails | ProofOutcome::Waived);
        proofs.iter().find(fails).map(|proof| proof.why.clone())
    });
    let (state, why) = match (done, exact) {
        (Done::Waiting, _) => (TrialState::NotTried, None),
        (Done::Failed { why, .. }, _) => (TrialState::Failed, Some(why.clone())),
        (Done::Whole(_), None) => {
            (TrialState::Failed, Some("nothing was seen of its instructions".to_owned()))
        }
        (Done::Whole(_), Some(_)) => match invalid {
            Some(why) => (TrialState::NoLoad, Some(why)),
            None => (TrialState::Measured, None),
        },
    };
    let worst = bundle.and_then(|bundle| {
        bundle.series().flat_map(|(_, series)| &series.state.data.worst).map(|s| s.latency()).max()
    });
    Trial {
        stressor,
        state,
        why,
        worst_ns: worst.map(|worst| worst.0),
        irqs_disabled: exact
            .and_then(|exact| exact.irqs_disabled.first())
            .map(|section| section.longest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(function: &str, longest: u64, stressor: &str) -> HuntCause {
        HuntCause {
            kind: "irqs-disabled".into(),
            function: function.into(),
            longest,
            stressor: stressor.into(),
            stack: Vec::new(),
            trials: 0,
            file: None,
        }
    }

    #[test]
    fn a_cause_is_listed_once_with_its_longest() {
        let mut causes = Vec::new();
        for (function, longest, stressor) in
            [("a", 10, "vm"), ("a", 30, "fork"), ("b", 5, "vm"), ("a", 20, "vm"), ("a", 7, "vm")]
        {
            add(&mut causes, cause(function, longest, stressor));
        }
        let shown: Vec<_> = causes
            .iter()
            .map(|(cause, met)| {
                (cause.function.as_str(), cause.longest, cause.stressor.as_str(), met.len())
            })
            .collect();
        assert_eq!(shown, [("a", 30, "fork", 2), ("b", 5, "vm", 1)]);
        assert_eq!(causes[0].1["vm"], 20);
    }

    #[test]
    fn the_survey_is_a_lab_of_every_stressor() {
        let names = ["vm", "vm-addr", "io-uring"].map(str::to_owned);
        let text = survey("6.12-rt", Nanos::from_millis(300), 7, &names);
        let lab = punctual_plan::lab::load_lab(
            std::path::Path::new("survey.toml"),
            text.as_bytes(),
            &punctual_plan::LoadOptions::default(),
            &|_| Err("no other file".into()),
        );
        let lab = lab.unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        let cells = lab.cells().expect("cells");
        let found: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(found, ["vm", "vm-addr", "io-uring"]);
        assert!(cells[1].experiment(Some(7)).contains("stress-ng --vm-addr 1 --quiet"));
    }
}
