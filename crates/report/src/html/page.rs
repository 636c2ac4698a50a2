//! The page: templates, style, script and data combined into one file that makes no network
//! request.

use super::curve::Curve;
use super::embedded::EmbeddedData;
use super::gather::PageSeries;
use super::recording::section::{self, RecordingSection};
use super::scale::Scale;
use super::table::Table;
use super::{
    HtmlError, PageLimits, ReportInput, account, breakdown, by_cpu, cycle, documents, drawing,
    environment, exact, facts, figures, flame, header, heat, loads, notes, scatter, text, warnings,
    worst,
};
use crate::tables::checks::{self, CheckRow};
use crate::tables::{self, calibration, published};
use base64::prelude::{BASE64_STANDARD, Engine};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, UndefinedBehavior, Value, escape_formatter};
use punctual_bundle::{Completeness, Timebase};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// uPlot, © Leon Sorokin, MIT licence; see assets/uplot/README.md.
const UPLOT: &str = include_str!("assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("assets/uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("assets/uplot/LICENSE");
pub(crate) const STYLE: &str = include_str!("assets/report.css");
/// The report's own script, in dependency order: parts of all pages with plots, then parts of each
/// page.
const PLOTS: [&str; 7] = [
    include_str!("assets/base.js"),
    include_str!("assets/sortable.js"),
    include_str!("assets/curves.js"),
    include_str!("assets/chart.js"),
    include_str!("assets/legend.js"),
    include_str!("assets/histogram.js"),
    include_str!("assets/percentiles.js"),
];
const SCRIPT: [&str; 5] = [
    include_str!("assets/timeline.js"),
    include_str!("assets/picture.js"),
    include_str!("assets/intervals.js"),
    include_str!("assets/account.js"),
    include_str!("assets/main.js"),
];
const TEMPLATES: [(&str, &str); 19] = [
    ("head.html", include_str!("assets/head.html")),
    ("findings.html", include_str!("assets/findings.html")),
    ("page.html", include_str!("assets/page.html")),
    ("header.html", include_str!("assets/header.html")),
    ("warnings.html", include_str!("assets/warnings.html")),
    ("table.html", include_str!("assets/table.html")),
    ("breakdown.html", include_str!("assets/breakdown.html")),
    ("axes.html", include_str!("assets/axes.html")),
    ("by_cpu.html", include_str!("assets/by_cpu.html")),
    ("cycle.html", include_str!("assets/cycle.html")),
    ("exact.html", include_str!("assets/exact.html")),
    ("drawing.html", include_str!("assets/drawing.html")),
    ("scatter.html", include_str!("assets/scatter.html")),
    ("flame.html", include_str!("assets/flame.html")),
    ("recording.html", include_str!("assets/recording.html")),
    ("document.html", include_str!("assets/document.html")),
    ("reading-comparison.html", include_str!("assets/reading-comparison.html")),
    ("curves.html", include_str!("assets/curves.html")),
    ("reading-lab.html", include_str!("assets/reading-lab.html")),
];

/// The input of the templates. Values marked as safe are made here, only from this program's own
/// text.
#[derive(Serialize)]
struct BundlePage {
    policy: Value,
    header: header::PageHeader,
    warnings: warnings::PageWarnings,
    summary: Table,
    requirements: Option<Table>,
    details: Table,
    drawing: drawing::PlotDrawing,
    has_corrected: bool,
    /// The histograms by CPU, if there are several.
    multiples: Option<by_cpu::Multiples>,
    heats: Vec<heat::HeatFigure>,
    /// The causes of the time of all samples, and the number of its plots.
    account: Option<Table>,
    account_plots: usize,
    calibrations: Vec<Table>,
    uncalibrated: Vec<String>,
    /// The cycles of threads of programs.
    cycles: Vec<cycle::CycleSection>,
    worst: Option<Table>,
    /// Whether there are series to show.
    has_series: bool,
    breakdowns: Vec<breakdown::BreakdownSection>,
    exacts: Vec<exact::ExactSection>,
    recordings: Vec<RecordingSection>,
    violated: Vec<String>,
    plots: Plots,
    cpu_load: Option<Table>,
    loads: Option<Table>,
    published: Vec<Table>,
    notes: Vec<Table>,
    scatters: Vec<scatter::Scatter>,
    flames: Vec<flame::FlameGraph>,
    environment: environment::PageEnvironment,
    checks: Vec<(String, Table)>,
    documents: Vec<documents::BundleText>,
    reductions: Vec<String>,
    version: &'static str,
    style: Value,
    script: Value,
    embedded: Value,
}

const MAX_THREAD_ROWS: usize = 120;

/// The numbers of plots of recordings.
#[derive(Serialize)]
struct Plots {
    pictures: usize,
    intervals: usize,
    values: usize,
}

/// The breakdowns of the page's bundles, and their pictures.
struct Anatomies<'a> {
    sections: Vec<breakdown::BreakdownSection>,
    pictures: Vec<(&'a str, &'a super::picture::Picture)>,
}

