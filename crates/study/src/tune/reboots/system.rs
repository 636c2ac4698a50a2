//! This machine, booted with other parameters.

use super::Reboots;
use super::reverts::{KeptFiles, NewContent, Revert};
use super::{grub, lasting, systemd_boot, unit};
use crate::tune::blocks::BlockRuns;
use crate::tune::directory::{TuneDirectory, TuningSpec};
use crate::tune::reboot_plan::{Loader, RebootPlan};
use crate::tune::reboots::run::{BootOutcome, go_on, or_nothing, take_back};
use punctual_core::Nanos;
use punctual_host::files::{FileError, Files, Root};
use punctual_host::isolate::check_rights;
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::{Listener, shown};
use punctual_stats::tune::TuneFigure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The word of a guest's command line whose harness boots it again.
const HARNESS: &str = "punctual.reboots=";
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

/// The file that the harness of this guest reads.
fn harness(files: &dyn Files) -> Result<Option<String>, FileError> {
    let cmdline = files.read("/proc/cmdline")?;
    let file = cmdline.split_whitespace().find_map(|word| word.strip_prefix(HARNESS));
    Ok(file.map(str::to_owned))
}

fn loader(files: &dyn Files) -> Result<Loader, Vec<String>> {
    if let Some(file) = harness(files).map_err(|why| vec![why.to_string()])? {
        return Ok(Loader::Harness { file });
    }
    if !files.exists("/run/systemd/system") {
        return Err(vec!["no systemd is running, which would continue after a boot".to_owned()]);
    }
    let of_systemd = systemd_boot::find(files);
    if let Ok((directory, body)) = of_systemd {
        return Ok(Loader::SystemdBoot { directory, body });
    }
    // If systemd-boot boots this system, a configuration of GRUB is a leftover.
    let of_grub = match systemd_boot::is_used(files) {
        true => Err("GRUB: it did not boot this system".to_owned()),
        false => grub::find(files),
    };
    match of_grub {
        Ok((directory, body)) => Ok(Loader::Grub { directory, body }),
        Err(why) => Err(of_systemd.err().into_iter().chain([why]).collect()),
    }
}

/// The files that a tuning writes, each with its purpose.
pub fn files_of(plan: &RebootPlan) -> Vec<(String, &'static str)> {
    let mut files = match &plan.loader {
        Loader::Grub { directory, .. } => vec![
            (
                format!("/{directory}/custom.cfg"),
                "an entry `punctual-tune`: the one that was booted, with the parameters of a boot",
            ),
            (
                format!("/{directory}/grubenv"),
                "next_entry: GRUB clears it as it boots that entry, and boots the usual one after",
            ),
        ],
        Loader::SystemdBoot { directory, .. } => vec![
            (
                format!("/{directory}/{}", systemd_boot::FILE),
                "the entry that was booted, with the parameters of a boot; it counts for one boot",
            ),
            (
                "the EFI variable LoaderEntryOneShot".to_owned(),
                "systemd-boot removes it before it boots that entry, and boots the usual one after",
            ),
        ],
        Loader::Harness { file } => return vec![(file.clone(), "what the harness boots next")],
    };
    files.push((format!("/{}", unit::UNIT), "a service that continues after each boot"));
    files.push((format!("/{}", unit::WANTED), "a link that starts it"));
    files
}

/// A machine below a root directory.
pub struct RootedSystem {
    root: Root,
    base: PathBuf,
    kept: KeptFiles,
    plan: RebootPlan,
    /// The program and the tuning's directory that the service names.
    program: PathBuf,
    place: PathBuf,
    run: RunSystemctl,
}

/// Runs a command of systemd.
type RunSystemctl = Box<dyn Fn(&[&str]) -> Result<(), Failure>>;

impl RootedSystem {
    /// The system below this root; its notes are in the tuning's directory.
    pub fn new(
        base: &Path,
        kept: KeptFiles,
        plan: RebootPlan,
        program: PathBuf,
        place: PathBuf,
    ) -> RootedSystem {
        let (root, base) = (Root::at(base), base.to_owned());
        RootedSystem { root, base, kept, plan, program, place, run: Box::new(run) }
    }

