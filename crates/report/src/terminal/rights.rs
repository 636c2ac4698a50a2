//! Why threads are not real-time: the answer, what refuses it, where it should have been granted,
//! and the change that does so; then the facts.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use crate::format::escape_unsafe;
use serde::Deserialize;
use serde_json::Value;

/// Threads and ancestors beyond this are only counted.
const SHOWN: usize = 12;

/// The answer for a process, as far as it is shown (`{"processes": […]}` of `punctual check`).
#[derive(Deserialize)]
pub struct RightsRow {
    process: u32,
    name: String,
    verdict: String,
    message: String,
    threads: Vec<ThreadRow>,
    refused: Option<Vec<RefusedRow>>,
    rights: Vec<RightRow>,
    obstacles: Vec<ObstacleRow>,
    way: WayRow,
    ancestors: Vec<AncestorRow>,
    remedy: Option<String>,
}

#[derive(Deserialize)]
struct ThreadRow {
    thread: u32,
    name: String,
    policy: String,
    priority: Option<u32>,
    nice: i32,
}

#[derive(Deserialize)]
struct RefusedRow {
    thread: u32,
    call: String,
    error: String,
    without_entry: bool,
    times: u64,
}

#[derive(Deserialize)]
struct RightRow {
    right: String,
    message: String,
    evidence: String,
}

#[derive(Deserialize)]
struct ObstacleRow {
    message: String,
    evidence: String,
}

#[derive(Deserialize)]
struct WayRow {
    message: String,
    evidence: Vec<String>,
}

#[derive(Deserialize)]
struct AncestorRow {
    process: u32,
    name: String,
    user: Option<u32>,
    rtprio: Option<String>,
    memlock: Option<String>,
    cap_sys_nice: Option<bool>,
}

impl RightsRow {
    /// The answers of a document; `None` if its shape is unknown.
    pub fn read(document: &Value) -> Option<Vec<RightsRow>> {
        Vec::deserialize(document.get("processes")?).ok()
    }
}

/// One answer after the other.
pub fn show_rights(rows: &[RightsRow], options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    for row in rows {
        out.push_gap();
        write_answer(&mut out, row);
        write_facts(&mut out, row);
    }
    out.finish()
}

fn write_answer(out: &mut TextPage, row: &RightsRow) {
    let tone = match row.verdict.as_str() {
        "real-time" => Tone::Good,
        "refused" => Tone::Bad,
        _ => Tone::Uncertain,
    };
    let who = format!("{} ({})", escape_unsafe(&row.name), row.process);
    let begin = format!("{}: ", out.paint(Tone::Strong, &who));
    out.push_paragraph(&begin, "  ", tone, &escape_unsafe(&row.message));
    for obstacle in &row.obstacles {
        if obstacle.message != row.message {
            out.push_paragraph("  ", "  ", Tone::Plain, &escape_unsafe(&obstacle.message));
        }
        out.push_paragraph("  ", "  ", Tone::Faint, &escape_unsafe(&obstacle.evidence));
    }
    out.push_paragraph("  ", "  ", Tone::Plain, &escape_unsafe(&row.way.message));
    if !row.way.evidence.is_empty() {
        out.push_paragraph("  ", "  ", Tone::Faint, &escape_unsafe(&row.way.evidence.join("; ")));
    }
    if let Some(remedy) = &row.remedy {
        let arrow = format!("  {}", out.choose_spelling("→ ", "> "));
        out.push_paragraph(&arrow, "    ", Tone::Good, &escape_unsafe(remedy));
    }
}

fn write_facts(out: &mut TextPage, row: &RightsRow) {
    let lines = |out: &mut TextPage, heading: &str, lines: Vec<String>| {
        let line_count = lines.len();
        if line_count > 0 {
            out.push_heading(heading);
        }
        let shown_lines = lines.into_iter().take(SHOWN);
        shown_lines.for_each(|line| out.push_paragraph("  ", "    ", Tone::Plain, &line));
        if line_count > SHOWN {
            out.push_paragraph(
                "  ",
                "    ",
                Tone::Faint,
                &format!("and {} more", line_count - SHOWN),
            );
        }
    };
    let refused = row.refused.iter().flatten().map(|one| {
        let RefusedRow { thread, call, error, times, .. } = one;
        let entry_note = if one.without_entry { ", without an entry" } else { "" };
        format!(
            "{} by thread {thread}: {} ({times} times{entry_note})",
            escape_unsafe(call),
            escape_unsafe(error)
        )
    });
    lines(out, "refused while it was watched", refused.collect());
    let thread = |one: &ThreadRow| {
        let ThreadRow { thread, policy, nice, .. } = one;
        let policy = format!("SCHED_{}", policy.to_uppercase());
        let with = match one.priority {
            Some(priority) => format!(" {priority}"),
            None if *nice != 0 => format!(" nice {nice}"),
            None => String::new(),
        };
        format!("{thread} {}: {policy}{with}", escape_unsafe(&one.name))
    };
    lines(out, "threads", row.threads.iter().map(thread).collect());
    let right = |one: &RightRow| {
        let name = one.right.replace('-', " ");
        format!("{name}: {} ({})", escape_unsafe(&one.message), escape_unsafe(&one.evidence))
    };
    lines(out, "rights", row.rights.iter().map(right).collect());
    let ancestor = |one: &AncestorRow| {
        let value_or_unknown =
            |value: &Option<String>| value.as_deref().map_or("not known".to_owned(), escape_unsafe);
        let user = one.user.map_or("not known".to_owned(), |user| user.to_string());
        let nice = match one.cap_sys_nice {
            Some(true) => ", CAP_SYS_NICE",
            Some(false) => "",
            None => ", capabilities not known",
        };
        let (rtprio, memlock) = (value_or_unknown(&one.rtprio), value_or_unknown(&one.memlock));
        format!(
            "{} {}: user {user}, rtprio {rtprio}, memlock {memlock}{nice}",
            one.process,
            escape_unsafe(&one.name)
        )
    };
    lines(out, "ancestors, from the parent up", row.ancestors.iter().map(ancestor).collect());
}
