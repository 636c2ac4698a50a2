//! `punctual measure`: a quick answer to one question, as an experiment of one measure.

use super::run::{self, CommonArgs, Cyclictest, in_toml, parse_setting};
use crate::exit::Ending;
use punctual_plan::{Word, WorkloadKind};
use punctual_session::request::ExperimentRequest;
use std::path::Path;

/// The default duration.
const DURATION: &str = "5s";

/// Measure one kind of latency, without an experiment file
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct MeasureArgs {
    /// The kind of measurement (see below)
    #[arg(value_name = "NAME", value_parser = parse_kind)]
    kind: WorkloadKind,
    /// A parameter of the kind, as in an experiment file; can be repeated
    #[arg(long = "set", short, value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// The CPUs to measure on: a list like 0-2,4, or all
    #[arg(long, value_name = "CPUS")]
    cpus: Option<String>,
    /// The number of threads, or per-cpu
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// The scheduling policy: fifo, rr, other, batch, idle
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// The priority, 1 to 99
    #[arg(long, value_name = "N")]
    priority: Option<String>,
    /// How long to measure [default: 5s, unless --count is given]
    #[arg(long, value_name = "DURATION", conflicts_with = "count")]
    duration: Option<String>,
    /// Number of samples per series
    #[arg(long, value_name = "N")]
    count: Option<String>,
    /// A requirement on every series, such as "p99 < 10us"; can be repeated
    #[arg(long, value_name = "REQUIREMENT")]
    require: Vec<String>,
    /// Events to count in each measuring thread, by their perf-list(1) names: cycles,instructions
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    counters: Vec<String>,
    #[command(flatten)]
    cyclictest: Cyclictest,
    #[command(flatten)]
    common: CommonArgs,
}

fn after_help() -> String {
    let kinds = WorkloadKind::WORDS
        .iter()
        .map(|(word, kind)| format!("  {word:<15} {}\n", kind.title()))
        .collect::<String>();
    format!(
        "Kinds:\n{kinds}\npunctual-experiment(5) describes their parameters; --plan shows \
         all of them with their defaults.\n\nExamples:\n  punctual measure \
         syscall\n  punctual measure syscall --set call=read --set target=pipe --count 1000000 \
         --cpus 3\n  punctual measure timer --cpus all --duration 10s --require \"max < \
         100us\"\n\nExit codes: see punctual run."
    )
}

pub fn parse_kind(word: &str) -> Result<WorkloadKind, String> {
    let known_words = WorkloadKind::WORDS.iter().map(|(word, _)| *word);
    WorkloadKind::from_word(word).ok_or_else(|| {
        match punctual_core::words::nearest_word(word, known_words.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known_words.collect::<Vec<_>>().join(", ")),
        }
    })
}

/// Writes the requested experiment, and runs it.
pub fn run(args: MeasureArgs) -> Ending {
    let text = format_experiment(&args);
    let name = format!("{}.toml", args.kind.word());
    run::run_experiment(
        &args.common,
        &ExperimentRequest::of_text(
            Path::new(&name),
            text.into_bytes(),
            &args.common.run_options(),
        ),
        None,
    )
}

/// The experiment in TOML: errors in it are reported as in any other.
fn format_experiment(args: &MeasureArgs) -> String {
    let mut text = format!("[[measure]]\nkind = \"{}\"\n", args.kind.word());
    let has_length =
        args.duration.is_some() || args.count.is_some() || args.cyclictest.has_length();
    let claimed = args.common.exclusion.needed_time().map(|time| time.to_string());
    let default = (!has_length).then(|| claimed.unwrap_or_else(|| DURATION.to_owned()));
    let duration = args.duration.as_ref().or(default.as_ref());
    let quoted =
        [("cpus", &args.cpus.as_ref()), ("policy", &args.policy.as_ref()), ("duration", &duration)];
    for (key, value) in quoted {
        text.extend(value.map(|value| format!("{key} = {}\n", in_quotes(value))));
    }
    for (key, value) in
        [("threads", &args.threads), ("priority", &args.priority), ("samples", &args.count)]
    {
        text.extend(value.as_ref().map(|value| format!("{key} = {}\n", in_toml(value))));
    }
    for (key, list) in [("require", &args.require), ("counters", &args.counters)] {
        if !list.is_empty() {
            let list: Vec<String> = list.iter().map(|one| in_quotes(one)).collect();
            text += &format!("{key} = [{}]\n", list.join(", "));
        }
    }
    for (key, value) in args.cyclictest.measure_settings() {
        text += &format!("{key} = {value}\n");
    }
    for (key, value) in &args.settings {
        text += &format!("{key} = {}\n", in_toml(value));
    }
    text
}

fn in_quotes(value: &str) -> String {
    punctual_plan::text::quote_toml(value)
}
