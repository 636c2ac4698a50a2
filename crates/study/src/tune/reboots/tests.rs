//! Whole tunings across reboots of a machine in memory.

use super::run::{BootOutcome, go_on, or_nothing, take_back};
use super::testing::{BASE, BootBlocks, Panicked, World};
use crate::tune::directory::{self, TuneDirectory, TuningSpec};
use crate::tune::reboot_plan::RebootPlan;
use crate::tune::run::TuneResult;
use crate::tune::setting::Setting;
use crate::tune::testing::{Killed, spec};
use punctual_bundle::tune::{TuneAnswer, TuningDocument, TuningEnd};
use punctual_core::Nanos;
use punctual_host::boot::Loader;
use punctual_session::exit::Failure;
use punctual_session::messages::Silent;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

const EFFECTS: [(&str, f64); 3] = [("threadirqs", 0.5), ("skew_tick=1", 1.0), ("nohz=off", 1.6)];

fn setting(name: &str, words: &str) -> Setting {
    Setting { boot: words.to_owned(), ..crate::tune::testing::setting(name, &[]) }
}

fn asked(seconds: i64) -> TuningSpec {
    let settings = vec![
        setting("threaded-irqs", "threadirqs"),
        setting("skewed-tick", "skew_tick=1"),
        setting("no-tick-stop", "nohz=off"),
        setting("idle-poll", "idle=poll"),
    ];
    let loader = Loader::Harness { file: String::new() };
    let settle = Nanos::from_secs(60);
    TuningSpec {
        reboots: Some(RebootPlan { blocks: 3, settle, loader, watchdog: false, cwd: None }),
        ..spec(settings, seconds)
    }
}

fn place(spec: &TuningSpec) -> tempfile::TempDir {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    TuneDirectory::create(&place.path().join("t"), b"", spec)
        .unwrap_or_else(|why| panic!("{}", why.render(false)));
    place
}

