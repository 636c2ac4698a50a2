//! Nothing is left in the kernel, however the recorder ends.

use crate::kernel::common::{online, start};
use punctual_core::event::Group;
use punctual_record::{Backend, Request};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The programs loaded by this process, by the kernel's number.
fn programs() -> Vec<u32> {
    let files = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let number = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    let mut programs: Vec<u32> =
        files.filter_map(|file| number(std::fs::read_to_string(file.path()).ok()?)).collect();
    programs.sort_unstable();
    programs.dedup();
    programs
}

/// BPF_PROG_GET_FD_BY_ID.
fn is_loaded(program: u32) -> bool {
    let mut attr = [u64::from(program), 0, 0, 0];
    // SAFETY: the attribute is ours and of the stated size; the resulting descriptor is closed.
    unsafe {
        let fd = libc::syscall(libc::SYS_bpf, 13, attr.as_mut_ptr(), size_of_val(&attr));
        fd >= 0 && libc::close(fd as i32) == 0
    }
}

/// The process killed by the test below.
#[test]
#[ignore = "a part of another test"]
fn holder() {
    let Some(recorder) = start(request(Backend::Btf)) else { return };
    println!("programs {}", programs().iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
    std::thread::sleep(Duration::from_secs(60));
    drop(recorder);
}

fn request(backend: Backend) -> Request {
    Request { backend, ..Request::new(&[Group::Sched, Group::Irq], online()) }
}

#[test]
fn kill_9_takes_the_programs_away() {
    let mut holder = Command::new(std::env::current_exe().unwrap());
    let holder = holder.args(["--ignored", "--exact", "kernel::leftovers::holder", "--nocapture"]);
    let mut child = holder.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut report = None;
    for line in lines {
        // The harness may begin the line.
        if let Some((_, numbers)) = line.split_once("programs ") {
            report = Some(
                numbers
                    .split_whitespace()
                    .map(|number| number.parse::<u32>().unwrap())
                    .collect::<Vec<u32>>(),
            );
            break;
        }
        if line.contains("SKIPPED: ") {
            println!("{line}");
        }
    }
    let loaded = report.as_ref().is_some_and(|programs| {
        !programs.is_empty() && programs.iter().all(|program| is_loaded(*program))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let Some(programs) = report else { return };
    assert!(loaded);
    assert_gone(&programs);
}

/// The kernel frees a program once no CPU can be running it any more.
fn assert_gone(programs: &[u32]) {
    let until = Instant::now() + Duration::from_secs(300);
    while programs.iter().any(|program| is_loaded(*program)) {
        assert!(Instant::now() < until, "still loaded: {programs:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
