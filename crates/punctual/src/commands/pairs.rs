//! `punctual pairs`: the time between any two points of a recording.

use super::bundle::{open_bundle, show_options_of};
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_bundle::Timebase;
use punctual_core::Names;
use punctual_core::event::{FunctionId, Group, PointId};
use punctual_explain::coincidence::KeptIntervals;
use punctual_explain::pairs::{
    IntervalPair, MatchRule, PairKey, PairMatch, PairRequest, Pairing, PairingOptions,
    PreparedPairing, RequestTarget, Results, WorstDetail, apply_validity, build_document,
    worst_windows,
};
use punctual_explain::threads::{Coverage, LaneWindows, Tracker, WindowLanes};
use punctual_report::terminal;
use punctual_session::coincidence;
use punctual_session::playback::{self, OpenedRecording};
use punctual_stats::Validity;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// The number of worst intervals of each pair explained by what ran during them.
const EXPLAINED: usize = 3;

/// Measure the time between any two points of a recording
///
/// A pair is A->B. Each end is a test point (NAME, NAME:begin, NAME:end), a probed function
/// (NAME:entry, NAME:exit), or a kernel event with its object (sched_waking:TASK,
/// irq_handler_entry:virtio0, sys_enter:futex). A single name is a scope from begin to end, or the
/// calls of a function. Without pairs: all scopes, all points with the points that follow them, and
/// all probed functions.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual pairs BUNDLE\n  punctual pairs BUNDLE \
                        'sched_waking:worker->sched_switch'\n  punctual pairs BUNDLE --limit \
                        'frame < 2ms' --limit 'request->reply <= 500us'\n  punctual pairs BUNDLE \
                        'request->reply' --by value --rule async --json | jq \
                        '.pairs[].max'\n\nExit codes: 3 a limit is violated; 4 the recording \
                        does not decide a limit.")]
pub struct PairsArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Pairs, scopes or functions: `A->B`, `NAME`
    #[arg(value_name = "PAIR")]
    pairs: Vec<String>,
    /// What A and B must have in common [default: by their kinds]
    #[arg(long, value_parser = PairKey::ALL.map(|(word, _)| word))]
    by: Option<String>,
    /// Which A matches a B: the latest, the latest still open, or the oldest still open [default:
    /// by their kinds]
    #[arg(long, value_parser = MatchRule::ALL.map(|(word, _)| word))]
    rule: Option<String>,
    /// A limit on a pair, a scope or a call: `A->B < 100us`, `NAME <= 1ms`
    #[arg(long, value_name = "LIMIT")]
    limit: Vec<String>,
    /// Print one line per interval in the order of their ends, instead of figures
    #[arg(long)]
    calls: bool,
    /// How many of the worst intervals of each to show
    #[arg(long, value_name = "N", default_value_t = 1)]
    worst: usize,
    /// Print JSON in the format punctual-pairs/2 (docs/reference/pairs.md); with --calls, one
    /// document per interval
    #[arg(long)]
    json: bool,
    /// Prints text for users to standard error: standard output belongs to another program.
    #[arg(skip)]
    aside: bool,
}

impl PairsArgs {
    /// All pairs of a bundle, beside the output of a program that was just watched.
    pub fn for_watched_bundle(
        bundle: PathBuf,
        limit: Vec<String>,
        worst: usize,
        calls: bool,
        json: bool,
    ) -> PairsArgs {
        PairsArgs {
            bundle,
            pairs: Vec::new(),
            by: None,
            rule: None,
            limit,
            calls,
            worst,
            json,
            aside: !json,
        }
    }
}

