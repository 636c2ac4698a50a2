//! The exact explanation: a run in virtual time is repeated from the files it was made of, with a
//! plugin in QEMU that sees every instruction.

use crate::exit::Failure;
use crate::interrupts::Interrupts;
use crate::messages::Listener;
use punctual_analyze::exact::Exact;
use punctual_analyze::exact::dump::Dump;
use punctual_analyze::exact::symbols::KernelSymbols;
use punctual_bundle::Bundle;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_core::Nanos;
use punctual_lab::exact::{Part, Replay, Wanted};
use punctual_lab::{Control, Guest, GuestResult, LabError, Outcome};
use std::fs;
use std::path::Path;

/// The virtual time of an instruction (QEMU's `-icount shift=3`).
pub(crate) const INSN: Nanos = Nanos(8);
/// Ordinary samples that are kept to compare with.
const ORDINARY: u32 = 8;
/// The most samples that are explained.
pub const WORST_MAX: usize = 40;
/// What threads take to warm up, and the plugin sees too.
const WARM_UP: u32 = 16;

/// Samples that are explained by default.
pub const WORST: usize = 20;
/// Those of them that are shown one by one.
pub const SHOWN: usize = 5;

/// Replays the run of a bundle, and writes what was found into it.
///
/// # Errors
/// It is no run in virtual time whose files are kept here; the replay differs.
pub fn explain(
    bundle: &Bundle,
    worst: usize,
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
    let digest = punctual_analyze::summarize(bundle).digest;
    let digest = digest.ok_or_else(|| Failure::refused("the bundle holds no samples"))?;
    let interrupts = Interrupts::listen()?;
    let say = |step: &str| messages.progress(&format!("exact explanation: {step}"));
    let mut watch = |_: punctual_lab::Progress| match interrupts.end_requested() {
        true => Control::Kill,
        false => Control::GoOn,
    };
    let replay = Replay::of(made_of).map_err(|why| Failure::of_lab(&why))?;
    say("reading the kernel's symbols");
    let symbols = replay.symbols(&mut watch).map_err(|why| Failure::of_lab(&why))?;
    say("replaying the run");
    let place = tempfile::Builder::new().prefix("punctual-exact-").tempdir();
    let place =
        place.map_err(|why| Failure::failed(format!("cannot create a directory: {why}")))?;
    let worst = worst.min(WORST_MAX);
    let (result, dump) = replay
        .run(&symbols, samples(worst), place.path(), &mut watch)
        .map_err(|why| Failure::of_lab(&why))?;
    if result.outcome != Outcome::Finished {
        return Err(Failure::failed(format!("the replay did not complete: {}", result.outcome)));
    }
    let replayed = Bundle::open(&place.path().join("bundle")).map_err(Failure::failed)?;
    let again = punctual_analyze::summarize(&replayed).digest.unwrap_or_default();
    if again != digest {
        return Err(Failure::no_evidence(format!(
            "the replay gave different samples (digest {again}) from the run ({digest}): its \
             explanation does not apply to the run"
        )));
    }
    say("following the calls");
    let kernel = result.release.unwrap_or_default();
    write(bundle, &dump, &symbols.kallsyms, &kernel, &digest, worst)
}

fn samples(worst: usize) -> Wanted {
    Wanted { worst: worst as u32 + WARM_UP, ordinary: ORDINARY, part: Part::Samples }
}

/// What the plugin wrote, and the kernel's symbols, in the directory of a run that was seen.
const SEEN: [&str; 3] = ["exact.bin", "kallsyms", "release"];

/// Runs a guest with every instruction seen; what was seen is put into `place` beside its results.
pub fn run(
    guest: &Guest,
    place: &Path,
    watch: &mut dyn FnMut(punctual_lab::Progress) -> Control,
) -> Result<GuestResult, LabError> {
    let replay = Replay::of(guest.prepared()?)?.within(guest.timeout);
    let symbols = replay.symbols(watch)?;
    let (result, dump) = replay.run(&symbols, samples(WORST), place, watch)?;
    let release = result.release.clone().unwrap_or_default().into_bytes();
    for (name, bytes) in SEEN.iter().zip([dump, symbols.kallsyms.into_bytes(), release]) {
        let path = place.join(name);
        fs::write(&path, bytes).map_err(|source| LabError::Io { action: "write", path, source })?;
    }
    Ok(result)
}

/// Writes what was seen of a run into its bundle, if the run came so far.
pub fn write_seen(directory: &Path, place: &Path) -> Result<(), Failure> {
    let read = |name: &str| fs::read(place.join(name)).ok();
    let [Some(dump), Some(kallsyms), Some(release)] = SEEN.map(read) else { return Ok(()) };
    let bundle = Bundle::open(directory).map_err(Failure::failed)?;
    let Some(digest) = punctual_analyze::summarize(&bundle).digest else { return Ok(()) };
    let kallsyms = String::from_utf8_lossy(&kallsyms);
    let release = String::from_utf8_lossy(&release);
    write(&bundle, &dump, &kallsyms, &release, &digest, WORST)?;
    Ok(())
}

/// Follows the calls in what the plugin wrote, and writes what was found into the bundle.
fn write(
    bundle: &Bundle,
    dump: &[u8],
    kallsyms: &str,
    kernel: &str,
    digest: &str,
    worst: usize,
) -> Result<ExactDocument, Failure> {
    let dump = Dump::parse(dump).map_err(Failure::failed)?;
    let exact = Exact::of(&dump, &KernelSymbols::parse(kallsyms), INSN);
    let document = exact.document(bundle, kernel, digest, INSN, worst);
    let member = bundle.member(EXACT_MEMBER).with_extension("json");
    member.replace_json(&document).map_err(Failure::failed)?;
    Ok(document)
}
