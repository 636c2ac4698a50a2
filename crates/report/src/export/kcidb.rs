//! A submission to KCIDB, the database of kernel test results, in version 5.0 of its schema: a test
//! for each requirement, for each series without one, and for each other reason against the
//! verdict. They belong to a build, the kernel that ran, unless the origin has already submitted
//! one.

use super::cases::{CaseResult, ExportedCase, collect_cases};
use super::{Exporter, Writer};
use crate::format::escape_unsafe;
use punctual_bundle::summary::{PhaseSummary, SeriesSummary, Summary, VerdictWord};
use punctual_bundle::{Bundle, RanUnder, Timebase};
use punctual_core::{Requirement, encode_hex};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

pub(super) const EXPORTER: Exporter = Exporter {
    answers: true,
    ..Exporter::new(
        "kcidb",
        "verdicts and figures as a submission to KCIDB (JSON)",
        Writer::Bundle(|bundle, out| Ok(write(bundle, &KcidbOptions::default(), out)?)),
    )
};

/// The submitter of the results, and their build.
#[derive(Clone, Debug, Default)]
pub struct KcidbOptions {
    origin: Option<String>,
    build: Option<String>,
}

impl KcidbOptions {
    /// The CI system that submits (`a-z`, `0-9`, `_`; by default `punctual`), and the id of the
    /// build that it has submitted already (`origin:id`), if it has.
    pub fn new(origin: Option<String>, build: Option<String>) -> Result<KcidbOptions, String> {
        if let Some(origin) = origin.as_deref().filter(|origin| !is_origin(origin)) {
            return Err(format!(
                "{:?} is not an origin: it consists of a-z, 0-9 and _",
                escape_unsafe(origin)
            ));
        }
        let is_id = |id: &str| {
            id.split_once(':')
                .is_some_and(|(origin, rest)| is_origin(origin) && escape_unsafe(rest) == rest)
        };
        match build.as_deref().filter(|id| !is_id(id)) {
            Some(id) => {
                Err(format!("{:?} is not a build id: it has the form ORIGIN:ID", escape_unsafe(id)))
            }
            None => Ok(KcidbOptions { origin, build }),
        }
    }

    fn origin(&self) -> &str {
        self.origin.as_deref().unwrap_or("punctual")
    }
}

