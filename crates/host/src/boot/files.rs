//! The files of a trial: written, checked and reverted for each boot loader.

use super::kept::{KeptFiles, Revert};
use super::words::Trial;
use super::{BootError, Loader, find_installed, grub, raspberry, systemd_boot, u_boot};
use crate::files::{Files, Root};
use std::path::Path;

/// Runs a command.
type RunCommand = Box<dyn Fn(&[&str]) -> Result<(), String>>;

/// The files of a boot loader below a root.
pub struct BootFiles {
    root: Root,
    pub kept: KeptFiles,
    pub loader: Loader,
    run: RunCommand,
}

impl BootFiles {
    /// The files below this root.
    pub fn new(base: &Path, kept: KeptFiles, loader: Loader, run: RunCommand) -> BootFiles {
        BootFiles { root: Root::from_base(base), kept, loader, run }
    }

    /// Requests a trial of the next boot, and of that alone.
    ///
    /// # Errors
    /// It cannot be requested; a part may be written then, which [`BootFiles::revert_trial`]
    /// reverts.
    pub fn request_trial(&self, trial: &Trial) -> Result<(), BootError> {
        trial.check_words()?;
        let refused = BootError::Refused;
        match &self.loader {
            Loader::Grub { directory, body, .. } => {
                let entry =
                    grub::trial_body(&self.root, directory, body, trial).map_err(refused)?;
                let custom = format!("{directory}/custom.cfg");
                let text = self.kept.read_text(&custom)?.unwrap_or_default();
                if grub::has_entry(&text) && !self.kept.has_written(&custom)? {
                    return Err(BootError::Refused(format!(
                        "/{custom} has an entry of another change of the boot (`punctual boot \
                         restore`)"
                    )));
                }
                let text = grub::with_entry(&text, &entry);
                self.write_file(&custom, text.as_bytes(), Revert::GrubCustom)?;
                let environment = format!("{directory}/grubenv");
                let text = self.kept.read_text(&environment)?.unwrap_or_default();
                let text = grub::with_next_entry(&text, Some(grub::ENTRY)).map_err(|why| {
                    BootError::Failed(format!("cannot change /{environment}: {why}"))
                })?;
                self.write_file(&environment, text.as_bytes(), Revert::GrubEnvironment)
            }
            Loader::SystemdBoot { directory, body } => {
                let text = systemd_boot::trial_entry(&self.root, directory, body, trial)
                    .map_err(refused)?;
                let entry = format!("{directory}/{}", systemd_boot::FILE);
                self.write_file(&entry, text.as_bytes(), Revert::Counted)?;
                self.run_command(&["bootctl", "set-oneshot", systemd_boot::ID])
            }
            Loader::RaspberryPi { directory, tryboot } => {
                let config = format!("{directory}/{}", raspberry::CONFIG);
                let usual = match tryboot {
                    true => self.kept.read_text(&config)?,
                    false => self.kept.text_before_change(&config)?,
                };
                let usual = usual.ok_or_else(|| BootError::Refused(format!("no /{config}")))?;
                let (text, cmdline) = raspberry::trial_files(&self.root, directory, &usual, trial)
                    .map_err(refused)?;
                let path = format!("{directory}/{}", raspberry::CMDLINE);
                self.write_file(&path, cmdline.as_bytes(), Revert::Own)?;
                let path = format!("{directory}/{}", raspberry::TRYBOOT);
                match tryboot {
                    true => self.write_file(&path, text.as_bytes(), Revert::Own),
                    false => self.write_file(&config, text.as_bytes(), Revert::Whole),
                }
            }
            Loader::UBoot { directory, configuration, environment } => {
                let path = format!("{directory}/{configuration}");
                let usual = self.kept.read_text(&path)?.unwrap_or_default();
                let text = u_boot::trial_configuration(&self.root, directory, &usual, trial)
                    .map_err(refused)?;
                let path = |name: &str| format!("{directory}/{name}");
                self.write_file(&path(u_boot::TRIAL), text.as_bytes(), Revert::Own)?;
                let script = u_boot::build_script(configuration, *environment);
                self.write_file(&path(u_boot::SCRIPT), &script, Revert::Own)?;
                if *environment {
                    return self.run_command(&["fw_setenv", u_boot::VARIABLE, "1"]);
                }
                self.write_file(
                    &path(u_boot::ONCE),
                    b"boot punctual/trial.conf once\n",
                    Revert::Own,
                )
            }
            Loader::Kexec { cmdline, release } => {
                let release = trial.kernel.as_ref().unwrap_or(release);
                let (kernel, initrd) =
                    find_installed(&self.root, "/boot", release).ok_or_else(|| {
                        BootError::Refused(format!("kexec: there is no kernel {release} in /boot"))
                    })?;
                let words = format!("--command-line={}", trial.apply_to(cmdline));
                let initrd = initrd.map(|path| format!("--initrd={path}"));
                let mut command = vec!["kexec", "-l", &kernel, &words];
                command.extend(initrd.as_deref());
                self.run_command(&command)
            }
        }
    }

