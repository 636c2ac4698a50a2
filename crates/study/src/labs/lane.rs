//! The runs that disturb each other, by their place.

use crate::targets::timebase_of_accel;
use punctual_bundle::lab::VIRTUAL_MACHINE;
use punctual_plan::TargetPlan;
use punctual_plan::target::Acceleration;

/// The resource that a run needs exclusively.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RunLane {
    /// Virtual time: not affected by other work of this machine. Each uses one CPU.
    Virtual,
    /// Other machines, each without any other run ([`super::hosts`]).
    Remote(String),
    Machine,
}

impl RunLane {
    /// The lane of a target; other systems by their names in words.
    pub fn from_target(target: &TargetPlan, others: Option<String>) -> RunLane {
        match (target, others) {
            (_, Some(others)) => RunLane::Remote(others),
            (TargetPlan::Vm(vm), _) if vm.accel == Acceleration::VirtualTime => RunLane::Virtual,
            _ => RunLane::Machine,
        }
    }

    /// Whether a run of this lane may start beside the running ones, of which at most `parallel`
    /// are in virtual time.
    pub fn may_begin(&self, running: &[&RunLane], parallel: usize) -> bool {
        let machine = running.contains(&&RunLane::Machine);
        match self {
            RunLane::Virtual => {
                !machine
                    && running.iter().filter(|lane| ***lane == RunLane::Virtual).count() < parallel
            }
            RunLane::Remote(_) => !machine,
            RunLane::Machine => running.is_empty(),
        }
    }
}

/// The place of a cell that this machine runs, in words.
pub(crate) fn format_place(target: &TargetPlan) -> String {
    match target {
        TargetPlan::Host | TargetPlan::Ssh(_) => "this machine".to_owned(),
        TargetPlan::Vm(vm) => {
            format!("{VIRTUAL_MACHINE}, {}", timebase_of_accel(vm.accel).target_suffix())
        }
    }
}

/// The limits of what figures of such a target show.
pub(crate) fn limit_of_target(target: &TargetPlan) -> Option<&'static str> {
    let TargetPlan::Vm(vm) = target else { return None };
    timebase_of_accel(vm.accel).full_meaning()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cells_that_do_not_disturb_each_other_run_concurrently() {
        let there = |name: &str| RunLane::Remote(name.to_owned());
        assert!(RunLane::Virtual.may_begin(&[&RunLane::Virtual, &there("a")], 2));
        assert!(!RunLane::Virtual.may_begin(&[&RunLane::Virtual, &RunLane::Virtual], 2));
        assert!(!RunLane::Virtual.may_begin(&[&RunLane::Machine], 2));
        assert!(
            RunLane::Machine.may_begin(&[], 2)
                && !RunLane::Machine.may_begin(&[&RunLane::Virtual], 2)
        );
        assert!(
            there("a").may_begin(&[&there("b")], 1)
                && !there("a").may_begin(&[&RunLane::Machine], 4)
        );
    }
}
