//! The other systems of a lab, of `--on ssh:…` or of `[target]`: free, busy or gone, which job is
//! next on each, and whether a failed one moves to another.

use super::engine::Host;
use super::jobs::{LabJob, PlannedCell, PlannedLab};
use crate::targets::boards::NOT_REACHED;
use crate::targets::ssh::destination_of_plan;
use punctual_lab::ssh::Connection;
use punctual_plan::SshBoot;
use std::collections::BTreeMap;

/// The maximum number of attempts of a run that fails on reachable hosts: these may be the cause.
const ATTEMPTS: usize = 2;
/// How long a lost connection to a host is retried before its run moves to another.
const RECONNECT: &str = "30s";

/// The hosts.
pub struct Hosts {
    all: Vec<LabHost>,
    attempts: BTreeMap<usize, usize>,
}

struct LabHost {
    host: Host,
    /// Why it is not used any more.
    gone: Option<String>,
    /// Whether cells are booted there.
    is_booted: bool,
    /// The block of its last run, and the boot that it asked for.
    last: Option<((u32, usize), Option<SshBoot>)>,
}

/// The reaction to a run that failed on a host.
pub(crate) enum NextHost {
    /// Start it again, for this reason.
    Again(String),
    Failed,
}

impl Hosts {
    /// The hosts of a lab, each once.
    pub fn from_lab(planned: &PlannedLab) -> Hosts {
        let mut lab_hosts: Vec<LabHost> = Vec::new();
        for cell in &planned.cells {
            for host in &cell.hosts {
                let is_booted = cell.boot.is_some();
                match lab_hosts.iter_mut().find(|other| other.host.is_same(host)) {
                    Some(other) => other.is_booted |= is_booted,
                    None => {
                        let host = host.clone();
                        lab_hosts.push(LabHost { host, gone: None, is_booted, last: None });
                    }
                }
            }
        }
        Hosts { all: lab_hosts, attempts: BTreeMap::new() }
    }

    /// The hosts on which cells are booted.
    pub(crate) fn booted_hosts(&self) -> impl Iterator<Item = &Host> {
        self.all.iter().filter(|of| of.is_booted).map(|of| &of.host)
    }

    /// The number of usable hosts.
    pub(crate) fn usable_count(&self) -> usize {
        self.usable_hosts().count()
    }

    /// The usable hosts.
    pub(crate) fn usable_hosts(&self) -> impl Iterator<Item = usize> {
        (0..self.all.len()).filter(|host| self.all[*host].gone.is_none())
    }

