//! The comparison of an exact explanation with that of another bundle, or of the same experiment on
//! another kernel, which is run for it.

use crate::exact::{HowMuch, explain_bundle};
use crate::targets::{self, RemoteRun, Returned};
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_bundle::{Bundle, Member};
use punctual_core::{Finding, MadeOf, Severity};
use punctual_exact::difference;
use punctual_plan::{ByteSize, TargetPlan};
use punctual_session::exit::{ErrorPart, Failure};
use punctual_session::messages::{Listener, display_path};
use punctual_session::options::{RunOptions, SshOptions};
use punctual_session::request::ExperimentRequest;
use std::path::{Path, PathBuf};

/// The exact explanation of a bundle: the stored one if it has enough samples and all functions of
/// their parts, else that of a replay.
pub fn explanation_of_bundle(
    bundle: &Bundle,
    wanted: HowMuch,
    messages: Listener,
) -> Result<ExactDocument, Failure> {
    let kept: Option<ExactDocument> = bundle.read_document(EXACT_MEMBER).unwrap_or_default();
    let has_lines = |kept: &ExactDocument| kept.worst.iter().any(|one| !one.lines.is_empty());
    let enough = |kept: &ExactDocument| {
        kept.worst.len() >= wanted.worst
            && difference::is_complete(kept)
            && (!wanted.lines || has_lines(kept))
    };
    match kept.filter(enough) {
        Some(kept) => Ok(kept),
        None => explain_bundle(bundle, wanted, messages),
    }
}

/// Compares a bundle's explanation with another's, and stores the difference in the bundle. The
/// other is a bundle, an `exact.json`, or a kernel with the settings of `--target vm:`.
///
/// # Errors
/// The other cannot be explained.
pub fn compare_explanations(
    bundle: &Bundle,
    mut here: ExactDocument,
    other: &str,
    messages: Listener,
) -> Result<ExactDocument, Failure> {
    let path = Path::new(other);
    let wanted = HowMuch { worst: here.worst.len(), lines: false };
    let mut findings = Vec::new();
    let other_explanation = if path.is_dir() {
        let opened = Bundle::open(path).map_err(Failure::refused)?;
        findings.extend(other_experiment(bundle, &opened));
        explanation_of_bundle(&opened, wanted, messages)?
    } else if path.extension().is_some_and(|extension| extension == "json") {
        let name = path.file_name().unwrap_or_default();
        let parent = targets::parent_directory(path);
        Member::from_root(parent).join(name).read_json().map_err(Failure::refused)?
    } else {
        let opened =
            on_kernel(bundle, other, messages).map_err(|why| add_missing_bundle(other, why))?;
        findings.extend(other_experiment(bundle, &opened));
        explanation_of_bundle(&opened, wanted, messages)?
    };
    findings.extend(difference::difference_findings(&here, &other_explanation));
    here.difference = Some(difference::compare_documents(&here, &other_explanation, other));
    // Drops the findings of an earlier comparison.
    here.findings.retain(|old| !is_of_comparison(old));
    here.findings.extend(findings);
    let member = bundle.member(EXACT_MEMBER).with_extension("json");
    member.replace_json(&here).map_err(Failure::failed)?;
    Ok(here)
}

/// The findings of a comparison.
fn is_of_comparison(finding: &Finding) -> bool {
    ["exact-same-run", "exact-functions", OTHER_EXPERIMENT].contains(&finding.id.as_str())
}

const OTHER_EXPERIMENT: &str = "exact-experiments";

fn other_experiment(here: &Bundle, there: &Bundle) -> Option<Finding> {
    let text = |bundle: &Bundle| {
        let file = bundle.manifest.experiment_file.clone()?;
        bundle.member(&file).read().ok()
    };
    (text(here) != text(there)).then(|| {
        let message = "the two runs are of different experiments";
        Finding::new(OTHER_EXPERIMENT, Severity::Warning, "system", message)
            .with_evidence(format!(
                "{} and {}",
                display_path(&here.directory),
                display_path(&there.directory)
            ))
            .with_remedy(
                "differences may be those of the experiments; --against KERNEL runs the same",
            )
    })
}

