//! `punctual tune --target vm:…` in virtual time with one CPU: of two boot parameters, a load stops
//! for the first, and the other does nothing there.

use crate::common::{self, Place, text};
use punctual_bundle::tune::{BlockRecord, TuneAnswer, TuningDocument};
use punctual_core::Nanos;
use punctual_lab::{Arch, BootKernel};
use punctual_session::messages::Silent;
use punctual_study::tune::directory::TuneDirectory;
use punctual_study::tune::offer::SettingChoice;
use punctual_study::tune::request::{BlockSource, TuneRequest, plan_tuning};
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

/// Untouched, and either parameter.
const BOOTS: usize = 3;

/// The first group has three boots, each with its parameters: a load delays every block that was
/// booted without the first one.
#[test]
fn blocks_boot_with_their_kernel_parameters() {
    let Some(target) = target() else { return };
    let place = Place::with(&(EXPERIMENT.replace("150ms", "300ms") + DELAYED));
    let options = TuneRequest {
        source: BlockSource::File(place.path().join("experiment.toml")),
        figure: "p50".to_owned(),
        target: Some(target),
        choice: SettingChoice {
            only: vec![HELPS.to_owned(), DOES_NOTHING.to_owned()],
            without: Vec::new(),
        },
        cpus: None,
        within: Nanos::from_secs(100_000),
        block: None,
        seed: 1,
    };
    let asked =
        plan_tuning(&options, &Silent).unwrap_or_else(|why| panic!("{}", why.render(false)));
    let tuning = place.path().join("t");
    let directory = TuneDirectory::create(&tuning, &asked.experiment, &asked.spec);
    drop(directory.unwrap_or_else(|why| panic!("{}", why.render(false))));

    let log = fs::File::create(place.path().join("log")).unwrap();
    let mut command = common::punctual();
    command.args(["tune", "--resume", "t"]).current_dir(place.path()).stdin(Stdio::null());
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let mut resumed = command.spawn().expect("punctual starts");
    let story = || fs::read_to_string(place.path().join("log")).unwrap_or_default();
    let kept = || -> Vec<BlockRecord> {
        let text = fs::read_to_string(tuning.join("blocks.jsonl")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).expect("a block")).collect()
    };
    common::eventually("the boots", || {
        assert!(resumed.try_wait().unwrap().is_none(), "it ended: {}", story());
        kept().len() >= BOOTS
    });
    common::kill(resumed.id(), "INT");
    assert_eq!(resumed.wait().unwrap().code(), Some(1), "interrupted: {}", story());

    let blocks = kept();
    let figure = |on: &[&str]| {
        let block = blocks.iter().find(|block| block.on == on);
        let block = block.unwrap_or_else(|| panic!("no block with {on:?}: {blocks:?}"));
        block.figure.unwrap_or_else(|| panic!("{:?}", block.why))
    };
    let (none, nothing, helped) = (figure(&[]), figure(&[DOES_NOTHING]), figure(&[HELPS]));
    println!("{none} {nothing} {helped}");
    assert!(helped * 4.0 < none.min(nothing), "{blocks:?}");
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
