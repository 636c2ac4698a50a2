//! Pairs the series of two sides: by hand, by phase and name, and those of imports, whose names are
//! another tool's, by CPU.

use super::CompareError;
use super::index::{Indexed, full_name};
use punctual_bundle::{Phase, Series};
use std::collections::{HashMap, HashSet};

/// The maximum number of pairs proposed.
const MAX_PROPOSED_PAIRS: usize = 64;
/// The maximum number of names listed in a message.
const LISTED_NAMES: usize = 5;

/// The result of pairing.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    /// `phase/series` of the first side and of the other.
    pub matched: Vec<(String, String)>,
    /// The pairs in [`Partners::matched`] that are only paired by CPU.
    pub by_cpu: Vec<(String, String)>,
    /// Series without a partner in every run.
    pub without: Vec<String>,
    /// The options that would pair these, if any partner exists.
    pub proposal: Option<String>,
}

/// A series in any run of the side.
struct SideSeries {
    name: String,
    phase: String,
    /// Whether all runs of the side have it.
    everywhere: bool,
    /// The kind of workload, and the CPU if it was measured on a single one.
    workload: String,
    cpu: Option<usize>,
}

impl SideSeries {
    fn from_series(side: &Indexed, phase: &Phase, series: &Series, name: String) -> SideSeries {
        let cpus = &series.meta.cpus;
        SideSeries {
            phase: phase.meta.name.clone(),
            everywhere: side.runs.iter().all(|run| run.find_series(&name).is_some()),
            workload: series.meta.workload.clone(),
            cpu: cpus.first_cpu().filter(|_| cpus.len() == 1),
            name,
        }
    }
    /// The workload and CPU; `None` if a run lacks it, or it has more than one CPU.
    fn workload_and_cpu(&self) -> Option<(&str, usize)> {
        self.cpu.filter(|_| self.everywhere).map(|cpu| (self.workload.as_str(), cpu))
    }
}

/// The series of any run of the side, in order.
fn list_series(side: &Indexed) -> Vec<SideSeries> {
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for run in &side.runs {
        for phase in &run.bundle.phases {
            for series in &phase.series {
                let name = full_name(phase, series);
                if known.insert(name.clone()) {
                    names.push(SideSeries::from_series(side, phase, series, name));
                }
            }
        }
    }
    names
}

/// Pairs the series of two sides.
pub(crate) fn pair_series(
    first: &Indexed,
    other: &Indexed,
    by_hand: &[(String, String)],
) -> Result<Partners, CompareError> {
    let (of_first, of_other) = (list_series(first), list_series(other));
    let everywhere = |names: &'_ [SideSeries]| -> HashSet<String> {
        names.iter().filter(|of| of.everywhere).map(|of| of.name.clone()).collect()
    };
    let (all_first, all_other) = (everywhere(&of_first), everywhere(&of_other));
    for (side, names, all, name) in by_hand.iter().flat_map(|(one, two)| {
        [(first, &of_first, &all_first, one), (other, &of_other, &all_other, two)]
    }) {
        if !all.contains(name) {
            return Err(CompareError::NoSuchSeries {
                side: side.label.to_owned(),
                name: name.clone(),
                known: format_names(names),
            });
        }
    }
    let named_by_hand = paired_names(by_hand);
    let mut matched = by_hand.to_vec();
    for of in
        of_first.iter().filter(|of| of.everywhere && !named_by_hand.contains(of.name.as_str()))
    {
        if all_other.contains(&of.name) {
            matched.push((of.name.clone(), of.name.clone()));
        }
    }
    let alone = |names: &'_ [SideSeries], matched: &[(String, String)]| {
        let matched = paired_names(matched);
        let open = names.iter().filter(|of| !matched.contains(of.name.as_str()));
        open.map(|of| of.name.clone()).collect()
    };
    let mut by_cpu = Vec::new();
    if [first, other].iter().any(|side| is_import(side)) {
        let (one, two): (HashSet<String>, HashSet<String>) =
            (alone(&of_first, &matched), alone(&of_other, &matched));
        by_cpu = find_counterparts(&of_first, &one, &of_other, &two);
        matched.extend(by_cpu.iter().cloned());
    }
    let (one, two): (HashSet<String>, HashSet<String>) =
        (alone(&of_first, &matched), alone(&of_other, &matched));
    let proposal = propose_pairs(&of_first, &one, &of_other, &two);
    if matched.is_empty() {
        let have = format!(
            "{} has {}, {} has {}",
            first.label,
            format_names(&of_first),
            other.label,
            format_names(&of_other)
        );
        let matches = proposal.unwrap_or_else(|| "--match ONE=OTHER".to_owned());
        let [one, two] = [first, other].map(|side| side.label.to_owned());
        return Err(CompareError::NoPartner { first: one, other: two, have, matches });
    }
    let first_names: HashSet<&str> = of_first.iter().map(|of| of.name.as_str()).collect();
    let of_one = of_first.iter().filter(|of| one.contains(&of.name));
    let of_two = of_other.iter().filter(|of| two.contains(&of.name));
    let of_two = of_two.filter(|of| !first_names.contains(of.name.as_str()));
    let unpaired_names = of_one.chain(of_two).map(|of| of.name.clone()).collect();
    Ok(Partners { matched, by_cpu, without: unpaired_names, proposal })
}

