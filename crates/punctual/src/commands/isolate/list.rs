//! `punctual isolate list`.

use super::journals::system_journals;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::format::escape_unsafe;
use punctual_host::isolate::{self, PartitionView};
use std::fmt::Write;

/// List the partitions with their CPUs and tasks
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate list\n  punctual isolate list --json | jq \
                        -r '.[] | .name, .cpus'")]
pub struct IsolateListArgs {
    /// Only count the tasks
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists every cgroup with assigned CPUs.
pub fn run(args: IsolateListArgs) -> Ending {
    let (files, store) = system_journals();
    let views = isolate::list_partitions(&files, &store).map_err(Failure::refused)?;
    if args.json {
        output::print_json(&views)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    views.iter().for_each(|view| format_partition(&mut text, view, args.quiet));
    if views.is_empty() {
        text += "no cgroup has exclusive CPUs\n";
    }
    output::print_stdout(&text)?;
    Ok(Exit::Done)
}

fn format_partition(text: &mut String, view: &PartitionView, quiet: bool) {
    let claim =
        view.claim.as_ref().map(|claim| format!(", {}", escape_unsafe(claim))).unwrap_or_default();
    let origin = match view.half {
        Some("rt") => ", made by punctual for real time",
        Some(_) => ", made by punctual for housekeeping",
        None => "",
    };
    let tasks = view.tasks.len();
    let _ = writeln!(
        text,
        "Name: {}  CPUs: {}  tasks: {tasks}{claim}{origin}",
        escape_unsafe(&view.name),
        view.cpus
    );
    for task in view.tasks.iter().filter(|_| !quiet) {
        let _ = writeln!(text, "  {:>7} {}", task.tid, escape_unsafe(&task.name));
    }
}
