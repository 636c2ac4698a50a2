//! Threads and processes that come and go.

use crate::points::roles::witness;
use crate::points::support::{
    Kept, Language, Running, collect, files, harvest, in_each_language, passed, private, program,
};
use punctual_core::event::{EventKind, PointKind};
use punctual_points::{Collector, CollectorStartError, Options};
use std::path::Path;
use std::time::Duration;

in_each_language! {
    a_forked_child_has_a_record_of_its_own,
    rings_of_threads_that_ended_are_used_again,
    points_of_more_threads_than_there_are_rings_are_counted,
    every_kind_of_point_arrives_as_it_was_passed,
    there_is_one_collector_and_without_it_nothing_is_recorded,
    a_file_under_the_name_of_one_that_was_read_is_another,
    the_next_collector_removes_what_dead_programs_left,
}

/// Not of a running one, and not of one that asked for points itself.
fn the_next_collector_removes_what_dead_programs_left(language: Language) {
    let directory = private();
    let role = |points: u64, asks: &str| {
        let settings = [
            ("THREADS", "1".to_owned()),
            ("POINTS", points.to_string()),
            ("PUNCTUAL_POINTS", asks.to_owned()),
        ];
        program(language, directory.path(), "threads", &settings)
    };
    let collected = || {
        let options =
            Options::for_recording().in_directory(directory.path()).limit_to_processes(&[1]);
        drop(Collector::start(options).unwrap());
        files(directory.path())
    };
    assert!(role(10, "on").status().unwrap().success());
    assert_eq!((files(directory.path()), collected()), (1, 0));
    assert!(role(10, "flight").status().unwrap().success());
    let mut runs = Running::start(role(u64::MAX >> 1, "on"));
    while complete(directory.path()) < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(collected(), 2);
    runs.end();
    assert_eq!(collected(), 1, "the flight recorder's");
}

/// The files of points whose header was written: its first word comes last.
fn complete(directory: &Path) -> usize {
    let all = std::fs::read_dir(directory).unwrap().flatten();
    let begun = all.filter_map(|entry| std::fs::read(entry.path()).ok());
    begun.filter(|bytes| bytes.get(..8).is_some_and(|word| word != [0; 8])).count()
}

/// A forked child has a file, and the program that it executes makes another after the collector
/// has removed the first.
fn a_file_under_the_name_of_one_that_was_read_is_another(language: Language) {
    let (made, collected) = (private(), private());
    let settings = [("PUNCTUAL_POINTS", "stream".to_owned())];
    let program = program(language, made.path(), "kinds", &settings);
    assert!(Running::start(program).0.wait().unwrap().success());
    let mut all = std::fs::read_dir(made.path()).unwrap().flatten().map(|entry| entry.path());
    let file = all.find(|path| path.extension().is_some_and(|is| is == "points"));
    let file = file.expect("its points");
    let options = Options::for_recording().in_directory(collected.path());
    let mut collector = Collector::start(options).unwrap();
    let mut kept = Kept::default();
    for times in 1..=2 {
        let unfinished = collected.path().join("unfinished");
        std::fs::copy(&file, &unfinished).unwrap();
        std::fs::rename(unfinished, collected.path().join(file.file_name().unwrap())).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        collector.poll_points(&mut |source, events| kept.take(source, events));
        assert_eq!((kept.events.len(), files(collected.path())), (times, 0));
    }
    assert!(!kept.events[0].is_empty());
    assert_eq!(kept.events[0].len(), kept.events[1].len());
}

fn a_forked_child_has_a_record_of_its_own(language: Language) {
    let directory = private();
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let mut programs = [Running::start(program(
        language,
        directory.path(),
        "fork",
        &[("POINTS", "5000".to_owned())],
    ))];
    let (collected, kept) = collect(collector, &mut programs, Duration::from_millis(1));
    let parent = programs[0].0.id();
    assert_eq!(collected.sources.len(), 2);
    for ((source, values), events) in
        collected.sources.iter().zip(kept.values(&collected, "in both")).zip(&kept.events)
    {
        assert_eq!(
            (source.pid == parent, source.recorded),
            if source.pid == parent { (true, 5_001) } else { (false, 5_001) }
        );
        assert_eq!(passed(source), source.recorded);
        assert_eq!(values.len(), 5_000);
        assert!(
            values.iter().enumerate().all(|(n, value)| *value == [n as i64, witness(n as i64)])
        );
        let other = if source.pid == parent { 0 } else { events.len() - 1 };
        let EventKind::Point { point, .. } = events[other].what else {
            unreachable!("only points")
        };
        assert_eq!(
            collected.names[point.0 as usize],
            if source.pid == parent { "before the fork" } else { "in the child" }
        );
    }
    assert_eq!(files(directory.path()), 0);
}

