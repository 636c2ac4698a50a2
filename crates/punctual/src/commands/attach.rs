//! `punctual attach`: the cycles of a program's threads without its help, or disturbances of a CPU.

mod backends;

use super::answer;
use super::beside::FilesBeside;
use super::bundle::show_options;
use super::run::EngineArgs;
use crate::exit::{Ending, Failure, Outputs, of_code};
use crate::{live, output};
use punctual_bundle::Bundle;
use punctual_core::cycle::CycleKind;
use punctual_core::format;
use punctual_core::{CpuSet, Nanos, SeriesRequirement};
use punctual_record::Backend;
use punctual_report::terminal;
use punctual_session::attach::{
    CyclesAsked, EntriesAsked, entries_plan, plan_program, refuse_for_cpus,
};
use punctual_session::continuing::Continuation;
use punctual_session::cycles::target::CycleTarget;
use punctual_session::end::Further;
use punctual_session::messages::display_path;
use punctual_session::metrics::MetricsFile;
use punctual_session::options::RunOptions;
use punctual_session::run::{self as session, AttachedTo, FinishedRun, RunContext, calibration};
use punctual_session::{command, request};
use std::path::{Path, PathBuf};

/// Measure the cycles of a program's threads and what delayed them, or who disturbs a CPU
///
/// The program is not changed, stopped or traced: kernel events show when a thread's cycle was due,
/// when it began, and when the thread waited again. The wait that begins a cycle is inferred from
/// the first cycles of each thread. Findings report what a real-time thread should avoid (page
/// faults, system calls on files, relative sleeps, and more). docs/attach.md explains the figures.
///
/// With --cpus, every entry into the kernel on these CPUs is measured, and the task, CPU and kernel
/// stack that sent, queued or armed it are shown: docs/attach-cpus.md.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual attach 4711\n  punctual attach --comm linuxcnc \
                        --duration 10min --require 'response p99.9 < 800us'\n  punctual attach -- \
                        ./control-loop\n  punctual attach 4711 --thread 4713 --cycle timerfd \
                        --deadline 900us --stop-above 2ms --explain\n  punctual attach 4711 \
                        --metrics /var/lib/node_exporter/textfile/loop.prom\n  punctual attach \
                        --cpus 3 --duration 1min --require 'interruption max < 50us'\n\nWith a \
                        command, punctual writes only to standard error; standard output belongs \
                        to the command.\n\nExit codes: 0 done; 1 failed while measuring, or no \
                        cycles were found; 2 the request was invalid, nothing was started; 3 a \
                        requirement (--require, --stop-above) was not met; 4 it could not be \
                        decided, or too much was lost. Where it would be 0, or 1 without a \
                        requirement, a command that failed by itself decides: its own code, 128 \
                        + n where signal n ended it.")]
