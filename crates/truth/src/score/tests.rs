use super::*;
use proptest::prelude::*;

fn sample(at: i64, parts: &[(&str, &str, i64)]) -> ExplainedSample {
    let mut from = at;
    let parts: Vec<ExplainedPart> = parts
        .iter()
        .map(|(cause, who, ns)| {
            from += ns;
            ExplainedPart {
                cause: (*cause).to_owned(),
                who: Some((*who).to_owned()),
                tid: None,
                ns: *ns,
                from: from - ns,
                cpu: None,
                syscall: None,
                prio: None,
                stack: Vec::new(),
                meanwhile: Vec::new(),
                evidence: Vec::new(),
                evidence_count: 0,
            }
        })
        .collect();
    ExplainedSample {
        phase: String::new(),
        series: String::new(),
        at,
        latency_ns: parts.iter().map(|part| part.ns).sum(),
        cpu: None,
        tid: 1,
        task: String::new(),
        parts,
        chain: Vec::new(),
        wakeups: Vec::new(),
        lost: 0,
        confidence: String::new(),
        warnings: Vec::new(),
        not_recorded: Vec::new(),
        moment: None,
        function: None,
        left_out: Vec::new(),
    }
}

const EXPECTED: Expected<'static> =
    Expected { causes: &[("preempted", "hog")], placing: Placing::DueWithin, is_shared: false };

#[test]
fn right_wrong_and_false_attributions_are_scored_separately() {
    let samples = [
        // Delayed by the hog, and explained so; 10 µs of its time are the interrupt's.
        sample(1_000, &[("irq", "timer", 10_000), ("preempted", "hog", 990_000)]),
        // Delayed by the hog, but attributed to another task.
        sample(5_000_000, &[("preempted", "other", 900_000), ("unknown", "", 100_000)]),
        // Not delayed by it, but attributed to it.
        sample(9_000_000, &[("preempted", "hog", 50_000)]),
        // Delayed by another cause.
        sample(12_000_000, &[("irq", "disk", 50_000)]),
    ];
    let injected = [Injected::new(0, 1_001_000), Injected::new(4_000_000, 6_000_000)];
    let score = score_samples(&samples, &injected, EXPECTED);
    assert_eq!((score.explained, score.affected, score.right, score.falsely_named), (4, 2, 1, 1));
    assert_eq!(score.confused, BTreeMap::from([("preempted".to_owned(), 1)]));
    let example = "preempted other 900000 ns (); unknown  100000 ns ()".to_owned();
    assert_eq!(score.examples, BTreeMap::from([("preempted".to_owned(), example)]));
    assert_eq!((score.time_ns, score.time_error_ns), (2_000_000, 10_000 + 1_000_000));
    assert_eq!((score.recall(), score.precision()), (Some(0.5), Some(0.5)));
    assert_eq!(score.unknown_share(), Some(0.05));
    // An attribution to a shared name is not false.
    let shared = Expected { is_shared: true, ..EXPECTED };
    assert_eq!(super::score_samples(&samples, &injected, shared).falsely_named, 0);
}

#[test]
fn own_delays_are_matched_within_the_sample_and_names_by_pattern() {
    let samples =
        [sample(1_000, &[("self", "user mode", 10_000), ("lock", "kworker/0:1", 90_000)])];
    let within = [Injected::new(11_000, 100_000)];
    let causes: [&[(&str, &str)]; 3] =
        [&[("lock", "kworker/*")], &[("lock", "*")], &[("lock", "kworker/1*")]];
    let right = causes.map(|causes| {
        let expected = Expected { causes, placing: Placing::Within, is_shared: true };
        let score = score_samples(&samples, &within, expected);
        assert_eq!((score.affected, score.time_ns), (1, 89_000));
        score.right
    });
    assert_eq!(right, [1, 1, 0]);
    // The other rule: it was due before the delay began.
    assert_eq!(score_samples(&samples, &within, EXPECTED).affected, 0);
}

#[test]
fn the_accounting_is_scored_by_bucket() {
    let mut account = Account::default();
    let mut add = |parts: &[(CauseKind, i64)]| {
        let mut split = punctual_core::Split::default();
        parts.iter().for_each(|(part, ns)| split.add(*part, Nanos(*ns)));
        account.record_split(&split);
        split.total_time()
    };
    let right = add(&[(CauseKind::Preempted, 990_000), (CauseKind::Irq, 10_000)]);
    let wrong = add(&[(CauseKind::Irq, 400_000), (CauseKind::Unknown, 100_000)]);
    let falsely = add(&[(CauseKind::Preempted, 50_000)]);
    let other = add(&[(CauseKind::Irq, 60_000)]);
    let at = |ms: i64, latency: Nanos| (MonotonicNs(ms * 1_000_000), latency);
    let samples = [at(1, right), at(5, wrong), at(9, falsely), at(12, other)];
    let injected = [Injected::new(900_000, 2_000_000), Injected::new(4_000_000, 5_500_000)];
    let score = score_account(&samples, &account, &injected, EXPECTED);
    assert_eq!((score.explained, score.affected, score.right, score.falsely_named), (4, 2, 1, 1));
    assert_eq!(score.confused, BTreeMap::from([("irq".to_owned(), 1)]));
    assert_eq!((score.time_ns, score.time_error_ns), (1_500_000, 10_000 + 500_000));
    assert_eq!((score.latency_ns, score.unknown_ns), (1_500_000, 100_000));
}

