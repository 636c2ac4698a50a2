//! Steal time during a test: samples delayed by it do not count against the test.

use std::fs;

/// The unit of /proc/stat, ns (proc_stat(5)).
const TICK: i64 = 10_000_000;

/// The steal of one CPU, from now on.
pub struct Steal {
    cpu: usize,
    before: i64,
}

/// Steal time that has not been used as an excuse, ns.
#[derive(Debug)]
pub struct Excuse(i64);

impl Steal {
    pub fn begin(cpu: usize) -> Steal {
        Steal { cpu, before: ticks(cpu) }
    }

    /// The steal time until now, in full ticks.
    pub fn excuse(&self) -> Excuse {
        Excuse((ticks(self.cpu) - self.before).max(0) * TICK)
    }
}

impl Excuse {
    /// The remaining part, in ns.
    pub fn left(&self) -> i64 {
        self.0
    }

    /// Whether steal time accounts for this many ns; they are then used up.
    pub fn covers(&mut self, ns: i64) -> bool {
        let covers = ns <= self.0;
        self.0 -= if covers { ns } else { 0 };
        covers
    }
}

/// The steal time of this CPU since boot; 0 if the kernel does not count it.
fn ticks(cpu: usize) -> i64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name));
    line.and_then(|line| line.split_whitespace().nth(7)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_time_excuses_each_delay_once() {
        let mut excuse = Excuse(10);
        assert_eq!(
            [excuse.covers(6), excuse.covers(5), excuse.covers(4), excuse.covers(1)],
            [true, false, true, false]
        );
    }
}
