//! Tunings of a machine in memory: their findings, their leftovers, and resuming.

use super::directory::{TuneDirectory, TuningSpec};
use super::offer::{SettingChoice, offer_settings};
use super::request::check_time;
use super::run::{TUNING, TuneResult, tried_once, tune_machine};
use super::setting::{Setting, traits_of_setting};
use super::testing::{Killed, ScriptedBlocks, World, test_setting, test_spec};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{TuneAnswer, TuningEnd};
use punctual_core::Nanos;
use punctual_host::check::all_rules;
use punctual_host::files::Root;
use punctual_host::isolate::tweaks;
use punctual_host::journal::{IfChanged, undo_journals};
use punctual_session::changes::MachineChanges;
use punctual_session::exit::{Exit, Failure};
use punctual_session::messages::Silent;
use punctual_stats::tune::Risk;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const STAT: &str = "/proc/sys/vm/stat_interval";
const KSM: &str = "/sys/kernel/mm/ksm/run";
const RPS: [&str; 2] =
    ["/sys/class/net/eth0/queues/rx-0/rps_cpus", "/sys/class/net/eth0/queues/rx-1/rps_cpus"];

#[test]
fn a_duration_in_which_nothing_can_be_tried_is_refused() {
    let asked = |seconds| test_spec(vec![test_setting("vm-stat", &[(STAT, "1", "10")])], seconds);
    let refused = check_time(&asked(120)).expect_err("three groups take 60 s of half the time");
    assert_eq!(refused.exit, Exit::Refused);
    let why = refused.render(false);
    assert!(why.contains("nothing can be tried: 1 setting in blocks of 10 s need"), "{why}");
    assert!(check_time(&asked(3600)).is_ok());
    assert!(check_time(&test_spec(Vec::new(), 1)).is_ok(), "that is another refusal");
}

/// Settings that halve the figure, do nothing, and worsen it.
const EFFECTS: [f64; 3] = [0.5, 1.0, 1.6];

fn world() -> World {
    World::from_files(&[(STAT, "1"), (KSM, "1"), (RPS[0], "3"), (RPS[1], "3")])
}

fn settings() -> Vec<Setting> {
    vec![
        test_setting("packet-steering", &[(RPS[0], "3", "1"), (RPS[1], "3", "1")]),
        test_setting("stat", &[(STAT, "1", "1000")]),
        test_setting("merging", &[(KSM, "1", "0")]),
    ]
}

/// A directory without a disk below it: blocks are synced.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

fn tuned(
    world: &World,
    directory: &TuneDirectory,
    spec: &TuningSpec,
) -> Result<TuneResult, Failure> {
    interrupted(world, directory, spec, None)
}

fn interrupted(
    world: &World,
    directory: &TuneDirectory,
    spec: &TuningSpec,
    interrupted_at: Option<u64>,
) -> Result<TuneResult, Failure> {
    let changes = MachineChanges { files: world, store: world, purpose: TUNING };
    let mut blocks = ScriptedBlocks {
        world,
        settings: &spec.settings,
        effects: &EFFECTS,
        elapsed: Nanos::ZERO,
        interrupted_at,
    };
    tune_machine(Some(&changes), directory, spec, &mut blocks, &Silent)
}

fn whole(ended: Result<TuneResult, Failure>) -> TuneResult {
    let ended = ended.unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(ended.broken.is_none());
    ended
}

#[test]
fn a_tuning_finds_helpful_settings_and_restores_the_machine() {
    let (world, spec, place) = (world(), test_spec(settings(), 3_600), place());
    let before = world.setting_values();
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    let found = whole(tuned(&world, &directory, &spec)).document;
    let answers: Vec<TuneAnswer> = found.settings.iter().map(|setting| setting.answer).collect();
    assert_eq!(answers, [TuneAnswer::Better, TuneAnswer::NoEffect, TuneAnswer::Worse]);
    assert_eq!(
        (found.ended, found.recommended),
        (TuningEnd::Complete, vec!["packet-steering".into()])
    );
    let set = found.set.unwrap();
    let ratio = set.effect.unwrap();
    assert!(ratio.interval[0] < 0.5 && 0.5 < ratio.interval[1], "{ratio:?}");
    // 100 µs, and 50 µs with the set: below 80 µs in each block.
    let required = found.required.unwrap();
    assert_eq!((required.verdict, required.untouched[0]), (VerdictWord::Met, 0));
    assert!(required.recommended[0] == required.recommended[1] && required.recommended[0] >= 6);
    assert_eq!((world.setting_values(), world.journal_count()), (before, 0));
}

