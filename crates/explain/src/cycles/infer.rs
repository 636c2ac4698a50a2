//! Infers from a thread's first waits which wait ends its cycles.

use super::{CallNames, MIN_WAITS, WaitSite, sites};
use punctual_core::cycle::{Cycle, CycleKind};
use punctual_core::{CauseKind, Nanos};

/// The minimum share of fitting releases for a timer's cycles.
const SURE: f64 = 0.8;
/// The maximum distance of a fitting interval from a multiple of the period: a share of it, and an
/// amount for short ones.
const NEAR: f64 = 0.02;
const NEAR_LEAST: f64 = 1_000.0;

/// The inferred cycles of a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Inferred {
    pub kind: CycleKind,
    /// The wait that they begin with.
    pub site: WaitSite,
    /// The distance of releases, if constant.
    pub period: Option<Nanos>,
    /// The share of fitting releases, 0 to 1.
    pub confidence: f64,
    /// The number of cycles examined.
    pub cycles: usize,
    /// How long each wait asks to sleep, if it sleeps for a constant time.
    pub sleep: Option<Nanos>,
    /// The usual distance of its releases, of such sleeps.
    pub distance: Option<Nanos>,
    /// Whether waits of this call were seen at other places.
    pub has_others: bool,
    /// Whether its waits look as several of each period do: short and long ones by turns.
    pub takes_turns: bool,
}

/// The user's constraint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Constraint {
    /// Only cycles of this kind.
    pub kind: Option<CycleKind>,
}

/// An observed wait, to explain why none was chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CandidateWait {
    /// The wait with its release.
    pub inferred: Inferred,
    /// The total time of the thread in it.
    pub asleep: Nanos,
    /// Whether it is for a lock, which never begins a cycle.
    pub lock: bool,
}

/// Infers a thread's cycles from its first waits in order of time, each given as a cycle. The error
/// lists the observed waits, the one with the longest sleep first.
pub fn infer_cycles(
    waits: &[Cycle],
    constraint: Constraint,
    names: &CallNames,
) -> Result<Inferred, Vec<CandidateWait>> {
    let candidates = find_candidates(waits, constraint, names);
    let allowed = |candidate: &&CandidateWait| {
        let inferred = &candidate.inferred;
        let fits = inferred.kind == CycleKind::Event
            || inferred.confidence >= SURE
            || constraint.kind.is_some();
        inferred.cycles >= MIN_WAITS
            && !candidate.lock
            && fits
            && constraint.kind.is_none_or(|kind| kind == inferred.kind)
    };
    let timed = |candidate: &&CandidateWait| candidate.inferred.kind != CycleKind::Event;
    let asleep = |of: &CandidateWait| of.asleep.ns() as f64;
    let all_timed = || candidates.iter().filter(allowed).filter(timed);
    let by_timer = all_timed().next().map(|longest| {
        let encloses = |other: &&CandidateWait| is_pause(&longest.inferred, &other.inferred);
        all_timed().find(encloses).unwrap_or(longest)
    });
    let by_event = candidates.iter().filter(allowed).find(|candidate| !timed(candidate));
    // A timer may be the timeout of a wait for events, or a pause within the cycle.
    let found = match (by_timer, by_event) {
        (Some(timer), Some(event)) if asleep(event) > MOSTLY * asleep(timer) => event.inferred,
        (Some(found), _) | (None, Some(found)) => found.inferred,
        (None, None) => return Err(candidates),
    };
    let mut at_site = waits.iter().filter(|wait| found.site.has_wait(wait.call));
    let is_other =
        |wait: &Cycle| found.site.call.is_same_call(&wait.call) && !found.site.has_wait(wait.call);
    Ok(Inferred {
        has_others: waits.iter().any(is_other),
        takes_turns: found.kind == CycleKind::Event && takes_turns(&release_times(&mut at_site)),
        ..found
    })
}

/// The waits that may as well be those that its cycles begin with: in the same call, as frequent,
/// at another place or for something else.
pub fn find_rivals(
    waits: &[Cycle],
    found: &Inferred,
    constraint: Constraint,
    names: &CallNames,
) -> Vec<WaitSite> {
    let is_rival = |candidate: &CandidateWait| {
        let inferred = &candidate.inferred;
        let is_frequent = inferred.cycles >= MIN_WAITS && RARE * inferred.cycles > found.cycles;
        let is_timed = inferred.kind != CycleKind::Event || found.kind == CycleKind::Event;
        inferred.site != found.site
            && inferred.site.call.number == found.site.call.number
            && constraint.kind.is_none_or(|kind| kind == inferred.kind)
            && is_frequent
            && is_timed
            && !candidate.lock
            && !is_pause(inferred, found)
    };
    let rivals = find_candidates(waits, constraint, names).into_iter().filter(is_rival);
    let mut sites: Vec<WaitSite> = rivals.map(|rival| rival.inferred.site).collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

/// From this many cycles for one of its waits on, a wait is one within some of them.
const RARE: usize = 4;

/// Whether a wait is a sleep within the cycles of another one, which has a period.
fn is_pause(wait: &Inferred, period: &Inferred) -> bool {
    wait.kind == CycleKind::Relative
        && period.kind.is_periodic()
        && period.period.is_some()
        && 2 * period.cycles >= wait.cycles
}

fn release_times(waits: &mut dyn Iterator<Item = &Cycle>) -> Vec<i64> {
    waits.map(|wait| wait.release.ns()).collect()
}

/// The candidates, that with the longest sleep first.
fn find_candidates(
    waits: &[Cycle],
    constraint: Constraint,
    names: &CallNames,
) -> Vec<CandidateWait> {
    let sites = sites::divide_by_site(waits, names);
    let mut candidates: Vec<CandidateWait> = sites
        .iter()
        .map(|((site, kind), cycles)| {
            let is_given = constraint.kind == Some(*kind);
            let kind = if is_given { *kind } else { true_kind(*kind, cycles) };
            build_candidate(*site, kind, cycles)
        })
        .collect();
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.asleep));
    candidates
}

