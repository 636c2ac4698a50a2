//! `punctual tune --target vm:…` in virtual time with one CPU: of two boot parameters, a load stops
//! for the first, and the other does nothing there. And `punctual tune --across-reboots` inside of
//! a guest, which is rebooted on its request.

use crate::common::{self, Place, text};
use punctual_bundle::tune::{BlockRecord, TuneAnswer, TuningDocument};
use punctual_core::Nanos;
use punctual_lab::{Arch, BootKernel, GuestFile, Job};
use punctual_session::messages::Silent;
use punctual_stats::tune::{MeasuredBlock, TuneStep, Tuning};
use punctual_study::tune::directory::{TuneDirectory, TuningSpec};
use punctual_study::tune::offer::SettingChoice;
use punctual_study::tune::request::{BlockSource, TuneRequest, planned};
use punctual_study::tune::setting::Setting;
use punctual_testing as testing;
use std::fs;
use std::path::Path;
use std::process::Stdio;

const KERNEL: &str = "6.1";
const HELPS: &str = "idle-poll";
const DOES_NOTHING: &str = "skewed-tick";
const EXPERIMENT: &str = "[[measure]]\nkind = \"timer\"\nperiod = \"5ms\"\nduration = \"500ms\"\n";

/// A load that preempts the measured thread for most of the time, unless the kernel was booted with
/// `idle=poll`: for milliseconds, which no timeline hides.
const DELAYED: &str = r#"
[[load]]
name = "delays"
command = """sh -c 'read words </proc/cmdline
case $words in *idle=poll*) ;; *) chrt -f -p 99 $$ ;; esac
while :; do i=0; while [ $i -lt 80 ]; do i=$((i + 1)); done; sleep 0.002; done'"""
[[phase]]
loads = ["delays"]
"#;

/// The target; `None` if no guest can be booted.
fn target() -> Option<String> {
    testing::or_skip(BootKernel::by_name(KERNEL, Arch::Amd64))?;
    testing::guest(KERNEL)?;
    let binary = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
    Some(format!("vm:{KERNEL},binary={}", binary.display()))
}

/// The sets of the first blocks after the pilot, independent of their results.
fn first_sets(spec: &TuningSpec, pilot: &[BlockRecord]) -> Vec<Vec<bool>> {
    let mut tuning = Tuning::new(Setting::candidates(&spec.settings), spec.options());
    let mut sets = Vec::new();
    for place in 0..pilot.len() + BOOTS {
        let TuneStep::Measure(request) = tuning.next() else { panic!("it ended") };
        sets.push(request.on.clone());
        let figure = pilot.get(place).and_then(|block| block.figure).or(Some(1e4));
        tuning.record(MeasuredBlock { figure, throughput: None, elapsed: Nanos::ZERO });
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
        // Not all the same: a spread of 0 would be invalid.
        figure: Some(40_000.0 + (number % 2) as f64),
        worst: None,
        why: None,
        throughput: None,
        no_throughput: None,
        elapsed: Nanos::from_secs(number as i64),
    }
}

/// A tuning with earlier first blocks continues with the four combinations, each a boot with its
/// parameters: a load delays every block that was booted without the first one.
#[test]
fn blocks_boot_with_their_kernel_parameters() {
    let Some(target) = target() else { return };
    let place = Place::with(&(EXPERIMENT.replace("150ms", "300ms") + DELAYED));
    let pilot: Vec<BlockRecord> = (1..=8).map(untouched).collect();
    let asked = |seed| {
        let options = TuneRequest {
            source: BlockSource::File(place.path().join("experiment.toml")),
            figure: "p50".to_owned(),
            target: Some(target.clone()),
            choice: SettingChoice {
                only: vec![HELPS.to_owned(), DOES_NOTHING.to_owned()],
                without: Vec::new(),
            },
            cpus: None,
            within: Nanos::from_secs(100_000),
            block: None,
            smallest: 1.3,
            cost: None,
            reboots: None,
            seed,
        };
        planned(&options, &Silent).unwrap_or_else(|why| panic!("{}", why.render(false)))
    };
    let has_all = |spec: &TuningSpec| {
        let mut sets = first_sets(spec, &pilot);
        sets.sort();
        sets.dedup();
        sets.len() == BOOTS
    };
    let mut seeds = (1..200).map(asked);
    let asked = seeds.find(|asked| has_all(&asked.spec)).expect("an order with all four");
    let tuning = place.path().join("t");
    let directory = TuneDirectory::create(&tuning, &asked.experiment, &asked.spec);
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
    println!("{none} {nothing} {helped} {both}");
    assert!(helped.max(both) * 4.0 < none.min(nothing), "{blocks:?}");
    let ended = place.punctual(&["tune", "report", "t", "--json"]);
    let ended: TuningDocument = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert!(ended.target.is_some_and(|name| name.starts_with("vm:")));
}

