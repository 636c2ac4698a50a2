//! `punctual tune apply`: the findings, as files that the system reads when it starts.

use crate::exit::{Ending, Exit};
use crate::output;
use punctual_core::format::plain;
use punctual_session::messages::shown;
use punctual_study::tune::apply::{ApplyReport, apply, undo};
use punctual_study::tune::persistent::SettingReader;
use std::path::PathBuf;

/// Write the recommended settings as files that the system reads at boot
///
/// Each file names the measured effect in comments. Nothing is set now: the output says what makes
/// a file count without a reboot. --undo removes the files again.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual tune apply punctual-tune-experiment --root \
                        look\n  punctual tune apply punctual-tune-experiment\n  punctual tune \
                        apply punctual-tune-experiment --undo")]
pub struct TuneApplyArgs {
    /// The tuning's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Remove the files again; one that was changed since stays
    #[arg(long, conflicts_with_all = ["root", "tuned"])]
    undo: bool,
    /// Write below this directory
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Write one profile for TuneD instead of sysctl.d, tmpfiles.d, udev rules and a fragment of
    /// GRUB's configuration
    #[arg(long)]
    tuned: bool,
}

/// Writes the files, or removes them.
pub fn run(args: TuneApplyArgs) -> Ending {
    let report = match args.undo {
        true => undo(&args.directory)?,
        false => {
            let reader = if args.tuned { SettingReader::Tuned } else { SettingReader::System };
            apply(&args.directory, &args.root, reader)?
        }
    };
    output::print(&text(&report, args.undo))?;
    Ok(if report.not_done.is_empty() { Exit::Done } else { Exit::Failed })
}

fn text(report: &ApplyReport, undone: bool) -> String {
    let verb = if undone { "removed" } else { "written" };
    let mut text = String::new();
    for (path, then) in &report.done {
        text += &match then.is_empty() {
            true => format!("{verb}  {}\n", shown(path)),
            false => format!("{verb}  {}\n         then: {then}\n", shown(path)),
        };
    }
    for why in &report.not_done {
        text += &format!("not {verb}: {}\n", plain(why));
    }
    if text.is_empty() {
        text += "nothing to do\n";
    }
    text
}