/// One of this many killed tunings is resumed to its end: each takes a whole tuning.
const RESUMED: usize = 7;

/// Kills at every change to the machine or its journal, and in and after every block: the changes
/// are reverted, and the resumed tuning has the same result as one that was never killed.
#[test]
fn a_tuning_killed_at_any_step_is_reverted_and_can_be_resumed() {
    let spec = test_spec(settings(), 340);
    let before = world().setting_values();
    let (whole_world, first) = (world(), place());
    let directory = TuneDirectory::create(&first.path().join("t"), b"", &spec).unwrap();
    let found = whole(tuned(&whole_world, &directory, &spec)).document;
    let steps = whole_world.fate.count.get();
    assert!(steps > 100, "{steps}");
    for survived in 0..steps {
        let (world, place) = (world(), place());
        let path = place.path().join("t");
        let directory = TuneDirectory::create(&path, b"", &spec).unwrap();
        world.fate.left.set(Some(survived));
        let killed = catch_unwind(AssertUnwindSafe(|| tuned(&world, &directory, &spec)));
        let Err(killed) = killed else { panic!("it survived step {survived}") };
        assert!(killed.is::<Killed>(), "step {survived}");
        drop(directory);
        world.start_process(101);
        // Reverts by hand in most cases; the tuning itself reverts in the others.
        if survived % (2 * RESUMED) != 0 {
            let undone = undo_journals(&world, &world, IfChanged::Report, |_| true).unwrap();
            assert!(undone.is_complete(), "step {survived}: {undone:?}");
            assert_eq!(
                (world.setting_values(), world.journal_count()),
                (before.clone(), 0),
                "{survived}"
            );
        }
        let (directory, again) = TuneDirectory::open(&path).unwrap();
        assert_eq!(again, spec);
        if !survived.is_multiple_of(RESUMED) {
            directory.replay_blocks(&spec).unwrap();
            continue;
        }
        let resumed = whole(tuned(&world, &directory, &spec)).document;
        assert_eq!(resumed, found, "step {survived}");
        assert_eq!(world.setting_values(), before, "step {survived}");
        assert!(world.journal_count() <= 1, "step {survived}");
    }
}

#[test]
fn an_interrupted_tuning_restores_the_machine() {
    let (world, spec, place) = (world(), test_spec(settings(), 600), place());
    let before = world.setting_values();
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    let ended = interrupted(&world, &directory, &spec, Some(14)).unwrap();
    assert_eq!(ended.document.ended, TuningEnd::Interrupted);
    assert_eq!((ended.document.blocks, ended.broken.map(|why| why.exit)), (13, Some(Exit::Failed)));
    assert_eq!((world.setting_values(), world.journal_count()), (before, 0));
    let found = whole(tuned(&world, &directory, &spec)).document;
    assert!(found.blocks > 13 && found.ended != TuningEnd::Interrupted);
}

#[test]
fn settings_that_the_kernel_refuses_are_excluded_before_measuring() {
    let mut world = world();
    world.refusing = vec![KSM.to_owned(), RPS[1].to_owned()];
    let before = world.setting_values();
    let changes = MachineChanges { files: &world, store: &world, purpose: TUNING };
    let kept = tried_once(&changes, test_spec(settings(), 600)).unwrap();
    let names: Vec<&str> = kept.settings.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(names, ["packet-steering", "stat"]);
    assert_eq!(kept.settings[0].writes.len(), 1, "one of two masks can be set");
    assert_eq!(kept.left_out[0].name, "merging");
    assert!(kept.left_out[0].why.contains("Invalid argument"), "{:?}", kept.left_out);
    assert_eq!((world.setting_values(), world.journal_count()), (before, 0));
    let nothing = tried_once(&changes, test_spec(vec![settings().remove(2)], 600));
    assert_eq!(nothing.err().map(|why| why.exit), Some(Exit::Refused));
}

