//! The exact explanation: repeats a run in virtual time from its files, with a QEMU plugin that
//! sees every instruction.

mod programs;

pub(crate) use programs::RunPrograms;

use punctual_bundle::Bundle;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_core::Nanos;
use punctual_exact::Exact;
use punctual_exact::dump::Dump;
use punctual_lab::exact::{ExactRunPart, Replay, WantedSamples};
use punctual_lab::{Arch, Guest, GuestControl, GuestOutcome, GuestResult, LabError};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::{Listener, display_path};
use std::fs;
use std::path::Path;

/// The virtual time of an instruction (QEMU's `-icount shift=3`).
pub(crate) const INSN: Nanos = Nanos(8);
/// Ordinary samples that are kept for comparison.
const ORDINARY: u32 = 8;
/// The most samples that are explained.
const WORST_MAX: usize = 40;
/// Cycles for the warm-up of threads, which the plugin sees too.
const WARM_UP: u32 = 16;

/// Samples that are explained by default.
pub const WORST: usize = 20;
/// The number of them that are shown one by one.
pub const SHOWN_SAMPLES: usize = 5;

/// The extent of an explanation.
#[derive(Clone, Copy, Debug)]
pub struct HowMuch {
    /// The number of worst samples.
    pub worst: usize,
    /// Show source lines, if there is debug information.
    pub lines: bool,
}

/// Replays the run of a bundle, and writes the findings into it.
///
/// # Errors
/// The bundle is not of a run in virtual time whose files are kept here, or the replay differs.
pub fn explain_bundle(
    bundle: &Bundle,
    wanted: HowMuch,
    messages: Listener,
) -> Result<ExactDocument, Failure> {
    let target = bundle.manifest.target.as_ref();
    let made_of = target.and_then(|target| target.made_of.clone()).ok_or_else(|| {
        Failure::refused(format!(
            "{} is not a run in virtual time that can be replayed.\nMeasure with `punctual run \
             --target vm:6.12-rt`: on one CPU of an x86-64 machine, in virtual time, the bundle \
             keeps the inputs of the run",
            bundle.directory.display()
        ))
    })?;
    let digest = punctual_stats::summarize_bundle(bundle).digest;
    let digest = digest.ok_or_else(|| without_digest(bundle))?;
    let interrupts = SignalRequests::listen()?;
    let say = |step: &str| messages.show_progress(&format!("exact explanation: {step}"));
    let mut watch = |_: punctual_lab::GuestProgress| match interrupts.end_requested() {
        true => GuestControl::Kill,
        false => GuestControl::GoOn,
    };
    let replay = Replay::from_stored(made_of).map_err(|why| Failure::of_lab(&why))?;
    say("reading the kernel's symbols");
    let symbols = replay.read_symbols(&mut watch).map_err(|why| Failure::of_lab(&why))?;
    say("replaying the run");
    let place = tempfile::Builder::new().prefix("punctual-exact-").tempdir();
    let place =
        place.map_err(|why| Failure::failed(format!("cannot create a directory: {why}")))?;
    let worst = wanted.worst.min(WORST_MAX);
    let (result, dump) = replay
        .run(&symbols, wanted_samples(worst), place.path(), &mut watch)
        .map_err(|why| Failure::of_lab(&why))?;
    if result.outcome != GuestOutcome::Finished {
        return Err(Failure::failed(format!("the replay did not complete: {}", result.outcome)));
    }
    let replayed = Bundle::open(&place.path().join("bundle")).map_err(Failure::failed)?;
    let replay_digest = punctual_stats::summarize_bundle(&replayed).digest.unwrap_or_default();
    if replay_digest != digest {
        return Err(Failure::no_evidence(format!(
            "the replay gave different samples (digest {replay_digest}) from the run ({digest}): \
             its explanation does not apply to the run"
        )));
    }
    say("following the calls");
    let kernel = result.release.unwrap_or_default();
    let plugin_output =
        PluginOutput { dump: &dump, kallsyms: &symbols.kallsyms, vdso: &symbols.vdso };
    plugin_output.write(bundle, &kernel, &digest, HowMuch { worst, ..wanted })
}

/// A replay is compared with the run by the digest of its samples; cycles of programs have none.
fn without_digest(bundle: &Bundle) -> Failure {
    let place = display_path(&bundle.directory);
    Failure::refused(match bundle.all_series().next() {
        None => format!("{place} has no samples"),
        Some(_) => format!(
            "{place} has cycles of a program: only samples that punctual measures itself are \
             replayed and explained by instruction\nhelp: `punctual explain {place}` explains \
             them by kernel events, of a run with --explain; or measure what the program waits \
             for with a workload of punctual (timer, mutex, storage, …)"
        ),
    })
}

