//! This machine, booted with other parameters.

use super::Reboots;
use super::unit;
use crate::tune::blocks::BlockRuns;
use crate::tune::directory::{TuneDirectory, TuningSpec};
use crate::tune::reboot_plan::RebootPlan;
use crate::tune::reboots::run::{BootOutcome, go_on, or_nothing, take_back};
use punctual_core::Nanos;
use punctual_host::boot::kept::{KeptFiles, NewContent, Revert};
use punctual_host::boot::{BootFiles, Loader, Trial, find, harness, run};
use punctual_host::files::{Files, Root};
use punctual_host::isolate::check_rights;
use punctual_host::service_program::{check_survives_boot, resolve_links};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::{Listener, shown};
use punctual_stats::tune::TuneFigure;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const WATCHDOG: &str = "/dev/watchdog";

/// How this machine can be booted with other parameters.
///
/// # Errors
/// The reason why it cannot.
pub fn plan(files: &dyn Files, blocks: u32, settle: Nanos) -> Result<RebootPlan, Failure> {
    let loader = loader(files).map_err(|why| {
        Failure::refused(format!(
            "this machine cannot be booted for one time with other parameters:\n  {}",
            why.join("\n  ")
        ))
    })?;
    let watchdog = files.exists(WATCHDOG);
    let cwd = std::env::current_dir().map_err(Failure::failed)?;
    Ok(RebootPlan { blocks, settle, loader, watchdog, cwd: Some(cwd) })
}

fn loader(files: &dyn Files) -> Result<Loader, Vec<String>> {
    let is_harness = harness(files).is_ok_and(|of| of.is_some());
    if !is_harness && !files.exists("/run/systemd/system") {
        return Err(vec!["no systemd is running, which would continue after a boot".to_owned()]);
    }
    match find(files, false)? {
        Loader::Kexec { .. } => Err(vec!["there is no boot loader with entries".to_owned()]),
        loader => Ok(loader),
    }
}

/// The files that a tuning writes, each with its purpose.
pub fn files_of(plan: &RebootPlan) -> Vec<(String, &'static str)> {
    let mut files = match &plan.loader {
        Loader::Harness { file } => return vec![(file.clone(), "what the harness boots next")],
        loader => loader.purposes(),
    };
    files.push((format!("/{}", unit::UNIT), "a service that continues after each boot"));
    files.push((format!("/{}", unit::WANTED), "a link that starts it"));
    files
}

/// The files of the service.
fn files_of_service() -> [(String, Revert); 2] {
    [unit::UNIT, unit::WANTED].map(|path| (path.to_owned(), Revert::Own))
}

/// A machine below a root directory.
pub struct RootedSystem {
    root: Root,
    files: BootFiles,
    plan: RebootPlan,
    /// The program and the tuning's directory that the service names.
    program: PathBuf,
    place: PathBuf,
    /// Whether the next boot is requested: some firmware wants to be told as the machine restarts.
    is_armed: bool,
}

/// Runs a command.
pub(crate) type RunCommand = Box<dyn Fn(&[&str]) -> Result<(), String>>;

impl RootedSystem {
    /// The system below this root; its notes are in the tuning's directory.
    pub fn new(
        base: &Path,
        kept: KeptFiles,
        plan: RebootPlan,
        program: PathBuf,
        place: PathBuf,
        run: RunCommand,
    ) -> RootedSystem {
        let files = BootFiles::new(base, kept, plan.loader.clone(), run);
        RootedSystem { root: Root::at(base), files, plan, program, place, is_armed: false }
    }

    /// Checks that everything the service needs exists after a boot.
    ///
    /// # Errors
    /// The missing or doubtful files.
    pub(crate) fn outlives_boots(&self) -> Result<(), Failure> {
        if let Loader::Harness { .. } = self.plan.loader {
            return Ok(());
        }
        let mounts = self.read("/proc/self/mounts")?;
        let needed = [&self.place, &self.program].into_iter().chain(&self.plan.cwd);
        for path in needed {
            check_survives_boot(&mounts, &resolve_links(path)).map_err(|why| {
                Failure::refused(format!(
                    "after a boot the tuning needs its directory, punctual, and the directory in \
                     which it was begun: {why}"
                ))
            })?;
        }
        Ok(())
    }

    fn read(&self, path: &str) -> Result<String, Failure> {
        self.root.read_trimmed(path).map_err(Failure::failed)
    }
}

impl Reboots for RootedSystem {
    fn arm(&mut self, words: &str) -> Result<(), Failure> {
        self.is_armed = true;
        Ok(self.files.arm(&Trial::of_words(words))?)
    }

    fn cmdline(&self) -> Result<String, Failure> {
        self.read("/proc/cmdline")
    }

    fn booted(&mut self) -> Result<(), Failure> {
        Ok(self.files.booted()?)
    }

