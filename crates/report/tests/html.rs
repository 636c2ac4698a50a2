//! The HTML report of every fixture bundle and of hostile ones: well-formed, self-contained, within
//! its size limit.

use crate::support::synthetic::{Load, Recipe, write};
use crate::support::{fixtures, hostile_bundle, hostile_names, page_of};
use punctual_core::Nanos;
use punctual_report::html::{HtmlError, ReportInput, SIZE_LIMIT, render_report, report_within};
use scraper::{Html, Selector};

fn select(page: &Html, what: &str) -> Vec<String> {
    page.select(&Selector::parse(what).unwrap()).map(|e| e.text().collect::<String>()).collect()
}

/// Checks the properties of every page, whatever its content.
fn assert_sound(text: &str) -> Html {
    assert!(text.len() < SIZE_LIMIT, "{} bytes", text.len());
    let page = Html::parse_document(text);
    assert!(page.errors.is_empty(), "the parser says: {:?}", page.errors);
    assert_eq!(select(&page, "script").len(), 2, "one script, one block of embedded data");
    for element in page.select(&Selector::parse("*").unwrap()) {
        for (name, value) in element.value().attrs() {
            assert!(!name.starts_with("on"), "<{}> listens by {name}", element.value().name());
            assert_ne!(name, "style", "the policy forbids it");
            if ["src", "href", "srcset", "action", "data", "poster", "background", "xlink:href"]
                .contains(&name)
            {
                assert!(value.starts_with('#') || value == "data:,", "{name} leads to {value}");
            }
        }
        let harmless = ![
            "iframe", "object", "embed", "base", "form", "img", "image", "use", "audio", "video",
            "template",
        ]
        .contains(&element.value().name());
        assert!(harmless, "<{}>", element.value().name());
    }
    assert_eq!(
        select(&page, "table").len(),
        select(&page, "table caption").len(),
        "every table has a caption"
    );
    let policy = page
        .select(&Selector::parse("meta[http-equiv=Content-Security-Policy]").unwrap())
        .next()
        .unwrap();
    assert!(
        policy
            .value()
            .attr("content")
            .unwrap()
            .starts_with("default-src 'none'; script-src 'sha256-")
    );
    serde_json::from_str::<serde_json::Value>(&select(&page, "script#data")[0])
        .expect("the embedded data is JSON");
    page
}

#[test]
fn the_page_of_every_fixture_is_valid() {
    let bundles = fixtures();
    assert!(!bundles.is_empty());
    for (name, bundle) in &bundles {
        println!("{name}");
        let page = assert_sound(&page_of(&[bundle]));
        assert_eq!(select(&page, "#figures > .scroll tbody tr").len(), bundle.all_series().count());
    }
    let all: Vec<_> = bundles.iter().map(|(_, bundle)| bundle).collect();
    assert_sound(&page_of(&all));
}

#[test]
fn warnings_about_the_run_precede_those_about_the_machine() {
    let bundles = fixtures();
    let (_, explained) = bundles.iter().find(|(name, _)| name == "explained").unwrap();
    let page = assert_sound(&page_of(&[explained]));
    let found = select(&page, "#warnings .finding");
    assert!(found[0].contains("page faults"), "{found:?}");
    assert!(found[1].contains("preemption model"), "the gravest of the machine: {found:?}");
}

#[test]
fn missed_deadlines_are_shown_as_a_figure_and_marked_in_plots() {
    use punctual_bundle::meta::MeasureMeta;
    use punctual_core::Notes;
    use punctual_core::notes::Figure;
    let mut bundles = fixtures();
    let (_, bundle) = bundles.iter_mut().find(|(name, _)| name == "good").unwrap();
    let series = &mut bundle.phases[0].series[0];
    series.meta.details.insert("deadline".to_owned(), "90us".to_owned());
    series.meta.workload = "program".to_owned();
    let measure = series.meta.measure.clone();
    let mut summary = punctual_stats::summarize_bundle(bundle);
    let missed = Figure {
        name: "deadline-missed".to_owned(),
        title: "cycles longer than 90us".to_owned(),
        value: 3.0,
        unit: "count".to_owned(),
        count: None,
        interval: None,
    };
    summary.phases[0].measures.push(MeasureMeta {
        name: measure,
        workload: "program".to_owned(),
        parameters: Default::default(),
        series: Vec::new(),
        notes: Notes { figures: vec![missed], ..Notes::default() },
    });
    let page = assert_sound(&render_report(&[ReportInput::from_bundle(bundle, &summary)]).unwrap());
    let tiles = select(&page, ".key-figure");
    let tile = tiles.iter().find(|text| text.starts_with("Deadlines missed")).unwrap();
    assert!(tile.contains('3') && tile.contains("of 4,000 cycles of 1 thread"), "{tile}");
    let embedded: serde_json::Value =
        serde_json::from_str(&select(&page, "script#data")[0]).unwrap();
    assert_eq!(embedded["bounds"], serde_json::json!([100_000, 500_000]));
    assert_eq!(embedded["deadlines"], serde_json::json!([90_000]));
    let folded = select(&page, "#environment > details");
    assert_eq!(folded.len(), 1, "the environment is one line");
}

