//! Boots of boards behind ssh(1): the boot that an experiment asks for is made by `punctual boot`
//! there, verified, and taken back.

use super::power;
use super::remote::{RemoteRun, Returned};
use super::ssh::{self as ssh_target, SshWatch, destination_of_plan, to_failure};
use jiff::Timestamp;
use punctual_core::format::escape_unsafe;
use punctual_host::boot::MARK;
use punctual_host::boot::once::{BootStatus, TrialProgress};
use punctual_lab::ssh::{self, Connection, ErrorPlace, RemoteProgram, RemoteWatch};
use punctual_plan::SshPlan;
use punctual_plan::target::SshBoot;
use punctual_session::exit::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// The words in the message of a board that does not come back.
pub(crate) const NOT_REACHED: &str = "not reached since";
#[derive(Deserialize)]
struct Requested {
    restart: Vec<String>,
}

/// A run on another system, in the boot that it asks for.
pub(crate) fn carry_out(plan: &SshPlan, remote: &RemoteRun) -> Result<Returned, Failure> {
    let options = &remote.options;
    let is_new = options.ssh.resume.is_none() && !options.plan_only;
    if is_new && (plan.boot.is_some() || options.ssh.keep_boot) {
        ensure_boot(plan, plan.boot.as_ref(), &mut SshWatch::new(remote.messages)?)?;
    }
    let returned = ssh_target::carry_out(plan, remote);
    // A reboot would end a run that can still be fetched.
    let is_run_left = returned.as_ref().err().is_some_and(|why| why.is_run_left);
    if is_run_left && is_new && plan.boot.is_some() {
        let host = &plan.host;
        let left = format!("{host} stays in its trial: then restore it there by `boot restore`");
        remote.messages.report_error(&left);
    } else if is_new && plan.boot.is_some() && !options.ssh.keep_boot {
        let restored = restore_board(plan, &mut SshWatch::new(remote.messages)?);
        restored.err().iter().for_each(|why| remote.messages.report_error(&why.render(false)));
    }
    returned.map_err(|why| why.failure)
}

/// Boots a board as an experiment asks, unless it is booted so: `None` is its usual boot.
///
/// # Errors
/// It cannot be booted so, came up otherwise, or did not come back; where it can be reached,
/// nothing of the trial is left there.
pub(crate) fn ensure_boot(
    plan: &SshPlan,
    wanted: Option<&SshBoot>,
    watch: &mut dyn RemoteWatch,
) -> Result<(), Failure> {
    let board = Board { plan };
    // Left by a trial that hung: a command that gives power brings it back.
    if plan.power.is_some() && !board.is_reachable() && power::switch_power(plan, watch)? {
        board.wait_for_boot("", watch)?;
    }
    let (before, then, is_left) = board.with_program(|program| {
        let status = board.boot_status(program)?;
        // Reverted in the trial itself, by a process that was killed before it rebooted.
        let mut words = status.cmdline.split_whitespace();
        if status.trial.is_none() && words.any(|word| word.starts_with(MARK)) {
            return Ok((status.boot_id, Some(usual_restart()), true));
        }
        let progress = status.trial.as_ref().map(|trial| trial.progress);
        let is_running = progress == Some(TrialProgress::Running);
        let then = match wanted {
            None if progress.is_none() => None,
            None => {
                board.run_checked(program, &["boot", "restore"])?;
                is_running.then(usual_restart)
            }
            Some(wanted) if is_running && is_same(&status, wanted) => {
                board.run_checked(program, &["boot", "verify", "--json"])?;
                None
            }
            Some(wanted) => match board.request_trial(program, wanted) {
                // PREEMPT_RT shows no EFI variables by default: the usual boot requests the next.
                Err(_) if is_running => {
                    board.run_checked(program, &["boot", "restore"])?;
                    return Ok((status.boot_id, Some(usual_restart()), true));
                }
                answer => Some(answer?),
            },
        };
        Ok((status.boot_id, then, false))
    })?;
    let Some(command) = then else { return Ok(()) };
    let usual = || "its usual system".to_owned();
    let what = wanted.filter(|_| !is_left).map_or_else(usual, SshBoot::to_words);
    watch.show_note(&format!("{}: rebooting into {what}", plan.host));
    board.restart_board(&command, &before, watch)?;
    if is_left {
        return ensure_boot(plan, wanted, watch);
    }
    if wanted.is_none() {
        return Ok(());
    }
    board.with_program(|program| {
        let verified: Result<BootStatus, Failure> =
            board.run_for_json(program, &["boot", "verify", "--json"]);
        match &verified {
            Ok(status) => {
                let unknown = status.trial.iter().flat_map(|trial| &trial.unknown);
                unknown.for_each(|what| watch.show_note(&format!("{}: {what}", plan.host)));
            }
            Err(_) => drop(board.run_checked(program, &["boot", "restore"])),
        }
        verified.map(drop)
    })
}

fn usual_restart() -> Vec<String> {
    vec!["reboot".to_owned()]
}

