//! `punctual sections`: the longest non-preemptible sections of a kernel.

use super::bundle::{open_bundle, show_options};
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_report::terminal;
use punctual_study::sections::{self, GuestWork};
use std::path::PathBuf;

/// Show the longest sections with interrupts or preemption disabled
///
/// Runs a command, or only the boot, in a guest in virtual time (one CPU) and traces every
/// instruction. The sections are listed by the function in which they begin, with the calls that
/// led to the longest. Of a bundle, the sections of its measurement: its run is replayed, unless it
/// has an exact explanation. What the command does not reach is not listed: it proves no bound.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual sections --kernel 6.12-rt -- stress-ng --vm 1 \
                        --timeout 2\n  punctual sections --kernel 6.1 --boot\n  punctual sections \
                        BUNDLE --worst 20\n  punctual sections --kernel 6.12,cmdline=preempt=none \
                        --require 'max < 20000 instructions' -- find /proc\n\nExit codes: 0 done, \
                        every requirement met; 1 failed; 2 the request was invalid; 3 a \
                        requirement is not met; 4 the replay of a bundle gave different samples.")]
pub struct SectionsArgs {
    /// The bundle of a run in virtual time
    #[arg(value_name = "BUNDLE", required_unless_present = "kernel", conflicts_with = "kernel")]
    bundle: Option<PathBuf>,
    /// The kernel: 6.1, 6.12-rt, …, with settings as in --target vm: (docs/targets.md)
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
    /// Trace the boot, and run no command
    #[arg(long, requires = "kernel", conflicts_with = "command")]
    boot: bool,
    /// The command to run in the guest
    #[arg(
        last = true,
        value_name = "COMMAND",
        requires = "kernel",
        conflicts_with = "bundle",
        required_unless_present_any = ["bundle", "boot"]
    )]
    command: Vec<String>,
    /// Copy this file into the guest, to the same path; can be repeated
    #[arg(long, value_name = "FILE", requires = "command")]
    file: Vec<PathBuf>,
    /// Show the N longest sections of each kind
    #[arg(long, value_name = "N", default_value_t = 10)]
    worst: usize,
    /// A requirement on the longest of all: 'max < 20000 instructions', 'max < 100us'
    #[arg(long, value_name = "REQUIREMENT")]
    require: Vec<String>,
    /// Print JSON in the format punctual-sections/1 (docs/reference/exact.md)
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the measurement, and shows the sections.
pub fn run(args: SectionsArgs) -> Ending {
    let required = sections::parse_requirements(&args.require)?;
    let messages = output::stderr_messages(args.quiet || args.json);
    let mut document = match (&args.bundle, &args.kernel) {
        (Some(bundle), _) => sections::of_bundle(&open_bundle(bundle)?, messages)?,
        (None, Some(kernel)) => {
            let work = match args.boot {
                true => GuestWork::Boot,
                false => GuestWork::Command { words: args.command, files: args.file },
            };
            sections::of_guest(kernel, &work, messages)?
        }
        (None, None) => return Err(Failure::refused("a bundle or --kernel is required")),
    };
    let longest = document.longest_section();
    let judged = required.iter().map(|one| one.judge(longest, document.ns_per_instruction));
    document.required = judged.collect();
    let printed = match args.json {
        true => output::print_json(&document),
        false => {
            output::print_stdout(&terminal::show_sections(&document, args.worst, &show_options()))
        }
    };
    exit::ending_of_output(printed, Exit::of_word(document.overall_verdict()))
}
