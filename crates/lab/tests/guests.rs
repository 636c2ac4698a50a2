//! Guests that boot: every test here runs Debian's real kernels in QEMU, and skips with the reason
//! if that is impossible.

use punctual_lab::{
    Accel, Arch, Guest, GuestBoard, GuestControl, GuestFile, GuestOutcome, GuestPhase,
    GuestProgress, GuestResult, Job,
};
use punctual_testing as testing;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const STANDARD: &str = "debian:6.1";

fn guest(kernel: &str, script: &str) -> Option<Guest> {
    let mut guest = testing::guest(kernel)?;
    guest.job = Job::Script(script.to_owned());
    Some(guest)
}

/// A guest with one CPU in virtual time: all of these resume from one saved boot.
fn resumed(script: &str) -> Option<Guest> {
    let guest = guest(STANDARD, script)?;
    Some(Guest { accel: Accel::VirtualTime, cpus: 1, ..guest })
}

fn text<'r>(result: &'r GuestResult, name: &str) -> &'r str {
    let bytes = result
        .results
        .get(name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", result.results.keys()));
    std::str::from_utf8(bytes).unwrap().trim()
}

/// One boot for all tests of a plain guest.
static PLAIN: LazyLock<Option<GuestResult>> = LazyLock::new(|| {
    let mut guest = guest(
        STANDARD,
        "cat /proc/version >/results/version
         mkdir /results/sub; cat /tmp/given >/results/sub/given
         nproc >/results/cpus; nproc
         cat /proc/cmdline >/results/cmdline
         /bin/ls --version >/results/ls
         cg=/sys/fs/cgroup; cat $cg/cgroup.controllers >/results/controllers
         echo +cpuset >$cg/cgroup.subtree_control; mkdir $cg/rt
         echo 1 >$cg/rt/cpuset.cpus; echo isolated >$cg/rt/cpuset.cpus.partition
         cat $cg/rt/cpuset.cpus.partition >/results/partition
         cat $cg/cpuset.cpus.effective >/results/remaining
         lsmod >/results/modules
         echo complaint >&2; exit 3",
    )?;
    guest.files = vec![GuestFile::from_text("/tmp/given", "a file of the host")];
    // A program of this machine, with its libraries.
    guest.programs = vec!["/bin/ls".into()];
    guest.modules = vec!["ext4".into()];
    testing::run(&guest)
});

#[test]
fn a_job_in_a_guest_returns_its_files_output_and_status() {
    let Some(result) = &*PLAIN else { return };
    assert!(
        text(result, "version").starts_with("Linux version 6.1."),
        "{}",
        text(result, "version")
    );
    assert!(text(result, "version").contains(result.release.as_deref().unwrap()));
    assert_eq!((text(result, "sub/given"), text(result, "cpus")), ("a file of the host", "2"));
    assert_eq!(
        (result.stdout.as_slice(), result.stderr.as_slice()),
        (&b"2\n"[..], &b"complaint\n"[..])
    );
    assert_eq!((result.exit_status, result.oom_kills), (Some(3), Some(0)));
    assert!(result.console_log.contains("Run /init as init process"));
}

#[test]
fn programs_and_modules_are_copied_with_their_dependencies() {
    let Some(result) = &*PLAIN else { return };
    assert!(text(result, "ls").contains("GNU coreutils"), "{}", text(result, "ls"));
    for module in ["ext4", "jbd2", "mbcache", "virtio_console"] {
        assert!(
            text(result, "modules").lines().any(|line| line.starts_with(module)),
            "{}",
            text(result, "modules")
        );
    }
}

#[test]
fn cgroup_v2_isolates_a_cpu_by_hand() {
    let Some(result) = &*PLAIN else { return };
    assert!(text(result, "controllers").split(' ').any(|controller| controller == "cpuset"));
    assert_eq!((text(result, "partition"), text(result, "remaining")), ("isolated", "0"));
}

