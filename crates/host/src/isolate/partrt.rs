//! A partition that partrt made: its two cpusets of version 1, and the file in which it keeps the
//! settings that it changed. Taken over into a journal, it is undone as one of our own.

use super::cpusets::Cpusets;
use super::{Refusal, cpusets_of_others};
use crate::files::Files;
use crate::journal::record::{ChangePurpose, JournalAction, KernelWrite, PartitionNote};
use crate::journal::value::{is_same_value, normalize_value};
use crate::journal::{self, Journal, JournalError, SavedJournal, Store, read_all};
use punctual_core::CpuSet;

/// Where partrt keeps the former settings.
pub const PARTRT_SETTINGS: &str = "/tmp/partrt_env";
/// The first word of that file.
const HEAD: &str = "partrt_settings:";
/// The step of all changes in a journal that was taken over.
const STEP: &str = "partrt";

/// The settings that it changes, with what it writes; `None`: the mask of the other CPUs. Only
/// these are restored: its file is in /tmp.
const SETTINGS: [(&str, Option<&str>); 8] = [
    ("/proc/sys/kernel/sched_rt_runtime_us", Some("-1")),
    ("/sys/kernel/debug/sched_tick_max_deferment", Some("-1")),
    ("/proc/sys/vm/stat_interval", Some("1000")),
    ("/sys/bus/workqueue/devices/writeback/numa", Some("0")),
    ("/proc/sys/kernel/watchdog", Some("0")),
    ("/sys/bus/workqueue/devices/writeback/cpumask", None),
    ("/sys/devices/virtual/workqueue/cpumask", None),
    ("/sys/devices/system/machinecheck/machinecheck0/check_interval", Some("0")),
];

/// Finds one. Its names can be chosen, so the cpusets are recognised by their settings: CPUs of one
/// alone, without load balancing, and all others in a second.
pub fn find_partrt(files: &dyn Files) -> Result<Option<PartitionNote>, Refusal> {
    let cpusets = match Cpusets::find_controller(files) {
        Ok(cpusets) if cpusets.is_v1() => cpusets,
        Ok(_) | Err(Refusal::NoCpusets(_)) => return Ok(None),
        Err(why) => return Err(why),
    };
    let mount = cpusets.hierarchy.mount.clone();
    let setting = |path: &str, name: &str| {
        files.read_trimmed(&cpusets.file_path(path, name)).unwrap_or_default()
    };
    let balances = |path: &str| setting(path, "sched_load_balance") != "0";
    if balances(&mount) {
        return Ok(None);
    }
    let root_cpus: CpuSet = setting(&mount, "cpus").parse().unwrap_or_default();
    let name = |path: &str| path.strip_prefix(&format!("{mount}/")).map(str::to_owned);
    let all_of_them = cpusets_of_others(files, &cpusets)?;
    let direct = || {
        all_of_them.iter().filter_map(|one| {
            name(&one.path).filter(|name| !name.contains('/')).map(|name| (one, name))
        })
    };
    let found = direct().find_map(|(rt, rt_name)| {
        if rt.claim.is_none() || balances(&rt.path) {
            return None;
        }
        let housekeeping = root_cpus.difference(&rt.cpus);
        let is_rest = |cpus: &CpuSet, path: &str| *cpus == housekeeping && balances(path);
        let (_, nrt) = direct().find(|(one, _)| is_rest(&one.cpus, &one.path))?;
        let hierarchy = cpusets.hierarchy.clone();
        Some(PartitionNote { cpus: rt.cpus.clone(), housekeeping, hierarchy, rt: rt_name, nrt })
    });
    Ok(found)
}

/// Whether a journal was written by [`take_over`] and is incomplete: nothing was changed by it.
fn is_unfinished(saved: &SavedJournal) -> bool {
    let is_ours = |entry: &crate::journal::saved::SavedChange| entry.intent.step == STEP;
    !saved.ready && saved.partition_note().is_some() && saved.entries.iter().all(is_ours)
}

