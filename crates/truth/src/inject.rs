//! The process that injects delays at recorded instants: this program again, without any other part
//! of it. It writes its record at the end, so that writing delays nothing.

use super::cases::InjectedCase;
use super::group::{self, ControlGroup};
use super::names::{CULPRIT, DEVICE, MEASURING};
use super::record;
use super::score::{Injected, Role};
use super::throttling;
use punctual_core::{CpuSet, Nanos, Policy, Priority};
use punctual_session::exit::Failure;
use punctual_sys::attributes::{self, DeadlineAttributes, Scheduling};
use punctual_sys::{children, clock, memory};
use std::fs::{File, OpenOptions};
use std::hint::spin_loop;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first argument of that process.
pub const ARGUMENT: &str = "truth-inject";

/// The minimum time between the starts of two delays; not a multiple of the measured period, so
/// that delays begin at all of its phases.
const APART: i64 = 7_310_000;
/// The minimum time between delays in lengths of a delay: with less, real-time throttling
/// interferes.
const LENGTHS_APART: i64 = 4;
/// The minimum gap in the clock readings of an interrupted task, in ns: it reads the clock about
/// every 100 ns, or every microsecond if each instruction takes 8 ns.
const GAP: i64 = 5_000;
/// Segments per delay that fit without allocating more memory.
const STRETCHES: usize = 4;
/// Time allowed for the run to begin, and to end: in virtual time it begins after some seconds.
const AROUND: i64 = 60_000_000_000;

/// The process, seen by its parent.
pub struct Injector(Option<Child>);

impl Injector {
    /// Starts the injector; with nothing to inject there is none.
    pub fn start(case: &InjectedCase, duration: Nanos, cpu: usize) -> Result<Injector, Failure> {
        if case.way.is_none() || case.is_of_subject() {
            return Ok(Injector(None));
        }
        let own_program = std::env::current_exe().map_err(Failure::failed)?;
        let mut command = Command::new(own_program);
        command.arg(ARGUMENT).arg(case.name()).arg(cpu.to_string()).arg(duration.0.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Injector(Some(command.spawn().map_err(Failure::failed)?)))
    }