#[test]
fn a_measure_of_several_cpus_has_a_small_histogram_of_each() {
    let directory = tempfile::tempdir().unwrap();
    let recipe = Recipe { cpus: 12, samples: 300, ..Recipe::default() };
    let bundle = write(&directory.path().join("b"), &recipe);
    let page = assert_sound(&page_of(&[&bundle]));
    let titles = select(&page, "#by-cpu h3");
    assert_eq!(titles, ["idle · timer", "loaded · timer"]);
    let panels = select(&page, "#by-cpu figure > p");
    let series: Vec<_> = bundle.all_series().collect();
    assert_eq!(panels.len(), series.len());
    for (panel, (_, series)) in panels.iter().zip(&series) {
        let cpu = series.meta.cpus.first_cpu().unwrap();
        let max = punctual_core::format::micros_text(series.state.data.max.unwrap());
        assert!(panel.starts_with(&format!("CPU {cpu} max {max} µs")), "{panel}");
        assert!(panel.contains("300 samples"), "{panel}");
    }
    let longest = panels.iter().filter(|panel| panel.contains("the longest"));
    assert_eq!(longest.count(), 2, "one in each phase");
    assert_eq!(select(&page, "nav a[href='#by-cpu']"), ["By CPU"]);
    let alone = Recipe { cpus: 1, samples: 300, ..Recipe::default() };
    let alone = write(&directory.path().join("alone"), &alone);
    let page = assert_sound(&page_of(&[&alone]));
    assert!(select(&page, "#by-cpu").is_empty(), "one CPU is not divided");
}

#[test]
fn the_page_of_a_target_uses_a_single_clock() {
    let bundles = fixtures();
    let (_, bundle) = bundles.iter().find(|(name, _)| name == "good").unwrap();
    let mut summary = punctual_stats::summarize_bundle(bundle);
    let started = "2027-01-02T03:04:05Z".parse().unwrap();
    summary.target = Some(punctual_bundle::RanOn::new("vm", "6.1", started));
    let ending = bundle.manifest.ending.as_ref().unwrap();
    let took = ending.at.duration_since(summary.created).as_secs();
    let page = assert_sound(&render_report(&[ReportInput::from_bundle(bundle, &summary)]).unwrap());
    let about = select(&page, ".about").join(" ");
    assert!(about.contains("2027-01-02 03:04:05"), "{about}");
    assert!(about.contains(&format!("completed after {took}")), "{about}");
    assert!(!about.contains(&ending.at.strftime("%Y-%m-%d").to_string()), "{about}");
}

#[test]
fn hostile_texts_in_a_page_stay_text() {
    let directory = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:1";
    let bundle = hostile_bundle(&directory.path().join("<b onclick=alert(1)>"), url);
    let text = page_of(&[&bundle, &bundle]);
    let page = assert_sound(&text);
    let names = hostile_names(url);
    let shown: String = page.root_element().text().collect();
    assert!(shown.contains(&names[0]) && shown.contains(&names[1]), "they are shown as they are");
    assert!(shown.contains("{{ 7 * 7 }}"), "a name is no template");
    assert!(shown.contains("\\u{202e}gnp.exe \\u{0}\\u{1b}[31m"), "what hides is made visible");
    assert!(!text.contains(['\u{202e}', '\0', '\u{1b}', '\u{2028}', '\u{feff}']));
    let embedded = &select(&page, "script#data")[0];
    assert!(!embedded.contains(['<', '>', '&']));
}