/// Runs the same experiment on this kernel, in a bundle beside this one, which later calls reuse.
fn on_kernel(bundle: &Bundle, kernel: &str, messages: Listener) -> Result<Bundle, Failure> {
    let made_of = bundle.manifest.target.as_ref().and_then(|target| target.made_of.as_ref());
    let made_of = made_of.ok_or_else(|| {
        Failure::refused("only a run in virtual time can be run again on another kernel")
    })?;
    let output = path_on_kernel(&bundle.directory, kernel)?;
    if output.exists() {
        messages.show_progress(&format!(
            "exact explanation: {} is there already",
            display_path(&output)
        ));
        return Bundle::open(&output).map_err(Failure::refused);
    }
    let file = bundle.manifest.experiment_file.as_deref().ok_or_else(|| {
        Failure::refused("the bundle does not hold its experiment: name another bundle")
    })?;
    let bytes = bundle.member(file).read().map_err(Failure::failed)?;
    let mut options = RunOptions {
        plan_only: false,
        output: Some(output.clone()),
        quiet: true,
        stop_above: None,
        on_violation: None,
        forever: false,
        trace: Vec::new(),
        explain: bundle.windows.is_some(),
        calibrate: None,
        force: false,
        target: Some(format!("vm:{kernel}")),
        seed: None,
        repeat: 1,
        exact: true,
        ssh: SshOptions::default(),
    };
    let extension = file.rsplit('.').next().unwrap_or_default();
    let path = PathBuf::from(format!("{}.{extension}", bundle.manifest.experiment));
    let written =
        ExperimentRequest::of_text(&path, bytes.clone(), &options).load()?.experiment.settings.seed;
    options.seed = seed_of(bundle).filter(|_| written.is_none());
    let experiment_request = ExperimentRequest::of_text(&path, bytes, &options);
    let target = with_settings(experiment_request.target_plan()?, made_of, kernel);
    let remote = RemoteRun::from_request(&target, &options, &experiment_request, messages)?;
    match targets::run_on_target(&target, &remote)? {
        Returned::Bundle(_) => Bundle::open(&output).map_err(Failure::failed),
        Returned::Plan { .. } => Err(Failure::failed("nothing was measured")),
    }
}

/// Adds memory and command line of the run, if the kernel's settings do not name them.
fn with_settings(target: TargetPlan, made_of: &MadeOf, kernel: &str) -> TargetPlan {
    let TargetPlan::Vm(mut vm) = target else { return target };
    if !kernel.contains("memory=") {
        vm.memory = ByteSize(u64::from(made_of.memory_mb) << 20);
    }
    if !kernel.contains("cmdline=") {
        vm.cmdline.clone_from(&made_of.command_line);
    }
    TargetPlan::Vm(vm)
}

/// The seed of the plan as run, which may have been an option.
fn seed_of(bundle: &Bundle) -> Option<u64> {
    let text = bundle.plan_text().ok()??;
    let plan =
        ExperimentRequest::of_plain_text(Path::new("plan.toml"), text.into_bytes()).load().ok()?;
    plan.experiment.settings.seed.map(|seed| seed.value)
}

/// The path `BUNDLE-on-KERNEL`.
fn path_on_kernel(directory: &Path, kernel: &str) -> Result<PathBuf, Failure> {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
    let whole = directory.canonicalize().map_err(Failure::refused)?;
    let mut name = whole.file_name().unwrap_or_default().to_owned();
    name.push(format!("-on-{}", kernel.chars().map(fit).collect::<String>()));
    Ok(whole.with_file_name(name))
}

/// A name that is not a bundle is a kernel's: if that does not exist either, both are reported.
fn add_missing_bundle(other: &str, mut why: Failure) -> Failure {
    if !Path::new(other).exists() {
        let text = format!("--against {other}: there is no such bundle, and on such a kernel:");
        let text = punctual_core::format::escape_unsafe(&text);
        why.parts.insert(0, ErrorPart::Text(text));
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_on_another_kernel_is_saved_beside_the_bundle() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |kernel: &str| path_on_kernel(dir.path(), kernel).expect("a path");
        let name = dir.path().file_name().expect("a name").to_string_lossy();
        for (kernel, suffix) in
            [("6.12-rt", "6.12-rt"), ("6.12,cmdline=a b/../c", "6.12-cmdline-a-b-..-c")]
        {
            let path = at(kernel);
            assert_eq!(path.parent(), dir.path().canonicalize().expect("it is there").parent());
            assert!(path.ends_with(format!("{name}-on-{suffix}")), "{}", path.display());
        }
    }

    #[test]
    fn settings_of_the_run_are_kept_unless_overridden_with_the_kernel() {
        let made_of = MadeOf {
            kernel: String::new(),
            initramfs: String::new(),
            arch: None,
            emulator: String::new(),
            job: None,
            memory_mb: 512,
            command_line: "preempt=full".to_owned(),
            qemu_arguments: Vec::new(),
        };
        let of = |kernel: &str| {
            let vm = crate::targets::vm::plan_for_kernel(kernel).expect("a kernel");
            match with_settings(TargetPlan::Vm(vm), &made_of, kernel) {
                TargetPlan::Vm(vm) => (vm.memory.0 >> 20, vm.cmdline),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of("6.12"), (512, "preempt=full".to_owned()));
        assert_eq!(of("6.12,memory=2G,cmdline=quiet"), (2048, "quiet".to_owned()));
    }
}
