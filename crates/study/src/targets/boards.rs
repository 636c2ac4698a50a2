//! Boots of boards behind ssh(1): the boot that an experiment asks for is made by `punctual boot`
//! there, verified, and taken back.

use super::power;
use super::remote::{RemoteRun, Returned};
use super::ssh::{self as ssh_target, SshWatch, destination, failure};
use jiff::Timestamp;
use punctual_core::format::plain;
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
        ensure(plan, plan.boot.as_ref(), &mut SshWatch::new(remote.messages)?)?;
    }
    let returned = ssh_target::carry_out(plan, remote);
    // A reboot would end a run that can still be fetched.
    let is_run_left = returned.as_ref().err().is_some_and(|why| why.is_run_left);
    if is_run_left && is_new && plan.boot.is_some() {
        let host = &plan.host;
        let left = format!("{host} stays in its trial: then restore it there by `boot restore`");
        remote.messages.complain(&left);
    } else if is_new && plan.boot.is_some() && !options.ssh.keep_boot {
        let restored = restore(plan, &mut SshWatch::new(remote.messages)?);
        restored.err().iter().for_each(|why| remote.messages.complain(&why.render(false)));
    }
    returned.map_err(|why| why.failure)
}

/// Boots a board as an experiment asks, unless it is booted so: `None` is its usual boot.
///
/// # Errors
/// It cannot be booted so, came up otherwise, or did not come back; where it can be reached,
/// nothing of the trial is left there.
pub(crate) fn ensure(
    plan: &SshPlan,
    wanted: Option<&SshBoot>,
    watch: &mut dyn RemoteWatch,
) -> Result<(), Failure> {
    let board = Board { plan };
    // Left by a trial that hung: a command that gives power brings it back.
    if plan.power.is_some() && !board.answers() && power::switch(plan, watch)? {
        board.back("", watch)?;
    }
    let (before, then, is_left) = board.with_program(|program| {
        let status = board.status(program)?;
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
                board.asked(program, &["boot", "restore"])?;
                is_running.then(usual_restart)
            }
            Some(wanted) if is_running && is_same(&status, wanted) => {
                board.asked(program, &["boot", "verify", "--json"])?;
                None
            }
            Some(wanted) => match board.requested(program, wanted) {
                // PREEMPT_RT shows no EFI variables by default: the usual boot requests the next.
                Err(_) if is_running => {
                    board.asked(program, &["boot", "restore"])?;
                    return Ok((status.boot_id, Some(usual_restart()), true));
                }
                answer => Some(answer?),
            },
        };
        Ok((status.boot_id, then, false))
    })?;
    let Some(command) = then else { return Ok(()) };
    let usual = || "its usual system".to_owned();
    let what = wanted.filter(|_| !is_left).map_or_else(usual, SshBoot::words);
    watch.note(&format!("{}: rebooting into {what}", plan.host));
    board.restart(&command, &before, watch)?;
    if is_left {
        return ensure(plan, wanted, watch);
    }
    if wanted.is_none() {
        return Ok(());
    }
    board.with_program(|program| {
        let verified: Result<BootStatus, Failure> =
            board.answer(program, &["boot", "verify", "--json"]);
        match &verified {
            Ok(status) => {
                let unknown = status.trial.iter().flat_map(|trial| &trial.unknown);
                unknown.for_each(|what| watch.note(&format!("{}: {what}", plan.host)));
            }
            Err(_) => drop(board.asked(program, &["boot", "restore"])),
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
pub fn restore(plan: &SshPlan, watch: &mut dyn RemoteWatch) -> Result<(), Failure> {
    ensure(plan, None, watch)
}

/// Whether the running trial is of these words and this kernel, besides what punctual adds.
fn is_same(status: &BootStatus, wanted: &SshBoot) -> bool {
    let Some(trial) = &status.trial else { return false };
    let words: Vec<&str> = trial.trial.add.split_whitespace().collect();
    let mark = words.iter().position(|word| word.starts_with(MARK));
    let asked = mark.map_or(&words[..], |place| &words[place + 1..]);
    trial.trial.kernel == wanted.kernel
        && trial.trial.remove.is_empty()
        && asked.iter().copied().eq(wanted.cmdline.split_whitespace())
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
        let to = destination(self.plan);
        let program = RemoteProgram::send(&to, self.plan.binary.as_deref()).map_err(failure)?;
        let done = act(&program);
        let removed = program.remove().map_err(failure);
        done.and_then(|value| removed.map(|()| value))
    }

    fn answers(&self) -> bool {
        let open = Connection::open(&destination(self.plan));
        open.err().is_none_or(|why| why.trouble != ErrorPlace::Unreachable)
    }

    /// The answer to a command that must succeed.
    fn asked(&self, program: &RemoteProgram, words: &[&str]) -> Result<Vec<u8>, Failure> {
        let answer = program.run(words).map_err(failure)?;
        match answer.is_done {
            true => Ok(answer.stdout),
            false => {
                let why = plain(&answer.messages);
                Err(Failure::failed(format!("{}: {why}", self.plan.host)))
            }
        }
    }

    /// The answer in JSON.
    fn answer<T: DeserializeOwned>(
        &self,
        program: &RemoteProgram,
        words: &[&str],
    ) -> Result<T, Failure> {
        serde_json::from_slice(&self.asked(program, words)?).map_err(|why| {
            Failure::failed(format!("{}: an unexpected answer: {why}", self.plan.host))
        })
    }

    fn status(&self, program: &RemoteProgram) -> Result<BootStatus, Failure> {
        self.answer(program, &["boot", "status", "--json"])
    }

    /// Requests a trial; returns the command that restarts the board into it.
    fn requested(&self, program: &RemoteProgram, wanted: &SshBoot) -> Result<Vec<String>, Failure> {
        let mut words = vec!["boot", "once", "--json", "--add", &wanted.cmdline];
        if let Some(kernel) = &wanted.kernel {
            words.extend(["--kernel", kernel]);
        }
        Ok(self.answer::<Requested>(program, &words)?.restart)
    }

    /// Restarts it and waits for another boot.
    fn restart(
        &self,
        command: &[String],
        before: &str,
        watch: &mut dyn RemoteWatch,
    ) -> Result<(), Failure> {
        let connection = Connection::open(&destination(self.plan)).map_err(failure)?;
        ssh::restart(&connection, command).map_err(failure)?;
        drop(connection);
        match self.back(before, watch) {
            Err(why) if why.render(false).contains(NOT_REACHED) => {
                match power::switch(self.plan, watch) {
                    Ok(true) => self.back(before, watch),
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
    fn back(&self, before: &str, watch: &mut dyn RemoteWatch) -> Result<(), Failure> {
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
            let now = Connection::open(&destination(self.plan));
            let now = now.and_then(|connection| ssh::boot_id(&connection));
            match now {
                Ok(id) if id != before => {
                    let took = began.elapsed().as_secs();
                    watch.note(&format!("{}: back after {took} s", self.plan.host));
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
                        self.plan.address()
                    )));
                }
            }
        }
    }
}
