//! Additions to a bundle by the system that fetched it from its target.

use crate::baseline::HeldAgainst;
use crate::manifest::{Manifest, RunEnding};
use crate::member::Member;
use crate::ran_on::RanOn;
use crate::summary::Summary;
use crate::{Bundle, BundleError};
use punctual_core::Finding;
use std::path::Path;

/// Records the target in the bundle, adds findings, and records an ending if the run has none.
/// Figures are unchanged; call [`renew_summary`] afterwards.
pub fn amend_bundle(
    directory: &Path,
    target: RanOn,
    findings: &[Finding],
    ending: Option<RunEnding>,
) -> Result<Bundle, BundleError> {
    let bundle = Bundle::open(directory)?;
    let manifest = Manifest {
        target: Some(target),
        ending: bundle.manifest.ending.or(ending),
        // The target is evidence that is complete only now: [`renew_summary`] stores the verdict
        // again.
        verdict: None,
        ..bundle.manifest
    };
    let all_findings: Vec<&Finding> = bundle.findings.iter().chain(findings).collect();
    let root = Member::from_root(directory);
    root.join("findings.json").replace_json(&all_findings)?;
    root.join("bundle.json").replace_json_durably(&manifest)?;
    Bundle::open(directory)
}

/// Records the comparison with earlier runs in an ended bundle. Figures are unchanged; call
/// [`renew_summary`] afterwards.
pub fn hold_against(directory: &Path, held: HeldAgainst) -> Result<Bundle, BundleError> {
    let bundle = Bundle::open(directory)?;
    // The verdict depends on it: [`renew_summary`] stores it again.
    let manifest = Manifest { baseline: Some(held), verdict: None, ..bundle.manifest };
    Member::from_root(directory).join("bundle.json").replace_json_durably(&manifest)?;
    Bundle::open(directory)
}

/// Replaces the summary by the bundle's current figures and updates the stored verdict and ending:
/// only the requesting system knows everything about a target, and a run in parts ended as its last
/// part did. Syncs everything to disk.
pub fn renew_summary(directory: &Path, summary: &Summary) -> Result<(), BundleError> {
    let root = Member::from_root(directory);
    root.join("summary.json").replace_json(summary)?;
    let header = root.join("bundle.json");
    let manifest: Manifest = header.read_json()?;
    let verdict = Some(summary.verdict.clone());
    header.replace_json_durably(&Manifest {
        ending: summary.ending.clone(),
        verdict,
        ..manifest
    })?;
    root.sync_to_disk()
}
