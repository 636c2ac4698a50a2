//! Checks limits on intervals against a recording: `punctual trace --limit`, `[record]` of
//! experiments.

use crate::exit::Failure;
use crate::playback;
use punctual_bundle::Bundle;
use punctual_bundle::intervals::{LimitSummary, PairsDocument};
use punctual_bundle::summary::VerdictWord;
use punctual_core::format::count_with_noun;
use punctual_core::{Finding, Names, Severity};
use punctual_explain::pairs::{
    EndpointError, PairRequest, Pairing, PairingOptions, PreparedPairing, RequestError,
    WorstDetail, build_document,
};

/// A limit and its result.
pub type JudgedLimit = (String, LimitSummary);

/// Checks before the start that limits can be parsed: `names` are those known by then. The subject
/// of a kernel event (a thread by its name) is known only while recording, and so are test points,
/// if there may be any.
pub fn check_limits(
    limits: &[String],
    names: &Names,
    may_have_points: bool,
) -> Result<(), Failure> {
    let mut wrong = limits.iter().filter_map(|limit| {
        match PairRequest::find_limited(limit, names, None, None) {
            Err(RequestError::Endpoint(EndpointError::UnknownDetail { .. })) => None,
            Err(RequestError::Endpoint(EndpointError::Unknown { .. })) if may_have_points => None,
            Err(why) => Some(format!("--limit '{limit}': {why}")),
            Ok(_) => None,
        }
    });
    match wrong.next() {
        None => Ok(()),
        Some(first) => {
            Err(Failure::refused(wrong.fold(first, |all, one| all + "\n       " + &one)))
        }
    }
}

/// Checks the limits (as written: `A->B < 100us`) against the recording of a bundle.
pub fn judge_limits(bundle: &Bundle, limits: &[String]) -> Vec<JudgedLimit> {
    if limits.is_empty() {
        return Vec::new();
    }
    let Some(opened) = playback::open_recording(bundle) else {
        let reason = "there is no recording to check it against";
        return limits.iter().map(|limit| undecided_limit(limit, reason.to_owned())).collect();
    };
    let names = opened.names();
    let (mut requests, mut judged) = (Vec::new(), Vec::new());
    for limit in limits {
        match PairRequest::find_limited(limit, names, None, None) {
            Ok(request) => requests.push(request),
            Err(why) => judged.push(undecided_limit(limit, why.to_string())),
        }
    }
    let prepared = if PreparedPairing::is_needed(&opened.recorded, &requests) {
        PreparedPairing::from_events(opened.events(), &requests)
    } else {
        PreparedPairing::default()
    };
    let mut pairing = Pairing::new(
        PairingOptions { requests, everything: false },
        prepared,
        names,
        &opened.recorded,
    );
    opened.events().for_each(|event| pairing.push(&event, |_| {}));
    let detail = WorstDetail { worst: 1, explained: 0 };
    let document = build_document(&pairing.finish(names), detail, &[], names, &opened.recorded);
    judged.extend(limits_of_pairs(&document));
    judged
}

/// A limit that cannot be decided.
fn undecided_limit(written: &str, why: String) -> JudgedLimit {
    let end = written.find(['<', '=']).unwrap_or(written.len());
    let (name, limit) = written.split_at(end);
    let limit = LimitSummary {
        limit: limit.to_owned(),
        verdict: VerdictWord::Undecided,
        violations: 0,
        reason: Some(why),
    };
    (name.trim().to_owned(), limit)
}

fn limits_of_pairs(document: &PairsDocument) -> impl Iterator<Item = JudgedLimit> + '_ {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.limit, &pair.figures));
    let functions = document.functions.iter().map(|of| (&of.name, &of.limit, &of.figures));
    pairs.chain(functions).filter_map(|(name, limit, figures)| {
        let mut limit = limit.clone()?;
        if limit.verdict == VerdictWord::NotMet {
            let longest =
                figures.max.map_or(String::new(), |max| format!("; the longest: {max} ns"));
            limit.reason.get_or_insert(format!(
                "{} of {} exceed it{longest}",
                limit.violations,
                count_with_noun(figures.count, "interval")
            ));
        }
        Some((name.clone(), limit))
    })
}

/// The finding of a limit that does not hold: a violation is `bad`, an undecided one a `warning`.
pub fn limit_finding((name, limit): &JudgedLimit) -> Option<Finding> {
    let written = format!("{name} {}", limit.limit);
    let reason = limit.reason.as_deref().unwrap_or_default();
    match limit.verdict {
        VerdictWord::Met => None,
        VerdictWord::NotMet => Some(
            Finding::new(
                "limit-violated",
                Severity::Bad,
                "recording",
                format!("`{written}` is violated: {reason}"),
            )
            .with_remedy(format!(
                "`punctual pairs BUNDLE --limit '{written}'` shows the worst intervals and what \
                 ran during them"
            )),
        ),
        VerdictWord::Undecided | VerdictWord::Invalid => Some(
            Finding::new(
                "limit-undecided",
                Severity::Warning,
                "recording",
                format!("cannot determine whether `{written}` holds: {reason}"),
            )
            .with_remedy("`punctual pairs` shows what the recording contains and what it lost"),
        ),
    }
}
