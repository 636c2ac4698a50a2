//! `punctual measure mutex`: locks exclude, the integral is π, and the shapes hold on any machine.

use crate::common::measured::{agrees, figure, measured, notes, rows, table};
use crate::common::{self, Place, text};
use serde_json::Value;

fn all_agree(summary: &Value, what: &str) {
    assert!(agrees(summary, what) >= 3, "{what}");
}

/// "Others took the lock N times", which ones, and the log of the longest wait are the same
/// acquisitions: those after the request.
#[test]
fn who_was_overtaken_how_often_is_what_the_log_holds() {
    let place = Place::with("");
    let summary = measured(
        &place,
        "mutex --policy other --duration 1min --threads 4 -s lock=normal -s sums=shared \
         -s terms=400 -s rounds=60",
    );
    let table = |name: &str| table(&summary, name);
    let Some(by) = table("overtaken-by") else {
        println!(
            "SKIPPED: nobody was overtaken in the longest wait, for lack of CPUs that run at once"
        );
        return;
    };
    let title = by["title"].as_str().expect("a title");
    let stated: u64 = title
        .split("others took the lock ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("a count")
        .parse()
        .expect("a number");
    let sum = |rows: &[Value], column: usize| {
        rows.iter().filter_map(|row| row[column].as_f64()).sum::<f64>() as u64
    };
    assert_eq!(sum(by["rows"].as_array().expect("rows"), 1), stated, "{title}");
    let longest = table("longest-wait").expect("the log of the longest wait");
    let rows = longest["rows"].as_array().expect("rows");
    let before = usize::from(
        longest["title"]
            .as_str()
            .expect("a title")
            .contains("the first row is the holder at the time of the request"),
    );
    assert_eq!(sum(&rows[before..], 2), stated, "{longest}");
    // Of the shown rows only the first is from before the request.
    let times = rows[before..].iter().filter_map(|row| row[0].as_f64());
    assert!(times.clone().all(|after| after >= 0.0), "{longest}");
    assert!(before == 0 || rows[0][0].as_f64().is_some_and(|at| at < 0.0), "{longest}");
}

#[test]
fn every_lock_excludes_and_gives_pi() {
    let place = Place::with("");
    for lock in ["normal", "pi", "robust", "adaptive", "spin", "ticket", "rwlock"] {
        // Spinning threads delay each other if there are fewer CPUs than threads: few rounds.
        let line = "mutex --threads 3 -s rounds=4 -s terms=600 --duration 60s";
        let summary = measured(&place, &format!("{line} -s lock={lock}"));
        let series = summary["phases"][0]["series"].as_array().unwrap();
        assert_eq!(
            series.iter().map(|series| series["count"].as_u64().unwrap()).collect::<Vec<_>>(),
            [800; 3],
            "{lock}"
        );
        all_agree(&summary, lock);
        assert_eq!(notes(&summary)["validations"][0]["claimed"], 4, "{lock}: rounds");
        assert_eq!(notes(&summary)["validations"][1]["claimed"], 2_400, "{lock}: acquisitions");
        assert_eq!(figure(&summary, "jain-index"), Some(1.0), "{lock}");
    }
}

/// Tickets are served in their order: a thread with a ticket waits for those ahead, and others
/// cannot overtake, however often a thread is preempted before it draws.
#[test]
fn a_ticket_lock_lets_each_other_thread_overtake_at_most_once() {
    let place = Place::with("");
    let summary = measured(&place, "mutex -s lock=ticket --threads 4 -s rounds=20 --duration 60s");
    let threads = rows(&summary, "threads");
    for row in threads {
        let overtaken = row[4].as_f64().expect("it is known of tickets");
        assert!(overtaken <= 3.0, "{threads:#?}");
    }
}

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn a_shared_sum_is_slower_and_causes_more_futex_calls() {
    let place = Place::with("");
    let variant = |sums: &str| {
        let line = format!("mutex -s sums={sums} -s rounds=60 --duration 60s");
        let summary = measured(&place, &line);
        all_agree(&summary, sums);
        summary
    };
    let (shared, own) = (variant("shared"), variant("own"));
    let of = |name: &str| figure(&shared, name).zip(figure(&own, name));
    let (slow, fast) = of("round-median").unwrap();
    assert!(
        slow > 2.0 * fast,
        "a round with a shared sum takes {slow} ns, with own sums {fast} ns"
    );
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIPPED: contention lacks a second CPU");
        return;
    }
    match of("futex-calls-round") {
        Some((many, few)) => {
            assert!(many > 10.0 * few + 5.0, "futex calls a round: {many} and {few}")
        }
        None => println!("SKIPPED: calls of futex(2) are not counted here"),
    }
    let (many, few) = of("switches-round").unwrap();
    assert!(many > few, "switches a round: {many} and {few}");
}

