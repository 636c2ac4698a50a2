//! Probes of a running program, on this kernel.

use super::*;
use crate::symbols::{FunctionSpec, resolve_functions};
use crate::wire;
use punctual_core::event::{Event, EventKind};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Recursion, threads, jumps out of calls, a tail call, and an end within a call.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
static jmp_buf back;
volatile int sink;
int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
void jumper(int n) { if (n == 0) longjmp(back, 1); jumper(n - 1); }
void outer(int n) { if (!setjmp(back)) jumper(n); }
__attribute__((noinline)) int target(int n) { sink = n; return n; }
__attribute__((noinline, optimize("O2"))) int tail(int n) { return target(n + 1); }
void *work(void *_) { for (int i = 0; i < 200; i++) fact(3); return _; }
void leaver(void) { exit(0); }
int main(void)
{
	char go;
	pthread_t threads[4];
	if (read(0, &go, 1) != 1) return 1;
	for (int i = 0; i < 10; i++) outer(3);
	for (int i = 0; i < 7; i++) tail(i);
	fact(5);
	for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
	for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
	leaver();
}
"#;

fn compile_probed(dir: &std::path::Path) -> Option<PathBuf> {
    let (source, program) = (dir.join("probed.c"), dir.join("probed"));
    std::fs::write(&source, PROGRAM).unwrap();
    match Command::new("gcc").args(["-O0", "-pthread", "-o"]).arg(&program).arg(&source).status() {
        Ok(status) if status.success() => Some(program.canonicalize().unwrap()),
        other => {
            println!("SKIPPED: no working gcc ({other:?})");
            None
        }
    }
}

fn all_cpus() -> CpuSet {
    std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap().trim().parse().unwrap()
}

fn spawn_waiting(program: &std::path::Path) -> Child {
    Command::new(program).stdin(Stdio::piped()).spawn().unwrap()
}

fn let_go(mut child: Child) {
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    assert!(child.wait().unwrap().success());
}

fn start_probes(
    functions: &[Function],
    whose: ProbedProcesses,
    argument: Option<u8>,
) -> Option<Probes> {
    match Probes::start(
        functions,
        &[],
        &all_cpus(),
        ProbeRequest { whose, argument, buffer: 4 << 20 },
    ) {
        Ok(probes) => Some(probes),
        Err(why) => {
            println!("SKIPPED: {why}");
            None
        }
    }
}

#[test]
fn every_call_is_paired_with_its_own_end() {
    all_calls_are_paired();
}

#[test]
fn calls_are_paired_if_each_probe_is_a_perf_event() {
    crate::bpf::uprobe::ONE_BY_ONE.set(true);
    all_calls_are_paired();
}

fn all_calls_are_paired() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile_probed(dir.path()) else { return };
    let names = ["fact", "jumper", "outer", "tail", "target", "leaver"];
    let specs: Vec<FunctionSpec> =
        names.iter().map(|name| FunctionSpec::parse(name).unwrap()).collect();
    let functions = resolve_functions(&specs, std::slice::from_ref(&program)).unwrap();
    let child = spawn_waiting(&program);
    let Some(probes) = start_probes(&functions, ProbedProcesses::Process(child.id()), Some(1))
    else {
        return let_go(child);
    };
    // Another run of the same program is not part of that process.
    let_go(spawn_waiting(&program));
    let pid = child.id();
    let_go(child);

    let mut events: Vec<Event> = Vec::new();
    let (counts, sources) = probes
        .stop_probes(&mut |_, bytes| events.extend(wire::decode(bytes).filter_map(Result::ok)));
    assert_eq!(sources.iter().map(|source| source.lost).sum::<u64>(), 0);
    let count = |name: &str| counts[names.iter().position(|known| *known == name).unwrap()];
    let expected_counts =
        |entered, returned, left| CallCounts { entered, returned, left, ..CallCounts::default() };
    assert_eq!(count("fact"), expected_counts(5 + 4 * 200 * 3, 5 + 4 * 200 * 3, 0));
    assert_eq!(count("jumper"), expected_counts(40, 0, 40));
    assert_eq!(count("outer"), expected_counts(10, 10, 0));
    assert_eq!(
        (count("tail"), count("target")),
        (expected_counts(7, 7, 0), expected_counts(7, 7, 0))
    );
    assert_eq!(count("leaver"), expected_counts(1, 0, 1));

    let mut depths: BTreeMap<(u32, u16), u64> = BTreeMap::new();
    for event in &events {
        let EventKind::Call { function, began, depth, argument, .. } = event.what else {
            panic!("{event:?}")
        };
        assert!(began.0 > 0 && event.at >= began, "{event:?}");
        *depths.entry((function.0, depth)).or_default() += 1;
        if function.0 == 0 && event.tid.0 == pid {
            // fact(5) calls itself with one less each time: the argument determines the depth.
            assert_eq!(argument, Some(5 - u64::from(depth)), "{event:?}");
        }
    }
    let recorded: u64 = counts.iter().map(|count| count.returned + count.left).sum();
    assert_eq!(events.len() as u64, recorded);
    assert_eq!((0..3).map(|depth| depths[&(0, depth)]).collect::<Vec<_>>(), [801, 801, 801]);
    assert_eq!((depths[&(0, 4)], depths.get(&(0, 5))), (1, None));
    // `outer` and four of `jumper` in it.
    assert_eq!((1..5).map(|depth| depths[&(1, depth)]).collect::<Vec<_>>(), [10; 4]);
    assert_eq!((depths[&(3, 0)], depths[&(4, 1)]), (7, 7));
}