pub struct AttachArgs {
    /// Process IDs
    #[arg(value_name = "PID", value_parser = parse_pid, conflicts_with_all = ["comm", "command"])]
    pids: Vec<u32>,
    /// All processes of this name; can be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    comm: Vec<String>,
    /// Only these threads, by thread ID or by name
    #[arg(long, value_name = "THREAD", value_delimiter = ',', conflicts_with = "command")]
    thread: Vec<String>,
    /// Show who disturbs these CPUs, instead of a program
    #[arg(long, value_name = "LIST", conflicts_with_all = ["pids", "comm", "thread", "command",
          "cycle", "deadline"])]
    cpus: Option<CpuSet>,
    /// What releases a cycle: absolute, relative, timerfd, posix-timer, deadline, event
    /// [default: inferred for each thread]
    #[arg(long, value_name = "KIND")]
    cycle: Option<CycleKind>,
    /// Count the cycles whose response time exceeds this
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Nanos>,
    /// End after this time; a command that still runs is sent SIGTERM
    #[arg(long, short, value_name = "DURATION", conflicts_with = "forever")]
    duration: Option<Nanos>,
    /// A requirement on every thread: SERIES METRIC < BOUND, where SERIES is wakeup, response
    /// (default), execution or period; `response p99.9 < 800us`, `overruns == 0` (releases that
    /// passed while the cycle before still ran), `skipped == 0` (releases without a cycle). On one
    /// thread: `servo/response max < 800us`. With --cpus SERIES is interruption (default) or entry:
    /// `interruption max < 50us`, `entries < 10`, `cpu3/entries == 0`
    #[arg(long, value_name = "REQUIREMENT")]
    require: Vec<String>,
    #[command(flatten)]
    engine: EngineArgs,
    /// How kernel events are taken
    #[arg(long, value_name = "BACKEND", value_parser = backends::backend_parser(),
        default_value = "auto")]
    backend: Backend,
    /// No source lines: user stacks are not copied, which takes the program some time where it is
    /// delayed, or faults
    #[arg(long, conflicts_with = "cpus")]
    no_lines: bool,
    /// The bundle's directory, which must not exist [default: punctual-attach-<time>]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Continue the measurement in this bundle if it was cut off, interrupted or failed, of a
    /// program of the same name with the same requirements; name the same threads and backend
    /// again. Figures are over all parts, and the gap is shown. If there is no such bundle, start
    /// it
    #[arg(long = "continue", value_name = "BUNDLE", conflicts_with_all = ["output", "duration"])]
    continued: Option<PathBuf>,
    /// Show every table at the end, not only the answer (`punctual show BUNDLE` shows them later)
    #[arg(long)]
    details: bool,
    /// Do not show the live view
    #[arg(long, short)]
    quiet: bool,
    /// Print JSON in the format of summary.json (docs/reference/json.md) at the end instead of
    /// tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    beside: FilesBeside,
    /// Run CMD as this user (name or number), with its groups and no other rights; needs root
    /// [default: as punctual itself]
    #[arg(long, value_name = "USER", requires = "command")]
    user: Option<String>,
    /// The command to start and measure
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Attaches, measures, and shows the result.
pub fn run(args: AttachArgs) -> Ending {
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let directory =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("punctual-attach-{stamp}")));
    args.beside.check_files()?;
    let requirements =
        args.require.iter().map(|text| parse_requirement(text)).collect::<Result<_, _>>()?;
    let (messages, online) = (output::stderr_messages(args.quiet), request::online_cpus()?);
    let options = RunOptions { output: Some(directory), ..args.engine.run_options() };
    let duration = args.duration;
    let (program, (loaded, plan)) = match args.cpus {
        Some(cpus) => {
            refuse_for_cpus(&options)?;
            let entries_request = EntriesAsked { cpus, duration, requirements };
            (None, entries_plan(entries_request, &online, messages)?)
        }
        None => {
            let mut target =
                CycleTarget::from_arguments(&args.pids, &args.comm, &args.thread, &args.command)?;
            target.run_as(command::find_user(args.user.as_deref())?);
            let (kind, deadline) = (args.cycle, args.deadline);
            let cycles_request = CyclesAsked { kind, deadline, duration, requirements };
            let planned = plan_program(&target, cycles_request, messages)?;
            (Some(target), planned)
        }
    };
    let mut plan = options.apply_to(plan, &online)?;
    let prepare = |bundle: &Path| Continuation::prepare_plan(bundle, &mut plan, None);
    let continuation = args.continued.as_deref().map(prepare).transpose()?.flatten();
    continuation.as_ref().map(Continuation::create_part_directory).transpose()?;
    let whole = continuation.as_ref().map(|continuation| continuation.bundle.clone());
    if plan.calibrate == Some(true) && !args.quiet {
        output::print_stderr(&format!("{}\n", calibration::MEASURING));
    }
    let is_command = !args.command.is_empty();
    let mut watcher = match program.is_some() {
        true => live::attached_watcher(args.quiet, is_command),
        false => live::cpu_watcher(args.quiet),
    };
    let context = RunContext {
        metrics: args.engine.metrics.map(MetricsFile::new),
        further: Further { continuation, baseline: args.beside.earlier_runs() },
        attached: Some(AttachedTo { program, backend: args.backend, without_lines: args.no_lines }),
        differs: None,
        messages,
    };
    let finished = session::run_plan(&plan, &loaded, context, &mut *watcher);
    watcher.on_run_end();
    drop(watcher);
    let mut finished = finished?;
    let AttachArgs { json, details, quiet, beside, .. } = args;
    let output = AttachOutput { to_stderr: is_command, json, details, quiet, beside };
    let mut outputs = Outputs::default();
    output.show_result(&mut finished, whole.as_deref(), &mut outputs);
    let code = finished.summary.verdict.exit_code(finished.command);
    // A command's own code ends the process at once: without this its tracefs entries would stay.
    drop(finished);
    match outputs.into_failure() {
        None => of_code(code),
        Some(why) if code == 0 => Err(why),
        Some(why) => {
            output::print_error(&why.render(output::is_colored(&std::io::stderr())));
            of_code(code)
        }
    }
}