/// A process that another test starts also has the lock, until its exec.
fn opened(place: &Path) -> (TuneDirectory, TuningSpec) {
    for _ in 0..1_000 {
        match TuneDirectory::open(&place.join("t")) {
            Ok(opened) => return opened,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    panic!("it cannot be opened")
}

/// One process, from a boot on.
fn process(world: &World, place: &Path) -> Result<BootOutcome, Failure> {
    let (directory, spec) = opened(place);
    let mut blocks = BootBlocks { world, effects: &EFFECTS, elapsed: Nanos::ZERO, inner: 0 };
    go_on(&mut &*world, &directory, &spec, &mut blocks, &Silent)
}

/// Like `process`; a kernel panic reboots.
fn boot_of(world: &World, place: &Path) -> Result<BootOutcome, Failure> {
    match catch_unwind(AssertUnwindSafe(|| process(world, place))) {
        Ok(outcome) => outcome,
        Err(why) if why.is::<Panicked>() => Ok(BootOutcome::Rebooting),
        Err(why) => resume_unwind(why),
    }
}

/// Boots until it has ended, and once more as requested.
fn whole(world: &World, place: &Path) -> Result<TuneResult, Failure> {
    for _ in 0..1_000 {
        match boot_of(world, place) {
            Ok(BootOutcome::Rebooting) => world.boot(),
            Ok(BootOutcome::Ended(ended)) => {
                world.boot();
                return Ok(*ended);
            }
            Err(why) => return Err(why),
        }
    }
    panic!("it never ends")
}

fn found(world: &World, place: &Path) -> TuningDocument {
    let ended = whole(world, place).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert!(ended.broken.is_none());
    ended.document
}

fn is_as_before(world: &World) {
    assert_eq!(*world.cmdline.borrow(), BASE);
    assert!(world.next.borrow().is_none() && !world.has_service.get());
}

const LONG: i64 = 1_000_000;

#[test]
fn a_parameter_that_never_boots_is_excluded_from_tuning() {
    let world = World { refuses: vec!["idle=poll"], ..World::new() };
    let place = place(&asked(LONG));
    let found = found(&world, place.path());
    let answers: Vec<TuneAnswer> = found.settings.iter().map(|setting| setting.answer).collect();
    assert_eq!(answers, [TuneAnswer::Better, TuneAnswer::NoEffect, TuneAnswer::Worse]);
    assert_eq!(
        (found.ended, found.recommended),
        (TuningEnd::Complete, vec!["threaded-irqs".into()])
    );
    assert_eq!(found.not_tried.len(), 1);
    let left_out = &found.not_tried[0];
    assert!(
        left_out.name == "idle-poll" && left_out.why.contains("did not come up"),
        "{left_out:?}"
    );
    is_as_before(&world);
    // Five trials, one of which fell back twice, a boot for each block, and a last boot as before.
    assert_eq!(world.boots.get(), 5 + 1 + found.blocks + 1);
    let seen = world.seen.borrow();
    assert_eq!(seen[0], "panic=10 punctual.tune=1");
    assert_eq!(seen.iter().filter(|words| words.contains("idle=poll")).count(), 2);
    // A boot of 60 s and three blocks of 10 s each: its time counts as the tuning's.
    assert_eq!(found.elapsed, Nanos::from_secs(90 * found.blocks as i64));
}

/// A boot's figure is the mean of its blocks; a requirement holds if it holds in all of them.
#[test]
fn measurements_of_one_boot_are_combined_into_one_block() {
    let world = World::new();
    let place = place(&asked(3_000));
    found(&world, place.path());
    let (directory, spec) = opened(place.path());
    let (blocks, _) = directory.replay(&spec).unwrap();
    assert!(blocks.len() > 8);
    for block in blocks {
        let (figure, worst) = (block.figure.unwrap(), block.worst.unwrap());
        assert!(worst > figure && worst < figure * 1.02, "{figure} {worst}");
    }
}

#[test]
fn a_combination_that_does_not_boot_is_tried_at_most_twice() {
    let world = World { refuses: vec!["threadirqs skew_tick=1"], ..World::new() };
    let mut spec = asked(LONG);
    spec.settings.truncate(2);
    let place = place(&spec);
    let found = found(&world, place.path());
    let both = |words: &&String| words.contains("threadirqs") && words.contains("skew_tick");
    assert_eq!(world.seen.borrow().iter().filter(both).count(), 2);
    assert!(found.failed > 0);
    is_as_before(&world);
}

#[test]
fn a_power_cut_excludes_no_parameter() {
    let world = World { power_cut: Some(2), ..World::new() };
    let place = place(&asked(3_000));
    assert!(found(&world, place.path()).not_tried.is_empty());
    is_as_before(&world);
}

#[test]
fn all_changes_are_reverted_if_the_boot_entry_never_boots() {
    let world = World { refuses: vec!["panic=10"], ..World::new() };
    let place = place(&asked(LONG));
    let why = whole(&world, place.path()).err().expect("a failure").render(false);
    assert!(why.contains("boot entry"), "{why}");
    assert_eq!(world.boots.get(), 2);
    is_as_before(&world);
    // The reason stays, and nothing boots again for it.
    let found = directory::found(&place.path().join("t")).unwrap();
    assert_eq!((found.ended, found.not_tried.len()), (TuningEnd::BlocksFailed, 4));
    assert!(found.not_tried.iter().all(|left| left.why == why), "{:?}", found.not_tried);
    let shown = punctual_report::document::tune(&found, "t").terminal(&Default::default());
    assert!(shown.contains("nothing was measured"), "{shown}");
    assert!(process(&world, place.path()).is_err());
    is_as_before(&world);
}

/// If the boot loader boots the entry again by itself, its number reveals it.
#[test]
fn a_combination_that_panics_is_booted_at_most_twice() {
    for blesses in [false, true] {
        let world = World { panics: vec!["threadirqs skew_tick=1"], blesses, ..World::new() };
        let mut spec = asked(LONG);
        spec.settings.truncate(2);
        let place = place(&spec);
        let found = found(&world, place.path());
        let both = |words: &&String| words.contains("threadirqs") && words.contains("skew_tick");
        let mut boots: Vec<String> = world.seen.borrow().iter().filter(both).cloned().collect();
        boots.dedup();
        assert_eq!(boots.len(), 2, "{boots:?}");
        assert!(found.failed > 0);
        is_as_before(&world);
    }
}

#[test]
fn without_one_time_boot_all_changes_are_reverted() {
    let world = World { cannot_clear: true, ..World::new() };
    let place = place(&asked(LONG));
    let why = whole(&world, place.path()).err().expect("a failure").render(false);
    assert!(why.contains("one-time boots"), "{why}");
    assert_eq!(world.boots.get(), 1);
    world.boot();
    is_as_before(&world);
    let found = directory::found(&place.path().join("t")).unwrap();
    assert!(found.not_tried[0].why.contains("one-time boots"), "{:?}", found.not_tried);
}

/// A boot reverted before it happens, or that cannot be requested, has not failed to come up.
#[test]
fn a_parameter_that_was_never_booted_is_not_excluded() {
    for is_taken_back in [true, false] {
        let world = World::new();
        let place = place(&asked(3_000));
        assert!(matches!(process(&world, place.path()), Ok(BootOutcome::Rebooting)));
        world.boot();
        for _ in 0..3 {
            world.cannot_arm.set(u32::from(!is_taken_back));
            assert_eq!(process(&world, place.path()).is_ok(), is_taken_back);
            if is_taken_back {
                let (directory, _) = opened(place.path());
                assert!(take_back(&mut &world, &directory).is_ok_and(|all| all.is_empty()));
            }
            world.boot();
        }
        let found = found(&world, place.path());
        assert_eq!((found.not_tried, found.failed), (Vec::new(), 0));
        is_as_before(&world);
    }
}

#[test]
fn a_tuning_that_cannot_begin_leaves_no_files() {
    let world = World::new();
    let place = place(&asked(LONG));
    world.cannot_arm.set(1);
    let begun = process(&world, place.path());
    let begun = or_nothing(begun, &mut &world, &place.path().join("t"));
    assert!(begun.is_err() && !place.path().join("t").exists());
    is_as_before(&world);
}

#[test]
fn a_tuning_killed_at_any_step_resumes_to_the_same_result() {
    let spec = asked(3_000);
    let (undisturbed, first) = (World::new(), place(&spec));
    let expected = found(&undisturbed, first.path());
    let steps = undisturbed.fate.count.get();
    assert!(steps > 200, "{steps}");
    // Steps of the first boots and of the last, and some between.
    let chosen = (0..steps).filter(|step| *step < 24 || step + 8 > steps || step % 19 == 0);
    for step in chosen {
        for is_power_cut in [false, true] {
            let (world, place) = (World::new(), place(&spec));
            world.fate.left.set(Some(step));
            let killed = catch_unwind(AssertUnwindSafe(|| whole(&world, place.path()).is_ok()));
            assert!(killed.is_err_and(|why| why.is::<Killed>()), "step {step}");
            world.fate.left.set(None);
            if is_power_cut {
                world.boot();
            }
            assert_eq!(found(&world, place.path()), expected, "step {step}, {is_power_cut}");
            is_as_before(&world);
        }
    }
}
