//! The non-preemptible sections of a kernel that a run reaches: any command in a guest, its boot,
//! or the measurement of a bundle.

pub mod require;

use crate::exact::{self, HowMuch, INSN, RunPrograms};
use crate::targets::vm::{find_kernel, plan_for_kernel, preemption_word};
use punctual_bundle::Bundle;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_bundle::sections::{SECTIONS_SCHEMA, SectionsDocument, SectionsRun};
use punctual_core::{Finding, Severity};
use punctual_exact::Exact;
use punctual_exact::document::SECTIONS;
use punctual_exact::dump::Dump;
use punctual_host::environment;
use punctual_host::files::Root;
use punctual_lab::exact::{ExactRunPart, Replay, WantedSamples, mark_command};
use punctual_lab::{Accel, Arch, Guest, GuestControl, GuestFile, GuestOutcome, Job};
use punctual_plan::{Acceleration, Architecture, VmPlan};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::Listener;
use punctual_session::programs::{find_program, programs_of};
use require::Require;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A command may take any time: the user can end it.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Copies the files that show the preemption model in force.
const COPY_SYSTEM: &str = "for file in /proc/sys/kernel/version /proc/cmdline \
                           /sys/kernel/debug/sched/preempt /sys/kernel/realtime; do\n[ -e $file ] \
                           && mkdir -p /results/system${file%/*} && cat $file \
                           >/results/system$file\ndone\n";

/// The work of the guest.
pub enum GuestWork {
    /// A command of this machine, in $PATH or by its path.
    Command {
        words: Vec<String>,
        /// Files that it needs, which get the same path in the guest.
        files: Vec<PathBuf>,
    },
    /// Nothing but the guest's boot.
    Boot,
}

/// The sections of a command or boot in a guest of the kernel, which may have the settings of
/// `--target vm:`.
///
/// # Errors
/// The guest cannot be made, or did not reach its end.
pub fn of_guest(
    kernel: &str,
    work: &GuestWork,
    messages: Listener,
) -> Result<SectionsDocument, Failure> {
    let vm = plan_for_kernel(kernel)?;
    let guest = guest_of_plan(&vm, work)?;
    let interrupts = SignalRequests::listen()?;
    let mut watch = |_: punctual_lab::GuestProgress| match interrupts.end_requested() {
        true => GuestControl::Kill,
        false => GuestControl::GoOn,
    };
    let of_lab = |why| Failure::of_lab(&why);
    let say = |step: &str| messages.show_progress(&format!("sections: {step}"));
    let place = tempfile::Builder::new().prefix("punctual-sections-").tempdir();
    let place =
        place.map_err(|why| Failure::failed(format!("cannot create a directory: {why}")))?;
    let made_of = guest.store_for_replay().map_err(of_lab)?;
    let replay = Replay::from_stored(made_of.clone()).map_err(of_lab)?;
    let replay = replay.with_limit(guest.timeout);
    say("reading the kernel's symbols");
    let symbols = replay.read_symbols(&mut watch).map_err(of_lab)?;
    say("running");
    let part = match work {
        GuestWork::Command { .. } => ExactRunPart::Marked,
        GuestWork::Boot => ExactRunPart::Whole,
    };
    let wanted = WantedSamples { worst: 0, ordinary: 0, part };
    let (result, dump) = replay.run(&symbols, wanted, place.path(), &mut watch).map_err(of_lab)?;
    if result.outcome != GuestOutcome::Finished {
        return Err(Failure::failed(result.outcome));
    }
    let dump = Dump::parse(&dump).map_err(Failure::failed)?;
    // Including the symbols of modules that the command loaded.
    let names = fs::read_to_string(place.path().join("kallsyms")).unwrap_or(symbols.kallsyms);
    let programs = RunPrograms::from_inputs(Some(&made_of), &symbols.vdso);
    let exact = Exact::from_dump(&dump, &programs.function_table(&dump, &names), INSN);
    let run = match work {
        GuestWork::Boot => SectionsRun::Boot,
        GuestWork::Command { words, .. } => {
            SectionsRun::Command { command: words.clone(), status: result.exit_status }
        }
    };
    let mut findings = exact.limit_findings();
    findings.extend(command_finding(&run, &result.stderr));
    let host = environment::capture_environment(&Root::from_base(place.path().join("system")));
    let preemption = host.kernel.preemption.known_value().map(|known| preemption_word(known.model));
    Ok(SectionsDocument {
        schema: SECTIONS_SCHEMA.to_owned(),
        kernel: result.release.unwrap_or_default(),
        preemption,
        ns_per_instruction: u32::try_from(INSN.0).unwrap_or(0),
        run,
        instructions: exact.insns,
        measured: exact.kept,
        sections: exact.sections.keep_longest(SECTIONS),
        required: Vec::new(),
        findings,
    })
}

