//! The privileges that this process lacks for loading programs into the kernel.

use punctual_sys::rights::{Capabilities, Capability};
use punctual_sys::status;
use std::fs;

/// The kernel's reason for a refusal, as far as known, and a remedy.
pub(crate) fn describe_refusal() -> (String, Option<String>) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let missing = missing_capabilities(&status::read().unwrap_or_default());
    if !missing.is_empty() {
        let unprivileged = match read("/proc/sys/kernel/unprivileged_bpf_disabled").trim() {
            "" => String::new(),
            value => format!(
                " (kernel.unprivileged_bpf_disabled is {value}; even 0 would not allow tracing)"
            ),
        };
        let remedy = "run as root, or give the program the capabilities: setcap \
                      cap_bpf,cap_perfmon+ep"
            .to_owned();
        return (
            format!("this process lacks {}{unprivileged}", missing.join(" and ")),
            Some(remedy),
        );
    }
    if read("/sys/kernel/security/lockdown").contains("[confidentiality]") {
        let remedy = "boot without `lockdown=`, and without Secure Boot".to_owned();
        return (
            "the kernel is locked down (/sys/kernel/security/lockdown: confidentiality)".to_owned(),
            Some(remedy),
        );
    }
    let reason = "the kernel refuses although this process has the capabilities: possibly because \
               of a container's seccomp filter or user namespace";
    (reason.to_owned(), Some("run outside of the container".to_owned()))
}

/// The capabilities that this process lacks for recording kernel events; `None` if it has all.
pub fn missing_rights() -> Option<String> {
    let missing = missing_capabilities(&status::read().unwrap_or_default());
    (!missing.is_empty()).then(|| missing.join(" and "))
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let rights = Capabilities::parse(status);
    let has = |capability| rights.is_some_and(|rights| rights.has_capability(capability));
    [Capability::Bpf, Capability::Perfmon]
        .into_iter()
        .filter(|capability| !has(*capability) && !has(Capability::SysAdmin))
        .map(Capability::name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::missing_capabilities;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(missing_capabilities("CapEff:\t0000000000000000\n"), ["CAP_BPF", "CAP_PERFMON"]);
        assert_eq!(missing_capabilities("CapEff:\t0000008000000000\n"), ["CAP_PERFMON"]);
        assert!(missing_capabilities("CapEff:\t000001ffffffffff\n").is_empty());
        assert!(missing_capabilities("CapEff:\t0000000000200000\n").is_empty());
    }
}