/// Brings a board back to its usual boot.
///
/// # Errors
/// It cannot be reached, or not everything could be reverted.
pub(crate) fn restore_board(plan: &SshPlan, watch: &mut dyn RemoteWatch) -> Result<(), Failure> {
    ensure_boot(plan, None, watch)
}

/// Whether the running trial is of these words and this kernel, besides what punctual adds.
fn is_same(status: &BootStatus, wanted: &SshBoot) -> bool {
    let Some(trial) = &status.trial else { return false };
    let words: Vec<&str> = trial.trial.add.split_whitespace().collect();
    let mark = words.iter().position(|word| word.starts_with(MARK));
    let requested_words = mark.map_or(&words[..], |place| &words[place + 1..]);
    trial.trial.kernel == wanted.kernel
        && trial.trial.remove.is_empty()
        && requested_words.iter().copied().eq(wanted.cmdline.split_whitespace())
}

struct Board<'a> {
    plan: &'a SshPlan,
}

impl Board<'_> {
    /// Does something with the program there, and removes it.
    fn with_program<T>(
        &self,
        act: impl FnOnce(&RemoteProgram) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let to = destination_of_plan(self.plan);
        let program =
            RemoteProgram::send_to(&to, self.plan.binary.as_deref()).map_err(to_failure)?;
        let done = act(&program);
        let removed = program.remove().map_err(to_failure);
        done.and_then(|value| removed.map(|()| value))
    }

    fn is_reachable(&self) -> bool {
        let open = Connection::open(&destination_of_plan(self.plan));
        open.err().is_none_or(|why| why.trouble != ErrorPlace::Unreachable)
    }

    /// The answer to a command that must succeed.
    fn run_checked(&self, program: &RemoteProgram, words: &[&str]) -> Result<Vec<u8>, Failure> {
        let answer = program.run_words(words).map_err(to_failure)?;
        match answer.is_done {
            true => Ok(answer.stdout),
            false => {
                let plain_messages = escape_unsafe(&answer.messages);
                Err(Failure::failed(format!("{}: {plain_messages}", self.plan.host)))
            }
        }
    }

    /// The answer in JSON.
    fn run_for_json<T: DeserializeOwned>(
        &self,
        program: &RemoteProgram,
        words: &[&str],
    ) -> Result<T, Failure> {
        serde_json::from_slice(&self.run_checked(program, words)?).map_err(|why| {
            Failure::failed(format!("{}: an unexpected answer: {why}", self.plan.host))
        })
    }

    fn boot_status(&self, program: &RemoteProgram) -> Result<BootStatus, Failure> {
        self.run_for_json(program, &["boot", "status", "--json"])
    }

    /// Requests a trial; returns the command that restarts the board into it.
    fn request_trial(
        &self,
        program: &RemoteProgram,
        wanted: &SshBoot,
    ) -> Result<Vec<String>, Failure> {
        let mut words = vec!["boot", "once", "--json", "--add", &wanted.cmdline];
        if let Some(kernel) = &wanted.kernel {
            words.extend(["--kernel", kernel]);
        }
        Ok(self.run_for_json::<Requested>(program, &words)?.restart)
    }

    /// Restarts it and waits for another boot.
    fn restart_board(
        &self,
        command: &[String],
        before: &str,
        watch: &mut dyn RemoteWatch,
    ) -> Result<(), Failure> {
        let connection = Connection::open(&destination_of_plan(self.plan)).map_err(to_failure)?;
        ssh::restart_system(&connection, command).map_err(to_failure)?;
        drop(connection);
        match self.wait_for_boot(before, watch) {
            Err(why) if why.render(false).contains(NOT_REACHED) => {
                match power::switch_power(self.plan, watch) {
                    Ok(true) => self.wait_for_boot(before, watch),
                    Ok(false) => Err(why),
                    Err(more) => Err(Failure {
                        parts: why.parts.into_iter().chain(more.parts).collect(),
                        ..more
                    }),
                }
            }
            back => back,
        }
    }

    /// Waits for another boot.
    fn wait_for_boot(&self, before: &str, watch: &mut dyn RemoteWatch) -> Result<(), Failure> {
        let (since, began) = (Timestamp::now(), Instant::now());
        let longest = self.plan.boot_time.to_std();
        loop {
            let wait = Instant::now() + ssh::PAUSE;
            while Instant::now() < wait {
                if watch.end_requested() {
                    return Err(Failure::failed("interrupted while the board restarted"));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            let now = Connection::open(&destination_of_plan(self.plan));
            let now = now.and_then(|connection| ssh::boot_id(&connection));
            match now {
                Ok(id) if id != before => {
                    let took = began.elapsed().as_secs();
                    watch.show_note(&format!("{}: back after {took} s", self.plan.host));
                    return Ok(());
                }
                _ if began.elapsed() < longest => {}
                Ok(_) => {
                    return Err(Failure::failed(format!("{} did not restart", self.plan.host)));
                }
                Err(why) => {
                    let since = since.strftime("%Y-%m-%d %H:%M:%S UTC");
                    return Err(Failure::failed(format!(
                        "{} {NOT_REACHED} {since}: {why}",
                        self.plan.ssh_address()
                    )));
                }
            }
        }
    }
}
