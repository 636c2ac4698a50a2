//! A run that was cut off, by a power failure or kill -9, or interrupted, goes on in its bundle.

use crate::exit::Failure;
use crate::messages::shown;
use crate::request::Loaded;
use punctual_bundle::manifest::Gap;
use punctual_bundle::reader::{FIRST_LATER, part_directory};
use punctual_bundle::{Bundle, Outcome, amend, writer};
use punctual_core::Nanos;
use punctual_plan::{Length, Plan};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Parts of a bundle at most: one for each time that it was cut off.
const MOST: usize = 1_000;
/// What remains of a run is at least so long.
const SHORTEST: Nanos = Nanos::from_millis(100);

/// The part of a bundle that is measured now.
pub struct Continuation {
    /// The bundle.
    pub bundle: PathBuf,
    /// Since when nothing was measured.
    pub gap: Gap,
    /// As long as this lives, nobody else continues it.
    _lock: File,
}

impl Continuation {
    /// Prepares a plan to go on in this bundle, where there is one: its output is a new part, and
    /// its length what is left. Where there is none, its output is the bundle.
    pub fn of(
        bundle: &Path,
        plan: &mut Plan,
        loaded: &Loaded,
    ) -> Result<Option<Continuation>, Failure> {
        bundle.clone_into(&mut plan.output);
        if !bundle.exists() {
            return Ok(None);
        }
        let refused = |why: String| Failure::refused(format!("{}: {why}", shown(bundle)));
        let lock = lock(bundle).map_err(refused)?;
        let opened = Bundle::open(bundle).map_err(Failure::refused)?;
        check(&opened, plan, loaded).map_err(refused)?;
        let last = opened.parts.last().map_or(bundle, PathBuf::as_path);
        let from = match &opened.manifest.ending {
            Some(ending) => ending.at,
            None => last_saved(last).unwrap_or(opened.manifest.created),
        };
        shorten(plan, &opened).map_err(refused)?;
        let number = (FIRST_LATER..MOST)
            .find(|number| !part_directory(bundle, *number).exists())
            .ok_or_else(|| refused(format!("it was continued {MOST} times")))?;
        let part = part_directory(bundle, number);
        let made = part.parent().map_or(Ok(()), fs::create_dir_all);
        made.map_err(|why| Failure::failed(format!("{}: {why}", shown(&part))))?;
        plan.output = part;
        amend::set_ending(bundle, None).map_err(Failure::failed)?;
        let gap = Gap { from, to: jiff::Timestamp::now().max(from) };
        Ok(Some(Continuation { bundle: bundle.to_owned(), gap, _lock: lock }))
    }

    /// After its end: the figures for other programs are of all parts.
    pub fn finish(&self) -> Result<Bundle, Failure> {
        let bundle = Bundle::open(&self.bundle).map_err(Failure::failed)?;
        let summary = punctual_analyze::summarize(&bundle);
        amend::renew_summary(&self.bundle, &summary).map_err(Failure::failed)?;
        amend::set_ending(&self.bundle, bundle.manifest.ending.clone()).map_err(Failure::failed)?;
        Ok(bundle)
    }
}

/// Nobody else writes or continues it.
fn lock(bundle: &Path) -> Result<File, String> {
    writer::lock(bundle).map_err(|why| match why.kind() {
        io::ErrorKind::WouldBlock => "its run goes on: end it before continuing it".to_owned(),
        _ => format!("cannot lock it: {why}"),
    })
}

/// Whether it is a run of this experiment that did not reach its end.
fn check(bundle: &Bundle, plan: &Plan, loaded: &Loaded) -> Result<(), String> {
    if bundle.manifest.origin != "run" {
        return Err(format!("it is of `{}`: only a run is continued", bundle.manifest.origin));
    }
    match &bundle.manifest.ending {
        None => {}
        Some(ending) if ending.outcome == Outcome::Interrupted => {}
        Some(ending) => return Err(format!("its run ended: {}", ending.outcome)),
    }
    let kept = bundle.member(loaded.kept_as()).read();
    if kept.ok().as_ref() != Some(&loaded.bytes) {
        return Err("it is of another experiment: the file has changed since".to_owned());
    }
    let text = bundle.plan_text().map_err(|why| why.to_string())?.unwrap_or_default();
    let of = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("output = "));
        lines.map(str::to_owned).collect()
    };
    let (then, now) = (of(&text), of(&plan.to_toml()));
    let differs = then.iter().zip(&now).find(|(then, now)| then != now);
    match differs {
        Some((then, now)) => Err(format!("its plan was another: `{then}`, and now `{now}`")),
        None if then.len() != now.len() => Err("its plan was another".to_owned()),
        None if plan.phases.len() > 1 => Err("only a run of one phase is continued".to_owned()),
        None => Ok(()),
    }
}

/// What was measured is not measured again.
fn shorten(plan: &mut Plan, bundle: &Bundle) -> Result<(), String> {
    let Some(phase) = plan.phases.first_mut() else { return Ok(()) };
    let series: Vec<_> = bundle.series().map(|(_, series)| series).collect();
    let count = |of: fn(&punctual_core::Losses) -> u64| {
        series.iter().map(|series| of(&series.state.data.losses)).max().unwrap_or(0)
    };
    let (recorded, expected) = (count(|losses| losses.recorded), count(|of| of.expected()));
    for measure in &mut phase.measures {
        let period = measure.workload.period();
        measure.length = match measure.length {
            Length::UntilInterrupted => Length::UntilInterrupted,
            Length::Samples(samples) => match samples.saturating_sub(recorded) {
                0 => return Err("all its samples are measured".to_owned()),
                left => Length::Samples(left),
            },
            Length::Duration(duration) => {
                let Some(period) = period else {
                    let why = "how long it was measured is unknown without a period: only \
                               `forever` and timers are continued";
                    return Err(why.to_owned());
                };
                let measured = i64::try_from(expected).unwrap_or(i64::MAX);
                let measured = Nanos(period.ns().saturating_mul(measured));
                Length::Duration((duration - measured).max(SHORTEST))
            }
        };
    }
    let longest = phase.measures.iter().filter_map(|measure| match measure.length {
        Length::Duration(duration) => Some(duration),
        _ => None,
    });
    phase.duration = phase.duration.and(longest.max());
    Ok(())
}

/// When statistics were last saved in a part that was cut off.
fn last_saved(part: &Path) -> Option<jiff::Timestamp> {
    let phases = fs::read_dir(part.join("phases")).ok()?.flatten();
    let files = phases.filter_map(|phase| fs::read_dir(phase.path()).ok()).flatten().flatten();
    let checkpoints = files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "checkpoint"));
    let saved = checkpoints.filter_map(|file| file.metadata().ok()?.modified().ok()).max()?;
    jiff::Timestamp::try_from(saved).ok()
}