/// Reads the recording, matches the pairs and prints them.
pub fn run(args: PairsArgs) -> Ending {
    let is_of_pairs = args.by.is_some() || args.rule.is_some();
    if is_of_pairs && args.pairs.is_empty() && args.limit.is_empty() {
        let refusal = "--by and --rule say how a pair is matched: name one, or a --limit";
        return Err(Failure::refused(refusal));
    }
    let bundle = open_bundle(&args.bundle)?;
    let opened = playback::require_recording(&bundle)?;
    let names = opened.names();
    let requests = pair_requests(&args, names)?;
    let options = PairingOptions { everything: args.pairs.is_empty(), requests };
    let prepared = if PreparedPairing::is_needed(&opened.recorded, &options.requests) {
        PreparedPairing::from_events(opened.events(), &options.requests)
    } else {
        PreparedPairing::default()
    };
    if args.calls {
        list_intervals(&args, &opened, bundle.timebase(), options, prepared)?;
        return Ok(Exit::Done);
    }
    let gaps = prepared.gaps.clone();
    let wanted = options.requests.clone();
    let everything = options.everything;
    let mut pairing = Pairing::new(options, prepared, names, &opened.recorded);
    let mut intervals = KeptIntervals::default();
    opened.events().for_each(|event| pairing.push(&event, |found| intervals.record_match(&found)));
    let mut results = pairing.finish(names);
    keep_wanted(&mut results, &wanted, everything);
    let kept = if args.json { args.worst.max(EXPLAINED) } else { args.worst };
    let detail = WorstDetail { worst: kept, explained: EXPLAINED };
    let coincidences = coincidence::of_pairs(&opened, intervals, &results, &gaps);
    let lanes = window_lanes(&opened, gaps, &worst_windows(&results, detail));
    let mut document = build_document(&results, detail, &lanes, names, &opened.recorded);
    document.coincidences = coincidences;
    apply_validity(&mut document, &Validity::of_bundle(&bundle));
    let text = |options: &_| terminal::show_pairs(&document, args.worst, options);
    let printed = match (args.json, args.aside) {
        (true, _) => output::print_figures(&document, bundle.timebase()),
        (false, true) => {
            output::print_stderr(&text(&show_options_of(&bundle)));
            Ok(())
        }
        (false, false) => output::print_stdout(&text(&show_options_of(&bundle))),
    };
    exit::ending_of_output(printed, Exit::of_word(document.verdict))
}

fn pair_requests(args: &PairsArgs, names: &Names) -> Result<Vec<PairRequest>, Failure> {
    let pair_key = args
        .by
        .as_deref()
        .and_then(|word| PairKey::ALL.iter().find(|(known, _)| *known == word))
        .map(|(_, by)| *by);
    let rule = args
        .rule
        .as_deref()
        .and_then(|word| MatchRule::ALL.iter().find(|(known, _)| *known == word));
    let rule = rule.map(|(_, rule)| *rule);
    let mut limited = Vec::new();
    for text in &args.limit {
        match PairRequest::find_limited(text, names, pair_key, rule) {
            Ok(request) => limited.push(request),
            // The limit was checked before the recording; its events did not occur.
            Err(why) if args.aside => output::print_stderr(&format!(
                "warning: cannot determine whether `{text}` holds: {why}\n"
            )),
            Err(why) => return Err(Failure::refused(why)),
        }
    }
    let plain = args.pairs.iter().map(|text| PairRequest::from_text(text, names, pair_key, rule));
    let plain: Vec<PairRequest> = plain.collect::<Result<_, _>>().map_err(Failure::refused)?;
    // One with a limit is not reported twice.
    let new =
        |request: &PairRequest| !limited.iter().any(|limited| limited.target == request.target);
    Ok(plain.into_iter().filter(new).chain(limited.iter().cloned()).collect())
}

/// Functions and scopes are matched all or none: drops those not requested.
fn keep_wanted(results: &mut Results, requests: &[PairRequest], everything: bool) {
    let is_asked_function = |id: &FunctionId| {
        requests.iter().any(|request| match &request.target {
            RequestTarget::Function { functions, .. } => functions.contains(id),
            _ => false,
        })
    };
    results.functions.retain(|id, _| everything || is_asked_function(id));
    let is_asked_scope =
        |id: &PointId| requests.iter().any(|request| request.target.scope_points().contains(id));
    results.scopes.scopes.retain(|id, _| everything || is_asked_scope(id));
}