#[test]
fn the_command_line_takes_effect() {
    let script = "cat /sys/devices/system/cpu/isolated >/results/isolated
         cat /sys/devices/system/cpu/nohz_full >/results/nohz_full
         cat /proc/irq/default_smp_affinity >/results/irq
         cat /proc/cmdline >/results/cmdline";
    let Some(mut guest) = guest(STANDARD, script) else { return };
    guest.cmdline_extra = "isolcpus=1 nohz_full=1 rcu_nocbs=1 irqaffinity=0".into();
    let Some(result) = testing::run(&guest) else { return };
    assert!(text(&result, "cmdline").ends_with(&guest.cmdline_extra));
    assert_eq!(
        (text(&result, "isolated"), text(&result, "nohz_full"), text(&result, "irq")),
        ("1", "1", "1")
    );
    assert!(
        result.console_log.contains("Offload RCU callbacks from CPUs: 1."),
        "{}",
        result.console_log
    );
    let plain = PLAIN.as_ref().map(|plain| text(plain, "cmdline"));
    assert!(plain.is_none_or(|plain| !plain.contains("isolcpus")));
}

#[test]
fn a_guest_panic_is_detected_with_its_console_log() {
    let Some(guest) = resumed("echo before; echo c >/proc/sysrq-trigger") else { return };
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let GuestOutcome::Panicked(line) = &result.outcome else {
        panic!("{}", testing::story(&result))
    };
    assert_eq!(line, "Kernel panic - not syncing: sysrq triggered crash");
    assert!(result.console_log.contains("sysrq_handle_crash"), "{}", result.console_log);
    assert_eq!((result.stdout.as_slice(), result.exit_status), (&b"before\n"[..], None));
}

#[test]
fn a_hanging_job_is_killed_at_its_timeout() {
    let Some(mut guest) = guest(STANDARD, "echo before; sleep 100000") else { return };
    // The time to boot at the current speed, and some more; on a disturbed machine it may still not
    // have reached the job.
    let Some(plain) = &*PLAIN else { return };
    guest.timeout = plain.elapsed * 3 / 2;
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let GuestOutcome::Hung { after, phase } = result.outcome else {
        panic!("{}", testing::story(&result))
    };
    assert_eq!((after, result.exit_status, result.results.len()), (guest.timeout, None, 0));
    assert!(
        phase == GuestPhase::Booting || result.stdout == b"before\n",
        "{}",
        testing::story(&result)
    );
    assert!(!result.console_log.is_empty());
}

#[test]
fn results_of_a_guest_are_returned_although_it_ran_out_of_memory() {
    // The shell doubles a variable until the kernel kills it.
    let script =
        "echo kept >/results/kept; exec sh -c 'x=0123456789abcdef; while :; do x=$x$x; done'";
    let Some(mut guest) = guest(STANDARD, script) else { return };
    guest.memory_mb = 256;
    let Some(result) = testing::or_skip(guest.run()) else { return };
    assert!(matches!(result.outcome, GuestOutcome::OutOfMemory(_)), "{}", testing::story(&result));
    assert_eq!(
        (text(&result, "kept"), result.oom_kills, result.exit_status),
        ("kept", Some(1), Some(137))
    );
}

#[test]
fn a_guest_that_powers_off_before_its_job_ends_is_a_failure() {
    let Some(guest) = resumed("echo before; poweroff -f; sleep 100000") else { return };
    let Some(result) = testing::or_skip(guest.run()) else { return };
    assert_eq!(
        result.outcome,
        GuestOutcome::EndedEarly(GuestPhase::Job),
        "{}",
        testing::story(&result)
    );
}

/// The rights of this process's QEMU, from the kernel.
fn rights_of_qemu() -> Option<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let statuses = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_qemu = String::from_utf8_lossy(&line).contains("process=qemu-punctual");
        is_qemu.then(|| std::fs::read_to_string(entry.path().join("status")).ok())?
    });
    let own = format!("PPid:\t{}\n", std::process::id());
    let mut own = statuses.filter(|status| status.contains(&own));
    own.find(|status| status.contains("Name:\tqemu-punctual"))
}

#[test]
fn a_guest_that_breaks_out_has_nothing() {
    let Some(mut guest) = guest(STANDARD, "sleep 1; echo done") else { return };
    guest.share_host = false;
    let mut seen = None;
    let result = guest.run_watched(&mut |progress: GuestProgress| {
        if progress.phase == GuestPhase::Job && seen.is_none() {
            seen = rights_of_qemu();
        }
        GuestControl::GoOn
    });
    assert_eq!(result.unwrap().outcome, GuestOutcome::Finished);
    let status = seen.expect("QEMU was seen");
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{status}");
    }
    if std::fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ffffffffff") {
        for line in ["Uid:\t65534\t65534\t65534\t65534", "CapEff:\t0000000000000000"] {
            assert!(status.contains(line), "{status}");
        }
    }
}

