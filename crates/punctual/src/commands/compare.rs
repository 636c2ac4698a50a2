//! `punctual compare`: the statistically significant differences between runs.

use super::bundle::open_checked;
use super::printing;
use super::stored::{StoredRun, StoredRuns};
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_bundle::comparison::Comparison;
use punctual_bundle::{Bundle, RanUnder};
use punctual_report::naming::{self, BundleIdentity};
use punctual_report::{document, export, sentence};
use punctual_session::messages::display_path;
use punctual_stats::compare::gate::{DifferenceGate, GateKind, GateLimit};
use punctual_stats::compare::{self, CompareOptions, SideInput};
use std::path::PathBuf;

/// Show which differences between runs are significant, and how large they are
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual compare standard rt\n  punctual compare --a \
                        before1 before2 before3 --b after1 after2 after3\n  punctual compare \
                        reference today --fail-if-worse p99.9:10us --fail-if-worse max:20% \
                        --junit result.xml\n  punctual compare old.import new --match \
                        'cyclictest/thread 3=main/timer/cpu3'\n\nEach bundle is compared with \
                        the first. With --a and --b, each side may have several runs: the \
                        variation between its runs then counts as uncertainty. Small differences \
                        need several runs on each side.\n\nExit codes: 0 compared; 3 a \
                        requirement is not met; 4 the data do not decide a requirement.")]
pub struct CompareArgs {
    /// The bundles; the first one is the reference
    #[arg(value_name = "BUNDLE", required_unless_present = "a", conflicts_with_all = ["a", "b"])]
    bundles: Vec<PathBuf>,
    /// The bundles of the first side
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "b")]
    a: Vec<PathBuf>,
    /// The bundles of the other side
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "a")]
    b: Vec<PathBuf>,
    /// Compare runs of the Parquet tables in DIR (export --format parquet-tables) instead of
    /// bundles: each BUNDLE and RUN is then a selection, `kernel=6.1-rt,experiment=nightly`, of all
    /// runs with these values in the table `runs`
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
    /// Compare series that have different names, each written PHASE/SERIES
    #[arg(long = "match", value_name = "ONE=OTHER", value_parser = match_of)]
    matches: Vec<(String, String)>,
    /// Fail if a figure exceeds the first side's by significantly more than this margin:
    /// `p99.9:10us`, `max:5%`
    #[arg(long, value_name = "FIGURE:MARGIN")]
    fail_if_worse: Vec<GateLimit>,
    /// Fail unless the data rule out an increase of a figure by more than this margin
    #[arg(long, value_name = "FIGURE:MARGIN")]
    require: Vec<GateLimit>,
    /// Print the comparison as JSON (docs/reference/compare.md)
    #[arg(long)]
    json: bool,
    /// Also write the HTML report to this file
    #[arg(long = "report", alias = "html", value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the verdicts on the requirements as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

fn match_of(text: &str) -> Result<(String, String), String> {
    let (one, other) = text.split_once('=').ok_or("write PHASE/SERIES=PHASE/SERIES")?;
    Ok((one.trim().to_owned(), other.trim().to_owned()))
}

/// Opens the bundles, compares them, prints the result and checks the requirements.
pub fn run(args: CompareArgs) -> Ending {
    super::beside::check_page_support(args.html.as_deref())?;
    // Bundles made from tables exist until the end.
    let mut table_bundles = Vec::new();
    let sides = open_sides(&args, &mut table_bundles)?;
    let inputs: Vec<SideInput> = sides
        .iter()
        .zip(side_names(&args, &sides))
        .map(|(runs, label)| SideInput {
            label,
            runs: runs.iter().map(|(name, bundle)| (name.clone(), bundle)).collect(),
        })
        .collect();
    let gates = |limits: &[GateLimit], kind: GateKind| {
        limits.iter().map(|limit| limit.into_gate(kind)).collect::<Vec<DifferenceGate>>()
    };
    let gates = [
        gates(&args.fail_if_worse, GateKind::FailIfWorse),
        gates(&args.require, GateKind::Require),
    ]
    .concat();
    let options = CompareOptions { gates, matches: args.matches.clone() };
    let mut comparison = compare::compare_sides(&inputs, &options).map_err(Failure::refused)?;
    comparison.answer = Some(sentence::answer_of(&comparison));
    let mut outputs = Outputs::default();
    write(&args, &comparison, &mut outputs);
    outputs.into_ending(Exit::of_word(comparison.verdict))
}

