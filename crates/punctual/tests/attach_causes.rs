//! Whether `punctual attach` identifies the delays of cycles: unmodified programs are delayed in
//! known ways at recorded instants (attach_causes/inject.c, preloaded into them), and every delayed
//! cycle is checked.

mod guests;

use crate::common::quota::Quota;
use crate::common::{Place, has_program, is_root, text};
use punctual_core::cycle::Cycle;
use punctual_core::{CauseKind, CpuSet, Nanos, Split};
use punctual_explain::cycles::{Constraint, CycleFollower, MainDelay, find_delay, infer_cycles};
use punctual_record::Backend;
use punctual_session::cycles::source::CycleRecorder;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The period of all programs, in ns.
const PERIOD: &str = "4000000";
/// Serialises the tests: they run on one CPU, and their delays would coincide.
static ALONE: Mutex<()> = Mutex::new(());
/// The number of a program's cycles: some for each cause (more for docs/notes/attach.md).
const CYCLES: u64 = 400;
/// The number of cycles with a quota, with which each takes longer.
const CYCLES_WITH_QUOTA: u64 = 260;
/// The waits that cycles are inferred from.
const LEARNING: usize = 200;
/// The shortest delay that counts.
const LEAST: Nanos = Nanos::from_micros(200);

/// The injected causes, in the order of inject.c: the name, the true cause, and the culprit.
const CAUSES: [(&str, CauseKind, Option<&str>); 8] = [
    ("higher priority", CauseKind::Preempted, Some("hog")),
    ("lock of a lower priority", CauseKind::Lock, Some("holder")),
    ("page faults", CauseKind::PageFault, None),
    ("fsync", CauseKind::Io, None),
    ("slow peer over TCP", CauseKind::Waiting, Some("peer")),
    ("interrupts", CauseKind::Irq, None),
    ("its own work", CauseKind::OwnExecution, None),
    ("quota of a control group", CauseKind::Throttled, None),
];

/// The tasks that inject.c starts.
const INJECTORS: [&str; 4] = ["hog", "holder", "peer", "storm"];

/// A delay as inject.c recorded it.
#[derive(Clone, Copy, Debug)]
struct Injected {
    begin: i64,
    end: i64,
    cause: usize,
    tid: u32,
}

/// The results for the cycles that a cause affected.
#[derive(Default)]
struct Score {
    affected: u64,
    right: u64,
    unknown: Nanos,
    whole: Nanos,
    wrong: BTreeMap<String, u64>,
    /// Cycles that other tasks of this machine delayed by more.
    foreign: u64,
}

fn injector() -> Option<Place> {
    if !is_root("attaching to programs") {
        return None;
    }
    let place = Place::with("");
    if let Some(compiled) = compiled() {
        let to = place.path().join("inject.so");
        std::fs::copy(compiled.join("inject.so"), to).expect("it is there");
        return Some(place);
    }
    has_program("cc", "gcc").then(|| {
        build_injector(place.path());
        place
    })
}

/// The injector, compiled outside of the guest that runs it.
fn compiled() -> Option<PathBuf> {
    std::env::var_os("PUNCTUAL_INJECTOR").map(PathBuf::from)
}

fn build_injector(place: &Path) {
    std::fs::write(place.join("inject.c"), include_bytes!("attach_causes/inject.c")).unwrap();
    compile(place, "cc", &["-O1", "-shared", "-fPIC", "-pthread", "-o", "inject.so", "inject.c"]);
}

fn build_executor(place: &Path) {
    std::fs::write(place.join("executor.cpp"), include_bytes!("attach_causes/executor.cpp"))
        .unwrap();
    compile(place, "c++", &["-O1", "-o", "executor", "executor.cpp"]);
}

fn compile(place: &Path, compiler: &str, arguments: &[&str]) {
    let built = Command::new(compiler).args(arguments).current_dir(place).output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
}

/// Whether cycles come from events instead of BPF programs.
fn by_events() -> bool {
    std::env::var("PUNCTUAL_BACKEND").is_ok_and(|word| word == "tracefs")
}

fn backend() -> Backend {
    if by_events() { Backend::Tracefs } else { Backend::Btf }
}

