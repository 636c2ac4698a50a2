//! Stacks of real programs, compiled here without frame pointers and stopped in a known place. They
//! are compared with the source, and with gdb where it is installed.

use super::*;
use crate::symbols::{FunctionNames, Mappings};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command};

/// Calls from line 12 to line 3; `middle` is inlined.
const C: &str = "#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) static void inner(int n) { char here[600]; here[n] = 1; pause();
    sink += here[n]; } /* 4 */
static inline __attribute__((always_inline)) void middle(int n) {
    inner(n);
    sink++;
}
__attribute__((noinline)) void outer(int n) { /* 9 */
    int many[n + 40]; many[n] = n; middle(many[n]);
    sink += many[n]; }
int main(void) { outer(3);
    return sink; }
";
const C_LINES: [(&str, u32); 4] = [("inner", 3), ("middle", 6), ("outer", 10), ("main", 12)];

/// The wait is below a comparison that the C library calls, and a handler of exceptions.
const CPP: &str = "#include <unistd.h>
#include <cstdlib>
#include <stdexcept>
#include <string>
static volatile int sink;
static int compare(const void *a, const void *b) {
    pause();
    return sink += *(const char *)a - *(const char *)b;
}
struct Sorter {
    explicit Sorter(const std::string &of) { char text[4] = {of[0], 'b', 'a', 0};
        qsort(text, 3, 1, compare);
        sink++;
    }
};
__attribute__((noinline)) static void sort(const std::string &of) {
    try { Sorter here(of); sink++; if (of.size() > 9) throw std::runtime_error(of); }
    catch (const std::exception &) { sink--; }
}
int main() { sort(\"c\");
    return sink; }
";
const CPP_LINES: [(&str, u32); 4] =
    [("compare", 7), ("Sorter::Sorter", 12), ("sort", 17), ("main", 20)];

const RUST: &str = "use std::hint::black_box;
unsafe extern \"C\" { fn pause() -> i32; }
#[inline(never)] fn inner(n: u64) -> u64 { unsafe { pause(); } black_box(n) + 1 }
#[inline(never)] fn outer(all: &[u64]) -> u64 {
    all.iter().map(|n| {
        inner(*n) + 1
    }).sum() }
fn main() { println!(\"{}\", outer(black_box(&[1, 2]))); }
";
const RUST_LINES: [(&str, u32); 4] = [("inner", 3), ("{{closure}}", 6), ("outer", 7), ("main", 8)];

struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, once it waits in pause(2).
fn started(program: &Path) -> Stopped {
    let child = Stopped(Command::new(program).spawn().unwrap());
    let pause = crate::syscall_number("pause").or(crate::syscall_number("ppoll")).unwrap();
    let state = format!("/proc/{}/syscall", child.0.id());
    for _ in 0..2_000 {
        let now = std::fs::read_to_string(&state).unwrap_or_default();
        if now.split(' ').next() == Some(&pause.to_string()) {
            return child;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} never waits", program.display());
}

/// Copies registers and stack as the BPF programs do, by ptrace(2) and the process's memory.
fn copy_of(child: &Child) -> StackCopy {
    let pid = child.id() as libc::pid_t;
    let mut status = 0;
    // SAFETY: plain data, filled by the kernel, and a child that is ours.
    let regs = unsafe {
        let mut regs: libc::user_regs_struct = std::mem::zeroed();
        assert_eq!(libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0), 0);
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &mut regs), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0), 0);
        regs
    };
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut bytes = vec![0; 16_384];
    let length = memory.read_at(&mut bytes, regs.rsp).unwrap();
    let words = bytes[..length].chunks_exact(8);
    let stack = words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    StackCopy { process: child.id(), ip: regs.rip, sp: regs.rsp, bp: regs.rbp, lr: 0, stack }
}

/// Its functions with lines, without what is before main() and after the user's own code.
fn stack_of(child: &Child, source: &str) -> (Vec<(String, u32)>, Vec<String>, UserStack) {
    let stack = Unwinder::default().unwind_stack(&copy_of(child));
    let (mappings, mut names) = (Mappings::read(child.id()).unwrap(), FunctionNames::default());
    let call = |(depth, address): (usize, &u64)| address - u64::from(depth > 0);
    let places = stack.addresses.iter().enumerate().map(call);
    let places: Vec<_> = places.filter_map(|address| mappings.place_of(address)).collect();
    assert_eq!(places.len(), stack.addresses.len(), "each address is in mapped code");
    names.find_lines(places.iter().cloned(), child.id());
    let frames: Vec<_> = places.iter().flat_map(|one| names.frames_at(one, child.id())).collect();
    let own = frames.iter().filter_map(|frame| {
        let (path, line) = frame.line.as_ref()?;
        path.ends_with(source).then(|| (frame.function.clone(), *line))
    });
    let all = frames.iter().map(|frame| frame.function.clone()).collect();
    (own.collect(), all, stack)
}

