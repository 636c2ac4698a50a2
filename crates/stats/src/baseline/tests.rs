use super::*;

fn figure(values: &[f64]) -> RunFigures {
    let values = values.iter().copied().map(Some).collect();
    RunFigures { name: "timer p99".to_owned(), values, is_time: true, is_main: true }
}

fn as_before() -> RunJudgement {
    RunJudgement::Known(NewestJudgement::default())
}

fn worse(judged: RunJudgement) -> Vec<LevelStep> {
    let RunJudgement::Known(known) = judged else { panic!("not judged") };
    assert!(!known.worse.is_empty(), "not noticed");
    known.worse
}

/// Runs without a change: in random order, and each value once.
fn quiet(count: usize) -> Vec<f64> {
    (0..count).map(|run| 40_000.0 + ((run * 17) % 31) as f64 * 100.0).collect()
}

#[test]
fn too_few_runs_report_how_many_more_are_needed() {
    assert_eq!(judge_last_run(&[]), RunJudgement::TooFew(MIN_RUNS + 1));
    let mut runs = quiet(MIN_RUNS - 2);
    runs.push(1e9);
    assert_eq!(judge_last_run(&[figure(&runs)]), RunJudgement::TooFew(2));
}

#[test]
fn a_step_is_detected_with_its_position_and_size() {
    let mut runs = quiet(30);
    assert_eq!(judge_last_run(&[figure(&runs)]), as_before());
    // One run is not a level.
    runs.push(80_000.0);
    assert!(!judge_last_run(&[figure(&runs)]).is_worse());
    runs.extend([81_000.0, 82_500.0, 80_500.0]);
    let steps = worse(judge_last_run(&[figure(&runs)]));
    assert_eq!((steps.len(), steps[0].at), (1, 30));
    let LevelShift { before, now, by, interval: [low, high], .. } = steps[0].shift;
    assert_eq!((before, now), (41_550.0, 80_750.0));
    assert!(low < by && by < high && (1.9..2.0).contains(&by), "{:?}", steps[0].shift);
}

#[test]
fn an_improvement_or_a_past_step_is_not_a_regression() {
    let better: Vec<f64> = quiet(30).into_iter().chain([1_000.0; 8]).collect();
    assert_eq!(judge_last_run(&[figure(&better)]), as_before());
    let over: Vec<f64> = quiet(30).into_iter().chain([80_000.0; 5]).chain(quiet(20)).collect();
    assert_eq!(judge_last_run(&[figure(&over)]), as_before());
}

#[test]
fn a_level_that_stays_is_not_forgotten() {
    let stays: Vec<f64> = quiet(40).into_iter().chain(quiet(30).iter().map(|v| v * 2.0)).collect();
    assert!(judge_last_run(&[figure(&stays)]).is_worse());
}

#[test]
fn a_single_outlier_is_not_a_regression() {
    for at in [5, 20, 29] {
        let mut runs = quiet(30);
        runs[at] = 1e12;
        assert!(!judge_last_run(&[figure(&runs)]).is_worse(), "{at}");
    }
}

#[test]
fn constant_and_unknown_figures_show_no_change() {
    let constant = figure(&[0.0; 40]);
    let unknown = RunFigures { values: vec![None; 40], ..constant.clone() };
    assert_eq!(judge_last_run(&[constant.clone(), unknown.clone()]), as_before());
    assert_eq!(smallest_step(&[unknown], 0), None);
    // Five runs with missed periods after forty without are a change.
    let values = constant.values.iter().copied().chain([Some(3.0); 5]).collect();
    let missed = RunFigures { values, is_time: false, ..constant };
    let steps = worse(judge_last_run(&[missed]));
    assert_eq!((steps[0].shift.before, steps[0].shift.by), (0.0, 3.0));
}

#[test]
fn values_that_are_no_numbers_are_met() {
    let runs: Vec<f64> = quiet(30).into_iter().chain([f64::NAN, f64::INFINITY, -1.0]).collect();
    judge_last_run(&[figure(&runs)]);
    find_levels(&[figure(&runs)]);
    smallest_step(&[figure(&runs)], 0);
}

