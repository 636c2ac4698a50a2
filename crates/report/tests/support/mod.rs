//! Common parts of the tests of the HTML report.

#![allow(dead_code)]

pub mod synthetic;

use punctual_bundle::Bundle;
use punctual_report::html::{ReportInput, render_report};
use std::path::{Path, PathBuf};

/// The report on these bundles.
pub fn page_of(bundles: &[&Bundle]) -> String {
    let summaries: Vec<_> =
        bundles.iter().map(|bundle| punctual_stats::summarize_bundle(bundle)).collect();
    let pairs = bundles.iter().zip(&summaries);
    let inputs: Vec<_> =
        pairs.map(|(bundle, summary)| ReportInput::from_bundle(bundle, summary)).collect();
    render_report(&inputs).unwrap()
}

/// Every bundle of fixtures/bundles that opens.
pub fn fixtures() -> Vec<(String, Bundle)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let open = |path: PathBuf| {
        Some((path.file_name()?.to_string_lossy().into_owned(), Bundle::open(&path).ok()?))
    };
    paths.into_iter().filter_map(open).collect()
}

/// Hostile names. `{url}` becomes an address that must never be requested.
pub fn hostile_names(url: &str) -> Vec<String> {
    let deed = "document.documentElement.dataset.harmed=1";
    let names = [
        format!("</script><script>{deed}</script>"),
        format!("<img src=\"{url}/img\" onerror=\"{deed}\">"),
        format!("\"><svg onload=\"{deed}\"><image href=\"{url}/svg\"/></svg>"),
        format!("' onmouseover='{deed}' x='"),
        format!("</title></style></textarea></pre><script src={url}/js></script>"),
        format!("<!--<script>{deed}//-->"),
        format!("<link rel=stylesheet href={url}/css><style>@import '{url}/import';</style>"),
        format!("<meta http-equiv=refresh content=\"0;url={url}/meta\">"),
        format!("<iframe srcdoc=\"<script>parent.{deed}</script>\"></iframe>"),
        format!("<a href=\"javascript:{deed}\">x</a>"),
        "{{ 7 * 7 }} {% raw %} ${7*7} {# #}".to_owned(),
        "]]></svg></table><plaintext>".to_owned(),
        "\u{202e}gnp.exe \u{0}\u{1b}[31m \u{2028} \u{feff} \u{ffff}".to_owned(),
        "x".repeat(100_000),
    ];
    names.into()
}

/// A bundle in which every text of foreign origin is hostile.
pub fn hostile_bundle(directory: &Path, url: &str) -> Bundle {
    use punctual_core::{Finding, Severity};
    use serde_json::json;
    let names = hostile_names(url);
    let findings = names.iter().map(|name| {
        Finding::new(name, Severity::Warning, name.clone(), name.clone())
            .with_evidence(name.clone())
            .with_remedy(name.clone())
    });
    let fact = |name: &String| (name.clone(), json!({"known": name, "unavailable": name}));
    let fields: serde_json::Map<String, serde_json::Value> = names.iter().map(fact).collect();
    let environment = json!({
        "kernel": fields,
        "machine": {"cpu_model": {"known": names[0]}, "board": {"unavailable": names[1]}},
    });
    let recipe = synthetic::Recipe {
        experiment: names[0].clone(),
        phases: names.iter().map(|name| (name.clone(), synthetic::Load::Loaded)).collect(),
        cpus: 2,
        samples: 300,
        requirements: names.iter().take(3).cloned().collect(),
        findings: findings.collect(),
        documents: vec![("environment", environment.clone()), ("check", environment)],
        text: names.join("\n"),
        series_name: Box::new(move |cpu| hostile_names("http://127.0.0.1:1")[cpu as usize].clone()),
        ..synthetic::Recipe::default()
    };
    synthetic::write(directory, &recipe)
}