#[test]
fn a_job_that_takes_the_status_port_is_ended() {
    // The job replaces the file from which the init reports its last error.
    let script = "yes problem | head -c 30000000 >/tmp/large
                  rm /punctual/said; ln -s /tmp/large /punctual/said; rm -r /results";
    let Some(mut guest) = guest(STANDARD, script) else { return };
    guest.share_host = false;
    let result = guest.run().unwrap();
    assert_eq!(result.outcome, GuestOutcome::TooMuchOutput { limit: 1 << 20 });
    assert!(result.problems.iter().map(String::len).sum::<usize>() <= 1 << 20);
}

#[test]
fn errors_of_qemu_are_reported_in_its_own_words() {
    let Some(mut guest) = guest(STANDARD, "true") else { return };
    guest.qemu_args = vec!["-device".into(), "no-such-device".into()];
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let GuestOutcome::QemuFailed(described) = &result.outcome else {
        panic!("{}", testing::story(&result))
    };
    assert!(described.contains("no-such-device"), "{described}");
}

#[test]
fn the_hosts_programs_run_in_an_rt_guest_without_a_trace_on_the_host() {
    let mark = format!("/etc/punctual-lab-test-{}", std::process::id());
    let script = format!(
        "uname -v; cat /etc/os-release >/results/os; /usr/bin/env true && echo ran; cat /given; \
         touch {mark} && ls {mark}"
    );
    let Some(mut guest) = guest("debian:6.1-rt", &script) else { return };
    guest.share_host = true;
    guest.files = vec![GuestFile::from_text("/given", "given\n")];
    let Some(result) = testing::run(&guest) else { return };
    let described = String::from_utf8_lossy(&result.stdout);
    assert!(described.contains("PREEMPT_RT"), "{described}");
    assert!(described.ends_with(&format!("ran\ngiven\n{mark}\n")), "{}", testing::story(&result));
    assert_eq!(text(&result, "os"), std::fs::read_to_string("/etc/os-release").unwrap().trim());
    assert!(!std::path::Path::new(&mark).exists());
}

#[test]
fn virtual_time_is_reproducible_to_the_last_digit() {
    let script = format!(
        "{CLEAR_PAGES}
         for i in 1 2 3; do usleep 1000; cat /proc/uptime /proc/schedstat /proc/stat; done
         i=0; while [ $i -lt 1500 ]; do usleep 300; i=$((i + 1)); done
         cat /proc/uptime /proc/schedstat /proc/interrupts; dmesg"
    );
    let Some(mut guest) = guest(STANDARD, &script) else { return };
    (guest.accel, guest.cpus) = (Accel::VirtualTime, 1);
    let Some(stdout) = repeated(&guest) else { return };
    assert!(stdout.len() > 1000);
    check_cleared_pages(&stdout);
}

/// Clears 64 MiB twice: a fresh buffer is cleared page by page when it is first touched, and again
/// by reading zeroes into it. With huge pages, so that page faults cost little.
const CLEAR_PAGES: &str = "echo always >/sys/kernel/mm/transparent_hugepage/enabled
         now() { sed -n 's/^now at \\([0-9]*\\) nsecs$/cleared at \\1/p' /proc/timer_list; }
         now; dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; now";

/// Checks that clearing a byte of those pages does not count as an instruction: QEMU counts `rep
/// stosb` so, and hardware is many times faster.
fn check_cleared_pages(stdout: &[u8]) {
    let text = String::from_utf8_lossy(stdout);
    let times = text.lines().filter_map(|line| line.strip_prefix("cleared at "));
    let times: Vec<u64> = times.map(|time| time.parse().unwrap()).collect();
    let [before, after] = times[..] else { panic!("{text}") };
    // 8 ns an instruction. With page faults it is about half an instruction a byte; if each byte
    // counts as one, clearing alone takes more.
    let (instructions, bytes) = ((after - before) / 8, 2 * (64 << 20));
    assert!(instructions < bytes / 4 * 3, "{instructions} instructions to clear {bytes} bytes");
}