#[test]
fn the_smallest_step_follows_the_spread() {
    let narrow = smallest_step(&[figure(&quiet(40))], 0).expect("a step");
    let wide: Vec<f64> = quiet(40).iter().map(|v| 40_000.0 + (v - 40_000.0) * 10.0).collect();
    let wide = smallest_step(&[figure(&wide)], 0).expect("a step");
    assert!(1.0 < narrow && narrow < 1.2 && wide > narrow, "{narrow} {wide}");
    // A step of that size is detected in nearly all continuations.
    let mut runs = quiet(40);
    runs.extend(quiet(5).iter().map(|v| v * wide));
    assert!(judge_last_run(&[figure(&runs)]).is_worse());
}

#[test]
fn a_history_is_divided_into_its_levels() {
    let runs: Vec<f64> = quiet(20)
        .into_iter()
        .chain(quiet(15).iter().map(|v| v * 1.5))
        .chain(quiet(25).iter().map(|v| v * 0.8))
        .collect();
    let found = find_levels(&[figure(&runs), figure(&quiet(60))]);
    let begins: Vec<usize> = found[0].iter().map(|level| level.runs.start).collect();
    assert_eq!(begins, [0, 20, 35]);
    assert_eq!(found[1].len(), 1);
}

/// Also for this machine's noise: docs/notes/error-rates.md has the whole table.
#[test]
fn steps_in_recorded_noise_are_detected_with_few_false_alarms() {
    let text = include_str!("../../../../fixtures/baselines/runs.tsv");
    let noise = SimulatedNoise::from_recording(text, 1).expect("figures of runs");
    assert!(
        SimulatedNoise::from_recording("1\t2\t3", 1).is_none()
            && SimulatedNoise::from_recording("", 1).is_none()
    );
    let machine = SimulatedMachine { noise, runs: 40, step: 2.3 };
    let SimulationResult { judged, false_alarms, steps, noticed } =
        simulate_histories(&machine, 8, 9, 3);
    assert!(judged == 32 && false_alarms <= 2, "{false_alarms} of {judged}");
    assert!(steps == 8 && noticed >= 6, "{noticed} of {steps}");
}

/// A short form of the table of docs/notes/error-rates.md, to notice if the stated rates become
/// much worse.
#[test]
fn steps_in_simulated_noise_are_detected_with_few_false_alarms() {
    let machine = SimulatedMachine { noise: SimulatedNoise::Heavy, runs: 40, step: 2.3 };
    let SimulationResult { judged, false_alarms, steps, noticed } =
        simulate_histories(&machine, 12, 9, 3);
    assert!(judged == 48 && false_alarms <= 3, "{false_alarms} of {judged}");
    assert!(steps == 12 && noticed >= 10, "{noticed} of {steps}");
}

/// The answers to a history of one figure, run by run.
fn followed(values: &[f64]) -> Vec<bool> {
    let mut changes = RunChanges::default();
    let until = |end| changes.judge_newest(&[figure(&values[..end])]).is_worse();
    (1..=values.len()).map(until).collect()
}

/// 17 good runs, then a permanent factor of 46: it was green again at the 25th.
#[test]
fn a_new_level_is_never_its_own_reference() {
    let runs: Vec<f64> = quiet(17).into_iter().chain(quiet(60).iter().map(|v| v * 46.0)).collect();
    let red = followed(&runs);
    let first = red.iter().position(|red| *red).expect("found");
    assert!(first <= 20 && red[first..].iter().all(|red| *red), "{red:?}");
    // It ends when the figures return, and begins again if they do not stay.
    let back: Vec<f64> = quiet(15).into_iter().chain(quiet(8).iter().map(|v| v * 46.0)).collect();
    let red = followed(&runs.into_iter().chain(back).collect::<Vec<f64>>());
    assert!(!red[77 + 8] && red[77 + 18..].iter().all(|red| *red), "{red:?}");
}

