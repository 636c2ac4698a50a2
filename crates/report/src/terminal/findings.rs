//! Findings with their remedies; equal ones of several series are merged.

use super::paint::{TextPage, Tone};
use crate::format;
use punctual_core::{Finding, Severity};

/// More subjects than this are counted instead of named.
const SUBJECTS_NAMED: usize = 4;
const SUBJECT_WIDTH: usize = 40;

pub fn write(out: &mut TextPage, findings: &[Finding]) {
    if findings.is_empty() {
        out.push_heading("no warnings about these figures");
        return;
    }
    let (of_check, own): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|f| f.is_readiness());
    if !own.is_empty() {
        out.push_heading("findings");
    }
    let mut weights = own.iter().map(|f| f.severity).collect::<Vec<Severity>>();
    weights.sort_by(|a, b| b.cmp(a));
    weights.dedup();
    for weight in weights {
        group_findings(own.iter().copied().filter(|f| f.severity == weight))
            .iter()
            .for_each(|group| write_group(out, group));
    }
    write_readiness(out, &of_check);
}

/// One line each: `punctual check` shows evidence, reasons and remedies.
fn write_readiness(out: &mut TextPage, findings: &[&Finding]) {
    if findings.is_empty() {
        return;
    }
    out.push_heading("readiness of the system (details: punctual check)");
    for finding in findings {
        let word = format!("{:<8}", finding.severity.to_string());
        let begin = format!("  {} ", out.paint(Tone::from(finding.severity), &word));
        out.push_paragraph(
            &begin,
            &" ".repeat(11),
            Tone::Plain,
            &format::escape_unsafe(&finding.message),
        );
    }
}

/// Equal findings about different subjects, in the order of the first.
fn group_findings<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<Vec<&'a Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let same =
            |g: &&mut Vec<&Finding>| g[0].id == finding.id && g[0].message == finding.message;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

fn write_group(out: &mut TextPage, group: &[&Finding]) {
    let first = group[0];
    let word = format!("{:<8}", first.severity.to_string());
    let begin = format!("  {} ", out.paint(Tone::from(first.severity), &word));
    let hang = " ".repeat(11);
    out.push_paragraph(&begin, &hang, Tone::Plain, &format::escape_unsafe(&first.message));
    if group.len() == 1 {
        let about = clip_subject(out, first);
        let text = first
            .evidence
            .as_ref()
            .map_or(about.clone(), |e| format!("{about}: {}", format::escape_unsafe(e)));
        out.push_paragraph(&hang, &hang, Tone::Faint, &text);
    } else {
        write_subjects(out, group, &hang);
    }
    let mut remedies: Vec<&String> = group.iter().filter_map(|f| f.remedy.as_ref()).collect();
    remedies.dedup();
    if let Some(remedy) = remedies.first() {
        let others_note =
            if remedies.len() > 1 { " (for the first; others differ in figures)" } else { "" };
        let remedy = format!("{remedy}{others_note}");
        let arrow = out.choose_spelling("→ ", "> ");
        out.push_paragraph(
            &format!("{hang}{arrow}"),
            &format!("{hang}  "),
            Tone::Good,
            &format::escape_unsafe(&remedy),
        );
    }
}

fn write_subjects(out: &mut TextPage, group: &[&Finding], hang: &str) {
    for finding in group.iter().take(SUBJECTS_NAMED) {
        let evidence = finding
            .evidence
            .as_ref()
            .map_or(String::new(), |e| format!(": {}", format::escape_unsafe(e)));
        let text = format!("{}{evidence}", clip_subject(out, finding));
        out.push_paragraph(hang, &format!("{hang}  "), Tone::Faint, &text);
    }
    if group.len() > SUBJECTS_NAMED {
        let text = format!("and {} more, {} in all", group.len() - SUBJECTS_NAMED, group.len());
        out.push_paragraph(hang, hang, Tone::Faint, &text);
    }
}

fn clip_subject(out: &TextPage, finding: &Finding) -> String {
    format::clip_name(&finding.subject, SUBJECT_WIDTH, out.options.ascii)
}
