//! How the CPUs spend their time, from /proc/stat (proc(5), in USER_HZ ticks).

use crate::files::{FileError, Files};
use punctual_core::Nanos;
use std::collections::BTreeMap;

/// Ticks of one CPU, or of all combined, since boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTicks {
    /// All ticks: guest time is included in user time and is not added twice.
    pub total: u64,
    /// Idle or waiting for I/O.
    pub idle: u64,
    /// Time taken by the hypervisor while the CPU had work.
    pub steal: u64,
    /// In hardirqs and softirqs.
    pub interrupts: u64,
}

/// A reading of /proc/stat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuTimes {
    pub all: CpuTicks,
    pub cpus: BTreeMap<u32, CpuTicks>,
    /// Context switches since boot (`ctxt`).
    pub switches: Option<u64>,
}

/// Shares of an interval, each 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TimeShares {
    /// Neither idle nor waiting for I/O.
    pub busy: f64,
    pub steal: f64,
    /// In interrupts.
    pub interrupts: f64,
}

fn parse_line(line: &str) -> Option<(&str, CpuTicks)> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?;
    // user nice system idle iowait irq softirq steal guest guest_nice
    let fields: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    let field = |k: usize| fields.get(k).copied().unwrap_or(0);
    (fields.len() >= 4).then(|| {
        let total = fields.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        let (idle, interrupts) =
            (field(3).saturating_add(field(4)), field(5).saturating_add(field(6)));
        (name, CpuTicks { total, idle, steal: field(7), interrupts })
    })
}

impl CpuTimes {
    /// A tick of USER_HZ, which is 100 on every architecture that Linux supports except Alpha
    /// (include/asm-generic/param.h).
    pub const TICK: Nanos = Nanos::from_millis(10);

    pub fn read(files: &dyn Files) -> Result<CpuTimes, FileError> {
        let text = files.read("/proc/stat")?;
        let mut times = CpuTimes::default();
        for (name, ticks) in
            text.lines().take_while(|line| line.starts_with("cpu")).filter_map(parse_line)
        {
            match name.strip_prefix("cpu").unwrap_or_default() {
                "" => times.all = ticks,
                number => drop(number.parse().map(|cpu: u32| times.cpus.insert(cpu, ticks))),
            }
        }
        let switches = text.lines().find_map(|line| line.strip_prefix("ctxt "));
        times.switches = switches.and_then(|count| count.trim().parse().ok());
        Ok(times)
    }

    /// The shares of all CPUs, and of each, since an earlier reading; `None` if no tick passed.
    pub fn shares_since(
        &self,
        earlier: &CpuTimes,
    ) -> (Option<TimeShares>, BTreeMap<u32, TimeShares>) {
        let cpu_shares = self
            .cpus
            .iter()
            .filter_map(|(cpu, now)| Some((*cpu, now.shares_since(earlier.cpus.get(cpu)?)?)));
        (self.all.shares_since(&earlier.all), cpu_shares.collect())
    }
}

impl CpuTicks {
    fn shares_since(&self, earlier: &CpuTicks) -> Option<TimeShares> {
        // The counters of a CPU can decrease slightly (idle accounting): a share is never negative.
        let total = self.total.checked_sub(earlier.total).filter(|n| *n > 0)? as f64;
        let share = |now: u64, then: u64| (now.saturating_sub(then) as f64 / total).min(1.0);
        Some(TimeShares {
            busy: 1.0 - share(self.idle, earlier.idle),
            steal: share(self.steal, earlier.steal),
            interrupts: share(self.interrupts, earlier.interrupts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_interval() {
        let line = |text| parse_line(text).unwrap().1;
        let (then, now) =
            (line("cpu0 10 0 10 80 0 0 0 0 0 0"), line("cpu0 40 0 20 120 20 5 5 0 30 0"));
        let shares = now.shares_since(&then).unwrap();
        assert!((shares.busy - 0.4545).abs() < 0.001, "{shares:?}");
        assert!((shares.interrupts - 10.0 / 110.0).abs() < 1e-9);
        assert_eq!(then.shares_since(&then), None);
    }

    #[test]
    fn cpu_times_of_this_system_are_read() {
        let times = CpuTimes::read(&crate::files::Root::from_system()).unwrap();
        assert!(!times.cpus.is_empty() && times.all.total > 0);
    }
}
