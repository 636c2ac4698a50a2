//! Runs the cases in a guest in virtual time, with the kernel module for delays within the kernel.

use super::Through;
use super::document::{TruthDocument, TruthSystem};
use punctual_core::Nanos;
use punctual_lab::{
    Accel, Arch, BootKernel, Guest, GuestControl, GuestOutcome, GuestProgress, Job, LabError,
};
use punctual_session::exit::Failure;
use punctual_session::programs::find_program;
use std::fs;
use std::time::Duration;

const MODULE: &str = "punctual_truth";
/// Modules for the disk and its settings.
const MODULES: [&str; 2] = ["configfs", "null_blk"];
const SOURCES: [(&str, &str); 2] = [
    ("Makefile", include_str!("../module/Makefile")),
    ("punctual_truth.c", include_str!("../module/punctual_truth.c")),
];
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Runs the cases there. The second result is why those of the kernel module are missing.
pub fn run_guest_cases(
    kernel: &str,
    arguments: &[String],
    through: Through,
    duration: Nanos,
    watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
) -> Result<(TruthSystem, Option<String>), Failure> {
    let of_lab = |why: LabError| Failure::of_lab(&why);
    let kernel = BootKernel::by_name(kernel, Arch::Amd64).map_err(of_lab)?;
    let module = build_device_module(&kernel);
    let own_program = std::env::current_exe().map_err(Failure::failed)?;
    let program = super::find_tested_program(&own_program)?;
    let script = format!(
        "mount -t configfs configfs /sys/kernel/config\n\
         {own} --quiet --json --duration {duration} {} \
         >/results/truth.json\n",
        shell_words::join(arguments),
        own = shell_words::quote(&own_program.to_string_lossy()),
    );
    let mut guest = Guest::new(kernel, Job::Script(script));
    guest.links = vec![("/usr/bin/punctual".into(), program.to_string_lossy().into_owned())];
    guest.programs = vec![own_program, program];
    if let Some(program) = through.required_program() {
        let found = find_program(program)
            .map_err(|why| Failure::refused(format!("{program}: {why}\nhelp: install it")))?;
        guest.programs.push(found);
    }
    (guest.cpus, guest.memory_mb, guest.accel) = (1, 1024, Accel::VirtualTime);
    guest.timeout = TIMEOUT;
    guest.modules = MODULES.map(str::to_owned).to_vec();
    let missing = match module {
        Ok(module) => {
            guest.drivers = vec![(MODULE.to_owned(), module)];
            None
        }
        Err(why) => Some(format!("the kernel module cannot be built: {why}")),
    };
    let result = guest.run_watched(watch).map_err(of_lab)?;
    let said = || String::from_utf8_lossy(&result.stderr).trim().to_owned();
    let document = result.results.get("truth.json").filter(|text| !text.is_empty());
    let Some(document) = document.filter(|_| result.outcome == GuestOutcome::Finished) else {
        return Err(Failure::failed(format!("{}: {}", result.outcome, said())));
    };
    let document: TruthDocument = serde_json::from_slice(document)
        .map_err(|why| Failure::failed(format!("the guest's scores: {why}")))?;
    let system = document.systems.into_iter().next();
    let system = system.ok_or_else(|| Failure::failed("the guest has no scores"))?;
    Ok((TruthSystem { virtual_time: true, ..system }, missing))
}

fn build_device_module(kernel: &BootKernel) -> Result<Vec<u8>, LabError> {
    let failed = |why: std::io::Error| LabError::Request(why.to_string());
    let place = tempfile::tempdir().map_err(failed)?;
    for (name, text) in SOURCES {
        fs::write(place.path().join(name), text).map_err(failed)?;
    }
    kernel.build_module(place.path(), MODULE)
}