#[test]
fn a_setting_changed_by_another_program_is_reported_and_kept() {
    let world = world();
    let changes = MachineChanges { files: &world, store: &world, purpose: TUNING };
    changes.apply_writes(&settings()[1].named_writes().collect::<Vec<_>>()).unwrap();
    world.put_file(STAT, "7");
    let why = changes.restore_settings().unwrap_err().render(false);
    assert!(why.contains("another program set `7` over `1000`; before it was `1`"), "{why}");
    assert_eq!(world.setting_values()[STAT], "7\n");
}

#[test]
fn two_tunings_at_a_time_are_refused() {
    let world = world();
    let changes = MachineChanges { files: &world, store: &world, purpose: TUNING };
    changes.apply_writes(&settings()[1].named_writes().collect::<Vec<_>>()).unwrap();
    // The first still runs.
    let first = world.files.borrow()["/proc/100/stat"].clone();
    world.start_process(101);
    world.files.borrow_mut().insert("/proc/100/stat".to_owned(), first);
    let why = changes.restore_settings().unwrap_err();
    assert_eq!(why.exit, Exit::Refused);
    assert!(why.render(false).contains("another tuning (process 100)"));
    assert_eq!(world.setting_values()[STAT], "1000\n");
}

#[test]
fn a_tuning_is_not_resumed_if_the_machine_was_changed() {
    let (world, spec, place) = (world(), test_spec(settings(), 600), place());
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    world.put_file(KSM, "2");
    let why = tuned(&world, &directory, &spec).err().expect("a failure").render(false);
    assert!(why.contains("/sys/kernel/mm/ksm/run holds `2`; it held `1`"), "{why}");
    assert_eq!(world.setting_values()[KSM], "2\n");
    assert!(TuneDirectory::open(&place.path().join("other")).is_err());
    let again = TuneDirectory::create(&place.path().join("t"), b"", &spec);
    assert!(again.err().is_some_and(|why| why.render(false).contains("--resume")));
}

fn captured(name: &str) -> Root {
    Root::from_base(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(name))
}

#[test]
fn every_trait_is_of_a_rule_or_a_tweak() {
    let names: Vec<&str> = all_rules()
        .map(|rule| rule.id)
        .chain(tweaks::all_tweaks().map(|tweak| tweak.name))
        .collect();
    let two = "0-1".parse().unwrap();
    let of_boot = super::boot::offer_parameters(Some(&"1".parse().unwrap()), &two).settings;
    let names: Vec<&str> =
        names.into_iter().chain(of_boot.iter().map(|of| of.name.as_str())).collect();
    for name in super::setting::known_names() {
        assert!(names.contains(&name), "{name}");
    }
    assert_eq!(
        traits_of_setting("isolate-transparent-hugepages"),
        traits_of_setting("transparent-hugepages")
    );
    assert_eq!(traits_of_setting("rt-throttling").risk, Risk::High);
}

#[test]
fn a_captured_machine_offers_what_its_rules_and_tweaks_would_change() {
    let mut text = String::new();
    for host in HOSTS {
        let files = captured(host);
        for cpus in [None, Some("1".parse().unwrap())] {
            let offered = offer_settings(&files, cpus.as_ref());
            text += &format!("== {host}, CPUs {}\n", if cpus.is_some() { "1" } else { "none" });
            for setting in &offered.settings {
                text += &format!("{}: {}\n", setting.name, setting.format_value());
                assert!(!setting.writes.is_empty() && !setting.why.is_empty());
            }
        }
    }
    insta::assert_snapshot!(text);
}

const HOSTS: [&str; 2] = ["debian-standard", "arm64-board"];

#[test]
fn an_unknown_setting_is_refused_with_a_suggestion() {
    let offered = offer_settings(&captured(HOSTS[0]), None);
    let first = offered.settings[0].name.clone();
    let choose = |only: &[&str], without: &[&str]| {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut offered = offered.clone();
        offered.apply_choice(&SettingChoice { only: own(only), without: own(without) })?;
        Ok::<_, Failure>(offered)
    };
    let all = choose(&[], &[]).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(all.settings.iter().all(|setting| !traits_of_setting(&setting.name).only_named));
    let one = choose(&[&first], &[]).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert_eq!(one.settings.len(), 1);
    let rest = choose(&[], &[&first]).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(rest.settings.iter().all(|setting| setting.name != first));
    let why = choose(&[&first[1..]], &[]).expect_err("no such setting").render(false);
    assert!(why.contains(&first) && why.contains("--list"), "{why}");
}
