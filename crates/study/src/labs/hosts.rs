//! The hosts of `--on ssh:…`: free, busy or gone, and whether a failed run moves to another.

use super::engine::{CellRunner, Host};
use crate::targets::ssh::destination;
use punctual_lab::ssh::Connection;
use std::collections::BTreeMap;

/// The maximum number of attempts of a run that fails on reachable hosts: these may be the cause.
const ATTEMPTS: usize = 2;
/// How long a lost connection to a host is retried before its run moves to another.
const RECONNECT: &str = "30s";

/// The hosts; none: this machine.
pub struct Hosts {
    hosts: Vec<Host>,
    gone: Vec<bool>,
    attempts: BTreeMap<usize, usize>,
}

/// The reaction to a run that failed on a host.
pub enum NextHost {
    /// Start it again, for this reason.
    Again(String),
    Failed,
}

impl Hosts {
    /// The hosts that an engine names.
    pub fn of(engine: Option<&CellRunner>) -> Hosts {
        let hosts = match engine {
            Some(CellRunner::Ssh(hosts)) => hosts.clone(),
            _ => Vec::new(),
        };
        Hosts { gone: vec![false; hosts.len()], attempts: BTreeMap::new(), hosts }
    }

    /// Whether runs start on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.hosts.is_empty()
    }

    pub fn count(&self) -> usize {
        self.gone.iter().filter(|gone| !**gone).count()
    }

    /// A reachable host without a run.
    pub fn free(&self, busy: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.hosts.len()).find(|host| !self.gone[*host] && !busy(*host))
    }

    pub fn name(&self, host: usize) -> &str {
        &self.hosts[host].plan.host
    }

    /// The options of `punctual run` for a host.
    pub fn options(&self, host: usize) -> Vec<String> {
        let target = self.hosts[host].target.clone();
        vec!["--target".to_owned(), target, "--reconnect-for".to_owned(), RECONNECT.to_owned()]
    }

    /// Handles a run that failed on a host: checks whether the host is reachable.
    pub fn failed(&mut self, job: usize, host: usize) -> NextHost {
        let name = self.name(host).to_owned();
        if Connection::open(&destination(&self.hosts[host].plan)).is_err() {
            self.gone[host] = true;
            return NextHost::Again(format!("{name} does not answer and is not used any more"));
        }
        let attempts = self.attempts.entry(job).or_default();
        *attempts += 1;
        if *attempts < ATTEMPTS {
            return NextHost::Again("it is run once more".to_owned());
        }
        NextHost::Failed
    }
}