    /// The same system with another way to run commands.
    #[cfg(test)]
    pub(crate) fn with_run(self, run: RunSystemctl) -> RootedSystem {
        RootedSystem { run, ..self }
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
            lasting::check(&mounts, &lasting::real(path)).map_err(|why| {
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
        if !is_plain(words) {
            return Err(Failure::refused(format!("`{words}` cannot be part of a boot entry")));
        }
        match &self.plan.loader {
            Loader::Grub { directory, body } => {
                let custom = format!("{directory}/custom.cfg");
                let text = self.kept.text(&custom)?.unwrap_or_default();
                let text = grub::with_entry(&text, body, words);
                self.kept.write(&custom, &NewContent::Text(&text), Revert::GrubCustom)?;
                let environment = format!("{directory}/grubenv");
                let text = self.kept.text(&environment)?.unwrap_or_default();
                let text = grub::with_next_entry(&text, Some(grub::ENTRY)).map_err(|why| {
                    Failure::failed(format!("cannot change /{environment}: {why}"))
                })?;
                self.kept.write(&environment, &NewContent::Text(&text), Revert::GrubEnvironment)
            }
            Loader::SystemdBoot { directory, body } => {
                let entry = format!("{directory}/{}", systemd_boot::FILE);
                let text = systemd_boot::with_words(body, words);
                self.kept.write(&entry, &NewContent::Text(&text), Revert::Counted)?;
                (self.run)(&["bootctl", "set-oneshot", systemd_boot::ID])
            }
            Loader::Harness { file } => {
                let path = self.base.join(file.trim_start_matches('/'));
                std::fs::write(&path, format!("{words}\n"))
                    .map_err(|why| Failure::failed(format!("cannot write {}: {why}", shown(&path))))
            }
        }
    }

    fn cmdline(&self) -> Result<String, Failure> {
        self.read("/proc/cmdline")
    }

    fn booted(&mut self) -> Result<(), Failure> {
        match &self.plan.loader {
            Loader::Grub { directory, .. } => {
                let environment = format!("{directory}/grubenv");
                let text = self.kept.text(&environment)?.unwrap_or_default();
                let next = grub::next_entry(&text)
                    .map_err(|why| Failure::failed(format!("/{environment}: {why}")))?;
                match next.is_none_or(|entry| entry.is_empty()) {
                    true => Ok(()),
                    false => Err(Failure::failed(
                        "GRUB did not clear next_entry: one-time boots are impossible",
                    )),
                }
            }
            // An entry marked good no longer counts down, and may boot without a request.
            Loader::SystemdBoot { directory, .. } => {
                self.kept.remove_entry(&format!("{directory}/{}", systemd_boot::FILE))
            }
            Loader::Harness { .. } => Ok(()),
        }
    }

    fn boot_id(&self) -> Result<String, Failure> {
        self.read("/proc/sys/kernel/random/boot_id")
    }

    fn install(&mut self) -> Result<(), Failure> {
        if let Loader::Harness { .. } = self.plan.loader {
            return Ok(());
        }
        let text = unit::text(&self.program, &self.place, self.plan.cwd.as_deref());
        self.kept.write(unit::UNIT, &NewContent::Text(&text), Revert::Own)?;
        self.kept.write(unit::WANTED, &NewContent::Link(unit::WANTED_TARGET), Revert::Own)
    }

    fn disarm(&mut self) -> Result<Vec<String>, Failure> {
        // Without a written entry, the setting of the next boot is not ours.
        let has_entry = match &self.plan.loader {
            Loader::SystemdBoot { directory, .. } => {
                self.kept.has(&format!("{directory}/{}", systemd_boot::FILE))?
            }
            _ => false,
        };
        let mut not_done = self.kept.undo(&files_of(&self.plan))?;
        match &self.plan.loader {
            // An empty name removes the variable (bootctl(1)).
            Loader::SystemdBoot { .. } if has_entry => {
                let cleared = (self.run)(&["bootctl", "set-oneshot", ""]);
                not_done.extend(cleared.err().map(|why| why.render(false)));
            }
            Loader::Harness { file } => {
                let _ = std::fs::remove_file(self.base.join(file.trim_start_matches('/')));
            }
            Loader::Grub { .. } | Loader::SystemdBoot { .. } => {}
        }
        Ok(not_done)
    }

    fn reboot(&mut self) -> Result<(), Failure> {
        match &self.plan.loader {
            // The guest ends with its job.
            Loader::Harness { .. } => Ok(()),
            _ => (self.run)(&["systemctl", "reboot"]),
        }
    }
}

/// Whether these words have no special meaning to GRUB (its configuration is a script) and systemd.
fn is_plain(words: &str) -> bool {
    words.chars().all(|c| c.is_ascii_alphanumeric() || " =.,_-:/@+".contains(c))
}

fn run(words: &[&str]) -> Result<(), Failure> {
    let failed = |why: String| Failure::failed(format!("`{}` failed: {why}", words.join(" ")));
    let (program, arguments) = words.split_first().ok_or_else(|| failed(String::new()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().map_err(|why| failed(why.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
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
    Ok(RootedSystem::new(Path::new("/"), kept, plan, program, place))
}

/// Whether a tuning of this machine can have these files: its directory names files that root
/// writes and removes.
pub fn is_possible(files: &dyn Files, loader: &Loader) -> bool {
    match loader {
        Loader::Grub { directory, .. } => grub::DIRECTORIES.contains(&directory.as_str()),
        Loader::SystemdBoot { directory, .. } => {
            systemd_boot::DIRECTORIES.contains(&directory.as_str())
        }
        Loader::Harness { file } => harness(files).is_ok_and(|of| of.as_ref() == Some(file)),
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