fn cycles(usual: u64) -> u64 {
    std::env::var("PUNCTUAL_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Starts the program with the injector in it, on the last CPU.
fn delayed(place: &Place, command: &[String], more: &[(&str, &str)]) -> Child {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).current_dir(place.path()).stdin(Stdio::null());
    process.stdout(Stdio::null()).stderr(Stdio::null());
    process.env("LD_PRELOAD", place.path().join("inject.so")).env("INJECT_LOG", "log");
    process.env("INJECT_CPU", last_cpu().to_string()).envs(more.iter().copied());
    process.spawn().unwrap()
}

fn last_cpu() -> usize {
    online().iter().max().expect("there is one")
}

fn online() -> CpuSet {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    text.trim().parse().unwrap()
}

/// The cycles of each thread with the breakdown of a typical one, until the program has ended.
fn attend(start: impl FnOnce() -> Child) -> BTreeMap<u32, (Vec<Cycle>, Split)> {
    let mut attacher = CycleRecorder::start(&online(), false, true, backend()).expect("it starts");
    let mut child = start();
    attacher.watch_process(child.id()).expect("it is watched");
    let calls = punctual_record::syscall_names();
    let mut waits: BTreeMap<u32, Vec<Cycle>> = BTreeMap::new();
    let mut chosen = BTreeMap::new();
    loop {
        let has_ended = child.try_wait().unwrap().is_some();
        attacher.drain(&mut |cycle| waits.entry(cycle.tid).or_default().push(cycle));
        for (tid, waits) in &waits {
            if waits.len() < LEARNING || chosen.contains_key(tid) {
                continue;
            }
            if let Ok(found) = infer_cycles(waits, Constraint::default(), &calls) {
                let site = found.site;
                let selected = attacher.select_wait(*tid, Some((site.call, site.by_argument)));
                selected.expect("it is selected");
                println!("{tid}: {found:?}");
                chosen.insert(*tid, found);
            }
        }
        if has_ended {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(attacher.lost_records(), 0);
    let of = |(tid, mut waits): (u32, Vec<Cycle>)| {
        waits.sort_by_key(|cycle| cycle.again);
        let mut follower = CycleFollower::new(chosen.get(&tid)?);
        let cycles = waits.into_iter().filter_map(|wait| follower.push(wait));
        let cycles: Vec<Cycle> = cycles.map(|measured| measured.cycle).collect();
        let mut by_time: Vec<&Cycle> = cycles.iter().collect();
        by_time.sort_by_key(|cycle| cycle.response_time());
        let typical = by_time.get(by_time.len() / 2)?.total_split();
        Some((tid, (cycles, typical)))
    };
    waits.into_iter().filter_map(of).collect()
}

fn injected(place: &Place) -> Vec<Injected> {
    let log = std::fs::read(place.path().join("log")).unwrap();
    let word = |at: usize| i64::from_ne_bytes(log[at..at + 8].try_into().unwrap());
    let half = |at: usize| u32::from_ne_bytes(log[at..at + 4].try_into().unwrap());
    let record = |at: usize| Injected {
        begin: word(at),
        end: word(at + 8),
        cause: half(at + 16) as usize,
        tid: half(at + 20),
    };
    (0..word(0) as usize).map(|number| record(8 + 24 * number)).collect()
}

fn is_right(injected: &Injected, delay: &MainDelay) -> bool {
    let (_, part, culprit) = CAUSES[injected.cause];
    let by = delay.by.map(|by| by.name.to_string());
    delay.part == part && culprit.is_none_or(|culprit| by.as_deref() == Some(culprit))
}

/// Whether a delay is not the injected one. A program with a quota is not a real-time task: other
/// tasks have its CPU for longer than the quota takes it. On a kernel without preemption, other
/// tasks of this machine delay a real-time one as well. Steal is the host's, including a late timer
/// interrupt.
fn is_foreign(injected: &Injected, delay: &MainDelay) -> bool {
    let (_, part, _) = CAUSES[injected.cause];
    let has_quota = part == CauseKind::Throttled;
    match delay.part {
        CauseKind::TimerIrqDelay | CauseKind::Steal => true,
        CauseKind::Runqueue => has_quota && delay.by.is_some(),
        CauseKind::NonPreemptible => {
            delay.by.is_some_and(|by| !INJECTORS.contains(&by.name.to_string().as_str()))
        }
        _ => false,
    }
}

/// Whether it was injected during the measured cycles: not before the first, nor after the last
/// that ended. A thread without any has missed all of them.
fn is_within(injected: &Injected, of: Option<&(Vec<Cycle>, Split)>) -> bool {
    let ends = of.and_then(|(cycles, _)| cycles.first().zip(cycles.last()));
    ends.is_none_or(|(first, last)| {
        first.release.ns() <= injected.begin && injected.begin < last.again.ns()
    })
}

/// The reported cause of every delayed cycle.
fn score(all: &[Injected], cycles: &BTreeMap<u32, (Vec<Cycle>, Split)>) -> Vec<Score> {
    let mut scores: Vec<Score> = CAUSES.iter().map(|_| Score::default()).collect();
    for one in all {
        if one.end - one.begin < LEAST.ns() || !is_within(one, cycles.get(&one.tid)) {
            continue;
        }
        let score = &mut scores[one.cause];
        score.affected += 1;
        let of = cycles.get(&one.tid);
        let shared =
            |cycle: &&Cycle| one.end.min(cycle.again.ns()) - one.begin.max(cycle.release.ns());
        let longest = of.and_then(|(cycles, typical)| {
            let (place, cycle) =
                cycles.iter().enumerate().max_by_key(|(_, cycle)| shared(cycle))?;
            (shared(&cycle) * 2 >= one.end - one.begin).then_some((&cycles[..=place], typical))
        });
        let Some((so_far, typical)) = longest else {
            *score.wrong.entry("no cycle".to_owned()).or_default() += 1;
            continue;
        };
        let cycle = so_far.last().expect("it is there");
        score.unknown += cycle.total_split().time_of(CauseKind::Unknown);
        score.whole += cycle.response_time();
        // A cycle that is late because of the one before has its cause.
        let is_own = |delay: &Option<MainDelay>| {
            delay.as_ref().is_none_or(|of| of.part != CauseKind::Overrun)
        };
        let mut delays = so_far.iter().rev().map(|cycle| find_delay(cycle, typical));
        match delays.find(is_own).flatten() {
            Some(delay) if is_right(one, &delay) => score.right += 1,
            Some(delay) if is_foreign(one, &delay) => {
                score.affected -= 1;
                score.foreign += 1;
            }
            delay => {
                let word = |delay: MainDelay| {
                    let by = delay.by.map_or(String::new(), |by| format!(" by {}", by.name));
                    format!("{}{by}", delay.part.id())
                };
                let word = delay.map_or("nothing".to_owned(), word);
                println!("| wrong: {one:?}: {:?}", cycle.total_split());
                *score.wrong.entry(word).or_default() += 1;
            }
        }
    }
    scores
}

/// For every injected cause 95 % are identified, and less than 5 % of the time is unknown.
#[track_caller]
fn assert_named(program: &str, scores: &[Score], at_least: usize) {
    let seen = CAUSES.iter().zip(scores).filter(|(_, score)| score.affected > 0);
    let seen: Vec<_> = seen.collect();
    for ((name, ..), score) in &seen {
        let share = |part: f64, whole: f64| 100.0 * part / whole.max(1.0);
        println!(
            "| {program} | {name} | {} | {} | {:.1} % | {:.2} % | {:?}, {} by others",
            score.affected,
            score.right,
            share(score.right as f64, score.affected as f64),
            share(score.unknown.ns() as f64, score.whole.ns() as f64),
            score.wrong,
            score.foreign
        );
    }
    assert!(seen.len() >= at_least, "{} causes were injected", seen.len());
    for ((name, part, _), score) in seen {
        // No event ends a page fault: its time counts as the thread's own, as docs/attach.md says.
        if by_events() && *part == CauseKind::PageFault {
            continue;
        }
        // One of a few may have another cause: this machine is not quiet.
        let may_fail = (score.affected / 20).max(1);
        assert!(score.right + may_fail >= score.affected, "{program}: {name}: {:?}", score.wrong);
        assert!(score.unknown.ns() * 20 < score.whole.ns(), "{program}: {name}: unknown");
    }
}

/// Runs a program with this many cycles: with real-time priority `priority`, or with a quota.
fn assert_all_named(
    program: &str,
    place: &Place,
    priority: &str,
    command: impl Fn(u64, bool) -> Vec<String>,
) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let line = command(cycles(CYCLES), false);
    let seen = attend(|| delayed(place, &line, &[("INJECT_PRIORITY", priority)]));
    assert_named(program, &score(&injected(place), &seen), CAUSES.len() - 2);
    let Some(quota) = Quota::new("a cycle that a quota delays") else { return };
    std::fs::remove_file(place.path().join("log")).unwrap();
    let line = command(cycles(CYCLES_WITH_QUOTA), true);
    let seen = attend(|| {
        let child = delayed(place, &line, &[("INJECT_QUOTA", "1")]);
        quota.take(&child);
        child
    });
    assert_named(program, &score(&injected(place), &seen), 1);
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[test]
#[ignore = "a part of another test"]
fn what_delays_cyclictest_is_named() {
    let Some(place) = injector().filter(|_| has_program("cyclictest", "rt-tests")) else { return };
    let cpu = last_cpu().to_string();
    assert_all_named("cyclictest", &place, "0", |cycles, with_quota| {
        let policy = if with_quota { ["--policy", "other"] } else { ["--priority", "80"] };
        let line = words(["cyclictest", "-q", "-t1", "-a", &cpu, "-i4000", "-l"]);
        [line, vec![cycles.to_string()], words(policy)].concat()
    });
}

#[test]
#[ignore = "a part of another test"]
fn what_delays_an_executor_is_named() {
    let has_compiler = || compiled().is_some() || has_program("c++", "g++");
    let Some(place) = injector().filter(|_| has_compiler()) else { return };
    let program = compiled().unwrap_or_else(|| {
        build_executor(place.path());
        place.path().to_owned()
    });
    let program = program.join("executor").to_string_lossy().into_owned();
    let line = |cycles: u64, _| words([&program, &cycles.to_string(), PERIOD]);
    assert_all_named("executor", &place, "80", line);
}

#[test]
#[ignore = "a part of another test"]
fn what_delays_a_loop_in_python_is_named() {
    let Some(place) = injector().filter(|_| has_program("python3", "python3")) else { return };
    let path = ["-c", "import sys; print(sys.executable)"];
    let python = Command::new("python3").args(path).output().unwrap();
    let python = String::from_utf8_lossy(&python.stdout).trim().to_owned();
    assert_all_named("Python", &place, "80", |cycles, _| {
        let program =
            format!("import time\nfor n in range({cycles}): sum(range(2000)); time.sleep(0.004)");
        words([&python, "-c", &program])
    });
}
