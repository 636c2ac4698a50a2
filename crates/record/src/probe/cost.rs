//! The cost of timing a function on this machine, measured on empty functions.

use super::empty::{self, Empty};
use super::{ProbeRequest, ProbedProcesses, Probes};
use crate::start_error::StartError;
use crate::symbols::{Function, FunctionSpec, resolve_in_kernel};
use crate::wire;
use punctual_core::event::{EventKind, ProbeCost};
use punctual_core::{CpuSet, Nanos};
use punctual_sys::clock;

/// The number of calls for each kind of function. The most expensive take some 20 ms.
const CALLS: usize = 2_000;

/// Measures every kind of function that this processor has. Takes some tens of milliseconds.
///
/// # Errors
/// If probes cannot be placed in this process itself.
pub fn measure_costs(cpus: &CpuSet) -> Result<Vec<ProbeCost>, StartError> {
    let empties = empty::empty_functions();
    let functions = empties.iter().map(locate_function).collect::<Result<Vec<_>, _>>()?;
    let plain: Vec<Nanos> = empties.iter().map(time_call).collect();
    let request = ProbeRequest {
        whose: ProbedProcesses::Process(std::process::id()),
        argument: None,
        buffer: 1 << 20,
    };
    let mut probes = Probes::start(&functions, &[], cpus, request)?;
    let mut costs = Vec::new();
    for (index, empty) in empties.iter().enumerate() {
        let probed = time_call(empty);
        let measured = drain_durations(&mut probes, index);
        costs.extend(probe_cost(empty.site.to_string(), measured, probed - plain[index]));
    }
    probes.stop_probes(&mut |_, _| {});
    Ok(costs)
}

/// The same for kernel functions, on the system call getppid; empty if its function has another
/// name here.
///
/// # Errors
/// If probes cannot be placed in this kernel.
pub fn measure_in_kernel(cpus: &CpuSet) -> Result<Vec<ProbeCost>, StartError> {
    // The names of system call functions by architecture (arch/*/include/asm/syscall_wrapper.h).
    let name = match std::env::consts::ARCH {
        "aarch64" => "__arm64_sys_getppid",
        "riscv64" => "__riscv_sys_getppid",
        _ => "__x64_sys_getppid",
    };
    let specs: Vec<FunctionSpec> =
        FunctionSpec::parse(&format!("kernel:{name}")).into_iter().collect();
    let Some(functions) = resolve_in_kernel(&specs).ok().filter(|found| found.len() == 1) else {
        return Ok(Vec::new());
    };
    let call = || {
        let _ = rustix::process::getppid();
    };
    let plain = time_of(call);
    let request = ProbeRequest {
        whose: ProbedProcesses::Process(std::process::id()),
        argument: None,
        buffer: 1 << 20,
    };
    let mut probes = Probes::start(&functions, &[], cpus, request)?;
    let probed = time_of(call);
    let measured = drain_durations(&mut probes, 0);
    probes.stop_probes(&mut |_, _| {});
    Ok(probe_cost("kprobe".to_owned(), measured, probed - plain).into_iter().collect())
}

/// The durations of a function's calls that have ended since.
fn drain_durations(probes: &mut Probes, index: usize) -> Vec<Nanos> {
    let mut measured = Vec::new();
    probes.drain_calls(&mut |_, bytes| {
        let calls =
            wire::decode(bytes).filter_map(Result::ok).filter_map(|event| match event.what {
                EventKind::Call { began, function, left: false, .. }
                    if function.0 as usize == index =>
                {
                    Some(Nanos(event.at.0 - began.0))
                }
                _ => None,
            });
        measured.extend(calls);
    });
    measured
}

fn probe_cost(site: String, mut measured: Vec<Nanos>, added: Nanos) -> Option<ProbeCost> {
    measured.sort_unstable();
    let at =
        |hundredth: usize| measured.get((measured.len().max(1) - 1) * hundredth / 100).copied();
    Some(ProbeCost {
        site,
        calls: measured.len() as u64,
        measured_min: at(0)?,
        measured_median: at(50)?,
        measured_p99: at(99)?,
        added,
    })
}

/// The median time of a call, measured from outside: the median of batches, so that a single
/// interruption does not count.
fn time_call(empty: &Empty) -> Nanos {
    // SAFETY: the functions of `empty` take nothing, return nothing and keep all registers but eax,
    // as the C calling convention allows.
    time_of(|| unsafe { (empty.call)() })
}

fn time_of(call: impl Fn()) -> Nanos {
    const BATCHES: usize = 20;
    let mut batches = [Nanos::ZERO; BATCHES];
    for batch in &mut batches {
        let began = clock::monotonic_now();
        for _ in 0..CALLS / BATCHES {
            call();
        }
        *batch = Nanos((clock::monotonic_now().0 - began.0) / (CALLS / BATCHES) as i64);
    }
    batches.sort_unstable();
    batches[BATCHES / 2]
}

/// The position of a function of this program in its file.
pub(super) fn locate_function(empty: &Empty) -> Result<Function, StartError> {
    let address = empty.call as usize as u64;
    let maps = std::fs::read_to_string("/proc/self/maps")
        .map_err(|why| StartError::Request(format!("/proc/self/maps: {why}")))?;
    let offset = maps.lines().find_map(|line| {
        // address perms offset dev inode path (proc_pid_maps(5))
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let from = u64::from_str_radix(from, 16).ok()?;
        let to = u64::from_str_radix(to, 16).ok()?;
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        (from..to).contains(&address).then(|| offset + (address - from))
    });
    let offset = offset
        .ok_or_else(|| StartError::Request("this program is not in its own memory map".into()))?;
    Ok(Function {
        name: format!("an empty function ({})", empty.site),
        bare: String::new(),
        symbol: String::new(),
        object: "/proc/self/exe".into(),
        offset,
        size: 0,
        site: empty.site,
    })
}
