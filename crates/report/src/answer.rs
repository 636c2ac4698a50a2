//! The answer of a run: the verdict, the figure that decided it, the causes of the delay and the
//! remedies. Terminal, page, JSON and log show the same answer.

use crate::format::{count_text, count_with_noun, escape_unsafe, micros_text, percent_text};
use crate::remedies::{self, Rules};
use crate::sentence::{self, join_words};
use crate::tables::Tone;
use crate::tables::figures::is_max_not_ended;
use crate::verdict::baseline::{of_bound, one_line};
use crate::verdict::of_reason;
use punctual_bundle::answer::{Answer, AnsweredDelay, DecidingFigure, Delays};
use punctual_bundle::exact::ExplainedExactSample;
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_bundle::verdict::FailedPart;
use punctual_bundle::{Outcome, Reason, Timebase};
use punctual_core::{BoundComparison, CauseKind, Fact, Finding, Metric, Names, Nanos, Severity};
use punctual_explain::Explanations;
use punctual_explain::answer::{Blame, Blamed, Deciding, Delayed, find_deciding, find_delays};

/// Causes named in a sentence.
const CAUSES: usize = 4;
const TO_DO: usize = 3;
/// Remarks on earlier runs.
const REMARKS: usize = 2;
/// Names are cut at this many columns.
const NAME: usize = 40;

/// Evidence that explains the deciding series ([`deciding`]).
#[derive(Default)]
pub struct AnswerEvidence {
    /// Its late samples, if they can be explained.
    pub explained: Option<Explanations>,
    /// Its longest sample, if the run was replayed.
    pub replayed: Option<ExplainedExactSample>,
}

/// The answer of a summary. `rules`: findings of `punctual check`.
pub fn build_answer(summary: &Summary, evidence: &AnswerEvidence, rules: &Rules) -> Answer {
    let explained = evidence.explained.as_ref();
    let deciding = find_deciding(summary);
    let delayed = deciding.as_ref().and_then(|of| find_delays(of, explained));
    let no_names = Names::default();
    let findings: &[&Finding] = &findings_about(summary, deciding.as_ref());
    let known = match explained {
        Some(all) => remedies::RemedyEvidence {
            findings,
            ..remedies::RemedyEvidence::from_explanations(all, rules)
        },
        None => remedies::RemedyEvidence {
            names: &no_names,
            recorded: None,
            is_partial: false,
            rules,
            findings,
        },
    };
    let mut to_do = for_evidence(summary);
    to_do.extend(delayed.iter().flat_map(|delayed| format_advice(delayed, &known)));
    if to_do.is_empty() {
        let is_explained = delayed.is_some() || evidence.replayed.is_some();
        to_do.extend(how_to_explain(summary, deciding.as_ref()).filter(|_| !is_explained));
    }
    to_do.truncate(TO_DO);
    // A replay explains every instruction: it takes precedence over events.
    let by_instruction = evidence.replayed.as_ref().map(sentence::exact::list_delays);
    Answer {
        baseline: summary.baseline.as_ref().and_then(one_line),
        bound: summary.baseline.as_ref().and_then(|held| held.bound.as_ref()).map(of_bound),
        verdict: format_verdict(summary, deciding.as_ref()),
        figure: deciding.as_ref().map(|of| to_deciding_figure(summary, of)),
        delayed_by: by_instruction.or_else(|| {
            let stated = || deciding.as_ref().and_then(stated_delays);
            delayed
                .map(|of| Delays {
                    series: deciding.as_ref().zip(of.series.as_ref()).map(|(deciding, series)| {
                        shorten_place(summary, &format!("{}/{series}", deciding.phase.name))
                    }),
                    samples: of.samples,
                    incidents: of.incidents,
                    from: of.from.ns(),
                    causes: of.causes.iter().map(to_answered_delay).collect(),
                    source: of.left_open.map(by_accounting),
                })
                .or_else(stated)
        }),
        to_do,
    }
}

/// The source of a division that is shown instead of that of windows of events. BPF makes it in the
/// kernel; without, and of traces of other tools, it is made of all events.
fn by_accounting(left_open: f64) -> String {
    let open = whole_percent(left_open);
    format!("the accounting of all cycles: windows of events leave {open} not attributed")
}

/// The delays that the source of an import states: those of the deciding series, else of another
/// series of the phase if nothing was required.
fn stated_delays(of: &Deciding<'_>) -> Option<Delays> {
    let is_own_series = |one: &&Delays| one.series.as_ref() == Some(&of.series.name);
    let stated_delays = &of.phase.delayed_by;
    match stated_delays.iter().find(is_own_series) {
        Some(own) => Some(Delays { series: None, ..own.clone() }),
        None => stated_delays.first().filter(|_| of.requirement.is_none()).cloned(),
    }
}