fn paired_names(pairs: &[(String, String)]) -> HashSet<&str> {
    pairs.iter().flat_map(|(one, two)| [one.as_str(), two.as_str()]).collect()
}

fn is_import(side: &Indexed) -> bool {
    side.runs.iter().all(|run| run.bundle.manifest.origin.starts_with("import"))
}

/// Pairs, over all combinations of phases, series of the same kind that are the only ones on their
/// CPU.
fn find_counterparts(
    of_first: &[SideSeries],
    one: &HashSet<String>,
    of_other: &[SideSeries],
    two: &HashSet<String>,
) -> Vec<(String, String)> {
    let (places_first, places_other) = (by_place(of_first), by_place(of_other));
    // The only series of its phase at its place.
    let is_only_one = |places: &PartnerPlaces<'_>, of: &SideSeries| {
        let same = of.workload_and_cpu().and_then(|place| places.get(&place));
        same.is_some_and(|all| all.iter().filter(|other| other.phase == of.phase).count() == 1)
    };
    let mut pairs = Vec::new();
    for a in of_first.iter().filter(|of| one.contains(&of.name) && is_only_one(&places_first, of)) {
        let same =
            a.workload_and_cpu().and_then(|place| places_other.get(&place)).into_iter().flatten();
        let open = same.filter(|of| two.contains(&of.name) && is_only_one(&places_other, of));
        pairs.extend(open.map(|b| (a.name.clone(), b.name.clone())));
    }
    pairs
}

type PartnerPlaces<'a> = HashMap<(&'a str, usize), Vec<&'a SideSeries>>;

fn by_place(all: &[SideSeries]) -> PartnerPlaces<'_> {
    let mut places = PartnerPlaces::new();
    for of in all {
        if let Some(place) = of.workload_and_cpu() {
            places.entry(place).or_default().push(of);
        }
    }
    places
}

/// The options that pair the unpaired series of both sides in order: of one phase each.
fn propose_pairs(
    of_first: &[SideSeries],
    one: &HashSet<String>,
    of_other: &[SideSeries],
    two: &HashSet<String>,
) -> Option<String> {
    let of_a_phase = |all: &[SideSeries], names: &HashSet<String>| -> Vec<String> {
        let mut open = all.iter().filter(|of| of.everywhere && names.contains(&of.name)).peekable();
        let phase = open.peek().map(|of| of.phase.clone());
        open.filter(|of| Some(&of.phase) == phase.as_ref()).map(|of| of.name.clone()).collect()
    };
    let pairs = of_a_phase(of_first, one).into_iter().zip(of_a_phase(of_other, two));
    let options: Vec<String> = pairs
        .take(MAX_PROPOSED_PAIRS)
        .map(|(a, b)| format!("--match '{}'", format!("{a}={b}").replace('\'', "'\\''")))
        .collect();
    (!options.is_empty()).then(|| options.join(" "))
}

/// A few names for a message.
fn format_names(names: &[SideSeries]) -> String {
    let listed_names: Vec<&str> =
        names.iter().take(LISTED_NAMES).map(|of| of.name.as_str()).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n > listed_names.len() => {
            format!("{} and {} more", listed_names.join(", "), n - listed_names.len())
        }
        _ => listed_names.join(", "),
    }
}
