//! The hosts of `--on ssh:…`: who is free, who is gone, and which run comes to the next one.

use super::engine::{Engine, Host};
use crate::targets::ssh::destination;
use punctual_lab::ssh::Connection;
use std::collections::BTreeMap;

/// How often a run is begun that fails on hosts that answer: what failed may have been the host.
const ATTEMPTS: usize = 2;
/// How long a lost connection to a host is tried again, until its run goes to another.
const RECONNECT: &str = "30s";

/// All of them; none: this machine.
pub struct Hosts {
    hosts: Vec<Host>,
    gone: Vec<bool>,
    attempts: BTreeMap<usize, usize>,
}

/// What becomes of a run that failed on a host.
pub enum Next {
    /// It is begun again, for the reason given.
    Again(String),
    Failed,
}

impl Hosts {
    /// The hosts that an engine names.
    pub fn of(engine: Option<&Engine>) -> Hosts {
        let hosts = match engine {
            Some(Engine::Ssh(hosts)) => hosts.clone(),
            _ => Vec::new(),
        };
        Hosts { gone: vec![false; hosts.len()], attempts: BTreeMap::new(), hosts }
    }

    /// Whether runs begin on this machine.
    pub fn is_here(&self) -> bool {
        self.hosts.is_empty()
    }

    pub fn count(&self) -> usize {
        self.gone.iter().filter(|gone| !**gone).count()
    }

    /// A host that answers and does not run anything.
    pub fn free(&self, busy: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.hosts.len()).find(|host| !self.gone[*host] && !busy(*host))
    }

    pub fn name(&self, host: usize) -> &str {
        &self.hosts[host].plan.host
    }

    /// The options of `punctual run` that lead to one.
    pub fn options(&self, host: usize) -> Vec<String> {
        let target = self.hosts[host].target.clone();
        vec!["--target".to_owned(), target, "--reconnect-for".to_owned(), RECONNECT.to_owned()]
    }

    /// A run failed on a host: asks the host whether it is there.
    pub fn failed(&mut self, job: usize, host: usize) -> Next {
        let name = self.name(host).to_owned();
        if Connection::open(&destination(&self.hosts[host].plan)).is_err() {
            self.gone[host] = true;
            return Next::Again(format!("{name} does not answer and is not used any more"));
        }
        let attempts = self.attempts.entry(job).or_default();
        *attempts += 1;
        if *attempts < ATTEMPTS {
            return Next::Again("it is run once more".to_owned());
        }
        Next::Failed
    }
}