#[test]
fn the_longest_wait_names_the_lock_holder() {
    let place = Place::with("");
    let summary = measured(&place, "mutex --threads 2 --count 50 -s hold=200us -s terms=200");
    let rows = rows(&summary, "longest-wait");
    let last = rows.last().unwrap();
    assert!(last[1].as_str().unwrap().ends_with("holds it"), "{rows:?}");
    let longest = summary["phases"][0]["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| series["max"].as_f64().unwrap());
    assert_eq!(
        last[0].as_f64().unwrap(),
        longest.fold(0.0, f64::max),
        "the last row is the longest sample"
    );
    let times: Vec<f64> = rows.iter().filter_map(|row| row[0].as_f64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    for series in summary["phases"][0]["series"].as_array().unwrap() {
        assert_eq!(series["count"], 50, "as many samples as were asked for");
    }
}

#[test]
fn a_ticket_lock_has_a_fairness_index_above_one_half() {
    let place = Place::with("");
    let summary = measured(&place, "mutex -s lock=ticket --threads 2 -s rounds=10 --duration 60s");
    let rows = rows(&summary, "threads");
    assert_eq!(rows.len(), 2);
    let jain = figure(&summary, "jain-index-short").unwrap();
    assert!((0.5..=1.0).contains(&jain), "{jain}");
}

#[test]
fn mutex_threads_run_with_their_own_priorities() {
    if !common::is_root("priorities of real-time threads") {
        return;
    }
    let place = Place::with("");
    let line = "mutex --policy fifo --threads 2 --cpus 0 -s lock=pi -s 'priorities=[30, 20]'";
    let summary = measured(&place, &format!("{line} -s rounds=3 --duration 60s"));
    let series = summary["phases"][0]["series"].as_array().unwrap();
    let scheduling: Vec<&str> =
        series.iter().filter_map(|series| series["scheduling"].as_str()).collect();
    if scheduling.iter().any(|one| one.starts_with("SCHED_OTHER")) {
        println!("SKIPPED: real-time scheduling is refused here");
        return;
    }
    assert_eq!(scheduling, ["SCHED_FIFO 30", "SCHED_FIFO 20"]);
    all_agree(&summary, "priorities");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::with("");
    for (settings, said) in [
        (&["lock=pthread"][..], "not a lock"),
        (&["terms=3"], "are fewer than"),
        (&["priorities=[1, 2, 3, 4, 5]"], "5 priorities for 4 threads"),
        (&["priorities=[2, 1]"], "only policies fifo and rr"),
        (&["terms=99999999999999999999"], ""),
        (&["hold=2s"], "hold"),
    ] {
        let settings: Vec<&str> = settings.iter().flat_map(|setting| ["-s", setting]).collect();
        let refused = place.punctual(&[&["measure", "mutex", "-q"], &settings[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{settings:?}: {}", text(&refused));
        assert!(text(&refused).contains(said), "{settings:?}: {}", text(&refused));
    }
    let line = "measure mutex -q --policy fifo -s lock=spin --cpus all --threads per-cpu";
    let refused = place.line(line);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("keep every CPU busy"), "{}", text(&refused));
}
