//! The tuning across reboots: each boot runs one process, which measures the purpose of the boot,
//! requests the next, and ends.
//!
//! The untouched machine and each parameter alone are booted once first; parameters with which it
//! does not come up are left out. Then [`punctual_stats::tune`] requests a boot for each of its
//! blocks: each boot is one observation.

use super::Reboots;
use super::state::{Armed, BootTrial, RebootState};
use crate::tune::blocks::{BlockMeasurement, BlockRunner};
use crate::tune::directory::{TuneDirectory, TuningSpec};
use crate::tune::reboot_plan::{RebootPlan, is_boot, is_tuning};
use crate::tune::run::{TuneResult, document, progress};
use punctual_bundle::tune::{BlockRecord, NotTried, TuningDocument, TuningEnd};
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::messages::Listener;
use punctual_stats::tune::{BlockRequest, MeasuredBlock, TunableMachine, Tuning, conduct};
use std::path::Path;

/// The outcome of this boot.
pub enum BootOutcome {
    /// The machine reboots; the tuning resumes after that.
    Rebooting,
    Ended(Box<TuneResult>),
}

/// Why the process stops in this boot.
enum RebootStop {
    Reboot,
    Failed(Failure),
    /// The tuning is impossible on this machine: all changes must be reverted.
    Never(String),
}

impl From<Failure> for RebootStop {
    fn from(why: Failure) -> RebootStop {
        RebootStop::Failed(why)
    }
}

/// Continues in this boot, as far as possible.
///
/// # Errors
/// The tuning cannot continue now; it may later.
pub(crate) fn go_on(
    reboots: &mut dyn Reboots,
    directory: &TuneDirectory,
    spec: &TuningSpec,
    blocks: &mut dyn BlockRunner,
    messages: Listener,
) -> Result<BootOutcome, Failure> {
    let Some(plan) = spec.reboots.clone() else {
        return Err(Failure::refused("this tuning is not one across reboots"));
    };
    reboots.install()?;
    let mut boots =
        Boots { reboots, directory, state: RebootState::read(directory)?, plan, messages };
    let never = match try_each(&mut boots, spec) {
        Ok(()) => None,
        Err(RebootStop::Reboot) => return Ok(BootOutcome::Rebooting),
        Err(RebootStop::Failed(why)) => return Err(why),
        Err(RebootStop::Never(why)) => Some(why),
    };
    let spec = &boots.state.that_came_up(spec);
    if let Some(why) = never.or_else(|| boots.nothing_left(spec)) {
        write_reason(directory, spec, &why)?;
        boots.end()?;
        return Err(Failure::failed(why));
    }
    let (kept, mut tuning) = directory.replay(spec)?;
    let before = kept.last().map_or(Nanos::ZERO, |block| block.elapsed);
    // A boot that the tuning did not request does not count as its time.
    let is_own = is_tuning(&boots.reboots.cmdline()?);
    let since = if is_own { Nanos::ZERO } else { blocks.elapsed() };
    let (last, no_cost) = (None, None);
    let mut machine = AcrossBoots { boots, spec, blocks, kept, before, since, last, no_cost };
    let ran = conduct(&mut tuning, &mut machine);
    let AcrossBoots { mut boots, kept, .. } = machine;
    messages.replace_line("");
    let mut document = document(spec, &tuning, &kept);
    if ran.is_err() {
        document.ended = TuningEnd::Interrupted;
    }
    directory.write(&document)?;
    let broken = match ran {
        Err(RebootStop::Reboot) => return Ok(BootOutcome::Rebooting),
        Err(RebootStop::Failed(why)) => Some(why),
        Err(RebootStop::Never(why)) => {
            boots.end()?;
            Some(Failure::failed(why))
        }
        Ok(()) => {
            boots.end()?;
            None
        }
    };
    Ok(BootOutcome::Ended(Box::new(TuneResult { document, broken })))
}

/// Reverts everything that a tuning wrote outside its directory. Returns each failure with its
/// reason. A boot that it requested does not count as failed.
///
/// # Errors
/// The state cannot be read or written.
pub fn take_back(
    reboots: &mut dyn Reboots,
    directory: &TuneDirectory,
) -> Result<Vec<String>, Failure> {
    let not_done = reboots.disarm()?;
    let mut state = RebootState::read(directory)?;
    if state.armed.is_some() {
        state.forget(directory)?;
    }
    Ok(not_done)
}