#[test]
fn a_false_attribution_is_counted_in_its_bucket() {
    let mut account = Account::default();
    let mut split = punctual_core::Split::default();
    split.add(CauseKind::Preempted, Nanos(500_000));
    (0..3).for_each(|_| account.record_split(&split));
    let at = |ms: i64| (MonotonicNs(ms * 1_000_000), Nanos(500_000));
    // The last two met no injection.
    let samples = [at(1), at(5), at(9)];
    let injected = [Injected::new(900_000, 1_500_000)];
    let score = score_account(&samples, &account, &injected, EXPECTED);
    assert_eq!((score.affected, score.right, score.falsely_named), (1, 1, 2));
    assert_eq!(score.precision(), Some(1.0 / 3.0));
    let shared = Expected { is_shared: true, ..EXPECTED };
    assert_eq!(score_account(&samples, &account, &injected, shared).falsely_named, 0);
}

#[test]
fn interruptions_of_an_injected_delay_are_not_part_of_it() {
    // From 0 to 1 ms, with an interrupt of 200 µs in between.
    let stretch = |begin, end, role| Injected { begin, end, role };
    let injected = [stretch(0, 600_000, Role::Delay), stretch(800_000, 1_000_000, Role::GoesOn)];
    assert_eq!(whole_delays(&injected), [Injected::new(0, 1_000_000)]);
    let delayed = [
        sample(500_000, &[("preempted", "hog", 300_000), ("irq", "disk", 200_000)]),
        // Due within the interrupt.
        sample(700_000, &[("irq", "disk", 150_000), ("preempted", "hog", 200_000)]),
    ];
    let score = score_samples(&delayed, &injected, EXPECTED);
    assert_eq!((score.affected, score.right), (2, 2));
    assert_eq!((score.time_ns, score.time_error_ns), (300_000 + 200_000, 0));
}

#[test]
fn times_within_the_uncertainty_of_an_injection_have_no_error() {
    let perhaps = |begin, end| Injected { begin, end, role: Role::Perhaps };
    let injected =
        [perhaps(0, 500_000), Injected::new(500_000, 1_000_000), perhaps(1_000_000, 1_100_000)];
    let errors = [390_000, 400_000, 500_000, 510_000].map(|ns| {
        let rest = 500_000 - ns + 20_000;
        let samples = [sample(600_000, &[("preempted", "hog", ns), ("irq", "disk", rest)])];
        let score = score_samples(&samples, &injected, EXPECTED);
        assert_eq!((score.affected, score.right, score.time_ns), (1, 1, 400_000));
        score.time_error_ns
    });
    assert_eq!(errors, [10_000, 0, 0, 10_000]);
}

#[test]
fn attributions_to_the_injector_around_a_delay_are_not_false() {
    let around = Injected { begin: 0, end: 2_000_000, role: Role::Around };
    let injected = [around, Injected::new(500_000, 1_000_000)];
    let named = |at| sample(at, &[("preempted", "hog", 50_000)]);
    let of = |at| {
        let samples = [named(at)];
        let score = score_samples(&samples, &injected, EXPECTED);
        (score.affected, score.falsely_named, score.time_ns)
    };
    assert_eq!(of(1_500_000), (0, 0, 0));
    assert_eq!(of(2_500_000), (0, 1, 0));
}

#[test]
fn time_that_every_sample_has_of_a_cause_is_not_counted_as_injected() {
    let mut account = Account::default();
    let mut add = |irq: i64| {
        let mut split = punctual_core::Split::default();
        split.add(CauseKind::Irq, Nanos(irq));
        account.record_split(&split);
        Nanos(irq)
    };
    let at = |ms: i64, latency: Nanos| (MonotonicNs(ms * 1_000_000), latency);
    // Each sample has 20 µs of the timer's own interrupt.
    let samples = [at(1, add(520_000)), at(5, add(20_000)), at(9, add(20_000))];
    let injected = [Injected::new(900_000, 1_500_000)];
    let irq = Expected { causes: &[("irq", "")], is_shared: true, ..EXPECTED };
    let score = score_account(&samples, &account, &injected, irq);
    assert_eq!((score.affected, score.right), (1, 1));
    assert_eq!((score.time_ns, score.time_error_ns), (500_000, 0));
}

proptest! {
    #[test]
    fn every_affected_sample_is_right_or_confused(
        samples in proptest::collection::vec(
            (0i64..1_000_000_000, proptest::collection::vec((0usize..3, 0i64..2_000_000), 0..5)),
            0..20,
        ),
        injected in proptest::collection::vec((0i64..1_000_000_000, 0i64..5_000_000), 0..20),
    ) {
        let names = [("preempted", "hog"), ("irq", "disk"), ("unknown", "")];
        let samples: Vec<ExplainedSample> = samples
            .iter()
            .map(|(at, parts)| {
                let parts: Vec<_> =
                    parts.iter().map(|(name, ns)| (names[*name].0, names[*name].1, *ns)).collect();
                sample(*at, &parts)
            })
            .collect();
        let injected: Vec<Injected> = injected
            .iter()
            .map(|(begin, ns)| Injected::new(*begin, begin + ns))
            .collect();
        let score = score_samples(&samples, &injected, EXPECTED);
        prop_assert_eq!(score.affected, score.right + score.confused.values().sum::<u64>());
        prop_assert!(score.affected + score.falsely_named <= score.explained);
        prop_assert!(score.unknown_ns <= score.latency_ns && score.time_ns >= 0);
    }
}
