//! The tweaks on the command line: `punctual isolate tweaks`, and `--no-NAME` for each.

use crate::exit::{Ending, Exit};
use crate::output;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use punctual_host::isolate::tweaks;
use std::fmt::Write;

/// List the tweaks of `create` and the effect of each in the kernel
#[derive(clap::Args)]
#[command(after_help = "Example: punctual isolate tweaks | less")]
pub struct IsolateTweaksArgs {}

/// Prints the tweaks.
pub fn run(IsolateTweaksArgs {}: IsolateTweaksArgs) -> Ending {
    let mut text = String::new();
    for tweak in tweaks::all_tweaks() {
        let _ = writeln!(text, "{}\n  {}\n  {}", tweak.name, tweak.doc, tweak.source);
    }
    output::print_stdout(&text)?;
    Ok(Exit::Done)
}

/// The tweaks to omit: one flag for each entry of the table.
pub struct Without(pub Vec<String>);

/// The name of a flag. clap requires static names; this is called once per tweak and use.
fn tweak_flag(tweak: &str) -> &'static str {
    format!("no-{tweak}").leak()
}

impl clap::Args for Without {
    fn augment_args(command: Command) -> Command {
        tweaks::all_tweaks().fold(command, |command, tweak| {
            let flag = tweak_flag(tweak.name);
            let arg = Arg::new(flag)
                .long(flag)
                .action(ArgAction::SetTrue)
                .help_heading("Tweaks to leave out");
            command.arg(arg.help(tweak.doc))
        })
    }
    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Without {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Without, clap::Error> {
        let unwanted =
            tweaks::all_tweaks().filter(|tweak| matches.get_flag(&format!("no-{}", tweak.name)));
        Ok(Without(unwanted.map(|tweak| tweak.name.to_owned()).collect()))
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Without::from_arg_matches(matches)?;
        Ok(())
    }
}