    /// A host as a cell names it, with its user and key; `None` if the cell may not run there.
    fn host_for_cell<'c>(&self, host: usize, cell: &'c PlannedCell) -> Option<&'c Host> {
        cell.hosts.iter().find(|of| of.is_same(&self.all[host].host))
    }

    /// Whether a cell may run on a host.
    pub(crate) fn can_run(&self, host: usize, cell: &PlannedCell) -> bool {
        self.host_for_cell(host, cell).is_some()
    }

    /// Why a cell of other systems has no usable one left; `None` if it has, or runs here.
    pub(crate) fn stranded_reason(&self, cell: &PlannedCell) -> Option<String> {
        let allowed_hosts = (0..self.all.len()).filter(|host| self.can_run(*host, cell));
        let reasons: Vec<&String> =
            allowed_hosts.map(|host| self.all[host].gone.as_ref()).collect::<Option<_>>()?;
        reasons.last().map(|why| (*why).clone())
    }

    /// The place of the next of these jobs for a host: of the first one's block the first that has
    /// the boot of its last run in that block, else one whose boot no `running` job has, else the
    /// first. A board begins each block anew, so that none always has the same boot.
    pub fn next(
        &self,
        host: usize,
        planned: &PlannedLab,
        jobs: &[&LabJob],
        running: &[&LabJob],
    ) -> Option<usize> {
        let boot = |job: &LabJob| planned.cells[job.cell].boot.as_ref();
        let takes = |job: &LabJob| self.can_run(host, &planned.cells[job.cell]);
        let first = jobs.iter().find(|job| takes(job))?;
        let of_block = |job: &LabJob| takes(job) && job.block_key() == first.block_key();
        let place = |wanted: &dyn Fn(&LabJob) -> bool| {
            jobs.iter().position(|job| of_block(job) && wanted(job))
        };
        let is_elsewhere = |job: &LabJob| running.iter().any(|other| boot(other) == boot(job));
        let last = self.all[host].last.as_ref().filter(|(block, _)| *block == first.block_key());
        place(&|job| last.is_some_and(|(_, of)| of.as_ref() == boot(job)))
            .or_else(|| place(&|job| !is_elsewhere(job)))
            .or_else(|| place(&|_| true))
    }

    /// The options of `punctual run` for a host on which a cell starts.
    pub fn start_run(&mut self, host: usize, planned: &PlannedLab, job: &LabJob) -> Vec<String> {
        let cell = &planned.cells[job.cell];
        let target = self.host_for_cell(host, cell).unwrap_or(&self.all[host].host).target.clone();
        let lab_host = &mut self.all[host];
        lab_host.last = Some((job.block_key(), cell.boot.clone()));
        let mut options = vec!["--target".to_owned(), target];
        if cell.hosts.len() > 1 {
            options.extend(["--reconnect-for".to_owned(), RECONNECT.to_owned()]);
        }
        options.extend(lab_host.is_booted.then(|| "--keep-boot".to_owned()));
        options
    }

    /// Handles a run that failed on a host: checks whether the host is reachable.
    pub(crate) fn handle_failure(
        &mut self,
        job: usize,
        cell: &PlannedCell,
        host: usize,
        why: &str,
    ) -> NextHost {
        let plan = self.host_for_cell(host, cell).map_or(&self.all[host].host.plan, |of| &of.plan);
        let answers = || Connection::open(&destination_of_plan(plan)).is_ok();
        if why.contains(NOT_REACHED) || !answers() {
            let name = plan.ssh_address();
            self.all[host].gone = Some(match why.contains(NOT_REACHED) {
                true => why.to_owned(),
                false => format!("{name} does not answer"),
            });
            return match self.stranded_reason(cell) {
                Some(_) => NextHost::Failed,
                None => NextHost::Again(format!("{name} is not used any more")),
            };
        }
        // After a boot that came up otherwise the same board would do so again.
        let attempts = self.attempts.entry(job).or_default();
        *attempts += 1;
        match *attempts < ATTEMPTS && (cell.boot.is_none() || cell.hosts.len() > 1) {
            true => NextHost::Again("it is run once more".to_owned()),
            false => NextHost::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labs::request::Overrides;
    use punctual_plan::LoadOptions;
    use punctual_plan::lab::load_lab;
    use std::path::Path;

    fn planned(text: &str) -> PlannedLab {
        let text = format!("{text}\n[[measure]]\nkind = 'timer'\nduration = '1s'\n");
        let options = LoadOptions::default();
        let none = |_: &Path| Err("there is no file".to_owned());
        let lab = load_lab(Path::new("lab.toml"), text.as_bytes(), &options, &none);
        let lab = lab.unwrap_or_else(|why| panic!("{why}"));
        PlannedLab::from_lab(lab, &Overrides::default()).unwrap_or_else(|why| panic!("{why:?}"))
    }

    const POOL: &str = "[lab]\nname = 'pool'\nrepeat = 8\nisolated = '3'\n[axes]\nisolation = \
                        ['none', 'isolcpus']\n'measure.timer.period' = ['1ms', '2ms']\n\
                        [target]\nkind = 'ssh'\nhosts = ['root@a:2222', 'root@a:2223']\n\
                        cmdline = 'quiet'\n";

    /// Runs all jobs in turns of one job on each usable host; returns (host, boot, block) of each.
    fn order(planned: &PlannedLab, hosts: &mut Hosts) -> Vec<(usize, String, (u32, usize))> {
        let jobs = planned.all_jobs();
        let (mut pending, mut order): (Vec<&LabJob>, Vec<_>) = (jobs.iter().collect(), Vec::new());
        loop {
            let mut running: Vec<&LabJob> = Vec::new();
            for host in hosts.usable_hosts().collect::<Vec<_>>() {
                let Some(next) = hosts.next(host, planned, &pending, &running) else { continue };
                let job = pending.remove(next);
                let cell = &planned.cells[job.cell];
                hosts.start_run(host, planned, job);
                running.push(job);
                let boot = cell.boot.as_ref().map_or_else(String::new, |of| of.cmdline.clone());
                order.push((host, boot, job.block_key()));
            }
            if running.is_empty() {
                return order;
            }
        }
    }

    #[test]
    fn boards_of_a_pool_share_the_boots_of_each_block_and_lost_ones_leave_theirs() {
        let planned = planned(POOL);
        assert_eq!(planned.cells[0].place, "a:2222 or a:2223 (ssh)");
        let mut hosts = Hosts::from_lab(&planned);
        assert_eq!((hosts.usable_count(), hosts.booted_hosts().count()), (2, 2));
        let all = order(&planned, &mut hosts);
        assert_eq!(all.len(), 32);
        for block in 0..8 {
            for host in [0, 1] {
                let its = all.iter().filter(|one| one.0 == host && one.2.0 == block);
                let mut boots: Vec<&String> = its.map(|one| &one.1).collect();
                assert_eq!(boots.len(), 2, "{all:?}");
                boots.dedup();
                assert_eq!(boots.len(), 1, "each board boots once in a block: {all:?}");
            }
        }
        assert!(all.windows(2).all(|two| two[0].2 <= two[1].2), "block by block: {all:?}");
        let of_first = |boot: &str| all.iter().filter(|one| one.0 == 0 && one.1 == boot).count();
        let is_both = of_first("quiet") > 0 && of_first("quiet isolcpus=3") > 0;
        assert!(is_both, "no board has but one boot: {all:?}");
        let options = hosts.start_run(1, &planned, &planned.all_jobs()[0]);
        let expected = ["--target", "ssh:root@a:2223", "--reconnect-for", RECONNECT, "--keep-boot"];
        assert_eq!(options, expected);
        // One is lost: its cells move; both are: nothing takes them.
        let mut hosts = Hosts::from_lab(&planned);
        let cell = &planned.cells[0];
        let moved = hosts.handle_failure(0, cell, 0, "a:2222 not reached since 09:00");
        assert!(matches!(moved, NextHost::Again(why) if why.contains("a:2222 is not used")));
        assert_eq!(order(&planned, &mut hosts).len(), 32);
        assert!(hosts.stranded_reason(cell).is_none());
        let lost = hosts.handle_failure(1, cell, 1, "a:2223 not reached since 09:10");
        assert!(matches!(lost, NextHost::Failed));
        assert!(hosts.stranded_reason(cell).is_some_and(|why| why.contains("not reached since")));
        assert!(order(&planned, &mut hosts).is_empty());
    }

    #[test]
    fn a_board_is_an_axis_by_the_path_of_its_key() {
        let axes = "[axes]\n'target.host' = ['a', 'b']\n";
        let planned = planned(&POOL.replace("[axes]\n", axes));
        let places: Vec<&str> = planned.cells.iter().map(|cell| cell.place.as_str()).collect();
        assert_eq!(places[..5], ["a (ssh)", "a (ssh)", "a (ssh)", "a (ssh)", "b (ssh)"]);
        let mut hosts = Hosts::from_lab(&planned);
        assert_eq!(order(&planned, &mut hosts).len(), 64);
        // The cells of a lost board do not move.
        let mut hosts = Hosts::from_lab(&planned);
        let lost = hosts.handle_failure(0, &planned.cells[0], 0, "a not reached since 09:00");
        assert!(matches!(lost, NextHost::Failed));
        assert!(hosts.stranded_reason(&planned.cells[0]).is_some());
        assert!(hosts.stranded_reason(&planned.cells[7]).is_none());
        assert_eq!(order(&planned, &mut hosts).len(), 32);
    }
}
