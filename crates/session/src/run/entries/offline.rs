//! CPUs that go offline and come back: a record across that time is not an entry.

use punctual_core::entry::Entry;
use punctual_core::format;
use punctual_core::{CpuSet, Finding, MonotonicNs, Nanos, Severity};
use std::collections::BTreeMap;

/// The maximum number of offline times that are kept individually.
const KEPT_OFFLINE_TIMES: usize = 1_024;

/// The times in which CPUs were seen offline.
#[derive(Default)]
pub struct Offline {
    cpus: BTreeMap<usize, OfflineCpus>,
}

#[derive(Default)]
struct OfflineCpus {
    /// Each from the first look that found the CPU offline to the last one before it came back.
    windows: Vec<(MonotonicNs, MonotonicNs)>,
    /// Whether the last window is open.
    now: bool,
    /// The number of records that were no entries.
    left_out: u64,
}

impl Offline {
    /// Notes which of the chosen CPUs are online at this instant.
    pub(crate) fn note_online(&mut self, chosen: &CpuSet, online: &CpuSet, at: MonotonicNs) {
        for cpu in chosen.iter() {
            if online.contains(cpu) {
                if let Some(seen) = self.cpus.get_mut(&cpu) {
                    seen.now = false;
                }
                continue;
            }
            let offline_times = self.cpus.entry(cpu).or_default();
            let goes_on = offline_times.now || offline_times.windows.len() >= KEPT_OFFLINE_TIMES;
            match offline_times.windows.last_mut() {
                Some(last) if goes_on => last.1 = at,
                _ => offline_times.windows.push((at, at)),
            }
            offline_times.now = true;
        }
    }

    /// Whether this is an entry. None begins or ends while its CPU is offline: a record across such
    /// an instant spans from the CPU's last activity before it to the first one after it.
    pub fn is_entry(&mut self, entry: &Entry) -> bool {
        let Some(seen) = self.cpus.get_mut(&usize::from(entry.cpu)) else { return true };
        let reaches =
            |(from, to): &(MonotonicNs, MonotonicNs)| entry.begin <= *from && *to <= entry.end;
        let is = !seen.windows.iter().any(reaches);
        seen.left_out += u64::from(!is);
        is
    }

    /// How long a CPU was offline, as far as looks show.
    pub(crate) fn offline_time(&self, cpu: usize) -> Nanos {
        let windows = self.cpus.get(&cpu).map_or(&[][..], |seen| &seen.windows);
        windows.iter().fold(Nanos::ZERO, |sum, (from, to)| sum + (*to - *from))
    }

    /// Findings about time that the figures do not contain. `tick`: the time between two looks.
    pub(crate) fn offline_findings(&self, phase: &str, tick: Nanos) -> Vec<Finding> {
        let finding = |(cpu, seen): (&usize, &OfflineCpus)| {
            let (times, least) = (seen.windows.len() as u64, self.offline_time(*cpu));
            let upper_bound = least + tick * 2 * times as i64;
            let message = format!(
                "CPU {cpu} was offline {}, for {} to {}: its figures are of the rest of the time",
                format::count_with_noun(times, "time"),
                least.to_readable(),
                upper_bound.to_readable()
            );
            let finding = Finding::new("cpu-offline", Severity::Warning, phase, message);
            finding.with_evidence(format!(
                "records that reach across that time and are not entries: {}",
                format::count_text(seen.left_out)
            ))
        };
        self.cpus.iter().map(finding).collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use punctual_core::cycle::TaskComm;
    use punctual_core::entry::Served;

    fn cpus(list: &str) -> CpuSet {
        list.parse().expect("a list")
    }

    fn at(ms: i64) -> MonotonicNs {
        MonotonicNs(ms * 1_000_000)
    }

    /// An entry of a task that kept the CPU from another, in ms.
    pub fn entry(cpu: u16, begin: i64, end: i64) -> Entry {
        let (begin, end) = (at(begin), at(end));
        let name = TaskComm(*b"cpuhp/1\0\0\0\0\0\0\0\0\0");
        Entry {
            cpu,
            begin,
            end,
            own: end - begin,
            served: Served::Task { name, kernel: true },
            task: 0,
            observer: false,
            function: 0,
            over: 0,
            nested: false,
            away: true,
            further: false,
            tick_dependency: 0,
            originator: None,
            via: None,
        }
    }

    /// CPU 1 is offline from 1,020 to 1,750 ms, with a look every 50 ms.
    fn seen() -> Offline {
        let (chosen, mut offline) = (cpus("0-1"), Offline::default());
        for ms in (0..3_000).step_by(50) {
            let online = if (1_020..1_750).contains(&ms) { "0" } else { "0-1" };
            offline.note_online(&chosen, &cpus(online), at(ms));
        }
        offline
    }

    #[test]
    fn time_while_a_cpu_is_offline_is_no_kernel_entry() {
        let mut offline = seen();
        assert!(!offline.is_entry(&entry(1, 1_019, 1_751)));
        // Entries just before and just after, a long one on another CPU, and one that was over.
        for one in [
            entry(1, 1_000, 1_020),
            entry(1, 1_750, 1_900),
            entry(0, 900, 2_000),
            entry(1, 100, 900),
        ] {
            assert!(offline.is_entry(&one), "{one:?}");
        }
        assert_eq!(offline.offline_time(1), Nanos::from_millis(650));
        assert_eq!(offline.offline_time(0), Nanos::ZERO);
        let findings = offline.offline_findings("attach", Nanos::from_millis(50));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(
            finding.message,
            "CPU 1 was offline 1 time, for 650 ms to 750 ms: its figures are of the rest of the \
             time"
        );
        let evidence = finding.evidence.as_deref();
        assert_eq!(evidence, Some("records that reach across that time and are not entries: 1"));
    }

    #[test]
    fn cpus_that_stay_online_cause_no_finding() {
        let (chosen, mut offline) = (cpus("0-1"), Offline::default());
        for ms in 0..100 {
            offline.note_online(&chosen, &chosen, at(ms));
        }
        assert!(offline.is_entry(&entry(1, 0, 90)));
        assert_eq!(offline.offline_findings("attach", Nanos::MILLI), []);
    }

    #[test]
    fn each_offline_period_of_a_cpu_is_counted() {
        let (chosen, mut offline) = (cpus("1"), Offline::default());
        for ms in 0..8 {
            let online = if ms % 4 < 2 { "1" } else { "0" };
            offline.note_online(&chosen, &cpus(online), at(ms));
        }
        assert_eq!(offline.offline_time(1), Nanos::from_millis(2));
        assert!(!offline.is_entry(&entry(1, 1, 4)) && offline.is_entry(&entry(1, 4, 5)));
    }
}
