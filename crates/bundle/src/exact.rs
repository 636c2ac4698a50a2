//! The document of `punctual explain --exact`, as printed with `--json` and stored in the bundle
//! (`exact.json`). Lengths are in instructions of the guest; times in ns of its clock.

use punctual_core::{CallPath, Finding};
use serde::{Deserialize, Serialize};

/// The name and version of [`ExactDocument`].
pub const EXACT_SCHEMA: &str = "punctual-exact/1";
/// Its member name in a bundle.
pub const EXACT_MEMBER: &str = "exact";

/// A run in virtual time, replayed with every instruction traced.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExactDocument {
    /// [`EXACT_SCHEMA`].
    pub schema: String,
    pub kernel: String,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
    /// The digest of all samples of the replay, which must equal that of the run.
    pub digest: String,
    /// Instructions of the whole run, including boot and preparation.
    pub instructions: u64,
    /// Instructions from the first sample to the last, which were searched for sections.
    #[serde(default)]
    pub measured: u64,
    /// Samples without a kept beginning.
    pub cut: u64,
    /// The worst samples, the highest latency first.
    pub worst: Vec<ExplainedExactSample>,
    /// An ordinary sample for comparison: the median of those kept.
    pub ordinary: Option<ExplainedExactSample>,
    /// Sections while samples were taken.
    #[serde(flatten)]
    pub sections: LongestSections,
    /// The difference to another kernel or run, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<ExactDifference>,
    pub findings: Vec<Finding>,
}

impl ExactDocument {
    /// The path of a system call in the ordinary sample, or in the worst that has it. A call that
    /// sleeps ends at the switch.
    pub fn call_path(&self, call: &str) -> Option<CallPath> {
        let path_in_sample = |sample: &ExplainedExactSample| {
            let ns = |call: &ExactCall| {
                let instructions = call.end.saturating_sub(call.begin);
                i64::try_from(instructions.saturating_mul(self.ns_per_instruction.into())).ok()
            };
            let timed_calls =
                sample.calls.iter().map(|call| Some((&*call.function, call.depth, ns(call)?)));
            CallPath::find_call(call, EXACT_MEMBER, &timed_calls.collect::<Option<Vec<_>>>()?)
        };
        self.ordinary.iter().chain(&self.worst).find_map(path_in_sample)
    }
}

/// Two runs in virtual time, function by function. Counts are exact: no difference is by chance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExactDifference {
    /// The other run, as named by the user.
    pub against: String,
    pub kernel: String,
    /// The digest of all its samples.
    pub digest: String,
    /// The compared samples.
    pub pairs: Vec<ExactPair>,
}

/// Samples of both runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExactPair {
    /// `ordinary`, `worst`: one sample of each run; `all-worst`: the sum over as many of the worst
    /// as both have.
    pub of: String,
    /// The number of samples of each run.
    pub samples: u64,
    /// Their instructions in this run.
    pub here: u64,
    /// In the other run.
    pub there: u64,
    /// The parts of their paths, in order.
    pub parts: Vec<PartDifference>,
    /// Functions whose own instructions differ, by part, the largest difference first.
    pub functions: Vec<FunctionDifference>,
    /// The number of functions with equal instructions in both runs.
    pub same: u64,
}

/// A part of the path in both runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartDifference {
    /// As in [`ExactPart`].
    pub kind: String,
    /// Instructions in this run; 0 without such a part.
    pub here: u64,
    /// In the other run.
    pub there: u64,
}

/// A function within a part of the path in both runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FunctionDifference {
    pub kind: String,
    /// Untrusted: escape it for output.
    pub function: String,
    /// Its own instructions in this run; 0: removed.
    pub here: u64,
    /// In the other run; 0: new.
    pub there: u64,
}

/// The longest sections of each kind, the longest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LongestSections {
    pub irqs_disabled: Vec<DisabledSection>,
    /// With preemption disabled.
    #[serde(default)]
    pub preemption_disabled: Vec<DisabledSection>,
    /// From `need_resched` to the call of `__schedule`.
    #[serde(default)]
    pub not_preempted: Vec<DisabledSection>,
    /// Without migration of the task; other tasks may have run.
    #[serde(default)]
    pub migration_disabled: Vec<DisabledSection>,
    /// Waits of a task for a lock.
    #[serde(default)]
    pub lock_waits: Vec<DisabledSection>,
}

