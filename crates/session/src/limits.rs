//! Checks limits on intervals against a recording, for `punctual trace --limit` and `[record]` of
//! experiments.

use crate::exit::Failure;
use crate::recorded;
use punctual_analyze::pairs::{
    Detail, EndpointError, Pairing, PairingOptions, Prepared, Request, RequestError, document,
};
use punctual_bundle::Bundle;
use punctual_bundle::intervals::{LimitSummary, PairsDocument};
use punctual_bundle::summary::VerdictWord;
use punctual_core::{Finding, Names, Severity};
use punctual_report::format::counted;

/// The verdicts on the limits as findings; none for limits that hold.
#[derive(Default)]
pub struct Judged {
    /// A violation is `bad`, an undecided limit a `warning`.
    pub findings: Vec<Finding>,
    /// All together; `None` without limits.
    pub verdict: Option<VerdictWord>,
}

/// Whether limits can be understood, before anything starts: `names` are those that are known by
/// then. What a kernel event is about (a thread by its name) shows while it is recorded, and so do
/// test points, where there may be any.
pub fn check(limits: &[String], names: &Names, may_have_points: bool) -> Result<(), Failure> {
    let mut wrong =
        limits.iter().filter_map(|limit| match Request::find_limited(limit, names, None, None) {
            Err(RequestError::Endpoint(EndpointError::UnknownDetail { .. })) => None,
            Err(RequestError::Endpoint(EndpointError::Unknown { .. })) if may_have_points => None,
            Err(why) => Some(format!("--limit '{limit}': {why}")),
            Ok(_) => None,
        });
    match wrong.next() {
        None => Ok(()),
        Some(first) => {
            Err(Failure::refused(wrong.fold(first, |all, one| all + "\n       " + &one)))
        }
    }
}

/// Holds the limits (as written: `A->B < 100us`) against the recording of a bundle.
pub fn judge(bundle: &Bundle, limits: &[String]) -> Judged {
    if limits.is_empty() {
        return Judged::default();
    }
    let Some(opened) = recorded::open(bundle) else {
        return undecided(
            limits
                .iter()
                .map(|limit| (limit.clone(), "there is no recording to check it against".into())),
        );
    };
    let names = opened.names();
    let (mut requests, mut unknown) = (Vec::new(), Vec::new());
    for limit in limits {
        match Request::find_limited(limit, names, None, None) {
            Ok(request) => requests.push(request),
            Err(why) => unknown.push((limit.clone(), why.to_string())),
        }
    }
    let prepared = if Prepared::is_needed(&opened.recorded, &requests) {
        Prepared::of(opened.events(), &requests)
    } else {
        Prepared::default()
    };
    let mut pairing = Pairing::new(
        PairingOptions { requests, everything: false },
        prepared,
        names,
        &opened.recorded,
    );
    opened.events().for_each(|event| pairing.push(&event, |_| {}));
    let detail = Detail { worst: 1, explained: 0 };
    let document = document(&pairing.finish(names), detail, &[], names, &opened.recorded);
    let mut judged = undecided(unknown.into_iter());
    judged.findings.extend(of(&document));
    judged.verdict = match (document.verdict, judged.verdict) {
        (Some(VerdictWord::NotMet), _) => Some(VerdictWord::NotMet),
        (_, Some(worse)) => Some(worse),
        (verdict, None) => verdict,
    };
    judged
}

/// A limit that nothing can be said of.
fn undecided(limits: impl Iterator<Item = (String, String)>) -> Judged {
    let finding = |(limit, why): (String, String)| not_decided(&limit, &why);
    let findings: Vec<Finding> = limits.map(finding).collect();
    let verdict = (!findings.is_empty()).then_some(VerdictWord::Undecided);
    Judged { findings, verdict }
}

fn not_decided(limit: &str, why: &str) -> Finding {
    let message = format!("cannot determine whether `{limit}` holds: {why}");
    Finding::new("limit-undecided", Severity::Warning, "recording", message)
        .remedy("`punctual pairs` shows what the recording contains and what it lost")
}

fn of(document: &PairsDocument) -> Vec<Finding> {
    let pairs = document
        .pairs
        .iter()
        .map(|pair| (&pair.name, &pair.limit, pair.figures.count, pair.figures.max));
    let functions =
        document.functions.iter().map(|f| (&f.name, &f.limit, f.figures.count, f.figures.max));
    let finding =
        |(name, limit, count, max): (&String, &Option<LimitSummary>, u64, Option<i64>)| {
            let limit = limit.as_ref()?;
            let written = format!("{name} {}", limit.limit);
            match limit.verdict {
                VerdictWord::Met => None,
                VerdictWord::Undecided | VerdictWord::Invalid => {
                    Some(not_decided(&written, limit.reason.as_deref().unwrap_or_default()))
                }
                VerdictWord::NotMet => {
                    let message = format!(
                        "`{written}` is violated: {} of {} exceed it",
                        limit.violations,
                        counted(count, "interval")
                    );
                    let longest =
                        max.map(|max| format!("the longest took {max} ns")).unwrap_or_default();
                    Some(
                        Finding::new("limit-violated", Severity::Bad, "recording", message)
                            .evidence(longest)
                            .remedy(format!(
                                "`punctual pairs BUNDLE --limit '{written}'` shows the worst \
                                 intervals and what ran during them"
                            )),
                    )
                }
            }
        };
    pairs.chain(functions).filter_map(finding).collect()
}
