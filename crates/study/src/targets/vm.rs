//! A virtual machine on this system: builds, boots and watches it by the plan, retrieves its
//! bundle.

mod devices;
mod findings;
mod machine;
mod programs;
mod progress;
mod repeats;
mod trouble;

use super::parent_directory;
use super::remote::{RemoteRun, Returned};
use super::returned::{self, RunFailure};
use crate::exact;
use machine::ReadyMachine;
pub(crate) use machine::{find_kernel, plan_for_kernel, preemption_word};
use progress::VmProgress;
use punctual_bundle::Bundle;
use punctual_core::{CpuSet, Nanos};
use punctual_lab::GuestResult;
use punctual_plan::{Plan, VmPlan};
use punctual_session::exit::{Exit, Failure};
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::display_path;
use std::fs;
use std::path::Path;

/// Boots the machine, runs the experiment in it, and retrieves the bundle.
pub(crate) fn carry_out(vm: &VmPlan, remote: &RemoteRun) -> Result<Returned, Failure> {
    let (options, messages) = (remote.options, remote.messages);
    let cpus: CpuSet = (0..vm.cpus as usize).collect();
    let (_, plan) = remote.asked.resolve_for(cpus.clone(), cpus.clone(), vm.memory.0, messages)?;
    let plan = options.apply_to(plan, &cpus)?;
    if options.plan_only {
        return Ok(Returned::Plan { text: plan.describe(), exit: Exit::Done });
    }
    let interrupts = SignalRequests::listen()?;
    let progress = VmProgress::new(messages, options.repeat, plan.estimated_time());
    progress.announce_step("preparing");
    // The results are in a directory beside the final one until complete: on the same file system,
    // so that a rename suffices.
    let place = tempfile::Builder::new()
        .prefix(".punctual-vm-")
        .tempdir_in(parent_directory(&remote.output));
    let place = place.map_err(|why| {
        Failure::failed(format!("cannot create a directory for the results: {why}"))
    })?;
    let machine = ReadyMachine::from_plan(vm, &plan, remote, place.path())?;
    let started = jiff::Timestamp::now();
    let runs = repeats::run_repeats(
        &machine,
        options.repeat,
        options.exact,
        place.path(),
        &progress,
        &interrupts,
    )?;
    progress.clear_line();
    let run = VmRun { vm, plan: &plan, remote };
    let exit = run.bring_back(&machine, &runs[0].result, started, &runs[0].place)?;
    if options.exact {
        exact::write_seen(&remote.output, &runs[0].place)?;
    }
    let exit = if runs.len() > 1 { repeats::compare_repeats(remote, &runs, exit)? } else { exit };
    Ok(Returned::Bundle(exit))
}

struct VmRun<'a> {
    vm: &'a VmPlan,
    plan: &'a Plan,
    remote: &'a RemoteRun<'a>,
}

impl VmRun<'_> {
    /// Moves the guest's results to a bundle at its place, complete or not.
    fn bring_back(
        &self,
        machine: &ReadyMachine,
        result: &GuestResult,
        started: jiff::Timestamp,
        place: &Path,
    ) -> Result<Exit, Failure> {
        let output = &self.remote.output;
        let guest_bundle = place.join("bundle");
        let trouble = trouble::guest_trouble(result).map(|why| {
            let remedy = trouble::trouble_remedy(&result.outcome, self.vm).map(str::to_owned);
            RunFailure { why, remedy }
        });
        let whole = Bundle::open(&guest_bundle).ok();
        if whole.is_none() && trouble.is_none() {
            return Err(self.not_started(result));
        }
        let environment =
            whole.as_ref().and_then(|bundle| bundle.read_document("environment").ok().flatten());
        let target = machine.ran_on(
            result,
            started,
            Nanos(i64::try_from(result.elapsed.as_nanos()).unwrap_or(i64::MAX)),
            environment.as_ref(),
        );
        let findings = findings::machine_findings(self.vm, result, environment.as_ref());
        let exit = match whole {
            Some(_) => {
                fs::rename(&guest_bundle, output).map_err(|why| self.cannot_move(&why))?;
                returned::close_bundle(output, target, findings, trouble)?
            }
            None => {
                let trouble = trouble.unwrap_or_default();
                returned::without_bundle(
                    self.remote,
                    Some(&self.plan.to_toml()),
                    target,
                    findings,
                    trouble,
                )?
            }
        };
        self.keep_files(place, result)?;
        Ok(exit)
    }

    /// The command there refused before it began: its messages are the errors.
    fn not_started(&self, result: &GuestResult) -> Failure {
        let messages = String::from_utf8_lossy(&result.stderr);
        let status = result.exit_status.map_or("none".to_owned(), |status| status.to_string());
        let messages = match messages.trim().trim_start_matches("error: ") {
            "" => format!(
                "nothing was measured, and there is no error message (exit status {status})"
            ),
            messages => messages.to_owned(),
        };
        let message = format!("in the virtual machine: {messages}");
        match result.exit_status {
            Some(2) => Failure::refused(message),
            _ => Failure::failed(message),
        }
    }

    /// Keeps the console's log, the messages of the command there, and files that loads left in
    /// their directory.
    fn keep_files(&self, place: &Path, result: &GuestResult) -> Result<(), Failure> {
        let output = &self.remote.output;
        let files = place.join("files");
        if fs::read_dir(&files).is_ok_and(|mut entries| entries.next().is_some()) {
            fs::rename(&files, output.join("files")).map_err(|why| self.cannot_move(&why))?;
        }
        let texts = [
            ("console.log", result.console_log.as_bytes()),
            ("stderr.log", result.stderr.as_slice()),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            fs::write(output.join(name), text).map_err(|why| self.cannot_move(&why))?;
        }
        Ok(())
    }

    fn cannot_move(&self, why: &std::io::Error) -> Failure {
        Failure::failed(format!("cannot write {}: {why}", display_path(&self.remote.output)))
    }
}
