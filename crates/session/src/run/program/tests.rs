use super::*;
use crate::cycles::testing;
use punctual_core::{CpuSet, Policy};
use punctual_measure::load::LoadExitAction;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

const LENGTH: Nanos = Nanos::from_secs(3);

/// A program that a phase of 3 s has measured until now.
fn measured(pid: i32, ran: Nanos) -> ProgramRun {
    let spec = LoadSpec {
        name: "loop".to_owned(),
        program: "/bin/sh".into(),
        argv: Vec::new(),
        environment: Vec::new(),
        joins: None,
        cpus: CpuSet::new(),
        policy: Policy::Other,
        priority: None,
        nice: 0,
        stdout: None,
        stderr: None,
        on_success: LoadExitAction::Ignore,
        on_failure: LoadExitAction::Ignore,
        start_delay: Nanos::ZERO,
    };
    ProgramRun {
        name: "loop".to_owned(),
        cycles: testing::empty_cycles(),
        is_attached: false,
        nothing_found: None,
        command: None,
        source: ProcessSource::Command { number: 0, spec: Box::new(spec), pid: Some(pid) },
        length: Some(LENGTH),
        began: Some(MonotonicNs(clock::monotonic_now().ns() - ran.ns())),
        ended: None,
        end_requested: None,
        reached_end: false,
        finished_at: None,
        oom_kills: None,
    }
}

/// Starts a script as the guard starts programs, in a process group of its own; it prints a line
/// when it is ready.
fn start(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).process_group(0).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a shell");
    let mut line = String::new();
    let output = child.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    child
}

/// Reports the end of the program as the guard does.
fn report_end(run: &mut ProgramRun, child: &mut Child) -> HowEnded {
    let status = child.wait().expect("it ends");
    let event = GuardEvent::Ended {
        load: 0,
        how: status.to_string(),
        signal: status.signal(),
        status: status.code().unwrap_or(0),
        success: status.success(),
        then: LoadExitAction::Ignore,
    };
    run.take_event(&event).expect("it is its program's");
    HowEnded::of_wait(status.into_raw() as u32)
}

#[test]
fn an_end_that_was_asked_for_is_no_failure() {
    let catches = "trap 'exit 3' TERM; echo; while :; do sleep 0.01; done";
    for (script, how) in [
        ("echo; exec sleep 60", HowEnded::Signal(libc::SIGTERM)),
        (catches, HowEnded::Status(3)),
        ("sleep 60 >/dev/null & echo; wait", HowEnded::Signal(libc::SIGTERM)),
        ("trap '' TERM; echo; while :; do sleep 0.01; done", HowEnded::Signal(libc::SIGKILL)),
    ] {
        let mut child = start(script);
        let mut run = measured(child.id() as i32, LENGTH);
        run.terminate();
        if how == HowEnded::Signal(libc::SIGKILL) {
            // As the guard does with one that ignores the request.
            child.kill().expect("its own child");
        }
        assert_eq!(report_end(&mut run, &mut child), how, "{script}");
        assert_eq!(run.failed_end(), None, "{script}");
        let evidence = run.to_evidence();
        assert_eq!((evidence.ended, evidence.has_end), (None, true), "{script}");
        assert_eq!(run.end_deadline(), None, "{script}: it is not waited for");
    }
}

#[test]
fn an_end_before_that_is_the_programs_own() {
    let (early, whole) = (Nanos::SECOND, LENGTH);
    for (script, ran, how) in [
        ("echo; exit 0", early, HowEnded::Status(0)),
        ("echo; exit 9", early, HowEnded::Status(9)),
        ("echo; exit 9", whole, HowEnded::Status(9)),
        ("echo; kill -TERM $$", early, HowEnded::Signal(libc::SIGTERM)),
        ("sleep 60 >/dev/null & echo; exit 1", early, HowEnded::Status(1)),
    ] {
        let mut child = start(script);
        let mut run = measured(child.id() as i32, ran);
        report_end(&mut run, &mut child);
        // The rest of its group, which the guard ends.
        let _ = children::send_signal(-(child.id() as i32), libc::SIGKILL);
        run.terminate();
        let end = run.failed_end().unwrap_or_else(|| panic!("{script}: no failure"));
        assert_eq!((end.how, end.is_early()), (how, ran == early), "{script}");
        assert!(run.to_evidence().ended.is_some(), "{script}");
    }
}

#[test]
fn a_request_separates_own_ends_from_others() {
    let at = MonotonicNs;
    assert!(is_own_end(at(5), None) && is_own_end(at(5), Some(at(6))));
    assert!(!is_own_end(at(6), Some(at(6))) && !is_own_end(at(7), Some(at(6))));
    let failure = |how, ran: i64, asked: Option<i64>, is_attached| {
        let (program, ran, asked) = ("loop".to_owned(), Nanos(ran), asked.map(Nanos));
        is_failure(&ProgramEnd { program, how, ran, asked, out_of_memory: false }, is_attached)
    };
    let (well, badly) = (HowEnded::Status(0), HowEnded::Signal(11));
    assert!(failure(well, 1, Some(3), false) && !failure(well, 3, Some(3), false));
    assert!(!failure(well, 1, Some(3), true), "an attached program may end at any time");
    assert!(!failure(well, 1, None, false), "without a length it determines its end");
    for (ran, asked, is_attached) in [(1, Some(3), true), (3, Some(3), false), (1, None, false)] {
        assert!(failure(badly, ran, asked, is_attached));
    }
}
