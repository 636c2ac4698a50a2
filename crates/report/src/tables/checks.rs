//! The results of `punctual check`, live or from the beginning of a run: rules with their verdicts.

use super::{Cell, Column, Table, Tone};
use serde::Deserialize;
use serde_json::Value;

/// Rules beyond this are only counted.
const MAX_RULES: usize = 300;

/// A rule with its result, as far as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct CheckRow {
    /// Its group: `kernel`, `scheduling`, …; rows of one group are adjacent.
    #[serde(default)]
    pub group: String,
    pub id: String,
    title: String,
    verdict: String,
    #[serde(default = "yes")]
    applies: bool,
    message: String,
    #[serde(default)]
    evidence: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    fix: Option<String>,
}

fn yes() -> bool {
    true
}

/// The result of a rule, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckVerdict {
    Bad,
    Warning,
    Advice,
    /// It could not be determined.
    Unknown,
    Good,
    /// It does not apply to this system.
    NotApplicable,
}

impl CheckVerdict {
    pub const ALL: [CheckVerdict; 6] = [
        CheckVerdict::Bad,
        CheckVerdict::Warning,
        CheckVerdict::Advice,
        CheckVerdict::Unknown,
        CheckVerdict::Good,
        CheckVerdict::NotApplicable,
    ];

    /// Its tone, a sign that needs no colour, and the word.
    pub(crate) fn appearance(self) -> (Tone, &'static str, &'static str) {
        match self {
            CheckVerdict::Bad => (Tone::Bad, "✗", "bad"),
            CheckVerdict::Warning => (Tone::Uncertain, "!", "warning"),
            CheckVerdict::Advice => (Tone::Strong, "~", "advice"),
            CheckVerdict::Unknown => (Tone::Uncertain, "?", "unknown"),
            CheckVerdict::Good => (Tone::Good, "✓", "good"),
            CheckVerdict::NotApplicable => (Tone::Faint, "·", "not applicable"),
        }
    }

    /// Whether it needs action or investigation.
    pub fn is_open(self) -> bool {
        !matches!(self, CheckVerdict::Good | CheckVerdict::NotApplicable)
    }
}

impl CheckRow {
    /// The rules of a document (`{"rules": […]}`); `None` if its shape is unknown.
    pub fn read(document: &Value) -> Option<Vec<CheckRow>> {
        Vec::deserialize(document.get("rules")?).ok()
    }

    pub fn verdict(&self) -> CheckVerdict {
        match self.verdict.as_str() {
            "ok" if !self.applies => CheckVerdict::NotApplicable,
            "ok" => CheckVerdict::Good,
            "advice" => CheckVerdict::Advice,
            "warning" => CheckVerdict::Warning,
            "bad" => CheckVerdict::Bad,
            _ => CheckVerdict::Unknown,
        }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn evidence(&self) -> Option<&str> {
        Some(self.evidence.as_str()).filter(|evidence| self.applies && !evidence.is_empty())
    }

    /// Why it matters, if it needs action.
    pub(crate) fn rationale(&self) -> Option<&str> {
        Some(self.why.as_str()).filter(|why| self.verdict().is_open() && !why.is_empty())
    }

    pub fn fix(&self) -> Option<&str> {
        self.fix.as_deref().filter(|fix| self.verdict().is_open() && !fix.is_empty())
    }

    fn table_row(&self) -> Vec<Cell> {
        let (tone, _, word) = self.verdict().appearance();
        let result = Cell::text(&self.message);
        vec![
            Cell::text(&self.title).sub(&self.id),
            Cell::verdict("", word, tone),
            if self.evidence.is_empty() { result } else { result.sub(&self.evidence) },
            self.fix().map_or_else(Cell::default, |fix| super::Value::Command(fix.into()).into()),
        ]
    }
}

/// All rules, problems first.
pub(crate) fn check_table(mut rules: Vec<CheckRow>) -> Table {
    rules.sort_by_key(CheckRow::verdict);
    let wrong = rules.iter().filter(|rule| rule.verdict() < CheckVerdict::Unknown).count();
    let title =
        format!("results of punctual check: {wrong} of {} rules report a problem", rules.len());
    let columns = ["rule", "verdict", "result", "what to do"].map(|name| Column::text(name, 0));
    Table::new(title, columns.into())
        .with_rows(rules.iter().map(CheckRow::table_row))
        .with_row_limit(MAX_RULES, MAX_RULES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failed_rules_precede_passed_ones() {
        let rule = |id: &str, verdict: &str, applies: bool| {
            json!({
                "id": id, "group": "g", "title": "T", "verdict": verdict, "applies": applies,
                "message": "m", "evidence": "", "why": "w", "source": "s", "fix": "do it",
                "writes": [],
            })
        };
        let all = [
            rule("a", "ok", false),
            rule("b", "ok", true),
            rule("c", "unknown", true),
            rule("d", "bad", true),
        ];
        let table = check_table(CheckRow::read(&json!({"rules": all})).expect("rules"));
        let rows = table.rows.iter().map(|row| (row[0].sub.clone(), &row[1].value, &row[3].value));
        insta::assert_snapshot!(rows.map(|row| format!("{row:?}\n")).collect::<String>(), @r#"
        (Some("d"), Verdict("", "bad"), Command("do it"))
        (Some("c"), Verdict("", "unknown"), Command("do it"))
        (Some("b"), Verdict("", "good"), Nothing)
        (Some("a"), Verdict("", "not applicable"), Nothing)
        "#);
        assert!(table.title.contains("1 of 4"));
    }
}