#[test]
fn figures_of_a_page_are_labelled() {
    let directory = tempfile::tempdir().unwrap();
    let recipe = Recipe {
        phases: vec![("idle".into(), Load::Idle), ("over".into(), Load::Overloaded)],
        cpus: 1,
        samples: 20_000,
        period: Nanos::from_micros(100),
        requirements: vec!["max < 1ms".into(), "overruns == 0".into(), "p99.999 < 1s".into()],
        keep: 500,
        ends: false,
        ..Recipe::default()
    };
    let page = assert_sound(&page_of(&[&write(&directory.path().join("b"), &recipe)]));
    let about = select(&page, ".about").join(" ");
    assert!(about.contains("cut off"), "{about}");
    let caption = &select(&page, "#figures caption")[0];
    assert!(caption.contains("Latency, in µs"), "{caption}");
    assert!(caption.contains("coordinated omission"), "{caption}");
    assert!(caption.contains("p99.99 100,000"), "{caption}");
    assert!(select(&page, "#figures .sub").iter().any(|text| text.starts_with("corrected ")));
    assert!(select(&page, ".banner.bad .headline")[0].contains("NOT MET"));
    let embedded: serde_json::Value =
        serde_json::from_str(&select(&page, "script#data")[0]).unwrap();
    assert_eq!(
        embedded["series"][0]["time"]["note"],
        "From one-second windows over all 20,000 samples; the log does not hold every sample."
    );
    assert_eq!(select(&page, "#load table").len(), 2, "CPU load and commands");
    assert!(
        select(&page, "#load code")
            .iter()
            .any(|command| command == "sh -c 'while :; do gzip < /bin/bash > /dev/null; done'")
    );
}

#[test]
fn an_oversized_page_is_reduced_with_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let recipe = Recipe { samples: 30_000, resolution: Nanos(1), ..Recipe::default() };
    let bundle = write(&directory.path().join("b"), &recipe);
    let summary = punctual_stats::summarize_bundle(&bundle);
    let inputs = [ReportInput::from_bundle(&bundle, &summary)];
    let full = render_report(&inputs).unwrap();
    assert_eq!(full, render_report(&inputs).unwrap(), "the same bundle makes the same page");
    let embedded = |page: &str| -> serde_json::Value {
        serde_json::from_str(&select(&Html::parse_document(page), "script#data")[0]).unwrap()
    };
    let samples = |page: &serde_json::Value| -> u64 {
        let runs = page["series"][5]["bins"].as_array().unwrap();
        let counts = runs.iter().flat_map(|run| {
            run[1].as_array().unwrap().chunks(2).map(|pair| pair[1].as_u64().unwrap())
        });
        counts.sum()
    };
    println!("full: {} bytes", full.len());
    for limit in [full.len() * 9 / 10, full.len() / 2, full.len() / 3] {
        let page = report_within(&inputs, limit).unwrap();
        assert!(page.len() < limit);
        assert!(page.contains("in the body; the tails are exact"), "at {limit}");
        assert_eq!(samples(&embedded(&page)), samples(&embedded(&full)), "no sample is lost");
        assert_eq!(embedded(&page)["series"][5]["max"], embedded(&full)["series"][5]["max"]);
    }
    assert!(report_within(&inputs, 10_000).unwrap().len() > 10_000, "there is a page all the same");
    assert!(matches!(render_report(&[]), Err(HtmlError::NoBundle)));
}

#[test]
fn a_page_of_512_threads_folds() {
    let directory = tempfile::tempdir().unwrap();
    let recipe = Recipe {
        phases: vec![("attached".into(), Load::Loaded)],
        cpus: 512,
        samples: 60,
        requirements: vec!["max < 9ms".into()],
        ..Recipe::default()
    };
    let bundle = write(&directory.path().join("b"), &recipe);
    let summary = punctual_stats::summarize_bundle(&bundle);
    let inputs = [ReportInput::from_bundle(&bundle, &summary)];
    let rows = |page: &str| {
        let data = select(&assert_sound(page), "script#data").remove(0);
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        data["series"].as_array().unwrap().len()
    };
    let folded = "more series are neither in tables nor in plots";
    let whole = render_report(&inputs).unwrap();
    let (size, all) = (whole.len(), rows(&whole));
    assert!(size < SIZE_LIMIT && !whole.contains(folded), "{size} bytes");
    assert_eq!(all, 512);
    for (limit, most) in [(600_000, 256), (400_000, 128)] {
        let page = report_within(&inputs, limit).unwrap();
        let shown = rows(&page);
        assert!(page.len() < limit && shown > 0 && shown <= most, "{}, {shown}", page.len());
        assert!(page.contains(&format!("{} {folded}", 512 - shown)));
        // The longest sample of all is among them.
        let worst = summary.phases[0].series.iter().max_by_key(|series| series.max);
        assert!(page.contains(&worst.unwrap().name));
    }
}

