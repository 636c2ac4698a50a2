//! The results of a guest, from QEMU's files.

use crate::LabError;
use crate::outcome::{self, GuestOutcome};
use crate::ports::{self, InitStatus};
use crate::qemu::{self, QemuEnd};
use punctual_core::MadeOf;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The maximum to read of each text of a guest, and of its results.
const TEXT_MAX: u64 = 64 << 20;
const RESULTS_MAX: u64 = 1 << 30;

/// The result of a guest.
#[derive(Clone, Debug)]
pub struct GuestResult {
    pub outcome: GuestOutcome,
    /// The job's exit status, if it ended: as from a shell, 128 + n after signal n.
    pub exit_status: Option<i32>,
    /// The job's standard output, as far as received.
    pub stdout: Vec<u8>,
    /// The job's standard error, as far as received.
    pub stderr: Vec<u8>,
    /// The regular files that the job left in /results, by their path there. Empty unless
    /// [`GuestOutcome::Finished`] or [`GuestOutcome::OutOfMemory`] with an exit status, and empty
    /// if they were put into [`Guest::results_to`](crate::Guest).
    pub results: BTreeMap<String, Vec<u8>>,
    /// The complete console output.
    pub console_log: String,
    /// The kernel's command line given to the machine.
    pub cmdline: String,
    /// The kernel's release (`uname -r`), if the init got that far.
    pub release: Option<String>,
    /// The number of tasks killed by the guest's OOM killer, if reported.
    pub oom_kills: Option<u64>,
    /// Problems in preparing the guest (a module that did not load).
    pub problems: Vec<String>,
    /// The time of the last boot by this machine's clock.
    pub elapsed: Duration,
    /// The number of boots: more than one if a fault of QEMU ended one before the job began.
    pub boots: u32,
    /// QEMU's version: `10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)`.
    pub emulator: String,
    /// The files that it was made of, stored for a replay: for a guest in virtual time.
    pub made_of: Option<MadeOf>,
}

impl GuestResult {
    /// Reads the files in the run's directory after the last of `boots` boots.
    pub(crate) fn from_directory(
        dir: &Path,
        ended: QemuEnd,
        boots: u32,
        results_to: Option<&Path>,
    ) -> Result<GuestResult, LabError> {
        let bytes = |name: &str, most| {
            ports::read_at_most(&dir.join(name), most).map_err(LabError::io("read", dir.join(name)))
        };
        // The last part describes how a guest ended.
        let text = |name: &str| {
            let end = ports::read_end(&dir.join(name), TEXT_MAX);
            let end = end.map_err(LabError::io("read", dir.join(name)))?;
            Ok::<_, LabError>(String::from_utf8_lossy(&end).into_owned())
        };
        let status = InitStatus::read(&dir.join("status"));
        let status = status.map_err(LabError::io("read", dir.join("status")))?;
        let console_log = text(qemu::CONSOLE)?;
        let outcome =
            outcome::judge_outcome(&ended.how, &status, &console_log, &text(qemu::QEMU_STDERR)?);
        let malformed = |why: String| LabError::malformed("the guest's results", why);
        let results = match (status.complete, results_to) {
            (false, _) => BTreeMap::new(),
            (true, None) => {
                ports::unpack_results(&bytes("results", RESULTS_MAX)?).map_err(malformed)?
            }
            (true, Some(directory)) => {
                let archive = dir.join("results");
                let file = fs::File::open(&archive).map_err(LabError::io("read", &archive))?;
                ports::unpack_to(std::io::BufReader::new(file), directory).map_err(malformed)?;
                BTreeMap::new()
            }
        };
        Ok(GuestResult {
            outcome,
            exit_status: status.exit_status,
            stdout: bytes("stdout", TEXT_MAX)?,
            stderr: bytes("stderr", TEXT_MAX)?,
            results,
            console_log,
            cmdline: String::new(),
            release: status.release,
            oom_kills: status.oom_kills,
            problems: status.problems,
            elapsed: ended.elapsed,
            boots,
            emulator: ended.emulator,
            made_of: None,
        })
    }

    /// Whether this is a fault of QEMU and not of the guest: with several virtual CPUs in separate
    /// threads, one may run an instruction of the kernel that another is just patching, and the
    /// kernel panics on its own breakpoint. Seen in 4 of 145 boots of 6.12-rt on four CPUs with
    /// QEMU 7.2, in none of 144 of 6.1 and 6.1-rt.
    pub(crate) fn is_torn_patch(&self) -> bool {
        // The release is reported just before the job begins.
        matches!(self.outcome, GuestOutcome::Panicked(_))
            && self.release.is_none()
            && self.console_log.contains("int3: 0000")
    }
}
