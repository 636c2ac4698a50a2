//! `punctual names`: links by whose name this program is another tool, and what it then does.

mod cyclictest;
mod getopt;
mod hwlatdetect;
mod oslat;
mod rtla;
mod systress;

use crate::exit::{Ending, Exit, Failure};
use crate::{live, output};
use getopt::{Known, Unknown};
use punctual_bundle::Bundle;
use punctual_core::CpuSet;
use punctual_plan::Plan;
use punctual_session::continuing::Continuation;
use punctual_session::end::Further;
use punctual_session::messages::{Listener, shown};
use punctual_session::options::RunOptions;
use punctual_session::request::{self, ExperimentRequest};
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

/// A tool by whose name this program takes its options and prints its output.
trait NamedTool: Default + 'static {
    const NAME: &'static str;
    /// The word that has to come first.
    const MODE: Option<&'static str> = None;
    const KNOWN: &'static [&'static [Known<Self>]];
    /// Options of the tool that are refused as if they did not exist.
    const REFUSED: &'static [&'static str];

    /// Prints why an option is refused as the tool does: one that it does not know, or one that
    /// makes no sense.
    fn refuse(why: &str, is_unknown: bool) -> ExitCode;
    /// Whether an option ends the program at once.
    fn ends(&self) -> bool {
        false
    }
    /// Completes and checks the options; returns what the tool remarks about them.
    ///
    /// # Errors
    /// One makes no sense.
    fn complete(&mut self, online: &CpuSet) -> Result<String, String>;
    /// The file of the experiment.
    fn experiment(&self) -> String;
    /// The text before the measurement.
    fn begin(&self) -> String;
    fn watcher(&self) -> Box<dyn RunWatcher> {
        live::watcher(true)
    }
    /// Prints the results. `command`: the command line.
    fn print(&self, bundle: &Bundle, command: &str) -> Result<ExitCode, Failure>;
}

/// A tool's name, and what this program does by it with the words that follow.
type Served = (&'static str, fn(&[String]) -> ExitCode);

const TOOLS: [Served; 6] = [
    ("cyclictest", as_tool::<cyclictest::Cyclictest>),
    ("hwlatdetect", as_tool::<hwlatdetect::Hwlatdetect>),
    ("oslat", as_tool::<oslat::Oslat>),
    ("osnoise", as_tool::<rtla::Osnoise>),
    ("systress", systress::serve),
    ("timerlat", as_tool::<rtla::Timerlat>),
];

fn as_tool<T: NamedTool>(words: &[String]) -> ExitCode {
    let command = [T::NAME].into_iter().chain(words.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let rest = match (T::MODE, words) {
        (None, words) => words,
        (Some(mode), [first, rest @ ..]) if first == mode => rest,
        (Some(mode), _) => return T::refuse(&format!("`{mode}` alone is supported here"), true),
    };
    let ended = match getopt::read::<T>(rest) {
        Ok(options) if options.ends() => return ExitCode::SUCCESS,
        Ok(options) => measure(options, &command),
        Err(Unknown(why)) => return T::refuse(&why, true),
    };
    ended.unwrap_or_else(|failure| {
        output::complain(&failure.render(false));
        ExitCode::FAILURE
    })
}

fn measure<T: NamedTool>(mut options: T, command: &str) -> Result<ExitCode, Failure> {
    let online = request::online_cpus()?;
    match options.complete(&online) {
        Ok(remarks) => output::say(&remarks),
        Err(why) => return Ok(T::refuse(&why, false)),
    }
    // Without the variable, the bundle is removed with its directory.
    let (directory, kept) = match std::env::var_os(BUNDLE).filter(|path| !path.is_empty()) {
        Some(path) => (None, unused(PathBuf::from(path))?),
        None => {
            let directory = tempfile::tempdir().map_err(|why| {
                Failure::failed(format!("cannot make a temporary directory: {why}"))
            })?;
            let place = directory.path().join("bundle");
            (Some(directory), place)
        }
    };
    let run = RunOptions {
        output: Some(kept),
        quiet: true,
        repeat: 1,
        force: true,
        ..RunOptions::default()
    };
    let file = PathBuf::from(format!("{}.toml", T::NAME));
    let asked = ExperimentRequest::of_text(&file, options.experiment().into_bytes(), &run);
    let (_, _, bundle) = carry_out(&asked, &run, &online, output::messages(true), |_| {
        output::print(&options.begin())?;
        Ok(options.watcher())
    })?;
    let code = options.print(&bundle, command);
    drop(directory);
    code
}

/// Runs an experiment with the watcher that `begin` makes for its plan.
fn carry_out(
    asked: &ExperimentRequest,
    run: &RunOptions,
    online: &CpuSet,
    messages: Listener,
    begin: impl FnOnce(&Plan) -> Result<Box<dyn RunWatcher>, Failure>,
) -> Result<(Plan, Exit, Bundle), Failure> {
    let (loaded, plan) = asked.resolve(messages)?;
    let plan = run.apply(plan, online)?;
    let mut watcher = begin(&plan)?;
    let further = Further { continuation: None::<Continuation>, baseline: None };
    let differs = option_env!("PUNCTUAL_DIFFERS");
    let context = RunContext { metrics: None, further, attached: None, differs, messages };
    let finished = session::run(&plan, &loaded, context, &mut *watcher);
    watcher.end();
    drop(watcher);
    let finished = finished?;
    let bundle = Bundle::open(&finished.directory).map_err(Failure::failed)?;
    Ok((plan, finished.exit, bundle))
}

/// This path, or with a number if a bundle is there: a script may measure several times.
fn unused(path: PathBuf) -> Result<PathBuf, Failure> {
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

/// Writes the text of a report to standard output, or to a file.
fn written(
    path: Option<&str>,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    write(&mut text).map_err(Failure::failed)?;
    match path {
        Some(path) => output::write_to(Some(Path::new(path)), &text),
        None => output::print(&String::from_utf8_lossy(&text)),
    }
}

/// Make links by whose name punctual takes the options of another tool and prints its output
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual names /opt/punctual/names\n  \
                        PATH=/opt/punctual/names:$PATH PUNCTUAL_BUNDLE=bundle cyclictest -S -p95 \
                        -D10 -q\n\nThe tools: cyclictest, oslat and hwlatdetect (rt-tests 2.4), \
                        `osnoise hist` and `timerlat hist --no-irq` (rtla), and systress. With \
                        PUNCTUAL_BUNDLE they leave a bundle there. Options that are not supported \
                        are refused as unknown.")]
pub struct NamesArgs {
    /// The directory of the links; made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Makes the links; what is there already stays.
pub fn run(args: NamesArgs) -> Ending {
    let own = std::env::current_exe()
        .map_err(|why| Failure::failed(format!("cannot find this program: {why}")))?;
    let cannot = |place: &Path, why: &dyn std::fmt::Display| {
        Failure::refused(format!("cannot make {}: {why}", shown(place)))
    };
    std::fs::create_dir_all(&args.directory).map_err(|why| cannot(&args.directory, &why))?;
    for (name, _) in TOOLS {
        let link = args.directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|to| to == own) {
            continue;
        }
        symlink(&own, &link).map_err(|why| cannot(&link, &why))?;
        output::print(&format!("{}\n", shown(&link)))?;
    }
    Ok(Exit::Done)
}

/// What this program does by the name that it was called by; `None` by its own.
pub fn serve() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    let name = Path::new(&called).file_name().and_then(OsStr::to_str)?;
    let (_, tool) = TOOLS.iter().find(|(known, _)| *known == name)?;
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Some(tool(&words))
}