/// The tasks that ran in these intervals; empty if the recording does not show it.
fn window_lanes(
    opened: &OpenedRecording,
    gaps: punctual_explain::gaps::Gaps,
    windows: &[(punctual_core::MonotonicNs, punctual_core::MonotonicNs)],
) -> Vec<WindowLanes> {
    let groups = [Group::Sched, Group::Irq, Group::Softirq, Group::Vectors];
    if windows.is_empty() || !groups.iter().any(|group| opened.recorded.has_group(*group)) {
        return Vec::new();
    }
    let coverage = Coverage::from_recording(&opened.recorded, opened.names());
    let mut tracker = Tracker::new(coverage, gaps, LaneWindows::new(windows.iter().copied()));
    opened.events().for_each(|event| tracker.push(&event));
    tracker.finish().0.finish()
}

/// Prints one line per interval.
fn list_intervals(
    args: &PairsArgs,
    opened: &OpenedRecording,
    timebase: Timebase,
    options: PairingOptions,
    prepared: PreparedPairing,
) -> Result<(), Failure> {
    let names = opened.names();
    let out: Box<dyn Write> =
        if args.aside { Box::new(std::io::stderr()) } else { Box::new(output::standard_output()?) };
    let mut out = BufWriter::new(out);
    if !args.json {
        writeln!(out, "{}", terminal::call_header())?;
    }
    let requests = options.requests.clone();
    let (everything, began) = (options.everything, opened.recorded.began);
    let mut pairing = Pairing::new(options, prepared, names, &opened.recorded);
    for event in opened.events() {
        let mut trouble = Ok(());
        pairing.push(&event, |found| {
            let Some(name) = name_of(&found, &requests, everything, names) else { return };
            let interval = &found.interval;
            let (tid, task) = (interval.end_tid(), names.task_name(interval.end_tid()));
            trouble = if args.json {
                writeln!(out, "{}", output::json_line(&serde_json::json!({
                    "name": name, "from": interval.from.at.ns(), "to": interval.to.at.ns(),
                    "latency": interval.duration().ns(), "tid": tid.0, "task": task,
                    "value": interval.to.value, "exclusive": found.exclusive, "left": found.left,
                    "timebase": timebase,
                })))
            } else {
                let at = interval.from.at - began;
                let (span, exclusive) = (interval.duration(), found.exclusive);
                let line =
                    terminal::call_line(at, span, exclusive, tid.0, &task, &name, found.left);
                writeln!(out, "{line}")
            };
        });
        trouble?;
    }
    Ok(out.flush()?)
}

/// The name of an interval; `None` if not requested.
fn name_of(
    found: &PairMatch,
    requests: &[PairRequest],
    everything: bool,
    names: &Names,
) -> Option<String> {
    let point = |place: u32| {
        names.points.get(place as usize).cloned().unwrap_or_else(|| format!("point {place}"))
    };
    match found.pair {
        IntervalPair::Asked(place) => requests.get(place).map(|request| request.target.to_string()),
        IntervalPair::Scope(id) => Some(point(id.0)),
        IntervalPair::Follows(from, to) => Some(format!("{}->{}", point(from.0), point(to.0))),
        IntervalPair::Function(id) => {
            let names_function = |r: &PairRequest| match &r.target {
                RequestTarget::Function { functions, .. } => functions.contains(&id),
                _ => false,
            };
            let wanted = everything || requests.iter().any(names_function);
            let name = || {
                names
                    .functions
                    .get(id.0 as usize)
                    .map_or_else(|| format!("function {}", id.0), |f| f.name.clone())
            };
            wanted.then(name)
        }
    }
}