/// The largest number of waits of a period that look alike, and the minimum ratio of the longest
/// distance of their releases to the shortest one.
const TURNS: usize = 4;
const CLEARLY: i64 = 2;

/// Whether releases are as far from each other as others that came a constant number before, and
/// not as far as all others.
fn takes_turns(releases: &[i64]) -> bool {
    let distances: Vec<i64> = releases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    (2..=TURNS).any(|turns| {
        let periods: Vec<i64> = releases.windows(turns + 1).map(|of| of[turns] - of[0]).collect();
        let differ = |of: &[i64]| {
            of.iter().max().zip(of.iter().min()).is_some_and(|(max, min)| *max > CLEARLY * min)
        };
        releases.len() > MIN_WAITS
            && share_near_median(&periods) >= SURE
            && share_of_true(distances.windows(turns).map(differ)) >= SURE
    })
}

/// The minimum ratio of a thread's waits for events to those for its timer, for cycles of events.
const MOSTLY: f64 = 4.0;

fn build_candidate(site: WaitSite, kind: CycleKind, cycles: &[&Cycle]) -> CandidateWait {
    let asleep = cycles
        .iter()
        .fold(Nanos::ZERO, |sum, cycle| sum + Nanos((cycle.woken - cycle.entered).ns().max(0)));
    let lock = cycles.iter().any(|cycle| cycle.wait_is == CauseKind::Lock);
    let releases = release_times(&mut cycles.iter().copied());
    let spans: Vec<i64> = cycles.iter().map(|cycle| (cycle.release - cycle.entered).ns()).collect();
    let is_relative = kind == CycleKind::Relative;
    // Its duration is constant.
    let (period, confidence) =
        if is_relative { (None, share_near_median(&spans)) } else { period_of(&releases) };
    let is_sure = confidence >= SURE;
    let usual = |spans| median(spans).filter(|_| is_relative && is_sure).map(Nanos);
    let distances = releases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let inferred = Inferred {
        kind,
        site,
        period: period.filter(|_| is_sure),
        confidence,
        cycles: cycles.len(),
        sleep: usual(spans),
        distance: usual(distances),
        has_others: false,
        takes_turns: false,
    };
    CandidateWait { inferred, asleep, lock }
}

/// Some programs sleep for a time and miss the instant at which it ends (time.sleep of Python);
/// others compute the time until an instant and sleep for that (Java). The constant quantity shows
/// which: the sleeps, or the distances of releases.
fn true_kind(kind: CycleKind, cycles: &[&Cycle]) -> CycleKind {
    let sleeps = cycles.iter().map(|cycle| (cycle.release - cycle.entered).ns());
    let releases: Vec<i64> = cycles.iter().map(|cycle| cycle.release.ns()).collect();
    let distances = releases.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (sleeps, distances) = (median_deviation(sleeps.collect()), median_deviation(distances));
    match kind {
        CycleKind::Absolute if sleeps < distances => CycleKind::Relative,
        CycleKind::Relative if distances < sleeps && period_of(&releases).1 >= SURE => {
            CycleKind::Absolute
        }
        kind => kind,
    }
}

/// The median distance from the median.
fn median_deviation(values: Vec<i64>) -> i64 {
    let Some(usual) = median(values.clone()) else { return 0 };
    median(values.into_iter().map(|value| (value - usual).abs()).collect()).unwrap_or(0)
}

/// The share of spans near their median.
fn share_near_median(spans: &[i64]) -> f64 {
    let Some(usual) = median(spans.to_vec()) else { return 0.0 };
    let near = (usual as f64 * NEAR).max(NEAR_LEAST * 10.0);
    share_of_true(spans.iter().map(|span| (*span - usual).abs() as f64 <= near))
}

/// The period of releases, and the share of their distances that are multiples of it.
fn period_of(releases: &[i64]) -> (Option<Nanos>, f64) {
    let distances: Vec<i64> =
        releases.windows(2).map(|pair| pair[1] - pair[0]).filter(|ns| *ns > 0).collect();
    let Some(usual) = median(distances.clone()) else { return (None, 0.0) };
    let multiples = |ns: i64| (ns as f64 / usual as f64).round().max(1.0);
    let near = (usual as f64 * NEAR).max(NEAR_LEAST);
    let fits = |ns: i64| (ns as f64 - multiples(ns) * usual as f64).abs() <= near * multiples(ns);
    let (mut whole, mut count) = (0.0, 0.0);
    for ns in distances.iter().filter(|ns| fits(**ns)) {
        whole += *ns as f64;
        count += multiples(*ns);
    }
    let period = (count > 0.0).then(|| Nanos((whole / count).round() as i64));
    (period, share_of_true(distances.iter().map(|ns| fits(*ns))))
}

fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn share_of_true(fits: impl ExactSizeIterator<Item = bool>) -> f64 {
    let total = fits.len();
    fits.filter(|fits| *fits).count() as f64 / total.max(1) as f64
}