/// The sections of a bundle's measurement, which is replayed if it has no exact explanation.
///
/// # Errors
/// Those of [`exact::explain_bundle`].
pub fn of_bundle(bundle: &Bundle, messages: Listener) -> Result<SectionsDocument, Failure> {
    let kept: Option<ExactDocument> =
        bundle.read_document(EXACT_MEMBER).map_err(Failure::failed)?;
    let exact = match kept.filter(|exact| exact.measured > 0) {
        Some(exact) => exact,
        None => {
            exact::explain_bundle(bundle, HowMuch { worst: exact::WORST, lines: false }, messages)?
        }
    };
    let kernel = bundle.manifest.target.as_ref().and_then(|target| target.kernel.as_ref());
    Ok(SectionsDocument {
        schema: SECTIONS_SCHEMA.to_owned(),
        kernel: exact.kernel,
        preemption: kernel.and_then(|kernel| kernel.preemption_in_force.clone()),
        ns_per_instruction: exact.ns_per_instruction,
        run: SectionsRun::Measurement { digest: exact.digest },
        instructions: exact.instructions,
        measured: exact.measured,
        sections: exact.sections,
        required: Vec::new(),
        findings: exact.findings,
    })
}

/// Judges the requirements on the longest of all.
///
/// # Errors
/// The error in one of them.
pub fn parse_requirements(texts: &[String]) -> Result<Vec<Require>, Failure> {
    texts.iter().map(|text| Require::parse(text).map_err(Failure::refused)).collect()
}

fn guest_of_plan(vm: &VmPlan, work: &GuestWork) -> Result<Guest, Failure> {
    let arch = match vm.arch {
        Architecture::X86_64 => Arch::Amd64,
        Architecture::Aarch64 => Arch::Arm64,
    };
    let plain = vm.devices.is_empty() && vm.drivers.is_empty();
    if vm.accel != Acceleration::VirtualTime || !plain {
        let message = "--kernel: only a guest in virtual time, without devices and drivers";
        return Err(Failure::refused(message));
    }
    let (kernel, _) = find_kernel(vm, arch).map_err(|why| Failure::of_lab(&why))?;
    let (programs, script) = match work {
        GuestWork::Boot => (BTreeSet::new(), COPY_SYSTEM.to_owned()),
        GuestWork::Command { words, .. } => {
            let (name, arguments) =
                words.split_first().ok_or_else(|| Failure::refused("there is no command"))?;
            let found =
                find_program(name).map_err(|why| Failure::refused(format!("{name}: {why}")))?;
            let programs = programs_of(&found, arguments);
            let script = guest_script(&found, arguments, &programs, arch);
            (programs, script)
        }
    };
    let mut guest = Guest::new(kernel, Job::Script(script));
    guest.programs = programs.into_iter().collect();
    if let GuestWork::Command { files, .. } = work {
        for file in files {
            let path = std::path::absolute(file)?.to_string_lossy().into_owned();
            guest
                .files
                .push(GuestFile::from_host_file(file, path).map_err(|why| Failure::of_lab(&why))?);
        }
    }
    guest.cmdline_extra = vm.cmdline.clone();
    guest.memory_mb = u32::try_from(vm.memory.0 >> 20).unwrap_or(u32::MAX);
    (guest.cpus, guest.accel) = (1, Accel::VirtualTime);
    guest.timeout = vm.timeout.map_or(TIMEOUT, |timeout| timeout.to_std());
    guest.whole_boot = matches!(work, GuestWork::Boot);
    Ok(guest)
}

/// The command between two bytes that the plugin sees.
fn guest_script(
    program: &Path,
    arguments: &[String],
    programs: &BTreeSet<PathBuf>,
    arch: Arch,
) -> String {
    let directories: BTreeSet<_> =
        programs.iter().filter_map(|program| program.parent()).map(Path::to_string_lossy).collect();
    let path: String =
        directories.iter().map(|dir| format!("{}:", shell_words::quote(dir))).collect();
    let program = program.to_string_lossy().into_owned();
    let command = shell_words::join(std::iter::once(&program).chain(arguments));
    let mark = mark_command(arch);
    format!(
        "{COPY_SYSTEM}export PATH={path}$PATH\nmark() {{ {mark}; }}\ncd \
         /tmp\nmark\n{command}\nstatus=$?\nmark\ncat /proc/kallsyms \
         >/results/kallsyms\nexit $status\n"
    )
}

fn command_finding(run: &SectionsRun, stderr: &[u8]) -> Option<Finding> {
    let SectionsRun::Command { status, .. } = run else { return None };
    let status = status.filter(|status| *status != 0)?;
    let stderr = String::from_utf8_lossy(stderr);
    let finding = Finding::new(
        "command-failed",
        Severity::Warning,
        "system",
        "the command in the guest failed",
    );
    let last = stderr.lines().last().unwrap_or("it printed no error");
    Some(finding.with_evidence(format!("exit status {status}: {last}")).with_remedy(
        "check whether it did its work; the guest has only the files that the command names",
    ))
}
