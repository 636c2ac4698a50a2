//! The rules of `punctual check` that concern a cause, with their results.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// The result of `punctual check` at the beginning of the run (`check.json` of a bundle).
#[derive(Clone, Debug, Default)]
pub struct Rules(HashMap<String, RemedyRule>);

#[derive(Clone, Debug, Deserialize)]
struct RemedyRule {
    id: String,
    verdict: String,
    #[serde(default = "applies")]
    applies: bool,
    message: String,
    #[serde(default)]
    fix: Option<String>,
}

fn applies() -> bool {
    true
}

/// A rule that concerns a cause, with its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    pub id: &'static str,
    /// Its message; `None` if it was not checked, or is unknown. Untrusted: must be escaped.
    pub message: Option<String>,
    /// The fix, as a command or boot parameter; only if something is wrong. Untrusted: must be
    /// escaped.
    pub fix: Option<String>,
    pub is_well: bool,
}

impl Rules {
    /// The rules of that document; empty if its shape is unknown.
    pub fn from_document(document: Option<&Value>) -> Rules {
        let rules =
            document.and_then(|document| document.get("rules")).map(Vec::<RemedyRule>::deserialize);
        let rules = rules.and_then(Result::ok).unwrap_or_default();
        Rules(rules.into_iter().map(|rule| (rule.id.clone(), rule)).collect())
    }

    /// Whether a rule is met or does not apply; `None` if it was not or could not be checked.
    pub(crate) fn is_met(&self, id: &str) -> Option<bool> {
        let rule = self.0.get(id).filter(|rule| rule.verdict != "unknown");
        rule.map(|rule| rule.verdict == "ok")
    }

    /// Whether a rule applies and is met.
    pub(crate) fn is_in_force(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|rule| rule.applies && rule.verdict == "ok")
    }

    /// The given rules that have a fix (two at most), else the most specific one.
    pub(crate) fn matching_rules(&self, rules: &[&'static str]) -> Vec<Matching> {
        let all_matches: Vec<Matching> = rules.iter().map(|id| self.match_rule(id)).collect();
        let wrong: Vec<Matching> =
            all_matches.iter().filter(|rule| rule.fix.is_some()).take(2).cloned().collect();
        if wrong.is_empty() { all_matches.into_iter().take(1).collect() } else { wrong }
    }

    fn match_rule(&self, id: &'static str) -> Matching {
        let rule = self.0.get(id).filter(|rule| rule.verdict != "unknown");
        let is_well = rule.is_some_and(|rule| rule.verdict == "ok");
        let fix = rule.filter(|_| !is_well).and_then(|rule| rule.fix.clone());
        Matching { id, message: rule.map(|rule| rule.message.clone()), fix, is_well }
    }
}