/// The answer stored in the summary, or the one that follows from the summary alone.
pub fn known_answer(summary: &Summary) -> Answer {
    summary
        .answer
        .clone()
        .unwrap_or_else(|| build_answer(summary, &AnswerEvidence::default(), &Rules::default()))
}

/// `phase/series`, or only the series if there is a single phase.
fn shorten_place(summary: &Summary, full: &str) -> String {
    let name_in_phase = match summary.phases.as_slice() {
        [only] => full.strip_prefix(&only.name).and_then(|rest| rest.strip_prefix('/')),
        _ => None,
    };
    crate::format::clip_name(name_in_phase.unwrap_or(full), NAME, false)
}

fn to_deciding_figure(summary: &Summary, of: &Deciding<'_>) -> DecidingFigure {
    let full = format!("{}/{}", of.phase.name, of.series.name);
    DecidingFigure {
        series: shorten_place(summary, &full),
        metric: of.metric.to_string(),
        value: of.value,
        is_time: of.metric.is_time(),
        comparison: of.requirement.map(|held| comparison_sign(held.comparison).to_owned()),
        bound: of.requirement.map(|held| held.bound),
        beyond: of.beyond,
        samples: of.series.count,
        max: of.series.max,
        not_ended: of.metric == Metric::Max && is_max_not_ended(of.series),
    }
}

fn comparison_sign(comparison: BoundComparison) -> &'static str {
    match comparison {
        BoundComparison::Less => "<",
        BoundComparison::LessOrEqual => "<=",
        BoundComparison::Greater => ">",
        BoundComparison::GreaterOrEqual => ">=",
        BoundComparison::Equal => "==",
    }
}

/// The verdict with its reason and place.
fn format_verdict(summary: &Summary, deciding: Option<&Deciding<'_>>) -> String {
    let reasons: Vec<&Reason> = summary.verdict.adverse_reasons().collect();
    let text = match (summary.verdict.word, reasons.first()) {
        (_, Some(first @ Reason::Failed { part: FailedPart::Run, .. })) => of_reason(first),
        (_, Some(first @ Reason::Failed { .. })) => format!("FAILED: {}", of_reason(first)),
        _ if let Some(stop) = reasons.iter().find_map(|reason| format_stop(summary, reason)) => {
            stop
        }
        (word @ (Some(VerdictWord::Met) | None), Some(first @ Reason::ProgramEnded(_))) => {
            let until =
                if word.is_some() { "; all that was required is met until then" } else { "" };
            format!("FAILED: {}{until}", of_reason(first))
        }
        (Some(VerdictWord::Met), _) => format_met(summary),
        (Some(VerdictWord::NotMet), Some(first)) => {
            format!("NOT MET: {}", not_met(summary, deciding, first))
        }
        (Some(VerdictWord::Undecided), Some(first)) => format!("UNDECIDED: {}", of_reason(first)),
        (Some(VerdictWord::Invalid), Some(first)) => format!("INVALID: {}", of_reason(first)),
        (Some(word), None) => crate::tables::verdict_words(word).1.to_owned(),
        (None, Some(first)) => of_reason(first),
        (None, None) => match summary.ending.as_ref().map(|ending| &ending.outcome) {
            None | Some(Outcome::Completed) => "nothing was required".to_owned(),
            Some(outcome) => format!("{outcome}; nothing was required"),
        },
    };
    let further_reasons = (reasons.len() as u64 + summary.verdict.more_reasons).saturating_sub(1);
    let further_note = match further_reasons {
        0 => String::new(),
        _ => format!(" (and {})", count_with_noun(further_reasons, "further reason")),
    };
    let is_cut_off = reasons.iter().any(|reason| matches!(reason, Reason::CutOff { .. }));
    let cut_off = if is_cut_off { "CUT OFF; " } else { "" };
    let remarks = summary.verdict.remark_reasons().map(|reason| format!("; {}", of_reason(reason)));
    let remarks: String = remarks.take(REMARKS).collect();
    escape_unsafe(&format!("{cut_off}{text}{further_note}{remarks}"))
}

/// A stop that was requested.
fn format_stop(summary: &Summary, reason: &Reason) -> Option<String> {
    let Reason::StopAbove { series, latency, limit, seq } = reason else { return None };
    let above =
        limit.map_or(String::new(), |limit| format!(" (above {} µs)", micros_text(Nanos(limit))));
    let sample = seq.map_or(String::new(), |seq| format!(", sample {}", count_text(seq)));
    let (at, place) = (micros_text(Nanos(*latency)), shorten_place(summary, series));
    Some(format!("stopped at {at} µs{above}: {place}{sample}"))
}

