//! The result of `punctual check` at the beginning of the run (`check.json`: `{"rules": [...]}`),
//! what is wrong first.

use super::facts;
use super::table::{Cell, Column, Table};
use super::text::{clip, name};
use serde::Deserialize;
use serde_json::Value;

/// Rules beyond this are only counted.
const MAX_RULES: usize = 300;
/// A sentence is cut at this many characters.
const MAX_LENGTH: usize = 500;

/// What this page needs of a rule; `punctual check --json` has more.
#[derive(Deserialize)]
struct Rule {
    id: String,
    title: String,
    verdict: String,
    #[serde(default = "yes")]
    applies: bool,
    message: String,
    #[serde(default)]
    evidence: String,
    #[serde(default)]
    fix: Option<String>,
}

fn yes() -> bool {
    true
}

/// The results as a table; a document of another shape as its facts.
pub fn table(document: &Value) -> Table {
    let rules = document.get("rules").and_then(|rules| Vec::<Rule>::deserialize(rules).ok());
    let Some(mut rules) = rules else {
        return facts::table("Results of punctual check.", document);
    };
    rules.sort_by_key(weight);
    let wrong = rules.iter().filter(|rule| weight(rule) < 3).count();
    let more = rules.len().saturating_sub(MAX_RULES);
    let more = if more > 0 { format!(" {more} more are not shown.") } else { String::new() };
    Table {
        caption: format!(
            "Results of punctual check: {wrong} of {} rules report a problem.{more}",
            rules.len()
        ),
        columns: vec![
            Column::text("Rule"),
            Column::text("Verdict"),
            Column::text("Result"),
            Column::text("What to do"),
        ],
        rows: rules.iter().take(MAX_RULES).map(row).collect(),
        sortable: false,
    }
}

/// What is wrong first, then what is unknown, then what is well, then what does not apply.
fn weight(rule: &Rule) -> usize {
    match rule.verdict.as_str() {
        "ok" if !rule.applies => 5,
        "ok" => 4,
        word => ["bad", "warning", "advice"].iter().position(|known| *known == word).unwrap_or(3),
    }
}

fn row(rule: &Rule) -> Vec<Cell> {
    let class = match weight(rule) {
        0 => "bad",
        1 => "warn",
        4 => "good",
        _ => "",
    };
    let verdict = if weight(rule) == 5 { "does not apply".to_owned() } else { name(&rule.verdict) };
    let evidence = (!rule.evidence.is_empty()).then(|| clip(&rule.evidence, MAX_LENGTH));
    let fix = rule.fix.as_ref().filter(|_| weight(rule) < 4);
    vec![
        Cell::text(clip(&rule.title, MAX_LENGTH)).sub(name(&rule.id)),
        Cell::default().badge(verdict, class),
        Cell { sub: evidence, ..Cell::text(clip(&rule.message, MAX_LENGTH)) },
        fix.map_or(Cell::default(), |fix| Cell { code: true, ..Cell::text(clip(fix, MAX_LENGTH)) }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_stands_first() {
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
        let table = table(&json!({"rules": all}));
        let shown = |row: &Vec<Cell>| {
            format!(
                "{}: {} {}",
                row[0].sub.as_deref().unwrap_or(""),
                row[1].badges[0].text,
                row[3].text
            )
        };
        let shown: Vec<String> = table.rows.iter().map(shown).collect();
        assert_eq!(shown, ["d: bad do it", "c: unknown do it", "b: ok ", "a: does not apply "]);
        assert!(table.caption.contains("1 of 4"));
    }

    #[test]
    fn another_shape_is_still_shown() {
        assert_eq!(super::table(&json!({"rules": 5, "x": {"unavailable": "why"}})).rows.len(), 2);
    }
}
