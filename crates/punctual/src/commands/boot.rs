//! `punctual boot`: another kernel or other parameters for one boot, and the way back.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::format::escape_unsafe;
use punctual_host::boot::Trial;
use punctual_host::boot::once::{BootMachine, BootStatus, TrialProgress};
use punctual_host::files::Root;
use punctual_host::isolate::check_rights;
use punctual_host::journal::{JournalDirectory, JournalLock, acquire_lock};

/// Boot this machine once with another kernel or other parameters
///
/// The boot loader forgets the trial before it boots it, so that the boot after it is the usual
/// one, also if the kernel panics. The usual entries are not changed. A kernel that hangs needs a
/// watchdog or a reset.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual boot status\n  punctual boot once --add \
                        'isolcpus=3 nohz_full=3' --reboot\n  punctual boot once --kernel \
                        6.1.0-40-rt-arm64\n  punctual boot verify\n  punctual boot restore")]
pub struct BootArgs {
    /// What to do
    #[command(subcommand)]
    action: BootAction,
}

#[derive(clap::Subcommand)]
enum BootAction {
    Status(BootStatusArgs),
    Once(BootOnceArgs),
    Verify(BootVerifyArgs),
    Restore(BootRestoreArgs),
}

/// Show the boot loader, what it boots usually, and a trial that is not taken back
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual boot status --json")]
struct BootStatusArgs {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Request a trial for the next boot
///
/// Added to the command line are panic=10, a mark, and systemd's use of a hardware watchdog where
/// there is one. The entry and its journal stay beside the boot loader's files until `punctual
/// boot restore`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual boot once --add 'isolcpus=3 nohz_full=3'\n  punctual boot \
                        once --kernel 6.1.0-40-rt-arm64 --reboot"
)]
struct BootOnceArgs {
    /// An installed kernel by its release (uname -r) [default: the usual one]
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Words to add to the kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    add: String,
    /// A parameter to take from it, by name (may be repeated)
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// Also where the boot loader would boot the trial again and again until `punctual boot
    /// restore`
    #[arg(long)]
    no_fallback: bool,
    /// Reboot into it now
    #[arg(long)]
    reboot: bool,
    /// Print the command that reboots into it as JSON
    #[arg(long)]
    json: bool,
}

/// Check that this boot is the trial as requested, and that it will not be repeated
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual boot verify")]
struct BootVerifyArgs {
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

/// Take a trial back: every file of the boot loader is as before
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual boot restore --reboot")]
struct BootRestoreArgs {
    /// Reboot into the usual system if this boot is the trial
    #[arg(long)]
    reboot: bool,
}

/// Runs the subcommand.
pub fn run(args: BootArgs) -> Ending {
    match args.action {
        BootAction::Status(args) => run_status(&args),
        BootAction::Once(args) => run_once(args),
        BootAction::Verify(args) => run_verify(&args),
        BootAction::Restore(args) => run_restore(&args),
    }
}

/// A trial that is not taken back, for the end of `isolate undo`.
pub fn report_trial() {
    if BootMachine::from_system().has_trial() {
        output::print_stderr(
            "note: a trial of a boot is not taken back: `punctual boot restore` does it\n",
        );
    }
}

/// One process changes the boot at a time.
fn lock_boot() -> Result<JournalLock, Failure> {
    check_rights(&Root::from_system()).map_err(Failure::refused)?;
    acquire_lock(&JournalDirectory::from_system()).map_err(Failure::refused)
}

fn run_status(args: &BootStatusArgs) -> Ending {
    print_boot_status(&BootMachine::from_system().read_status()?, args.json)?;
    Ok(Exit::Done)
}

fn print_boot_status(status: &BootStatus, json: bool) -> Result<(), Failure> {
    match json {
        true => Ok(output::print_json(status)?),
        false => Ok(output::print_stdout(&format_boot_status(status))?),
    }
}

fn run_once(args: BootOnceArgs) -> Ending {
    let _alone = lock_boot()?;
    let machine = BootMachine::from_system();
    let trial = Trial { kernel: args.kernel, add: args.add, remove: args.remove };
    let restart = machine.request_trial(&trial, args.no_fallback)?;
    if let Some(hang) = machine.read_status()?.hang.filter(|_| !args.json) {
        output::print_stderr(&format!(
            "note: a trial that hangs before user space is ended by {hang}\n"
        ));
    }
    if args.json {
        output::print_json(&serde_json::json!({ "restart": restart }))?;
    }
    if args.reboot {
        machine.restart_machine(restart)?;
    }
    if args.json || args.reboot {
        return Ok(Exit::Done);
    }
    output::print_stdout(&format!("the next boot is the trial: {}\n", shell_words::join(restart)))?;
    Ok(Exit::Done)
}

fn run_verify(args: &BootVerifyArgs) -> Ending {
    let _alone = lock_boot()?;
    print_boot_status(&BootMachine::from_system().verify_boot()?, args.json)?;
    Ok(Exit::Done)
}

fn run_restore(args: &BootRestoreArgs) -> Ending {
    let _alone = lock_boot()?;
    let machine = BootMachine::from_system();
    let before = machine.read_status()?.trial.map(|trial| trial.progress);
    let (any, not_done) = machine.revert_trials()?;
    let mut text: String =
        not_done.iter().map(|why| format!("not reverted: {}\n", escape_unsafe(why))).collect();
    text += match (any, not_done.is_empty()) {
        (false, _) => "no trial was requested\n",
        (true, true) => "every file is as before\n",
        (true, false) => "the rest is reverted; the journal stays\n",
    };
    output::print_stdout(&text)?;
    if !not_done.is_empty() {
        return Ok(Exit::Failed);
    }
    if before == Some(TrialProgress::Running) {
        match args.reboot {
            true => machine.restart_machine(&machine.usual_restart())?,
            false => output::print_stdout("this boot is still the trial: reboot to leave it\n")?,
        }
    }
    Ok(Exit::Done)
}

fn format_boot_status(status: &BootStatus) -> String {
    let mut text = String::new();
    let mut line = |what: &str, is: &str| text += &format!("{what:<12} {}\n", escape_unsafe(is));
    line("boot loader", status.loader.as_deref().unwrap_or("none that boots an entry once"));
    status.reasons.iter().for_each(|why| line("", why));
    if let Some(way_back) = &status.way_back {
        line("way back", way_back);
    }
    if let Some(hang) = &status.hang {
        line("a hang ends", &format!("by {hang}"));
    }
    if let Some(usual) = &status.usual {
        line("usual boot", usual);
    }
    line("this boot", &format!("{} {}", status.release, status.cmdline));
    line(
        "watchdog",
        match status.watchdog {
            true => "/dev/watchdog: systemd arms it once it runs",
            false => "none",
        },
    );
    match &status.trial {
        None => line("trial", "none"),
        Some(trial) => {
            let progress = match trial.progress {
                TrialProgress::Requested => "requested for the next boot",
                TrialProgress::Running => "this boot",
                TrialProgress::Over => "over, or fell back; not taken back",
            };
            line("trial", progress);
            if let Some(kernel) = &trial.trial.kernel {
                line("  kernel", kernel);
            }
            line("  adds", &trial.trial.add);
            if !trial.trial.remove.is_empty() {
                line("  removes", &trial.trial.remove.join(" "));
            }
            trial.differences.iter().for_each(|what| line("  differs", what));
            trial.unknown.iter().for_each(|what| line("  not known", what));
        }
    }
    text
}
