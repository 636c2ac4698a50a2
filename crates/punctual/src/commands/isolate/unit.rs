//! `punctual isolate unit`.

use super::create::write_section;
use super::tweaks::Without;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::format::escape_unsafe;
use punctual_host::files::Root;
use punctual_host::isolate::lasting::{
    LastingRequest, install_lasting, plan_lasting, remove_lasting,
};
use punctual_host::isolate::{check_rights, parse_cpus_on};
use punctual_host::service_program::check_service_program;
use std::path::Path;

/// Print what makes a partition again at each boot
///
/// A service of systemd that calls `isolate create` early, `AllowedCPUs=` for the slices of
/// services where systemd has it, and words for the kernel's command line, which is not changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate unit 2-3\n  punctual isolate unit 2-3 \
                        --install\n  punctual isolate unit --remove")]
pub struct IsolateUnitArgs {
    /// The CPUs, as of `isolate create`
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    cpus: Option<String>,
    /// Also write the files; they take effect at the next boot
    #[arg(long, conflicts_with = "remove")]
    install: bool,
    /// Remove the files; the present partition stays until `isolate undo` or the next boot
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    without: Without,
}

/// Prints, installs or removes.
pub fn run(args: IsolateUnitArgs) -> Ending {
    let files = Root::from_system();
    let Some(text) = &args.cpus else {
        check_rights(&files).map_err(Failure::refused)?;
        return remove();
    };
    let request = LastingRequest {
        cpus: parse_cpus_on(&files, text).map_err(Failure::refused)?,
        options: args.without.0.iter().map(|tweak| format!("--no-{tweak}")).collect(),
        program: std::env::current_exe().map_err(Failure::failed)?,
    };
    let planned = plan_lasting(&files, &request).map_err(Failure::refused)?;
    if args.install {
        check_rights(&files).map_err(Failure::refused)?;
        check_service_program(&files, &request.program).map_err(|why| {
            Failure::refused(format!(
                "root would run this program at each boot, and {why}\nhelp: install it where root \
                 alone may write, as in /usr/bin, and call it there"
            ))
        })?;
        install_lasting(Path::new("/"), &planned.files).map_err(Failure::refused)?;
    }
    output::print_stdout(&planned.to_string())?;
    if args.install {
        output::print_stderr(
            "installed: from the next boot on; now: `systemctl daemon-reload && systemctl start \
             punctual-isolate`; to remove: `punctual isolate unit --remove`\n",
        );
    }
    Ok(Exit::Done)
}

fn remove() -> Ending {
    let done = remove_lasting(Path::new("/")).map_err(Failure::failed)?;
    let mut text = String::new();
    write_section(&mut text, "removed", done.removed.iter().cloned());
    write_section(
        &mut text,
        "changed by another program, and left",
        done.kept.iter().map(|p| escape_unsafe(p)),
    );
    output::print_stdout(if text.is_empty() { "nothing is installed\n" } else { &text })?;
    Ok(if done.kept.is_empty() { Exit::Done } else { Exit::Failed })
}