fn format_met(summary: &Summary) -> String {
    let series = summary.phases.iter().flat_map(|phase| &phase.series);
    let all_requirements: Vec<&RequirementSummary> =
        series.flat_map(|series| &series.requirements).collect();
    match all_requirements.as_slice() {
        [] => "met".to_owned(),
        [only] => format!("met: {}", only.requirement),
        [first, rest @ ..] => match rest.iter().all(|of| of.requirement == first.requirement) {
            true => format!("met: {} on all {} series", first.requirement, all_requirements.len()),
            false => format!("met: all {} requirements", all_requirements.len()),
        },
    }
}

fn not_met(summary: &Summary, deciding: Option<&Deciding<'_>>, first: &Reason) -> String {
    let of_deciding = deciding.and_then(|of| {
        let full = format!("{}/{}", of.phase.name, of.series.name);
        Some(format!("{} on {}", of.requirement?, shorten_place(summary, &full)))
    });
    match first {
        Reason::Requirement { verdict: VerdictWord::NotMet, place: at, requirement, .. } => {
            of_deciding
                .unwrap_or_else(|| format!("{requirement} on {}", shorten_place(summary, at)))
        }
        first => of_reason(first),
    }
}

fn to_answered_delay(blame: &Blame) -> AnsweredDelay {
    let (cause, words) = match &blame.what {
        Blamed::Cause(cause) => (cause.id(), cause.kind().words()),
        Blamed::Kind(kind) => (kind.id(), kind.words()),
        Blamed::Entry { kind, words } => (kind.as_str(), words.as_str()),
    };
    AnsweredDelay {
        at: blame.at.clone(),
        ended_by: blame.ended_by.clone(),
        holder: blame.holder.clone(),
        ..AnsweredDelay::new(cause, words, blame.who.clone(), blame.share)
    }
}

/// Remedies for the causes, the largest share first.
fn format_advice(delayed: &Delayed, evidence: &remedies::RemedyEvidence<'_>) -> Vec<String> {
    let text = |advice: remedies::Advice| {
        let fix = advice.rules.into_iter().find_map(|rule| Some((rule.id, rule.fix?)));
        match fix {
            Some((id, fix)) => format!("{} Check {id}: {}", advice.text, escape_unsafe(&fix)),
            None => advice.text,
        }
    };
    remedies::find_remedies(&delayed.causes, evidence).into_iter().map(text).collect()
}

/// The findings about the thread of the deciding series.
fn findings_about<'s>(summary: &'s Summary, deciding: Option<&Deciding<'_>>) -> Vec<&'s Finding> {
    let Some(of) = deciding else { return Vec::new() };
    let subjects =
        [&of.series.measure, &of.series.name].map(|of_thread| match of_thread.as_str() {
            "" => String::new(),
            name => format!("{}/{name}", of.phase.name),
        });
    summary.findings.iter().filter(|found| subjects.contains(&found.subject)).collect()
}

/// How to get evidence from a run that provides none.
fn for_evidence(summary: &Summary) -> Vec<String> {
    if !matches!(summary.verdict.word, Some(VerdictWord::Undecided | VerdictWord::Invalid)) {
        return Vec::new();
    }
    let findings = summary.findings.iter().filter(|found| found.severity >= Severity::Warning);
    let mut findings: Vec<&Finding> = findings.collect();
    findings.sort_by_key(|found| found.sort_rank());
    let remedies = findings.iter().filter_map(|found| found.remedy.as_deref());
    let mut remedy_sentences: Vec<String> = remedies.map(to_sentence).collect();
    remedy_sentences.dedup();
    remedy_sentences
}

