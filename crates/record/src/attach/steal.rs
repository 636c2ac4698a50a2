//! Whether the time taken by a hypervisor is a separate part.

use punctual_core::{Finding, Severity};
use std::fs;

/// The field of `struct rq` with the scheduler's steal clock of a CPU.
const FIELD: &[u8] = b"\0prev_steal_time_rq\0";

/// The finding if a hypervisor takes time of this system, and the kernel does not keep it per CPU
/// (CONFIG_PARAVIRT_TIME_ACCOUNTING).
pub(super) fn not_divided() -> Option<Finding> {
    let stolen = stolen_ticks(&fs::read_to_string("/proc/stat").ok()?);
    let is_kept = || fs::read("/sys/kernel/btf/vmlinux").is_ok_and(|types| has_field(&types));
    (stolen > 0 && !is_kept()).then(undivided_finding)
}

fn undivided_finding() -> Finding {
    let message = "steal time is in the part that it interrupted: this kernel does not keep it for \
                   each CPU (CONFIG_PARAVIRT_TIME_ACCOUNTING)";
    Finding::new("steal-not-divided", Severity::Note, "attach", message)
}

fn has_field(types: &[u8]) -> bool {
    types.windows(FIELD.len()).any(|name| name == FIELD)
}

/// The ticks since boot, over all CPUs.
fn stolen_ticks(stat: &str) -> u64 {
    let ticks = stat.lines().next().and_then(|line| line.split_ascii_whitespace().nth(8));
    ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_btf_field_is_found_by_its_complete_name_only() {
        assert!(has_field(b"\0nr\0prev_steal_time_rq\0clock\0"));
        assert!(!has_field(b"\0prev_steal_time_rq2\0prev_steal_time\0"));
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7 89 0 0\ncpu0 1 2 3\n"), 89);
        assert_eq!(stolen_ticks(""), 0);
    }
}
