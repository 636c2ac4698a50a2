//! Divides the waits of a thread by what they wait for, and where.

use super::{CallNames, MIN_WAITS, WaitSite, kind_of, name_of};
use punctual_core::cycle::{Cycle, CycleKind, WaitingCall};
use std::collections::{BTreeMap, BTreeSet};

/// The minimum share of waits for recurring objects, if these distinguish waits.
const RECURRING: f64 = 0.8;

pub(super) type SiteWaits<'w> = BTreeMap<(WaitSite, CycleKind), Vec<&'w Cycle>>;

/// Waits by site and kind. Where the places of a call's waits are known, those without are left
/// out: they may be at any of them.
pub(super) fn divide_by_site<'w>(waits: &'w [Cycle], names: &CallNames) -> SiteWaits<'w> {
    let call = |wait: &Cycle| (wait.call.number, wait.call.operation);
    let calls_with_place: BTreeSet<_> =
        waits.iter().filter(|one| one.call.place != 0).map(call).collect();
    let mut places: BTreeMap<WaitSite, Vec<&Cycle>> = BTreeMap::new();
    for wait in
        waits.iter().filter(|one| one.call.place != 0 || !calls_with_place.contains(&call(one)))
    {
        places.entry(WaitSite::from_call(wait.call, names)).or_default().push(wait);
    }
    let mut sites = SiteWaits::new();
    for (site, waits) in places {
        let by_object = name_of(site.call, names).starts_with("futex") && has_objects(&waits);
        for wait in waits {
            let site = if by_object { at_object(site, &wait.call) } else { site };
            sites.entry((site, kind_of(wait, names))).or_default().push(wait);
        }
    }
    sites
}

fn at_object(site: WaitSite, call: &WaitingCall) -> WaitSite {
    let argument = call.awaited_object();
    WaitSite { call: WaitingCall { argument, ..site.call }, by_argument: true }
}

/// Whether nearly all of these wait for few objects, again and again. The semaphores of jobs, of
/// which each has its own, distinguish nothing.
fn has_objects(waits: &[&Cycle]) -> bool {
    let mut objects: BTreeMap<u64, usize> = BTreeMap::new();
    for wait in waits {
        *objects.entry(wait.call.awaited_object()).or_default() += 1;
    }
    let recurring: usize = objects.values().filter(|count| **count >= MIN_WAITS).sum();
    recurring as f64 >= RECURRING * waits.len() as f64
}