fn wanted_samples(worst: usize) -> WantedSamples {
    WantedSamples { worst: worst as u32 + WARM_UP, ordinary: ORDINARY, part: ExactRunPart::Samples }
}

/// The plugin's output, the kernel's symbols, and its vDSO, in the directory of an observed run.
const SEEN: [&str; 4] = ["exact.bin", "kallsyms", "vdso", "release"];

/// Runs a guest under the plugin; its output goes into `place` beside the results.
pub(crate) fn run_under_plugin(
    guest: &Guest,
    place: &Path,
    watch: &mut dyn FnMut(punctual_lab::GuestProgress) -> GuestControl,
) -> Result<GuestResult, LabError> {
    if guest.kernel.arch != Arch::Amd64 {
        // The digests with and without the plugin were never compared.
        let message = "samples of arm64 guests are not explained by instruction; `punctual \
                       sections` lists the sections of their kernels";
        return Err(LabError::Request(message.to_owned()));
    }
    let replay = Replay::from_stored(guest.store_for_replay()?)?.with_limit(guest.timeout);
    let symbols = replay.read_symbols(watch)?;
    let (result, dump) = replay.run(&symbols, wanted_samples(WORST), place, watch)?;
    if dump.is_empty() {
        return Ok(result);
    }
    let release = result.release.clone().unwrap_or_default().into_bytes();
    let file_contents = [dump, symbols.kallsyms.into_bytes(), symbols.vdso, release];
    for (name, bytes) in SEEN.iter().zip(file_contents) {
        let path = place.join(name);
        fs::write(&path, bytes).map_err(|source| LabError::Io { action: "write", path, source })?;
    }
    Ok(result)
}

/// Writes the plugin's output of a run into its bundle, if the run got that far.
pub(crate) fn write_seen(directory: &Path, place: &Path) -> Result<(), Failure> {
    let read = |name: &str| fs::read(place.join(name)).ok();
    let [Some(dump), Some(kallsyms), Some(vdso), Some(release)] = SEEN.map(read) else {
        return Ok(());
    };
    let bundle = Bundle::open(directory).map_err(Failure::failed)?;
    let Some(digest) = punctual_stats::summarize_bundle(&bundle).digest else { return Ok(()) };
    let kallsyms = String::from_utf8_lossy(&kallsyms);
    let release = String::from_utf8_lossy(&release);
    let plugin_output = PluginOutput { dump: &dump, kallsyms: &kallsyms, vdso: &vdso };
    plugin_output.write(&bundle, &release, &digest, HowMuch { worst: WORST, lines: false })?;
    Ok(())
}

/// The plugin's output of a run.
struct PluginOutput<'a> {
    dump: &'a [u8],
    kallsyms: &'a str,
    vdso: &'a [u8],
}

impl PluginOutput<'_> {
    /// Reconstructs the calls from the plugin's output, and writes the findings into the bundle.
    fn write(
        &self,
        bundle: &Bundle,
        kernel: &str,
        digest: &str,
        wanted: HowMuch,
    ) -> Result<ExactDocument, Failure> {
        let dump = Dump::parse(self.dump).map_err(Failure::failed)?;
        let made_of = bundle.manifest.target.as_ref().and_then(|target| target.made_of.as_ref());
        let programs = RunPrograms::from_inputs(made_of, self.vdso);
        let mut names = programs.function_table(&dump, self.kallsyms);
        let findings = match wanted.lines {
            true => programs.add_lines(&mut names, &dump, kernel),
            false => Vec::new(),
        };
        let exact = Exact::from_dump(&dump, &names, INSN);
        let mut document = exact.to_document(bundle, kernel, digest, INSN, wanted.worst);
        document.findings.extend(findings);
        let member = bundle.member(EXACT_MEMBER).with_extension("json");
        member.replace_json(&document).map_err(Failure::failed)?;
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_without_a_digest_is_refused_with_the_reason() {
        let of = |name: &str| {
            let bundles = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles");
            let bundle = Bundle::open(&Path::new(bundles).join(name)).expect("a bundle");
            without_digest(&bundle).render(false)
        };
        let said = of("imported");
        assert!(said.contains("that punctual measures itself") && said.contains("help:"), "{said}");
        assert!(!said.contains("no samples"), "{said}");
    }
}
