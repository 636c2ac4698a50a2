//! `punctual boot`: a trial is requested, verified in its boot, and reverted.
//!
//! The state is beside the boot loader's files, in the directory `punctual`, so that it is there in
//! the trial, too, even if the root file system is in memory.

use super::files::{BootFiles, run_command};
use super::kept::KeptFiles;
use super::systemd_boot::DIRECTORIES as EFI;
use super::words::{Trial, is_trial, trial_mark};
use super::{BootError, Loader, find_loader, grub, raspberry, u_boot};
use crate::check::{self, Context, RuleVerdict};
use crate::files::{Files, Root};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The file of the state, and the directory of it and of the journal.
const STATE: &str = "boot.json";
const PLACE: &str = "punctual";
/// The state of boot loaders without a directory.
const ELSEWHERE: &str = "var/lib/punctual-boot";

const PANIC: &str = "panic=10";
const WATCHDOG: &str = "/dev/watchdog";
/// systemd arms the hardware watchdog when it starts (systemd(1), kernel command line).
const WATCHDOG_WORDS: &str = "systemd.watchdog_sec=60";

/// A trial that was requested and is not reverted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct BootState {
    loader: Loader,
    trial: Trial,
    /// The boot in which it was requested.
    during: String,
}

/// The progress of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialProgress {
    /// The next boot is the trial.
    Requested,
    /// This boot is the trial.
    Running,
    /// It was booted, or could not be; this boot is another one.
    Over,
}

/// The trial of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrialStatus {
    pub trial: Trial,
    pub progress: TrialProgress,
    /// How a running trial differs from the request, in its words, its kernel, or in what of them
    /// is in force.
    pub differences: Vec<String>,
    /// The parts that cannot be read back.
    #[serde(default)]
    pub unknown: Vec<String>,
}

/// How a machine boots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BootStatus {
    /// The boot loader; `None`: none can boot an entry once.
    pub loader: Option<String>,
    /// How the usual boot follows a trial.
    pub way_back: Option<String>,
    /// The end of a trial that hangs before any program runs.
    pub hang: Option<String>,
    /// Why no entry can be booted once.
    pub reasons: Vec<String>,
    /// The usual boot, as its boot loader has it.
    pub usual: Option<String>,
    pub release: String,
    pub cmdline: String,
    pub boot_id: String,
    /// Whether there is a hardware watchdog, which systemd can arm.
    pub watchdog: bool,
    /// The trial that is not reverted.
    pub trial: Option<TrialStatus>,
}

/// A machine below a root.
pub struct BootMachine {
    base: PathBuf,
    root: Root,
    run: fn(&[&str]) -> Result<(), String>,
    step: fn() -> Box<dyn Fn()>,
}

impl BootMachine {
    /// This machine.
    pub fn from_system() -> BootMachine {
        BootMachine::from_tree(Path::new("/"), run_command, || Box::new(|| {}))
    }

    /// The machine of a tree; `step` is called before each change of a disk.
    pub(super) fn from_tree(
        base: &Path,
        run: fn(&[&str]) -> Result<(), String>,
        step: fn() -> Box<dyn Fn()>,
    ) -> BootMachine {
        BootMachine { base: base.to_owned(), root: Root::from_base(base), run, step }
    }

    /// Whether a trial is not taken back, as far as that can be read.
    pub fn has_trial(&self) -> bool {
        matches!(self.read_state(), Ok(Some(_)))
    }

