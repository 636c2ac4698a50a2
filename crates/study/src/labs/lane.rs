//! The runs that disturb each other, by their place.

use crate::targets::timebase;
use punctual_bundle::lab::VIRTUAL_MACHINE;
use punctual_plan::TargetPlan;
use punctual_plan::target::Acceleration;

/// The resource that a run needs exclusively.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// Virtual time: not affected by other work of this machine. Each uses one CPU.
    Virtual,
    /// Another machine, by its name, without any other run.
    Remote(String),
    Machine,
}

impl Lane {
    /// The lane of a target.
    pub fn of(target: &TargetPlan) -> Lane {
        match target {
            TargetPlan::Vm(vm) if vm.accel == Acceleration::VirtualTime => Lane::Virtual,
            TargetPlan::Ssh(ssh) => Lane::Remote(ssh.host.clone()),
            TargetPlan::Host | TargetPlan::Vm(_) => Lane::Machine,
        }
    }

    /// Whether a run of this lane may start beside the running ones, of which at most `parallel`
    /// are in virtual time.
    pub fn may_begin(&self, running: &[&Lane], parallel: usize) -> bool {
        let machine = running.contains(&&Lane::Machine);
        match self {
            Lane::Virtual => {
                !machine
                    && running.iter().filter(|lane| ***lane == Lane::Virtual).count() < parallel
            }
            Lane::Remote(_) => !machine && !running.contains(&self),
            Lane::Machine => running.is_empty(),
        }
    }
}

/// The place of a cell, in words.
pub fn place(target: &TargetPlan) -> String {
    match target {
        TargetPlan::Host => "this machine".to_owned(),
        TargetPlan::Ssh(ssh) => format!("{} (ssh)", ssh.host),
        TargetPlan::Vm(vm) => format!("{VIRTUAL_MACHINE}, {}", timebase(vm.accel).name()),
    }
}

/// The limits of what figures of such a target show.
pub fn limit(target: &TargetPlan) -> Option<&'static str> {
    let TargetPlan::Vm(vm) = target else { return None };
    timebase(vm.accel).limit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cells_that_do_not_disturb_each_other_run_concurrently() {
        let there = |name: &str| Lane::Remote(name.to_owned());
        assert!(Lane::Virtual.may_begin(&[&Lane::Virtual, &there("a")], 2));
        assert!(!Lane::Virtual.may_begin(&[&Lane::Virtual, &Lane::Virtual], 2));
        assert!(!Lane::Virtual.may_begin(&[&Lane::Machine], 2));
        assert!(Lane::Machine.may_begin(&[], 2) && !Lane::Machine.may_begin(&[&Lane::Virtual], 2));
        assert!(
            there("a").may_begin(&[&there("b")], 1) && !there("a").may_begin(&[&there("a")], 4)
        );
    }
}
