//! The procedure on machines with known truth.

use super::run_tuning;
use super::scenarios::{all_scenarios, simulate_tunings};
use super::simulated::{RecordedMachine, SimulatedTunable, Truth};
use super::*;
use crate::Random;
use punctual_bundle::tune::{TuneAnswer, TuningEnd};
use punctual_core::Nanos;

fn candidates(count: usize) -> Vec<Candidate> {
    (0..count).map(|place| Candidate::new(&format!("setting-{place}"))).collect()
}

/// The blocks of the first group of these candidates.
fn first_group(candidates: Vec<Candidate>) -> Vec<BlockRequest> {
    let mut tuning = Tuning::new(candidates, TuningOptions::default());
    let mut blocks = Vec::new();
    while let TuneStep::Measure(request) = tuning.next() {
        if request.group > 0 {
            break;
        }
        blocks.push(request.clone());
        let elapsed = Nanos::from_secs(blocks.len() as i64);
        tuning.record_block(MeasuredBlock { figure: Some(1e5), elapsed });
    }
    blocks
}

#[test]
fn a_group_has_each_setting_alone_and_untouched_blocks_in_a_random_order() {
    for (settings, untouched) in [(1, 1), (2, 1), (3, 2), (9, 3), (20, 4)] {
        let blocks = first_group(candidates(settings));
        let count = |purpose| blocks.iter().filter(|block| block.purpose == purpose).count();
        assert_eq!(count(BlockPurpose::Screen), settings);
        assert_eq!(count(BlockPurpose::Control), untouched);
        for place in 0..settings {
            let on = |block: &&BlockRequest| block.on[place];
            assert_eq!(blocks.iter().filter(on).count(), 1, "{settings}: {place}");
        }
        assert!(blocks.iter().all(|block| block.on.iter().filter(|on| **on).count() <= 1));
    }
    let order: Vec<Option<usize>> = first_group(candidates(20))
        .iter()
        .map(|block| block.on.iter().position(|on| *on))
        .collect();
    assert!(!order.is_sorted(), "{order:?}");
}

#[test]
fn in_the_least_time_every_effect_can_be_separated_and_before_the_screening_nothing() {
    for settings in [1, 3, 8] {
        // The purposes of all blocks, each as long as stated and with the same figure.
        let tried = |within: Nanos| {
            let options = TuningOptions { within, ..TuningOptions::default() };
            let block = options.block;
            let mut tuning = Tuning::new(candidates(settings), options);
            let (mut elapsed, mut purposes) = (Nanos::ZERO, Vec::new());
            while let TuneStep::Measure(request) = tuning.next() {
                purposes.push(request.purpose);
                elapsed += block;
                tuning.record_block(MeasuredBlock { figure: Some(1e5), elapsed });
            }
            purposes.iter().filter(|purpose| **purpose == BlockPurpose::Screen).count()
        };
        let least = least_time(&TuningOptions::default(), settings);
        assert!(tried(least) >= settings, "{settings}");
        assert_eq!(tried(TuningOptions::default().block), 0, "{settings}");
    }
}

fn recorded() -> RecordedMachine {
    RecordedMachine::read(include_str!("../../../../fixtures/tune/blocks.txt")).unwrap()
}

fn tuned(truth: &Truth, options: &TuningOptions, noise: &[f64]) -> Tuning {
    let candidates = candidates(truth.effects.len());
    let mut machine = SimulatedTunable::new(truth, &candidates, noise, options.block, options.seed);
    let mut tuning = Tuning::new(candidates.clone(), options.clone());
    let Ok(()) = run_tuning(&mut tuning, &mut machine);
    tuning
}

fn hours(hours: i64) -> Nanos {
    Nanos(hours * 3_600_000_000_000)
}

#[test]
fn without_noise_every_answer_is_right() {
    let truth = Truth { effects: vec![1.0, 0.5, 1.4, 0.9, 1.0], ..Truth::default() };
    let mut noise = vec![10.0; 100];
    // Hardly any noise: with none, no spread can be computed.
    noise.iter_mut().step_by(3).for_each(|log| *log += 1e-3);
    let found = tuned(&truth, &TuningOptions::default(), &noise).to_document("p99.9");
    let answers: Vec<TuneAnswer> = found.settings.iter().map(|s| s.answer).collect();
    use TuneAnswer::{Better, NoEffect, Worse};
    assert_eq!(answers, [NoEffect, Better, Worse, Better, NoEffect]);
    let effect = found.set.as_ref().unwrap().effect.unwrap();
    assert!((effect.ratio - 0.45).abs() < 0.001, "{effect:?}");
    assert_eq!(found.recommended, ["setting-1", "setting-3"]);
    assert_eq!((found.ended, found.failed), (TuningEnd::Complete, 0));
    assert!(found.blocks < 100, "{found:?}");
}