/// The runs of a side, each with its given name.
type NamedRuns = Vec<(String, Bundle)>;

fn open_sides(args: &CompareArgs, made: &mut Vec<StoredRuns>) -> Result<Vec<NamedRuns>, Failure> {
    let mut side = |paths: &[PathBuf]| -> Result<NamedRuns, Failure> {
        let Some(directory) = &args.tables else {
            let named = |path: &PathBuf| Ok((display_path(path).to_string(), open_checked(path)?));
            return paths.iter().map(named).collect();
        };
        let mut runs = Vec::new();
        for selection in paths {
            let words = selection.to_string_lossy();
            let stored = StoredRuns::select(directory, &words)?;
            let named = |run: &StoredRun| format!("{words} {}", run.id);
            runs.extend(stored.runs.iter().map(|run| (named(run), run.bundle.clone())));
            made.push(stored);
        }
        Ok(runs)
    };
    if args.a.is_empty() {
        if args.bundles.len() < 2 {
            return Err(Failure::refused(
                "a comparison needs two bundles: punctual compare REFERENCE OTHER",
            ));
        }
        return args.bundles.iter().map(|path| side(std::slice::from_ref(path))).collect();
    }
    [&args.a, &args.b].into_iter().map(|paths| side(paths)).collect()
}

fn side_names(args: &CompareArgs, sides: &[NamedRuns]) -> Vec<String> {
    let phases = [
        phase_of(args.matches.iter().map(|(one, _)| one)),
        phase_of(args.matches.iter().map(|(_, other)| other)),
    ];
    let identity = |(k, runs): (usize, &NamedRuns)| {
        let of_run = |(name, bundle): &(String, Bundle)| identity_of_bundle(name, bundle);
        let shared = BundleIdentity::from_runs(&runs.iter().map(of_run).collect::<Vec<_>>());
        // Runs of tables are named by their selection.
        let path =
            if args.tables.is_some() { format_selection(args, k) } else { shared.path.clone() };
        BundleIdentity { phase: phases[k.min(1)].clone(), path, ..shared }
    };
    naming::distinct_names(&sides.iter().enumerate().map(identity).collect::<Vec<_>>())
}

fn format_selection(args: &CompareArgs, side: usize) -> String {
    let words = match side {
        _ if args.a.is_empty() => std::slice::from_ref(&args.bundles[side]),
        0 => &args.a,
        _ => &args.b,
    };
    let words: Vec<String> = words.iter().map(|one| display_path(one).to_string()).collect();
    words.join(" ")
}

/// The phase of these series, if it is a single one.
fn phase_of<'a>(mut series: impl Iterator<Item = &'a String>) -> Option<String> {
    let phase = |name: &'a String| name.split_once('/').map(|(phase, _)| phase);
    let first = phase(series.next()?)?;
    series.all(|name| phase(name) == Some(first)).then(|| first.to_owned())
}

/// An unreadable document gives no names.
fn identity_of_bundle(name: &str, bundle: &Bundle) -> BundleIdentity {
    BundleIdentity {
        path: name.to_owned(),
        kernel: RanUnder::from_bundle(bundle).kernel_release().map(str::to_owned),
        machine: bundle.manifest.machine.clone(),
        phase: None,
    }
}

fn write(args: &CompareArgs, comparison: &Comparison, outputs: &mut Outputs) {
    let document = document::build_comparison_document(comparison);
    if let Some(path) = &args.html {
        let page = document.render_page().map_err(Failure::failed);
        outputs.add(page.and_then(|page| output::write_to(Some(path), page.as_bytes())));
    }
    if let Some(path) = &args.junit {
        let mut xml = Vec::new();
        let junit_result =
            export::write_junit_of_gates(comparison, &mut xml).map_err(Failure::failed);
        outputs.add(junit_result.and_then(|()| output::write_to(Some(path), &xml)));
    }
    let text = |options: &_| document.to_terminal_text(options);
    outputs.add(printing::print_document(comparison, args.json, text, &[]));
}