fn collect_breakdowns<'a>(
    inputs: &[ReportInput<'a>],
    labels: &'a [String],
    pictures: usize,
) -> Anatomies<'a> {
    let mut page_breakdowns = Anatomies { sections: Vec::new(), pictures: Vec::new() };
    let several = inputs.iter().filter(|input| input.breakdown.is_some()).count() > 1;
    for (input, label) in inputs.iter().zip(labels) {
        let Some(of) = input.breakdown else { continue };
        let title = if several { label.as_str() } else { "" };
        page_breakdowns.sections.push(breakdown::BreakdownSection::from_breakdown(
            of,
            title.to_owned(),
            page_breakdowns.pictures.len(),
            pictures,
        ));
        page_breakdowns
            .pictures
            .extend(of.pictures().iter().take(pictures).map(|picture| (title, picture)));
    }
    page_breakdowns
}

/// The exact explanations of the page's bundles.
fn exact_sections(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<exact::ExactSection> {
    let several = inputs.len() > 1;
    let labelled_inputs = inputs.iter().zip(labels);
    labelled_inputs
        .filter_map(|(input, label)| {
            let label = if several { label.clone() } else { String::new() };
            Some(exact::ExactSection::from_document(input.exact.as_ref()?, label))
        })
        .collect()
}

/// The page in a given size.
pub(super) fn render_page(
    inputs: &[ReportInput<'_>],
    content: &PageSeries<'_>,
    size: &PageLimits,
) -> Result<String, HtmlError> {
    let curves: Vec<Curve> =
        content.lines.iter().map(|line| line.curve.reduce_to(size.bins)).collect();
    let scale = Scale::from_curves(content, &curves);
    let recorded = section::labelled_recordings(inputs, &content.labels);
    let page_breakdowns = collect_breakdowns(inputs, &content.labels, size.pictures);
    let of_recordings = section::RecordingData::from_digests(
        &page_breakdowns.pictures,
        &recorded,
        size.pictures,
        size.items,
    );
    let (pictures, intervals, values) = of_recordings.plot_counts();
    let account = account::AccountData::from_content(content);
    let embedded =
        EmbeddedData::from_page(inputs, content, &curves, scale, size, of_recordings, &account)
            .to_text()
            .map_err(|why| HtmlError::Render(why.to_string()))?;
    let cut_off = |bundle: usize| inputs[bundle].bundle.completeness == Completeness::CutOff;
    let (style, script) = (page_style(), page_script(&SCRIPT));
    let page = BundlePage {
        policy: Value::from_safe_string(security_policy(&style, &script)),
        header: header::build_header(inputs, content),
        warnings: warnings::collect_warnings(inputs, &content.labels),
        summary: figures::latency_table(content, cut_off),
        requirements: figures::requirement_table(content),
        details: figures::detail_table(content, size.details),
        drawing: drawing::draw_curves(content, &curves, &scale),
        has_corrected: content.lines.iter().any(|line| !line.corrected.is_empty()),
        multiples: by_cpu::draw_multiples(content, &scale),
        heats: heat::heat_figures(inputs, content),
        account: account::account_table(content),
        account_plots: account.plot_count(),
        calibrations: titled_tables(inputs, content, |of| {
            calibration::calibration_table(&of.summary.calibration)
        }),
        uncalibrated: missing_calibrations(inputs, content),
        cycles: cycle::build_sections(inputs, &content.labels),
        worst: worst::worst_table(content, size.worst_rows, size.worst),
        has_series: !content.lines.is_empty() || recorded.is_empty(),
        breakdowns: page_breakdowns.sections,
        exacts: exact_sections(inputs, &content.labels),
        recordings: section::recording_sections(&recorded, size.details.min(MAX_THREAD_ROWS)),
        violated: recorded.iter().flat_map(|(_, digest)| digest.violated_limits()).collect(),
        plots: Plots { pictures, intervals, values },
        cpu_load: loads::cpu_load(inputs, content),
        loads: loads::command_table(inputs, content),
        published: titled_tables(inputs, content, |of| {
            of.summary.published.as_ref().map(published::published_table)
        }),
        notes: notes::note_tables(inputs, &content.labels),
        scatters: scatter::draw_tables(inputs, &content.labels),
        flames: flame::collect_graphs(inputs, &content.labels),
        environment: environment::compare_environments(inputs, &content.labels),
        checks: check_tables(inputs, content),
        documents: documents::collect_texts(inputs, &content.labels, size.text, size.documents),
        reductions: describe_reductions(content, &curves, size),
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(style),
        script: Value::from_safe_string(script),
        embedded: Value::from_safe_string(embedded),
    };
    fill_template("page.html", &page, content.timebase)
}

/// Fills a template; the page states its timebase once in full (`timenote`), and every table and
/// figure has a short mark of it (`timemark`).
pub(crate) fn fill_template(
    template: &str,
    page: &impl Serialize,
    timebase: Timebase,
) -> Result<String, HtmlError> {
    let filled = load_templates().and_then(|mut all| {
        all.add_global("timemark", timebase.clock_note());
        all.add_global("timenote", timebase.short_meaning());
        all.get_template(template)?.render(Serde(page))
    });
    filled.map_err(|why| HtmlError::Render(format!("{why:#}")))
}

/// All templates escape; every inserted text is made visible first.
fn load_templates() -> Result<Environment<'static>, minijinja::Error> {
    let mut templates = Environment::new();
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, source) in TEMPLATES {
        templates.add_template(name, source)?;
    }
    templates.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if value.kind() == ValueKind::String && !value.is_safe() => {
            escape_formatter(out, state, &Value::from(text::escape_hidden(text)))
        }
        _ => escape_formatter(out, state, value),
    });
    Ok(templates)
}

