//! `punctual names`: links by whose name this program is another tool, and what it then does.

mod cyclictest;
mod getopt;
mod systress;

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::Bundle;
use punctual_core::CpuSet;
use punctual_plan::Plan;
use punctual_session::continuing::Continuation;
use punctual_session::end::Further;
use punctual_session::messages::{Listener, display_path};
use punctual_session::options::RunOptions;
use punctual_session::request::ExperimentRequest;
use punctual_session::run::watcher::RunWatcher;
use punctual_session::run::{self as session, RunContext};
use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The variable with the path of the bundle that is left.
const BUNDLE: &str = "PUNCTUAL_BUNDLE";
/// Bundles of one variable.
const MOST_BUNDLES: usize = 10_000;

/// A tool's name, and what this program does by it with the words that follow.
type Served = (&'static str, fn(&[String]) -> ExitCode);

const TOOLS: [Served; 2] =
    [("cyclictest", cyclictest::run_as_cyclictest), ("systress", systress::run_as_systress)];

/// Runs an experiment with the watcher that `begin` makes for its plan.
fn carry_out(
    asked: &ExperimentRequest,
    run: &RunOptions,
    online: &CpuSet,
    messages: Listener,
    begin: impl FnOnce(&Plan) -> Result<Box<dyn RunWatcher>, Failure>,
) -> Result<(Plan, Exit, Bundle), Failure> {
    let (loaded, plan) = asked.resolve(messages)?;
    let plan = run.apply_to(plan, online)?;
    let mut watcher = begin(&plan)?;
    let further = Further { continuation: None::<Continuation>, baseline: None };
    let differs = option_env!("PUNCTUAL_DIFFERS");
    let context = RunContext { metrics: None, further, attached: None, differs, messages };
    let finished = session::run_plan(&plan, &loaded, context, &mut *watcher);
    watcher.on_run_end();
    drop(watcher);
    let finished = finished?;
    let bundle = Bundle::open(&finished.directory).map_err(Failure::failed)?;
    Ok((plan, finished.exit, bundle))
}

/// This path, or with a number if a bundle is there: a script may measure several times.
fn unused_path(path: PathBuf) -> Result<PathBuf, Failure> {
    let numbered = |number: usize| match number {
        1 => path.clone(),
        number => {
            let mut name = path.clone().into_os_string();
            name.push(format!("-{number}"));
            PathBuf::from(name)
        }
    };
    let free = (1..=MOST_BUNDLES).map(numbered).find(|path| !path.exists());
    free.ok_or_else(|| Failure::refused(format!("{BUNDLE}: all names are in use")))
}

/// Make links by whose name punctual takes the options of another tool and prints its output
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual names /opt/punctual/names\n  \
                        PATH=/opt/punctual/names:$PATH PUNCTUAL_BUNDLE=bundle cyclictest -S -p95 \
                        -D10 -q\n\nThe tools: cyclictest (rt-tests 2.4) and systress. With \
                        PUNCTUAL_BUNDLE they leave a bundle there. Options that are not supported \
                        are refused as unknown.")]
pub struct NamesArgs {
    /// The directory of the links; made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Makes the links; what is there already stays.
pub fn run(args: NamesArgs) -> Ending {
    let own_program = std::env::current_exe()
        .map_err(|why| Failure::failed(format!("cannot find this program: {why}")))?;
    let cannot = |place: &Path, why: &dyn std::fmt::Display| {
        Failure::refused(format!("cannot make {}: {why}", display_path(place)))
    };
    std::fs::create_dir_all(&args.directory).map_err(|why| cannot(&args.directory, &why))?;
    for (name, _) in TOOLS {
        let link = args.directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|to| to == own_program) {
            continue;
        }
        symlink(&own_program, &link).map_err(|why| cannot(&link, &why))?;
        output::print_stdout(&format!("{}\n", display_path(&link)))?;
    }
    Ok(Exit::Done)
}

/// What this program does by the name that it was called by; `None` by its own.
pub fn run_as_tool() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    let name = Path::new(&called).file_name().and_then(OsStr::to_str)?;
    let (_, tool) = TOOLS.iter().find(|(known, _)| *known == name)?;
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Some(tool(&words))
}
