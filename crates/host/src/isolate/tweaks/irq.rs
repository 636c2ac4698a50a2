//! Interrupts (Documentation/core-api/irq/irq-affinity.rst).

use super::Draft;
use crate::environment::{InterruptLine, Interrupts};
use crate::files::Files;
use crate::isolate::machine::MachineSplit;
use crate::journal::record::{FileValue, KernelWrite};
use punctual_core::CpuSet;

/// An interrupt with its affinity.
struct IrqAffinity {
    path: String,
    effective_path: String,
    names: String,
    allowed: CpuSet,
    effective: Option<CpuSet>,
}

fn list_interrupts(files: &dyn Files) -> Result<Vec<IrqAffinity>, String> {
    let mut numbers: Vec<u32> = files
        .list("/proc/irq")
        .map_err(|error| error.to_string())?
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let lines = Interrupts::read(files, "/proc/interrupts");
    let lines = lines.known_value().map(|all| all.lines.as_slice()).unwrap_or_default();
    let names = |number: u32| {
        lines
            .iter()
            .find(|line| line.irq_number() == Some(number))
            .map(InterruptLine::requester_name)
    };
    Ok(numbers.into_iter().filter_map(|number| look_at(files, number, names(number))).collect())
}

fn look_at(files: &dyn Files, number: u32, names: Option<String>) -> Option<IrqAffinity> {
    let directory = format!("/proc/irq/{number}");
    let path = format!("{directory}/smp_affinity_list");
    let allowed = files.read(&path).ok()?.parse().ok()?;
    let effective_path = format!("{directory}/effective_affinity_list");
    let effective = files.read(&effective_path).ok().and_then(|text| text.parse().ok());
    // The name comes from a driver; an interrupt without handler has no line.
    let names = names.filter(|names| !names.is_empty()).unwrap_or_else(|| "no handler".to_owned());
    Some(IrqAffinity { path, effective_path, names, allowed, effective })
}

/// Keeps every interrupt that may use the partition off it.
pub(crate) fn move_interrupts(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    for interrupt in list_interrupts(files)? {
        if interrupt.allowed.intersection(&machine.rt).is_empty() {
            continue;
        }
        let (old, new) =
            (interrupt.allowed.to_string(), machine.keep_off(&interrupt.allowed).to_string());
        let mut write = KernelWrite::new(&interrupt.path, old, &new);
        // The CPU that serves it now. If only the whole old set were restored, an interrupt would
        // stay on its new CPU (arch/x86/kernel/apic/vector.c, assign_vector_locked keeps a vector
        // that fits): it is first set to its old CPU, and moves there at its next occurrence.
        let was_here =
            interrupt.effective.filter(|cpus| !cpus.is_empty() && cpus.is_subset(&machine.rt));
        if let Some(first) = was_here.map(|cpus| cpus.to_string()).filter(|cpus| *cpus != write.old)
        {
            write.undo.insert(0, first.clone());
            write.settles = Some(FileValue { path: interrupt.effective_path, value: first });
        }
        draft.writes.push((Some(interrupt.names), write));
    }
    Ok(())
}

/// Does the same for interrupts requested later.
pub(crate) fn default_affinity(
    files: &dyn Files,
    machine: &MachineSplit,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.keep_off(files, machine, "/proc/irq/default_smp_affinity");
    Ok(())
}

/// The files of interrupts that are restricted to these CPUs.
pub(crate) fn bound_to(files: &dyn Files, cpus: &CpuSet) -> Vec<String> {
    let bound = |interrupt: &IrqAffinity| {
        !interrupt.allowed.is_empty() && interrupt.allowed.is_subset(cpus)
    };
    let found = list_interrupts(files).unwrap_or_default();
    found.into_iter().filter(bound).map(|interrupt| interrupt.path).collect()
}
