//! Additions to a bundle by the system that fetched it from its target.

use crate::baseline::HeldAgainst;
use crate::manifest::{Ending, Manifest};
use crate::member::Member;
use crate::ran_on::RanOn;
use crate::summary::Summary;
use crate::{Bundle, BundleError};
use punctual_core::Finding;
use std::path::Path;

/// Records in the bundle where its run took place, adds findings, and, where the run recorded no
/// ending, records one; an ending that is there stays. Figures are unchanged; [`renew_summary`]
/// follows.
pub fn amend(
    directory: &Path,
    target: RanOn,
    findings: &[Finding],
    ending: Option<Ending>,
) -> Result<Bundle, BundleError> {
    let bundle = Bundle::open(directory)?;
    let manifest = Manifest {
        target: Some(target),
        ending: bundle.manifest.ending.or(ending),
        // Where it ran is evidence, which is complete only now: [`renew_summary`] stores it again.
        verdict: None,
        ..bundle.manifest
    };
    let all: Vec<&Finding> = bundle.findings.iter().chain(findings).collect();
    let root = Member::root(directory);
    root.join("findings.json").replace_json(&all)?;
    root.join("bundle.json").replace_json_durably(&manifest)?;
    Bundle::open(directory)
}

/// Records in a bundle that has ended what became of its run beside earlier ones. Figures are
/// unchanged; [`renew_summary`] follows.
pub fn hold_against(directory: &Path, held: HeldAgainst) -> Result<Bundle, BundleError> {
    let bundle = Bundle::open(directory)?;
    // The verdict follows from it: [`renew_summary`] stores it again.
    let manifest = Manifest { baseline: Some(held), verdict: None, ..bundle.manifest };
    Member::root(directory).join("bundle.json").replace_json_durably(&manifest)?;
    Bundle::open(directory)
}

/// Replaces the figures for other programs by those of the bundle as it is now, and with them what
/// it stores of its end: of a target only the requesting system knows all, and a run in parts ended
/// as the last of them did. Everything is on the disk afterwards.
pub fn renew_summary(directory: &Path, summary: &Summary) -> Result<(), BundleError> {
    let root = Member::root(directory);
    root.join("summary.json").replace_json(summary)?;
    let header = root.join("bundle.json");
    let manifest: Manifest = header.read_json()?;
    let verdict = Some(summary.verdict.clone());
    header.replace_json_durably(&Manifest {
        ending: summary.ending.clone(),
        verdict,
        ..manifest
    })?;
    root.sync()
}