#[test]
fn tuning_ends_within_its_time_and_reports_unresolved_settings() {
    let noise = recorded().window_logs(99.9, 10);
    let options = TuningOptions { within: Nanos(1_800_000_000_000), ..TuningOptions::default() };
    let truth = Truth { effects: vec![1.0; 12], ..Truth::default() };
    let found = tuned(&truth, &options, &noise).to_document("p99.9");
    assert!(found.elapsed <= options.within, "{found:?}");
    assert_eq!(found.ended, TuningEnd::Time);
    let open: Vec<_> =
        found.settings.iter().filter(|s| s.answer == TuneAnswer::NotResolved).collect();
    assert!(!open.is_empty() && open.iter().all(|s| s.more_time > Some(hours(0))), "{open:?}");
}

/// A machine with scripted answers.
struct Scripted<F>(F, u64);

impl<F: FnMut(&BlockRequest, u64) -> Option<f64>> TunableMachine for Scripted<F> {
    type Error = ();
    fn apply_settings(&mut self, _: &[bool]) -> Result<(), ()> {
        Ok(())
    }
    fn wait_to_settle(&mut self, _: Nanos) -> Result<(), ()> {
        Ok(())
    }
    fn measure_block(&mut self, request: &BlockRequest) -> Result<Option<f64>, ()> {
        self.1 += 1;
        Ok((self.0)(request, self.1))
    }
    fn elapsed_time(&self) -> Nanos {
        Nanos(self.1 as i64 * 10_000_000_000)
    }
    fn store_block(&mut self, _: &BlockRequest, _: MeasuredBlock) -> Result<(), ()> {
        Ok(())
    }
}

fn scripted(
    options: TuningOptions,
    answers: impl FnMut(&BlockRequest, u64) -> Option<f64>,
) -> Tuning {
    let mut tuning = Tuning::new(candidates(3), options);
    run_tuning(&mut tuning, &mut Scripted(answers, 0)).unwrap();
    tuning
}

#[test]
fn of_two_better_settings_that_exclude_each_other_the_better_one_is_adopted() {
    let mut candidates = candidates(3);
    candidates[0].excludes = vec![2];
    let mut tuning = Tuning::new(candidates, TuningOptions::default());
    let factors = [0.7, 1.0, 0.5];
    let mut sets = Vec::new();
    let figure = |request: &BlockRequest, n: u64| {
        let on = request.on.iter().zip(factors).filter(|(on, _)| **on);
        sets.push(request.on.clone());
        Some(on.fold(1e5, |figure, (_, factor)| figure * factor) + (n * n % 50) as f64)
    };
    run_tuning(&mut tuning, &mut Scripted(figure, 0)).unwrap();
    let found = tuning.to_document("max");
    assert_eq!(found.recommended, ["setting-2"], "{found:?}");
    assert_eq!(found.settings[0].answer, TuneAnswer::Better);
    assert!(sets.iter().all(|on| !(on[0] && on[2])), "{sets:?}");
}

#[test]
fn drift_between_groups_is_no_effect() {
    let mut random = Random::from_seed(2);
    let options = TuningOptions { smallest: 1.1, ..TuningOptions::default() };
    // The figure doubles with each group.
    let found = scripted(options, |request, _| {
        let level = 1e3 * 2f64.powi(request.group as i32 % 20);
        Some(level * (0.02 * random.next_unit()).exp())
    })
    .to_document("max");
    assert!(found.settings.iter().all(|s| s.answer == TuneAnswer::NoEffect), "{found:?}");
    assert!(found.spread.unwrap() < 0.02, "{found:?}");
}

#[test]
fn failed_blocks_are_retried_until_too_many_fail() {
    let options = TuningOptions { smallest: 1.1, ..TuningOptions::default() };
    let some = scripted(options, |_, n| (n % 7 != 0).then_some(1_000.0 + (n * n % 50) as f64));
    let found = some.to_document("max");
    assert!(found.failed > 3 && found.ended == TuningEnd::Complete, "{found:?}");
    let none = scripted(TuningOptions::default(), |_, _| None).to_document("max");
    assert_eq!((none.ended, none.blocks), (TuningEnd::BlocksFailed, 0));
    assert!(
        none.settings.iter().all(|s| s.answer == TuneAnswer::NotResolved && s.effect.is_none())
    );
    let nothing = Tuning::new(Vec::new(), TuningOptions::default());
    assert_eq!(nothing.next(), TuneStep::Done(TuningEnd::Complete));
}