    /// How it boots, and the trial that is not reverted.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_status(&self) -> Result<BootStatus, BootError> {
        let state = self.read_state()?;
        let (loader, reasons) = match &state {
            Some(state) => (Some(state.loader.clone()), Vec::new()),
            None => match find_loader(&self.root, false) {
                Ok(loader) => (Some(loader), Vec::new()),
                Err(reasons) => (None, reasons),
            },
        };
        let cmdline = self.root.read_trimmed("/proc/cmdline")?;
        let (release, boot_id) = (self.kernel_release()?, self.boot_id()?);
        let trial = state.map(|state| {
            let progress = match (is_it(&cmdline, &state), boot_id == state.during) {
                (true, _) => TrialProgress::Running,
                (false, true) => TrialProgress::Requested,
                (false, false) => TrialProgress::Over,
            };
            let (mut differences, mut unknown) = (Vec::new(), Vec::new());
            if progress == TrialProgress::Running {
                differences = state.trial.list_differences(&cmdline);
                if let Some(kernel) = state.trial.kernel.as_ref().filter(|of| **of != release) {
                    differences.push(format!("the kernel is {release}, not {kernel}"));
                }
                self.compare_in_force(&state.trial, &mut differences, &mut unknown);
            }
            TrialStatus { trial: state.trial, progress, differences, unknown }
        });
        Ok(BootStatus {
            loader: loader.as_ref().map(|loader| loader.name().to_owned()),
            way_back: loader.as_ref().map(|loader| loader.way_back().to_owned()),
            hang: loader.as_ref().map(|loader| self.of_a_hang(loader, &cmdline)),
            reasons,
            usual: loader.as_ref().map(format_usual_boot),
            release,
            cmdline,
            boot_id,
            watchdog: self.root.exists(WATCHDOG),
            trial,
        })
    }

    /// The end of a trial that hangs before any program runs. Only kexec leaves a watchdog armed:
    /// drivers stop theirs at a reboot, unless that parameter forbids it (drivers/watchdog/
    /// watchdog_core.c, stop_on_reboot).
    fn of_a_hang(&self, loader: &Loader, cmdline: &str) -> String {
        let state = self.root.read_trimmed("/sys/class/watchdog/watchdog0/state");
        let is_armed = state.is_ok_and(|state| state == "active");
        let stays = cmdline.split_whitespace().any(|word| word == "watchdog.stop_on_reboot=0");
        match loader {
            Loader::Kexec { .. } if is_armed && stays => {
                "the armed watchdog, which kexec does not stop (watchdog.stop_on_reboot=0)"
            }
            Loader::Kexec { .. } => {
                "NOTHING, but a reset by hand or a power switch: that needs an armed watchdog and \
                 watchdog.stop_on_reboot=0 on this command line"
            }
            _ => {
                "a watchdog only if the boot loader or firmware starts one, which is not known \
                 here; else a reset by hand or a power switch"
            }
        }
        .to_owned()
    }

    /// Compares the preemption model and the isolation in force with the request, by the rules of
    /// `check`.
    fn compare_in_force(
        &self,
        trial: &Trial,
        differences: &mut Vec<String>,
        unknown: &mut Vec<String>,
    ) {
        let context = Context::new(&self.root, None);
        for id in ["preemption-request", "isolation-request"] {
            let Some(result) = check::evaluate_rule(id, &context) else { continue };
            let words = format!("{} ({})", result.message, result.evidence);
            match result.verdict {
                RuleVerdict::Ok => {}
                RuleVerdict::Unknown => unknown.push(words),
                _ => differences.push(words),
            }
        }
        let is_named_rt = |kernel: &String| kernel.split('-').any(|part| part == "rt");
        if trial.kernel.as_ref().is_some_and(is_named_rt) {
            match context.environment.kernel.is_real_time() {
                Some(true) => {}
                Some(false) => differences.push("the kernel is not PREEMPT_RT".to_owned()),
                None => unknown.push("whether the kernel is PREEMPT_RT".to_owned()),
            }
        }
    }

    /// Requests a trial of the next boot. `any`: also if the boot loader would repeat it. Returns
    /// the command that restarts the machine into it.
    ///
    /// # Errors
    /// It is refused, or failed: then nothing of it is left, or `restore` reverts it.
    pub fn request_trial(
        &self,
        trial: &Trial,
        any: bool,
    ) -> Result<&'static [&'static str], BootError> {
        trial.check_words()?;
        let existing_trial = self.read_state()?;
        let loader = match &existing_trial {
            Some(state) => state.loader.clone(),
            None if is_trial(&self.root.read("/proc/cmdline")?) => {
                return Err(BootError::Refused(
                    "this boot is a trial, and was reverted: reboot first".to_owned(),
                ));
            }
            None => find_loader(&self.root, any).map_err(|why| {
                BootError::Refused(format!(
                    "this machine cannot be booted once with other parameters:\n  {}",
                    why.join("\n  ")
                ))
            })?,
        };
        let during = self.boot_id()?;
        let trial = self.with_ways_back(trial, &during);
        let files = self.boot_files(loader.clone());
        let arm = || {
            files.kept.make_place()?;
            files
                .kept
                .write_document(STATE, &BootState { loader, trial: trial.clone(), during })?;
            files.request_trial(&trial)
        };
        match arm() {
            Ok(()) => Ok(files.restart_command()),
            Err(why) => {
                self.revert_files(&files)?;
                Err(why)
            }
        }
    }

    /// Makes sure that this boot is the requested one and that it will not be repeated.
    ///
    /// # Errors
    /// How it differs.
    pub fn verify_boot(&self) -> Result<BootStatus, BootError> {
        let status = self.read_status()?;
        let wrong = |why: &str| Err(BootError::Failed(why.to_owned()));
        match &status.trial {
            None => return wrong("no trial was requested"),
            Some(trial) => match trial.progress {
                TrialProgress::Requested => return wrong("it has not been booted yet"),
                TrialProgress::Over => {
                    return wrong("this boot is not the requested one: it fell back");
                }
                TrialProgress::Running if trial.differences.is_empty() => {}
                TrialProgress::Running => return wrong(&trial.differences.join("; ")),
            },
        }
        if let Some(state) = self.read_state()? {
            self.boot_files(state.loader).check_not_repeated()?;
        }
        Ok(status)
    }

    /// Reverts every trial. Returns whether there was one, and each failure with its reason.
    ///
    /// # Errors
    /// The journal cannot be read, or names files that no trial writes.
    pub fn revert_trials(&self) -> Result<(bool, Vec<String>), BootError> {
        let (mut any, mut not_done) = (false, Vec::new());
        for place in self.list_places() {
            match self.state_at(&place)? {
                Some(state) => {
                    any = true;
                    not_done.extend(self.revert_files(&self.boot_files(state.loader))?);
                }
                // Killed before the state was written, or after it was removed.
                None => self.kept_files(&place).leave_place(STATE)?,
            }
        }
        Ok((any, not_done))
    }

    /// The command that restarts the machine into the usual boot.
    pub fn usual_restart(&self) -> Vec<&'static str> {
        match self.root.exists("/run/systemd/system") {
            true => vec!["systemctl", "reboot"],
            false => vec!["reboot"],
        }
    }

    /// Restarts the machine.
    ///
    /// # Errors
    /// The command failed.
    pub fn restart_machine(&self, command: &[&str]) -> Result<(), BootError> {
        (self.run)(command).map_err(BootError::Failed)
    }

    fn revert_files(&self, files: &BootFiles) -> Result<Vec<String>, BootError> {
        let not_done = files.revert_trial()?;
        if not_done.is_empty() {
            files.kept.leave_place(STATE)?;
        }
        Ok(not_done)
    }

    /// A trial with what ends a panic and a hang, and its mark.
    fn with_ways_back(&self, trial: &Trial, during: &str) -> Trial {
        let mut words = Vec::new();
        let has = |name: &str| trial.add.split_whitespace().any(|word| word.starts_with(name));
        if !has("panic=") {
            words.push(PANIC.to_owned());
        }
        let is_systemd = self.root.exists("/run/systemd/system");
        if is_systemd && self.root.exists(WATCHDOG) && !has("systemd.watchdog") {
            words.push(WATCHDOG_WORDS.to_owned());
        }
        words.push(trial_mark(during));
        words.extend(trial.add.split_whitespace().map(str::to_owned));
        Trial { add: words.join(" "), ..trial.clone() }
    }

    fn kernel_release(&self) -> Result<String, BootError> {
        Ok(self.root.read_trimmed("/proc/sys/kernel/osrelease")?)
    }

    fn boot_id(&self) -> Result<String, BootError> {
        Ok(self.root.read_trimmed("/proc/sys/kernel/random/boot_id")?)
    }

    /// The state of the trial that is not reverted.
    fn read_state(&self) -> Result<Option<BootState>, BootError> {
        for place in self.list_places() {
            if let Some(state) = self.state_at(&place)? {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    fn state_at(&self, place: &str) -> Result<Option<BootState>, BootError> {
        let state: Option<BootState> = self.kept_files(place).read_document(STATE)?;
        if let Some(state) = &state
            && place_of(&state.loader) != place
        {
            return Err(BootError::Refused(format!(
                "/{place}/{STATE} is of a boot loader elsewhere: punctual did not write it"
            )));
        }
        Ok(state)
    }

    /// Every directory that can have a state.
    fn list_places(&self) -> Vec<String> {
        let known_directories = grub::DIRECTORIES.iter().chain(&EFI).chain(&raspberry::DIRECTORIES);
        let mut directories: Vec<String> =
            known_directories.map(|directory| (*directory).to_owned()).collect();
        directories.extend(u_boot::mount_points(&self.root));
        let mut all_places: Vec<String> =
            directories.iter().map(|of| format!("{of}/{PLACE}")).collect();
        all_places.push(ELSEWHERE.to_owned());
        all_places.sort();
        all_places.dedup();
        all_places.retain(|place| self.root.exists(&format!("/{place}")));
        all_places
    }

    fn kept_files(&self, place: &str) -> KeptFiles {
        KeptFiles::new(&self.base, &self.base.join(place)).with_step((self.step)())
    }

    fn boot_files(&self, loader: Loader) -> BootFiles {
        let kept = self.kept_files(&place_of(&loader));
        BootFiles::new(&self.base, kept, loader, Box::new(self.run))
    }
}

/// Whether a command line is that of the requested trial.
fn is_it(cmdline: &str, state: &BootState) -> bool {
    let mark = trial_mark(&state.during);
    cmdline.split_whitespace().any(|word| word == mark)
}

fn place_of(loader: &Loader) -> String {
    match loader {
        Loader::Grub { directory, .. }
        | Loader::SystemdBoot { directory, .. }
        | Loader::RaspberryPi { directory, .. }
        | Loader::UBoot { directory, .. } => format!("{directory}/{PLACE}"),
        Loader::Kexec { .. } => ELSEWHERE.to_owned(),
    }
}

/// The usual boot in one line.
fn format_usual_boot(loader: &Loader) -> String {
    match loader {
        Loader::Grub { body, .. } => {
            let line = body.lines().map(str::trim).find(|line| line.starts_with("linux"));
            line.unwrap_or_default().to_owned()
        }
        Loader::SystemdBoot { body, .. } => {
            let has =
                |line: &&str| ["linux", "efi", "options"].iter().any(|word| line.starts_with(word));
            body.lines().filter(has).collect::<Vec<_>>().join(", ")
        }
        Loader::RaspberryPi { directory, .. } => format!("/{directory}/{}", raspberry::CONFIG),
        Loader::UBoot { directory, configuration, .. } => {
            format!("/{directory}/{configuration}").replace("/./", "/")
        }
        Loader::Kexec { cmdline, release } => format!("{release} {cmdline}"),
    }
}