impl LongestSections {
    /// The kinds in this order: interrupts disabled, preemption disabled, from `need_resched` on,
    /// migration disabled, waits for locks.
    pub fn by_kind(&self) -> [&[DisabledSection]; 5] {
        [
            &self.irqs_disabled,
            &self.preemption_disabled,
            &self.not_preempted,
            &self.migration_disabled,
            &self.lock_waits,
        ]
    }

    /// The longest `count` sections of each kind.
    pub fn keep_longest(mut self, count: usize) -> LongestSections {
        let section_lists = [
            &mut self.irqs_disabled,
            &mut self.preemption_disabled,
            &mut self.not_preempted,
            &mut self.migration_disabled,
            &mut self.lock_waits,
        ];
        section_lists.into_iter().for_each(|sections| sections.truncate(count));
        self
    }
}

/// A sample with everything executed between its release and its arrival.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedExactSample {
    /// Its phase; empty for the ordinary sample, unless it is among the worst.
    pub phase: String,
    pub series: String,
    /// Its number in the series.
    pub sample: Option<u64>,
    pub due: i64,
    /// From `due` to `woke`, in virtual time.
    pub latency_ns: i64,
    pub thread: String,
    /// Instructions between release and arrival.
    pub instructions: u64,
    /// Instructions that fit in the latency but were not executed: the CPU waited, or the beginning
    /// was not kept.
    pub without: u64,
    /// The parts of the path, without gaps.
    pub parts: Vec<ExactPart>,
    /// T1 to T4 of an interrupt's response, in instructions, which add up: until it is pending,
    /// while interrupts are disabled, from its acceptance to its handler, from there to the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<[u64; 4]>,
    /// The functions, the most own instructions first.
    pub functions: Vec<ExactFunction>,
    /// Source lines, the most instructions first, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<ExactLine>,
    /// The functions in which it exceeds the ordinary sample.
    pub more: Vec<MoreThan>,
    /// Every call, in the order in which they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ExactCall>,
}

impl ExplainedExactSample {
    /// The part of its path with most instructions.
    pub fn longest_part(&self) -> Option<&ExactPart> {
        self.parts.iter().max_by_key(|part| part.instructions)
    }
}

/// A part of a sample's path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExactPart {
    /// `timer`, `irqs-disabled`, `interrupt`, `not-preempted`, `schedule`, `return`
    pub kind: String,
    /// Instructions from the release to its start.
    pub begin: u64,
    /// The number of instructions executed in it.
    pub instructions: u64,
    /// The functions with own instructions in it, the most first: all, unless there are more than a
    /// thousand.
    pub functions: Vec<(String, u64)>,
    /// The calls around the longest, outermost first.
    pub stack: Vec<String>,
}

/// A function within a sample.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ExactFunction {
    /// Untrusted: escape it for output.
    pub name: String,
    pub own: u64,
    /// Its own instructions and those of its callees.
    pub total: u64,
    /// The number of entries into it.
    pub calls: u64,
}

/// A source line within a sample. All instructions of a block count for the line of its first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExactLine {
    /// `mm/page_alloc.c:1123`. Untrusted: escape it for output.
    pub line: String,
    /// The function that executed it.
    pub function: String,
    pub own: u64,
}

/// An excess over the ordinary sample.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MoreThan {
    pub function: String,
    /// Its own instructions in this sample.
    pub here: u64,
    /// In the ordinary sample.
    pub there: u64,
}

/// A call of a function on the path of a sample.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExactCall {
    pub function: String,
    /// The task that it ran for; `interrupt` for an interrupt.
    pub context: String,
    /// The number of functions below it on the stack.
    pub depth: u32,
    /// Instructions from the release to its start.
    pub begin: u64,
    /// Instructions from the release to its end.
    pub end: u64,
}

/// The sections of one function with interrupts or preemption disabled, or from `need_resched` to
/// `__schedule`. The function is the innermost that is not left within them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DisabledSection {
    /// By its symbol; where `need_resched` is set in an interrupt, the function that this
    /// interrupted.
    pub function: String,
    /// The function that it calls to disable them, if any.
    pub by: Option<String>,
    /// `irqs` with interrupts disabled; otherwise the part of `preempt_count` above 0 at its start:
    /// `preemption-disabled`, `softirqs-disabled`, `softirq`, `interrupt`, `nmi`; from
    /// `need_resched` on, `interrupt` or `task` by the context that sets it.
    #[serde(default)]
    pub context: String,
    pub count: u64,
    pub total: u64,
    pub longest: u64,
    /// The function in which the longest ended.
    pub ended_in: String,
    /// The calls around the start of the longest, outermost first; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// The functions with most own instructions in the longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<(String, u64)>,
}