/// The guest's output, the same in two runs: one undisturbed, and one while QEMU's main loop is
/// queried continuously. Each time it wakes it checks whether the virtual CPU is idle, at moments
/// chosen by this machine (docs/notes/virtual-time.md).
fn repeated(guest: &Guest) -> Option<Vec<u8>> {
    // Not for the Pi, which QEMU does not record: the queries would make it diverge.
    if guest.board == GuestBoard::Raspi3b {
        return repeated_undisturbed(guest);
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("qmp");
    let with_socket = |socket: &Path| {
        let mut guest = guest.clone();
        let monitor = format!("unix:{},server=on,wait=off", socket.display());
        guest.qemu_args.extend(["-qmp".into(), monitor]);
        guest
    };
    // Both have a socket, so that both boot: a guest without own arguments resumes from a saved
    // boot.
    let (undisturbed, disturbed) = (with_socket(&dir.path().join("other")), with_socket(&socket));
    let over = AtomicBool::new(false);
    let (runs, asked) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(&over, &socket));
        let plain = scope.spawn(|| testing::run(&undisturbed));
        let disturbed = testing::run(&disturbed);
        over.store(true, Ordering::Relaxed);
        ([plain.join().unwrap(), disturbed], asking.join().unwrap())
    });
    let [Some(plain), Some(disturbed)] = runs else { return None };
    assert!(asked > 100, "QEMU was asked {asked} times only");
    assert!(plain.stdout == disturbed.stdout, "two runs of the same guest in virtual time differ");
    Some(plain.stdout)
}

/// The output of two out of three runs, at the same time on a machine kept busy by them.
fn repeated_undisturbed(guest: &Guest) -> Option<Vec<u8>> {
    let runs = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| testing::run(guest)));
        runs.map(|run| run.join().unwrap())
    });
    let [Some(first), Some(second)] = runs else { return None };
    if first.stdout != second.stdout {
        let third = testing::run(guest)?;
        let alike = third.stdout == first.stdout || third.stdout == second.stdout;
        assert!(alike, "three runs of the same guest in virtual time differ");
        return Some(third.stdout);
    }
    Some(first.stdout)
}

