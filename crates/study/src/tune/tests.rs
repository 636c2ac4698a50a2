//! Tunings of a machine in memory: their findings, their leftovers, and resuming.

use super::apply;
use super::directory::{TuneDirectory, TuningSpec};
use super::offer::{SettingChoice, offer};
use super::persistent::{SettingReader, files};
use super::request::check_time;
use super::run::{TUNING, TuneResult, tried_once, tune};
use super::setting::{Setting, traits};
use super::testing::{Killed, ScriptedBlocks, World, setting, spec};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{TuneAnswer, TuningEnd};
use punctual_core::Nanos;
use punctual_host::check::rules;
use punctual_host::files::Root;
use punctual_host::isolate::tweaks;
use punctual_host::journal::{IfChanged, undo};
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
    let asked = |seconds| spec(vec![setting("vm-stat", &[(STAT, "1", "10")])], seconds);
    let refused = check_time(&asked(150)).expect_err("the first blocks take 80 s");
    assert_eq!(refused.exit, Exit::Refused);
    let why = refused.render(false);
    assert!(why.contains("nothing can be tried: 1 setting in blocks of 10 s need"), "{why}");
    assert!(check_time(&asked(3600)).is_ok());
    assert!(check_time(&spec(Vec::new(), 1)).is_ok(), "that is another refusal");
}

/// Settings that halve the figure, do nothing, and worsen it.
const EFFECTS: [f64; 3] = [0.5, 1.0, 1.6];

fn world() -> World {
    World::of(&[(STAT, "1"), (KSM, "1"), (RPS[0], "3"), (RPS[1], "3")])
}

fn settings() -> Vec<Setting> {
    vec![
        setting("packet-steering", &[(RPS[0], "3", "1"), (RPS[1], "3", "1")]),
        setting("stat", &[(STAT, "1", "1000")]),
        setting("merging", &[(KSM, "1", "0")]),
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
    tune(Some(&changes), directory, spec, &mut blocks, &Silent)
}

fn whole(ended: Result<TuneResult, Failure>) -> TuneResult {
    let ended = ended.unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(ended.broken.is_none());
    ended
}

#[test]
fn a_tuning_finds_helpful_settings_and_restores_the_machine() {
    let (world, spec, place) = (world(), spec(settings(), 3_600), place());
    let before = world.settings();
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
    assert_eq!((world.settings(), world.journals()), (before, 0));
}

#[test]
fn the_cost_of_the_recommended_set_is_measured() {
    let mut spec = spec(settings(), 3_600);
    spec.cost = Some(vec!["make".to_owned(), "all of it".to_owned()]);
    let (world, place) = (world(), place());
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    let found = whole(tuned(&world, &directory, &spec)).document;
    let cost = found.set.and_then(|set| set.cost).expect("it was asked");
    let ratio = cost.effect.expect("enough pairs");
    // One setting is kept, and costs a tenth.
    assert!(ratio.interval[0] < 0.9 && 0.9 < ratio.interval[1], "{ratio:?}");
    assert!(ratio.ratio > 0.88 && ratio.ratio < 0.92, "{ratio:?}");
    assert_eq!((cost.answer, cost.command.as_str()), (TuneAnswer::Worse, "make 'all of it'"));
    // The cost covers the last comparison alone, and a block lacks it if the command failed.
    let (blocks, _) = directory.replay(&spec).unwrap();
    let with = |purpose: &str| {
        let of = blocks.iter().filter(|block| block.purpose == purpose);
        of.filter(|block| block.throughput.is_some()).count()
    };
    assert_eq!((with("screen"), with("pilot")), (0, 0));
    assert!(with("confirm") >= 10, "{}", with("confirm"));
    // Without a command there is no cost.
    let (other, spec) = (place.path().join("u"), super::testing::spec(settings(), 3_600));
    let directory = TuneDirectory::create(&other, b"", &spec).unwrap();
    let found = whole(tuned(&world, &directory, &spec)).document;
    assert_eq!(found.set.and_then(|set| set.cost), None);
}

/// One of this many killed tunings is resumed to its end: each takes a whole tuning.
const RESUMED: usize = 7;

/// Kills at every change to the machine or its journal, and in and after every block: the changes
/// are reverted, and the resumed tuning has the same result as one that was never killed.
#[test]
fn a_tuning_killed_at_any_step_is_reverted_and_can_be_resumed() {
    let spec = spec(settings(), 340);
    let before = world().settings();
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
        world.start(101);
        // Reverts by hand in most cases; the tuning itself reverts in the others.
        if survived % (2 * RESUMED) != 0 {
            let undone = undo(&world, &world, IfChanged::Report, |_| true).unwrap();
            assert!(undone.is_complete(), "step {survived}: {undone:?}");
            assert_eq!((world.settings(), world.journals()), (before.clone(), 0), "{survived}");
        }
        let (directory, again) = TuneDirectory::open(&path).unwrap();
        assert_eq!(again, spec);
        if !survived.is_multiple_of(RESUMED) {
            directory.replay(&spec).unwrap();
            continue;
        }
        let resumed = whole(tuned(&world, &directory, &spec)).document;
        assert_eq!(resumed, found, "step {survived}");
        assert_eq!(world.settings(), before, "step {survived}");
        assert!(world.journals() <= 1, "step {survived}");
    }
}

