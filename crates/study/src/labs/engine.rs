//! The machines that run the cells of a lab, if not this one (`--on`).

use punctual_plan::{LoadOptions, SshAddress, SshPlan, TargetPlan};
use std::path::Path;
use std::str::FromStr;

/// The runner of the cells.
#[derive(Clone, PartialEq, Debug)]
pub enum CellRunner {
    /// Slurm's job arrays, on nodes that share the lab's directory.
    Slurm,
    /// Hosts that ssh(1) reaches, each with one run at a time.
    Ssh(Vec<Host>),
    /// The user starts `punctual lab cell` for each run.
    None,
}

/// A host of [`CellRunner::Ssh`].
#[derive(Clone, PartialEq, Debug)]
pub struct Host {
    /// The host in the syntax of `run --target`.
    pub target: String,
    pub plan: SshPlan,
}

impl Host {
    /// The hosts of a target.
    pub(crate) fn hosts_of_plan(plan: &SshPlan) -> Vec<Host> {
        let host = |plan: SshPlan| Host { target: format!("ssh:{}", plan.ssh_address()), plan };
        plan.plan_per_board().into_iter().map(host).collect()
    }

    /// Whether it is the same system.
    pub fn is_same(&self, other: &Host) -> bool {
        (&self.plan.host, self.plan.port) == (&other.plan.host, other.plan.port)
    }

    /// Hosts in words; none: nothing.
    pub(crate) fn format_hosts(hosts: &[Host]) -> Option<String> {
        let name = |host: &Host| SshAddress { user: None, ..host.plan.ssh_address() }.to_string();
        let names: Vec<String> = hosts.iter().map(name).collect();
        (!names.is_empty()).then(|| format!("{} (ssh)", names.join(" or ")))
    }
}

impl FromStr for CellRunner {
    type Err = String;

    fn from_str(text: &str) -> Result<CellRunner, String> {
        let hosts = match (text, text.strip_prefix("ssh:")) {
            ("slurm", _) => return Ok(CellRunner::Slurm),
            ("none", _) => return Ok(CellRunner::None),
            (_, Some(hosts)) => hosts,
            _ => return Err("it is slurm, ssh:HOST,HOST,… or none".to_owned()),
        };
        let mut targets: Vec<String> = Vec::new();
        for word in hosts.split(',') {
            match targets.last_mut() {
                // Keys of [target] follow their host.
                Some(target) if word.contains('=') => *target += &format!(",{word}"),
                _ => targets.push(format!("ssh:{word}")),
            }
        }
        let mut named_hosts: Vec<Host> = Vec::new();
        for target in targets {
            let host = parse_host(target)?;
            if named_hosts.iter().any(|other| other.is_same(&host)) {
                return Err(format!("the host {} is named twice", host.plan.host));
            }
            named_hosts.push(host);
        }
        Ok(CellRunner::Ssh(named_hosts))
    }
}

fn parse_host(target: String) -> Result<Host, String> {
    let read =
        punctual_plan::read_target(Path::new("-"), &[], &LoadOptions::default(), Some(&target));
    match read {
        // Text after a comma that is not a key is taken for a part of the name.
        Ok(TargetPlan::Ssh(plan)) if plan.host.contains(',') => {
            Err(format!("{target}: a host is followed by keys of [target]"))
        }
        Ok(TargetPlan::Ssh(plan)) => Ok(Host { target, plan }),
        Ok(_) => Err(format!("{target} is not another system")),
        Err(problems) => Err(problems.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_hosts_are_parsed_with_their_identity_keys() {
        assert_eq!("slurm".parse(), Ok(CellRunner::Slurm));
        let engine = "ssh:root@a:2222,identity=key,b".parse().expect("two hosts");
        let CellRunner::Ssh(hosts) = &engine else { panic!("{engine:?}") };
        let targets: Vec<&str> = hosts.iter().map(|host| host.target.as_str()).collect();
        assert_eq!(targets, ["ssh:root@a:2222,identity=key", "ssh:b"]);
        assert_eq!(Host::format_hosts(hosts).as_deref(), Some("a:2222 or b (ssh)"));
        for bad in ["", "pbs", "ssh:", "ssh:a,,b", "ssh:a,a", "ssh:-oProxyCommand=x", "ssh:a,x=y"] {
            assert!(bad.parse::<CellRunner>().is_err(), "{bad}");
        }
    }
}
