//! Every point is read or counted.

use crate::points::roles::witness;
use crate::points::support::{
    Language, Running, amount, collect, files, in_each_language, passed, private, program,
};
use punctual_core::event::EventKind;
use punctual_points::{Collector, Options};
use std::time::Duration;

in_each_language! {
    of_eight_threads_and_a_slow_collector_every_point_is_read_or_counted,
    two_programs_at_once_with_their_own_sources_and_shared_names,
    a_signal_handler_that_interrupts_a_point_records_its_own,
    an_instant_lies_between_what_the_program_read_before_and_after,
}

/// `POINTS_IN_TEST=10000000` for the full number.
fn of_eight_threads_and_a_slow_collector_every_point_is_read_or_counted(language: Language) {
    let directory = private();
    let points = amount("POINTS_IN_TEST", 1_600_000) / 8;
    let settings = [
        ("THREADS", "8".to_owned()),
        ("POINTS", points.to_string()),
        ("PUNCTUAL_POINTS_SLOTS", "4096".to_owned()),
    ];
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let mut programs = [Running::start(program(language, directory.path(), "threads", &settings))];
    let (collected, kept) = collect(collector, &mut programs, Duration::from_millis(3));
    assert_eq!(collected.findings, []);
    assert_eq!(collected.sources.len(), 8);
    for (source, values) in collected.sources.iter().zip(kept.values(&collected, "counted")) {
        assert_eq!((passed(source), source.torn, source.overwritten), (points, 0, 0), "{source:?}");
        assert_eq!(source.recorded, values.len() as u64);
        assert!(values.iter().all(|[n, check]| *check == witness(*n)));
        assert!(values.is_sorted_by(|a, b| a[0] < b[0]), "each point once, in their order");
        assert!(source.recorded >= 4_096 - 64, "what finds room is recorded");
    }
    let (recorded, dropped) = collected
        .sources
        .iter()
        .fold((0, 0), |sum, source| (sum.0 + source.recorded, sum.1 + source.dropped));
    println!("{recorded} read + {dropped} dropped = {} passed", 8 * points);
    assert_eq!(files(directory.path()), 0, "the file of a dead program that was read is removed");
}

fn two_programs_at_once_with_their_own_sources_and_shared_names(language: Language) {
    let directory = private();
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let settings = |points: u64| [("THREADS", "2".to_owned()), ("POINTS", points.to_string())];
    let mut programs = [100, 200].map(|points| {
        Running::start(program(language, directory.path(), "threads", &settings(points)))
    });
    let (collected, kept) = collect(collector, &mut programs, Duration::from_millis(1));
    let mut counts: Vec<(u32, u64, u64)> = collected
        .sources
        .iter()
        .map(|source| (source.pid, source.recorded, passed(source)))
        .collect();
    counts.sort_by_key(|count| count.1);
    let [first, second] = programs.each_ref().map(|program| program.0.id());
    assert_eq!(
        counts,
        [(first, 100, 100), (first, 100, 100), (second, 200, 200), (second, 200, 200)]
    );
    assert_eq!(collected.names, ["counted"]);
    assert_eq!(kept.events.len(), 4);
}

fn a_signal_handler_that_interrupts_a_point_records_its_own(language: Language) {
    let directory = private();
    let settings =
        [("POINTS", "900000".to_owned()), ("PUNCTUAL_POINTS_SLOTS", "1048576".to_owned())];
    // The ring holds all of them, so none is dropped.
    let collector =
        Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
    let mut programs = [Running::start(program(language, directory.path(), "signals", &settings))];
    let (collected, kept) = collect(collector, &mut programs, Duration::from_millis(1));
    let all = |name: &str| kept.values(&collected, name).concat();
    let (counted, written) = (all("counted"), all("written"));
    let (handled, report) = (all("in the handler"), all("handled"));
    assert_eq!(counted.len() as i64, written[0][0], "the program counted what it wrote");
    assert_eq!(handled.len() as i64, report[0][0], "the handler counted how often it ran");
    println!("{} points, interrupted {} times", counted.len(), handled.len());
    assert!(counted.iter().chain(&handled).all(|[n, check]| *check == witness(*n)));
    assert!(
        collected
            .sources
            .iter()
            .all(|source| (source.dropped, source.torn, source.overwritten) == (0, 0, 0)),
        "{:?}",
        collected.sources
    );
}

fn an_instant_lies_between_what_the_program_read_before_and_after(language: Language) {
    for clock in ["", "monotonic"] {
        let directory = private();
        let settings =
            [("POINTS", "20000".to_owned()), ("PUNCTUAL_POINTS_CLOCK", clock.to_owned())];
        let collector =
            Collector::start(Options::for_recording().in_directory(directory.path())).unwrap();
        let mut programs =
            [Running::start(program(language, directory.path(), "clock", &settings))];
        let (collected, kept) = collect(collector, &mut programs, Duration::from_millis(1));
        let error = collected.clock_error.expect("there are points").ns();
        assert_eq!(collected.sources[0].recorded, 20_000);
        let before = |event: &punctual_core::Event| match event.what {
            EventKind::Point { values, .. } => values[0],
            _ => unreachable!("only points"),
        };
        for pair in kept.events[0].windows(2) {
            let (at, before, after) = (pair[0].at.ns(), before(&pair[0]), before(&pair[1]));
            assert!(
                before - error <= at && at <= after + error,
                "{before} {at} {after}, error {error}"
            );
        }
        println!("clock {clock:?}: error at most {error} ns");
    }
}