/// The id of a process; the error for a name shows the right option.
fn parse_pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        let text = text.escape_debug();
        format!(
            "`{text}` is not a process id; for all processes of that name: punctual attach --comm \
             {text}; to start it: punctual attach -- {text}"
        )
    })
}

fn parse_requirement(text: &str) -> Result<SeriesRequirement, Failure> {
    text.parse()
        .map_err(|why| Failure::refused(format!("--require '{}': {why}", text.escape_debug())))
}

/// The output of the result.
struct AttachOutput {
    /// Standard output belongs to the command.
    to_stderr: bool,
    json: bool,
    /// Show every table.
    details: bool,
    quiet: bool,
    /// The files beside the bundle.
    beside: FilesBeside,
}

impl AttachOutput {
    fn print_text(&self, text: &str) -> Result<(), Failure> {
        match self.to_stderr {
            true => output::print_stderr(text),
            false => output::print_stdout(text)?,
        }
        Ok(())
    }

    /// Shows the answer, the figures, the bundle's path; or why there is nothing. `whole`: the
    /// continued bundle, which then has the figures.
    fn show_result(&self, finished: &mut FinishedRun, whole: Option<&Path>, outputs: &mut Outputs) {
        if let Some(whole) = whole {
            whole.clone_into(&mut finished.directory);
        }
        let bundle = Bundle::open(&finished.directory).ok();
        let nothing_found =
            finished.attached_program().and_then(|program| program.nothing_found.clone());
        outputs.add(finished.trouble.take().map_or(Ok(()), Err));
        if let Some(bundle) = &bundle {
            self.beside.write(bundle, outputs);
        }
        // If it continues a bundle, other parts have figures.
        let is_empty = nothing_found.is_some() && whole.is_none();
        if !is_empty {
            if let Some(bundle) = &bundle {
                answer::add(bundle, &mut finished.summary);
            }
            let of_all = bundle.as_ref().filter(|_| whole.is_some());
            outputs.add(self.print_figures(finished, of_all));
        }
        nothing_found.iter().for_each(|why| output::print_error(why));
        if !is_empty && !self.json {
            outputs.add(self.print_closing(finished, bundle.as_ref()));
        }
    }

    /// The last lines.
    fn print_closing(
        &self,
        finished: &FinishedRun,
        bundle: Option<&Bundle>,
    ) -> Result<(), Failure> {
        if let Some(bundle) = bundle.filter(|_| self.details) {
            self.print_text(&super::explain::brief_explanation(bundle))?;
        }
        let name = display_path(&finished.directory);
        self.print_text(&format!("\nbundle  {name}\nreport  punctual report {name}\n"))?;
        let terminal = match self.to_stderr {
            true => output::terminal_size(std::io::stderr()),
            false => output::terminal_size(std::io::stdout()),
        };
        match self.quiet || terminal.is_none() {
            true => self.print_text(&terminal::show_closing(&finished.summary, &show_options())),
            false => Ok(()),
        }
    }

    /// `of_all`: the bundle of all parts, if there are several.
    fn print_figures(
        &self,
        finished: &FinishedRun,
        of_all: Option<&Bundle>,
    ) -> Result<(), Failure> {
        if self.json {
            return match self.to_stderr {
                true => {
                    let text = serde_json::to_string_pretty(&finished.summary);
                    self.print_text(&format!("{}\n", text.map_err(Failure::failed)?))
                }
                false => output::print_json(&finished.summary),
            };
        }
        if !self.details {
            let whole =
                format!("--details, or punctual show {}", display_path(&finished.directory));
            return self.print_text(&terminal::show_brief(
                &finished.summary,
                &whole,
                &show_options(),
            ));
        }
        let own_views = || session::phase_views(&finished.phases);
        let views = of_all.map_or_else(own_views, punctual_stats::phase_views);
        self.print_text(&terminal::show_summary(&finished.summary, &views, &show_options()))?;
        let Some(cycles) = finished.attached_program().map(|program| &program.cycles) else {
            let entries = finished.phases.iter().flat_map(|phase| &phase.entries);
            let costs = entries.filter_map(|of| of.cost());
            return self.print_text(&costs.map(|cost| format!("\n{cost}\n")).collect::<String>());
        };
        let described = cycles.thread_descriptions();
        let lines = described.iter().flat_map(|text| text.lines()).map(format::escape_unsafe);
        let lines = lines.chain(cycles.describe_cost());
        let lines = lines.map(|line| format!("  {line}\n"));
        self.print_text(&format!("\ncycles\n{}", lines.collect::<String>()))
    }
}