    /// Makes sure that this boot, which was requested, is not repeated by the boot loader.
    ///
    /// # Errors
    /// It would be repeated, or that is unknown.
    pub(crate) fn check_not_repeated(&self) -> Result<(), BootError> {
        let repeated = |what: String| {
            let reason = format!("{what}: boots for one time are impossible");
            Err(BootError::Failed(reason))
        };
        match &self.loader {
            Loader::Grub { directory, repeats: false, .. } => {
                let environment = format!("{directory}/grubenv");
                let text = self.kept.read_text(&environment)?.unwrap_or_default();
                let next = grub::next_entry(&text)
                    .map_err(|why| BootError::Failed(format!("/{environment}: {why}")))?;
                match next.is_none_or(|entry| entry.is_empty()) {
                    true => Ok(()),
                    false => repeated("GRUB did not clear next_entry".to_owned()),
                }
            }
            // An entry marked good no longer counts down, and may boot without a request.
            Loader::SystemdBoot { directory, .. } => {
                self.kept.remove_entry(&format!("{directory}/{}", systemd_boot::FILE))
            }
            Loader::UBoot { environment: true, .. } => {
                match (self.run)(&["fw_printenv", u_boot::VARIABLE]) {
                    Err(why) if why.contains("not defined") => Ok(()),
                    Err(why) => Err(BootError::Failed(why)),
                    Ok(()) => repeated(format!("U-Boot did not clear {}", u_boot::VARIABLE)),
                }
            }
            Loader::UBoot { directory, .. } => {
                let flag = format!("{directory}/{}", u_boot::ONCE);
                match self.root.exists(&format!("/{flag}")) {
                    true => repeated(format!("U-Boot did not remove /{flag}")),
                    false => Ok(()),
                }
            }
            Loader::RaspberryPi { tryboot: true, .. } => match raspberry::is_tryboot(&self.root) {
                Some(false) => {
                    Err(BootError::Failed("the firmware says that this is no tryboot".to_owned()))
                }
                Some(true) | None => Ok(()),
            },
            Loader::Grub { .. } | Loader::RaspberryPi { .. } | Loader::Kexec { .. } => Ok(()),
        }
    }

    /// Reverts the request and all files. Returns each failure with its reason.
    ///
    /// # Errors
    /// The note cannot be read, or names another file: nothing is changed then.
    pub fn revert_trial(&self) -> Result<Vec<String>, BootError> {
        // Without a written entry, the setting of the next boot is not ours.
        let has_entry = match &self.loader {
            Loader::SystemdBoot { directory, .. } => {
                self.kept.has_written(&format!("{directory}/{}", systemd_boot::FILE))?
            }
            Loader::UBoot { directory, environment: true, .. } => {
                self.kept.has_written(&format!("{directory}/{}", u_boot::SCRIPT))?
            }
            _ => false,
        };
        let mut not_done = Vec::new();
        match &self.loader {
            // An empty name removes the variable (bootctl(1)). Kernels with PREEMPT_RT show no
            // variables by default (efi=noruntime); systemd-boot removed this one before them.
            Loader::SystemdBoot { .. } if has_entry && systemd_boot::is_used(&self.root) => {
                not_done.extend((self.run)(&["bootctl", "set-oneshot", ""]).err());
            }
            Loader::UBoot { environment: true, .. } if has_entry => {
                not_done.extend((self.run)(&["fw_setenv", u_boot::VARIABLE]).err());
            }
            Loader::Kexec { .. } => not_done.extend((self.run)(&["kexec", "-u"]).err()),
            _ => {}
        }
        not_done.extend(self.kept.undo_all(&self.loader.trial_files())?);
        Ok(not_done)
    }

    /// The command that restarts the machine into a trial.
    pub(crate) fn restart_command(&self) -> &'static [&'static str] {
        let is_systemd = self.root.exists("/run/systemd/system");
        match &self.loader {
            Loader::RaspberryPi { tryboot: true, .. } => &["reboot", "0 tryboot"],
            Loader::Kexec { .. } if is_systemd => &["systemctl", "kexec"],
            Loader::Kexec { .. } => &["kexec", "-e"],
            _ if is_systemd => &["systemctl", "reboot"],
            _ => &["reboot"],
        }
    }

    /// Runs a command of this machine.
    ///
    /// # Errors
    /// It failed.
    pub fn run_command(&self, words: &[&str]) -> Result<(), BootError> {
        (self.run)(words).map_err(BootError::Failed)
    }

    fn write_file(&self, path: &str, bytes: &[u8], how: Revert) -> Result<(), BootError> {
        self.kept.write(path, bytes, how)
    }
}

/// Runs a command without input, and keeps its messages for the error.
///
/// # Errors
/// It cannot be started, or failed.
pub fn run_command(words: &[&str]) -> Result<(), String> {
    let failed = |why: String| format!("`{}` failed: {why}", words.join(" "));
    let (program, arguments) = words.split_first().ok_or_else(|| failed(String::new()))?;
    let mut command = std::process::Command::new(program);
    command.args(arguments).stdin(std::process::Stdio::null());
    let output = command.output().map_err(|why| failed(why.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