/// The lines of this source in the stack of the first thread, as gdb has them; `None` if it is not
/// installed or refused.
fn by_gdb(child: &Child, source: &str) -> Option<Vec<u32>> {
    let pid = child.id().to_string();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set width 0"]);
    let out = gdb.args(["-p", &pid, "-ex", "bt 40"]).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let frames = text.lines().filter(|line| line.starts_with('#'));
    let line = |frame: &str| {
        let (path, line) = frame.rsplit_once(" at ")?.1.rsplit_once(':')?;
        path.ends_with(source).then(|| line.parse().ok())?
    };
    let all: Vec<u32> = frames.filter_map(line).collect();
    (!all.is_empty()).then_some(all)
}

fn check(compiler: &str, source: (&str, &str), options: &[&str], expected: &[(&str, u32)]) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(source.0), source.1).unwrap();
    let mut compile = Command::new(compiler);
    compile.current_dir(place.path()).args(options).args(["-o", "program", source.0]);
    if !compile.output().is_ok_and(|out| out.status.success()) {
        println!("SKIPPED: no working {compiler} {options:?}");
        return;
    }
    let child = started(&place.path().join("program"));
    let (own, all, stack) = stack_of(&child.0, source.0);
    let mut next = own.iter();
    for (function, line) in expected {
        let is_it = |(name, at): &(String, u32)| name.ends_with(function) && at == line;
        assert!(next.any(is_it), "{function}:{line} in {own:?} of {all:?} ({options:?})");
    }
    assert!(own.len() <= expected.len() + 2, "no other line: {own:?}");
    assert!(!stack.is_cut, "{all:?}");
    let lines: Vec<u32> = own.iter().map(|(_, line)| *line).collect();
    match by_gdb(&child.0, source.0) {
        // Where a line of a header is inlined, gdb shows that alone.
        Some(gdb) => {
            let mut ours = lines.iter();
            let is_there = |line: &u32| ours.any(|own| own == line);
            assert!(gdb.iter().all(is_there), "{gdb:?}: {own:?} of {all:?} ({options:?})");
        }
        None => println!("gdb is not installed, or may not attach: {}", source.0),
    }
}

#[test]
fn stacks_without_frame_pointers_lead_to_main_with_the_lines_of_all_functions() {
    for options in [
        &["-O2", "-g"][..],
        &["-O2", "-g", "-no-pie"],
        &["-O2", "-g", "-static"],
        &["-O1", "-g", "-gz=zlib"],
        &["-O0", "-g", "-fno-omit-frame-pointer"],
    ] {
        check("gcc", ("loop.c", C), options, &C_LINES);
    }
    check("g++", ("loop.cpp", CPP), &["-O2", "-g"], &CPP_LINES);
    check("rustc", ("loop.rs", RUST), &["-O", "-g"], &RUST_LINES);
}

#[test]
fn a_stripped_program_has_functions_or_offsets_and_no_line() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("loop.c"), C).unwrap();
    let mut compile = Command::new("gcc");
    compile.current_dir(place.path()).args(["-O2", "-s", "-o", "program", "loop.c"]);
    if !compile.output().is_ok_and(|out| out.status.success()) {
        println!("SKIPPED: no working gcc");
        return;
    }
    let child = started(&place.path().join("program"));
    let (own, all, stack) = stack_of(&child.0, "loop.c");
    assert_eq!(own, []);
    assert!(all.iter().filter(|name| name.starts_with("program+0x")).count() >= 3, "{all:?}");
    assert!(!stack.is_cut);
}

#[test]
fn a_stack_whose_bytes_end_is_cut_and_has_no_wrong_frame() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("loop.c"), C).unwrap();
    let mut compile = Command::new("gcc");
    compile.current_dir(place.path()).args(["-O2", "-g", "-o", "program", "loop.c"]);
    if !compile.output().is_ok_and(|out| out.status.success()) {
        println!("SKIPPED: no working gcc");
        return;
    }
    let child = started(&place.path().join("program"));
    let (whole, mut unwinder) = (copy_of(&child.0), Unwinder::default());
    let all = unwinder.unwind_stack(&whole);
    assert!(!all.is_cut);
    for words in 0..whole.stack.len() {
        let copy = StackCopy { stack: whole.stack[..words].to_vec(), ..whole.clone() };
        let of_it = unwinder.unwind_stack(&copy);
        assert!(all.addresses.starts_with(&of_it.addresses), "{words} words");
        assert_eq!(of_it.is_cut, of_it.addresses.len() < all.addresses.len(), "{words} words");
    }
    let ended = unwinder.unwind_stack(&StackCopy { process: u32::MAX, ..whole });
    assert_eq!((ended.addresses.len(), ended.is_cut), (1, true));
}
