//! The results of a tuning, in sentences.

use crate::format::{self, count_with_noun, duration_text, escape_unsafe, micros_f64};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::tune::{
    EffectFactor, TuneAnswer, TunedRequirement, TuningDocument, TuningEnd,
};
use punctual_core::Nanos;

/// A factor with its interval: `×0.65 (95 %: 0.55 to 0.77)`.
pub(crate) fn format_factor(of: &EffectFactor) -> String {
    let [low, high] = of.interval;
    format!("×{:.2} (95 %: {low:.2} to {high:.2})", of.ratio)
}

/// The summary for a colleague: the settings, and their effect.
pub fn format_answer(document: &TuningDocument) -> String {
    let metric = escape_unsafe(&document.metric);
    let micros = |ns: Option<f64>| ns.map_or("not known".to_owned(), micros_f64);
    let Some(set) = &document.set else {
        let tried = count_with_noun(document.settings.len() as u64, "setting");
        let unresolved = with_answer(document, TuneAnswer::NotResolved);
        return match unresolved {
            0 => format!("none of {tried} makes {metric} better"),
            n => format!("none of {tried} was shown to make {metric} better; {n} not resolved"),
        };
    };
    let names = escape_unsafe(&set.settings.join(", "));
    let figures = format!(
        "{metric} is {} µs with {names}, {} µs untouched",
        micros(set.with_set),
        micros(set.untouched)
    );
    match (set.answer, &set.effect) {
        (TuneAnswer::Better, Some(effect)) => format!("{figures}: {}", format_factor(effect)),
        (_, Some(effect)) => {
            format!(
                "{figures}: {}, {}: keep none of them",
                format_factor(effect),
                set.answer.to_words()
            )
        }
        (_, None) => format!("{names}: promising alone, not compared together in the time"),
    }
}

fn with_answer(document: &TuningDocument, answer: TuneAnswer) -> usize {
    document.settings.iter().filter(|setting| setting.answer == answer).count()
}

pub(crate) fn format_extent(document: &TuningDocument) -> String {
    let mut text = format!(
        "{} of {}, {} in {}",
        escape_unsafe(&document.metric),
        escape_unsafe(&document.experiment),
        count_with_noun(document.blocks, "block"),
        duration_text(document.elapsed)
    );
    if let Some(kernel) = &document.kernel {
        text += &format!(", Linux {}", escape_unsafe(kernel));
    }
    if let Some(target) = &document.target {
        text += &format!(", each a boot of {}", escape_unsafe(target));
    }
    if document.failed > 0 {
        text += &format!("; {} could not be used", count_with_noun(document.failed, "block"));
    }
    text
}

pub(crate) fn explain_figures(document: &TuningDocument) -> String {
    let spread = document.spread.map_or_else(String::new, |spread| {
        let between = format::percent_text(spread.exp() - 1.0);
        format!(" Blocks of the same settings differ by {between} (standard deviation).")
    });
    format!(
        "At most {} of such tunings report a false effect of any setting (Holm). No \
         effect: within ×{:.2} either way, shown. The set was measured in separate blocks.{spread}",
        format::percent_text(document.error_rate),
        document.margin
    )
}

/// Why it ended early, if it did.
pub(crate) fn end_reason(document: &TuningDocument, directory: &str) -> Option<String> {
    Some(match document.ended {
        TuningEnd::Complete => return None,
        TuningEnd::Time => "the time is over; a longer --duration resolves more".to_owned(),
        TuningEnd::BlocksFailed if document.blocks + document.failed == 0 => {
            "nothing was measured: the reasons are below".to_owned()
        }
        TuningEnd::BlocksFailed => {
            "too many blocks could not be used: blocks.jsonl has the reason for each".to_owned()
        }
        TuningEnd::Interrupted => {
            format!("it was interrupted: continue with `punctual tune --resume {directory}`")
        }
    })
}

/// The verdict on the requirement.
pub fn format_requirement(required: &TunedRequirement) -> String {
    let count_of = |[held, all]: [u64; 2]| format!("{held} of {}", count_with_noun(all, "block"));
    let with_set = match required.recommended {
        [_, 0] => String::new(),
        counts => format!(", {} with the set", count_of(counts)),
    };
    let word = match required.verdict {
        VerdictWord::Met => "met in every block",
        VerdictWord::NotMet => "not met in every block",
        VerdictWord::Undecided | VerdictWord::Invalid => "undecided: no block",
    };
    let untouched = count_of(required.untouched);
    format!("{}: {word}: {untouched} untouched{with_set}", escape_unsafe(&required.requirement))
}

/// The time needed for an answer.
pub fn more_time(time: Option<Nanos>) -> String {
    time.map_or_else(|| "not known".to_owned(), |time| format!("{} more", duration_text(time)))
}

/// Omitted names grouped by reason, in the order of the first.
pub(crate) fn by_reason<'a>(
    all: impl Iterator<Item = (&'a String, &'a String)>,
) -> Vec<(String, &'a String)> {
    let mut reasons: Vec<(String, &String)> = Vec::new();
    for (name, why) in all {
        match reasons.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => reasons.push((name.clone(), why)),
        }
    }
    reasons
}