/// Removes everything if a tuning cannot begin: a directory that is left could be resumed.
///
/// # Errors
/// Those of beginning the tuning.
pub(crate) fn or_nothing(
    begun: Result<BootOutcome, Failure>,
    reboots: &mut dyn Reboots,
    place: &Path,
) -> Result<BootOutcome, Failure> {
    if begun.is_err() && reboots.disarm().is_ok_and(|not_done| not_done.is_empty()) {
        let _ = std::fs::remove_dir_all(place);
    }
    begun
}

/// Stores why nothing could be measured, in place of the findings.
fn write_reason(directory: &TuneDirectory, spec: &TuningSpec, why: &str) -> Result<(), Failure> {
    let mut spec = spec.clone();
    let tried = std::mem::take(&mut spec.settings).into_iter();
    spec.left_out.extend(tried.map(|setting| NotTried { name: setting.name, why: why.to_owned() }));
    let tuning = Tuning::new(Vec::new(), spec.options());
    let document = document(&spec, &tuning, &[]);
    directory.write(&TuningDocument { ended: TuningEnd::BlocksFailed, ..document })
}

/// Boots the untouched machine and each parameter alone.
fn try_each(boots: &mut Boots, spec: &TuningSpec) -> Result<(), RebootStop> {
    while let Some(names) = boots.state.next_trial(spec) {
        // Without the boot entry itself there is nothing to try.
        if boots.state.trials.first().is_some_and(|trial| !trial.came_up) {
            return Ok(());
        }
        let purpose = format!("trial {}", boots.state.trials.len());
        let words = spec.words_of(&names);
        let came_up = boots.come_up(&names, &words, &purpose)?;
        let name = names.into_iter().next().unwrap_or_default();
        boots.state.trials.push(BootTrial { name, came_up });
        boots.state.keep(boots.directory)?;
    }
    Ok(())
}

/// The boots of this machine.
struct Boots<'a> {
    reboots: &'a mut dyn Reboots,
    directory: &'a TuneDirectory,
    state: RebootState,
    plan: RebootPlan,
    messages: Listener,
}

impl Boots<'_> {
    /// Whether this boot is the requested one for this purpose; if not, requests it and stops.
    /// False if such boots do not come up.
    fn come_up(
        &mut self,
        names: &[String],
        words: &str,
        purpose: &str,
    ) -> Result<bool, RebootStop> {
        let here = self.reboots.boot_id()?;
        if let Some(armed) = self.state.armed.clone().filter(|armed| armed.purpose == purpose)
            && armed.during != here
        {
            // A boot that came up once and boots again panicked under load: a boot loader may
            // repeat that for ever.
            let is_first = armed.came_up_in.as_ref().is_none_or(|at| *at == here);
            if is_first && is_boot(&self.reboots.cmdline()?, armed.boot, words) {
                self.state.armed = Some(Armed { came_up_in: Some(here), ..armed });
                self.state.keep(self.directory)?;
                if let Err(why) = self.reboots.booted() {
                    self.state.forget(self.directory)?;
                    return Err(RebootStop::Never(why.render(false)));
                }
                // Earlier failures were accidents, such as a power cut: that is saved once this
                // boot has been measured.
                self.state.fallen.retain(|fallen| fallen.names != names);
                return Ok(true);
            }
            self.state.armed = None;
            self.state.fell_again(names);
            self.state.keep(self.directory)?;
        }
        if self.state.is_given_up(names) {
            return Ok(false);
        }
        self.state.boots += 1;
        let boot = self.state.boots;
        let purpose = purpose.to_owned();
        let with = if names.is_empty() { "nothing tried".to_owned() } else { names.join(", ") };
        let message = format!("boot {boot}, {purpose}, with {with}");
        self.state.armed = Some(Armed { boot, purpose, during: here, came_up_in: None });
        self.state.keep(self.directory)?;
        let asked = self.reboots.arm(&self.plan.words(boot, words)).and_then(|()| {
            self.messages.progress(&message);
            self.reboots.reboot()
        });
        if let Err(why) = asked {
            // The boot was not tried.
            self.state.forget(self.directory)?;
            return Err(why.into());
        }
        Err(RebootStop::Reboot)
    }

    fn nothing_left(&self, spec: &TuningSpec) -> Option<String> {
        match self.state.trials.first() {
            Some(trial) if !trial.came_up => Some(
                "the boot entry of the tuning does not boot, even without parameters: all changes \
                 were reverted"
                    .to_owned(),
            ),
            _ if spec.settings.is_empty() => {
                Some("no boot with a parameter succeeded: all changes were reverted".to_owned())
            }
            _ => None,
        }
    }

    /// Reverts everything and boots the machine as it was.
    fn end(&mut self) -> Result<(), Failure> {
        let not_done = self.reboots.disarm()?;
        if !not_done.is_empty() {
            return Err(Failure::failed(format!(
                "not everything could be reverted:\n  {}",
                not_done.join("\n  ")
            )));
        }
        match is_tuning(&self.reboots.cmdline()?) {
            true => self.reboots.reboot(),
            false => Ok(()),
        }
    }
}

