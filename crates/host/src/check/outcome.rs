//! The conclusion of a rule.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict of a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleVerdict {
    /// As expected, or nothing to judge.
    Ok,
    /// Cannot be determined: a file could not be read or understood.
    Unknown,
    Advice,
    /// Causes latency under some circumstances.
    Warning,
    /// Not fit for real time.
    Bad,
}

impl fmt::Display for RuleVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RuleVerdict::Ok => "ok",
            RuleVerdict::Unknown => "unknown",
            RuleVerdict::Advice => "advice",
            RuleVerdict::Warning => "warning",
            RuleVerdict::Bad => "bad",
        })
    }
}

/// One write that fixes something, made through the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FixWrite {
    pub path: String,
    /// The value to write.
    pub value: String,
}

/// How to fix something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fix {
    /// For a person: a shell command, or what to change and where.
    pub command: String,
    /// For `check --fix`: the same as writes; empty if only a person can do it (boot parameters,
    /// packages, hardware).
    pub writes: Vec<FixWrite>,
}

impl Fix {
    /// A fix that only a person can do.
    pub fn by_hand(command: impl Into<String>) -> Fix {
        Fix { command: command.into(), writes: Vec::new() }
    }
    pub fn write(path: impl Into<String>, value: impl Into<String>) -> Fix {
        Fix::from_writes(vec![(path.into(), value.into())])
    }
    /// Several writes, in this order.
    pub(crate) fn from_writes(writes: Vec<(String, String)>) -> Fix {
        let writes: Vec<FixWrite> =
            writes.into_iter().map(|(path, value)| FixWrite { path, value }).collect();
        let command = writes
            .iter()
            .map(|w| format!("echo {} > {}", w.value, quote_path(&w.path)))
            .collect::<Vec<_>>();
        Fix { command: command.join("; "), writes }
    }
}

/// A path quoted for a shell; some contain interface names.
fn quote_path(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@,".contains(c);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// The conclusion of a rule. `Err` and `Ok` are equivalent: `Err` only lets a rule end early with
/// `?`.
pub type Conclusion = Result<CheckOutcome, CheckOutcome>;

/// A verdict with its reasons.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckOutcome {
    pub verdict: RuleVerdict,
    /// Whether there was anything to judge.
    pub applies: bool,
    pub message: String,
    pub evidence: String,
    /// The remedy.
    pub fix: Option<Fix>,
}

impl CheckOutcome {
    pub(crate) fn with_fix(mut self, fix: Fix) -> CheckOutcome {
        self.fix = Some(fix);
        self
    }
    /// Adds a remedy, if any.
    pub(crate) fn fix_by(self, fix: Option<Fix>) -> CheckOutcome {
        CheckOutcome { fix, ..self }
    }
    /// As a result, for the end of a rule.
    pub fn conclude(self) -> Conclusion {
        Ok(self)
    }
}

fn new_outcome(
    verdict: RuleVerdict,
    message: impl Into<String>,
    evidence: impl Into<String>,
) -> CheckOutcome {
    CheckOutcome {
        verdict,
        applies: true,
        message: message.into(),
        evidence: evidence.into(),
        fix: None,
    }
}

pub(crate) fn ok_outcome(message: impl Into<String>, evidence: impl Into<String>) -> CheckOutcome {
    new_outcome(RuleVerdict::Ok, message, evidence)
}
pub(crate) fn advice_outcome(
    message: impl Into<String>,
    evidence: impl Into<String>,
) -> CheckOutcome {
    new_outcome(RuleVerdict::Advice, message, evidence)
}
/// Causes latency under some circumstances.
pub(crate) fn warning_outcome(
    message: impl Into<String>,
    evidence: impl Into<String>,
) -> CheckOutcome {
    new_outcome(RuleVerdict::Warning, message, evidence)
}
/// Not fit for real time.
pub(crate) fn bad_outcome(message: impl Into<String>, evidence: impl Into<String>) -> CheckOutcome {
    new_outcome(RuleVerdict::Bad, message, evidence)
}
/// The verdict cannot be determined.
pub(crate) fn unknown_outcome(evidence: impl Into<String>) -> CheckOutcome {
    new_outcome(RuleVerdict::Unknown, "cannot be determined", evidence)
}
/// There is nothing to judge on this system.
pub(crate) fn not_applicable(
    reason: impl Into<String>,
    evidence: impl Into<String>,
) -> CheckOutcome {
    CheckOutcome {
        applies: false,
        ..new_outcome(RuleVerdict::Ok, format!("does not apply: {}", reason.into()), evidence)
    }
}

/// Evidence: a file and what it holds, shortened.
pub(crate) fn format_evidence(path: &str, value: impl fmt::Display) -> String {
    let value = value.to_string();
    let mut short: String = value.chars().take(120).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    format!("{path} is `{short}`")
}

/// The first eight names, and the number of others.
pub(crate) fn join_some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}
