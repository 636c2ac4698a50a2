use super::*;
use crate::Random;
use proptest::prelude::*;

fn with(series: String, run: &ComparedRun) -> SeriesTail {
    of_run(series, run, &KnownCauses::default())
}

fn run(samples: Vec<i64>) -> ComparedRun {
    let mut run = ComparedRun::of_samples(samples);
    run.duration = Some(run.samples.len() as i64 * 1_000_000);
    run
}

/// A body of 5 µs and an exponential tail of 2 µs.
fn simple(random: &mut Random, n: usize) -> Vec<i64> {
    (0..n).map(|_| 5_000 + (-2_000.0 * random.unit().ln()) as i64).collect()
}

#[test]
fn a_model_of_an_exponential_tail_is_accepted() {
    let mut random = Random::seeded(62);
    let tail = with("p/s".into(), &run(simple(&mut random, 60_000)));
    assert!(tail.model.accepted, "{:#?}", tail.model);
    let level = &tail.model.levels[0];
    assert_eq!(level.period, 600_000_000_000);
    // Once in 600,000 samples: 5 µs + 2 µs · ln 600,000.
    let truth = 5_000.0 + 2_000.0 * 6e5f64.ln();
    assert!(level.low < truth && truth < level.high, "{truth} {level:?}");
}

#[test]
fn a_tail_that_violates_a_condition_is_refused_with_the_reason() {
    let mut random = Random::seeded(63);
    let refusals = |samples: Vec<i64>| with("p/s".into(), &run(samples)).model.refusals.join("; ");
    assert!(refusals(simple(&mut random, 1_000)).contains("too few"));
    let drifting: Vec<i64> =
        simple(&mut random, 40_000).iter().enumerate().map(|(k, s)| s + k as i64 / 4).collect();
    assert!(refusals(drifting).contains("drifts"));
    let mut rare = simple(&mut random, 40_000);
    [7_000, 20_000, 33_000].iter().for_each(|k| rare[*k] = 400_000 + *k as i64);
    assert!(refusals(rare).contains("a rare mode"));
    assert!(refusals(vec![5_000; 40_000]).contains("no threshold has enough bursts"));
    let mut lost = run(simple(&mut random, 40_000));
    lost.lost = 1;
    assert!(with("p/s".into(), &lost).model.refusals[0].contains("lost"));
    let mut unordered = run(simple(&mut random, 40_000));
    unordered.samples.clear();
    assert!(with("p/s".into(), &unordered).model.refusals[0].contains("keep_samples"));
}

#[test]
fn a_tail_of_mixed_causes_is_refused() {
    let mut random = Random::seeded(62);
    let run = run(simple(&mut random, 60_000));
    let mut longest = run.samples.clone();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let tail = |cause: fn(usize) -> &'static str| {
        let cause = |(k, ns): (usize, &i64)| (*ns, Some((cause(k).to_owned(), None)));
        let windows = longest.iter().take(20).enumerate().map(cause).collect();
        of_run(
            "p/s".into(),
            &run,
            &KnownCauses { windows: Some(windows), ..KnownCauses::default() },
        )
    };
    let mixed = tail(|k| if k < 8 { "preempted" } else { "page-fault" });
    assert_eq!((mixed.model.accepted, mixed.model.levels.len()), (false, 0));
    let why = mixed.model.refusals.join("; ");
    assert!(
        why.contains(
            "causes of different sizes mix in the tail, of the explained samples: page-fault 60 %"
        ),
        "{why}"
    );
    let one = tail(|_| "preempted");
    assert!(
        one.model.accepted && one.causes[0].dominant && one.causes[0].beyond > Some(20),
        "{one:#?}"
    );
    assert!(one.model.gates.iter().any(|gate| gate.id == "one-cause-windows" && gate.open));
}

#[test]
fn the_tail_of_a_run_is_reproducible() {
    let mut random = Random::seeded(64);
    let samples = simple(&mut random, 30_000);
    assert_eq!(with("p/s".into(), &run(samples.clone())), with("p/s".into(), &run(samples)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_input_panics(
        pattern in proptest::collection::vec(any::<i64>(), 0..200),
        copies in 1usize..200,
        step in 0i64..5_000,
    ) {
        let mut run = run(pattern.iter().copied().cycle().take(pattern.len() * copies).collect());
        run.step = step;
        let tail = with("p/s".into(), &run);
        prop_assert_eq!(tail.model.accepted, tail.model.refusals.is_empty());
        prop_assert!(tail.seen.beyond.is_none_or(|p| (0.0..=1.0).contains(&p)));
    }
}