/// Queries QEMU's state by its machine protocol (QMP) until the end; returns the number of answers.
fn ask_until(over: &AtomicBool, socket: &Path) -> usize {
    let mut answers = 0;
    while !over.load(Ordering::Relaxed) {
        if let Ok(stream) = UnixStream::connect(socket) {
            answers += ask(&stream, over).unwrap_or(0);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    answers
}

fn ask(stream: &UnixStream, over: &AtomicBool) -> std::io::Result<usize> {
    let (mut lines, mut to, mut answers) = (BufReader::new(stream).lines(), stream, 0);
    lines.next().transpose()?;
    let mut command = "qmp_capabilities";
    while !over.load(Ordering::Relaxed) {
        // The end of QEMU, in the middle of a run, is not an error here.
        if writeln!(to, "{{\"execute\": \"{command}\"}}").is_err()
            || !matches!(lines.next(), Some(Ok(_)))
        {
            break;
        }
        (command, answers) = ("query-status", answers + 1);
    }
    Ok(answers)
}

#[test]
fn virtual_time_is_refused_if_it_would_not_be_reproducible() {
    let Some(mut guest) = guest(STANDARD, "true") else { return };
    guest.accel = Accel::VirtualTime;
    let described = guest.run().unwrap_err().to_string();
    assert!(described.starts_with("virtual time needs 1 CPU, not 2"), "{described}");
    (guest.cpus, guest.share_host) = (1, true);
    let described = guest.run().unwrap_err().to_string();
    assert!(
        described.starts_with("virtual time and the host's shared files exclude each other"),
        "{described}"
    );
}

#[test]
fn files_that_do_not_fit_into_the_memory_are_refused() {
    let Some(mut guest) = guest(STANDARD, "true") else { return };
    guest.memory_mb = 64;
    let described = guest.run().unwrap_err().to_string();
    assert!(
        described.contains("for a guest with 64 MiB of memory: give it at least "),
        "{described}"
    );
}

#[test]
fn virtual_time_of_an_arm64_guest_is_reproducible() {
    let Some(mut guest) = testing::guest_for(Arch::Arm64, STANDARD) else { return };
    // A program of this machine is taken from the packages of the guest's architecture.
    guest.programs = vec!["/bin/ls".into()];
    let script = format!(
        "uname -m; /bin/ls --version; {CLEAR_PAGES}; usleep 1000; cat /proc/schedstat; dmesg"
    );
    guest.job = Job::Script(script);
    (guest.accel, guest.cpus) = (Accel::VirtualTime, 1);
    let Some(stdout) = repeated(&guest) else { return };
    assert!(
        stdout.starts_with(b"aarch64\nls (GNU coreutils) "),
        "{}",
        String::from_utf8_lossy(&stdout)
    );
    check_cleared_pages(&stdout);
}

#[test]
fn a_raspberry_pi_guest_returns_reproducible_results_on_its_card() {
    let Some(mut guest) = testing::guest_for(Arch::Arm64, STANDARD) else { return };
    guest.board = GuestBoard::Raspi3b;
    let described = guest.run().unwrap_err().to_string();
    assert_eq!(described, "a Raspberry Pi 3 has 1024 MiB of memory, not 512");
    guest.job =
        Job::Script("cat /proc/device-tree/model; usleep 1000; cat /proc/schedstat; dmesg".into());
    (guest.accel, guest.cpus, guest.memory_mb) = (Accel::VirtualTime, 1, 1024);
    let Some(stdout) = repeated(&guest) else { return };
    assert!(stdout.starts_with(b"Raspberry Pi 3 Model B"), "{}", String::from_utf8_lossy(&stdout));

    // Several CPUs, in this machine's time.
    (guest.accel, guest.cpus) = (Accel::Tcg, 2);
    guest.job = Job::Script(
        "mkdir /results/dir; yes | head -c 200000 >/results/dir/many; echo said >&2; nproc; exit 5"
            .into(),
    );
    let Some(result) = testing::run(&guest) else { return };
    let report = (result.exit_status, result.stdout.as_slice(), result.problems.len());
    assert_eq!(report, (Some(5), b"2\n".as_slice(), 0), "{}", result.console_log);
    assert_eq!(
        (result.stderr.as_slice(), result.results["dir/many"].len()),
        (b"said\n".as_slice(), 200_000)
    );

    // The word to end arrives on the console. A signal adds 128 to the exit status.
    (guest.cpus, guest.job) = (1, Job::Script("exec sleep 100000".into()));
    let mut control = |seen: GuestProgress| {
        if seen.phase == GuestPhase::Job { GuestControl::End } else { GuestControl::GoOn }
    };
    let Some(result) = testing::or_skip(guest.run_watched(&mut control)) else { return };
    assert_eq!(
        (&result.outcome, result.exit_status),
        (&GuestOutcome::Finished, Some(130)),
        "{}",
        testing::story(&result)
    );
}

/// Started and killed by [`qemu_dies_with_the_process_that_runs_it`].
#[test]
#[ignore = "a part of another test"]
fn a_guest_without_end() {
    let Some(mut guest) = guest(STANDARD, "sleep 100000") else { return };
    guest.timeout = Duration::from_secs(600);
    let _ = testing::or_skip(guest.run());
}

#[test]
fn qemu_dies_with_the_process_that_runs_it() {
    if testing::guest(STANDARD).is_none() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let quiet = || std::process::Stdio::null();
    let mut part = std::process::Command::new(own);
    // A killed process cannot remove its temporary directory.
    let temporary = tempfile::tempdir().unwrap();
    part.env("TMPDIR", temporary.path());
    part.args(["--exact", "a_guest_without_end", "--ignored"]).stdout(quiet()).stderr(quiet());
    let mut part = part.spawn().unwrap();
    let tasks = format!("/proc/{}/task", part.id());
    let wait_for = |test: &dyn Fn() -> Option<String>| {
        let looks =
            std::iter::repeat_with(|| (test(), std::thread::sleep(Duration::from_millis(50))).0);
        looks.take(1200).flatten().next()
    };
    let is_qemu = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|comm| comm.starts_with("qemu"))
    };
    let qemu = wait_for(&|| {
        let tasks = std::fs::read_dir(&tasks).ok()?.filter_map(Result::ok);
        let children =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<String> = children
            .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        children.into_iter().find(|pid| is_qemu(pid))
    });
    part.kill().unwrap();
    part.wait().unwrap();
    let qemu = qemu.expect("QEMU was never started");
    let gone = wait_for(&|| (!is_qemu(&qemu)).then(String::new));
    assert!(gone.is_some(), "QEMU (process {qemu}) outlived the process that ran it");
}