#[test]
fn a_bundle_without_samples_is_still_a_page() {
    let directory = tempfile::tempdir().unwrap();
    for (name, recipe) in [
        ("no-phases", Recipe { phases: Vec::new(), ends: false, ..Recipe::default() }),
        ("no-samples", Recipe { samples: 0, ..Recipe::default() }),
        ("one-sample", Recipe { samples: 1, cpus: 1, ..Recipe::default() }),
    ] {
        let bundle = write(&directory.path().join(name), &recipe);
        let page = assert_sound(&page_of(&[&bundle]));
        assert!(!select(&page, "#warnings li").is_empty(), "{name}: a warning is missing");
    }
}

#[test]
fn damaged_documents_are_shown_as_unavailable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b");
    let bundle = write(&path, &Recipe { samples: 100, ..Recipe::default() });
    for (name, text) in
        [("environment.json", "{\"kernel\": "), ("check.json", "[1, 2"), ("plan.toml", "\u{0}")]
    {
        std::fs::write(path.join(name), text).unwrap();
    }
    std::fs::write(path.join("experiment.toml"), [0xff, 0xfe, b'<']).unwrap();
    std::fs::write(path.join("phases/000/0000.log"), "not a log").unwrap();
    let page = assert_sound(&page_of(&[&bundle]));
    let environment = select(&page, "#environment").join(" ");
    assert!(
        environment.contains("unavailable") && environment.contains("environment.json"),
        "{environment}"
    );
    assert!(environment.contains("check.json"), "{environment}");
    assert!(
        select(&page, "#experiment pre")[0].contains("\u{fffd}<"),
        "what is not UTF-8 is shown as far as it can be"
    );
    let embedded: serde_json::Value =
        serde_json::from_str(&select(&page, "script#data")[0]).unwrap();
    let note = embedded["series"][0]["time"]["note"].as_str().unwrap();
    assert!(note.starts_with("Samples over time cannot be read"), "{note}");
}

#[test]
fn a_link_in_a_bundle_leads_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("b");
    let bundle = write(&path, &Recipe { samples: 10, ..Recipe::default() });
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "nobody's business").unwrap();
    std::fs::remove_file(path.join("experiment.toml")).unwrap();
    std::os::unix::fs::symlink(&secret, path.join("experiment.toml")).unwrap();
    let text = page_of(&[&bundle]);
    assert!(!text.contains("nobody's business") && !text.contains("nobody&#x27;s business"));
    assert!(text.contains("Not shown: a symbolic link is on its way"));
}

/// On a phone each row of such a table is a card whose figures carry their headings: beside a long
/// last column, rows would be tall and empty.
#[test]
fn cells_of_published_results_carry_their_headings() {
    let directory = tempfile::tempdir().unwrap();
    let mut bundle =
        write(&directory.path().join("b"), &Recipe { cpus: 1, samples: 100, ..Recipe::default() });
    let published = serde_json::json!({
        "source": "a board",
        "results": [
            {
                "what": "the worst", "value": "50 us", "here": "timer/cpu0@idle: max",
                "shape": "timer/cpu0@idle: max > 1ns",
            },
        ],
    });
    bundle.manifest.published = Some(serde_json::from_value(published).unwrap());
    let page = assert_sound(&page_of(&[&bundle]));
    let cells = Selector::parse(".stacked td").unwrap();
    let headings: Vec<_> =
        page.select(&cells).filter_map(|cell| cell.value().attr("data-label")).collect();
    assert_eq!(headings, ["Published", "Measured", "Trend", "Reason"]);
}