#[test]
fn an_interrupted_tuning_restores_the_machine() {
    let (world, spec, place) = (world(), spec(settings(), 600), place());
    let before = world.settings();
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    let ended = interrupted(&world, &directory, &spec, Some(14)).unwrap();
    assert_eq!(ended.document.ended, TuningEnd::Interrupted);
    assert_eq!((ended.document.blocks, ended.broken.map(|why| why.exit)), (13, Some(Exit::Failed)));
    assert_eq!((world.settings(), world.journals()), (before, 0));
    let found = whole(tuned(&world, &directory, &spec)).document;
    assert!(found.blocks > 13 && found.ended != TuningEnd::Interrupted);
}

#[test]
fn settings_that_the_kernel_refuses_are_excluded_before_measuring() {
    let mut world = world();
    world.refusing = vec![KSM.to_owned(), RPS[1].to_owned()];
    let before = world.settings();
    let changes = MachineChanges { files: &world, store: &world, purpose: TUNING };
    let kept = tried_once(&changes, spec(settings(), 600)).unwrap();
    let names: Vec<&str> = kept.settings.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(names, ["packet-steering", "stat"]);
    assert_eq!(kept.settings[0].writes.len(), 1, "one of two masks can be set");
    assert_eq!(kept.left_out[0].name, "merging");
    assert!(kept.left_out[0].why.contains("Invalid argument"), "{:?}", kept.left_out);
    assert_eq!((world.settings(), world.journals()), (before, 0));
    let nothing = tried_once(&changes, spec(vec![settings().remove(2)], 600));
    assert_eq!(nothing.err().map(|why| why.exit), Some(Exit::Refused));
}

#[test]
fn a_setting_changed_by_another_program_is_reported_and_kept() {
    let world = world();
    let changes = MachineChanges { files: &world, store: &world, purpose: TUNING };
    changes.set(&settings()[1].steps().collect::<Vec<_>>()).unwrap();
    world.put(STAT, "7");
    let why = changes.restore().unwrap_err().render(false);
    assert!(why.contains("another program set `7` over `1000`; before it was `1`"), "{why}");
    assert_eq!(world.settings()[STAT], "7\n");
}

#[test]
fn two_tunings_at_a_time_are_refused() {
    let world = world();
    let changes = MachineChanges { files: &world, store: &world, purpose: TUNING };
    changes.set(&settings()[1].steps().collect::<Vec<_>>()).unwrap();
    // The first still runs.
    let first = world.files.borrow()["/proc/100/stat"].clone();
    world.start(101);
    world.files.borrow_mut().insert("/proc/100/stat".to_owned(), first);
    let why = changes.restore().unwrap_err();
    assert_eq!(why.exit, Exit::Refused);
    assert!(why.render(false).contains("another tuning (process 100)"));
    assert_eq!(world.settings()[STAT], "1000\n");
}

#[test]
fn a_tuning_is_not_resumed_if_the_machine_was_changed() {
    let (world, spec, place) = (world(), spec(settings(), 600), place());
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    world.put(KSM, "2");
    let why = tuned(&world, &directory, &spec).err().expect("a failure").render(false);
    assert!(why.contains("/sys/kernel/mm/ksm/run holds `2`; it held `1`"), "{why}");
    assert_eq!(world.settings()[KSM], "2\n");
    assert!(TuneDirectory::open(&place.path().join("other")).is_err());
    let again = TuneDirectory::create(&place.path().join("t"), b"", &spec);
    assert!(again.err().is_some_and(|why| why.render(false).contains("--resume")));
}

/// A machine with every kind of file that a setting can write.
fn kept() -> (TuningSpec, punctual_bundle::tune::TuningDocument) {
    let (world, place) = (world(), place());
    let spec = spec(settings(), 3_600);
    let directory = TuneDirectory::create(&place.path().join("t"), b"", &spec).unwrap();
    let mut found = whole(tuned(&world, &directory, &spec)).document;
    let mut all = settings();
    all.push(setting("irq-affinity", &[("/proc/irq/24/smp_affinity_list", "0-3", "0-1")]));
    all.push(setting(
        "fair-server",
        &[("/sys/kernel/debug/sched/fair_server/cpu1/runtime", "5", "0")],
    ));
    all.push(setting("odd", &[("/sys/class/net/a\"b/queues/rx-0/rps_cpus", "3", "1")]));
    found.recommended = all.iter().map(|setting| setting.name.clone()).collect();
    // Rounds figures of the scripted blocks to readable digits.
    found.settings.iter_mut().for_each(|setting| setting.effect = None);
    (TuningSpec { settings: all, ..spec }, found)
}