#[test]
fn a_run_far_off_reports_how_many_more_runs_are_needed() {
    let far = |count: usize, before: usize| {
        let runs: Vec<f64> = quiet(before).into_iter().chain(vec![2e6; count]).collect();
        let mut changes = RunChanges::default();
        changes.judge_newest(&[figure(&runs)])
    };
    let RunJudgement::Known(known) = far(1, 25) else { panic!("not judged") };
    let [leap] = &known.leaps[..] else { panic!("{known:?}") };
    assert_eq!((leap.before, leap.more, known.worse.len()), (25, 1, 0));
    assert!(leap.is_ratio && (45.0..50.0).contains(&leap.by), "{leap:?}");
    assert!(far(2, 25).is_worse());
    // By 2/((n + 1)(n + 2)) within half of 0.9 %, all of it for the only figure.
    assert_eq!([12, 19, 20, 62].map(|before| runs_to_decide(before, 1.0)), [3, 3, 2, 2]);
    assert_eq!([24, 25].map(|before| runs_to_decide(before, 6.0 / 9.0)), [3, 2]);
    // Not outside by more than neighbours differ anyway.
    let near: Vec<f64> = quiet(25).into_iter().chain([44_000.0]).collect();
    assert_eq!(judge_last_run(&[figure(&near)]), as_before());
}

#[test]
fn a_step_from_zero_is_a_difference_not_a_ratio() {
    let runs: Vec<f64> = vec![0.0; 20].into_iter().chain(vec![9_000.0; 6]).collect();
    let steps = worse(judge_last_run(&[figure(&runs)]));
    let LevelShift { by, is_ratio, interval, .. } = steps[0].shift;
    assert_eq!((by, is_ratio, interval), (9_000.0, false, [9_000.0; 2]));
}

/// A number that JSON does not have is read as none, and with it the verdict of the bundle.
#[test]
fn how_far_a_level_is_from_another_is_a_number_of_json() {
    let values = [0.0, 5e-324, 1.0, 9_000.0, -3.0, f64::MAX, f64::MIN];
    let n = values.len();
    for at in 0..n.pow(3) {
        let [a, b, c] = [at % n, at / n % n, at / n / n].map(|place| values[place]);
        for is_time in [true, false] {
            let LevelShift { before, now, by, is_ratio, interval: [low, high] } =
                effect::shift_between(&[a, b], &[c, b], is_time);
            let all = [before, now, by, low, high];
            assert!(all.iter().all(|of| of.is_finite()), "{a} {b} {c}: {all:?}");
            assert!(!is_ratio || is_time && a > 0.0 && b > 0.0);
        }
    }
    let leap = |newest: f64| {
        let runs = (0..25).map(|run| f64::from(run % 3) * 5e-324 + 5e-324).chain([newest]);
        let RunJudgement::Known(known) = judge_last_run(&[figure(&runs.collect::<Vec<_>>())])
        else {
            panic!()
        };
        known.leaps
    };
    assert!(leap(1.0).iter().all(|leap| leap.by.is_finite()));
}

/// A short form of the table of docs/notes/error-rates.md.
#[test]
fn a_step_that_was_found_stays() {
    let text = include_str!("../../../../fixtures/baselines/runs.tsv");
    let recorded = SimulatedNoise::from_recording(text, 1).expect("figures of runs");
    for (noise, factor) in [(SimulatedNoise::Normal, 3.0), (recorded, 50.0)] {
        let all = follow_steps(&noise, 20, factor, 30, 40, 5);
        assert!(all.found == 30 && all.stayed == 30 && all.returns.len() == 30, "{all:?}");
    }
    let Quiet { judged, onsets, .. } = super::simulate_quiet(&SimulatedNoise::Normal, 6, 60, 7);
    assert!(judged == 288 && onsets <= 4, "{onsets}");
}
