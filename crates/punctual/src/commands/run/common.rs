//! The options of `run`, `measure` and `demo`.

use super::exclusion::ExclusionArgs;
use super::violation::{self, ViolationAction};
use crate::commands::beside::FilesBeside;
use punctual_core::Nanos;
use punctual_session::options::{RunOptions, SshOptions};
use std::path::PathBuf;

/// The common options of `run` and `measure`.
#[derive(clap::Args)]
pub struct CommonArgs {
    /// Print the resolved plan (defaults, CPUs, priorities, estimated time) and start nothing
    #[arg(long)]
    pub plan: bool,
    /// The bundle's directory, which must not exist [default: punctual-<experiment>-<time>]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Do not show the live view
    #[arg(long, short)]
    pub quiet: bool,
    /// Print JSON in the format of summary.json (docs/reference/json.md) at the end instead of
    /// tables
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub beside: FilesBeside,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub exclusion: ExclusionArgs,
    /// Allow experiments that could make the system unresponsive
    #[arg(long)]
    pub force: bool,
    /// Where to run: host, vm:KERNEL (vm:6.1-rt), ssh:[USER@]HOST[:PORT]; keys of [target] can
    /// follow, separated by commas (overrides [target] of the file)
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The random seed for start times and seeds of loads, and for timer phases (overrides seed of
    /// the file)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64)
    )]
    pub seed: Option<u64>,
    /// Run this many times on a target in virtual time and verify that all samples are identical
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repeat: u32,
    /// Trace every instruction, and explain the worst samples by function (virtual time, x86-64;
    /// docs/exact.md)
    #[arg(long)]
    pub exact: bool,
    #[command(flatten)]
    pub elsewhere: SshArgs,
}

/// The options of `run`, `measure` and `attach` for the engine.
#[derive(clap::Args)]
pub struct EngineArgs {
    /// Also write the figures as OpenMetrics text every 15 s and at the end, for node_exporter's
    /// textfile collector (FILE ends in .prom there); not with a remote target
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// End if a latency (of a program: a response time; of a CPU: an interruption) exceeds this; a
    /// command that still runs is sent SIGTERM (overrides stop_above of the file)
    #[arg(long, value_name = "DURATION")]
    stop_above: Option<Nanos>,
    /// Run CMD with sh(1), once, when a requirement is violated; the measurement continues.
    /// PUNCTUAL_BUNDLE, PUNCTUAL_SERIES, PUNCTUAL_REQUIREMENT, PUNCTUAL_VALUE and PUNCTUAL_LIMIT
    /// are set (overrides on_violation of the file; docs/weeks.md). Or shell=CMD, signal=N,pid=PID,
    /// stop, trace (as --explain), continue; can be repeated
    #[arg(long, value_name = "CMD", value_parser = violation::parse_action)]
    on_violation: Vec<ViolationAction>,
    /// Run until interrupted, for weeks: keep a summary of every five minutes and the newest
    /// samples, at most 500 MB per month (8 CPUs at 1 kHz; docs/weeks.md)
    #[arg(long)]
    forever: bool,
    /// Also record test points and these groups of kernel events, or tracepoints as GROUP:NAME
    /// (`punctual trace --events list` shows the groups)
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    trace: Vec<String>,
    /// Also keep the kernel events around the worst samples of each series, for `punctual explain`
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    calibration: CalibrationArgs,
}

impl EngineArgs {
    /// The options of the run itself, on this system.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            stop_above: self.stop_above,
            on_violation: violation::join_actions(&self.on_violation),
            forever: self.forever,
            trace: self.trace.clone(),
            explain: self.explain || self.on_violation.contains(&ViolationAction::Trace),
            calibrate: self.calibration.requested_calibration(),
            ..RunOptions::default()
        }
    }
}

/// Whether to measure the cost of recording.
#[derive(clap::Args)]
pub struct CalibrationArgs {
    /// Measure what recording costs before the run, in about 7 s: the latency of a timer thread
    /// with and without it [default: if something is recorded for 10 s or longer; with attach,
    /// never]
    #[arg(long, conflicts_with = "no_calibration")]
    calibrate: bool,
    /// Do not measure what recording costs
    #[arg(long)]
    no_calibration: bool,
}

impl CalibrationArgs {
    /// The request, if any.
    pub fn requested_calibration(&self) -> Option<bool> {
        (self.calibrate || self.no_calibration).then_some(self.calibrate)
    }
}

/// The options of a target that is another system.
#[derive(clap::Args)]
#[command(next_help_heading = "Options for ssh targets")]
pub struct SshArgs {
    /// Reconnect to the run with this id instead of starting one (`punctual ssh list` shows the
    /// ids)
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// How long to retry a lost connection; the run continues [default: 10min]
    #[arg(long, value_name = "DURATION")]
    reconnect_for: Option<Nanos>,
    /// How long to keep the run and its bundle without a connected client; then both are removed
    /// [default: 24h]
    #[arg(long, value_name = "DURATION")]
    keep_for: Option<Nanos>,
    /// Leave the other system in the boot of this run, and have it in its usual one for a run that
    /// asks for none (runs of a lab)
    #[arg(long, hide = true)]
    keep_boot: bool,
}

impl SshArgs {
    fn ssh_options(&self) -> SshOptions {
        let (reconnect_for, keep_for) = (self.reconnect_for, self.keep_for);
        let keep_boot = self.keep_boot;
        SshOptions { resume: self.resume.clone(), reconnect_for, keep_for, keep_boot }
    }
}

impl CommonArgs {
    /// The options of the run itself; the rest applies to its result.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            plan_only: self.plan,
            output: self.output.clone(),
            quiet: self.quiet,
            force: self.force,
            target: self.target.clone(),
            seed: self.seed,
            repeat: self.repeat,
            exact: self.exact,
            ssh: self.elsewhere.ssh_options(),
            ..self.engine.run_options()
        }
    }
}