    fn boot_id(&self) -> Result<String, Failure> {
        self.read("/proc/sys/kernel/random/boot_id")
    }

    fn install(&mut self) -> Result<(), Failure> {
        if let Loader::Harness { .. } = self.plan.loader {
            return Ok(());
        }
        let text = unit::text(&self.program, &self.place, self.plan.cwd.as_deref());
        let kept = &self.files.kept;
        kept.write(unit::UNIT, &NewContent::Bytes(text.as_bytes()), Revert::Own)?;
        Ok(kept.write(unit::WANTED, &NewContent::Link(unit::WANTED_TARGET), Revert::Own)?)
    }

    fn disarm(&mut self) -> Result<Vec<String>, Failure> {
        self.is_armed = false;
        Ok(self.files.revert(&files_of_service())?)
    }

    fn reboot(&mut self) -> Result<(), Failure> {
        match &self.plan.loader {
            // The guest ends with its job.
            Loader::Harness { .. } => Ok(()),
            _ if self.is_armed => Ok(self.files.command(self.files.restart())?),
            _ => Ok(self.files.command(&["systemctl", "reboot"])?),
        }
    }
}

/// Begins a tuning across reboots: this process requests the first boot.
///
/// # Errors
/// The tuning cannot begin; all changes are reverted then.
pub fn begin(
    place: &Path,
    experiment: &[u8],
    spec: &TuningSpec,
    messages: Listener,
) -> Result<BootOutcome, Failure> {
    check_rights(&Root::system()).map_err(Failure::refused)?;
    let mut system = this_machine(place, spec)?;
    system.outlives_boots()?;
    let directory = TuneDirectory::create(place, experiment, spec)?;
    let begun = on_this_machine(&mut system, &directory, spec, messages);
    or_nothing(begun, &mut system, place)
}

/// Resumes after a boot.
///
/// # Errors
/// The tuning cannot resume.
pub fn resume(place: &Path, messages: Listener) -> Result<(TuningSpec, BootOutcome), Failure> {
    let (directory, spec) = TuneDirectory::open(place)?;
    check_rights(&Root::system()).map_err(Failure::refused)?;
    let outcome = on_this_machine(&mut this_machine(place, &spec)?, &directory, &spec, messages)?;
    Ok((spec, outcome))
}

/// Reverts all writes of a tuning outside its directory. Returns each failure with its reason.
///
/// # Errors
/// The directory is not of a tuning across reboots, or the tuning is running.
pub fn undo(place: &Path) -> Result<Vec<String>, Failure> {
    let (directory, spec) = TuneDirectory::open(place)?;
    take_back(&mut this_machine(place, &spec)?, &directory)
}

/// The directory of a tuning that resumes after the next boot.
pub fn going_on(files: &dyn Files) -> Option<String> {
    unit::place(&files.read(&format!("/{}", unit::UNIT)).ok()?)
}

fn this_machine(place: &Path, spec: &TuningSpec) -> Result<RootedSystem, Failure> {
    let Some(plan) = spec.reboots.clone() else {
        return Err(Failure::refused(format!(
            "{} holds no tuning across reboots: what others change, `punctual isolate undo` takes \
             back",
            shown(place)
        )));
    };
    if !is_possible(&Root::system(), &plan.loader) {
        return Err(Failure::refused(format!(
            "{} holds a tuning of another machine: its files do not belong to a boot loader of \
             this machine",
            shown(place)
        )));
    }
    let place = std::path::absolute(place).map_err(Failure::failed)?;
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let kept = KeptFiles::new(Path::new("/"), &place);
    Ok(RootedSystem::new(Path::new("/"), kept, plan, program, place, Box::new(run)))
}

/// Whether a tuning of this machine can have these files: its directory names files that root
/// writes and removes.
pub fn is_possible(files: &dyn Files, loader: &Loader) -> bool {
    match loader {
        Loader::Harness { file } => harness(files).is_ok_and(|of| of.as_ref() == Some(file)),
        loader => loader.is_in_a_known_place(files),
    }
}

fn on_this_machine(
    system: &mut RootedSystem,
    directory: &TuneDirectory,
    spec: &TuningSpec,
    messages: Listener,
) -> Result<BootOutcome, Failure> {
    let up = system.read("/proc/uptime")?;
    let up = up.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    let up = up.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or_default();
    let now = Instant::now();
    let mut runs = BlockRuns {
        experiment: directory.experiment(),
        place: directory.runs(),
        figure: TuneFigure::parse(&spec.figure).map_err(Failure::refused)?,
        spec: spec.clone(),
        interrupts: SignalRequests::listen()?,
        // The time of a boot counts as the tuning's, too.
        began: now.checked_sub(up).unwrap_or(now),
    };
    go_on(system, directory, spec, &mut runs, messages)
}
