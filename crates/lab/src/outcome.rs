//! How a guest ended, from its output.

use crate::ports::InitStatus;
use crate::progress::GuestPhase;
use crate::qemu::QemuEnding;
use std::fmt;
use std::time::Duration;

/// How the guest ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GuestOutcome {
    /// The job ended (with any exit status) and all results were returned.
    Finished,
    /// The kernel panicked, with the line of the panic.
    Panicked(String),
    /// Memory ran out: the kernel panicked for lack of it, or killed tasks and the job failed.
    OutOfMemory(String),
    /// Still running at its time limit; it was killed.
    Hung {
        /// The time limit, in time that this system gave the guest.
        after: Duration,
        /// The phase of the guest.
        phase: GuestPhase,
    },
    /// A booting kernel printed nothing more; it was killed.
    Silent {
        /// The length of the silence.
        after: Duration,
    },
    /// The user killed it.
    Killed(GuestPhase),
    /// The guest wrote more than allowed and was killed.
    TooMuchOutput {
        /// The bound in bytes, over console, ports and QEMU's own messages together.
        limit: u64,
    },
    /// Powered off or reset without a panic and before all results came back.
    EndedEarly(GuestPhase),
    /// QEMU itself failed, with its message.
    QemuFailed(String),
}

impl fmt::Display for GuestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestOutcome::Finished => write!(f, "finished"),
            GuestOutcome::Panicked(line) => write!(f, "the guest's kernel panicked: {line}"),
            GuestOutcome::OutOfMemory(line) => write!(f, "the guest ran out of memory: {line}"),
            GuestOutcome::Hung { after, phase } => {
                write!(
                    f,
                    "the guest was still running {phase} when its limit of {} s was reached",
                    after.as_secs_f64()
                )
            }
            GuestOutcome::Silent { after } => {
                write!(f, "the guest printed nothing for {} s while booting", after.as_secs_f64())
            }
            GuestOutcome::Killed(phase) => write!(f, "the guest was ended by the user {phase}"),
            GuestOutcome::TooMuchOutput { limit } => {
                write!(f, "the guest wrote more than {} MiB", limit >> 20)
            }
            GuestOutcome::EndedEarly(phase) => write!(f, "the guest powered off or reset {phase}"),
            GuestOutcome::QemuFailed(messages) => write!(f, "QEMU failed: {messages}"),
        }
    }
}

/// Panic lines, and kernel messages before one, that mean lack of memory (mm/oom_kill.c,
/// init/initramfs.c).
const MEMORY_SIGNS: [&str; 4] = [
    "System is deadlocked on memory",
    "Out of memory: compulsory panic_on_oom",
    "Out of memory and no killable processes",
    UNPACKED_IN_PART,
];

/// Files are truncated or missing, and yet the init may run and the job end (init/initramfs.c).
const UNPACKED_IN_PART: &str = "Initramfs unpacking failed: write error";

/// Determines the outcome: complete results override everything on the console, which any program
/// in the guest can write to.
pub(crate) fn judge_outcome(
    how: &QemuEnding,
    status: &InitStatus,
    console: &str,
    qemu_messages: &str,
) -> GuestOutcome {
    let phase = status.guest_phase();
    // Only the kernel writes before the first process does.
    let booting = console.split("Run /init").next().unwrap_or_default();
    if status.complete && booting.contains(UNPACKED_IN_PART) {
        return GuestOutcome::OutOfMemory(
            "its files did not fit into it, so programs and libraries are truncated: give it more"
                .to_owned(),
        );
    }
    if status.complete {
        return match (status.oom_kills, status.exit_status) {
            (Some(killed @ 1..), Some(failed)) if failed != 0 => {
                GuestOutcome::OutOfMemory(format!(
                    "the kernel killed {killed} task(s) because memory ran out, and the job ended \
                 with status {failed}"
                ))
            }
            _ => GuestOutcome::Finished,
        };
    }
    if let Some(line) = console.lines().find(|line| line.contains("Kernel panic - not syncing")) {
        let sign = console.lines().find(|line| MEMORY_SIGNS.iter().any(|sign| line.contains(sign)));
        return match sign {
            Some(sign) => GuestOutcome::OutOfMemory(without_time(sign)),
            None => GuestOutcome::Panicked(without_time(line)),
        };
    }
    match how {
        QemuEnding::TimedOut { after } => GuestOutcome::Hung { after: *after, phase },
        QemuEnding::Silent { after } => GuestOutcome::Silent { after: *after },
        QemuEnding::Killed => GuestOutcome::Killed(phase),
        QemuEnding::TooMuchOutput { limit } => GuestOutcome::TooMuchOutput { limit: *limit },
        QemuEnding::Exited { success: true, .. } => GuestOutcome::EndedEarly(phase),
        QemuEnding::Exited { description, .. } => {
            GuestOutcome::QemuFailed(format!("{description}: {}", qemu_messages.trim()))
        }
    }
}

