//! `punctual explain`: the delays of a bundle's worst samples.

use super::answer;
use super::bundle::{
    CycleArgs, cycles_of, open_bundle, open_with, or_newest, show_options, show_options_of,
};
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_bundle::{Bundle, RanUnder};
use punctual_core::{CallPath, Nanos};
use punctual_explain::Explanations;
use punctual_report::export::{self, ExportError};
use punctual_report::remedies::Rules;
use punctual_report::terminal;
use punctual_session::explanation::{self, TraceInstant, Wanted};
use punctual_session::messages::display_path;
use punctual_session::traces::{self, Converted};
use punctual_study::exact::{self, HowMuch};
use punctual_study::exact_difference;
use std::path::{Path, PathBuf};

/// Show what delayed the worst samples
///
/// The latency of each sample is divided by cause: interrupts, other tasks, disabled preemption,
/// locks, I/O, and what cannot be attributed. The parts add up to the latency, and each one follows
/// from kernel events: those that a run with --explain kept around its worst samples, or those of a
/// recording (--trace, `punctual trace`).
///
/// In a trace that another tool recorded, and in a recording without samples, threads with cycles
/// are found, and the longest of these are explained: docs/traces.md.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual measure timer --cpus 3 --duration 10s --explain \
                        --output worst && punctual explain worst\n  punctual explain BUNDLE \
                        --series timer/cpu3 --worst 5\n  punctual explain BUNDLE --min-latency \
                        200us --json | jq '.samples[].parts'\n  punctual explain BUNDLE --pair \
                        'request->reply' --worst 3\n  punctual explain BUNDLE --perfetto \
                        worst.pftrace\n  punctual explain BUNDLE --exact --folded \
                        worst.folded --perfetto worst.pftrace\n  punctual explain BUNDLE --exact \
                        --against 6.12-rt\n  punctual explain BUNDLE --path read\n  punctual \
                        explain trace.dat --thread servo \
                        --deadline 1ms\n\nExit codes: 0 done; 1 no cycles were found in a trace; \
                        2 the bundle has no events that explain samples; with --require also 3 a \
                        requirement was not met; 4 it could not be decided, or the parts of a \
                        sample do not add up to its latency (a bug), or the replay of --exact \
                        gave different samples.")]
