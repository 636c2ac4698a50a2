use super::*;
use crate::summarize_series;
use crate::testing::{series_meta, series_state};
use punctual_core::{Figure, Notes};

fn phase(name: &str, series: &[(&str, &[i64])], figures: &[(&str, f64)]) -> PhaseSummary {
    let series = series.iter().map(|(name, latencies)| {
        let mut summary = summarize_series(&series_meta(&[]), &series_state(latencies));
        summary.name = (*name).to_owned();
        summary
    });
    let figures =
        figures.iter().map(|(name, value)| Figure::new(name, *name, *value, "count")).collect();
    let measure = MeasureMeta {
        name: "sum".into(),
        workload: "mutex".into(),
        parameters: Default::default(),
        series: Vec::new(),
        notes: Notes { figures, ..Notes::default() },
    };
    PhaseSummary {
        name: name.into(),
        duration: None,
        cpu_load: punctual_core::Fact::NotAsked,
        series: series.collect(),
        measures: vec![measure],
        delayed_by: Vec::new(),
    }
}

fn phases() -> Vec<PhaseSummary> {
    vec![
        phase(
            "idle",
            &[("sum/0", &[1_000; 30]), ("sum/1", &[3_000; 10]), ("t/cpu0/open", &[500; 30])],
            &[("calls", 20.0)],
        ),
        phase("loaded", &[("t/cpu0/open", &[9_000; 30]), ("none", &[])], &[]),
    ]
}

fn summary_of(here: Option<&str>, shape: Option<&str>) -> ResultSummary {
    let result = PublishedResult {
        what: "w".into(),
        value: "v".into(),
        here: here.map(str::to_owned),
        shape: shape.map(str::to_owned),
    };
    let published = PublishedResults { source: "s".into(), results: vec![result] };
    compare_published(&published, &phases(), &|_, _| None).results.remove(0)
}

#[test]
fn several_series_make_one_figure() {
    let value = |text: &str| {
        summary_of(Some(text), None).here.map(|here| (here.value, here.series, here.count))
    };
    assert_eq!(value("sum: min"), Some((1_000.0, 2, Some(40))));
    assert_eq!(value("sum/1: max"), Some((3_000.0, 1, Some(10))));
    assert_eq!(value("sum: mean"), Some((1_500.0, 2, Some(40))));
    assert_eq!(value("sum: count"), Some((40.0, 2, Some(40))));
    assert_eq!(value("sum: calls"), Some((20.0, 1, None)), "what the measure states itself");
    assert_eq!(value("t/*/open@loaded: max"), Some((9_000.0, 1, Some(30))));
}

#[test]
fn an_undecided_published_figure_has_a_reason() {
    let why = |text: &str| summary_of(Some(text), None).reason.unwrap();
    assert!(why("gone: max").contains("gone was not measured"));
    assert!(why("none: max").contains("none was not measured"));
    assert!(why("t/cpu0/open: max").contains("name one, like `t/cpu0/open@idle: …`"));
    assert!(why("sum: p99.9").contains("too few samples"));
    assert!(why("sum: weight").contains("`weight` is neither"));
    let shape = summary_of(None, Some("sum: min < gone: max"));
    assert_eq!(shape.reproduced, None);
    assert!(shape.reason.unwrap().contains("gone was not measured"));
}

#[test]
fn a_shape_comes_out_or_not() {
    let shape = |text: &str| summary_of(None, Some(text));
    let loaded = shape("t/*/open@loaded: p50 > 2 * t/*/open@idle: p50");
    assert_eq!(loaded.reproduced, Some(true));
    let compared = loaded.compared.unwrap();
    assert_eq!(
        (compared.factor, compared.relation.as_str(), compared.unit.as_str()),
        (2.0, ">", "ns")
    );
    assert!(compared.left > 8_900.0 && compared.right < 510.0, "{compared:?}");
    assert_eq!(shape("sum: max < 1us").reproduced, Some(false));
    assert_eq!(shape("sum: calls ~ 21").reproduced, Some(true));
    assert_eq!(shape("sum: calls ~ 50").reproduced, Some(false));
}

#[test]
fn what_the_samples_of_a_run_do_not_show_is_open() {
    // 1,000 samples each, from 0 to 9,990 ns in steps of 10, the second by some ns later.
    let all = |later: i64| (0..1_000).map(|n| n * 10 + later).collect::<Vec<i64>>();
    let decided = |later: i64, shape: &str| {
        let (a, b) = (all(0), all(later));
        let phases = [phase("p", &[("a", &a), ("b", &b)], &[])];
        let states = [series_state(&a), series_state(&b)];
        let result = PublishedResult {
            what: "w".into(),
            value: "v".into(),
            here: Some("a: p50".into()),
            shape: Some(shape.into()),
        };
        let published = PublishedResults { source: "s".into(), results: vec![result] };
        let distribution = |_, place: usize| Some(Distribution::from_series(&states[place].data));
        compare_published(&published, &phases, &distribution).results.remove(0)
    };
    // The median of n samples lies 0.98 √n ranks about its own, here 31: 310 ns.
    let near = decided(300, "a: p50 < b: p50");
    assert_eq!((near.reproduced, near.reason.as_deref()), (None, None));
    let [low, high] = near.compared.unwrap().interval.unwrap();
    assert!((-750.0..-730.0).contains(&low) && (130.0..150.0).contains(&high), "{low} {high}");
    let [low, high] = near.here.unwrap().interval.unwrap();
    assert!((4_670.0..4_700.0).contains(&low) && (5_290.0..5_320.0).contains(&high));
    assert_eq!(decided(600, "a: p50 < b: p50").reproduced, Some(true));
    assert_eq!(decided(600, "a: p50 > b: p50").reproduced, Some(false));
    assert_eq!(decided(300, "a: p50 ~ b: p50").reproduced, Some(true), "no order is stated");
    // An order is what its pairs are; the figures are of the pair that decides.
    let order = |text: &str| {
        let of = decided(600, text);
        (of.reproduced, of.compared.unwrap().right.round())
    };
    assert_eq!(order("a: p50 < b: p50 < b: max"), (Some(true), 10_590.0));
    assert_eq!(order("a: p50 < b: p50 < a: max < a: p50").0, Some(false));
    assert_eq!(order("a: max < b: max < a: p50 < b: p50").0, Some(false));
    let open = decided(300, "a: min < a: p50 < b: p50 < b: max");
    assert_eq!((open.reproduced, open.compared.unwrap().interval.is_some()), (None, true));
    // The standard error of the mean is 2,887 / √1,000 = 91 ns.
    assert_eq!(decided(200, "a: mean < b: mean").reproduced, None);
    assert_eq!(decided(300, "a: mean < b: mean").reproduced, Some(true));
    assert_eq!(decided(300, "a: mean < 4us").reproduced, Some(false));
    let worst = decided(10, "a: max < b: max");
    assert_eq!((worst.reproduced, worst.compared.unwrap().interval), (Some(true), None));
    assert_eq!(decided(10, "a: p99 < 1us").reproduced, Some(false));
}