/// A console line without its time in brackets.
fn without_time(line: &str) -> String {
    let message = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("] "));
    message.map_or(line, |(_, message)| message).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited() -> QemuEnding {
        QemuEnding::Exited { success: true, description: "exit status: 0".into() }
    }

    #[test]
    fn complete_results_outweigh_the_console() {
        let status = InitStatus::parse("job-started\njob-ended 7\noom-kills 0\ncomplete\n");
        let spoof = "Kernel panic - not syncing: not really";
        assert_eq!(
            judge_outcome(&QemuEnding::TimedOut { after: Duration::ZERO }, &status, spoof, ""),
            GuestOutcome::Finished
        );
    }

    #[test]
    fn panics_and_out_of_memory_of_a_guest_are_distinguished() {
        let console =
            "[    1.5] Kernel panic - not syncing: sysrq triggered crash\r\n[ 1.6] CPU: 0";
        let judged = judge_outcome(&exited(), &InitStatus::default(), console, "");
        insta::assert_snapshot!(judged, @"the guest's kernel panicked: Kernel panic - not syncing: sysrq triggered crash");
        let console = "[ 0.5] Initramfs unpacking failed: write error\n[ 1.5] Kernel panic - not \
                       syncing: No working init";
        let judged = judge_outcome(&exited(), &InitStatus::default(), console, "");
        insta::assert_snapshot!(judged, @"the guest ran out of memory: Initramfs unpacking failed: write error");
        let status = InitStatus::parse("job-started\njob-ended 137\noom-kills 2\ncomplete\n");
        insta::assert_snapshot!(judge_outcome(&exited(), &status, "", ""), @"the guest ran out of memory: the kernel killed 2 task(s) because memory ran out, and the job ended with status 137");
        let cut =
            "[ 5.5] Initramfs unpacking failed: write error\n[ 8.1] Run /init as init process\n";
        let died = InitStatus::parse("job-started\njob-ended 135\noom-kills 0\ncomplete\n");
        insta::assert_snapshot!(judge_outcome(&exited(), &died, cut, ""), @"the guest ran out of memory: its files did not fit into it, so programs and libraries are truncated: give it more");
        let spoof = format!("[ 8.1] Run /init as init process\n{cut}");
        assert_eq!(judge_outcome(&exited(), &died, &spoof, ""), GuestOutcome::Finished);
        let fine = InitStatus::parse("job-started\njob-ended 0\noom-kills 2\ncomplete\n");
        assert_eq!(judge_outcome(&exited(), &fine, "", ""), GuestOutcome::Finished);
    }

    #[test]
    fn other_guest_failures_report_the_phase_reached() {
        let job = InitStatus::parse("job-started\n");
        let hung =
            judge_outcome(&QemuEnding::TimedOut { after: Duration::from_secs(2) }, &job, "", "");
        insta::assert_snapshot!(hung, @"the guest was still running while the job ran when its limit of 2 s was reached");
        let silent = judge_outcome(
            &QemuEnding::Silent { after: Duration::from_secs(60) },
            &InitStatus::default(),
            "",
            "",
        );
        insta::assert_snapshot!(silent, @"the guest printed nothing for 60 s while booting");
        assert_eq!(
            judge_outcome(&exited(), &InitStatus::default(), "", ""),
            GuestOutcome::EndedEarly(GuestPhase::Booting)
        );
        let failed = QemuEnding::Exited { success: false, description: "exit status: 1".into() };
        let judged = judge_outcome(&failed, &InitStatus::default(), "", "qemu: no such device\n");
        insta::assert_snapshot!(judged, @"QEMU failed: exit status: 1: qemu: no such device");
    }
}