pub struct ExplainArgs {
    /// The bundle, or the trace of another tool; `-` is a trace on standard input [default: the
    /// newest bundle in the current directory]
    #[arg(value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    cycles: CycleArgs,
    /// Only samples of this series (NAME or PHASE/NAME); can be repeated
    #[arg(long, value_name = "SERIES")]
    series: Vec<String>,
    /// Explain the longest intervals of this pair (A->B), scope or function of a recording instead
    /// of samples (see `punctual pairs`); can be repeated
    #[arg(long, value_name = "PAIR", conflicts_with = "series")]
    pair: Vec<String>,
    /// Only the N worst samples of each series [default: all that were kept; the worst 5 incidents
    /// of each series are shown one by one]
    #[arg(long, value_name = "N")]
    worst: Option<usize>,
    /// Of a trace: only moments at this stamp, as the trace has it (17000.012110, 54984us), or in
    /// this interval (FROM..TO); with --thread the interval itself is explained
    #[arg(long, value_name = "TIME", conflicts_with_all = ["series", "pair"])]
    at: Option<TraceInstant>,
    /// Only samples with at least this latency
    #[arg(long, value_name = "DURATION")]
    min_latency: Option<Nanos>,
    /// Replay a run in virtual time, trace every instruction, and explain the worst samples by
    /// function (x86-64; docs/exact.md)
    #[arg(long, conflicts_with_all = CONFLICTS_OF_EXACT)]
    exact: bool,
    /// Compare the exact explanation with another: of a bundle, of an exact.json, or of the same
    /// experiment on this kernel, which is run for it (the settings of `--target vm:`; its bundle
    /// is kept as BUNDLE-on-KERNEL)
    #[arg(long, value_name = "OTHER", requires = "exact")]
    against: Option<String>,
    /// Show the functions of one system call as a tree with times, from the program's wrapper to
    /// the return: of a run in virtual time by every instruction (it is replayed unless it was), or
    /// the median of the calls in another tool's trace of function_graph
    #[arg(long, value_name = "CALL", conflicts_with_all = CONFLICTS_OF_PATH)]
    path: Option<String>,
    /// Also show the source lines at which the program was delayed, by the stacks that `attach`
    /// kept; with --exact those of all code that has debug information: programs compiled with -g,
    /// and the kernel where Debian's linux-image-RELEASE-dbg is installed
    #[arg(long)]
    lines: bool,
    /// Also write the calls of the exact explanation to this file, as folded stacks for flame
    /// graphs
    #[arg(long, value_name = "FILE", requires = "exact")]
    folded: Option<PathBuf>,
    /// Print JSON in the format punctual-explain/2 (docs/reference/explain.md), with --exact
    /// punctual-exact/1
    #[arg(long)]
    json: bool,
    /// Also write the events around these samples to this file, for ui.perfetto.dev; with --exact
    /// their calls
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

/// Options that a replay ignores.
const CONFLICTS_OF_EXACT: [&str; 7] =
    ["series", "pair", "at", "min_latency", "thread", "deadline", "require"];
const CONFLICTS_OF_PATH: [&str; 8] =
    ["series", "pair", "at", "min_latency", "against", "lines", "folded", "perfetto"];
/// Samples of each series shown one by one by default; the culprits are those of all samples.
const SHOWN_BY_DEFAULT: usize = 5;

/// Opens the bundle, explains its worst samples and prints the result.
pub fn run(args: ExplainArgs) -> Ending {
    let named = or_newest(args.bundle.iter().cloned().collect())?;
    if let Some(call) = &args.path {
        return print_call_path(&args, &named[0], call);
    }
    let (bundle, converted) = open_with(&named[0], &args.cycles)?;
    if args.exact {
        return explain_exactly(&args, &bundle);
    }
    let wanted = Wanted {
        series: args.series,
        pairs: args.pair,
        worst: args.worst,
        min_latency: args.min_latency.unwrap_or(Nanos::ZERO),
        thread: args.cycles.import_questions().thread,
        at: args.at,
        coincidences: true,
    };
    // That there is no such thread says more than that it has no cycles. A requirement on it is
    // undecided.
    if args.cycles.import_questions().requirements.is_empty() {
        explanation::requested_threads(&bundle, &wanted)?;
    }
    let lines = if args.lines { format_places(&bundle, args.json)? } else { String::new() };
    let explained = match converted {
        Some(converted) => {
            of_trace(&bundle, &wanted, &converted).map(|found| (found, Some(converted)))
        }
        None => explain_bundle(&bundle, &wanted, &args.cycles),
    };
    let (explanations, converted) = match explained {
        // A bundle without events has its stacks all the same.
        Err(why) if args.lines && why.exit == Exit::Refused && args.perfetto.is_none() => {
            let mut outputs = Outputs::default();
            outputs.add(output::print_stdout(&(answer_of(&bundle) + &lines)));
            return outputs.into_ending(Exit::Done);
        }
        explained => explained?,
    };
    let mut outputs = Outputs::default();
    if let Some(path) = &args.perfetto {
        outputs.add(write_perfetto(&bundle, &explanations, path));
    }
    outputs.add(if args.json {
        output::print_figures(&explanations.to_document(), bundle.timebase())
    } else {
        let checks: Option<serde_json::Value> = bundle.read_document("check").unwrap_or_default();
        let shown = args.worst.unwrap_or(SHOWN_BY_DEFAULT);
        let mut text = answer_of(&bundle);
        if let Some(converted) = converted.as_ref().filter(|of| !of.described.is_empty()) {
            text += &format!("{}\n\n", converted.described.join("\n"));
        }
        let (rules, options) = (Rules::from_document(checks.as_ref()), show_options_of(&bundle));
        let samples = terminal::show_explanations(&explanations, shown, &rules, &options);
        let gap = if lines.is_empty() { "" } else { "\n" };
        output::print_stdout(&(text + &samples + gap + &lines))
    });
    outputs.into_ending(match converted {
        _ if explanations.contradiction_finding().is_some() => Exit::NoEvidence,
        Some(converted) => converted.exit,
        None => Exit::Done,
    })
}

/// The lines at which the program of a bundle was delayed.
fn format_places(bundle: &Bundle, json: bool) -> Result<String, Failure> {
    if json {
        let refusal = "--lines and --json go together with --exact alone: `punctual show --json` \
                   has the table `places`";
        return Err(Failure::refused(refusal));
    }
    let places =
        terminal::show_places(&answer::summarize_with_answer(bundle), &show_options_of(bundle));
    if places.is_empty() {
        let refusal = "no stacks of the program were kept, which --lines needs: `punctual attach` \
                   keeps them; --exact has the lines of a run in virtual time";
        return Err(Failure::refused(refusal));
    }
    Ok(places)
}

/// The answer of a bundle with samples, before their explanations.
fn answer_of(bundle: &Bundle) -> String {
    if bundle.all_series().next().is_none() {
        return String::new();
    }
    let summary = answer::summarize_with_answer(bundle);
    let delayed_by = punctual_report::answer::known_answer(&summary).delayed_by;
    let which = match delayed_by.is_some_and(|delays| delays.source.is_some()) {
        true => "What follows divides the time by recorded events alone.\n",
        false => "",
    };
    format!("{}{which}\n", terminal::show_answer(&summary, &show_options_of(bundle)))
}

/// Explains the moments of a trace. Why there are no cycles says more than that there is nothing to
/// explain.
fn of_trace(
    bundle: &Bundle,
    wanted: &Wanted,
    converted: &Converted,
) -> Result<Explanations, Failure> {
    let explanations = explanation::explain_samples(bundle, wanted);
    match (&converted.none, explanations) {
        (Some(why), found) if wanted.at.is_none() => match found {
            Ok(found) if !found.samples.is_empty() => Ok(found),
            _ => Err(no_cycles(why.clone(), converted.exit)),
        },
        (_, explanations) => explanations,
    }
}

/// No thread has cycles: their requirements are undecided.
fn no_cycles(why: String, exit: Exit) -> Failure {
    match exit {
        Exit::Done => Failure::failed(why),
        exit => Failure { exit, ..Failure::failed(why) },
    }
}

/// Explains the samples or intervals of a bundle; for a recording without any, or on request, the
/// cycles found in it.
fn explain_bundle(
    bundle: &Bundle,
    wanted: &Wanted,
    cycles: &CycleArgs,
) -> Result<(Explanations, Option<Converted>), Failure> {
    let of_cycles = |cycles: &CycleArgs| -> Result<_, Failure> {
        let (found, converted) = cycles_of(bundle, cycles)?;
        let explanations = explanation::of_cycles(&found, bundle, wanted)?;
        Ok((explanations, Some(converted)))
    };
    if cycles.has_any() {
        let (found, converted): (Explanations, Option<Converted>) = of_cycles(cycles)?;
        let Some(Converted { none: Some(why), exit, .. }) = &converted else {
            return Ok((found, converted));
        };
        let moments = explanation::of_moments(bundle, wanted)?;
        let moments = moments.filter(|found| !found.samples.is_empty());
        return moments
            .map(|found| (found, converted.clone()))
            .ok_or_else(|| no_cycles(why.clone(), *exit));
    }
    match explanation::explain_samples(bundle, wanted) {
        Ok(explanations) => Ok((explanations, None)),
        Err(why) if explanation::may_have_cycles(bundle, wanted) => match of_cycles(cycles) {
            Ok((explanations, Some(converted))) if converted.none.is_none() => {
                Ok((explanations, Some(converted)))
            }
            _ => explanation::of_moments(bundle, wanted)?.map(|found| (found, None)).ok_or(why),
        },
        Err(why) => Err(why),
    }
}

/// The result of a run with --exact, for users.
pub fn exactly_of(directory: &Path) -> Result<String, Failure> {
    let bundle = open_bundle(directory)?;
    let document: Option<ExactDocument> =
        bundle.read_document(EXACT_MEMBER).map_err(Failure::failed)?;
    let show = |document| {
        terminal::show_exact_samples(&document, exact::SHOWN_SAMPLES, &show_options_of(&bundle))
    };
    Ok(document.map_or(String::new(), show))
}

/// Replays the run, and shows the executed instructions.
fn explain_exactly(args: &ExplainArgs, bundle: &Bundle) -> Ending {
    let worst = args.worst.unwrap_or(exact::WORST);
    let wanted = HowMuch { worst, lines: args.lines };
    let messages = output::stderr_messages(args.json);
    let document = match &args.against {
        None => exact::explain_bundle(bundle, wanted, messages)?,
        Some(other) => {
            let own_explanation =
                exact_difference::explanation_of_bundle(bundle, wanted, messages)?;
            exact_difference::compare_explanations(bundle, own_explanation, other, messages)?
        }
    };
    let mut outputs = Outputs::default();
    if let Some(path) = &args.folded {
        outputs.add(output::stream_to(Some(path), |out| {
            export::exact_folded(&document, out).map_err(Failure::from)
        }));
    }
    if let Some(path) = &args.perfetto {
        outputs.add(output::stream_to(Some(path), |out| {
            export::exact_perfetto(&document, out).map_err(Failure::from)
        }));
    }
    let shown = args.worst.unwrap_or(exact::SHOWN_SAMPLES);
    outputs.add(match args.json {
        true => output::print_figures(&document, bundle.timebase()),
        false => output::print_stdout(&terminal::show_exact_samples(
            &document,
            shown,
            &show_options_of(bundle),
        )),
    });
    outputs.into_ending(Exit::Done)
}

/// The functions of one system call.
fn print_call_path(args: &ExplainArgs, place: &Path, call: &str) -> Ending {
    let found = match traces::is_trace(place) {
        true => CallPath::median_path(traces::call_paths(place, call)?),
        false => {
            let wanted = HowMuch { worst: args.worst.unwrap_or(exact::WORST), lines: false };
            let (bundle, messages) = (open_bundle(place)?, output::stderr_messages(args.json));
            exact_difference::explanation_of_bundle(&bundle, wanted, messages)?.call_path(call)
        }
    };
    let found = found.ok_or_else(|| {
        Failure::refused(format!(
            "{} shows no call of {} from its begin to its end\nhelp: measure it in virtual time: \
             `punctual measure syscall -s call=read -s period=1ms --target vm:6.12`; or record the \
             tracer function_graph of a task that makes it",
            display_path(place),
            display_path(Path::new(call))
        ))
    })?;
    let mut outputs = Outputs::default();
    outputs.add(match args.json {
        true => output::print_json(&found),
        false => output::print_stdout(&terminal::call_path(&found, &show_options())),
    });
    outputs.into_ending(Exit::Done)
}

/// The worst sample of each series, to follow the figures of a run or a bundle. Empty without
/// windows.
pub fn brief_explanation(bundle: &Bundle) -> String {
    if bundle.windows.is_none() {
        return String::new();
    }
    let wanted = Wanted { worst: Some(1), ..Wanted::default() };
    let Ok(explanations) = explanation::explain_samples(bundle, &wanted) else {
        return String::new();
    };
    let text = terminal::worst_explained(&explanations, &show_options_of(bundle));
    if text.is_empty() {
        return text;
    }
    format!("\n{text}  details: punctual explain {}\n", display_path(&bundle.directory))
}

/// The events of all windows as one trace, with the breakdown of each sample.
fn write_perfetto(
    bundle: &Bundle,
    explanations: &Explanations,
    path: &Path,
) -> Result<(), Failure> {
    let environment = RanUnder::from_bundle(bundle);
    output::stream_to(Some(path), |out| {
        export::export_explained(explanations, bundle.timebase(), environment.kernel_release(), out)
            .map_err(|error| match error {
                ExportError::Write(error) => error.into(),
                other => Failure::failed(other),
            })
    })
}
