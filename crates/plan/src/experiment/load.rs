//! `[[load]]` and `[[phase]]`.

use super::measure::MeasurePlan;
use crate::form::{
    command_form, duration_form, flag_form, number_form, policy_form, text_form, text_or, word_form,
};
use crate::limits::MAX_DURATION;
use crate::scheduling::SchedulingSpec;
use crate::section::section;
use crate::values;
use crate::words::{CpuChoice, LoadOutput, Nice, OnExit};
use punctual_core::{CpuSet, Nanos, Policy, Priority};
use std::path::PathBuf;

section! {
    /// A program that loads the system.
    LoadSpec {
        /// Unique in the file.
        key name: String,
            text_form("NAME", values::check_name),
            ["the program's name without its directory, with `-2`, `-3`, … where that is taken"];
        /// The program and its arguments, at most 32 KiB. A string is split into words as a shell
        /// would, quotes and backslashes included, but there is no shell: nothing is expanded, and
        /// `;`, `#`, `$`, `|`, `*` are characters like any other. For a shell, write `"sh -c '…'"`.
        /// An array holds the arguments as they are. The program must exist, in the PATH unless it
        /// contains a `/`.
        key command: Vec<String>,
            command_form(),
            [needed "this load has no command", "write `command = \"stress-ng --fork 2\"`"];
        /// The CPUs that it may run on.
        key cpus: CpuChoice,
            text_or("CPUS", "all", values::cpu_choice),
            ["`\"all\"`; with a `[partition]` all CPUs outside"];
        /// The scheduling policy, any but `deadline`, which may not start other processes
        /// (sched(7)).
        key policy: Policy, policy_form(), [= Policy::Other];
        /// Only with `fifo` and `rr`; the default is the lowest, which disturbs least.
        key priority: Priority,
            number_form(1, 99, values::check_priority),
            [= Priority::new(1).expect("1 is a priority")];
        /// Only with `other` and `batch`.
        key nice: Nice, number_form(-20, 19, values::check_nice), [= Nice::default()];
        /// Where its standard output goes: a file, truncated first, or */dev/null*. (A file called
        /// *null* is written `"./null"`.)
        key stdout: LoadOutput, text_or("PATH", "null", values::parse_output),
            [= LoadOutput::Null] => plan;
        /// The same for its standard error.
        key stderr: LoadOutput, text_or("PATH", "null", values::parse_output),
            [= LoadOutput::Null] => plan;
        /// What is done when it ends by itself with exit status 0: `respawn` starts it again (with
        /// growing delays if it ends at once every time), so that it lasts as long as the phase,
        /// `ignore` goes on without it, `stop` ends the run.
        key on_success: OnExit,
            word_form("something to do when a load ends"),
            [= OnExit::Respawn] => plan;
        /// What is done when it ends with another exit status or by a signal. Figures measured
        /// under a load that was not there mislead.
        key on_failure: OnExit, word_form("something to do when a load ends"), [= OnExit::Stop]
            => plan;
        /// The time from the start of the phase to the start of the load; it must be before the end
        /// of the phase.
        key start_delay: Nanos, duration_form(Nanos::ZERO, MAX_DURATION), [= Nanos::ZERO] => plan;
        /// Whether it may be idle most of the time, for example because it waits on purpose for an
        /// action of the measured program. Without this key, a load that idles makes the run
        /// invalid. With it, the load must still exist, and the time that it was idle is kept with
        /// the evidence of the run and shown with the proofs.
        key may_rest: bool, flag_form(), [= false] => plan;
    }
    resolved {
        /// A program that loads the system.
        LoadPlan, LoadResolved {
            /// Unique in the plan.
            name: String;
            /// Its arguments, the program as written first.
            argv: Vec<String>;
            /// The program's file.
            program: PathBuf;
            /// The CPUs that it may run on.
            cpus: CpuSet;
            /// Its policy; never SCHED_DEADLINE.
            scheduling: SchedulingSpec;
        }
    }
}

section! {
    /// A part of the experiment with its own loads.
    PhaseSpec {
        /// Unique in the file.
        key name: String, text_form("NAME", values::check_name), ["`phase-1`, `phase-2`, …"];
        /// How long it lasts. A phase that never ends can only be the last one.
        key duration: Nanos,
            duration_form(Nanos::MICRO, MAX_DURATION),
            ["until the last of its measures is over"];
        /// The loads that run in it.
        list loads: String, text_form("NAME", values::check_name), ["none"];
    }
}

/// A part of the run with its own loads.
#[derive(Clone, PartialEq, Debug)]
pub struct PhasePlan {
    /// Unique in the plan.
    pub name: String,
    /// Its duration; `None`: until the last of its measures ends.
    pub duration: Option<Nanos>,
    /// Its measures.
    pub measures: Vec<MeasurePlan>,
    /// Its loads.
    pub loads: Vec<LoadPlan>,
}
