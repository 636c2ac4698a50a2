//! `program`: the cycles of an unmodified program's threads, as `punctual attach` measures them.

use crate::form::{command_line, count_form, optional_form, text_form, text_or, word_form};
use crate::kind::{
    DefaultCpus, HistogramPlan, Kind, KindFacts, ParameterProblems, SampledBy, parameters,
};
use crate::values;
use crate::words::{CommandLine, LoadOutput};
use punctual_core::cycle::{CycleKind, SeriesKind};
use punctual_core::event::Group;
use punctual_core::{Nanos, Policy};

parameters! {
    /// The threads of a program that work in cycles. Each has the series
    /// *THREAD*`/wakeup`, `/response`, `/execution` and `/period`.
    ProgramPlan, ProgramSpec {
        /// The program to start and its arguments, as in `[[load]]`. It runs in the background of
        /// the phase: it is started with the measures and ended with them (SIGTERM, then SIGKILL),
        /// also when punctual is killed. Without a `duration` of measure or phase the measure is
        /// over when the program ends. `{seed}` stands for the experiment's seed, as does
        /// `PUNCTUAL_SEED` in its environment.
        command: Option<CommandLine> = None, optional_form(command_line());
        /// Instead of `command`: a process that runs already. It is not ended.
        pid: Option<u32> = None, optional_form(count_form(1, i32::MAX as u64));
        /// Instead of `command`: all processes of this name that run when the phase begins.
        comm: Option<String> = None, optional_form(text_form("NAME", values::check_remark));
        /// Only the threads of this name, once their cycles are recognised.
        thread: Option<String> = None, optional_form(text_form("NAME", values::check_remark));
        /// What releases a cycle; see `docs/reference/attach.md`. Without it, it is inferred for
        /// each thread.
        cycle: Option<CycleKind> = None, optional_form(word_form("a kind of cycle"));
        /// Where the output of `command` goes: a file, emptied first, or */dev/null*.
        stdout: LoadOutput = LoadOutput::Null, text_or("PATH", "null", values::parse_output);
        /// The same of its error output.
        stderr: LoadOutput = LoadOutput::Null, text_or("PATH", "null", values::parse_output);
    }
}

impl ProgramPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        sampled_by: SampledBy::Kernel,
        explained_by: &[
            Group::Futex,
            Group::Lock,
            Group::Block,
            Group::Jbd2,
            Group::Mmc,
            Group::Page,
        ],
        ..KindFacts::new("program", "the cycles of an unmodified program's threads")
    };
}

impl Kind for ProgramPlan {
    fn series_parts(&self) -> Vec<String> {
        SeriesKind::CYCLIC.map(|kind| kind.as_str().to_owned()).to_vec()
    }
    fn default_cpus(&self) -> DefaultCpus {
        DefaultCpus::All
    }
    fn default_policy(&self) -> Policy {
        Policy::Other
    }
    /// The range of each thread depends on its period; this is the maximum.
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_micros(4_095), resolution: Nanos::MICRO }
    }
}

impl ProgramSpec {
    pub(crate) fn check_conflicts(&self, plan: &ProgramPlan, problems: &mut ParameterProblems) {
        let named = [plan.command.is_some(), plan.pid.is_some(), plan.comm.is_some()];
        if named.iter().filter(|named| **named).count() != 1 {
            let what = match named.contains(&true) {
                true => "a program is a `command`, a `pid` or a `comm`, and only one of them",
                false => "this measure has no program",
            };
            let help = "write `command = \"cyclictest -m -p95\"`, `pid = 4711` or `comm = \
                        \"linuxcnc\"`";
            problems.report_conflict::<()>(&None, what, help);
        }
        if plan.command.is_none() {
            let because = "punctual does not start this program";
            let usual = ProgramPlan::default();
            problems.report_unused("stdout", &self.stdout, &usual.stdout, because);
            problems.report_unused("stderr", &self.stderr, &usual.stderr, because);
            if problems.policy != Policy::Other {
                let help = "leave `policy` out";
                problems.report_conflict::<()>(
                    &None,
                    format!("`policy` has no effect here: {because}"),
                    help,
                );
            }
        }
        if problems.threads != 1 {
            let help = "leave `threads` out; `thread` names one of them";
            problems.report_conflict::<()>(&None, "a program has its own threads", help);
        }
    }
}
