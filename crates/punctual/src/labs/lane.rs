//! Which runs disturb each other, by where they run.

use punctual_plan::TargetPlan;
use punctual_plan::target::Acceleration;

/// What a run needs for itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// Virtual time: whatever this machine does meanwhile is not seen. One CPU of it each.
    Virtual,
    /// Another machine, by its name: nothing else there.
    Remote(String),
    /// This machine, alone.
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

    /// Whether a run of this lane may begin beside those that are running, of which at most `parallel` are in virtual time.
    pub fn may_begin(&self, running: &[&Lane], parallel: usize) -> bool {
        let machine = running.contains(&&Lane::Machine);
        match self {
            Lane::Virtual => !machine && running.iter().filter(|lane| ***lane == Lane::Virtual).count() < parallel,
            Lane::Remote(_) => !machine && !running.contains(&self),
            Lane::Machine => running.is_empty(),
        }
    }
}

/// Where a cell runs, in words.
pub fn place(target: &TargetPlan) -> String {
    match target {
        TargetPlan::Host => "this machine".to_owned(),
        TargetPlan::Ssh(ssh) => format!("{} (ssh)", ssh.host),
        TargetPlan::Vm(vm) => match vm.accel {
            Acceleration::VirtualTime => "virtual machine, virtual time".to_owned(),
            Acceleration::Tcg => "virtual machine, tcg".to_owned(),
            Acceleration::Kvm => "virtual machine, kvm".to_owned(),
        },
    }
}

/// What figures of such a target are and what they are not.
pub fn limit(target: &TargetPlan) -> Option<&'static str> {
    let TargetPlan::Vm(vm) = target else { return None };
    Some(match vm.accel {
        Acceleration::VirtualTime => {
            "Virtual time: every instruction of the guest takes 8 ns, so the figures compare software paths (preemption model, lock, driver, \
             configuration) and not hardware: no caches, no firmware interrupts, no changes of frequency. Any change of the kernel's command \
             line, of memory or of files in the guest is another timeline: a claim about a kernel needs several seeds."
        }
        Acceleration::Tcg => {
            "Emulation in this machine's time (tcg), not deterministic: latencies hold what this machine did meanwhile, milliseconds in the worst \
             case on every kernel. Good for behaviour, no measure of a kernel's worst case."
        }
        Acceleration::Kvm => {
            "A virtual machine in this machine's time (kvm), not deterministic: latencies hold what this machine and its hypervisor did meanwhile."
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_disturbs_nobody_runs_beside_others() {
        let there = |name: &str| Lane::Remote(name.to_owned());
        assert!(Lane::Virtual.may_begin(&[&Lane::Virtual, &there("a")], 2));
        assert!(!Lane::Virtual.may_begin(&[&Lane::Virtual, &Lane::Virtual], 2));
        assert!(!Lane::Virtual.may_begin(&[&Lane::Machine], 2));
        assert!(Lane::Machine.may_begin(&[], 2) && !Lane::Machine.may_begin(&[&Lane::Virtual], 2));
        assert!(there("a").may_begin(&[&there("b")], 1) && !there("a").may_begin(&[&there("a")], 4));
    }
}