fn is_origin(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

pub fn write(bundle: &Bundle, options: &KcidbOptions, out: &mut dyn Write) -> io::Result<()> {
    let summary = punctual_stats::summarize_bundle(bundle);
    let environment = RanUnder::from_bundle(bundle);
    let kernel = KcidbKernel(&environment);
    let origin = options.origin();
    let mut document = json!({ "version": { "major": 5, "minor": 0 } });
    let build = options.build.clone().unwrap_or_else(|| {
        let id = format!("{origin}:kernel-{}", kernel.digest());
        document["checkouts"] = json!([kernel.to_checkout(&id, origin)]);
        document["builds"] = json!([kernel.to_build(&id, origin)]);
        id
    });
    let created = summary.created.to_string();
    // The same bundle has the same ids: a second submission replaces the first.
    let run = hash_parts(&[&summary.experiment, &created, summary.digest.as_deref().unwrap_or("")]);
    let machine = environment_of(&environment, &summary);
    let mut tests = collect_tests(&summary, bundle.timebase());
    for (number, test) in tests.iter_mut().enumerate() {
        test.insert("id".to_owned(), json!(format!("{origin}:{run}-{number}")));
        test.insert("build_id".to_owned(), json!(build));
        test.insert("origin".to_owned(), json!(origin));
        test.insert("start_time".to_owned(), json!(created));
        test.insert("environment".to_owned(), machine.clone());
    }
    document["tests"] = json!(tests);
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn hash_parts(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length comes first: two lists of parts never give the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    encode_hex(&hash.finalize()[..16])
}

/// Facts about the kernel; its source is unknown.
struct KcidbKernel<'a>(&'a RanUnder);

impl KcidbKernel<'_> {
    fn digest(&self) -> String {
        let kernel = self.0;
        hash_parts(
            &[kernel.kernel_release(), kernel.kernel_version(), kernel.architecture()]
                .map(Option::unwrap_or_default),
        )
    }

    fn to_checkout(&self, id: &str, origin: &str) -> Value {
        let comment = match self.0.kernel_release() {
            Some(release) => {
                format!("the source of kernel {}, which is not known", escape_unsafe(release))
            }
            None => "the source of a kernel that is not known".to_owned(),
        };
        json!({ "id": id, "origin": origin, "comment": comment })
    }

    fn to_build(&self, id: &str, origin: &str) -> Value {
        let mut build = json!({ "id": id, "checkout_id": id, "origin": origin });
        let is_word = |text: &&str| {
            text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        if let Some(architecture) = self.0.architecture().filter(is_word) {
            build["architecture"] = json!(architecture);
        }
        let identification = [self.0.kernel_release(), self.0.kernel_version()];
        let words: Vec<String> = identification.into_iter().flatten().map(escape_unsafe).collect();
        if !words.is_empty() {
            build["comment"] = json!(format!("as it ran: {}", words.join(" ")));
        }
        build
    }
}

fn environment_of(environment: &RanUnder, summary: &Summary) -> Value {
    let model = environment.cpu_model();
    let target = summary.target.as_ref().map(|target| format!("{} {}", target.kind, target.name));
    let parts: Vec<String> =
        model.into_iter().map(escape_unsafe).chain(target.as_deref().map(escape_unsafe)).collect();
    if parts.is_empty() { json!({}) } else { json!({ "comment": parts.join("; ") }) }
}

fn collect_tests(summary: &Summary, timebase: Timebase) -> Vec<Map<String, Value>> {
    let cases = collect_cases(summary);
    let mut tests: Vec<_> = cases.iter().map(|case| of_case(summary, case, timebase)).collect();
    for phase in &summary.phases {
        let plain = phase.series.iter().filter(|series| series.requirements.is_empty());
        tests.extend(plain.map(|series| of_series(summary, phase, series, timebase)));
    }
    tests
}

fn of_case(summary: &Summary, case: &ExportedCase<'_>, timebase: Timebase) -> Map<String, Value> {
    let status = match case.result {
        CaseResult::Verdict(VerdictWord::Met) => "PASS",
        CaseResult::Verdict(VerdictWord::NotMet) => "FAIL",
        // The evidence does not decide, or was not measured as requested.
        CaseResult::Verdict(VerdictWord::Undecided) | CaseResult::Failed => "ERROR",
        CaseResult::Verdict(VerdictWord::Invalid) => "MISS",
        CaseResult::Skipped => "SKIP",
    };
    let reason = (!case.why.is_empty()).then(|| escape_unsafe(&case.why));
    let experiment = summary.experiment.as_str();
    let Some((series, stated)) = case.requirement else {
        let path = match case.name.strip_prefix("valid: ") {
            Some(proof) => vec![experiment, "valid", &case.place, proof],
            None => vec![experiment, &case.place, &case.name],
        };
        let comment = match case.name.strip_prefix("valid: ") {
            Some(proof) => format!("valid: {}: {proof}", case.place),
            None => format!("{experiment}: {}: {}", case.place, case.name),
        };
        return build_test(&path, status, &comment, json!({ "reason": reason }));
    };
    let phase = case.phase.map_or("", |phase| phase.name.as_str());
    let mut misc = figures_to_json(series);
    misc["timebase"] = json!(timebase.short_meaning());
    misc["requirement"] = json!(escape_unsafe(&stated.requirement));
    misc["reason"] = json!(reason);
    let path = [experiment, phase, &series.name, &stated.requirement];
    let comment = format!("{experiment}: {}: {}", case.place, stated.requirement);
    let mut test = build_test(&path, status, &comment, misc);
    // A series that was not measured as requested has no figure.
    let figure = stated.figure.filter(|_| stated.verdict != VerdictWord::Invalid);
    let is_time = stated.requirement.parse::<Requirement>().is_ok_and(|r| r.metric.is_time());
    insert_number(&mut test, figure, is_time.then_some(timebase));
    insert_duration(&mut test, case.phase);
    test
}

/// A series without a requirement: its maximum as a figure that decides nothing.
fn of_series(
    summary: &Summary,
    phase: &PhaseSummary,
    series: &SeriesSummary,
    timebase: Timebase,
) -> Map<String, Value> {
    let mut misc = figures_to_json(series);
    misc["timebase"] = json!(timebase.short_meaning());
    let path = [summary.experiment.as_str(), &phase.name, &series.name, "max"];
    let comment = format!("{}: {}/{}: max", summary.experiment, phase.name, series.name);
    let mut test = build_test(&path, "DONE", &comment, misc);
    insert_number(&mut test, series.max.map(|max| max as f64), Some(timebase));
    insert_duration(&mut test, Some(phase));
    test
}

fn insert_duration(test: &mut Map<String, Value>, phase: Option<&PhaseSummary>) {
    if let Some(nanoseconds) = phase.and_then(|phase| phase.duration) {
        test.insert("duration".to_owned(), json!(nanoseconds as f64 / 1e9));
    }
}

/// Figures are always submitted with their count and losses.
fn figures_to_json(series: &SeriesSummary) -> Value {
    json!({
        "count": series.count, "expected": series.expected, "overruns": series.overruns,
        "skipped": series.skipped,
        "lost": series.lost, "min_ns": series.min, "median_ns": series.median,
        "max_ns": series.max, "percentiles_ns": series.percentiles,
        "scheduling": escape_unsafe(&series.scheduling), "cpus": escape_unsafe(&series.cpus),
    })
}

fn build_test(path: &[&str], status: &str, comment: &str, misc: Value) -> Map<String, Value> {
    let path = ["punctual"]
        .iter()
        .chain(path)
        .map(|part| to_path_node(part))
        .collect::<Vec<_>>()
        .join(".");
    let mut test = Map::new();
    test.insert("path".to_owned(), json!(path));
    test.insert("status".to_owned(), json!(status));
    test.insert("comment".to_owned(), json!(escape_unsafe(comment)));
    test.insert("misc".to_owned(), json!({ "punctual": without_nulls(misc) }));
    test
}

/// KCIDB has no null: absent values have no key.
fn without_nulls(misc: Value) -> Value {
    match misc {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}

/// A part of a path: letters, digits, `_` and `-`. Comparisons become words.
fn to_path_node(name: &str) -> String {
    let id = super::lava::to_test_name(name).replace('.', "_");
    if id.is_empty() { "_".to_owned() } else { id }
}

/// Inserts a time in seconds of the run's timebase, which KCIDB shows with a metric prefix.
fn insert_number(test: &mut Map<String, Value>, figure: Option<f64>, time: Option<Timebase>) {
    let Some(figure) = figure.filter(|figure| figure.is_finite()) else { return };
    let number = match time {
        Some(Timebase::Own) => json!({ "value": figure / 1e9, "unit": "s", "prefix": "metric" }),
        Some(timebase) => json!({ "value": figure / 1e9, "unit": timebase.format_unit("s") }),
        None => json!({ "value": figure }),
    };
    test.insert("number".to_owned(), number);
}

#[cfg(test)]
mod tests {
    use super::{KcidbOptions, to_path_node};

    #[test]
    fn kcidb_path_components_contain_no_dots() {
        assert_eq!(to_path_node("p99.9 <= 60us"), "p99_9-le-60us");
        assert_eq!(to_path_node("\u{202e}\0"), "_");
    }

    #[test]
    fn only_origins_and_builds_valid_for_kcidb_are_accepted() {
        let new = |origin: Option<&str>, build: Option<&str>| {
            KcidbOptions::new(origin.map(str::to_owned), build.map(str::to_owned))
        };
        assert_eq!(new(Some("my_ci"), Some("other:12/3")).unwrap().origin(), "my_ci");
        assert_eq!(new(None, None).unwrap().origin(), "punctual");
        for (origin, build) in [
            (Some("My CI"), None),
            (Some(""), None),
            (None, Some("12")),
            (None, Some(":12")),
            (None, Some("a:\0")),
        ] {
            assert!(new(origin, build).is_err(), "{origin:?} {build:?}");
        }
    }
}
