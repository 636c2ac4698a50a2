//! The process that makes delays at instants that it records: this program again, with nothing of
//! the rest in it. It writes its record when it is over, so that writing delays nothing.

use super::cases::{CULPRIT, Case, DEVICE};
use crate::exit::Failure;
use punctual_analyze::truth::Injected;
use punctual_core::{CpuSet, Nanos, Policy, Priority};
use punctual_sys::attributes::{self, Deadline, Scheduling};
use punctual_sys::{clock, memory};
use std::fs::{File, OpenOptions};
use std::hint::spin_loop;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first argument of that process.
pub const ARGUMENT: &str = "truth-inject";

/// From one delay to the start of the next at least; no multiple of the measured period, so that
/// delays begin at all phases of it.
const APART: i64 = 7_310_000;
/// And at least so many times its length, or real-time throttling would come in between.
const LENGTHS_APART: i64 = 4;
/// How long the run may take to begin, and to end: in virtual time it begins after some seconds.
const AROUND: i64 = 60_000_000_000;

/// The process, as its parent sees it.
pub struct Injector(Option<Child>);

impl Injector {
    /// Begins; with nothing to inject it is none.
    pub fn start(case: &Case, duration: Nanos, cpu: usize) -> Result<Injector, Failure> {
        if case.way.is_none() {
            return Ok(Injector(None));
        }
        let own = std::env::current_exe().map_err(Failure::failed)?;
        let mut command = Command::new(own);
        command.arg(ARGUMENT).arg(case.name()).arg(cpu.to_string()).arg(duration.0.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Injector(Some(command.spawn().map_err(Failure::failed)?)))
    }

    /// Ends it; its record, in the order of time.
    pub fn end(mut self) -> Result<Vec<Injected>, String> {
        let Some(mut child) = self.0.take() else { return Ok(Vec::new()) };
        // Its standard input ends: that is the request.
        drop(child.stdin.take());
        let output = child.wait_with_output().map_err(|why| why.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .map(parse)
            .collect::<Option<_>>()
            .ok_or_else(|| "its record cannot be read".to_owned())
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Fails only where it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes delays until the time is over or standard input ends, then writes the record to standard
/// output.
///
/// # Errors
/// The arguments are not those of [`Injector::start`], or a delay cannot be made.
pub fn serve(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let mut next = || arguments.next().unwrap_or_default();
    let (name, cpu, duration) = (next(), next(), next());
    let case = Case::every().into_iter().find(|case| case.name() == name);
    let (Some(case), Ok(cpu), Ok(duration)) = (case, cpu.parse(), duration.parse::<i64>()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The thread's name is the culprit's.
    let work = std::thread::Builder::new()
        .name(CULPRIT.to_owned())
        .spawn(move || work(&case, cpu, duration.saturating_add(AROUND)));
    let record = work?.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    let mut out = io::stdout().lock();
    record.iter().try_for_each(|one| writeln!(out, "{} {}", one.begin, one.end))
}

fn work(case: &Case, cpu: usize, for_ns: i64) -> io::Result<Vec<Injected>> {
    let Some(way) = case.way else { return Ok(Vec::new()) };
    let apart = APART.max(case.length.0 * LENGTHS_APART * way.steps.len() as i64 + APART);
    let most = usize::try_from(for_ns / apart).unwrap_or_default() + 1;
    let mut record = Vec::with_capacity(most * way.steps.len());
    let mut device = match way.steps.iter().any(|step| *step != "spin") {
        true => Some(OpenOptions::new().read(true).write(true).open(DEVICE)?),
        false => None,
    };
    let ended = end_of_input()?;
    memory::lock_all()?;
    attributes::set_affinity(0, &CpuSet::single(cpu))?;
    let priority = way.priority.and_then(Priority::new);
    // Half as much again for what is around the delay itself: it must not be throttled.
    let deadline = Deadline {
        runtime: Nanos(case.length.0 * 3 / 2),
        deadline: Nanos(apart / 2),
        period: Nanos(apart / 2),
    };
    let deadline = (way.policy == Policy::Deadline).then_some(deadline);
    let scheduling = Scheduling { deadline, ..Scheduling::new(way.policy, priority) };
    attributes::set_scheduling(0, &scheduling)?;
    let begin = clock::monotonic().0;
    let mut due = begin + apart;
    while due < begin + for_ns && !ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_nanos((due - clock::monotonic().0).max(0) as u64));
        for step in way.steps {
            record.push(delay(step, case.length, device.as_mut())?);
        }
        due = (due + apart).max(clock::monotonic().0 + apart / 2);
    }
    // What comes now must not delay anybody.
    attributes::set_scheduling(0, &Scheduling::new(Policy::Other, None))?;
    Ok(record)
}

/// Makes one; when it was. The module says so of what it did: its write returns only after what was
/// delayed.
fn delay(step: &str, length: Nanos, device: Option<&mut File>) -> io::Result<Injected> {
    let Some(device) = device.filter(|_| step != "spin") else {
        let begin = clock::monotonic().0;
        let mut end = begin;
        while end < begin + length.0 {
            spin_loop();
            end = clock::monotonic().0;
        }
        return Ok(Injected { begin, end });
    };
    device.write_all(format!("{step} {}", length.0).as_bytes())?;
    let mut line = [0; 64];
    let read = device.read(&mut line)?;
    let line = std::str::from_utf8(&line[..read]).unwrap_or_default();
    parse(line).ok_or_else(|| io::Error::other(format!("{DEVICE} gave `{line}`")))
}

fn parse(line: &str) -> Option<Injected> {
    let (begin, end) = line.trim_end().split_once(' ')?;
    Some(Injected { begin: begin.parse().ok()?, end: end.parse().ok()? })
}

/// Raised when the parent has closed standard input, or has died.
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