    /// Ends the injector and returns its record in the order of time.
    pub fn finish(mut self) -> Result<Vec<Injected>, String> {
        let Some(mut child) = self.0.take() else { return Ok(Vec::new()) };
        // Closing its standard input is the request to end.
        drop(child.stdin.take());
        let output = child.wait_with_output().map_err(|why| why.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        record::read(&String::from_utf8_lossy(&output.stdout))
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Fails only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Injects delays until the time or standard input ends, then writes the record to standard output.
///
/// # Errors
/// The arguments are not those of [`Injector::start`], or a delay cannot be made.
pub fn run_injector(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let mut next = || arguments.next().unwrap_or_default();
    let (name, cpu, duration) = (next(), next(), next());
    let case = InjectedCase::all_cases().into_iter().find(|case| case.name() == name);
    let (Some(case), Ok(cpu), Ok(duration)) = (case, cpu.parse(), duration.parse::<i64>()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The thread's name is the expected culprit.
    let work = std::thread::Builder::new()
        .name(CULPRIT.to_owned())
        .spawn(move || inject_delays(&case, cpu, duration.saturating_add(AROUND)));
    let injected_delays = work?.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    record::write(&injected_delays, &mut io::stdout().lock())
}

fn inject_delays(case: &InjectedCase, cpu: usize, for_ns: i64) -> io::Result<Vec<Injected>> {
    let Some(way) = case.way else { return Ok(Vec::new()) };
    let injection_distance =
        APART.max(case.length.0 * LENGTHS_APART * way.steps.len() as i64 + APART);
    let max_injections = usize::try_from(for_ns / injection_distance).unwrap_or_default() + 1;
    let mut record = Vec::with_capacity(max_injections * (way.steps.len() + 1) * STRETCHES);
    let needs_no_module = |step: &&str| STEPS_WITHOUT_MODULE.contains(step);
    let mut device = match way.steps.iter().all(needs_no_module) {
        true => None,
        false => Some(OpenOptions::new().read(true).write(true).open(DEVICE)?),
    };
    let group = case.is_confined().then(|| ControlGroup::new(group::GROUP)).transpose()?;
    let _throttling = match way.steps.contains(&"hog") {
        true => Some(throttling::start_throttling(case.length, cpu)?),
        false => None,
    };
    let ended = end_of_input()?;
    memory::lock_all()?;
    attributes::set_affinity(0, &CpuSet::from_cpu(cpu))?;
    let priority = way.priority.and_then(Priority::new);
    // Half as much again for the work around the delay itself: it must not be throttled.
    let deadline = DeadlineAttributes {
        runtime: Nanos(case.length.0 * 3 / 2),
        deadline: Nanos(injection_distance / 2),
        period: Nanos(injection_distance / 2),
    };
    let deadline = (way.policy == Policy::Deadline).then_some(deadline);
    let scheduling = Scheduling { deadline, ..Scheduling::new(way.policy, priority) };
    attributes::set_scheduling(0, &scheduling)?;
    let begin = clock::monotonic_now().0;
    let mut due = begin + injection_distance;
    // Loading BPF programs takes very long for a process that is stopped repeatedly.
    let mut is_measured = group.is_none();
    while due < begin + for_ns && !ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_nanos((due - clock::monotonic_now().0).max(0) as u64));
        if let (Some(group), false) = (&group, is_measured) {
            is_measured = group.has_thread(MEASURING)?;
        }
        let steps = if is_measured { way.steps } else { &[] };
        for step in steps {
            let from = clock::monotonic_now().0;
            record.extend(match (*step, &mut device, &group) {
                ("spin", ..) => spin_for_length(case.length),
                ("thread", ..) => in_new_thread(case.length)?,
                ("hog", ..) => throttling::until_throttled().into_iter().collect(),
                ("sigstop", _, Some(group)) => stop_processes(group, case.length)?,
                ("freeze", _, Some(group)) => {
                    hold_for_length(|on| group.set_frozen(on), case.length)?.into()
                }
                (word, Some(device), _) => in_kernel(word, case.length, device)?,
                _ => Vec::new(),
            });
            record.push(Injected {
                begin: from,
                end: clock::monotonic_now().0,
                role: Role::Around,
            });
        }
        due = (due + injection_distance).max(clock::monotonic_now().0 + injection_distance / 2);
    }
    // From here on nothing may delay the measured program.
    attributes::set_scheduling(0, &Scheduling::new(Policy::Other, None))?;
    Ok(record)
}

/// Steps without a kernel module.
const STEPS_WITHOUT_MODULE: [&str; 5] = ["spin", "thread", "hog", "sigstop", "freeze"];

fn spin_for_length(length: Nanos) -> Vec<Injected> {
    let begin = clock::monotonic_now().0;
    let mut stretches = Vec::with_capacity(STRETCHES);
    let (mut from, mut last) = (begin, begin);
    while last < begin + length.0 {
        spin_loop();
        let now = clock::monotonic_now().0;
        if now - last >= GAP {
            stretches.push([from, last]);
            from = now;
        }
        last = now;
    }
    stretches.push([from, last]);
    record::in_order(stretches.into_iter())
}

/// A new thread inherits this one's policy, priority and name; creating it is a part of the delay,
/// and takes longer than a period if each instruction takes 8 ns.
fn in_new_thread(length: Nanos) -> io::Result<Vec<Injected>> {
    let begin = clock::monotonic_now().0;
    let thread = std::thread::Builder::new().name(CULPRIT.to_owned());
    let scheduling = attributes::read_scheduling(0)?;
    // A policy that a thread was given on purpose is not inherited.
    let work = move || attributes::set_scheduling(0, &scheduling).map(|()| spin_for_length(length));
    let spun = thread.spawn(work)?.join();
    let mut spun =
        spun.unwrap_or_else(|_| Err(io::Error::other("a thread of the injector's panicked")))?;
    spun[0].begin = begin;
    Ok(spun)
}

/// Stops all measured processes; none if there is none.
fn stop_processes(group: &ControlGroup, length: Nanos) -> io::Result<Vec<Injected>> {
    let processes = group.process_ids()?;
    if processes.is_empty() {
        return Ok(Vec::new());
    }
    let to_all = |stops| {
        let signal = if stops { libc::SIGSTOP } else { libc::SIGCONT };
        // A process that has ended is gone.
        processes.iter().for_each(|pid| drop(children::send_signal(*pid, signal)));
        Ok(())
    };
    hold_for_length(to_all, length).map(Vec::from)
}

/// Begins and ends holding something. The exact instants within these two calls are not known here.
fn hold_for_length(
    mut hold: impl FnMut(bool) -> io::Result<()>,
    length: Nanos,
) -> io::Result<[Injected; 3]> {
    let before = clock::monotonic_now().0;
    hold(true)?;
    let begin = clock::monotonic_now().0;
    std::thread::sleep(Duration::from_nanos(length.0 as u64));
    let end = clock::monotonic_now().0;
    hold(false)?;
    let perhaps = |begin, end| Injected { begin, end, role: Role::Perhaps };
    let after = clock::monotonic_now().0;
    Ok([perhaps(before, begin), Injected::new(begin, end), perhaps(end, after)])
}

/// The instants that the module reports: its write returns only after the delayed work.
fn in_kernel(word: &str, length: Nanos, device: &mut File) -> io::Result<Vec<Injected>> {
    device.write_all(format!("{word} {}", length.0).as_bytes())?;
    record::read_device(device)
}

/// Set when the parent has closed standard input, or has died.
fn end_of_input() -> io::Result<Arc<AtomicBool>> {
    let ended = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&ended);
    let reader = std::thread::Builder::new().name("truth-input".to_owned());
    reader.spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        raised.store(true, Ordering::Relaxed);
    })?;
    Ok(ended)
}
