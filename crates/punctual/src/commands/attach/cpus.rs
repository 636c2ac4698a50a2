//! `punctual attach --cpus`: who disturbs a CPU.

use crate::commands::answer;
use crate::commands::beside::Beside;
use crate::commands::bundle::show_options;
use crate::commands::run::close_log;
use crate::exit::{Exit, Failure};
use crate::{live, output};
use punctual_bundle::Bundle;
use punctual_core::{CpuSet, Nanos};
use punctual_record::Backend;
use punctual_report::terminal;
use punctual_session::attach::cpus::{CpuAttachment, CpuOptions, EntryRequirement};
use punctual_session::interrupts::Interrupts;
use punctual_session::messages::shown;
use std::path::Path;

/// What is asked.
pub struct Request<'a> {
    pub cpus: &'a CpuSet,
    pub duration: Option<Nanos>,
    pub requirements: &'a [String],
    pub json: bool,
    /// Every table is wanted.
    pub details: bool,
    pub quiet: bool,
    /// What is written beside the bundle.
    pub beside: &'a Beside,
    pub backend: Backend,
}

/// Attaches, measures, shows.
pub fn run(request: &Request<'_>, directory: &Path) -> Result<Exit, Failure> {
    let read = |text: &String| {
        let why = |why| Failure::refused(format!("--require '{}': {why}", text.escape_debug()));
        text.parse::<EntryRequirement>().map_err(why)
    };
    let requirements = request.requirements.iter().map(read).collect::<Result<_, _>>()?;
    let Request { duration, backend, beside, .. } = *request;
    let options = CpuOptions { duration, requirements, backend, baseline: beside.baseline() };
    let interrupts = Interrupts::listen()?;
    let mut attachment = CpuAttachment::start(directory, request.cpus, options)?;
    let mut watcher = live::cpu_watcher(request.quiet);
    let outcome = attachment.measure(&interrupts, &mut *watcher);
    drop(watcher);
    let mut measured = attachment.end(outcome);
    let bundle = Bundle::open(directory).ok();
    if let Some(bundle) = &bundle {
        answer::add(bundle, &mut measured.summary);
    }
    // Whatever cannot be printed, the files are written.
    let written = bundle.as_ref().map_or(Ok(()), |bundle| request.beside.write(bundle));
    if request.json {
        output::print_json(&measured.summary)?;
    } else {
        let options = show_options();
        let text = match request.details {
            true => terminal::show(&measured.summary, &[measured.view()], &options),
            false => {
                let whole = format!("--details, or punctual show {}", shown(directory));
                terminal::brief(&measured.summary, &whole, &options)
            }
        };
        output::print(&text)?;
        if let Some(cost) = measured.cost.as_ref().filter(|_| request.details) {
            output::print(&format!("\n{cost}\n"))?;
        }
        let name = shown(directory);
        output::print(&format!("\nbundle  {name}\nreport  punctual report {name}\n"))?;
        close_log(&measured.summary, request.quiet)?;
    }
    written?;
    match measured.trouble {
        Some(trouble) => Err(trouble),
        None => Ok(measured.exit),
    }
}
