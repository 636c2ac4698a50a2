//! `punctual ssh`: runs left on other systems.

use super::run;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::Nanos;
use punctual_core::format::{duration_text, escape_unsafe};
use punctual_lab::ssh::{self, Connection, Destination, Leftover};
use punctual_plan::{LoadOptions, TargetPlan};
use punctual_session::options::SshOptions;
use punctual_study::targets;
use punctual_study::targets::ssh::{self as target, SshWatch};
use std::path::{Path, PathBuf};

/// List, fetch and remove runs left on other systems
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual ssh list root@board\n  punctual ssh fetch \
                        root@board:2222 x8Kq02LmPz\n  punctual ssh clean root@board --all\n\nA \
                        run on another system continues when the connection is lost or the \
                        punctual that started it is killed. Afterwards the bundle is kept there \
                        until it is fetched or expires.")]
pub struct SshCommandArgs {
    /// What to do
    #[command(subcommand)]
    action: SshAction,
}

#[derive(clap::Subcommand)]
enum SshAction {
    List(ListArgs),
    Fetch(FetchArgs),
    Clean(CleanArgs),
}

/// List the runs on a system and their states
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual ssh list root@board")]
struct ListArgs {
    /// The system: [USER@]HOST[:PORT]; keys of [target] can follow, separated by commas, as for
    /// `run --target`
    #[arg(value_name = "HOST")]
    to: String,
    /// Print JSON (docs/reference/json.md)
    #[arg(long)]
    json: bool,
}

/// Wait for the end of a run and fetch its bundle
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual ssh fetch root@board x8Kq02LmPz --output \
                        results/monday\n\nThe exit code is that of the run.")]
struct FetchArgs {
    /// The system: [USER@]HOST[:PORT]; keys of [target] can follow, separated by commas, as for
    /// `run --target`
    #[arg(value_name = "HOST")]
    to: String,
    /// The id of the run
    id: String,
    /// The bundle's directory, which must not exist [default: punctual-<id>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How long to retry a lost connection [default: 10min]
    #[arg(long, value_name = "DURATION")]
    reconnect_for: Option<Nanos>,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// End runs as Ctrl-C does, and remove their files
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual ssh clean root@board x8Kq02LmPz")]
struct CleanArgs {
    /// The system: [USER@]HOST[:PORT]; keys of [target] can follow, separated by commas, as for
    /// `run --target`
    #[arg(value_name = "HOST")]
    to: String,
    /// The ids of the runs
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All runs of this user
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Runs the subcommand.
pub fn run(args: SshCommandArgs) -> Ending {
    match args.action {
        SshAction::List(args) => list_runs(&args),
        SshAction::Fetch(args) => fetch_run(&args),
        SshAction::Clean(args) => clean_runs(&args),
    }
}

/// The system named by a word of the command line.
fn parse_destination(word: &str) -> Result<Destination, Failure> {
    let word = format!("ssh:{}", word.strip_prefix("ssh:").unwrap_or(word));
    match punctual_plan::read_target(Path::new("-"), &[], &LoadOptions::default(), Some(&word)) {
        Ok(TargetPlan::Ssh(plan)) => Ok(target::destination_of_plan(&plan)),
        Ok(_) => Err(Failure::refused(format!("{word} is not another system"))),
        Err(problems) => Err(problems.into()),
    }
}

fn open_connection(word: &str) -> Result<(Connection, Vec<Leftover>), Failure> {
    let connection = Connection::open(&parse_destination(word)?).map_err(target::to_failure)?;
    let found = ssh::list_leftovers(&connection).map_err(target::to_failure)?;
    Ok((connection, found))
}

fn list_runs(args: &ListArgs) -> Ending {
    let (connection, found) = open_connection(&args.to)?;
    if args.json {
        let runs = found.iter().map(|run| {
            serde_json::json!({
                "id": run.id,
                "experiment": run.experiment,
                "state": run.state,
                "alone_for_ns": run.disconnected_for.map(|time| time.as_nanos() as u64),
            })
        });
        output::print_json(&serde_json::json!({ "runs": runs.collect::<Vec<_>>() }))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        output::print_stdout(&format!("no runs on {}\n", connection.destination()))?;
    }
    for run in &found {
        let last_connected = run.disconnected_for.map(|time| {
            format!(", connected {} ago", duration_text(Nanos::from_secs(time.as_secs() as i64)))
        });
        let (experiment, state) = (escape_unsafe(&run.experiment), escape_unsafe(&run.state));
        output::print_stdout(&format!(
            "{}  {experiment}  {state}{}\n",
            run.id,
            last_connected.unwrap_or_default()
        ))?;
    }
    Ok(Exit::Done)
}

fn fetch_run(args: &FetchArgs) -> Ending {
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("punctual-{}", escape_unsafe(&args.id))));
    targets::check_output(&output)?;
    let to = parse_destination(&args.to)?;
    let options = SshOptions { reconnect_for: args.reconnect_for, ..SshOptions::default() };
    let messages = output::stderr_messages(args.quiet);
    let mut watch = SshWatch::new(messages)?;
    let result = ssh::resume_run(&to, &args.id, &output, options.timeouts().reconnect, &mut watch)
        .map_err(target::to_failure)?;
    watch.finish();
    let exit = target::complete_bundle(&to, &result, None, &output, messages)?;
    run::name_bundle(&output)?;
    Ok(exit)
}

fn clean_runs(args: &CleanArgs) -> Ending {
    let (connection, found) = open_connection(&args.to)?;
    let unknown = args.ids.iter().find(|id| !found.iter().any(|run| run.id == **id));
    if let Some(id) = unknown {
        return Err(Failure::refused(format!(
            "{} has no run {id} of this user",
            connection.destination()
        )));
    }
    for run in found.iter().filter(|run| args.all || args.ids.contains(&run.id)) {
        ssh::remove_run(&connection, run).map_err(target::to_failure)?;
        output::print_stdout(&format!("removed {}\n", run.id))?;
    }
    Ok(Exit::Done)
}