/// A remedy as a sentence: with a capital and a full stop.
fn to_sentence(remedy: &str) -> String {
    let remedy = escape_unsafe(remedy);
    let mut letters = remedy.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if remedy.ends_with(['.', '!', '`']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// Advice for late samples that nothing explains.
fn how_to_explain(summary: &Summary, deciding: Option<&Deciding<'_>>) -> Option<String> {
    let is_ours = |of: &&Deciding<'_>| of.series.usage != Fact::NotAsked && of.metric.is_time();
    let is_open = summary.verdict.word == Some(VerdictWord::NotMet);
    let is_virtual = Timebase::from_target(summary.target.as_ref()) == Timebase::Virtual;
    (is_open && deciding.filter(is_ours).is_some()).then(|| match is_virtual {
        true => {
            "`punctual explain BUNDLE --exact` replays the run, and shows what delayed its worst \
                 samples by instruction."
                .to_owned()
        }
        false => "Measure again with --explain: it keeps the events that show what delayed the \
                  worst samples."
            .to_owned(),
    })
}

/// Each line of an answer: its label, its tone, its text; the things to do are last. `tone` is that
/// of the verdict; `time` formats a time in ns with its unit.
pub(crate) fn answer_lines(
    answer: &Answer,
    tone: Tone,
    time: impl Fn(f64) -> String,
) -> Vec<(&'static str, Tone, String)> {
    let figure = answer.figure.as_ref().map(|of| figure_sentence(of, &time));
    let delays = answer.delayed_by.as_ref().map(|of| delays_sentence(of, &time));
    let first = [
        ("baseline", tone, answer.baseline.clone()),
        ("verdict", tone, Some(answer.verdict.clone())),
        ("figure", Tone::Strong, figure),
        ("delayed by", Tone::Plain, delays),
        ("bound", Tone::Faint, answer.bound.clone()),
    ];
    let first = first.into_iter().filter_map(|(label, tone, text)| Some((label, tone, text?)));
    first.chain(answer.to_do.iter().map(|text| ("to do", Tone::Plain, text.clone()))).collect()
}

/// The figure as a sentence. `time` formats a time in ns with its unit.
fn figure_sentence(figure: &DecidingFigure, time: impl Fn(f64) -> String) -> String {
    let value = |value: f64| match figure.is_time {
        true => time(value),
        false => count_text(value.max(0.0) as u64),
    };
    let not_ended = if figure.not_ended { ", not ended" } else { "" };
    let sign = if figure.not_ended { "≥ " } else { "" };
    let (series, metric) = (escape_unsafe(&figure.series), &figure.metric);
    let mut text = format!("{series}: {metric} {sign}{}{not_ended}", value(figure.value));
    if let (Some(comparison), Some(bound)) = (&figure.comparison, figure.bound) {
        text += &format!(", required {comparison} {}", value(bound as f64));
    }
    let max = figure.max.filter(|_| figure.metric != "max");
    text += &max.map_or(String::new(), |max| format!("; max {}", time(max as f64)));
    let samples = count_with_noun(figure.samples, "sample");
    match figure.beyond {
        Some(beyond) => text + &format!("; {} of {samples} longer", count_text(beyond)),
        None => text + &format!("; {samples}"),
    }
}

/// The causes of the delay as a sentence; empty if none is known.
fn delays_sentence(delays: &Delays, time: impl Fn(f64) -> String) -> String {
    let mut parts: Vec<String> = delays.causes.iter().take(CAUSES).map(cause_words).collect();
    let rest: f64 = delays.causes.iter().skip(CAUSES).map(|cause| cause.share).sum();
    parts.extend((rest >= 0.01).then(|| format!("{} others", whole_percent(rest))));
    let samples = count_with_noun(delays.samples, "sample");
    let from = from(delays, time);
    let sample_text = match (delays.incidents, &delays.source) {
        (Some(incidents), _) if incidents < delays.samples => {
            format!("{from}, {samples} in {}", count_with_noun(incidents, "incident"))
        }
        (_, Some(tool)) => format!("{from}, {samples}, by {}", escape_unsafe(tool)),
        _ => format!("{from}, {samples}"),
    };
    let series = delays.series.as_ref();
    let series = series.map_or(String::new(), |of| format!("in {}, ", escape_unsafe(of)));
    format!("{} ({series}{sample_text})", join_words(&parts))
}

fn from(delays: &Delays, time: impl Fn(f64) -> String) -> String {
    format!("from {} on", time(delays.from as f64))
}

fn whole_percent(share: f64) -> String {
    if share < 0.01 { percent_text(share) } else { format!("{:.0} %", share * 100.0) }
}

fn cause_words(delay: &AnsweredDelay) -> String {
    let who = delay.who.as_deref().map(|who| crate::format::clip_name(who, NAME, false));
    let who = who.map(|who| match CauseKind::from_id(&delay.cause) {
        Some(CauseKind::Lock | CauseKind::PriorityInversion) => format!("held by {who}"),
        Some(CauseKind::OwnExecution) => format!("in {who}"),
        _ => who,
    });
    // The holder that released its lock is named once.
    let released = |end: &str| {
        delay
            .who
            .as_deref()
            .and_then(|who| Some(end.strip_prefix(who)?.strip_prefix(" at ")?.to_owned()))
    };
    let ended = delay.ended_by.as_deref().map(|end| match released(end) {
        Some(line) => format!("mostly released at {}", escape_unsafe(&line)),
        None => format!("mostly ended by {}", escape_unsafe(end)),
    });
    let holder =
        delay.holder.as_deref().map(|holder| format!("meanwhile mostly {}", escape_unsafe(holder)));
    let details: Vec<String> = who.into_iter().chain(holder).chain(ended).collect();
    let detail_text = match details.is_empty() {
        true => String::new(),
        false => format!(" ({})", details.join(", ")),
    };
    let at = delay.at.as_deref().map_or(String::new(), |at| format!(" at {}", escape_unsafe(at)));
    format!("{} {}{at}{detail_text}", whole_percent(delay.share), escape_unsafe(&delay.words))
}

#[cfg(test)]
mod tests;
