//! The kernel and the machine of a run, from its environment.

use crate::reader::Bundle;
use punctual_core::Fact;
use serde::Deserialize;

/// The kernel and machine of `environment.json`, as far as readers of bundles need them. All texts
/// are untrusted. Missing values are not asked; an environment of another form provides none.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RanUnder {
    kernel: KernelFacts,
    machine: MachineFacts,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
struct KernelFacts {
    release: Fact<String>,
    version: Fact<String>,
    architecture: Fact<String>,
    preemption: Fact<PreemptionFacts>,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
struct PreemptionFacts {
    model: String,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
struct MachineFacts {
    cpu_model: Fact<String>,
}

impl RanUnder {
    /// Reads it from a bundle; empty without a readable environment.
    pub fn from_bundle(bundle: &Bundle) -> RanUnder {
        bundle.read_document("environment").ok().flatten().unwrap_or_default()
    }

    /// As `uname -r` prints it.
    pub fn kernel_release(&self) -> Option<&str> {
        known_text(&self.kernel.release)
    }

    /// As `uname -v` prints it: the build.
    pub fn kernel_version(&self) -> Option<&str> {
        known_text(&self.kernel.version)
    }

    /// As `uname -m` prints it.
    pub fn architecture(&self) -> Option<&str> {
        known_text(&self.kernel.architecture)
    }

    /// Whether it was a PREEMPT_RT kernel.
    pub fn is_real_time(&self) -> Option<bool> {
        self.kernel.preemption.known_value().map(|of| of.model == "real_time")
    }

    /// The model of its processor.
    pub fn cpu_model(&self) -> Option<&str> {
        known_text(&self.machine.cpu_model)
    }
}

fn known_text(fact: &Fact<String>) -> Option<&str> {
    fact.known_value().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_environment_fields_are_unknown() {
        let read = |text: &str| serde_json::from_str::<RanUnder>(text).unwrap();
        let text = r#"{"kernel":{"release":{"known":"6.1.0"},"version":{"unavailable":"why"},
            "preemption":{"known":{"model":"real_time","source":"x"}}},"settings":{}}"#;
        let read_whole = read(text);
        assert_eq!(
            (read_whole.kernel_release(), read_whole.kernel_version()),
            (Some("6.1.0"), None)
        );
        assert_eq!((read_whole.is_real_time(), read_whole.cpu_model()), (Some(true), None));
        assert_eq!(read("{}"), RanUnder::default());
        assert_eq!(RanUnder::default().is_real_time(), None);
    }
}