/// Writes a journal as if punctual had made the partition: undo then does the rest. `settings` is
/// the text of [`PARTRT_SETTINGS`]. Returns the settings that partrt may have changed and whose
/// former values are not known; `None` if there is no such partition, or one of our own.
pub fn take_over(
    files: &dyn Files,
    store: &dyn Store,
    settings: Option<&str>,
) -> Result<Option<Vec<String>>, JournalError> {
    // Without the lock first: most calls find nothing.
    let Ok(Some(_)) = find_partrt(files) else { return Ok(None) };
    let _lock = journal::acquire_lock(store)?;
    journal::put_aside_stale(store, &journal::boot_id(files)?)?;
    for saved in read_all(store)? {
        if is_unfinished(&saved) {
            store.remove(&saved.name).map_err(journal::in_store(store, "remove", &saved.name))?;
        } else if saved.partition_note().is_some() {
            return Ok(None);
        }
    }
    let Ok(Some(note)) = find_partrt(files) else { return Ok(None) };
    let cpusets = Cpusets::find_controller(files).ok();
    let purpose = ChangePurpose::Partition(note.clone());
    let mut journal = Journal::begin_new(store, files, purpose, false)?;
    let hierarchy = note.hierarchy.clone();
    for name in [&note.rt, &note.nrt] {
        let path = format!("{}/{name}", hierarchy.mount);
        let made_cgroup = JournalAction::MakeCgroup { hierarchy: hierarchy.clone(), path };
        journal.note_made(STEP, made_cgroup, None)?;
    }
    let mut note_write = |path: &str, old: &str, new: &str| {
        let write = KernelWrite::new(path, old.to_owned(), new);
        journal.note_made(STEP, JournalAction::Write(write), Some(new.to_owned()))
    };
    if let Some(cpusets) = cpusets {
        note_write(&cpusets.file_path(&hierarchy.mount, "sched_load_balance"), "1", "0")?;
    }
    let (nrt, all) = (note.housekeeping.to_mask(), note.housekeeping.union(&note.cpus).to_mask());
    for path in interrupt_files(files) {
        // It gave every interrupt to the other CPUs; those that it could not move are as before.
        if files.read(&path).is_ok_and(|now| is_same_value(&now, &nrt)) {
            note_write(&path, &all, &nrt)?;
        }
    }
    let former = former_settings(settings.unwrap_or_default());
    let mut unknown = Vec::new();
    for (path, written) in SETTINGS {
        let written = written.unwrap_or(&nrt);
        let old = former.iter().find(|(of, _)| *of == path).map(|(_, old)| old);
        match old {
            Some(old) => note_write(path, old, written)?,
            None if files
                .read(path)
                .is_ok_and(|now| is_same_value(&normalize_value(&now), written)) =>
            {
                unknown.push(path.to_owned());
            }
            None => {}
        }
    }
    journal.mark_ready()?;
    Ok(Some(unknown))
}

/// The affinity of new interrupts, and of each.
fn interrupt_files(files: &dyn Files) -> Vec<String> {
    let numbers = files.list("/proc/irq").unwrap_or_default();
    let numbers = numbers.into_iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    let of_each = numbers.map(|number| format!("/proc/irq/{number}/smp_affinity"));
    std::iter::once("/proc/irq/default_smp_affinity".to_owned()).chain(of_each).collect()
}

/// The lines `PATH VALUE` of its file whose value is a number or a mask.
fn former_settings(text: &str) -> Vec<(&str, &str)> {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|first| first.starts_with(HEAD)) {
        return Vec::new();
    }
    let is_value = |value: &str| {
        let digits = value.strip_prefix('-').unwrap_or(value);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b',')
    };
    let settings = lines.filter_map(|line| line.split_once(' '));
    let settings = settings.map(|(path, value)| (path, value.trim()));
    settings.filter(|(_, value)| is_value(value)).collect()
}