#[test]
#[ignore = "seventy boots; ./x test --all"]
fn tuning_recommends_only_the_kernel_parameter_that_helps() {
    let Some(target) = target() else { return };
    let place = Place::with(EXPERIMENT);
    let only = format!("{HELPS},{DOES_NOTHING}");
    let ran = place.line(&format!(
        "tune experiment.toml --target {target} --only {only} --require \
         p50 --duration 10h --json -o t"
    ));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let found: TuningDocument = serde_json::from_slice(&ran.stdout).expect("JSON");
    let answer = |name: &str| {
        let mut settings = found.settings.iter();
        settings.find(|of| of.name == name).map(|of| of.answer).expect("a setting that was asked")
    };
    assert_eq!(answer(HELPS), TuneAnswer::Better, "{found:#?}");
    let harmless = [TuneAnswer::NoEffect, TuneAnswer::NotResolved];
    assert!(harmless.contains(&answer(DOES_NOTHING)), "{found:#?}");
    assert_eq!(found.recommended, [HELPS]);
}

/// The script of a guest's boot: it has the files of earlier boots, and returns its own.
const BOOT: &str = "mkdir -p /tuning/t/runs && cd /tuning || exit 1\n\
                    cp /before/* t/ 2>/dev/null\n\
                    if [ -e t/request.json ]; then punctual tune --quiet --resume t; else\n\
                    rmdir t/runs t\n\
                    tune() { punctual tune /experiment.toml --across-reboots --only \
                    idle-poll,skewed-tick --require p50 --blocks-per-boot 2 --settle 200ms \
                    --duration 10h --quiet -o t \"$@\"; }\n\
                    tune >/results/plan; [ ! -e t ] && [ ! -e next ] || exit 1\n\
                    tune --yes; fi\n\
                    [ -z \"$UNDO\" ] || punctual tune undo t\n\
                    cp t/*.json t/*.jsonl t/*.toml /results/\n\
                    cp next /results/ || true\n";

/// Boots the guest once with these words of the tuning; returns the words for the next boot.
fn boots_once(shared: &Path, words: &str, more: &str) -> Option<String> {
    let words = format!("punctual.reboots=/tuning/next {words}");
    let binary = env!("CARGO_BIN_EXE_punctual");
    let mut guest = testing::punctual_guest(binary, KERNEL, &words, 1)?;
    guest.job = Job::Script(format!("{more}\n{BOOT}"));
    guest.files = vec![GuestFile::text("/experiment.toml", EXPERIMENT)];
    for entry in fs::read_dir(shared).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let inside = format!("/before/{}", name.to_str().unwrap());
        guest.files.push(GuestFile::copy(path, inside).unwrap());
    }
    let after = tempfile::tempdir().unwrap();
    guest.results_to = Some(after.path().to_owned());
    let result = testing::run(&guest)?;
    fs::read_dir(shared).unwrap().for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap());
    let mut next = String::new();
    for entry in fs::read_dir(after.path()).unwrap() {
        let entry = entry.unwrap();
        match entry.file_name().to_str().unwrap() {
            "next" => next = fs::read_to_string(entry.path()).unwrap(),
            name => drop(fs::copy(entry.path(), shared.join(name)).unwrap()),
        }
    }
    assert!(shared.join("reboots.json").exists(), "{}", testing::story(&result));
    Some(next.trim().to_owned())
}

/// The real command line of a real kernel, over six boots: each requests the next, one that falls
/// back is requested again, and the first block has the parameters that it was booted with.
#[test]
fn a_guest_tunes_itself_across_reboots() {
    if target().is_none() {
        return;
    }
    let shared = tempfile::tempdir().unwrap();
    let boot = |words: &str| boots_once(shared.path(), words, "").expect("a guest");
    // The second of its boots falls back: it is booted without the requested words.
    let first = boot("");
    assert_eq!(first, "panic=10 punctual.tune=1");
    let plan = fs::read_to_string(shared.path().join("plan")).unwrap();
    for part in ["boots: 3 to try", "/tuning/next", "reset by hand", "add --yes to begin"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    let second = boot(&first);
    assert_eq!(second, "panic=10 punctual.tune=2 skew_tick=1");
    let third = boot("");
    assert_eq!(third, "panic=10 punctual.tune=3 skew_tick=1");
    let fourth = boot(&third);
    assert_eq!(fourth, "panic=10 punctual.tune=4 idle=poll");
    let fifth = boot(&fourth);
    assert_eq!(fifth, "panic=10 punctual.tune=5");
    let sixth = boots_once(shared.path(), &fifth, "UNDO=1").expect("a guest");
    assert_eq!(sixth, "", "taken back");
    let blocks = fs::read_to_string(shared.path().join("blocks.jsonl")).unwrap();
    let blocks: Vec<BlockRecord> =
        blocks.lines().map(|line| serde_json::from_str(line).expect("a block")).collect();
    let [block] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(block.on.is_empty() && block.worst >= block.figure, "{block:?}");
    assert!(block.figure.is_some(), "{block:?}");
    let state = fs::read_to_string(shared.path().join("reboots.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).expect("JSON");
    let trials = state["trials"].as_array().expect("trials");
    assert!(trials.len() == 3 && trials.iter().all(|trial| trial["came_up"] == true), "{state}");
}
