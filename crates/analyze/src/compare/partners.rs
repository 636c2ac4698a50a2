//! Which series of one side is compared with which of the other: by hand, by phase and name, and
//! those of an import, whose names are another tool's, by CPU.

use super::{CompareError, SideInput, find};
use punctual_bundle::{Phase, Series};

/// Pairs that are proposed, at most.
const PROPOSED: usize = 64;
/// Names that a message lists.
const LISTED: usize = 5;

/// What was paired.
#[derive(Debug, Default)]
pub struct Partners {
    /// `phase/series` of the first side and of the other.
    pub matched: Vec<(String, String)>,
    /// Those of [`Partners::matched`] that only their CPU pairs.
    pub by_cpu: Vec<(String, String)>,
    /// Series without a partner in every run.
    pub without: Vec<String>,
    /// The options that would pair these, where there is something to pair them with.
    pub proposal: Option<String>,
}

/// A series that a run of the side has.
struct Named {
    name: String,
    phase: String,
    /// All runs of the side have it.
    everywhere: bool,
    /// The kind of workload, and the CPU where it was measured on a single one.
    workload: String,
    cpu: Option<usize>,
}

impl Named {
    fn of(side: &SideInput, phase: &Phase, series: &Series) -> Named {
        let name = super::full_name(phase, series);
        let cpus = &series.meta.cpus;
        Named {
            phase: phase.meta.name.clone(),
            everywhere: side.runs.iter().all(|(_, bundle)| find(bundle, &name).is_some()),
            workload: series.meta.workload.clone(),
            cpu: cpus.first().filter(|_| cpus.len() == 1),
            name,
        }
    }
    /// Whether both measure the same on the same CPU.
    fn is_counterpart(&self, other: &Named) -> bool {
        self.everywhere
            && other.everywhere
            && self.workload == other.workload
            && self.cpu.is_some()
            && self.cpu == other.cpu
    }
}

/// The series that any run of the side has, in order.
fn names(side: &SideInput) -> Vec<Named> {
    let mut names: Vec<Named> = Vec::new();
    for (_, bundle) in &side.runs {
        for phase in &bundle.phases {
            for series in &phase.series {
                let named = Named::of(side, phase, series);
                if !names.iter().any(|known| known.name == named.name) {
                    names.push(named);
                }
            }
        }
    }
    names
}

/// Pairs the series of two sides.
pub fn partners(
    first: &SideInput,
    other: &SideInput,
    by_hand: &[(String, String)],
) -> Result<Partners, CompareError> {
    let (of_first, of_other) = (names(first), names(other));
    let has = |names: &[Named], name: &str| names.iter().any(|of| of.name == name && of.everywhere);
    for (side, names, name) in
        by_hand.iter().flat_map(|(one, two)| [(first, &of_first, one), (other, &of_other, two)])
    {
        if !has(names, name) {
            return Err(CompareError::NoSuchSeries {
                side: side.label.clone(),
                name: name.clone(),
                known: list(names),
            });
        }
    }
    let named_by_hand = |name: &str| by_hand.iter().any(|(one, two)| one == name || two == name);
    let mut matched = by_hand.to_vec();
    for of in of_first.iter().filter(|of| of.everywhere && !named_by_hand(&of.name)) {
        if has(&of_other, &of.name) {
            matched.push((of.name.clone(), of.name.clone()));
        }
    }
    let alone = |names: &'_ [Named], matched: &[(String, String)]| {
        let is_matched = |name: &str| matched.iter().any(|(one, two)| one == name || two == name);
        names.iter().filter(|of| !is_matched(&of.name)).map(|of| of.name.clone()).collect()
    };
    let mut by_cpu = Vec::new();
    if [first, other].iter().any(|side| is_import(side)) {
        let (one, two): (Vec<String>, Vec<String>) =
            (alone(&of_first, &matched), alone(&of_other, &matched));
        by_cpu = counterparts(&of_first, &one, &of_other, &two);
        matched.extend(by_cpu.iter().cloned());
    }
    let (one, two) = (alone(&of_first, &matched), alone(&of_other, &matched));
    let proposal = proposal(&of_first, &one, &of_other, &two);
    if matched.is_empty() {
        let have = format!(
            "{} has {}, {} has {}",
            first.label,
            list(&of_first),
            other.label,
            list(&of_other)
        );
        let matches = proposal.unwrap_or_else(|| "--match ONE=OTHER".to_owned());
        let [one, two] = [first, other].map(|side| side.label.clone());
        return Err(CompareError::NoPartner { first: one, other: two, have, matches });
    }
    let mut without = one;
    without.extend(two.into_iter().filter(|name| !of_first.iter().any(|of| of.name == *name)));
    Ok(Partners { matched, by_cpu, without, proposal })
}

fn is_import(side: &SideInput) -> bool {
    side.runs.iter().all(|(_, bundle)| bundle.manifest.origin.starts_with("import"))
}

/// Of each phase with each: series of the same kind that are the only ones on their CPU.
fn counterparts(
    of_first: &[Named],
    one: &[String],
    of_other: &[Named],
    two: &[String],
) -> Vec<(String, String)> {
    let open = |names: &'_ [String], of: &&Named| names.contains(&of.name);
    let is_only = |all: &[Named], this: &Named| {
        all.iter().filter(|of| of.phase == this.phase && of.is_counterpart(this)).count() == 1
    };
    let mut pairs = Vec::new();
    for a in of_first.iter().filter(|of| open(one, of)) {
        for b in of_other.iter().filter(|of| open(two, of)) {
            if a.is_counterpart(b) && is_only(of_first, a) && is_only(of_other, b) {
                pairs.push((a.name.clone(), b.name.clone()));
            }
        }
    }
    pairs
}

/// The options that pair what is alone on both sides, in order: of one phase each.
fn proposal(
    of_first: &[Named],
    one: &[String],
    of_other: &[Named],
    two: &[String],
) -> Option<String> {
    let of_a_phase = |all: &[Named], names: &[String]| -> Vec<String> {
        let mut open = all.iter().filter(|of| of.everywhere && names.contains(&of.name)).peekable();
        let phase = open.peek().map(|of| of.phase.clone());
        open.filter(|of| Some(&of.phase) == phase.as_ref()).map(|of| of.name.clone()).collect()
    };
    let pairs = of_a_phase(of_first, one).into_iter().zip(of_a_phase(of_other, two));
    let options: Vec<String> = pairs
        .take(PROPOSED)
        .map(|(a, b)| format!("--match '{}'", format!("{a}={b}").replace('\'', "'\\''")))
        .collect();
    (!options.is_empty()).then(|| options.join(" "))
}

/// Names for a message, few of them.
fn list(names: &[Named]) -> String {
    let few: Vec<&str> = names.iter().take(LISTED).map(|of| of.name.as_str()).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n > few.len() => format!("{} and {} more", few.join(", "), n - few.len()),
        _ => few.join(", "),
    }
}
