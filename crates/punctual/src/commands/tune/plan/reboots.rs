//! The plan of a tuning across reboots: the number of boots, the files, the recovery from a hang.

use super::times;
use crate::exit::{Ending, Exit};
use crate::output;
use punctual_core::format::{counted, duration};
use punctual_host::boot::Loader;
use punctual_session::messages::shown;
use punctual_study::tune::directory::TuningSpec;
use punctual_study::tune::reboot_plan::RebootPlan;
use punctual_study::tune::reboots::system::files_of;
use std::path::Path;

/// Prints the plan below the table of settings.
pub fn dry_run(settings: &str, spec: &TuningSpec, plan: &RebootPlan, place: &Path) -> Ending {
    let place = shown(place);
    let boot = plan.observation(spec.block);
    let most = spec.within.ns() / boot.ns().max(1);
    let mut out = settings.to_owned();
    out += &format!(
        "\n{} of {}: in each boot {} of {}, {} after it; a boot is taken as {}\nboots: {} to try \
         each parameter alone, then at most {most} in {}\nto find every effect of ×{} or more \
         takes, by how much boots with the same parameters differ:\n",
        spec.figure,
        spec.experiment,
        counted(u64::from(plan.blocks), "block"),
        duration(spec.block),
        duration(plan.settle),
        duration(boot),
        spec.settings.len() + 1,
        duration(spec.within),
        spec.smallest,
    );
    for (percent, time) in times(spec, boot) {
        let boots = time.ns() / boot.ns().max(1);
        out += &format!("  by {percent:>2} %: {}, {boots} boots\n", duration(time));
    }
    out += "\nfiles that it writes, and takes back at the end:\n";
    for (path, what) in files_of(plan) {
        out += &format!("  {path}\n    {what}\n");
    }
    out += &format!("\nif a boot panics: {}\n", if_it_panics(&plan.loader));
    out += match plan.watchdog {
        true => "if one hangs: the hardware watchdog resets it, once systemd runs\n",
        false => {
            "if a boot hangs: there is no hardware watchdog (/dev/watchdog), so it must be reset \
             by hand\n"
        }
    };
    out += &format!(
        "to end it: punctual tune undo {place}; while a boot is measured, systemctl stop \
         punctual-tune first\nwhat runs on this machine is ended by each boot, and nothing was \
         written: add --yes to begin\n"
    );
    output::print(&out)?;
    Ok(Exit::Done)
}

fn if_it_panics(loader: &Loader) -> &'static str {
    match loader {
        Loader::Harness { .. } => "the harness boots it again",
        _ => {
            "after 10 s the usual entry boots (panic=10); after two such boots its parameters are \
             excluded"
        }
    }
}
