//! The series of a side by name, so that each bundle is searched once.

use super::SideInput;
use crate::Validity;
use crate::validity::concerns_series;
use punctual_bundle::summary::{Proof, ProofWord};
use punctual_bundle::{Bundle, Completeness, Phase, Series};
use std::collections::HashMap;

/// A side.
pub(crate) struct Indexed<'a> {
    pub label: &'a str,
    pub runs: Vec<IndexedRun<'a>>,
}

/// A run of it.
pub(crate) struct IndexedRun<'a> {
    pub name: &'a str,
    pub bundle: &'a Bundle,
    series: HashMap<String, (&'a Phase, &'a Series)>,
    /// Proofs against comparing, for single series and for more.
    of_series: HashMap<String, Proof>,
    of_more: Vec<Proof>,
}

impl<'a> Indexed<'a> {
    pub(crate) fn from_side(side: &'a SideInput) -> Indexed<'a> {
        let runs = side.runs.iter().map(|(name, bundle)| IndexedRun::from_bundle(name, bundle));
        Indexed { label: &side.label, runs: runs.collect() }
    }

    /// A series in the runs that have it.
    pub(crate) fn find_series(&self, name: &str) -> impl Iterator<Item = (&'a Phase, &'a Series)> {
        self.runs.iter().filter_map(move |run| run.find_series(name))
    }

    /// Why a series cannot be compared with another as its equal: the side, the run, and the failed
    /// proof.
    pub(crate) fn find_inequality(&self, name: &str) -> Option<String> {
        let failed_run =
            self.runs.iter().find_map(|run| Some((run.name, run.find_inequality(name)?)));
        failed_run.map(|(run, why)| format!("side {}, {run}: {why}", self.label))
    }
}

impl<'a> IndexedRun<'a> {
    fn from_bundle(name: &'a str, bundle: &'a Bundle) -> IndexedRun<'a> {
        let mut series = HashMap::new();
        for phase in &bundle.phases {
            for one in &phase.series {
                series.entry(full_name(phase, one)).or_insert((phase, one));
            }
        }
        let validity = Validity::of_bundle(bundle);
        let is_of_one =
            |proof: &&Proof| proof.proof != ProofWord::Load && series.contains_key(&proof.subject);
        let against: Vec<&Proof> = validity.proofs_against_comparing().collect();
        let (of_one, of_more): (Vec<&Proof>, Vec<&Proof>) =
            against.into_iter().partition(is_of_one);
        let mut of_series = HashMap::new();
        for proof in of_one {
            of_series.entry(proof.subject.clone()).or_insert_with(|| proof.clone());
        }
        let of_more = of_more.into_iter().cloned().collect();
        IndexedRun { name, bundle, series, of_series, of_more }
    }

    pub(crate) fn find_series(&self, name: &str) -> Option<(&'a Phase, &'a Series)> {
        self.series.get(name).copied()
    }

    fn find_inequality(&self, name: &str) -> Option<String> {
        if self.bundle.completeness == Completeness::CutOff {
            return Some("it was cut off".to_owned());
        }
        let (phase, series) = self.find_series(name)?;
        let (phase, series) = (&phase.meta.name, &series.meta.name);
        let of_more = self.of_more.iter().find(|proof| concerns_series(proof, phase, series));
        let proof = of_more.or_else(|| self.of_series.get(name))?;
        Some(format!("{} of {}: {}", proof.proof.json_word(), proof.subject, proof.why))
    }
}

pub fn full_name(phase: &Phase, series: &Series) -> String {
    format!("{}/{}", phase.meta.name, series.meta.name)
}
