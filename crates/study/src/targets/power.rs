//! The power switch of a board that does not come back: commands of the file (`power_off`,
//! `power_on`), which sh(1) runs on this system. Their output is that of this process's messages.

use crate::process::Process;
use punctual_core::format::escape_unsafe;
use punctual_lab::ssh::RemoteWatch;
use punctual_plan::SshPlan;
use punctual_session::exit::Failure;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

/// How long a command may take.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a board stays without power.
const WITHOUT: Duration = Duration::from_secs(5);

/// Switches a board off and on. Returns whether there are commands for that.
///
/// # Errors
/// A command failed, or took too long: its name and why.
pub(super) fn switch_power(plan: &SshPlan, watch: &mut dyn RemoteWatch) -> Result<bool, Failure> {
    let Some((off, on)) = &plan.power else { return Ok(false) };
    if let Some(off) = off {
        run_power_command("power_off", off, plan, LONGEST, watch)?;
        std::thread::sleep(WITHOUT);
    }
    // Also after an interrupt: a board is not left without power.
    run_power_command("power_on", on, plan, LONGEST, watch)?;
    Ok(true)
}

fn run_power_command(
    key: &str,
    command: &str,
    plan: &SshPlan,
    longest: Duration,
    watch: &mut dyn RemoteWatch,
) -> Result<(), Failure> {
    let address = plan.ssh_address();
    watch.show_note(&format!("{address}: {key}: {}", escape_unsafe(command)));
    let failed = |why: String| Failure::failed(format!("{address}: {key} {why}"));
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PUNCTUAL_HOST", &plan.host);
    shell.env("PUNCTUAL_PORT", plan.port.unwrap_or(22).to_string());
    let messages = std::io::stderr().as_fd().try_clone_to_owned();
    let messages = messages.map_err(|why| failed(format!("has no output: {why}")))?;
    let started = Process::start(shell, Some(messages.into()), None);
    let mut process = started.map_err(|why| failed(format!("cannot be started: {why}")))?;
    match process.wait_for_end(&|| false, longest)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(failed(format!("ended with {status}"))),
        None => Err(failed(format!("was killed after {} s", longest.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_plan::{LoadOptions, TargetPlan};
    use std::path::Path;

    #[derive(Default)]
    struct Notes(Vec<String>);

    impl RemoteWatch for Notes {
        fn show_message(&mut self, _: &[u8]) {}
        fn show_note(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
        fn end_requested(&self) -> bool {
            false
        }
    }

    fn board(keys: &str) -> SshPlan {
        let text = format!("[target]\nkind = 'ssh'\nhosts = ['root@a:2222', 'b']\n{keys}");
        let path = Path::new("board.toml");
        let read = punctual_plan::read_target(path, text.as_bytes(), &LoadOptions::default(), None);
        match read.expect("a target") {
            TargetPlan::Ssh(plan) => plan,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_power_commands_of_a_board_run_with_its_name_and_within_bounds() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("switched");
        let on = format!("echo $PUNCTUAL_HOST $PUNCTUAL_PORT >> {}", file.display());
        let mut notes = Notes::default();
        let plan = board(&format!("power_on = \"{on}\""));
        for one in plan.plan_per_board() {
            assert!(switch_power(&one, &mut notes).expect("it is switched"));
        }
        assert_eq!(std::fs::read_to_string(&file).expect("both"), "a 2222\nb 22\n");
        assert!(notes.0[0].starts_with("root@a:2222: power_on: echo"), "{:?}", notes.0);
        assert!(!switch_power(&board(""), &mut notes).expect("there is nothing to run"));
        let why =
            |plan: &SshPlan| switch_power(plan, &mut Notes::default()).unwrap_err().render(false);
        let failed = why(&board("power_on = 'exit 3'"));
        assert!(failed.contains("power_on ended with exit status: 3"), "{failed}");
        let short = Duration::from_millis(50);
        let hung =
            run_power_command("power_off", "sleep 1000", &plan, short, &mut Notes::default());
        assert!(hung.unwrap_err().render(false).contains("power_off was killed"));
    }
}