/// A machine that boots for each block, as the experiment's interface.
struct AcrossBoots<'a> {
    boots: Boots<'a>,
    spec: &'a TuningSpec,
    blocks: &'a mut dyn BlockRunner,
    kept: Vec<BlockRecord>,
    /// The time of earlier boots.
    before: Nanos,
    /// How much of this boot's time is in `before` already, or is not the tuning's.
    since: Nanos,
    last: Option<Observed>,
    no_cost: Option<String>,
}

/// The figures of one boot's blocks.
struct Observed {
    figure: Option<f64>,
    worst: Option<f64>,
    why: Option<String>,
}

impl AcrossBoots<'_> {
    fn observe(&mut self, request: &BlockRequest) -> Result<Observed, RebootStop> {
        let names = self.spec.names(&request.on);
        let words = self.spec.boot_words(&request.on).join(" ");
        let purpose = format!("block {}", self.kept.len() + 1);
        if !self.boots.come_up(&names, &words, &purpose)? {
            let why = format!("boots with {} do not come up", names.join(", "));
            return Ok(Observed { figure: None, worst: None, why: Some(why) });
        }
        self.blocks.wait(self.boots.plan.settle)?;
        let (mut figures, mut why) = (Vec::new(), None);
        for _ in 0..self.boots.plan.blocks {
            let number = self.kept.len() as u64 + 1;
            let BlockMeasurement { figure, why: no } = self.blocks.measure(number, &request.on)?;
            figures.extend(figure.filter(|figure| figure.is_finite()));
            why = no.or(why);
        }
        let is_enough = figures.len() * 2 > self.boots.plan.blocks as usize;
        let mean = figures.iter().map(|of| of.max(1.0).ln()).sum::<f64>() / figures.len() as f64;
        Ok(Observed {
            figure: is_enough.then(|| mean.exp()),
            worst: is_enough.then(|| figures.iter().copied().fold(0.0, f64::max)),
            why: why.filter(|_| !is_enough),
        })
    }
}

impl TunableMachine for AcrossBoots<'_> {
    type Error = RebootStop;

    /// Each block boots on its own, even with the parameters of the one before.
    fn apply(&mut self, _: &[bool]) -> Result<(), RebootStop> {
        Ok(())
    }

    /// After a boot the wait is the same for all.
    fn settle(&mut self, _: Nanos) -> Result<(), RebootStop> {
        Ok(())
    }

    fn measure(&mut self, request: &BlockRequest) -> Result<Option<f64>, RebootStop> {
        let observed = self.observe(request)?;
        let figure = observed.figure;
        self.last = Some(observed);
        Ok(figure)
    }

    fn throughput(&mut self) -> Result<Option<f64>, RebootStop> {
        let Some(command) = &self.spec.cost else { return Ok(None) };
        let measured = self.blocks.throughput(command, self.spec.cost_time())?;
        self.no_cost = measured.why;
        Ok(measured.per_second)
    }

    fn elapsed(&self) -> Nanos {
        self.before + (self.blocks.elapsed() - self.since)
    }

    fn keep(&mut self, request: &BlockRequest, block: MeasuredBlock) -> Result<(), RebootStop> {
        let observed = self.last.take();
        let record = BlockRecord {
            number: self.kept.len() as u64 + 1,
            purpose: request.purpose.word().to_owned(),
            on: self.spec.names(&request.on),
            figure: block.figure,
            worst: observed.as_ref().and_then(|of| of.worst),
            why: observed.and_then(|of| of.why),
            throughput: block.throughput,
            no_throughput: self.no_cost.take(),
            elapsed: block.elapsed,
        };
        self.boots.directory.keep(&record)?;
        progress(self.boots.messages, self.spec, &record);
        self.kept.push(record);
        (self.before, self.since) = (block.elapsed, self.blocks.elapsed());
        Ok(())
    }
}