/// The style of a page with plots.
pub(crate) fn page_style() -> String {
    format!("{UPLOT_STYLE}\n{STYLE}")
}

/// The script of a page with plots, with the parts specific to this page.
pub(crate) fn page_script(page: &[&str]) -> String {
    let parts = [&PLOTS, page].concat().join("\n");
    format!(
        "/* uPlot:\n{UPLOT_LICENSE}*/\n{UPLOT}\n(function () {{\n\"use strict\";\n{parts}\n}})();\n"
    )
}

/// The page's content security policy: only this one script and this one style. No string becomes
/// markup (Trusted Types), no request is sent (`default-src 'none'`).
pub(crate) fn security_policy(style: &str, script: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types \
         'none'",
        hash(script),
        hash(style)
    )
}

/// A table of each bundle that has one, titled with its label if there are several.
fn titled_tables(
    inputs: &[ReportInput<'_>],
    content: &PageSeries<'_>,
    of: impl Fn(&ReportInput<'_>) -> Option<tables::Table>,
) -> Vec<Table> {
    let table = |(input, label): (&ReportInput<'_>, &String)| {
        let mut table = of(input)?;
        if inputs.len() > 1 {
            table.title = format!("{} of {}", table.title, text::format_name(label));
        }
        Some(table.into())
    };
    inputs.iter().zip(&content.labels).filter_map(table).collect()
}

/// Why the cost of recording was not measured.
fn missing_calibrations(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Vec<String> {
    let missing_calibration = |(input, label): (&ReportInput<'_>, &String)| {
        let reason = calibration::left_out(&input.summary.calibration)?;
        let label = if inputs.len() > 1 { format!("{label}: ") } else { String::new() };
        Some(text::format_sentence(&format!("{label}{reason}.")))
    };
    inputs.iter().zip(&content.labels).filter_map(missing_calibration).collect()
}

/// The result of `punctual check` for each bundle that has one; a document of unknown shape is
/// shown as facts.
fn check_tables(inputs: &[ReportInput<'_>], content: &PageSeries<'_>) -> Vec<(String, Table)> {
    let table = |document| match CheckRow::read(document) {
        Some(rules) => checks::check_table(rules).into(),
        None => facts::fact_table("Results of punctual check.", document),
    };
    let labelled_inputs = inputs.iter().zip(&content.labels);
    labelled_inputs
        .filter_map(|(input, label)| Some((label.clone(), table(input.check.as_ref()?))))
        .collect()
}

/// Sentences about data that is coarser than measured.
fn describe_reductions(
    content: &PageSeries<'_>,
    curves: &[Curve],
    size: &PageLimits,
) -> Vec<String> {
    let mut reduced = Vec::new();
    let coarser = content
        .lines
        .iter()
        .zip(curves)
        .filter(|(line, curve)| curve.body_width > line.curve.resolution);
    let widest = coarser.clone().map(|(_, curve)| curve.body_width).max();
    if let Some(widest) = widest {
        let width = crate::format::span_text(punctual_core::Nanos(widest));
        let coarser_count = coarser.count();
        reduced.push(format!(
            "The histograms of {coarser_count} series have bins of up to {width} in the body; the \
             tails are exact."
        ));
    }
    let buckets = content.lines.iter().map(|line| line.timeline.buckets.len()).max().unwrap_or(0);
    if buckets > size.buckets {
        reduced.push(format!("Latency over time has at most {} buckets per series.", size.buckets));
    }
    if content.left_out > 0 {
        reduced.push(format!(
            "{} more series are neither in tables nor in plots: too many for one page. Shown are \
             those with an open requirement and the largest maxima; the bundle has all: punctual \
             show --details, punctual export.",
            content.left_out
        ));
    }
    reduced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendored_files_are_the_published_ones() {
        let readme = include_str!("assets/uplot/README.md");
        for (file, text) in [
            ("uPlot.iife.min.js", UPLOT),
            ("uPlot.min.css", UPLOT_STYLE),
            ("LICENSE", UPLOT_LICENSE),
        ] {
            let sum = punctual_core::encode_hex(&Sha256::digest(text));
            assert!(readme.contains(&format!("| {file} | {sum} |")), "{file} has the sum {sum}");
        }
    }

    #[test]
    fn no_asset_ends_its_element() {
        assert!(
            !page_script(&SCRIPT).to_lowercase().contains("</script"),
            "the script would end in its middle"
        );
        assert!(!STYLE.contains("</") && !UPLOT_STYLE.contains("</"));
        assert!(
            !STYLE.contains("url(") && !UPLOT_STYLE.contains("url("),
            "a style sheet loads nothing"
        );
        assert!(
            !page_script(&SCRIPT).replace(UPLOT, "").contains("innerHTML"),
            "data becomes text only"
        );
    }
}
