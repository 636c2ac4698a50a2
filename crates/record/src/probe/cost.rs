//! What timing a function costs on this machine, measured on functions that do nothing.

use super::empty::{self, Empty};
use super::{ProbeRequest, Probes, Whose};
use crate::recorder::{StartError, now};
use crate::symbols::Function;
use crate::wire;
use punctual_core::event::{ProbeCost, What};
use punctual_core::{CpuSet, Nanos};

/// Calls for each kind of function. At the dearest they take some 20 ms.
const CALLS: usize = 2_000;

/// Measures every kind of function that this processor has. Takes some tens of milliseconds.
///
/// # Errors
/// Where no probe can be put into this process itself.
pub fn measure(cpus: &CpuSet) -> Result<Vec<ProbeCost>, StartError> {
    let empties = empty::all();
    let functions = empties.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let plain: Vec<Nanos> = empties.iter().map(time).collect();
    let request = ProbeRequest { whose: Whose::Process(std::process::id()), argument: None, buffer: 1 << 20 };
    let mut probes = Probes::start(&functions, &[], cpus, request)?;
    let mut costs = Vec::new();
    for (index, empty) in empties.iter().enumerate() {
        let probed = time(empty);
        let mut measured = Vec::new();
        probes.drain(&mut |_, bytes| {
            let calls = wire::decode(bytes).filter_map(Result::ok).filter_map(|event| match event.what {
                What::Call { began, function, left: false, .. } if function.0 as usize == index => {
                    Some(Nanos(event.at.0 - began.0))
                }
                _ => None,
            });
            measured.extend(calls);
        });
        measured.sort_unstable();
        let at = |hundredth: usize| measured.get((measured.len().max(1) - 1) * hundredth / 100).copied();
        let (Some(min), Some(median), Some(p99)) = (at(0), at(50), at(99)) else { continue };
        costs.push(ProbeCost {
            site: empty.site.to_string(),
            calls: measured.len() as u64,
            measured_min: min,
            measured_median: median,
            measured_p99: p99,
            added: probed - plain[index],
        });
    }
    probes.stop(&mut |_, _| {});
    Ok(costs)
}

/// The median time of a call, from the outside: the median of batches, so that an interruption of one does not count.
fn time(empty: &Empty) -> Nanos {
    const BATCHES: usize = 20;
    let mut batches = [Nanos::ZERO; BATCHES];
    for batch in &mut batches {
        let began = now();
        for _ in 0..CALLS / BATCHES {
            // SAFETY: the functions of `empty` take nothing, return nothing and keep all registers but eax, as the C calling
            // convention allows.
            unsafe { (empty.call)() };
        }
        *batch = Nanos((now().0 - began.0) / (CALLS / BATCHES) as i64);
    }
    batches.sort_unstable();
    batches[BATCHES / 2]
}

/// Where a function of this very program lies in its file.
pub(super) fn place(empty: &Empty) -> Result<Function, StartError> {
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
    let offset =
        offset.ok_or_else(|| StartError::Request("this program does not find itself in its memory map".into()))?;
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