fn rings_of_threads_that_ended_are_used_again(language: Language) {
    let directory = private();
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let settings = [
        ("THREADS", "400".to_owned()),
        ("POINTS", "50".to_owned()),
        ("PAUSE_US", "200".to_owned()),
        ("PUNCTUAL_POINTS_SLOTS", "1024".to_owned()),
    ];
    let mut programs =
        [Running::start(program(language, directory.path(), "short threads", &settings))];
    let (collected, _) = collect(collector, &mut programs, Duration::from_micros(500));
    let rings: Vec<_> = collected.sources.iter().filter(|source| !source.ringless).collect();
    assert_eq!(rings.len(), 400, "{:?}", collected.sources.iter().find(|source| source.ringless));
    assert!(rings.iter().all(|source| (source.recorded, passed(source)) == (50, 50)));
}

fn points_of_more_threads_than_there_are_rings_are_counted(language: Language) {
    let directory = private();
    let settings = [
        ("THREADS", "300".to_owned()),
        ("POINTS", "3".to_owned()),
        ("PAUSE_US", "0".to_owned()),
        ("PUNCTUAL_POINTS", "stream".to_owned()),
        ("PUNCTUAL_POINTS_SLOTS", "1024".to_owned()),
    ];
    assert!(
        program(language, directory.path(), "short threads", &settings).status().unwrap().success()
    );
    let (collected, _) = harvest(directory.path());
    let (ringless, rings): (Vec<_>, Vec<_>) =
        collected.sources.iter().partition(|source| source.ringless);
    assert_eq!((rings.len(), ringless.len(), ringless[0].dropped), (256, 1, 44 * 3));
    assert!(rings.iter().all(|source| source.recorded == 3));
}

fn every_kind_of_point_arrives_as_it_was_passed(language: Language) {
    let directory = private();
    assert!(program(language, directory.path(), "kinds", &[]).status().unwrap().success());
    let (collected, kept) = harvest(directory.path());
    let seen: Vec<(String, PointKind, Vec<i64>)> = kept.events[0]
        .iter()
        .map(|event| match event.what {
            EventKind::Point { point, kind, count, values } => (
                collected.names[point.0 as usize].chars().take(20).collect(),
                kind,
                values[..usize::from(count)].to_vec(),
            ),
            _ => unreachable!("only points"),
        })
        .collect();
    let odd = "odd \u{1b}[31m name";
    let expected: Vec<(&str, PointKind, Vec<i64>)> = vec![
        (odd, PointKind::Point, vec![]),
        (odd, PointKind::Point, vec![-1]),
        (odd, PointKind::Point, vec![i64::MIN, i64::MAX]),
        ("work", PointKind::Begin, vec![1]),
        ("work", PointKind::End, vec![2, 3]),
        ("scope", PointKind::Begin, vec![]),
        (odd, PointKind::Begin, vec![5]),
        ("scope", PointKind::End, vec![]),
        (odd, PointKind::End, vec![6, 7]),
        ("\0", PointKind::Point, vec![]),
        ("a name that is longe", PointKind::Point, vec![]),
    ];
    assert_eq!(
        seen,
        expected
            .into_iter()
            .map(|(name, kind, values)| (name.to_owned(), kind, values))
            .collect::<Vec<_>>()
    );
    assert_eq!(collected.names.iter().map(String::len).max(), Some(120));
}

fn there_is_one_collector_and_without_it_nothing_is_recorded(language: Language) {
    let directory = private();
    let settings = [("THREADS", "1".to_owned()), ("POINTS", "1000".to_owned())];
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    assert!(matches!(
        Collector::start(Options::for_recording().in_directory(directory.path())),
        Err(CollectorStartError::Busy(_))
    ));
    drop(collector);
    assert!(program(language, directory.path(), "threads", &settings).status().unwrap().success());
    let (collected, _) = harvest(directory.path());
    assert_eq!(collected.sources, []);
    assert_eq!(files(directory.path()), 0);
    // Processes that are not requested are not touched.
    let collector = Collector::start(
        Options::for_recording().in_directory(directory.path()).limit_to_processes(&[1]),
    )
    .unwrap();
    let mut programs = [Running::start(program(language, directory.path(), "threads", &settings))];
    let (collected, _) = collect(collector, &mut programs, Duration::from_millis(1));
    assert_eq!(collected.sources, []);
}

#[test]
fn what_lies_in_the_directory_and_is_no_file_of_points_is_not_touched() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = private();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("1.1.0.points"), vec![7; 300_000]).unwrap();
    std::fs::write(path("1.1.1.points"), b"PNCTLPT1 but short").unwrap();
    symlink("/etc/passwd", path("1.1.2.points")).unwrap();
    std::fs::hard_link(path("1.1.0.points"), path("1.1.3.points")).unwrap();
    std::fs::create_dir(path("1.1.4.points")).unwrap();
    std::fs::write(path("1.1.5.points"), b"").unwrap();
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let collected = collector.finish(&mut |_, _| panic!("there are no points"));
    assert_eq!(collected.sources, []);
    assert!(
        collected.findings.len() >= 3
            && collected.findings.iter().all(|finding| finding.id == "points-unread"),
        "{:?}",
        collected.findings
    );
    assert_eq!(std::fs::read(path("1.1.0.points")).unwrap(), vec![7; 300_000]);
    assert_eq!(files(directory.path()), 6);
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(
        Collector::start(Options::for_recording().in_directory(directory.path())),
        Err(CollectorStartError::Directory(..))
    ));
}
