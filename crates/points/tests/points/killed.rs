//! The record outlives its writer.

use crate::points::roles::witness;
use crate::points::support::{
    Language, Running, amount, collect, files, harvest, in_each_language, passed, private, program,
};
use punctual_points::{Collector, Options};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

in_each_language! {
    after_a_kill_at_any_instant_every_completed_point_is_there_and_no_torn_one,
    a_program_that_executes_another_leaves_its_points,
    a_running_flight_recorder_is_read_and_goes_on,
}

/// The count that a program reported.
fn counted(report: &std::path::Path) -> u64 {
    let mut bytes = [0; 8];
    std::fs::File::open(report).unwrap().read_exact(&mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}

/// Runs a counting program and kills it after a random time; returns the count that it reported by
/// other means.
fn count_and_kill(
    language: Language,
    directory: &std::path::Path,
    mode: &str,
    round: u64,
    mut meanwhile: impl FnMut(),
) -> u64 {
    let mut report = tempfile::NamedTempFile::new().unwrap();
    report.write_all(&[0; 4_096]).unwrap();
    let settings = [
        ("COUNTED", report.path().to_str().unwrap().to_owned()),
        ("PUNCTUAL_POINTS", mode.to_owned()),
        (
            "PUNCTUAL_POINTS_SLOTS",
            if round.is_multiple_of(2) { "1024" } else { "65536" }.to_owned(),
        ),
    ];
    let mut program = Running::start(program(language, directory, "count forever", &settings));
    let read = || counted(report.path());
    let timeout = Instant::now() + Duration::from_secs(300);
    while read() == 0 {
        assert!(
            Instant::now() < timeout && program.0.try_wait().unwrap().is_none(),
            "the program does not count"
        );
        meanwhile();
    }
    // Without a random generator: the low digits of the clock are random enough.
    let until = Instant::now()
        + Duration::from_nanos(
            u64::from(std::time::SystemTime::now().elapsed_digits()) % 2_000_000,
        );
    while Instant::now() < until {
        meanwhile();
    }
    program.end();
    read()
}

trait Digits {
    fn elapsed_digits(&self) -> u32;
}
impl Digits for std::time::SystemTime {
    fn elapsed_digits(&self) -> u32 {
        self.duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .subsec_nanos()
            .wrapping_mul(2_654_435_761)
    }
}

/// `POINTS_KILLS=1000` for the full number.
fn after_a_kill_at_any_instant_every_completed_point_is_there_and_no_torn_one(language: Language) {
    let directory = private();
    let kills = amount("POINTS_KILLS", 45);
    let (mut total, mut torn) = (0, 0);
    for round in 0..kills {
        let mode = ["flight", "stream", "collected"][(round % 3) as usize];
        let collector = (mode == "collected").then(|| {
            Collector::start(Options::for_recording().in_directory(directory.path())).unwrap()
        });
        let mut kept = crate::points::support::Kept::default();
        let (report, collected) = match collector {
            Some(mut collector) => {
                let report = count_and_kill(language, directory.path(), "", round, || {
                    collector.poll_points(&mut |source, events| kept.take(source, events));
                });
                (report, collector.finish(&mut |source, events| kept.take(source, events)))
            }
            None => {
                let report = count_and_kill(language, directory.path(), mode, round, || {});
                let (collected, harvest) = harvest(directory.path());
                kept = harvest;
                (report, collected)
            }
        };
        assert_eq!((collected.sources.len(), collected.findings.len()), (1, 0), "{collected:?}");
        let source = &collected.sources[0];
        let values = &kept.values(&collected, "counted")[0];
        // One point may be complete but not reported yet; one may have been begun.
        assert!(
            (report..=report + 2).contains(&passed(source)),
            "round {round} {mode}: told {report}, {source:?}"
        );
        assert!(source.torn <= 1 && source.recorded == values.len() as u64, "{source:?}");
        assert!(
            values.iter().all(|[n, check]| *check == witness(*n)),
            "a torn point was taken for a whole one"
        );
        assert!(values.is_sorted_by(|a, b| a[0] < b[0]));
        match mode {
            "flight" => {
                // The last ones, without a gap, and no reported one is missing at the end.
                assert!(values.windows(2).all(|pair| pair[0][0] + 1 == pair[1][0]));
                assert!(
                    values.last().is_some_and(|last| last[0] + 1 >= report as i64),
                    "{source:?}"
                );
            }
            "stream" => assert!(
                values.iter().enumerate().all(|(place, value)| value[0] == place as i64),
                "the first ones, without a gap"
            ),
            _ => {}
        }
        assert_eq!(files(directory.path()), 0);
        total += passed(source);
        torn += source.torn;
    }
    println!("{kills} kills, {total} points accounted for, {torn} torn ones recognised");
}

fn a_program_that_executes_another_leaves_its_points(language: Language) {
    let directory = private();
    let again = [("AGAIN", "1".to_owned())];
    let mut program = Running::start(program(language, directory.path(), "exec", &again));
    let timeout = Instant::now() + Duration::from_secs(300);
    while std::fs::read(format!("/proc/{}/comm", program.0.id()))
        .is_ok_and(|comm| comm != b"sleep\n")
    {
        assert!(Instant::now() < timeout);
        std::thread::sleep(Duration::from_millis(1));
    }
    let (collected, kept) = harvest(directory.path());
    program.end();
    assert_eq!(collected.names, ["before exec"]);
    // One of each program with points that the process executed.
    assert_eq!(kept.events.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(files(directory.path()), 0);
}

/// The content of a running flight recorder. On a busy machine all of it may be overwritten while
/// it is read; then it is read again.
fn window(directory: &std::path::Path) -> Vec<[i64; 2]> {
    for _ in 0..50 {
        let (collected, kept) = harvest(directory);
        if let Some(values) = kept.values(&collected, "counted").pop() {
            return values;
        }
    }
    panic!("nothing is ever read of a running flight recorder");
}

fn a_running_flight_recorder_is_read_and_goes_on(language: Language) {
    let directory = private();
    let report = tempfile::NamedTempFile::new().unwrap();
    report.as_file().set_len(4_096).unwrap();
    let settings = [
        ("COUNTED", report.path().to_str().unwrap().to_owned()),
        ("PUNCTUAL_POINTS", "flight".to_owned()),
        // A size at which reading is faster than writing, also on a busy machine.
        ("PUNCTUAL_POINTS_SLOTS", "524288".to_owned()),
    ];
    let mut program =
        Running::start(program(language, directory.path(), "count forever", &settings));
    while counted(report.path()) < 100_000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut before = -1;
    for _ in 0..3 {
        let values = &window(directory.path());
        assert!(
            values.windows(2).all(|pair| pair[0][0] + 1 == pair[1][0]),
            "a window without gaps"
        );
        assert!(values.iter().all(|[n, check]| *check == witness(*n)));
        let newest = values.last().expect("it counts")[0];
        assert!(newest > before, "it goes on");
        before = newest;
        while counted(report.path()) as i64 <= newest + 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // A collector temporarily turns it into a stream.
    let mut collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let mut kept = crate::points::support::Kept::default();
    let begun = counted(report.path());
    // On a busy machine the program may not run for a while.
    for round in 0.. {
        collector.poll_points(&mut |source, events| kept.take(source, events));
        std::thread::sleep(Duration::from_millis(1));
        if round >= 20 && counted(report.path()) > begun + 1_000 {
            break;
        }
    }
    let collected = collector.finish(&mut |source, events| kept.take(source, events));
    let source = &collected.sources[0];
    let values = &kept.values(&collected, "counted")[0];
    assert!(
        values.is_sorted_by(|a, b| a[0] < b[0])
            && values.iter().all(|[n, check]| *check == witness(*n))
    );
    let span = (values.last().unwrap()[0] - values[0][0]) as u64 + 1;
    assert!(
        span <= passed(source),
        "between first and last every point is accounted for: {span}, {source:?}"
    );
    std::thread::sleep(Duration::from_millis(100));
    let newest = window(directory.path()).last().map(|value| value[0]);
    assert!(newest > values.last().map(|value| value[0]), "it is a flight recorder again");
    program.end();
    let collector =
        Collector::start(Options::for_harvest().remove(true).in_directory(directory.path()))
            .unwrap();
    let _ = collect(collector, &mut [], Duration::ZERO);
    assert_eq!(files(directory.path()), 0);
}
