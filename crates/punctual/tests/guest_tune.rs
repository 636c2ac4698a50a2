//! `punctual tune --target vm:…` in virtual time with one CPU: of two parameters of the boot,
//! `idle=poll` certainly shortens the way out of idle, and `skew_tick=1` does nothing there.

use crate::common::{self, Place, text};
use punctual_analyze::tune::{Block, Step, Tuning};
use punctual_bundle::tune::{Answer, BlockRecord, TuningDocument};
use punctual_core::Nanos;
use punctual_lab::{Arch, Kernel};
use punctual_session::messages::Silent;
use punctual_session::tune::asked::{Options, Source, planned};
use punctual_session::tune::directory::{Directory, Spec};
use punctual_session::tune::offer::Choice;
use punctual_session::tune::setting::Setting;
use punctual_testing as testing;
use std::fs;
use std::path::Path;
use std::process::Stdio;

const KERNEL: &str = "6.1";
const HELPS: &str = "idle-poll";
const DOES_NOTHING: &str = "skewed-tick";
const EXPERIMENT: &str = "[[measure]]\nkind = \"timer\"\nperiod = \"5ms\"\nduration = \"150ms\"\n";

/// What is asked; `None` where no guest can be booted.
fn target() -> Option<String> {
    testing::or_skip(Kernel::by_name(KERNEL, Arch::Amd64))?;
    testing::guest(KERNEL)?;
    let binary = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
    Some(format!("vm:{KERNEL},binary={}", binary.display()))
}

/// The sets of the first blocks after the pilot, whatever those show.
fn first_sets(spec: &Spec, pilot: &[BlockRecord]) -> Vec<Vec<bool>> {
    let mut tuning = Tuning::new(Setting::candidates(&spec.settings), spec.options());
    let mut sets = Vec::new();
    for place in 0..pilot.len() + BOOTS {
        let Step::Measure(request) = tuning.next() else { panic!("it ended") };
        sets.push(request.on.clone());
        let figure = pilot.get(place).and_then(|block| block.figure).or(Some(1e4));
        tuning.record(Block { figure, throughput: None, elapsed: Nanos::ZERO });
    }
    sets.split_off(pilot.len())
}

/// Untouched, either parameter, and both.
const BOOTS: usize = 4;

fn untouched(number: u64) -> BlockRecord {
    BlockRecord {
        number,
        purpose: "pilot".to_owned(),
        on: Vec::new(),
        // Not all the same: a spread of 0 would be none.
        figure: Some(40_000.0 + (number % 2) as f64),
        why: None,
        throughput: None,
        no_throughput: None,
        elapsed: Nanos::from_secs(number as i64),
    }
}

/// A tuning whose first blocks were measured before goes on with the four combinations, each a
/// boot: what the first parameter does is in the blocks, and the second does nothing.
#[test]
fn blocks_boot_with_their_parameters_and_differ_by_the_one_that_acts() {
    let Some(target) = target() else { return };
    let place = Place::with(EXPERIMENT);
    let pilot: Vec<BlockRecord> = (1..=8).map(untouched).collect();
    let asked = |seed| {
        let options = Options {
            source: Source::File(place.path().join("experiment.toml")),
            figure: "p50".to_owned(),
            target: Some(target.clone()),
            choice: Choice {
                only: vec![HELPS.to_owned(), DOES_NOTHING.to_owned()],
                without: Vec::new(),
            },
            cpus: None,
            within: Nanos::from_secs(100_000),
            block: None,
            smallest: 1.3,
            cost: None,
            seed,
        };
        planned(&options, &Silent).unwrap_or_else(|why| panic!("{}", why.render(false)))
    };
    let has_all = |spec: &Spec| {
        let mut sets = first_sets(spec, &pilot);
        sets.sort();
        sets.dedup();
        sets.len() == BOOTS
    };
    let mut seeds = (1..200).map(asked);
    let asked = seeds.find(|asked| has_all(&asked.spec)).expect("an order with all four");
    let tuning = place.path().join("t");
    let directory = Directory::create(&tuning, &asked.experiment, &asked.spec);
    let directory = directory.unwrap_or_else(|why| panic!("{}", why.render(false)));
    pilot.iter().for_each(|block| assert!(directory.keep(block).is_ok()));
    drop(directory);

    let log = fs::File::create(place.path().join("log")).unwrap();
    let mut command = common::punctual();
    command.args(["tune", "--resume", "t"]).current_dir(place.path()).stdin(Stdio::null());
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let mut resumed = command.spawn().expect("punctual starts");
    let story = || fs::read_to_string(place.path().join("log")).unwrap_or_default();
    let kept = || -> Vec<BlockRecord> {
        let text = fs::read_to_string(tuning.join("blocks.jsonl")).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).expect("a block")).collect()
    };
    common::eventually("the boots", || {
        assert!(resumed.try_wait().unwrap().is_none(), "it ended: {}", story());
        kept().len() >= pilot.len() + BOOTS
    });
    common::kill(resumed.id(), "INT");
    assert_eq!(resumed.wait().unwrap().code(), Some(1), "interrupted: {}", story());

    let blocks = kept().split_off(pilot.len());
    let figure = |on: &[&str]| {
        let block = blocks.iter().find(|block| block.on == on);
        let block = block.unwrap_or_else(|| panic!("no block with {on:?}: {blocks:?}"));
        block.figure.unwrap_or_else(|| panic!("{:?}", block.why))
    };
    // In the order of the offer.
    let order: Vec<&str> = asked.spec.settings.iter().map(|of| of.name.as_str()).collect();
    let (none, nothing) = (figure(&[]), figure(&[DOES_NOTHING]));
    let (helped, both) = (figure(&[HELPS]), figure(&order));
    assert!(helped.max(both) * 1.1 < none.min(nothing), "{blocks:?}");
    for (without, with) in [(none, nothing), (helped, both)] {
        assert!((with / without).ln().abs() < 0.05, "{blocks:?}");
    }
    let ended = place.punctual(&["tune", "report", "t", "--json"]);
    let ended: TuningDocument = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert!(ended.target.is_some_and(|name| name.starts_with("vm:")));
}

#[test]
#[ignore = "seventy boots; ./x test --all"]
fn a_parameter_that_helps_is_found_and_one_that_does_nothing_is_not() {
    let Some(target) = target() else { return };
    let place = Place::with(EXPERIMENT);
    let only = format!("{HELPS},{DOES_NOTHING}");
    let ran = place.punctual(&[
        "tune",
        "experiment.toml",
        "--target",
        &target,
        "--only",
        &only,
        "--require",
        "p50",
        "--duration",
        "10h",
        "--json",
        "-o",
        "t",
    ]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let found: TuningDocument = serde_json::from_slice(&ran.stdout).expect("JSON");
    let answer = |name: &str| {
        let mut settings = found.settings.iter();
        settings.find(|of| of.name == name).map(|of| of.answer).expect("a setting that was asked")
    };
    assert_eq!(answer(HELPS), Answer::Better, "{found:#?}");
    let harmless = [Answer::NoEffect, Answer::NotResolved];
    assert!(harmless.contains(&answer(DOES_NOTHING)), "{found:#?}");
    assert_eq!(found.recommended, [HELPS]);
}