/// A tuning killed after any block continues as if it had not been.
#[test]
fn replaying_recorded_blocks_gives_the_same_tuning() {
    let truth = Truth { effects: vec![0.5, 1.0, 1.3], ..Truth::default() };
    let noise = recorded().window_logs(99.9, 10);
    let options = TuningOptions { smallest: 2.0, ..TuningOptions::default() };
    let candidates = candidates(3);
    let mut machine = SimulatedTunable::new(&truth, &candidates, &noise, options.block, 3);
    let (mut tuning, mut blocks, mut requests) =
        (Tuning::new(candidates.clone(), options.clone()), Vec::new(), Vec::new());
    while let TuneStep::Measure(request) = tuning.next() {
        let request = request.clone();
        let Ok(()) = machine.apply_settings(&request.on);
        let Ok(figure) = machine.measure_block(&request);
        // Some are lost.
        let figure = figure.filter(|_| blocks.len() % 11 != 5);
        let block = MeasuredBlock { figure, elapsed: machine.elapsed_time() };
        requests.push(request);
        blocks.push(block);
        tuning.record_block(block);
    }
    assert!(blocks.len() > 40, "{}", blocks.len());
    for killed in 0..blocks.len() {
        let mut again = Tuning::new(candidates.clone(), options.clone());
        blocks[..killed].iter().for_each(|block| again.record_block(*block));
        assert_eq!(again.next(), TuneStep::Measure(&requests[killed]));
    }
    let mut again = Tuning::new(candidates, options);
    blocks.iter().for_each(|block| again.record_block(*block));
    assert_eq!(again.to_document("p99.9"), tuning.to_document("p99.9"));
}

#[test]
fn slow_settings_wait_for_their_wash_out() {
    let mut candidates = candidates(3);
    candidates[1].wash_out = Nanos(5);
    candidates[2].wash_out = Nanos(9);
    let settle =
        |now: [bool; 3], next: [bool; 3]| candidate::wash_out(&candidates, &now, &next).ns();
    assert_eq!(settle([false; 3], [true, false, false]), 0);
    assert_eq!(settle([false; 3], [false, true, false]), 5);
    assert_eq!(settle([true, true, false], [true, false, true]), 9);
    assert_eq!(settle([true; 3], [true; 3]), 0);
}

#[test]
fn percentiles_of_recorded_blocks_match_those_of_all_samples() {
    let recorded =
        RecordedMachine::read("# \nrank 1 2 3 5\n10 90 80 70 20\n10 95 50 40 30\n").unwrap();
    // Of 20 samples p90 is the third from the top: 95, 90, 80.
    let logs = recorded.window_logs(90.0, 2);
    assert_eq!(logs.iter().map(|log| log.exp().round()).collect::<Vec<_>>(), [80.0, 80.0]);
    assert_eq!(
        recorded.window_logs(90.0, 1).iter().map(|l| l.exp().round()).collect::<Vec<_>>(),
        [80.0, 50.0]
    );
    for bad in ["", "rank 1\n", "rank 1 2\n5 3\n", "rank 1\nx 3\n", "rank 1\n5 y\n", "\n"] {
        assert!(RecordedMachine::read(bad).is_err(), "{bad:?}");
    }
}

/// The short form of the table of docs/tune.md: few settings, effects of ×2, 60 tunings each.
#[test]
fn tuning_finds_true_effects_within_the_stated_error_rate() {
    let noise = recorded().window_logs(99.9, 10);
    let options = TuningOptions { smallest: 2.0, ..TuningOptions::default() };
    for mut scenario in all_scenarios(8).into_iter().take(3) {
        scenario.truth.effects.iter_mut().for_each(|effect| *effect = effect.powi(3));
        let counted = simulate_tunings(&scenario, &noise, &options, 60);
        // 5 % of 60 are 3; more than 8 occur by chance in 1 % of such tests.
        assert!(counted.falsely_better <= 8 && counted.harmful <= 4, "{counted:?}");
        assert!(counted.found * 10 >= counted.to_find * 9, "{} {counted:?}", scenario.name);
        assert!(counted.hours[0] <= counted.hours[1], "{counted:?}");
    }
}
