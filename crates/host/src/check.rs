//! Whether a system is ready for real time: rules, each with its evidence, reason and remedy.
//!
//! A rule is one short function over a [`Context`] and one entry in the table of its group
//! (`check/rules/`). It judges facts that [`crate::environment`] read, or reads a file of its own
//! through the context. An unreadable fact makes the verdict [`RuleVerdict::Unknown`], never a
//! guess.

mod cgroups;
mod context;
mod irqbalance;
mod outcome;
mod parameters;
mod process;
pub mod rights;
pub mod rules;
mod systemd;
mod tasks;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use cgroups::{CgroupMount, mount_of};
pub use context::{Chosen, Context};
pub use outcome::{CheckOutcome, Fix, FixWrite, RuleVerdict};
pub use process::ProcessFacts;
use punctual_core::{Finding, Severity};
pub use punctual_sys::rights::Capability;
pub use rules::{Rule, RuleGroup, all_rules};
use serde::{Deserialize, Serialize};

/// The result of one rule, in the shape of `punctual check --json`. Texts contain file contents of
/// the kernel: escape them for display.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RuleResult {
    /// The rule's name, in kebab case.
    pub id: String,
    pub group: String,
    /// The expected state.
    pub title: String,
    pub verdict: RuleVerdict,
    /// Whether there was anything to judge: a rule for a device that the machine lacks is `ok` and
    /// does not apply.
    pub applies: bool,
    /// The actual state, in one sentence.
    pub message: String,
    /// The file and the value. For `unknown`, the file that could not be read, and why.
    pub evidence: String,
    /// Why it matters, in one sentence.
    pub why: String,
    /// The source of the reason.
    pub source: String,
    /// The command or the change of the boot parameters that fixes it.
    pub fix: Option<String>,
    /// The writes with the same effect, if `check --fix` can make them.
    pub writes: Vec<FixWrite>,
}

/// Evaluates all rules, in the order of the table.
pub fn evaluate_all(context: &Context) -> Vec<RuleResult> {
    all_rules().map(|rule| judge_rule(rule, context)).collect()
}

/// Evaluates one rule; `None` if there is no such rule.
pub fn evaluate_rule(id: &str, context: &Context) -> Option<RuleResult> {
    all_rules().find(|rule| rule.id == id).map(|rule| judge_rule(rule, context))
}

fn judge_rule(rule: &Rule, context: &Context) -> RuleResult {
    let outcome = (rule.evaluate)(context).unwrap_or_else(|early| early);
    let outcome = context.or_not_configured(outcome);
    let Fix { command, writes } = outcome.fix.unwrap_or_default();
    RuleResult {
        id: rule.id.into(),
        group: rule.group.to_string(),
        title: rule.title.into(),
        verdict: outcome.verdict,
        applies: outcome.applies,
        message: outcome.message,
        evidence: outcome.evidence,
        why: rule.why.into(),
        source: rule.source.into(),
        fix: (!command.is_empty()).then_some(command),
        writes,
    }
}

/// The warnings and worse as findings about the readiness of the system, for the report of a run.
pub fn to_findings(results: &[RuleResult]) -> Vec<Finding> {
    let finding = |result: &RuleResult| {
        let severity = match result.verdict {
            RuleVerdict::Warning => Severity::Warning,
            RuleVerdict::Bad => Severity::Bad,
            RuleVerdict::Ok | RuleVerdict::Advice | RuleVerdict::Unknown => return None,
        };
        let finding = Finding::new(&result.id, severity, Finding::READINESS, &*result.message)
            .with_evidence(&*result.evidence);
        Some(match &result.fix {
            Some(fix) => finding.with_remedy(&**fix),
            None => finding,
        })
    };
    results.iter().filter_map(finding).collect()
}

/// The expectation of a rule and its reason, for `punctual check --explain RULE`; `None` if there
/// is no such rule.
pub fn explain_rule(id: &str) -> Option<String> {
    let rule = all_rules().find(|rule| rule.id == id)?;
    let Rule { id, group, title, why, source, .. } = rule;
    Some(format!("{id} ({group})\n\nExpected: {title}.\nWhy: {why}\nSource: {source}\n"))
}

#[cfg(test)]
mod tests;