#[test]
fn recommended_settings_are_written_as_boot_configuration() {
    let (spec, mut found) = kept();
    let set = found.set.as_mut().unwrap();
    (set.untouched, set.with_set, set.effect) = (Some(1e5), Some(5e4), None);
    (found.blocks, found.elapsed) = (120, Nanos::from_secs(1_500));
    let text = |reader| {
        let all = files(&found, &spec, reader);
        let files = all.files.iter().map(|f| format!("== {} ({})\n{}", f.path, f.then, f.text));
        let not_kept = all.not_kept.iter().map(|why| format!("not kept: {why}\n"));
        files.chain(not_kept).collect::<String>()
    };
    insta::assert_snapshot!("for_the_system", text(SettingReader::System));
    insta::assert_snapshot!("for_tuned", text(SettingReader::Tuned));
}

#[test]
fn undo_removes_applied_files_unless_they_were_changed() {
    let (spec, found) = kept();
    let (place, root) = (place(), place());
    let path = place.path().join("t");
    let directory = TuneDirectory::create(&path, b"", &spec).unwrap();
    assert!(
        apply::apply(&path, root.path(), SettingReader::System).is_err(),
        "nothing was found yet"
    );
    directory.write(&found).unwrap();
    drop(directory);
    let sysctl = root.path().join("etc/sysctl.d");
    std::fs::create_dir_all(&sysctl).unwrap();
    let names = || {
        let mut all: Vec<_> = walk(root.path());
        all.sort();
        all
    };
    let before = names();
    let report = apply::apply(&path, root.path(), SettingReader::System).unwrap();
    assert_eq!((report.done.len(), report.not_done.len()), (5, 2), "{report:?}");
    assert!(apply::apply(&path, root.path(), SettingReader::System).is_err(), "twice");
    assert!(apply::undo(&path).unwrap().not_done.is_empty());
    assert_eq!(names(), before);
    assert!(apply::undo(&path).is_err(), "nothing is applied any more");
    // A setting changed by hand stays, and so does one that is in force already.
    apply::apply(&path, root.path(), SettingReader::System).unwrap();
    std::fs::write(sysctl.join("90-punctual-tune.conf"), "vm.stat_interval = 10\n").unwrap();
    let report = apply::undo(&path).unwrap();
    assert!(report.not_done[0].ends_with("was changed since: it stays"), "{report:?}");
    assert_eq!(walk(root.path()).iter().filter(|path| path.is_file()).count(), 1);
    std::fs::remove_file(path.join("applied.json")).unwrap();
    let why = apply::apply(&path, root.path(), SettingReader::System).unwrap_err().render(false);
    assert!(why.contains("is there already"), "{why}");
}

fn walk(root: &Path) -> Vec<std::path::PathBuf> {
    let inside = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    inside
        .flat_map(|path| {
            if path.is_dir() { [vec![path.clone()], walk(&path)].concat() } else { vec![path] }
        })
        .collect()
}

fn captured(name: &str) -> Root {
    Root::at(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(name))
}

#[test]
fn every_trait_is_of_a_rule_or_a_tweak() {
    let names: Vec<&str> =
        rules().map(|rule| rule.id).chain(tweaks::all().map(|tweak| tweak.name)).collect();
    let two = "0-1".parse().unwrap();
    let of_boot = super::boot::offer(Some(&"1".parse().unwrap()), &two).settings;
    let names: Vec<&str> =
        names.into_iter().chain(of_boot.iter().map(|of| of.name.as_str())).collect();
    for name in super::setting::known() {
        assert!(names.contains(&name), "{name}");
    }
    assert_eq!(traits("isolate-transparent-hugepages"), traits("transparent-hugepages"));
    assert_eq!(traits("rt-throttling").risk, Risk::High);
}

#[test]
fn a_captured_machine_offers_what_its_rules_and_tweaks_would_change() {
    let mut text = String::new();
    for host in HOSTS {
        let files = captured(host);
        for cpus in [None, Some("1".parse().unwrap())] {
            let offered = offer(&files, cpus.as_ref());
            text += &format!("== {host}, CPUs {}\n", if cpus.is_some() { "1" } else { "none" });
            for setting in &offered.settings {
                text += &format!("{}: {}\n", setting.name, setting.value());
                assert!(!setting.writes.is_empty() && !setting.why.is_empty());
            }
        }
    }
    insta::assert_snapshot!(text);
}

const HOSTS: [&str; 2] = ["debian-standard", "arm64-board"];

#[test]
fn an_unknown_setting_is_refused_with_a_suggestion() {
    let offered = offer(&captured(HOSTS[0]), None);
    let first = offered.settings[0].name.clone();
    let choose = |only: &[&str], without: &[&str]| {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut offered = offered.clone();
        offered.choose(&SettingChoice { only: own(only), without: own(without) })?;
        Ok::<_, Failure>(offered)
    };
    let all = choose(&[], &[]).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(all.settings.iter().all(|setting| !traits(&setting.name).only_named));
    let one = choose(&[&first], &[]).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert_eq!(one.settings.len(), 1);
    let rest = choose(&[], &[&first]).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(rest.settings.iter().all(|setting| setting.name != first));
    let why = choose(&[&first[1..]], &[]).expect_err("no such setting").render(false);
    assert!(why.contains(&first) && why.contains("--list"), "{why}");
}
